/** What hooks are given: one family of contexts in which a field means the same wherever it appears. */
import type { Agent } from './agent.js';
import {
  AlliumError,
  type Attribution,
  attribution,
  controlKind,
  type Raised,
  StopRun,
  shown,
} from './errors.js';
import type { LiveMessage } from './live.js';
import type {
  AssistantMessage,
  Message,
  MessageInput,
  Metadata,
  ModelResponse,
  ToolCall,
  ToolContent,
  ToolMessage,
  Usage,
} from './messages.js';
import { deepFreeze } from './messages.js';
import type { Seam } from './middleware.js';
import type { Model, ModelSettings, StreamTransform } from './model.js';
import type { RunResult, StopReason } from './result.js';
import type { Run } from './run.js';
import type { DeclaredOptions } from './run-options.js';
import type { Scope } from './scope.js';
import type { Overlay, StateAccess } from './state.js';
import type { Awaitable, Decision, Request } from './store.js';
import type { Tool, ToolResult } from './tool.js';

/** What the forks of one seam call share, its latch included: a control signal that was swallowed still counts. */
export class SeamCall {
  /** Calls of the model or tool itself. */
  attempts = 0;
  /** Inward calls beyond the first of a layer. */
  repeats = 0;
  latched: unknown = undefined;
  latchedBy: string | undefined = undefined;
  /** An error that an `onError` declared final on its way out. */
  final: { readonly error: unknown } | undefined = undefined;

  /** Guards judge what is sent and what comes back; not so for the model calls of a guard itself. */
  guarded = true;

  /** The last thrown value that is no object. */
  raised: Raised | undefined = undefined;

  /** Who raised an error, as far as it is known. */
  raisedBy(error: unknown): Attribution | undefined {
    const { raised } = this;
    return attribution(error) ?? (raised !== undefined && raised.value === error ? raised.by : undefined);
  }

  /** @internal The request before any layer saw it, where it is not simply the run's. */
  given: ModelMark | undefined = undefined;
  /** @internal What `next({ … })` made of the request, by the context that goes in with it. */
  overridden: Map<ModelContext, ModelMark> | undefined = undefined;
  /** @internal What was noted about the request of this call. */
  rewrites: { readonly by: string; readonly what: string }[] | undefined = undefined;

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
  /** What is asked: text, content, or a whole conversation. */
  readonly messages: MessageInput | readonly Message[];
  /** Told to the model before the messages. @default '' */
  readonly systemPrompt?: string;
  /** What the model may answer with calls of; nobody runs them. @default [] */
  readonly tools?: readonly Tool[];
  /** How the model is asked. @default {} */
  readonly settings?: ModelSettings;
}

/*
 * A context is made for every layer of every call, so its fields are declared without being defined twice and are
 * assigned once, in a fixed order.
 */
export abstract class Context {
  abstract readonly seam: Seam;
  /** @internal */ declare readonly _run: Run;
  /** @internal The place in the list of the middleware this context is handed to; -1 for the kernel's own. */
  declare _position: number;
  /** @internal */ declare _scope: Scope;
  /** @internal */ declare readonly _call: SeamCall;
  /** @internal */ declare _state: Overlay | undefined;
  /** @internal */ declare _metadata: Record<string, unknown> | undefined;
  /** @internal What of `_metadata` an attempt brought: it goes when another attempt is taken instead. */
  declare _brought: Record<string, unknown> | undefined;

  /** @internal */
  constructor(run: Run, scope: Scope, call: SeamCall) {
    this._run = run;
    this._position = -1;
    this._scope = scope;
    this._call = call;
    this._state = undefined;
    this._metadata = undefined;
    this._brought = undefined;
  }

