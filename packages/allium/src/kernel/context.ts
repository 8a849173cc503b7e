/** What hooks are given: one family of contexts in which a field means the same wherever it appears. */
import type { Agent } from './agent.js';
import type { Assembler } from './assemble.js';
import { AlliumError, StopRun, shown } from './errors.js';
import type { LiveMessage } from './live.js';
import type { AssistantMessage, Message, Metadata, MessageInput, ModelResponse, ToolCall, ToolContent, ToolMessage, Usage } from './messages.js';
import type { Seam } from './middleware.js';
import type { Model, ModelSettings, StreamTransform } from './model.js';
import type { RunResult, StopReason } from './result.js';
import type { Run } from './run.js';
import type { Scope } from './scope.js';
import type { Overlay, StateAccess } from './state.js';
import type { Decision, Request } from './store.js';
import type { Tool, ToolResult } from './tool.js';

/** What the forks of one seam call share, its latch included: a control signal that was swallowed still counts. */
export class SeamCall {
  /** Calls of the model or tool itself. */
  attempts = 0;
  /** Inward calls beyond the first of a layer. */
  repeats = 0;
  latched: unknown = undefined;
  latchedBy: string | undefined = undefined;
  /** What the model has said so far in the current attempt. */
  partial: Assembler | undefined = undefined;

  latch(signal: unknown, by?: string): void {
    if (this.latched !== undefined) return;
    this.latched = signal;
    this.latchedBy = by;
  }

  /** A boundary: throws what was latched. */
  check(): void {
    if (this.latched !== undefined) throw this.latched;
  }
}

/** What a middleware asks a model itself, with `ctx.generate()`. */
export interface GenerateRequest {
  readonly messages: MessageInput | readonly Message[];
  readonly systemPrompt?: string;
  readonly tools?: readonly Tool[];
  readonly settings?: ModelSettings;
}

export abstract class Context {
  abstract readonly seam: Seam;
  /** @internal */ readonly _run: Run;
  /** @internal The place in the list of the middleware this context is handed to; -1 for the kernel's own. */
  _position = -1;
  /** @internal */ _scope: Scope;
  /** @internal */ _state: Overlay | undefined;
  /** @internal */ _metadata: Record<string, unknown> | undefined;
  /** @internal Keys of `metadata` that came from outer layers: what inner ones write there stays inside. */
  _inherited: Record<string, unknown> | undefined;

  /** @internal */ readonly _call: SeamCall;

  /** @internal */
  constructor(run: Run, scope: Scope, call: SeamCall) {
    this._run = run;
    this._scope = scope;
    this._call = call;
    this._state = undefined;
    this._metadata = undefined;
    this._inherited = undefined;
  }

  get agent(): Agent {
    return this._run.agent;
  }
  get runId(): string {
    return this._run.runId;
  }
  get sessionId(): string {
    return this._run.sessionId;
  }
  get tenant(): string | undefined {
    return this._run.tenant;
  }
  /** The turn under way, from 1; 0 before the first. */
  get turn(): number {
    return this._run.turn;
  }
  /** 0 for a run of its own, 1 for a sub-agent's, … */
  get depth(): number {
    return this._run.depth;
  }
  /** Aborts when this call is cancelled, times out, or the run ends early. */
  get signal(): AbortSignal {
    return this._scope.signal;
  }
  /** Tokens of the run so far, sub-agents and middleware's own calls included. */
  get usage(): Usage {
    return this._run.budget.usage;
  }
  /** Dollars spent so far; undefined when a price is unknown. */
  get costUsd(): number | undefined {
    return this._run.budget.costUsd;
  }
  /** The whole conversation, frozen. */
  get history(): readonly Message[] {
    return this._run.history.all();
  }
  /** Durable cells. */
  get state(): StateAccess {
    this._state ??= this._run.cells.overlay();
    return this._state;
  }
  /** Scratch of this call. Inner layers see it; what they add reaches outer layers, what outer layers set stays theirs. */
  get metadata(): Record<string, unknown> {
    this._metadata ??= {};
    return this._metadata;
  }
  /** What the caller passed as `metadata` with this run. */
  get runMetadata(): Metadata {
    return this._run.metadata;
  }

  /** Ends the run cleanly. Throws; even if the exception is swallowed, the run ends at the next boundary. */
  stop(reason: StopReason = 'stopped', why?: string): never {
    const signal = new StopRun(reason, why);
    this._call.latch(signal, this._run.nameAt(this._position));
    throw signal;
  }

