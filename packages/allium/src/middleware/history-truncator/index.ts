/** Shows the model the latest messages only: a window that slides over the history. */
import { cutBackward, cutForward } from '../../context-window/cut.js';
import { lastLasting, PinIndex } from '../../context-window/pins.js';
import type { TokenCounter } from '../../context-window/token-counter.js';
import { meterFor, type TokenMeter } from '../../context-window/token-meter.js';
import { AlliumError } from '../../kernel/errors.js';
import type { Message } from '../../kernel/messages.js';
import { defineMiddleware, type Middleware } from '../../kernel/middleware.js';
import { checkInteger, checkNamed, type NamedOptions } from '../../kernel/options.js';

export type { TokenCounter } from '../../context-window/token-counter.js';

export interface HistoryTruncatorOptions extends NamedOptions {
  /** Messages a request may have: an integer ≥ 1. @default no limit */
  readonly maxMessages?: number;
  /** Tokens the messages of a request may take: an integer ≥ 1. @default no limit */
  readonly maxTokens?: number;
  /** Counts the tokens of a text. @default `gpt-tokenizer` or `tokenx` where installed, else an estimate */
  readonly tokenCounter?: TokenCounter;
}

/**
 * Leaves the oldest messages out of requests that are too long. No result is sent without its call; pinned messages
 * and the latest one of the user always are.
 *
 * @example
 * new Agent({ model, middleware: [historyTruncator({ maxMessages: 3 })] });
 */
export function historyTruncator(options: HistoryTruncatorOptions): Middleware {
  checkNamed('historyTruncator', options, ['maxMessages', 'maxTokens', 'tokenCounter']);
  const { maxMessages = Number.POSITIVE_INFINITY, maxTokens = Number.POSITIVE_INFINITY } = options;
  if (options.maxMessages === undefined && options.maxTokens === undefined)
    throw new AlliumError(
      'INVALID_OPTION',
      'historyTruncator() got nothing to limit. Give `maxMessages` or `maxTokens`.',
    );
  if (options.maxMessages !== undefined) checkInteger('maxMessages', maxMessages, 1);
  if (options.maxTokens !== undefined) checkInteger('maxTokens', maxTokens, 1);
  const meter = meterFor(options.tokenCounter);
  const pins = new PinIndex();
  return defineMiddleware({
    name: options.name ?? 'history-truncator',
    async transformContext(messages) {
      const counts = options.maxTokens === undefined ? undefined : await meter();
      const fits = messages.length <= maxMessages && (!counts || counts.sum(messages) <= maxTokens);
      return fits ? messages : windowOf(messages, { maxMessages, maxTokens, counts, pins });
    },
  });
}

interface Limits {
  readonly maxMessages: number;
  readonly maxTokens: number;
  readonly counts: TokenMeter | undefined;
  readonly pins: PinIndex;
}

/** What stays of the older messages takes room from the latest, and how much stays depends on where those begin. */
function windowOf(messages: readonly Message[], limits: Limits): readonly Message[] {
  const { pins, counts } = limits;
  const last = lastLasting(messages);
  const lastUser = pins.of(messages).lastUser;
  const stay = lastUser < 0 ? [] : [lastUser];
  let cut = 0;
  let kept: readonly number[] = [];
  for (;;) {
    const tokens = counts ? kept.reduce((sum, index) => sum + counts.message(messages[index]!), 0) : 0;
    const next = Math.max(cut, cutForward(messages, begin(messages, limits, kept.length, tokens)));
    // There is always something to answer: at least the last message, with the calls it belongs to.
    cut = next > last ? cutBackward(messages, 0, last) : next;
    const now = pins.before(messages, cut, stay);
    const settled = next > last || now.length === kept.length;
    kept = now;
    if (settled) return [...kept.map((index) => messages[index]!), ...messages.slice(cut)];
  }
}

/** Where the latest messages begin that fit beside what stays. */
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
