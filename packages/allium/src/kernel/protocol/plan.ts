/** What a middleware list comes to: per seam, rule and guard point only the functions that exist, in order. */

import type { ToolSpec } from '../messages/model.js';
import type { Guard, GuardPoint } from './guard.js';
import type { Middleware, Seam } from './middleware.js';
import type { StateCell } from './state.js';
import type { Tool } from './tool.js';

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
  /** Of its middleware. */
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
  /** Its members, for attribution: one, or those of a pair. */
  readonly hooks: readonly string[];
  /** It fails open. */
  readonly open: boolean;
  readonly sink: boolean;
  readonly wrap: ((ctx: any, next: (override?: any) => Promise<any>) => unknown) | undefined;
  readonly before: ((ctx: any) => unknown) | undefined;
  readonly after: ((ctx: any) => unknown) | undefined;
  readonly onError: ((ctx: any, error: unknown) => unknown) | undefined;
}

export interface PlannedGuard {
  readonly name: string;
  readonly position: number;
  readonly guard: Guard;
  readonly open: boolean;
}

export type GuardTable = Readonly<Record<GuardPoint, readonly PlannedGuard[]>>;

/** A middleware in a plan, under a name that is unique there. */
export interface PlannedMiddleware {
  readonly name: string;
  readonly position: number;
  readonly middleware: Middleware;
}

export interface Plan {
  readonly middleware: readonly PlannedMiddleware[];
  readonly names: readonly string[];
  readonly layers: Readonly<Record<Seam, readonly Layer[]>>;
  readonly rules: Readonly<Record<RuleHook, readonly PlannedHook[]>>;
  readonly guards: GuardTable;
  /** Guards that give originals back for placeholders. */
  readonly restores: readonly PlannedGuard[];
  /** Some guard looks at responses. */
  readonly guardsResponses: boolean;
  /** Somebody looks at responses before they are messages: layers, hooks or guards. */
  readonly looksAtResponses: boolean;
  /** Something decides about calls between the message and their start. */
  readonly decidesOnCalls: boolean;
  /** Names of run options that somebody declares. */
  readonly runOptions: readonly string[];
  readonly tools: readonly Tool[];
  /** How the tools are shown to a model. */
  readonly specs: readonly ToolSpec[];
  readonly toolsByName: ReadonlyMap<string, Tool>;
  /** Who is who among those that share a name and own state of runs, by name; undefined if none do. */
  readonly twins: Readonly<Record<string, string>> | undefined;
  /** Durable name of each declared cell. */
  readonly cells: ReadonlyMap<StateCell<any>, string>;
  /** Hooks given to the agent itself, and whose they replaced. */
  readonly replaced: readonly { readonly hook: RuleHook; readonly names: readonly string[] }[];
}
