/** The one interface of middleware. Every member is optional; the kernel calls only what is defined. */

import type { Message, ModelResponse, ToolCall, ToolContent } from '../messages/messages.js';
import type { Model } from '../messages/model.js';
import type { ModelContext, RunContext, ToolContext, TurnContext } from './contexts.js';
import type { Guard } from './guard.js';
import type { Plan } from './plan.js';
import type { RunResult, StoppingReason } from './result.js';
import type { StateCell } from './state.js';
import type { Awaitable, Request } from './store.js';
import type { Tool } from './tool.js';
import type { ToolResult } from './tool-result.js';

/** Where layers wrap. */
export type Seam = 'run' | 'model' | 'tool';

/** Goes inward. Each call is an attempt of its own, in its own fork of the context. */
export type Next<Result, Override> = (override?: Override) => Promise<Result>;

/** What a model layer may change for one attempt only, without touching its own context. */
export type ModelOverride = Partial<
  Pick<ModelContext, 'messages' | 'systemPrompt' | 'tools' | 'model' | 'settings'>
>;
export type ToolOverride = { readonly args?: unknown; readonly timeoutMs?: number };

export type ErrorAction = 'retry' | 'fallback' | 'restart' | 'fail';

export interface TurnAction {
  /** Replaces the response, for later hooks and for the history. */
  readonly response?: ModelResponse;
  /** Appended after the tool results of this turn. */
  readonly injectMessages?: readonly Message[];
  /** `natural` goes on as the response asks; `stop` ends the run; `loop_to_model` skips the tools. */
  readonly decision?: 'natural' | 'stop' | 'loop_to_model';
  /** Why the run ends, for `result.stop.message`. Goes with the decision `stop`. */
  readonly why?: string;
}

export type AcceptVerdict = Message | { readonly block: true; readonly reason?: string };

export type ToolVerdict =
  | { readonly block: true; readonly reason?: string }
  /** Raw input, validated like the model's own. */
  | { readonly args: unknown }
  | { readonly ask: Request }
  /** The call is answered without being run. */
  | { readonly result: unknown };

export interface ToolResultPatch {
  readonly content?: string | readonly ToolContent[];
  /** `null` clears. */
  readonly details?: unknown;
  readonly isError?: boolean;
  readonly terminate?: boolean;
}

export interface Middleware {
  /** Needed when it owns session state and appears twice. */
  readonly name?: string;
  /**
   * The options it was made with, as data; `explain()` shows them, so leave secrets out. They tell it from others of its
   * name: a run that is resumed gives its state to the one with the same options.
   */
  readonly madeWith?: Readonly<Record<string, unknown>>;
  /** Offered to the model beside those of the agent. */
  readonly tools?: readonly Tool[];
  /** Names of tools that its options speak of: `explain()` warns of a name that no tool has. */
  readonly mentions?: readonly string[];
  /** Names of tools that it adds while a run goes on, and that `tools` does not hold. */
  readonly brings?: readonly string[];
  /** The durable cells it owns, made in its factory. */
  readonly state?: readonly StateCell<any>[];
  /**
   * Models it calls itself, through `ctx.generate()`. `explain()` lists them, and where cost is limited a run begins only
   * if the price of each is known.
   */
  extraLlmCalls?(): Iterable<Model>;
  /** What its user should know about this plan beside what the kernel finds: `explain()` lists it. */
  hazards?(plan: Plan): Iterable<Omit<Hazard, 'between'>>;
  /** Names of options of `run()` and `stream()` that it takes: hooks read them in `ctx.options`. */
  readonly runOptions?: readonly string[];
  /** Checked, never silently re-sorted: names this one must stand outside or inside of, or that must be there. */
  readonly order?: {
    readonly outside?: readonly string[];
    readonly inside?: readonly string[];
    readonly requires?: readonly string[];
  };
  /** What its own exceptions mean. @default 'closed' */
  readonly onFail?: 'closed' | 'open';
  /** It may ask a human: `explain()` warns of a timeout around it. @default false */
  readonly suspends?: boolean;
  /** It writes content elsewhere (audit, record, export): it is given the guarded view. */
  readonly sink?: boolean;
  /** What `explain()` reasons about: keys of `TRAITS`. */
  readonly traits?: readonly string[];

