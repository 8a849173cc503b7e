/** One round of compaction: is it time, what is left out, who summarises it, and was it worth it. */

import { PinIndex, Questions } from '../../context-window/pins.js';
import type { TokenMeter } from '../../context-window/token-meter.js';
import {
  AlliumError,
  isControl,
  type Message,
  type Model,
  type ModelContext,
  type ModelResponse,
  textOf,
  userMessage,
} from '../../index.js';
import { safeErrorMessage } from '../../kit/index.js';
import { isContextOverflow } from './overflow.js';
import {
  afterFailure,
  afterRound,
  type CompactionState,
  isOpen,
  isThrashing,
  mayCall,
  type Progress,
  THRASH_NEW_MESSAGES,
} from './state.js';
import { fallbackSummary, summaryBudget, summaryRequest } from './summary.js';
import {
  keptOf,
  type Place,
  Places,
  type Range,
  rangeOf,
  ShownSummaries,
  viewOf,
  wholeOf,
  within,
} from './view.js';

export interface CompactorOptions {
  readonly summaryModel: Model;
  /** When to compact a request to this model, and how much of its end stays. */
  readonly sizeFor: (ctx: Pick<ModelContext, 'model'>) => Size;
  readonly maxSummaryInputTokens: number | undefined;
  readonly keepTools: readonly string[];
  readonly summaryPrefix: string;
  readonly maxSummaryTokens: number | undefined;
  readonly minMessages: number;
  readonly prune: boolean;
  readonly summaryPrompt: string;
  readonly existingSummarySuffix: string;
}

interface Size {
  readonly maxTokens: number;
  readonly tailTokens: number;
}

/** What is journaled with the session. */
export interface Memory {
  /** With the ids of the last round only: what a round writes must not grow with the session. */
  readonly summary: CompactionState;
  readonly progress: Progress;
}

/** A round under way. */
interface Round {
  readonly messages: readonly Message[];
  readonly ctx: ModelContext;
  readonly meter: TokenMeter;
  readonly before: Memory;
  readonly forced: boolean;
  /** Tokens of the request as it would be sent without this round. */
  readonly size: number;
  readonly range: Range;
}

/** How often the summariser is shown half of what was too long for it. */
const MAX_HALVINGS = 3;

/** Holds only caches: whatever a session must remember is passed in and out. */
export class Compactor {
  private readonly pins: PinIndex;
  private readonly places: Places;
  private readonly questions: Questions;
  private readonly shown: ShownSummaries;
  /**
   * What went along with the last request of a session: the next one is measured before others have added to its
   * system prompt.
   */
  private readonly sent = new WeakMap<readonly Message[], Fixed>();

  constructor(private readonly options: CompactorOptions) {
    this.pins = new PinIndex(new Set(options.keepTools));
    this.places = new Places(this.pins);
    this.questions = new Questions(this.pins);
    this.shown = new ShownSummaries(options.summaryPrefix);
  }

  view(messages: readonly Message[], summary: CompactionState, ctx: ModelContext): readonly Message[] {
    const place = this.places.of(messages, summary);
    return viewOf(messages, summary, this.shown, place, this.questions.of(messages, ctx));
  }

  /** Is everything here that isn't summarised yet? Messages of `keepTools` may be anywhere. */
  isEnough(latest: readonly Message[], { summary, progress }: Memory): boolean {
    const { lastSummarizedMessageId: lastId, isFallback } = summary;
    if (lastId === null || this.options.keepTools.length > 0) return false;
    // A fallback is made again from everything since the last real summary.
    const first = isFallback && progress.written ? progress.written.lastId : lastId;
    return latest.some(({ id }) => id === first) && latest.some(({ id }) => id === lastId);
  }

  /** A request is about to be sent. */
  sending({ history, systemPrompt, tools }: ModelContext): void {
    this.sent.set(history, { systemPrompt, tools });
  }

  /** A summary with the ids of everything it stands for. */
  whole(history: readonly Message[], summary: CompactionState): CompactionState {
    return wholeOf(history, summary, this.pins);
  }

