/** The one interface of middleware, and the plan that a list of them is composed into. */

import type { Message, ModelResponse, ToolCall } from '../messages/messages.js';
import type { Model, ToolSpec } from '../messages/model.js';
import type { ToolResult, ToolResultPatch } from '../messages/tool-result.js';
import type { Context, ModelContext, RunContext, ToolContext, TurnContext } from './contexts.js';
import type { GuardAction, GuardPoint, GuardSubject, Span, Verdict, Window } from './guard.js';
import type { Layer, PlannedHook, RuleHook, Seam } from './plan.js';
import type { RunResult } from './result.js';
import type { StateCell } from './state.js';
import type { StoppingReason } from './stop.js';
import type { Awaitable, Request } from './store.js';
import type { Tool } from './tool.js';
import type { Hazard } from './traits.js';

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

/** Every member is optional; the kernel calls only what is defined. */
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

/**
 * Judges text and calls at fixed points, wherever its middleware stands in the list.
 *
 * Contract: `find` is pure and looks only at the text it is given; it may be called again with more text.
 * What it throws means nothing more is released (or, with `onFail: 'open'`, that this guard is skipped).
 */
export interface Guard {
  readonly on: readonly GuardPoint[];
  /** @default 'full' */
  readonly hold?: Window | 'full';
  /** `ctx.from`: matches that begin before it are already decided and are ignored. */
  find?(text: string, ctx: GuardContext): readonly Span[];
  /** Judges the whole text or call, once it is complete. */
  judge?(subject: GuardSubject, ctx: GuardContext): Awaitable<Verdict | void>;
  /**
   * What a span means: `redact` cuts it, `block` refuses the whole, `stop` ends the run, `warn` only reports. `feedback`,
   * for what the model answered, discards the response, tells the model why and asks it again. @default 'redact'
   */
  readonly action?: GuardAction;
  /** How often the model is asked again in a turn, all guards together, before `feedback` refuses like `block`. @default 2 */
  readonly maxFeedback?: number;
  /**
   * Judges what a run is started with beside the first model call, not before it. Nothing of the answer is shown, written or
   * run before it has spoken; a refusal aborts the call. For a `judge` on `['input']` that calls a model. @default false
   */
  readonly parallel?: boolean;
  /** Stands where a span was cut. @default '[redacted]' */
  readonly replacement?: string;
  /** Gives back what it replaced by placeholders, to those who may have it. */
  readonly restore?: Restore;
}

/**
 * Originals for placeholders. A tool is called with them in its first parameter; whoever reads the answer may be shown
 * them. History, journal, observers, layers, hooks, approvals and models keep the placeholders.
 *
 * Contract: `find` returns spans of placeholders that were really issued, each with its original as `replacement`; whatever
 * else looks like one stays text. It may be called again with more text.
 */
export interface Restore {
  find(text: string, ctx: RestoreContext): readonly Span[];
  /**
   * Restores the answer for the caller of a run too: in events of `stream()`, `result.text` and `result.output`; not in a
   * sub-agent, whose caller is a model. As long as the longest placeholder.
   */
  readonly answer?: Window;
}

export interface RestoreContext {
  readonly for: 'tool' | 'answer';
  /** The name of the tool that is to be called. */
  readonly tool?: string;
  readonly context: Context;
}

export interface GuardContext {
  readonly point: GuardPoint;
  readonly from: number;
  readonly context: Context;
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