  /** Puts a `custom` event into the stream. */
  emit(name: string, data?: unknown): void {
    this._run.emitCustom(name, data, this._run.nameAt(this._position));
  }

  /** Calls a model for a middleware's own purposes: same signal, budget and inner layers, never in the user's stream. */
  generate(model: Model, request: GenerateRequest): Promise<ModelResponse> {
    return this._run.generate(this, model, request);
  }

  /** @internal Copies what every context has into a fork of it. */
  protected _inherit<C extends Context>(fork: C): C {
    fork._position = this._position;
    if (this._state) fork._state = this._state.fork();
    if (this._metadata) {
      fork._metadata = { ...this._metadata };
      fork._inherited = this._metadata;
    }
    return fork;
  }

  /** @internal Takes over what a chosen attempt wrote. */
  _adopt(fork: Context): void {
    if (fork._state) {
      this._state ??= this._run.cells.overlay();
      this._state.adopt(fork._state);
    } else this._state?.drop();
    if (fork._metadata) this._metadata = { ...fork._metadata, ...this._metadata };
  }
}

/** Around a whole run. */
export class RunContext extends Context {
  readonly seam = 'run' as const;
  /** The messages the run was started with; reassign to change them. Empty for a resume. */
  input: readonly Message[];
  result: RunResult | undefined;
  /** In `afterRun`: why the run failed. */
  error: unknown;

  /** @internal */
  constructor(run: Run, scope: Scope, input: readonly Message[]) {
    super(run, scope, run.call);
    this.input = input;
    this.result = undefined;
    this.error = undefined;
  }

  /** History and input. */
  get messages(): readonly Message[] {
    return Object.freeze([...this.history, ...this.input]);
  }

  /** @internal */
  _fork(_scope?: Scope): RunContext {
    return this._inherit(new RunContext(this._run, this._scope, this.input));
  }
}

/** Around one model call. What is assigned here is what this call uses. */
export class ModelContext extends Context {
  readonly seam = 'model' as const;
  systemPrompt: string;
  tools: readonly Tool[];
  model: Model;
  settings: ModelSettings;
  /** Which try this is, from 1, of the nearest layer that called inward more than once. */
  attempt = 1;
  /** One more turn although the model asked for no tool. */
  forceContinue = false;
  /** What the model answered; set it in `beforeModel` to answer without calling inward. */
  response: ModelResponse | undefined;
  /** @internal */ _messages: readonly Message[] | undefined;
  /** @internal How much of the history the request covers. */
  readonly _length: number;
  /** @internal Where this call streams to; undefined for calls nobody watches. */
  readonly _live: LiveMessage | undefined;
  /** @internal */ _transforms: (() => StreamTransform)[] | undefined;
  /** @internal */ readonly _outer: ModelContext | undefined;

  /** @internal */
  constructor(
    run: Run,
    scope: Scope,
    request: { model: Model; systemPrompt: string; tools: readonly Tool[]; settings: ModelSettings },
    length: number,
    call: SeamCall,
    live: LiveMessage | undefined,
    outer?: ModelContext,
  ) {
    super(run, scope, call);
    this.systemPrompt = request.systemPrompt;
    this.tools = request.tools;
    this.model = request.model;
    this.settings = request.settings;
    this.response = undefined;
    this._messages = undefined;
    this._length = length;
    this._live = live;
    this._transforms = undefined;
    this._outer = outer;
  }

  /** What the model will receive; reassign to change it for this call. */
  get messages(): readonly Message[] {
    return this._messages ?? this._run.history.first(this._length);
  }
  set messages(messages: readonly Message[]) {
    this._messages = messages;
  }

  /** The same as `response`. */
  get result(): ModelResponse | undefined {
    return this.response;
  }
  set result(response: ModelResponse | undefined) {
    this.response = response;
  }

  /** Registers a transform of the stream that comes in to this layer; made anew for each attempt. Not for safety: use a guard. */
  transform(factory: () => StreamTransform): void {
    if (typeof factory !== 'function') throw new AlliumError('INVALID_HOOK_RESULT', `ctx.transform() takes a function that makes a transform, got ${shown(factory)}.`);
    this._transforms ??= [];
    this._transforms.push(factory);
  }

  /** @internal */
  _fork(scope: Scope = this._scope): ModelContext {
    const fork = new ModelContext(this._run, scope, this, this._length, this._call, this._live, this);
    fork._messages = this._messages;
    fork.attempt = this.attempt;
    return this._inherit(fork);
  }