  get agent(): Agent {
    return this._run.agent;
  }
  get runId(): string {
    return this._run.runId;
  }
  /** The run whose tool started this one, for a sub-agent. */
  get parentRunId(): string | undefined {
    return this._run.parentRunId;
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
  /** Milliseconds so far in which the run only waited: for a human's answer, or for whoever reads its stream. */
  get pausedMs(): number {
    return this._run.pausedMs;
  }
  /** Dollars spent so far; undefined when a price is unknown. */
  get costUsd(): number | undefined {
    return this._run.budget.costUsd;
  }
  /** The whole conversation: one read-only view that grows as messages are appended. Copy it to keep it as it is. */
  get history(): readonly Message[] {
    return this._run.history.view();
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
  /** Options of this run that middleware declare with `runOptions`, as the caller passed them; the record is frozen. */
  get options(): DeclaredOptions {
    return this._run.options;
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
  async generate(model: Model, request: GenerateRequest): Promise<ModelResponse> {
    try {
      return await this._run.generate(this, model, request);
    } catch (error) {
      // There is no turn to start again here, so the error stands.
      throw controlKind(error) === 'restart' ? (error as Error).cause : error;
    }
  }

  /** @internal */
  _raised(value: unknown, by: Attribution): void {
    this._run._raised(value, by, this._call);
  }

  /** @internal Copies what every context has into a fork of it: its own writes, not those of earlier attempts. */
  protected _inherit<C extends Context>(fork: C): C {
    fork._position = this._position;
    if (this._state !== undefined) fork._state = this._state.fork();
    if (this._metadata !== undefined) {
      fork._metadata = { ...this._metadata };
      for (const key in this._brought)
        if (fork._metadata[key] === this._brought[key]) delete fork._metadata[key];
    }
    return fork;
  }

  /** @internal Takes over what an attempt wrote, instead of what the attempt taken over before wrote. */
  _adopt(fork: Context): void {
    if (fork._state !== undefined) {
      this._state ??= this._run.cells.overlay();
      this._state.adopt(fork._state);
    } else if (this._state !== undefined) this._state.drop();
    if (fork._metadata !== undefined || this._brought !== undefined)
      this._adoptMetadata(fork._metadata ?? {});
  }

  private _adoptMetadata(from: Record<string, unknown>): void {
    const mine = this.metadata;
    for (const key in this._brought) if (mine[key] === this._brought[key]) delete mine[key];
    this._brought = {};
    for (const key of Object.keys(from))
      if (!Object.hasOwn(mine, key)) mine[key] = this._brought[key] = from[key];
  }
}

/** Around a whole run. */
export class RunContext extends Context {
  /** The messages the run was started with; reassign to change them. Empty for a resume. */
  declare input: readonly Message[];
  declare result: RunResult | undefined;
  /** In `afterRun`: why the run failed. */
  declare error: unknown;

  /** @internal */
  constructor(run: Run, scope: Scope, input: readonly Message[]) {
    super(run, scope, run.call);
    this.input = input;
    this.result = undefined;
    this.error = undefined;
  }

  get seam(): 'run' {
    return 'run';
  }

  /** History and input. */
  get messages(): readonly Message[] {
    return Object.freeze([...this.history, ...this.input]);
  }

  /** @internal */
  _fork(_scope?: Scope): RunContext {
    this._commit();
    return this._inherit(new RunContext(this._run, this._scope, this.input));
  }

  /** @internal A run happens once, so what its layers write before it holds inside it; cells of the call stay here. */
  private _commit(): void {
    const written = this._state;
    if (!written) return;
    this._run.cells.stage(written);
    this._state = undefined;
    for (const write of written.standing())
      if (write.cell.scope === 'call') this.state.update(write.cell, (value) => write.apply(value));
  }
}

/** Around one model call. What is assigned here is what this call uses. */
export class ModelContext extends Context {
  declare systemPrompt: string;
  declare tools: readonly Tool[];
  declare model: Model;
  declare settings: ModelSettings;
  /** Which try this is, from 1, of the nearest layer that called inward more than once. */
  declare attempt: number;
  /** One more turn although the model asked for no tool. */
  declare forceContinue: boolean;
  /** What the model answered; set it in `beforeModel` to answer without calling inward. */
  declare response: ModelResponse | undefined;
  /** @internal */ declare _messages: readonly Message[] | undefined;
  /** @internal How much of the history the request covers. */
  declare _length: number;
  /** @internal Where this call streams to; undefined for calls nobody watches. */
  declare readonly _live: LiveMessage | undefined;
  /** @internal */ declare _transforms: (() => StreamTransform)[] | undefined;
  /** @internal */ declare readonly _outer: ModelContext | undefined;
  /** @internal `forceContinue` came from an attempt. */
  declare _forced: boolean;
  /** @internal The tools at the place further in where the answer came from. */
  declare _inner: readonly Tool[] | undefined;

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
    this.attempt = 1;
    this.forceContinue = false;
    this.response = undefined;
    this._messages = undefined;
    this._length = length;
    this._live = live;
    this._transforms = undefined;
    this._outer = outer;
    this._forced = false;
    this._inner = undefined;
  }

  /** @internal The tools the answer was given with: those its calls may name. */
  get _offered(): readonly Tool[] {
    return this._inner ?? this.tools;
  }

  get seam(): 'model' {
    return 'model';
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
    if (typeof factory !== 'function')
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        `ctx.transform() takes a function that makes a transform, got ${shown(factory)}.`,
      );
    this._transforms ??= [];
    this._transforms.push(factory);
  }

  /** @internal What layers may assign, as it is now. */
  _mark(): ModelMark {
    const { systemPrompt, tools, model, settings, _messages: messages } = this;
    return { systemPrompt, tools, model, settings, messages };
  }

  /** @internal Did a layer assign something that others further out must not see? */
  _isWritten(mark: ModelMark): boolean {
    return (
      this.model !== mark.model ||
      this._messages !== mark.messages ||
      this.systemPrompt !== mark.systemPrompt ||
      this.tools !== mark.tools ||
      this.settings !== mark.settings ||
      this._transforms !== undefined ||
      this._metadata !== undefined ||
      this.forceContinue
    );
  }

  /** @internal */
  _takeBack(mark: ModelMark): void {
    this._inner = this._offered;
    this.systemPrompt = mark.systemPrompt;
    this.tools = mark.tools;
    this.model = mark.model;
    this.settings = mark.settings;
    this._messages = mark.messages;
    this._transforms = undefined;
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
    this._inner = fork._offered;
    if (this.forceContinue === fork.forceContinue) return;
    if (this._forced) this.forceContinue = this._forced = false;
    if (fork.forceContinue && !this.forceContinue) this.forceContinue = this._forced = true;
  }
}

/** @internal */
export interface ModelMark {
  readonly systemPrompt: string;
  readonly tools: readonly Tool[];
  readonly model: Model;
  readonly settings: ModelSettings;
  readonly messages: readonly Message[] | undefined;
}

/** After a response and at the end of a turn or run. */
export class TurnContext extends Context {
  /** The assistant message of the turn; undefined when there was none. */
  declare readonly message: AssistantMessage | undefined;
  declare readonly toolResults: readonly ToolMessage[];
  /** The run goes on by itself: there are tool results to answer, or somebody asked for another turn. */
  declare readonly more: boolean;

