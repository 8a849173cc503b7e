/** The innermost point of the model seam: one attempt with the model really called. */
import { Assembler } from './assemble.js';
import { specsOf } from './compose.js';
import type { ModelContext } from './context.js';
import { AlliumError, attribute, invalidOption, isControl, shown } from './errors.js';
import { estimateTokens, type Reservation } from './limits.js';
import type { LiveStream } from './live.js';
import { deepFreeze, type Message, type ModelResponse, NO_USAGE, type Usage } from './messages.js';
import type { ModelPart, ModelRequest, ModelSettings, ToolSpec } from './model.js';
import { readStream, type StreamSink } from './model-stream.js';
import { convertToLlm } from './rules.js';
import type { Run } from './run.js';
import { isWithheld } from './session-state.js';
import type { Tool } from './tool.js';
import { Stages, taker } from './transforms.js';

/** What a model is handed, request and options in one: lists and the signal are made only when it reads them. */
class CallRequest implements ModelRequest {
  constructor(
    private readonly list: readonly Message[] | undefined,
    private readonly ctx: ModelContext,
    readonly systemPrompt: string,
    private readonly toolList: readonly Tool[],
    readonly settings: ModelSettings,
  ) {}
  get messages(): readonly Message[] {
    return this.list ?? this.ctx.messages;
  }
  get tools(): readonly ToolSpec[] {
    return specsOf(this.toolList);
  }
  get signal(): AbortSignal {
    return this.ctx._scope.signal;
  }
}

/** Calls the model of the context and resolves with its frozen response. */
export function callModel(ctx: ModelContext): Promise<ModelResponse> {
  if (typeof ctx.model?.stream !== 'function') {
    throw new AlliumError(
      'INVALID_OPTION',
      `Expected \`model\` to be a model with a stream() method, got ${shown(ctx.model)}.`,
    );
  }
  if (ctx._run.plan.layers.model.length > 0) checkAssigned(ctx);
  // A run that is to end makes no further call, whatever a layer swallowed.
  ctx._call.check();
  if (ctx._scope.aborted) throw ctx._scope.reason;
  if (!changesRequest(ctx)) return new ModelCall(ctx, undefined).run();
  return requestMessages(ctx).then((messages) => new ModelCall(ctx, messages).run());
}

/** What layers may have assigned. */
function checkAssigned({ _messages, systemPrompt, tools, settings }: ModelContext): void {
  if (_messages !== undefined && !(Array.isArray(_messages) && _messages.every(isMessage))) {
    throw invalidOption('ctx.messages', 'a list of messages', _messages);
  }
  if (typeof systemPrompt !== 'string') throw invalidOption('ctx.systemPrompt', 'text', systemPrompt);
  if (typeof settings !== 'object' || settings === null)
    throw invalidOption('ctx.settings', 'an object', settings);
  if (
    !(Array.isArray(tools) && tools.every((tool) => typeof tool?.execute === 'function' && 'spec' in tool))
  ) {
    throw invalidOption('ctx.tools', 'a list of tools made with tool()', tools);
  }
}

function isMessage(value: Message): boolean {
  return typeof value?.role === 'string' && Array.isArray(value.content);
}

/** One attempt. Callbacks instead of an async function, which would cost more than everything else in here. */
class ModelCall implements StreamSink {
  private readonly kernel: Run;
  private readonly reservation: Reservation | undefined;
  private readonly raw: Assembler;
  private readonly attempts: number;
  private stages: Stages | undefined = undefined;
  private live: LiveStream | undefined = undefined;
  private begun = false;
  take: (part: ModelPart) => void = ignore;
  private resolve: (response: ModelResponse) => void = ignore;
  private reject: (error: unknown) => void = ignore;

  constructor(
    private readonly ctx: ModelContext,
    private readonly messages: readonly Message[] | undefined,
  ) {
    this.kernel = ctx._run;
    this.reservation = this.kernel.budget.limited ? reserve(ctx, messages) : undefined;
    this.attempts = ++ctx._call.attempts;
    this.raw = new Assembler(this.kernel.nameOf(ctx.model));
  }

