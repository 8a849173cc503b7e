/** The steps of a plan: hooks and layers, bound to their middleware. */

/** Where layers wrap. */
export const SEAMS = ['run', 'model', 'tool'] as const;
export type Seam = (typeof SEAMS)[number];

/** The decision hooks, and what happens if several middleware have one. */
export const RULES = {
  acceptMessage: {
    rule: 'chain, first block stops',
    detail: 'each sees the message as the one before left it',
  },
  transformContext: {
    rule: 'chain',
    detail: 'each sees the output of the one before; history is untouched',
  },
  transformSystemPrompt: { rule: 'chain', detail: 'each sees the output of the one before' },
  convertToLlm: { rule: 'last wins', detail: 'runs innermost, once per attempt' },
  resolveToolCall: { rule: 'first answer wins', detail: 'before validation; the call id is kept' },
  beforeToolCall: {
    rule: 'first block stops',
    detail: 'an ask does not end the chain; rewritten arguments are judged again by all',
  },
  afterToolCall: {
    rule: 'merge by field, later wins',
    detail: 'fires for blocked, skipped and failed calls too',
  },
  afterModelResponse: {
    rule: 'chain with merge',
    detail: 'responses chain, injected messages concatenate, the last decision wins',
  },
  shouldStopAfterTurn: { rule: 'any true', detail: 'the first that says stop ends the question' },
  onRunEnd: { rule: 'concatenate', detail: 'any message keeps the run going' },
  compact: { rule: 'each in turn', detail: 'only when session.compact() asks for it' },
} as const;

export type RuleHook = keyof typeof RULES;

export const RULE_HOOKS = Object.keys(RULES) as RuleHook[];

/** A hook of one middleware, bound to it. */
export interface PlannedHook {
  readonly hook: RuleHook;
  /** The name of its middleware. */
  readonly name: string;
  readonly position: number;
  readonly open: boolean;
  readonly sink: boolean;
  readonly fn: (...args: any[]) => any;
}

export type Hooks = readonly PlannedHook[];

/** One primitive layer, bound to its middleware. All of them have the same fields in the same order. */
export interface Layer {
  readonly kind: 'wrap' | 'pair' | 'catch';
  readonly position: number;
  readonly name: string;
  /** The names of its hooks, for attribution: one, or two for a pair. */
  readonly hooks: readonly string[];
  /** It fails open. */
  readonly open: boolean;
  readonly sink: boolean;
  readonly wrap: ((ctx: any, next: (override?: any) => Promise<any>) => unknown) | undefined;
  readonly before: ((ctx: any) => unknown) | undefined;
  readonly after: ((ctx: any) => unknown) | undefined;
  readonly onError: ((ctx: any, error: unknown) => unknown) | undefined;
}
