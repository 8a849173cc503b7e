/** Shows the model the latest messages only: a window that slides over the history. */

import { cutBackward, cutForward } from '../../context-window/cut.js';
import { isPassing, lastLasting, leadOf, PinIndex, Questions } from '../../context-window/pins.js';
import type { TokenCounter } from '../../context-window/token-counter.js';
import { meterFor, type TokenMeter } from '../../context-window/token-meter.js';
import { AlliumError, defineMiddleware, type Message, type Middleware } from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export type { TokenCounter } from '../../context-window/token-counter.js';

export const OPTIONS = {
  /** Messages a request may have: an integer ≥ 1. @default no limit */
  maxMessages: kinds.integer(1),
  /** Tokens the messages of a request may take: an integer ≥ 1. @default no limit */
  maxTokens: kinds.integer(1),
  /** Counts the tokens of a text. @default `gpt-tokenizer` or `tokenx` if installed, else an estimate */
  tokenCounter: kinds.func<TokenCounter>(),
  ...named('history-truncator'),
} satisfies Fields;

export interface HistoryTruncatorOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Leaves the oldest messages out of requests that are too long. A request begins with a user message and has no
 * result without its call. Pinned messages, the run's question and the user's latest message are always sent.
 *
 * @example
 * new Agent({ model, middleware: [historyTruncator({ maxMessages: 3 })] });
 */
export function historyTruncator(options: HistoryTruncatorOptions): Middleware {
  const { tokenCounter, name, madeWith, ...limits } = readOptions('historyTruncator', OPTIONS, options);
  const { maxMessages = Number.POSITIVE_INFINITY, maxTokens = Number.POSITIVE_INFINITY } = limits;
  if (limits.maxMessages === undefined && limits.maxTokens === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      'historyTruncator() got nothing to limit. Give `maxMessages` or `maxTokens`.',
    );
  const meter = meterFor(tokenCounter);
  const pins = new PinIndex();
  const questions = new Questions(pins);
  const fits = async (messages: readonly Message[]): Promise<boolean> => {
    if (messages.length > maxMessages) return false;
    return limits.maxTokens === undefined || (await meter()).sum(messages) <= maxTokens;
  };
  return defineMiddleware({
    name,
    madeWith,
    // A request also begins with a user message, and has the last one that a person sent.
    async enoughHistory(latest) {
      const first = latest.findIndex(({ role }) => role === 'user');
      return first >= 0 && pins.of(latest).lastUser >= 0 && !(await fits(latest.slice(first)));
    },
    async transformContext(messages, ctx) {
      if (await fits(messages)) return messages;
      const counts = limits.maxTokens === undefined ? undefined : await meter();
      return windowOf(messages, questions.of(messages, ctx), {
        maxMessages,
        maxTokens,
        counts,
        pins,
        runId: ctx.runId,
      });
    },
  });
}

interface Limits {
  readonly maxMessages: number;
  readonly maxTokens: number;
  readonly counts: TokenMeter | undefined;
  readonly pins: PinIndex;
  readonly runId: string;
}

/** Older messages that stay take room from the latest ones, and how many stay depends on where those begin. */
function windowOf(
  messages: readonly Message[],
  questions: readonly number[],
  limits: Limits,
): readonly Message[] {
  const { pins, counts, runId } = limits;
  const least = leastWindow(messages, runId);
  let cut = 0;
  let kept: readonly number[] = [];
  for (;;) {
    const tokens = counts ? kept.reduce((sum, index) => sum + counts.message(messages[index]!), 0) : 0;
    const next = Math.max(cut, cutForward(messages, begin(messages, limits, kept.length, tokens)));
    cut = Math.min(next, least);
    const now = led(messages, pins.before(messages, cut, questions));
    const settled = next > least || now.length === kept.length;
    kept = now;
    if (settled) break;
  }
  if (kept.length === 0 && messages[cut]!.role !== 'user') {
    const next = nextUser(messages, cut, least);
    if (next >= 0) [cut, kept] = [next, led(messages, pins.before(messages, next, questions))];
    else kept = led(messages, [cut]).slice(0, -1);
  }
  return [...kept.map((index) => messages[index]!), ...messages.slice(cut)];
}

/**
 * The latest place where the window may begin. There is always something to answer: at least the last message. Somebody
 * may have steered while tools ran; then the results that the model of this run waits for stay, too.
 */
function leastWindow(messages: readonly Message[], runId: string): number {
  const last = lastLasting(messages);
  const answer = messages.findLastIndex((message) => message.role === 'assistant' && !isPassing(message));
  const result = messages.findLastIndex((message) => message.role === 'tool' && !isPassing(message));
  const waits = result > answer && isAnswerOf(messages[answer], runId);
  return cutBackward(messages, 0, waits ? result : last);
}

/** A message that came with the input has no model. */
function isAnswerOf(message: Message | undefined, runId: string): boolean {
  return message?.role === 'assistant' && message.model !== undefined && message.id.startsWith(`${runId}.`);
}

/** Messages that stay, preceded by the question if the first isn't a user message. */
function led(messages: readonly Message[], kept: readonly number[]): readonly number[] {
  const [first] = kept;
  if (first === undefined || messages[first]!.role === 'user') return kept;
  const lead = leadOf(messages, first);
  return lead < 0 ? kept : [lead, ...kept];
}

/** The first user message from here on that splits no pair; -1 for none. */
function nextUser(messages: readonly Message[], from: number, last: number): number {
  for (let at = from; at <= last; at++)
    if (messages[at]!.role === 'user' && cutForward(messages, at) === at) return at;
  return -1;
}

/** Where the latest messages begin that fit beside those that stay. */
function begin(messages: readonly Message[], limits: Limits, kept: number, keptTokens: number): number {
  const { maxMessages, maxTokens, counts } = limits;
  let at = messages.length;
  let tokens = keptTokens;
  while (at > 0 && messages.length - at + 1 + kept <= maxMessages) {
    if (counts) tokens += counts.message(messages[at - 1]!);
    if (tokens > maxTokens) break;
    at--;
  }
  return at;
}