  // wrap
  /** A layer at the seams of `seams` (default: all three); `ctx.seam` tells which. */
  process?(ctx: RunContext | ModelContext | ToolContext, next: Next<any, any>): unknown;
  /** The seams `process` and `onError` apply to. */
  readonly seams?: readonly Seam[];
  wrapRun?(ctx: RunContext, next: Next<RunResult, never>): Awaitable<RunResult | void>;
  wrapModel?(ctx: ModelContext, next: Next<ModelResponse, ModelOverride>): Awaitable<ModelResponse | void>;
  wrapTool?(ctx: ToolContext, next: Next<ToolResult, ToolOverride>): Awaitable<ToolResult | void>;
  beforeRun?(ctx: RunContext): Awaitable<void>;
  /**
   * Fires once for each run or resume that reached this layer, with `ctx.result` or `ctx.error`, whatever ended it; also
   * if `beforeRun` or `wrapRun` of this middleware threw. It does not fire where the layer was never reached: one further
   * out threw, stopped or answered before `next()`, the run was refused before it began, or the process died.
   */
  afterRun?(ctx: RunContext): Awaitable<void>;
  beforeModel?(ctx: ModelContext): Awaitable<void>;
  afterModel?(ctx: ModelContext): Awaitable<void>;
  beforeTool?(ctx: ToolContext): Awaitable<void>;
  afterTool?(ctx: ToolContext): Awaitable<void>;
  /**
   * The catch around this layer's `next()`, at the model and tool seams. Void means no opinion. TypeScript takes a word
   * that an async function returns for any text, so a promise may hold any; one that is no action is an error of the hook.
   */
  onError?(
    ctx: ModelContext | ToolContext,
    error: unknown,
  ): ErrorAction | void | Promise<ErrorAction | (string & {}) | void>;

  // decide
  /** Every message from outside, before it is appended. */
  acceptMessage?(message: Message, ctx: RunContext): Awaitable<AcceptVerdict | void>;
  transformContext?(messages: readonly Message[], ctx: ModelContext): Awaitable<readonly Message[] | void>;
  transformSystemPrompt?(prompt: string, ctx: ModelContext): Awaitable<string | void>;
  convertToLlm?(messages: readonly Message[], ctx: ModelContext): Awaitable<readonly Message[] | void>;
  resolveToolCall?(
    toolCall: ToolCall,
    ctx: ToolContext,
  ): Awaitable<{ readonly toolCall: ToolCall; readonly tool?: Tool } | void>;
  beforeToolCall?(ctx: ToolContext): Awaitable<ToolVerdict | void>;
  afterToolCall?(ctx: ToolContext): Awaitable<ToolResultPatch | void>;
  afterModelResponse?(response: ModelResponse, ctx: TurnContext): Awaitable<TurnAction | void>;
  shouldStopAfterTurn?(
    ctx: TurnContext,
  ): Awaitable<boolean | { readonly reason: StoppingReason; readonly message?: string } | void>;
  onRunEnd?(ctx: TurnContext): Awaitable<readonly Message[] | void>;
  /** Makes later requests shorter, because `session.compact()` asks for it; what it finds out belongs in session cells. */
  compact?(ctx: ModelContext): Awaitable<void>;

  // guard
  /** Judges text and calls at fixed points: see `Guard`. */
  readonly guard?: Guard;
}

/** Anything `middleware:` accepts: middleware, pipelines and nested lists, flattened in order. */
export type MiddlewareList = { readonly layers: MiddlewareList } | readonly (Middleware | MiddlewareList)[];

/** Types an object as middleware. Not generic, so that a misspelt hook is a compile error. */
export function defineMiddleware(middleware: Middleware): Middleware {
  return middleware;
}

/** An empty class for people who like classes: implement the hooks you need, nothing else is called. */
export interface BaseMiddleware extends Middleware {}
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the merge is the point; the class adds no member.
export class BaseMiddleware {}

/** Members that are hooks of a layer, by seam. */
export const LAYER_HOOKS = {
  run: { wrap: 'wrapRun', before: 'beforeRun', after: 'afterRun' },
  model: { wrap: 'wrapModel', before: 'beforeModel', after: 'afterModel' },
  tool: { wrap: 'wrapTool', before: 'beforeTool', after: 'afterTool' },
} as const satisfies Record<Seam, Record<'wrap' | 'before' | 'after', keyof Middleware>>;

/** The traits `explain()` knows. Others are allowed and ignored. */
export const TRAITS = {
  caches: 'answers from a store instead of calling inward',
  retries: 'calls inward again after a failure',
  varies: 'makes the request differ from call to call',
  transforms: 'changes the text of responses',
  redacts: 'removes text',
  budgets: 'counts or reserves money or tokens',
  'times-out': 'cancels what takes too long',
  pauses: 'does not count the time that people take',
  switches: 'asks another model after a failure',
  trips: 'counts failures and then refuses calls',
  settles: 'puts a result in the place of an error',
  keeps: 'keeps the result of a call for when it is repeated',
  exports: 'writes content elsewhere',
  protects:
    'refuses or asks about what must not simply happen: no hook given to the agent replaces its own unless told to',
  replays: 'answers from recordings and writes nothing, though it is a sink to find them by the guarded view',
} as const;

export interface Hazard {
  readonly id: string;
  /** The middleware (or hook) involved, outermost first. */
  readonly between: readonly string[];
  readonly message: string;
  readonly fix: string;
}
