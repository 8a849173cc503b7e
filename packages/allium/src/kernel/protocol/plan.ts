/** The steps of a plan: hooks and layers, bound to their middleware. */

/** Where layers wrap. */
export type Seam = 'run' | 'model' | 'tool';

export type RuleHook =
  | 'acceptMessage'
  | 'transformContext'
  | 'transformSystemPrompt'
  | 'convertToLlm'
  | 'resolveToolCall'
  | 'beforeToolCall'
  | 'afterToolCall'
  | 'afterModelResponse'
  | 'shouldStopAfterTurn'
  | 'onRunEnd'
  | 'compact';

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
