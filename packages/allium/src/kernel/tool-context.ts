/** The context around a tool call. */

import { Context, type SeamCall } from './base-context.js';
import type { AssistantMessage, ToolCall, ToolContent } from './messages.js';
import { deepFreeze } from './messages.js';
import { checkTimeout } from './options.js';
import type { Run } from './run.js';
import type { Scope } from './scope.js';
import type { Awaitable, Decision, Request } from './store.js';
import type { Tool, ToolResult } from './tool.js';

/** Around one tool call, in the hooks that decide about it, and in the tool itself. */
export class ToolContext<Args = any> extends Context {
  declare readonly assistantMessage: AssistantMessage;
  /** The call, with its arguments as the model wrote them. */
  declare readonly toolCall: ToolCall;
  /** Undefined when the model named a tool that does not exist. */
  declare readonly tool: Tool | undefined;
  /** What a layer or hook rewrote: 0 until arguments were changed. */
  declare revision: number;
  declare result: ToolResult | undefined;
  /** The call was refused and did not run. */
  declare blocked: boolean;
  /** Set together with `result` in `beforeTool`: answer without running the tool. */
  declare skip: boolean;
  declare attempt: number;
  /** @internal */ declare _timeoutMs: number | undefined;
  /** @internal */ declare _args: Args;
  /** @internal The arguments as JSON, before the schema touched them. */
  declare _raw: unknown;
  /** @internal Set when a layer assigned `args`: they are raw input again. */
  declare _assigned: boolean;
  /** @internal Read only when somebody asks: a key costs more than a fork. */
  declare readonly _keyed: { readonly idempotencyKey: string };
  /** @internal */ declare readonly _hooks: ToolCallHooks;
  /** @internal Runs of other agents that this execution has asked for. */
  declare _children: number;

  /** @internal */
  constructor(
    run: Run,
    scope: Scope,
    of: ToolCallSubject,
    args: Args,
    raw: unknown,
    call: SeamCall,
    hooks: ToolCallHooks,
  ) {
    super(run, scope, call);
    this.assistantMessage = of.assistantMessage;
    this.toolCall = of.toolCall;
    this.tool = of.tool;
    this.revision = 0;
    this.result = undefined;
    this.blocked = false;
    this.skip = false;
    this._timeoutMs = undefined;
    this.attempt = 1;
    this._args = args;
    this._raw = raw;
    this._assigned = false;
    this._keyed = of._keyed;
    this._hooks = hooks;
    this._children = 0;
  }

  get seam(): 'tool' {
    return 'tool';
  }

  /** The same for every attempt of this call, also after a crash: hand it to services that de-duplicate. */
  get idempotencyKey(): string {
    return this._keyed.idempotencyKey;
  }

  /** Parsed and frozen. Reassigning takes raw input, like the model's own: it is validated and judged again. */
  get args(): Args {
    return this._args;
  }
  set args(args: Args) {
    if (args === this._args) return;
    this._args = args;
    this._raw = args;
    this._assigned = true;
    this.revision++;
  }

  /** The arguments as JSON, before the schema touched them: what to spread when rewriting `args`. */
  get rawArgs(): unknown {
    return deepFreeze(this._raw);
  }

  /** Milliseconds this execution may take. */
  get timeoutMs(): number | undefined {
    return this._timeoutMs;
  }
  set timeoutMs(timeoutMs: number | undefined) {
    if (timeoutMs !== undefined) checkTimeout('ctx.timeoutMs', timeoutMs);
    this._timeoutMs = timeoutMs;
  }

  get isError(): boolean {
    return this.result?.isError ?? false;
  }

  /** Is this a call of that tool? Narrows `args`. */
  is<T extends Tool<any, any>>(
    tool: T,
  ): this is ToolContext<T extends Tool<any, infer Output> ? Output : never> {
    return this.tool === tool;
  }

  /**
   * Shows progress: an event with a copy of what is given, never sent to the model. Whoever shows a lot awaits it, so as
   * not to outrun the consumer.
   */
  update(partial: string | readonly ToolContent[], details?: unknown): Awaitable<void> {
    return this._hooks.update(this, partial, details);
  }

  /**
   * Asks a human. Returns the answer, or ends this attempt: the run is then suspended, and once there is an answer
   * the tool runs again from its start. So ask before side effects.
   */
  suspend(request: Request): Promise<Decision> {
    const answer = this._isOver ? Promise.reject(this._scope.reason) : this._hooks.suspend(this, request);
    // Even unawaited it ends the run: the signal is latched.
    answer.catch(() => {});
    return answer;
  }

  /** @internal What guards leave of the arguments of a call that no model made. */
  _rewriteCall(args: string): void {
    (this as { toolCall: ToolCall }).toolCall = Object.freeze({ ...this.toolCall, arguments: args });
  }

  /** @internal What layers may assign, as it is now. */
  _mark(): ToolMark {
    const { _args: args, _raw: raw, _assigned: assigned, revision, _timeoutMs: timeoutMs, result } = this;
    return { args, raw, assigned, revision, timeoutMs, result };
  }

  /** @internal Did a layer assign something that others further out must not see? */
  _isWritten(mark: ToolMark): boolean {
    return (
      this.revision !== mark.revision ||
      this._timeoutMs !== mark.timeoutMs ||
      this.result !== mark.result ||
      this._metadata !== undefined
    );
  }

  /** @internal */
  _takeBack(mark: ToolMark): void {
    this._args = mark.args as Args;
    this._raw = mark.raw;
    this._assigned = mark.assigned;
    this.revision = mark.revision;
    this._timeoutMs = mark.timeoutMs;
  }

  /** @internal */
  _fork(scope: Scope = this._scope): ToolContext<Args> {
    const fork = new ToolContext<Args>(
      this._run,
      scope,
      this,
      this._args,
      this._raw,
      this._call,
      this._hooks,
    );
    fork.revision = this.revision;
    fork._timeoutMs = this._timeoutMs;
    fork.blocked = this.blocked;
    fork.attempt = this.attempt;
    fork._assigned = this._assigned;
    return this._inherit(fork);
  }
}

/** @internal */
export interface ToolMark {
  readonly args: unknown;
  readonly raw: unknown;
  readonly assigned: boolean;
  readonly revision: number;
  readonly timeoutMs: number | undefined;
  readonly result: ToolResult | undefined;
}

/** What a tool context is about. The key is read only when somebody needs it. */
export interface ToolCallSubject {
  readonly assistantMessage: AssistantMessage;
  readonly toolCall: ToolCall;
  readonly tool: Tool | undefined;
  readonly _keyed: { readonly idempotencyKey: string };
}

/** What the batch that runs a call does for its contexts. */
export interface ToolCallHooks {
  update(ctx: ToolContext, partial: string | readonly ToolContent[], details: unknown): Awaitable<void>;
  suspend(ctx: ToolContext, request: Request): Promise<Decision>;
}