  run(): Promise<ModelResponse> {
    return new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
      try {
        this.start();
      } catch (error) {
        this.failed(error);
      }
    });
  }

  private start(): void {
    const { ctx, raw, messages, kernel } = this;
    const { model, systemPrompt, tools, settings, _live: shown, _scope: scope } = ctx;
    const request = new CallRequest(messages, ctx, systemPrompt, tools, capped(settings, this.reservation));
    if (ctx._transforms || ctx._outer) this.stages = new Stages(ctx, raw);
    this.live = shown?.begin(ctx, this.stages?.last ?? raw);
    this.begun = true;
    const consumer = shown && kernel.watched ? kernel : undefined;
    this.take = this.stages ? this.stages.taker(this.live) : taker(raw, this.live);
    readStream(model, request, scope, this, consumer);
  }

  done(): void {
    let response: ModelResponse;
    try {
      response = this.complete();
    } catch (error) {
      this.failed(error);
      return;
    }
    this.resolve(response);
  }

  private complete(): ModelResponse {
    const { raw, stages, ctx } = this;
    const response = raw.response();
    if (this.kernel.plan.looksAtResponses) deepFreeze(response);
    ctx._live?.claim(this.live, (stages?.finish(response) ?? response).content);
    this.settle(response.usage ?? NO_USAGE);
    return response;
  }

  failed(error: unknown): void {
    const { ctx, messages, reservation, raw, live } = this;
    if (!isControl(error)) {
      attribute(error, { hook: 'model', attempts: this.attempts });
      // What was shown is void, and nobody should read it while a retry waits.
      ctx._live?.abandon(live, raw);
    }
    this.settle(spentSoFar(ctx, messages, reservation, raw));
    this.reject(error);
  }

  private settle(usage: Usage): void {
    if (this.begun) this.ctx._live?.ended();
    this.kernel.settle(this.ctx.model, this.reservation, usage);
  }
}

/** Does anything stand between the history and the request? */
function changesRequest({ _messages, _run: { plan, state } }: ModelContext): boolean {
  return (
    _messages !== undefined ||
    plan.rules.convertToLlm.length > 0 ||
    plan.guards.request.length > 0 ||
    state.withheld
  );
}

/** The messages to send, or undefined for the plain history: rules and guards of the request have their say here. */
async function requestMessages(ctx: ModelContext): Promise<readonly Message[] | undefined> {
  const run = ctx._run;
  const { guards, rules } = run.plan;
  let messages = ctx._messages;
  if (messages !== undefined) messages = run.withoutOrphans(messages, ['a model layer'], ctx);
  if (rules.convertToLlm.length > 0)
    messages = await convertToLlm(rules.convertToLlm, messages ?? ctx.messages, ctx);
  if (guards.request.length > 0 && ctx._call.guarded) {
    messages = messages
      ? await run.requestGate.all(messages, ctx)
      : await run.requestGate.history(ctx.messages, ctx);
  }
  if (run.state.withheld) messages = (messages ?? ctx.messages).flatMap(withoutWithheld);
  return messages;
}

const sendable = new WeakMap<Message, readonly Message[]>();

/** The message without thinking that may not be sent back; nothing if it held nothing else. */
function withoutWithheld(message: Message): readonly Message[] | Message {
  if (message.role !== 'assistant' || !message.content.some(isWithheld)) return message;
  let made = sendable.get(message);
  if (!made) {
    const content = message.content.filter((part) => !isWithheld(part));
    made = content.length > 0 ? [Object.freeze({ ...message, content: Object.freeze(content) })] : [];
    sendable.set(message, made);
  }
  return made;
}

/** Budgets are set aside here, inside every layer, so that an answer from a cache costs nothing. */
function reserve(ctx: ModelContext, messages: readonly Message[] | undefined): Reservation | undefined {
  // Sub-agents run side by side: none may set aside all that is left.
  const share = ctx._run.depth === 0 ? 1 : 0.25;
  const input = () => inputTokens(ctx, messages);
  return ctx._run.budget.reserve(ctx.model, input, ctx.settings.maxOutputTokens, share);
}

function capped(settings: ModelSettings, reservation: Reservation | undefined): ModelSettings {
  if (!reservation || !Number.isFinite(reservation.maxOutputTokens)) return settings;
  return { ...settings, maxOutputTokens: reservation.maxOutputTokens };
}

function inputTokens(ctx: ModelContext, messages: readonly Message[] | undefined): number {
  const specs = specsOf(ctx.tools).reduce((sum, spec) => sum + JSON.stringify(spec).length, 0);
  return estimateTokens(messages ?? ctx.messages, ctx.systemPrompt.length + specs);
}

/** A stream that broke off was paid for as far as it got; nobody reports how much, so it is estimated. */
function spentSoFar(
  ctx: ModelContext,
  messages: readonly Message[] | undefined,
  reservation: Reservation | undefined,
  { content }: Assembler,
): Usage {
  let chars = 0;
  for (const block of content) chars += (block.text?.length ?? 0) + (block.arguments?.length ?? 0);
  if (chars === 0) return NO_USAGE;
  const reserved = reservation ? reservation.tokens - reservation.maxOutputTokens : Number.NaN;
  const input = Number.isFinite(reserved) ? reserved : inputTokens(ctx, messages);
  const outputTokens = Math.ceil(chars / 4);
  return { ...NO_USAGE, inputTokens: input, outputTokens, totalTokens: input + outputTokens };
}

function ignore(): void {}
