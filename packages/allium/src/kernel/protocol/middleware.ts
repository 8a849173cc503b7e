/** The one interface of middleware, and the plan that a list of them is composed into. */

import type { Message, ModelResponse, ToolCall } from '../messages/messages.js';
import type { Model, ToolSpec } from '../messages/model.js';
import type { ToolResult, ToolResultPatch } from '../messages/tool-result.js';
import type { Context, ModelContext, RunContext, ToolContext, TurnContext } from './contexts.js';
import type { GuardAction, GuardPoint, GuardSubject, Span, Verdict, Window } from './guard.js';
import type { Layer, PlannedHook, RuleHook, Seam } from './plan.js';
import type { RunResult } from './result.js';
import type { StateAccess, StateCell } from './state.js';
import type { StoppingReason } from './stop.js';
import type { Awaitable, Request } from './store.js';
import type { Tool } from './tool.js';

/** Calls inward. Each call is a separate attempt with its own fork of the context. */
export type Next<Result = any, Override = any> = (override?: Override) => Promise<Result>;

/** What a model layer may change for one attempt, without changing its own context. */
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
  /** `natural`: do what the response asks; `stop`: end the run; `loop_to_model`: skip the tools. */
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
  /** Answers the call without running it. */
  | { readonly result: unknown };

/** A combination that works but surprises. `explain()` lists them. */
export interface Hazard {
  readonly id: string;
  /** The middleware (or hook) involved, outermost first. */
  readonly between: readonly string[];
  readonly message: string;
  readonly fix: string;
}

/** Every member is optional; the kernel calls only what is defined. */
export interface Middleware {
  /** Needed if it owns session state and appears twice. */
  readonly name?: string;
  /**
   * The options it was made with, as data. `explain()` shows them, so leave secrets out. They also distinguish it from others
   * of its name: after a resume, run state goes to the one with the same options.
   */
  readonly madeWith?: Readonly<Record<string, unknown>>;
  /** Offered to the model in addition to the agent's tools. */
  readonly tools?: readonly Tool[];
  /** Names of tools that its options mention. `explain()` warns if there is no such tool. */
  readonly mentions?: readonly string[];
  /** Names of tools that it adds during a run and that aren't in `tools`. */
  readonly brings?: readonly string[];
  /** The durable cells it owns, made in its factory. */
  readonly state?: readonly StateCell<any>[];
  /**
   * Models it calls itself with `ctx.generate()`. `explain()` lists them, and a run with a cost limit starts only if the
   * price of each is known.
   */
  extraLlmCalls?(): Iterable<Model>;
  /** Problems with this plan that the kernel can't find by itself. `explain()` lists them. */
  hazards?(plan: Plan): Iterable<Omit<Hazard, 'between'>>;
  /** Names of its own options for `run()` and `stream()`. Hooks read them in `ctx.options`. */
  readonly runOptions?: readonly string[];
  /** Names that this one must stand outside or inside of, or that must be in the list. Checked, never re-sorted. */
  readonly order?: {
    readonly outside?: readonly string[];
    readonly inside?: readonly string[];
    readonly requires?: readonly string[];
  };
  /** If it throws: `closed` fails the call or run, `open` skips the hook. @default 'closed' */
  readonly onFail?: 'closed' | 'open';
  /** It may ask a human. `explain()` warns about a timeout around it. @default false */
  readonly suspends?: boolean;
  /** It writes content elsewhere (audit, record, export), so it only sees what passed the guards. */
  readonly sink?: boolean;
  /** It reads `result.trace`, so runs with it are traced, in memory. The option `trace` also keeps the trace. */
  readonly traces?: boolean;
  /** What it does, for the hazards of `explain()`: keys of `TRAITS`. */
  readonly traits?: readonly string[];
  /**
   * How many messages from before the run its hooks look at; 0 for none. If every middleware of a run says so and one has
   * `enoughHistory`, older messages of a long session aren't read: `ctx.history` begins later. @default all of them
   */
  readonly looksBack?: number | undefined;
  /**
   * For a middleware that leaves older messages out of requests: does it need none before `latest`, the end of the history?
   * Asked before a run, with more messages each time. Contract: requests are the same as with the whole history.
   */
  enoughHistory?(latest: readonly Message[], ctx: HistoryContext): Awaitable<boolean>;

  // wrap
  /** A layer at every seam in `seams` (default: all three); `ctx.seam` says which. */
  process?(ctx: RunContext | ModelContext | ToolContext, next: Next<any, any>): unknown;
  /** The seams `process` and `onError` apply to. */
  readonly seams?: readonly Seam[];
  wrapRun?(ctx: RunContext, next: Next<RunResult, never>): Awaitable<RunResult | void>;
  wrapModel?(ctx: ModelContext, next: Next<ModelResponse, ModelOverride>): Awaitable<ModelResponse | void>;
  wrapTool?(ctx: ToolContext, next: Next<ToolResult, ToolOverride>): Awaitable<ToolResult | void>;
  beforeRun?(ctx: RunContext): Awaitable<void>;
  /**
   * Runs once for each run or resume that reached this layer, with `ctx.result` or `ctx.error`, whatever ended it; also if
   * `beforeRun` or `wrapRun` of this middleware threw. It doesn't run if the layer was never reached: an outer layer threw,
   * stopped or answered before `next()`, the run was refused before it started, or the process died.
   */
  afterRun?(ctx: RunContext): Awaitable<void>;
  beforeModel?(ctx: ModelContext): Awaitable<void>;
  afterModel?(ctx: ModelContext): Awaitable<void>;
  beforeTool?(ctx: ToolContext): Awaitable<void>;
  afterTool?(ctx: ToolContext): Awaitable<void>;
  /**
   * Catches errors of this layer's `next()`, at the model and tool seams. Returning nothing means no opinion. TypeScript
   * widens the return value of an async function to `string`, so any string compiles; one that isn't an action is an error.
   */
  onError?(
    ctx: ModelContext | ToolContext,
    error: unknown,
  ): ErrorAction | void | Promise<ErrorAction | (string & {}) | void>;