  /** @internal */
  constructor(
    run: Run,
    message: AssistantMessage | undefined,
    toolResults: readonly ToolMessage[],
    more: boolean,
  ) {
    super(run, run.scope, run.call);
    this.message = message;
    this.toolResults = toolResults;
    this.more = more;
  }

  get seam(): 'run' {
    return 'run';
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
  /** Milliseconds this execution may take. */
  declare timeoutMs: number | undefined;
  declare attempt: number;
  /** @internal */ declare _args: Args;
  /** @internal The arguments as JSON, before the schema touched them. */
  declare _raw: unknown;
  /** @internal Set when a layer assigned `args`: they are raw input again. */
  declare _assigned: boolean;
  /** @internal Read only when somebody asks: a key costs more than a fork. */
  declare readonly _keyed: { readonly idempotencyKey: string };
  /** @internal */ declare readonly _hooks: ToolCallHooks;

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
    this.timeoutMs = undefined;
    this.attempt = 1;
    this._args = args;
    this._raw = raw;
    this._assigned = false;
    this._keyed = of._keyed;
    this._hooks = hooks;
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

  get isError(): boolean {
    return this.result?.isError ?? false;
  }

  /** Is this a call of that tool? Narrows `args`. */
  is<T extends Tool<any, any>>(
    tool: T,
  ): this is ToolContext<T extends Tool<any, infer Output> ? Output : never> {
    return this.tool === tool;
  }

  /** Shows progress: an event, never sent to the model. Whoever shows a lot awaits it, so as not to outrun the consumer. */
  update(partial: string | readonly ToolContent[], details?: unknown): Awaitable<void> {
    return this._hooks.update(this, partial, details);
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

  /** @internal What layers may assign, as it is now. */
  _mark(): ToolMark {
    const { _args: args, _raw: raw, _assigned: assigned, revision, timeoutMs, result } = this;
    return { args, raw, assigned, revision, timeoutMs, result };
  }

  /** @internal Did a layer assign something that others further out must not see? */
  _isWritten(mark: ToolMark): boolean {
    return (
      this.revision !== mark.revision ||
      this.timeoutMs !== mark.timeoutMs ||
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
    this.timeoutMs = mark.timeoutMs;
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
    fork.timeoutMs = this.timeoutMs;
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