  override _adopt(fork: ModelContext): void {
    super._adopt(fork);
    if (fork.forceContinue) this.forceContinue = true;
  }
}

/** After a response and at the end of a turn or run. */
export class TurnContext extends Context {
  readonly seam = 'run' as const;
  /** The assistant message of the turn; undefined when there was none. */
  readonly message: AssistantMessage | undefined;
  readonly toolResults: readonly ToolMessage[];

  /** @internal */
  constructor(run: Run, message: AssistantMessage | undefined, toolResults: readonly ToolMessage[]) {
    super(run, run.scope, run.call);
    this.message = message;
    this.toolResults = toolResults;
  }

  /** Everything this run has added to the history. */
  get newMessages(): readonly Message[] {
    return this._run.newMessages();
  }

  /** Sets the structured output of the run. */
  setOutput(output: unknown): void {
    this._run.output = output;
  }
}

/** Around one tool call, in the hooks that decide about it, and in the tool itself. */
export class ToolContext<Args = any> extends Context {
  readonly seam = 'tool' as const;
  readonly assistantMessage: AssistantMessage;
  /** The call, with its arguments as the model wrote them. */
  readonly toolCall: ToolCall;
  /** Undefined when the model named a tool that does not exist. */
  readonly tool: Tool | undefined;
  /** What a layer or hook rewrote: 0 until arguments were changed. */
  revision = 0;
  result: ToolResult | undefined;
  /** The call was refused and did not run. */
  blocked = false;
  /** Set together with `result` in `beforeTool`: answer without running the tool. */
  skip = false;
  /** Milliseconds this execution may take. */
  timeoutMs: number | undefined;
  attempt = 1;
  /** The same for every attempt of this call, also after a crash: hand it to services that de-duplicate. */
  readonly idempotencyKey: string;
  /** @internal */ _args: Args;
  /** @internal The arguments as JSON, before the schema touched them. */
  _raw: unknown;
  /** @internal Set when a layer assigned `args`: they are raw input again. */
  _assigned = false;
  /** @internal */ readonly _hooks: ToolCallHooks;

  /** @internal */
  constructor(
    run: Run,
    scope: Scope,
    of: { assistantMessage: AssistantMessage; toolCall: ToolCall; tool: Tool | undefined; idempotencyKey: string },
    args: Args,
    raw: unknown,
    call: SeamCall,
    hooks: ToolCallHooks,
  ) {
    super(run, scope, call);
    this.assistantMessage = of.assistantMessage;
    this.toolCall = of.toolCall;
    this.tool = of.tool;
    this.idempotencyKey = of.idempotencyKey;
    this.result = undefined;
    this.timeoutMs = undefined;
    this._args = args;
    this._raw = raw;
    this._hooks = hooks;
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
    return this._raw;
  }

  get isError(): boolean {
    return this.result?.isError ?? false;
  }

  /** Is this a call of that tool? Narrows `args`. */
  is<T extends Tool<any, any>>(tool: T): this is ToolContext<T extends Tool<any, infer Output> ? Output : never> {
    return this.tool === tool;
  }

  /** Shows progress: an event, never sent to the model. */
  update(partial: string | readonly ToolContent[], details?: unknown): void {
    this._hooks.update(this, partial, details);
  }

  /**
   * Asks a human. Returns the answer, or ends this attempt: the run is then suspended, and once there is an answer
   * the tool runs again from its start. So ask before side effects.
   */
  suspend(request: Request): Promise<Decision> {
    const answer = this._hooks.suspend(this, request);
    // Even unawaited it ends the run: the signal is latched.
    answer.catch(() => {});
    return answer;
  }

  /** @internal */
  _fork(scope: Scope = this._scope): ToolContext<Args> {
    const fork = new ToolContext<Args>(this._run, scope, this, this._args, this._raw, this._call, this._hooks);
    fork.revision = this.revision;
    fork.timeoutMs = this.timeoutMs;
    fork.blocked = this.blocked;
    fork.attempt = this.attempt;
    fork._assigned = this._assigned;
    return this._inherit(fork);
  }
}

/** What the batch that runs a call does for its contexts. */
export interface ToolCallHooks {
  update(ctx: ToolContext, partial: string | readonly ToolContent[], details: unknown): void;
  suspend(ctx: ToolContext, request: Request): Promise<Decision>;
}