  // decide
  /** Called for every message from outside, before it is appended. */
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
  /** Called by `session.compact()` to make later requests shorter. Keep the outcome in session cells. */
  compact?(ctx: ModelContext): Awaitable<void>;

  // guard
  /** Judges text and calls at fixed points. See `Guard`. */
  readonly guard?: Guard;
}

/** What `enoughHistory` is given: there is no run yet. */
export interface HistoryContext {
  readonly sessionId: string;
  readonly tenant: string | undefined;
  readonly state: Pick<StateAccess, 'get'>;
}

/**
 * Judges text and calls at fixed points, wherever its middleware stands in the list.
 *
 * Contract: `find` is pure and only looks at its text; it may be called again with more text. If it throws, nothing more is
 * released (or, with `onFail: 'open'`, this guard is skipped).
 */
export interface Guard {
  readonly on: readonly GuardPoint[];
  /** @default 'full' */
  readonly hold?: Window | 'full';
  /** Matches that start before `ctx.from` are already decided and ignored. */
  find?(text: string, ctx: GuardContext): readonly Span[];
  /** Judges the whole text or call once it is complete. */
  judge?(subject: GuardSubject, ctx: GuardContext): Awaitable<Verdict | void>;
  /**
   * What happens with a span: `redact` cuts it out, `block` refuses the whole text, `stop` ends the run, `warn` only reports.
   * `feedback`, for responses, discards the response, tells the model why and asks again. @default 'redact'
   */
  readonly action?: GuardAction;
  /** How often all guards together may ask the model again in a turn. After that, `feedback` refuses like `block`. @default 2 */
  readonly maxFeedback?: number;
  /**
   * Judges the input of a run in parallel to the first model call. Nothing of the answer is shown, written or run before the
   * verdict; a refusal aborts the call. For a `judge` on `['input']` that calls a model. @default false
   */
  readonly parallel?: boolean;
  /** Replaces a span that was cut out. @default '[redacted]' */
  readonly replacement?: string;
  /**
   * Judges arguments as the tool gets them, with the originals of placeholders, and before the other guards. Others see the
   * placeholders. For a guard that tells nobody what it reads: one that asks a model would show them to it. @default false
   */
  readonly originals?: boolean;
  /** Restores the originals of its placeholders for tools and readers. */
  readonly restore?: Restore;
}

/**
 * Restores the originals of placeholders. Tools get them in their first parameter, and readers of the answer may see them.
 * History, journal, observers, layers, hooks, approvals and models keep the placeholders.
 *
 * Contract: `find` returns spans of placeholders that were really issued, each with its original as `replacement`. Anything
 * else that looks like one stays as it is. It may be called again with more text.
 */
export interface Restore {
  find(text: string, ctx: RestoreContext): readonly Span[];
  /**
   * Also restores the answer for the caller of a run: in events of `stream()`, `result.text` and `result.output`. Not for a
   * sub-agent, whose caller is a model. Make the window as long as the longest placeholder.
   */
  readonly answer?: Window;
}

export interface RestoreContext {
  readonly for: 'tool' | 'answer';
  /** The name of the tool that will be called. */
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

/** A guard in a plan. */
export interface PlannedGuard {
  readonly name: string;
  readonly position: number;
  readonly guard: Guard;
  readonly open: boolean;
}

export type GuardTable = Readonly<Record<GuardPoint, readonly PlannedGuard[]>>;

/** A middleware in a plan, with a unique name. */
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
  /** Guards that restore placeholders. */
  readonly restores: readonly PlannedGuard[];
  /** Does a guard judge responses? */
  readonly guardsResponses: boolean;
  /** Does a layer, hook or guard see responses before they become messages? */
  readonly looksAtResponses: boolean;
  /** Does a middleware read the trace of its runs? */
  readonly traces: boolean;
  /** How many messages from before the run middleware look at; infinite if one may look at all of them. */
  readonly looksBack: number;
  /** Does a hook or guard decide about calls before they start? */
  readonly decidesOnCalls: boolean;
  /** Names of the run options that middleware declare. */
  readonly runOptions: readonly string[];
  readonly tools: readonly Tool[];
  /** How the tools are shown to a model. */
  readonly specs: readonly ToolSpec[];
  readonly toolsByName: ReadonlyMap<string, Tool>;
  /** Identities of middleware that share a name and own run state, by name; undefined if there are none. */
  readonly twins: Readonly<Record<string, string>> | undefined;
  /** Durable name of each declared cell. */
  readonly cells: ReadonlyMap<StateCell<any>, string>;
  /** Hooks of the agent itself, and the middleware whose hooks they replaced. */
  readonly replaced: readonly { readonly hook: RuleHook; readonly names: readonly string[] }[];
}