  /** Returns `before` itself if there was nothing to do. */
  async round(
    messages: readonly Message[],
    ctx: ModelContext,
    meter: TokenMeter,
    before: Memory,
    forced: boolean,
  ): Promise<Memory> {
    const place = this.places.of(messages, before.summary);
    const size = this.size(messages, ctx, meter, before, place);
    const { maxTokens } = this.options.sizeFor(ctx);
    if (!forced && size < maxTokens) return before;
    const range = this.range(messages, ctx, meter, place, forced ? size : undefined);
    const enough = forced ? leavesOut(range) > 0 : range.messages.length >= this.options.minMessages;
    if (!enough) return before;
    const newMessages = countSince(messages, before.progress.lastRoundAt);
    if (!forced && isThrashing(before.progress, { newMessages, size, maxTokens })) return before;
    return this.compact({ messages, ctx, meter, before, forced, size, range });
  }

  /** Would a forced round leave anything out? */
  canShrink(messages: readonly Message[], ctx: ModelContext, meter: TokenMeter, memory: Memory): boolean {
    const place = this.places.of(messages, memory.summary);
    const size = this.size(messages, ctx, meter, memory, place);
    return leavesOut(this.range(messages, ctx, meter, place, size)) > 0;
  }

  private size(
    messages: readonly Message[],
    ctx: ModelContext,
    meter: TokenMeter,
    { summary, progress }: Memory,
    place: Place,
  ): number {
    const { cut } = place;
    const reported = meter.reported(messages, cut, progress.viewSince);
    if (reported !== undefined) return reported;
    let size = meter.sum(messages, cut) + meter.fixed(this.sent.get(ctx.history) ?? ctx);
    if (summary.lastSummarizedMessageId !== null) size += meter.message(this.shown.of(summary));
    for (const index of keptOf(place, this.questions.of(messages, ctx)))
      size += meter.message(messages[index]!);
    return size;
  }

  /** If the provider refused the request, no estimate can be trusted: at most half of it stays. */
  private range(
    messages: readonly Message[],
    ctx: ModelContext,
    meter: TokenMeter,
    { cut }: Place,
    refused: number | undefined,
  ): Range {
    const { tailTokens, maxTokens } = this.options.sizeFor(ctx);
    const tail =
      refused === undefined
        ? { tokens: tailTokens, unread: maxTokens }
        : { tokens: Math.min(tailTokens, Math.floor(refused / 2)), unread: undefined };
    const questions = this.questions.of(messages, ctx);
    return rangeOf(messages, cut, tail, { meter, pins: this.pins, questions });
  }

  private async compact(round: Round): Promise<Memory> {
    const { before, forced, ctx } = round;
    if (!mayCall(before.progress)) {
      const { fallbackRounds } = before.progress;
      return this.withFallback(round, { ...before.progress, fallbackRounds: fallbackRounds + 1 });
    }
    const text = await this.summarise(round);
    if (text instanceof Failure) {
      const progress = afterFailure(before.progress);
      ctx.emit('compaction_failed', {
        error: safeErrorMessage(text.cause, ctx),
        failures: progress.failures,
      });
      // A turn that was refused for its length must become shorter, with a summary or without.
      return isOpen(progress) || forced ? this.withFallback(round, progress) : { ...before, progress };
    }
    const progress = { ...before.progress, failures: 0, fallbackRounds: 0, written: null };
    return this.install(round, text, false, progress);
  }

  /** Asks the model. Stops and aborts pass through: nothing was decided, so nothing is written. */
  private async summarise(round: Round): Promise<string | Failure> {
    const { meter } = round;
    let material = this.material(round, this.options.maxSummaryInputTokens);
    for (let halvings = 0; ; halvings++) {
      const answer = await this.ask(round, material);
      const tooLong = answer instanceof Failure && isContextOverflow(answer.cause);
      if (!tooLong || halvings === MAX_HALVINGS) return answer;
      // Its window is smaller than that of the model, so it gets the later half.
      const shorter = this.material(round, Math.floor(meter.count(material.question) / 2));
      if (shorter.question === material.question) return answer;
      material = shorter;
    }
  }

  private async ask(
    { ctx, before }: Round,
    { previous, question, tokens }: Material,
  ): Promise<string | Failure> {
    const { summaryModel, summaryPrompt, existingSummarySuffix, maxSummaryTokens } = this.options;
    const maxOutputTokens = summaryBudget(tokens, maxSummaryTokens, before.progress.failures);
    try {
      const response = await ctx.generate(summaryModel, {
        systemPrompt: previous === '' ? summaryPrompt : `${summaryPrompt}\n\n${existingSummarySuffix}`,
        messages: [userMessage(question)],
        settings: { temperature: 0, maxOutputTokens },
      });
      ctx.signal.throwIfAborted();
      const text = textOf(response).trim();
      const lack = lackOfSummary(response, text, maxOutputTokens);
      return lack === undefined ? text : new Failure(new AlliumError('MODEL_ERROR', lack));
    } catch (error) {
      if (isControl(error) || ctx.signal.aborted) throw error;
      return new Failure(error);
    }
  }

