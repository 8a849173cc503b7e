/** The innermost point of the model seam: one attempt with the model really called, and what is sent to it. */

import type { Hold } from '../context/meter.js';
import { authorOf, noteRewrites } from '../context/request-changes.js';
import { checkAssigned } from '../context/request-checks.js';
import type { Ending } from '../context/tracing.js';
import { admitByMeters, noteUsage } from '../context/usage-meters.js';
import type { LiveStream } from '../events/live-message.js';
import { withheldRequest } from '../guards/guard-model-calls.js';
import { withoutOrphans } from '../inbox/orphans.js';
import { holdsWithheld, isWithheld } from '../journal/session-state.js';
import { attribute } from '../lib/errors.js';
import { untilAborted } from '../lib/scope.js';
import {
  freezeMessage,
  type Message,
  type ModelResponse,
  NO_USAGE,
  UNKNOWN_USAGE,
  type Usage,
} from '../messages/messages.js';
import {
  type ModelPart,
  type ModelRequest,
  type ModelSettings,
  modelName,
  type Price,
} from '../messages/model.js';
import { convertToLlm } from '../plan/rules.js';
import { isControl } from '../protocol/signals.js';
import { toolSpecs } from '../protocol/tool.js';
import { partialUsage, ResponseAssembler } from '../stream/assemble.js';
import { type Stages, stagesOf } from '../stream/transforms.js';
import { isCrowded, type Reservation } from './budget.js';
import { charsIn, estimated, estimateInputTokens, estimateMissing, summed } from './estimates.js';
import type { Calling } from './model-run.js';
import { StreamReader } from './model-stream.js';

/** Calls the model of the context, as soon as the budget has room for it. */
export function callModel(ctx: Calling): Promise<ModelResponse> {
  const { _run: run } = ctx;
  const { budget, plan, meters } = run;
  if (plan.layers.model.length > 0) {
    if (ctx._request !== run.request) checkAssigned(ctx);
    if (ctx._request !== (ctx._call.given ?? run.request)) noteRewrites(ctx);
  }
  // A run that is ending makes no further call, even if a layer swallowed the signal.
  ctx._checkBegin();
  if (changesRequest(ctx) || meters || budget.limited) return askFirst(ctx);
  return new ModelCall(ctx, undefined, budget.priceOf(ctx.model), undefined, undefined).read();
}

/** Rules, guards of the request, meters and the budget come before the call. */
async function askFirst(ctx: Calling): Promise<ModelResponse> {
  const { budget, meters } = ctx._run;
  const messages = changesRequest(ctx) ? await requestMessages(ctx) : undefined;
  // Read before anything is set aside or asked, so that a wrong price costs nothing.
  const price = budget.priceOf(ctx.model);
  const hold = meters && (await admitByMeters(ctx));
  let reservation: Reservation | undefined;
  try {
    if (budget.limited) reservation = await reserve(ctx, messages);
  } catch (error) {
    hold?.release();
    throw error;
  }
  return new ModelCall(ctx, messages, price, reservation, hold).read();
}

/** One attempt. Fields are set in the constructor, because field initialisers of a subclass are slow. */
class ModelCall extends StreamReader {
  declare private readonly raw: ResponseAssembler;
  declare private readonly attempts: number;
  declare private stages: Stages | undefined;
  /** Takes the parts if layers transform the stream. */
  declare private transform: ((part: ModelPart) => void) | undefined;
  declare private live: LiveStream | undefined;
  declare private ended: Ending<ModelResponse> | undefined;
  /** It has begun in the live message. */
  declare private begun: boolean;
  declare private readonly messages: Sent;
  declare private readonly price: Price | undefined;
  declare private readonly reservation: Reservation | undefined;
  declare private readonly hold: Hold | undefined;

  constructor(
    ctx: Calling,
    messages: Sent,
    price: Price | undefined,
    reservation: Reservation | undefined,
    hold: Hold | undefined,
  ) {
    super(ctx);
    this.raw = new ResponseAssembler(modelName(this.model), ctx._run.limits);
    this.attempts = ++ctx._call.attempts;
    this.stages = this.transform = this.live = this.ended = undefined;
    this.begun = false;
    this.messages = messages;
    this.price = price;
    this.reservation = reservation;
    this.hold = hold;
    ctx._call.workBegins();
  }

