/** The context around a tool call. */

import * as kinds from '../lib/kinds.js';
import type { Scope } from '../lib/scope.js';
import { checkValue } from '../lib/shapes.js';
import type { AssistantMessage, ToolCall, ToolContent } from '../messages/messages.js';
import { deepFreeze } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { ToolContext as PublicToolContext } from '../protocol/contexts.js';
import type { Awaitable, Decision, Request } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import { Context } from './base-context.js';
import type { RunPort } from './run-port.js';
import type { SeamCall } from './seam-call.js';

/** Around one tool call, in the hooks that decide about it, and in the tool itself. */
export class ToolContext<Args = any> extends Context implements PublicToolContext<Args> {
  declare result: ToolResult | undefined;
  declare blocked: boolean;
  declare skip: boolean;
  declare attempt: number;
  /** @internal */ declare _of: ToolCallSubject;
  /** @internal The parts of the call that layers may assign. */ declare _input: ToolInput<Args>;
  /** @internal How many child runs this execution has started. */
  declare _children: number;

  /** @internal */
  constructor(run: RunPort, scope: Scope, of: ToolCallSubject, input: ToolInput<Args>, call: SeamCall) {
    super(run, scope, call);
    this.result = undefined;
    this.blocked = false;
    this.skip = false;
    this.attempt = 1;
    this._of = of;
    this._input = input;
    this._children = 0;
  }

  get assistantMessage(): AssistantMessage {
    return this._of.assistantMessage;
  }

  get toolCall(): ToolCall {
    return this._of.toolCall;
  }

  get tool(): Tool | undefined {
    return this._of.tool;
  }

  get seam(): 'tool' {
    return 'tool';
  }

  get idempotencyKey(): string {
    return this._of._owner.idempotencyKey;
  }

  get args(): Args {
    return this._input.args;
  }
  set args(args: Args) {
    const { args: before, raw, revision, timeoutMs } = this._input;
    if (args === before) return;
    // Verdicts about the arguments before cleaning also count for what a layer makes of the rest.
    const said = this._call.judged?.get(raw);
    if (said) this._call.judged!.set(args, said);
    this._input = { args, raw: args, assigned: true, revision: revision + 1, timeoutMs };
  }

  get rawArgs(): unknown {
    return deepFreeze(this._input.raw);
  }

  get revision(): number {
    return this._input.revision;
  }

  get timeoutMs(): number | undefined {
    return this._input.timeoutMs;
  }
  set timeoutMs(timeoutMs: number | undefined) {
    if (timeoutMs !== undefined) checkValue('ctx.timeoutMs', kinds.timeout, timeoutMs);
    if (timeoutMs !== this._input.timeoutMs) this._input = { ...this._input, timeoutMs };
  }

  get isError(): boolean {
    return this.result?.isError ?? false;
  }

  is<T extends Tool<any, any>>(
    tool: T,
  ): this is ToolContext<T extends Tool<any, infer Output> ? Output : never> {
    return this.tool === tool || (this.tool?.name === tool.name && this.tool.input === tool.input);
  }

  update(partial: string | readonly ToolContent[], details?: unknown): Awaitable<void> {
    return this._of._owner.update(this, partial, details);
  }

  suspend(request: Request): Promise<Decision> {
    const answer = this._isOver ? Promise.reject(this._scope.reason) : this._of._owner.suspend(this, request);
    // Even if nobody awaits it, it ends the run: the call waits for it, and the signal is latched.
    answer.catch(() => {});
    return answer;
  }

  /** @internal The arguments are about to change. */
  _revise(): void {
    this._input = { ...this._input, revision: this._input.revision + 1 };
  }

  /** @internal Sets arguments that no layer assigned: `raw`, and what the schema made of it. */
  _take(raw: unknown, args: Args): void {
    const { revision, timeoutMs } = this._input;
    this._input = { args, raw, assigned: false, revision, timeoutMs };
  }

  /** @internal Sets what guards left of the arguments of a call that didn't come from a model. */
  _rewriteCall(args: string): void {
    const { assistantMessage, toolCall, tool, _owner } = this._of;
    this._of = { assistantMessage, toolCall: Object.freeze({ ...toolCall, arguments: args }), tool, _owner };
  }

  /** @internal Takes out arguments that a hook assigned: raw input, which nobody may see before it is judged. */
  _takeOut(mark: ToolInput<Args>): { readonly args: unknown } | undefined {
    const { assigned, raw: args, timeoutMs } = this._input;
    if (!assigned) return undefined;
    this._input = { ...mark, timeoutMs };
    return { args };
  }

  /** @internal */
  _fork(scope: Scope = this._scope): ToolContext<Args> {
    const fork = new ToolContext<Args>(this._run, scope, this._of, this._input, this._call);
    fork.blocked = this.blocked;
    fork.attempt = this.attempt;
    return this._inherit(fork);
  }
}

/** The parts of a call that layers may assign. Immutable: forks share it, an assignment makes a new one. */
/** The parts of a tool call that layers may assign. */
export interface ToolInput<Args = any> {
  readonly args: Args;
  /** The arguments as JSON, before the schema touched them. */
  readonly raw: unknown;
  /** A layer assigned them: they are raw input again. */
  readonly assigned: boolean;
  readonly revision: number;
  readonly timeoutMs: number | undefined;
}

/** The input of a call whose arguments nobody has parsed yet. */
export const NO_INPUT: ToolInput<undefined> = {
  args: undefined,
  raw: undefined,
  assigned: false,
  revision: 0,
  timeoutMs: undefined,
};

/** The call that a tool context is about. */
export interface ToolCallSubject {
  readonly assistantMessage: AssistantMessage;
  readonly toolCall: ToolCall;
  readonly tool: Tool | undefined;
  readonly _owner: ToolCallOwner;
}

/** The call itself, as its contexts use it. The key is computed on demand: it costs more than a fork. */
export interface ToolCallOwner {
  readonly idempotencyKey: string;
  /** `forwarded`: it comes from a child run. */
  update(
    ctx: ToolContext,
    partial: string | readonly ToolContent[],
    details: unknown,
    forwarded?: boolean,
  ): Awaitable<void>;
  suspend(ctx: ToolContext, request: Request): Promise<Decision>;
}
