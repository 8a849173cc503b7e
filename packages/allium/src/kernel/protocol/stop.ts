/** Why a run ended. */

export type RunStatus = 'done' | 'stopped' | 'suspended' | 'error' | 'aborted';

const STOPPING_REASONS = [
  'final',
  'stopped',
  'max_turns',
  'max_tool_calls',
  'max_tokens',
  'max_cost',
  'timeout',
  'max_depth',
  'loop',
  'guardrail',
  'cut_off',
  'content_filter',
] as const;

/** The reasons that `ctx.stop()` accepts. */
export type StoppingReason = (typeof STOPPING_REASONS)[number];

export const STOPPING: ReadonlySet<string> = new Set(STOPPING_REASONS);

const ALL_REASONS = [...STOPPING_REASONS, 'suspended', 'aborted', 'error'] as const;

/** Why a run ended. */
export type StopReason = (typeof ALL_REASONS)[number];

export const STOP_REASONS: ReadonlySet<string> = new Set(ALL_REASONS);

/** Why a run ended, in words, and which middleware (or the kernel) ended it. */
export interface Stop<Reason extends StopReason = StopReason> {
  readonly reason: Reason;
  readonly message?: string;
  readonly by?: string;
}