  read(): Promise<ModelResponse> {
    const { ctx, raw, messages } = this;
    const { _run: run, _call: call } = ctx;
    try {
      const settings = capped(capped(ctx.settings, this.reservation), this.hold);
      call.outputLimit = settings.maxOutputTokens;
      const request = requestOf(ctx, messages, settings);
      if (run.trace !== undefined) {
        const told = call.guarded ? request : withheldRequest(request);
        this.ended = run.trace.sends(ctx, told, messages === undefined && call.guarded);
      }
      if (call.transformed) this.stages = stagesOf(ctx, raw);
      this.live = call.live?.begin(ctx, this.stages?.last ?? raw);
      this.begun = true;
      this.transform = this.stages?.taker(this.live);
      return this.readStream(request);
    } catch (error) {
      this.failed(error);
      throw error;
    }
  }

  protected take(part: ModelPart): boolean {
    const { transform, live } = this;
    if (transform !== undefined) {
      transform(part);
      return part.type === 'finish';
    }
    const block = this.raw.add(part);
    if (live !== undefined && block >= 0) live.part(part, block);
    return block < 0;
  }

  protected complete(): ModelResponse {
    const { raw, stages, ctx } = this;
    const response = raw.response();
    if (ctx._run.plan.looksAtResponses) ctx._call.frozen = freezeMessage(response);
    const { content } = stages?.finish(response) ?? response;
    // Arguments that were left out had been shown already, so the response is shown again.
    if (!(stages?.last ?? raw).hasLeftOut) ctx._call.live?.claim(this.live, content);
    const { usage = NO_USAGE } = response;
    if (usage.totalTokens === 0) this.bookUsage(this.unreported());
    else {
      const told = partialUsage(usage);
      this.bookUsage(usage, told && this.untold(usage, told));
    }
    this.ended?.(response);
    ctx._call.workEnded(true);
    return response;
  }

  protected failed(error: unknown): void {
    const { ctx, raw, stages, live } = this;
    try {
      if (!isControl(error)) {
        attribute(error, { hook: 'model', attempts: this.attempts }, ctx);
        // What was shown is void, and nobody should read it while a retry waits.
        if (this.begun) ctx._call.live?.abandon(live, stages?.last ?? raw);
      }
      this.ended?.(undefined, error);
      // A stream that broke off is paid for as far as it got. Few models report how much that was.
      const { told } = raw;
      this.bookUsage(told.totalTokens > 0 || charsIn(raw) === 0 ? told : this.estimate());
    } catch {
      // The caller gets the first error.
    }
    ctx._call.workEnded(false);
  }

  /** The model didn't report usage. A limit has to hold all the same; without one nobody needs to guess. */
  private unreported(): Usage {
    const limited = this.reservation !== undefined || this.ctx._run.meters !== undefined;
    return limited ? this.estimate() : UNKNOWN_USAGE;
  }

  private estimate(): Usage {
    return estimated(this.ctx, this.messages, this.reservation, charsIn(this.raw));
  }

  /** What the model left out of its usage report. */
  private untold(usage: Usage, told: Partial<Usage>): Usage {
    const estimate = this.unreported();
    return estimate === UNKNOWN_USAGE ? estimate : estimateMissing(usage, told, estimate);
  }

  private bookUsage(usage: Usage, untold?: Usage): void {
    const { ctx, price } = this;
    const { _run: run } = ctx;
    if (this.begun) ctx._call.live?.ended();
    // Comes first: once the reservation is given back, waiting calls look at what is left.
    if (untold !== undefined) run.bookUsage(price, undefined, untold);
    run.bookUsage(price, this.reservation, usage);
    if (run.meters !== undefined)
      noteUsage(run.meters, ctx.model, untold === undefined ? usage : summed(usage, untold));
    this.hold?.release();
  }
}

/**
 * Budgets are set aside here, inside every layer, so that an answer from a cache costs nothing. If calls under way
 * leave no room, this waits for them. It holds nothing meanwhile, so no two calls wait for each other.
 */
async function reserve(ctx: Calling, messages: Sent): Promise<Reservation | undefined> {
  // Sub-agents run side by side: none may set aside all that is left.
  const share = ctx._run.depth === 0 ? 1 : 0.25;
  const input = () => estimateInputTokens(ctx, messages);
  const { budget } = ctx._run;
  for (;;) {
    try {
      return budget.reserve(ctx.model, input, ctx.settings.maxOutputTokens, share);
    } catch (refusal) {
      if (!isCrowded(refusal)) throw refusal;
      await waitForRoom(ctx, refusal);
      ctx._checkBegin();
    }
  }
}

