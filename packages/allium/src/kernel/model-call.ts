/** The innermost point of the model seam: one attempt with the model really called. */
import { Assembler } from './assemble.js';
import { specsOf } from './compose.js';
import type { ModelContext } from './context.js';
import { AlliumError, attribute, isControl, isThenable, shown } from './errors.js';
import { judgeMessage } from './guards.js';
import { estimateTokens, type Reservation } from './limits.js';
import { chain, type LiveStream } from './live.js';
import { deepFreeze, type Message, type ModelResponse, NO_USAGE, type Usage } from './messages.js';
import { type Model, type ModelPart, type ModelRequest, type ModelSettings, modelName, type ToolSpec } from './model.js';
import { convertToLlm } from './rules.js';
import { Scope } from './scope.js';
import { isWithheld } from './session-state.js';
import type { Tool } from './tool.js';

/** What a model is handed; lists are made only when it reads them. */
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
}

class CallOptions {
  constructor(private readonly scope: Scope) {}
  get signal(): AbortSignal {
    return this.scope.signal;
  }
}

/** Calls the model of the context and resolves with its frozen response. */
export async function callModel(ctx: ModelContext): Promise<ModelResponse> {
  const run = ctx._run;
  const { model } = ctx;
  if (typeof model?.stream !== 'function') {
    throw new AlliumError('INVALID_OPTION', `Expected \`model\` to be a model with a stream() method, got ${shown(model)}.`);
  }
  if (ctx._scope.aborted) throw ctx._scope.reason;
  const messages = await requestMessages(ctx);
  const { settings, reservation } = reserve(ctx, messages);
  const attempts = ++ctx._call.attempts;
  const request = new CallRequest(messages, ctx, ctx.systemPrompt, ctx.tools, settings);
  const assembler = new Assembler(modelName(model));
  ctx._call.partial = assembler;
  const live = ctx._live?.begin(ctx);
  run.toolsSent = ctx.tools;
  let usage: Usage = NO_USAGE;
  try {
    const stages = new Stages(ctx, assembler, live);
    await pump(model, request, ctx._scope, stages.first, ctx._live ? () => run.pressure() : undefined);
    const response = deepFreeze(assembler.response());
    usage = response.usage ?? NO_USAGE;
    stages.finish(response);
    ctx._call.partial = undefined;
    return response;
  } catch (error) {
    usage = reservation && usage === NO_USAGE ? spentSoFar(reservation, assembler) : usage;
    if (!isControl(error)) attribute(error, { hook: 'model', attempts });
    throw error;
  } finally {
    ctx._live?.ended();
    run.settle(model, reservation, usage);
  }
}

/** The messages to send, or undefined for the plain history: rules and guards of the request have their say here. */
async function requestMessages(ctx: ModelContext): Promise<readonly Message[] | undefined> {
  const run = ctx._run;
  const { guards, rules } = run.plan;
  let messages = ctx._messages;
  if (messages !== undefined) messages = run.withoutOrphans(messages, ['a model layer'], ctx);
  if (rules.convertToLlm.length > 0) messages = await convertToLlm(rules.convertToLlm, messages ?? ctx.messages, ctx);
  if (guards.request.length > 0) {
    messages = await Promise.all((messages ?? ctx.messages).map((message) => run.guardRequest(message, () => judgeMessage(guards, 'request', message, ctx))));
  }
  if (run.state.withheld) messages = (messages ?? ctx.messages).map(withoutWithheld);
  return messages;
}

const sendable = new WeakMap<Message, Message>();

function withoutWithheld(message: Message): Message {
  if (message.role !== 'assistant' || !message.content.some(isWithheld)) return message;
  let made = sendable.get(message);
  if (!made) {
    made = Object.freeze({ ...message, content: message.content.filter((part) => !isWithheld(part)) });
    sendable.set(message, made);
  }
  return made;
}

/** Budgets are set aside here, inside every layer, so that an answer from a cache costs nothing. */
function reserve(ctx: ModelContext, messages: readonly Message[] | undefined): { settings: ModelSettings; reservation: Reservation | undefined } {
  const { settings } = ctx;
  const input = () => {
    const fixed = ctx.systemPrompt.length + specsOf(ctx.tools).reduce((sum, spec) => sum + JSON.stringify(spec).length, 0);
    return estimateTokens(messages ?? ctx.messages, fixed);
  };
  // Sub-agents run side by side: none may set aside all that is left.
  const share = ctx._run.depth === 0 ? 1 : 0.25;
  const reservation = ctx._run.budget.reserve(ctx.model, input, settings.maxOutputTokens, share);
  if (!reservation || !Number.isFinite(reservation.maxOutputTokens)) return { settings, reservation };
  return { settings: { ...settings, maxOutputTokens: reservation.maxOutputTokens }, reservation };
}

