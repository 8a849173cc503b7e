/** The innermost point of the model seam: one attempt with the model really called. */

import { authorOf, noteRewrites } from '../context/request-changes.js';
import { checkAssigned } from '../context/request-checks.js';
import { admit, type Hold, note } from '../context/usage-meters.js';
import type { LiveStream } from '../events/live.js';
import { Assembler, toldInPart } from '../guards/assemble.js';
import { type Stages, stagesOf } from '../guards/transforms.js';
import { withoutOrphans } from '../inbox/orphans.js';
import { isWithheld } from '../journal/session-state.js';
import type { Clock } from '../lib/clock.js';
import { attribute, isThenable } from '../lib/errors.js';
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
import { specsOf } from '../plan/compose.js';
import { convertToLlm } from '../plan/rules.js';
import { isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { isCrowded, type Reservation } from './budget.js';
import { charsIn, estimated, inputTokens, leftOut, summed } from './estimates.js';
import type { Calling, ModelRun } from './model-run.js';
import { Reading } from './model-stream.js';
import { modelTime } from './stalls.js';

/** The messages to send; undefined for the plain history. */
type Sent = readonly Message[] | undefined;

/** Calls the model of the context; what becomes of its response, or of the error, is for `ending` to say. */
export function callModel<T>(ctx: Calling, ending: Ending<T> = PASS_ON): Promise<T> {
  if (ctx._run.plan.layers.model.length > 0) {
    checkAssigned(ctx);
    noteRewrites(ctx);
  }
  // A run that is to end makes no further call, whatever a layer swallowed.
  ctx._checkBegin();
  if (!changesRequest(ctx)) return attempt(ctx, undefined, ending);
  return after(requestMessages(ctx), (messages) => attempt(ctx, messages, ending), ctx, ending);
}

/** Starts an attempt, as soon as the budget has room for it. */
function attempt<T>(ctx: Calling, messages: Sent, ending: Ending<T>): Promise<T> {
  const { budget } = ctx._run;
  // Read before anything is set aside or asked: what is wrong with a price costs nothing.
  const price = budget.priceOf(ctx.model);
  const held = admit(ctx);
  if (isThenable(held))
    return after(held, (hold) => reserved(ctx, messages, price, hold, ending), ctx, ending);
  return reserved(ctx, messages, price, held, ending);
}

function reserved<T>(
  ctx: Calling,
  messages: Sent,
  price: Price | undefined,
  hold: Hold | undefined,
  ending: Ending<T>,
): Promise<T> {
  const { budget } = ctx._run;
  const start = (reservation?: Reservation) =>
    spare(ctx._run).run(ctx, messages, price, reservation, hold, ending);
  if (!budget.limited) return start();
  try {
    const reservation = reserve(ctx, messages);
    if (!isThenable(reservation)) return start(reservation);
    if (hold === undefined) return after(reservation, start, ctx, ending);
    return after(
      reservation.then(undefined, (error) => {
        hold.release();
        throw error;
      }),
      start,
      ctx,
      ending,
    );
  } catch (error) {
    hold?.release();
    throw error;
  }
}

/** Goes on once `wait` is over. If it failed, or going on throws, that is how the call ended. */
function after<V, T>(
  wait: PromiseLike<V>,
  go: (value: V) => Promise<T>,
  ctx: Calling,
  ending: Ending<T>,
): Promise<T> {
  return Promise.resolve(wait).then(
    (value) => {
      try {
        return go(value);
      } catch (error) {
        return ending.failed(error, ctx);
      }
    },
    (error) => ending.failed(error, ctx),
  );
}

function spare(run: ModelRun): ModelCall {
  const call = run.spareCall ?? new ModelCall();
  run.spareCall = undefined;
  return call;
}

/** What a model is handed: plain properties, as a model around another hands on `{ ...request, settings }`. */
function requestOf(ctx: Calling, messages: Sent, settings: ModelSettings): ModelRequest {
  const { plan } = ctx._run;
  const systemPrompt = ctx._extra?.prompt ?? ctx.systemPrompt;
  const tools = ctx.tools === plan.tools ? plan.specs : specsOf(ctx.tools);
  return { messages: messages ?? sentIn(ctx), systemPrompt, tools, settings };
}

/** Who wants to know how a call ended. What they return is what the caller's promise settles with. */
interface Ending<T> {
  completed(response: ModelResponse, ctx: Calling): Awaitable<T>;
  failed(error: unknown, ctx: Calling): Awaitable<T>;
}

const PASS_ON: Ending<any> = {
  completed: (response) => response,
  failed(error) {
    throw error;
  },
};

/**
 * One attempt. Callbacks instead of an async function, which would cost more than everything else in here. An attempt
 * that read its stream to the end is used again for the next one of its run.
 */
export class ModelCall extends Reading {
  private ctx: Calling = undefined as never;
  private messages: Sent = undefined;
  private ending: Ending<any> = PASS_ON;
  private price: Price | undefined = undefined;
  private reservation: Reservation | undefined = undefined;
  private hold: Hold | undefined = undefined;
  private raw: Assembler = undefined as never;
  private attempts = 0;
  private staged: ((part: ModelPart) => void) | undefined = undefined;
  private stages: Stages | undefined = undefined;
  private live: LiveStream | undefined = undefined;
  private begun = false;
  private resolve: (response: any) => void = ignore;
  private reject: (error: unknown) => void = ignore;
  private readonly executor = (resolve: (response: any) => void, reject: (error: unknown) => void): void => {
    this.resolve = resolve;
    this.reject = reject;
  };

  run<T>(
    ctx: Calling,
    messages: Sent,
    price: Price | undefined,
    reservation: Reservation | undefined,
    hold: Hold | undefined,
    ending: Ending<T>,
  ): Promise<T> {
    this.ctx = ctx;
    this.messages = messages;
    this.ending = ending;
    this.price = price;
    this.reservation = reservation;
    this.hold = hold;
    this.attempts = ++ctx._call.attempts;
    this.raw = new Assembler(modelName(ctx.model), ctx._run.limits);
    this.begun = false;
    ctx._call.workBegins();
    const promise = new Promise<T>(this.executor);
    try {
      this.start();
    } catch (error) {
      this.failed(error);
    }
    return promise;
  }

  private start(): void {
    const { ctx, raw, messages } = this;
    const { _run: kernel } = ctx;
    const shown = ctx._call.live;
    const settings = capped(capped(ctx.settings, this.reservation), this.hold);
    ctx._call.outputLimit = settings.maxOutputTokens;
    const request = requestOf(ctx, messages, settings);
    this.stages = stagesOf(ctx, raw);
    this.live = shown?.begin(ctx, this.stages?.last ?? raw);
    this.begun = true;
    this.staged = this.stages?.taker(this.live);
    const consumer = shown && kernel.watched ? kernel : undefined;
    this.read(ctx.model, request, ctx._scope, consumer, modelTime(kernel.limits, ctx._call.time));
  }

  get clock(): Clock {
    return this.ctx._run.clock;
  }

  get pausedMs(): number {
    return this.ctx._run.pausedMs;
  }

  protected take(part: ModelPart): boolean {
    if (this.staged !== undefined) return this.stage(part);
    const block = this.raw.add(part);
    if (this.live !== undefined && block >= 0) this.live.part(part, block);
    return block < 0;
  }

  private stage(part: ModelPart): boolean {
    this.staged!(part);
    return part.type === 'finish';
  }

  protected setGrace(fn: () => void): () => void {
    const { clock, agent } = this.ctx._run;
    return clock.setTimer(fn, agent.teardownTimeoutMs);
  }

  protected done(ended: boolean): void {
    const { ctx, ending, resolve, reject } = this;
    let response: ModelResponse;
    try {
      response = this.complete();
    } catch (error) {
      this.failed(error);
      return;
    }
    ctx._call.workEnded(true);
    // From here on this object may be at work for another attempt.
    if (ended) ctx._run.spareCall = this;
    try {
      resolve(ending.completed(response, ctx));
    } catch (error) {
      fail(ending, error, ctx, resolve, reject);
    }
  }

  private complete(): ModelResponse {
    const { raw, stages, ctx } = this;
    const response = raw.response();
    if (ctx._run.plan.looksAtResponses) ctx._call.frozen = freezeMessage(response);
    const { content } = stages?.finish(response) ?? response;
    // What was left out had been shown as it came: the response is shown anew.
    if (!(stages?.last ?? raw).hasLeftOut) ctx._call.live?.claim(this.live, content);
    const { usage = NO_USAGE } = response;
    if (usage.totalTokens === 0) this.settle(this.unreported());
    else {
      const told = toldInPart(usage);
      this.settle(usage, told && this.untold(usage, told));
    }
    return response;
  }

  protected failed(error: unknown): void {
    const { ctx, raw, stages, live, ending, resolve, reject } = this;
    try {
      if (!isControl(error)) {
        attribute(error, { hook: 'model', attempts: this.attempts }, ctx);
        // What was shown is void, and nobody should read it while a retry waits.
        if (this.begun) ctx._call.live?.abandon(live, stages?.last ?? raw);
      }
      // A stream that broke off was paid for as far as it got; mostly nobody reports how much.
      const { told } = raw;
      this.settle(told.totalTokens > 0 || charsIn(raw) === 0 ? told : this.estimate());
    } catch {
      // Whatever comes in between, somebody waits for this; and what failed first is what they hear of.
    }
    ctx._call.workEnded(false);
    fail(ending, error, ctx, resolve, reject);
  }

  /** A model that does not say what an answer used: a limit has to hold all the same, otherwise nobody needs to guess. */
  private unreported(): Usage {
    const limited = this.reservation !== undefined || this.ctx._run.meters !== undefined;
    return limited ? this.estimate() : UNKNOWN_USAGE;
  }

  private estimate(): Usage {
    return estimated(this.ctx, this.messages, this.reservation, charsIn(this.raw));
  }

  /** The same for what a model does not say of an answer that it says something of. */
  private untold(usage: Usage, told: Partial<Usage>): Usage {
    const estimate = this.unreported();
    return estimate === UNKNOWN_USAGE ? estimate : leftOut(usage, told, estimate);
  }

  private settle(usage: Usage, untold?: Usage): void {
    const { ctx, price } = this;
    const { _run: run } = ctx;
    if (this.begun) ctx._call.live?.ended();
    // First: once the reservation is given back, calls that wait look at what is left.
    if (untold !== undefined) run.settle(price, undefined, untold);
    run.settle(price, this.reservation, usage);
    note(run, ctx.model, untold === undefined ? usage : summed(usage, untold));
    this.hold?.release();
  }
}

function fail(
  ending: Ending<unknown>,
  error: unknown,
  ctx: Calling,
  resolve: (value: unknown) => void,
  reject: (error: unknown) => void,
): void {
  try {
    resolve(ending.failed(error, ctx));
  } catch (final) {
    reject(final);
  }
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

/** Rules and guards of the request have their say here. */
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

/** Meanwhile the context is known as that of the hook, whose own model calls are not converted in turn. */
async function converted(messages: Sent, ctx: Calling): Promise<readonly Message[]> {
  const extra = ctx._extras();
  extra.converting = true;
  try {
    return await convertToLlm(ctx._run.plan.rules.convertToLlm, messages ?? sentIn(ctx), ctx);
  } finally {
    extra.converting = false;
  }
}

/** What is sent where nobody assigned anything else. */
function sentIn({ _run: run, _call: { length } }: Calling): readonly Message[] {
  return run.history.request(length);
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

/**
 * Budgets are set aside here, inside every layer, so that an answer from a cache costs nothing. A call that other calls
 * under way leave no room for waits for them. It holds nothing meanwhile, so no two calls wait for each other.
 */
function reserve(ctx: Calling, messages: Sent): Awaitable<Reservation | undefined> {
  // Sub-agents run side by side: none may set aside all that is left.
  const share = ctx._run.depth === 0 ? 1 : 0.25;
  const input = () => inputTokens(ctx, messages);
  const { budget } = ctx._run;
  try {
    return budget.reserve(ctx.model, input, ctx.settings.maxOutputTokens, share);
  } catch (refusal) {
    if (!isCrowded(refusal)) throw refusal;
    return room(ctx, refusal).then(() => {
      ctx._checkBegin();
      return reserve(ctx, messages);
    });
  }
}

/** Settles when another call has ended. One that waits for itself in some way is refused in the end. */
function room({ _run: { budget, clock }, _scope: scope }: Calling, refusal: unknown): Promise<void> {
  let cancel = (): void => {};
  const tooLong = new Promise<never>((_, reject) => {
    cancel = clock.setTimer(() => reject(refusal), LONGEST_WAIT_MS);
  });
  return untilAborted(Promise.race([budget.change(), tooLong]), scope).finally(() => cancel());
}

const LONGEST_WAIT_MS = 600_000;

/** With what the model may write at most, where that is limited. */
function capped(
  settings: ModelSettings,
  limit: { readonly maxOutputTokens: number } | undefined,
): ModelSettings {
  const { maxOutputTokens: given = Number.POSITIVE_INFINITY } = settings;
  return limit && limit.maxOutputTokens < given
    ? { ...settings, maxOutputTokens: limit.maxOutputTokens }
    : settings;
}

function ignore(): void {}