/** Settles when another call has ended. A call that waits for itself is refused in the end. */
function waitForRoom({ _run: { budget, clock }, _scope: scope }: Calling, refusal: unknown): Promise<void> {
  let cancel = (): void => {};
  const tooLong = new Promise<never>((_, reject) => {
    cancel = clock.setTimer(() => reject(refusal), LONGEST_WAIT_MS);
  });
  return untilAborted(Promise.race([budget.change(), tooLong]), scope).finally(() => cancel());
}

const LONGEST_WAIT_MS = 600_000;

/** Adds the most the model may write, if that is limited. */
function capped(
  settings: ModelSettings,
  limit: { readonly maxOutputTokens: number } | undefined,
): ModelSettings {
  const { maxOutputTokens: given = Number.POSITIVE_INFINITY } = settings;
  return limit && limit.maxOutputTokens < given
    ? { ...settings, maxOutputTokens: limit.maxOutputTokens }
    : settings;
}

// ── What is sent: the history or what layers assigned, as rules and guards of the request leave it ────────────

/** The messages to send; undefined for the plain history. */
type Sent = readonly Message[] | undefined;

/**
 * The request for a model: plain properties, since a model that wraps another passes on `{ ...request, settings }`.
 */
function requestOf(ctx: Calling, messages: Sent, settings: ModelSettings): ModelRequest {
  const { plan } = ctx._run;
  const systemPrompt = ctx._extra?.prompt ?? ctx.systemPrompt;
  const tools = ctx.tools === plan.tools ? plan.specs : toolSpecs(ctx.tools);
  return { messages: messages ?? sentIn(ctx), systemPrompt, tools, settings };
}

/** Does anything stand between the history and the request? */
function changesRequest({ _request: { messages }, _run: { plan, state } }: Calling): boolean {
  return (
    messages !== undefined ||
    plan.rules.convertToLlm.length > 0 ||
    plan.guards.request.length > 0 ||
    state.withheld
  );
}

/** Applies rules and guards of the request. */
async function requestMessages(ctx: Calling): Promise<Sent> {
  const run = ctx._run;
  const { guards, rules } = run.plan;
  let { withheld } = run.state;
  let { messages } = ctx._request;
  if (messages !== undefined)
    messages = withoutOrphans(run, messages, (problems) => [
      authorOf(ctx, (request) => problems(request.messages ?? sentIn(ctx)).length > 0)?.middleware ??
        'a model layer',
    ]);
  if (rules.convertToLlm.length > 0 && ctx._call.converted) messages = await converted(messages, ctx);
  if (guards.request.length > 0 && ctx._call.guarded) {
    messages = messages
      ? await run.judgements.requestGate.all(messages, ctx)
      : await run.judgements.requestGate.history(sentIn(ctx), ctx);
    ctx._extras().prompt = await run.judgements.requestGate.prompt(ctx.systemPrompt, ctx);
    withheld ||= run.judgements.requestGate.withheld;
  }
  if (withheld) messages = (messages ?? sentIn(ctx)).flatMap(withoutWithheld);
  return messages;
}

/** Meanwhile the context is marked, so that the hook's own model calls aren't converted in turn. */
async function converted(messages: Sent, ctx: Calling): Promise<readonly Message[]> {
  const { _run: run } = ctx;
  const given = messages ?? sentIn(ctx);
  const extra = ctx._extras();
  extra.converting = true;
  try {
    const made = await convertToLlm(run.plan.rules.convertToLlm, given, ctx);
    return made ? withoutOrphans(run, made.messages, () => [made.by]) : given;
  } finally {
    extra.converting = false;
  }
}

/** What is sent if nobody assigned anything else. */
function sentIn({ _run: run, _call: { length } }: Calling): readonly Message[] {
  return run.history.request(length);
}

const sendable = new WeakMap<Message, readonly Message[]>();

/** The message without what can't be sent back; no message if there is nothing else in it. */
function withoutWithheld(message: Message): readonly Message[] | Message {
  if (message.role !== 'assistant' || !holdsWithheld(message.content)) return message;
  let made = sendable.get(message);
  if (!made) {
    const content = message.content.filter((part) => !isWithheld(part));
    made = content.length > 0 ? [Object.freeze({ ...message, content: Object.freeze(content) })] : [];
    sendable.set(message, made);
  }
  return made;
}
