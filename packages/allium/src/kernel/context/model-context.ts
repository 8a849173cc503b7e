/** The context around a model call. */

import { AlliumError, shown } from '../lib/errors.js';
import type { Scope } from '../lib/scope.js';
import type { Message, ModelResponse } from '../messages/messages.js';
import type { Model, ModelSettings, StreamTransform } from '../messages/model.js';
import type { Context as PublicContext, ModelContext as PublicModelContext } from '../protocol/contexts.js';
import type { Tool } from '../protocol/tool.js';
import { Context } from './base-context.js';
import { frozenMessages } from './request-checks.js';
import type { RequestParts, RunPort } from './run-port.js';
import type { ModelSeam } from './seam-call.js';

/** Around one model call. What is assigned here is what this call uses. */
export class ModelContext extends Context implements PublicModelContext {
  declare attempt: number;
  declare forceContinue: boolean;
  declare response: ModelResponse | undefined;
  /** @internal */ declare _call: ModelSeam;
  /** @internal The parts of the request that layers may assign. */ declare _request: RequestParts;
  /** @internal */ declare readonly _outer: ModelContext | undefined;
  /** @internal The tools that were offered further in, where the answer was made. */
  declare _inner: readonly Tool[] | undefined;

  /** @internal */
  constructor(run: RunPort, scope: Scope, request: RequestParts, call: ModelSeam, outer?: ModelContext) {
    super(run, scope, call);
    this._request = request;
    this.attempt = 1;
    this.forceContinue = false;
    this.response = undefined;
    this._outer = outer;
    this._inner = undefined;
  }

  /** @internal The tools the model was offered for this answer. Its calls may name only these. */
  get _offered(): readonly Tool[] {
    return this._inner ?? this.tools;
  }

  get seam(): 'model' {
    return 'model';
  }

  get caller(): PublicContext | undefined {
    return this._call.caller;
  }

  get systemPrompt(): string {
    return this._request.systemPrompt;
  }
  set systemPrompt(systemPrompt: string) {
    if (systemPrompt !== this._request.systemPrompt) this._request = { ...this._request, systemPrompt };
  }

  get tools(): readonly Tool[] {
    return this._request.tools;
  }
  set tools(tools: readonly Tool[]) {
    if (tools !== this._request.tools) this._request = { ...this._request, tools };
  }

  get model(): Model {
    return this._request.model;
  }
  set model(model: Model) {
    this._call.modelSet = true;
    if (model !== this._request.model) this._request = { ...this._request, model };
  }

  get settings(): ModelSettings {
    return this._request.settings;
  }
  set settings(settings: ModelSettings) {
    if (settings !== this._request.settings) this._request = { ...this._request, settings };
  }

  get messages(): readonly Message[] {
    return this._request.messages ?? this._run.history.first(this._call.length);
  }
  set messages(messages: readonly Message[]) {
    if (messages !== this._request.messages)
      this._request = { ...this._request, messages: frozenMessages(messages, this.messages) };
  }

  get result(): ModelResponse | undefined {
    return this.response;
  }
  set result(response: ModelResponse | undefined) {
    this.response = response;
  }

  transform(factory: () => StreamTransform): void {
    if (typeof factory !== 'function')
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        `ctx.transform() takes a function that makes a transform, got ${shown(factory)}.`,
      );
    const extra = this._extras();
    extra.transforms ??= [];
    extra.transforms.push(factory);
    this._call.transformed = true;
  }

  /** @internal */
  get _transforms(): (() => StreamTransform)[] | undefined {
    return this._extra?.transforms;
  }

  /** @internal */
  _fork(scope: Scope = this._scope): ModelContext {
    const fork = new ModelContext(this._run, scope, this._request, this._call, this);
    fork.attempt = this.attempt;
    return this._inherit(fork);
  }

  override _adopt(fork: ModelContext): void {
    super._adopt(fork);
    this._inner = fork._offered;
    if (this.forceContinue === fork.forceContinue) return;
    const extra = this._extras();
    if (extra.forced) this.forceContinue = extra.forced = false;
    if (fork.forceContinue && !this.forceContinue) this.forceContinue = extra.forced = true;
  }
}