  /** A fallback is not merged but replaced: the messages it stands for are read again, unless they are too many. */
  private material({ before, messages, range, meter, ctx }: Round, maxTokens: number | undefined): Material {
    const reading = { prune: this.options.prune, maxTokens, count: (text: string) => meter.count(text) };
    const { written } = before.progress;
    if (before.summary.isFallback && written) {
      const all = this.sinceWritten(messages, range, meter, written.lastId);
      const question = summaryRequest(written.summary, all.messages, reading);
      if (meter.count(question) <= this.options.sizeFor(ctx).maxTokens)
        return { previous: written.summary, question, tokens: all.tokens };
    }
    const previous = before.summary.summary;
    return { previous, question: summaryRequest(previous, range.messages, reading), tokens: range.tokens };
  }

  private withFallback(round: Round, progress: Progress): Memory {
    const { before, messages, range, meter } = round;
    const { summary, lastSummarizedMessageId: lastId } = before.summary;
    // Always made from the last real summary, so that fallbacks do not pile up.
    const written = (before.summary.isFallback && before.progress.written) || { summary, lastId };
    const all = this.sinceWritten(messages, range, meter, written.lastId);
    return this.install(round, fallbackSummary(written.summary, all.messages), true, {
      ...progress,
      written,
    });
  }

  private sinceWritten(messages: readonly Message[], range: Range, meter: TokenMeter, lastId: string | null) {
    const start = lastId === null ? 0 : messages.findLastIndex(({ id }) => id === lastId) + 1;
    return within(messages, start, range.cut, { meter, pins: this.pins });
  }

  /** Puts the summary in place of its messages, if that makes the request shorter. */
  private install(round: Round, text: string, isFallback: boolean, progress: Progress): Memory {
    const { before, range, meter, size, ctx, forced, messages } = round;
    const ids = range.messages.map(({ id }) => id);
    const summary: CompactionState = {
      summary: text,
      lastSummarizedMessageId: ids.at(-1)!,
      summarizedMessageIds: ids,
      isFallback,
    };
    const had =
      before.summary.lastSummarizedMessageId === null ? 0 : meter.message(this.shown.of(before.summary));
    const shown = range.shown.reduce((sum, message) => sum + meter.message(message), 0);
    const saved = range.tokens - shown + had - meter.message(this.shown.of(summary));
    const at = lastIdOf(messages);
    const after = afterRound(progress, saved, size, at);
    if (saved <= 0)
      return { summary: before.summary, progress: { ...after, written: before.progress.written } };
    const { messages: summarized } = range;
    const event = {
      messages: summarized.length,
      tokensBefore: size,
      tokensAfter: size - saved,
      isFallback,
      forced,
    };
    ctx.emit('compaction', event);
    return { summary, progress: { ...after, viewSince: at } };
  }
}

/** How many messages a request would lose. */
function leavesOut({ messages, shown }: Range): number {
  return messages.length - shown.length;
}

type Fixed = Pick<ModelContext, 'systemPrompt' | 'tools'>;

interface Material {
  readonly previous: string;
  readonly question: string;
  readonly tokens: number;
}

class Failure {
  constructor(readonly cause: unknown) {}
}

/** Why this is no summary, if so. The end that a cut-off one lacks says what is still to be done. */
function lackOfSummary({ stopReason }: ModelResponse, text: string, limit: number): string | undefined {
  if (stopReason === 'length')
    return `The summary was cut off at its limit of ${limit} output tokens. Raise \`maxSummaryTokens\`.`;
  if (stopReason === 'content-filter') return 'A content filter of the provider ended the summary.';
  return text === '' ? 'The summary that the model wrote is empty.' : undefined;
}

function lastIdOf(messages: readonly Message[]): string | null {
  return messages.findLast(({ id }) => id !== '')?.id ?? null;
}

/** Messages after this one; counts no more than matter. */
function countSince(messages: readonly Message[], id: string | null): number {
  for (let count = 0; count < THRASH_NEW_MESSAGES; count++) {
    const message = messages[messages.length - 1 - count];
    if (!message || message.id === id) return count;
  }
  return THRASH_NEW_MESSAGES;
}
