/** The context around a model call. */

import { Context, type SeamCall } from './base-context.js';
import { AlliumError, shown } from './errors.js';
import type { LiveMessage } from './live.js';
import type { Message, ModelResponse } from './messages.js';
import type { Model, ModelSettings, StreamTransform } from './model.js';
import type { Run } from './run.js';
import type { Scope } from './scope.js';
import type { Tool } from './tool.js';

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
  /** @internal The system prompt as guards let it go; undefined where none judges it. */
  declare _prompt: string | undefined;
  /** @internal `convertToLlm` is at work with this context. */ declare _converting: boolean;

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
    this._prompt = undefined;
    this._converting = false;
  }

  /** @internal The tools the answer was given with: those its calls may name. */
  get _offered(): readonly Tool[] {
    return this._inner ?? this.tools;
  }

  get seam(): 'model' {
    return 'model';
  }

  /** Who asked for this call with `ctx.generate()`; undefined for a call of the run itself. */
  get caller(): Context | undefined {
    return this._call.caller;
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