/** A stream that broke off was paid for as far as it got; nobody reports how much, so it is estimated. */
function spentSoFar(reservation: Reservation, assembler: Assembler): Usage {
  let chars = 0;
  for (const block of assembler.content) chars += (block.text?.length ?? 0) + (block.arguments?.length ?? 0);
  if (chars === 0) return NO_USAGE;
  const inputTokens = Math.max(0, reservation.tokens - reservation.maxOutputTokens) || 0;
  const outputTokens = Math.ceil(chars / 4);
  return { ...NO_USAGE, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}

/** The way of a part: raw assembly, then the transforms of each layer from the inside out, then the consumer. */
class Stages {
  readonly first: (part: ModelPart) => void;
  private readonly made: { ctx: ModelContext; assembler: Assembler }[] = [];

  constructor(
    ctx: ModelContext,
    private readonly raw: Assembler,
    private readonly live: LiveStream | undefined,
  ) {
    for (let at: ModelContext | undefined = ctx; at; at = at._outer) {
      if (at._transforms) this.made.push({ ctx: at, assembler: new Assembler(modelName(ctx.model)) });
    }
    if (this.made.length === 0) {
      this.first = live
        ? (part) => {
            const block = raw.add(part);
            if (block >= 0) live.part(part, block, raw.content);
          }
        : (part) => void raw.add(part);
      return;
    }
    const last = this.made.at(-1)!.assembler;
    let out = (part: ModelPart): void => {
      const block = last.add(part);
      if (block >= 0) live?.part(part, block, last.content);
    };
    for (let i = this.made.length - 1; i >= 0; i--) {
      const transform = chain(this.made[i]!.ctx._transforms!, out);
      const before = i === 0 ? raw : this.made[i - 1]!.assembler;
      out = (part) => {
        before.add(part);
        transform(part);
      };
    }
    this.first = out;
  }

  /** Notes what each stage came to, for the layer whose transform it was. */
  finish(response: ModelResponse): void {
    let current = response;
    for (const { ctx, assembler } of this.made) {
      const next = deepFreeze({ ...response, content: assembler.response().content });
      ctx._run.stages.set(current.content, { ctx, response: next });
      current = next;
    }
    this.live?.claim(current.content);
  }
}

/** Reads a stream to its end, part by part. An abort ends it even if the model ignores its signal. */
function pump(model: Model, request: ModelRequest, scope: Scope, take: (part: ModelPart) => void, pressure: (() => Promise<void> | undefined) | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (scope.aborted) return reject(scope.reason);
    let open = true;
    const stream = model.stream(request, new CallOptions(scope));
    const iterator = iteratorOf(stream, model);
    const close = (): void => {
      open = false;
      off();
      try {
        const wait = iterator.return?.();
        if (isThenable(wait)) wait.then(undefined, ignore);
      } catch {
        // The stream is abandoned anyway; what its cleanup throws has nobody to go to.
      }
    };
    const fail = (error: unknown): void => {
      if (!open) return;
      open = false;
      off();
      reject(error);
    };
    const step = (result: IteratorResult<ModelPart, unknown>): void => {
      if (!open) return;
      if (result.done) {
        open = false;
        off();
        resolve();
        return;
      }
      let wait: Promise<void> | undefined;
      try {
        take(result.value);
        wait = pressure?.();
      } catch (error) {
        close();
        reject(error);
        return;
      }
      if (wait) wait.then(pull, fail);
      else pull();
    };
    const pull = (): void => {
      if (!open) return;
      try {
        const next = iterator.next();
        if (isThenable(next)) next.then(step, fail);
        else queueMicrotask(() => step(next));
      } catch (error) {
        fail(error);
      }
    };
    const off = scope.onAbort((reason) => {
      if (!open) return;
      queueMicrotask(close);
      open = false;
      reject(reason);
    });
    pull();
  });
}

function iteratorOf(stream: unknown, model: Model): { next(): PromiseLike<IteratorResult<ModelPart>> | IteratorResult<ModelPart>; return?(): unknown } {
  const source = stream as Partial<AsyncIterable<ModelPart> & Iterable<ModelPart>> | null | undefined;
  const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
  if (typeof iterator?.next !== 'function') {
    throw new AlliumError('MODEL_STREAM_INVALID', `stream() of ${modelName(model)} returned ${shown(stream)}, which cannot be iterated. Return an async iterable of parts; do not make stream() an async function.`);
  }
  return iterator;
}

function ignore(): void {}
