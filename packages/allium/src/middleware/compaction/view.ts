/** The request as compaction shows it: the summary, what stays as it was, and the latest messages. */

import { cutBackward } from '../../context-window/cut.js';
import { isPassing, lastLasting, type PinIndex } from '../../context-window/pins.js';
import type { TokenMeter } from '../../context-window/token-meter.js';
import type { Message, UserMessage } from '../../index.js';
import type { CompactionState } from './state.js';
import { summaryMessage } from './summary.js';

/** Where the messages that a summary stands for end, and which of them are still shown. */
export interface Place {
  readonly lastId: string | null;
  readonly cut: number;
  readonly kept: readonly number[];
}

const AT_START: Place = Object.freeze({ lastId: null, cut: 0, kept: [] });

/** Finds the place of a summary in a list. Once per list, because it only grows at its end. */
export class Places {
  private readonly known = new WeakMap<readonly Message[], Place>();

  constructor(private readonly pins: PinIndex) {}

  of(messages: readonly Message[], state: CompactionState): Place {
    const lastId = state.lastSummarizedMessageId;
    if (lastId === null) return AT_START;
    const known = this.known.get(messages);
    if (known?.lastId === lastId && messages[known.cut - 1]?.id === lastId) return known;
    let at = messages.findLastIndex(({ id }) => id === lastId);
    if (at < 0) {
      // Another middleware left that message out. Any other of the last round shows the place as well.
      const ids = new Set(state.summarizedMessageIds);
      at = messages.findLastIndex(({ id }) => ids.has(id));
    }
    const place = { lastId, cut: at + 1, kept: this.pins.before(messages, at + 1) };
    this.known.set(messages, place);
    return place;
  }
}

const whole = new WeakMap<CompactionState, CompactionState>();

/**
 * A summary with the ids of all messages it stands for, if it has only those of the last round: the history up to
 * there doesn't change.
 */
export function wholeOf(
  history: readonly Message[],
  state: CompactionState,
  pins: PinIndex,
): CompactionState {
  const known = whole.get(state);
  if (known) return known;
  const lastId = state.lastSummarizedMessageId;
  const cut = lastId === null ? 0 : history.findLastIndex(({ id }) => id === lastId) + 1;
  if (cut === 0) return state;
  const kept = new Set(pins.before(history, cut));
  const ids = history.slice(0, cut).flatMap(({ id }, index) => (kept.has(index) ? [] : [id]));
  const made = Object.freeze({ ...state, summarizedMessageIds: Object.freeze(ids) });
  whole.set(state, made);
  return made;
}

/** The messages that show summaries, each made once, so that those who count or compare one find the same object. */
export class ShownSummaries {
  private readonly made = new WeakMap<CompactionState, UserMessage>();

  constructor(private readonly prefix: string) {}

  of(state: CompactionState): UserMessage {
    let message = this.made.get(state);
    if (!message) {
      message = summaryMessage(state.summary, this.prefix);
      this.made.set(state, message);
    }
    return message;
  }
}

/** Which of the messages that the summary stands for are shown: those that stay, and the questions of the run. */
export function keptOf({ cut, kept }: Place, questions: readonly number[]): readonly number[] {
  const older = questions.filter((index) => index < cut && !kept.includes(index));
  return older.length === 0 ? kept : [...kept, ...older].sort((a, b) => a - b);
}

export function viewOf(
  messages: readonly Message[],
  state: CompactionState,
  shown: ShownSummaries,
  place: Place,
  questions: readonly number[],
): readonly Message[] {
  if (state.lastSummarizedMessageId === null) return messages;
  const kept = keptOf(place, questions).map((index) => messages[index]!);
  return [shown.of(state), ...kept, ...messages.slice(place.cut)];
}

/** Messages that a round would put into the summary. */
export interface Range {
  /** The tail begins here. */
  readonly cut: number;
  readonly messages: readonly Message[];
  readonly tokens: number;
  /** The questions of the run among them. They are summarised for later, but shown as long as the run lasts. */
  readonly shown: readonly Message[];
}

interface Known {
  readonly meter: TokenMeter;
  readonly pins: PinIndex;
}

/** What the tail consists of. */
export interface Tail {
  /** As many of the latest messages as fit into this. */
  readonly tokens: number;
  /** What the model has not read yet stays, up to this size; undefined if the request must become shorter. */
  readonly unread: number | undefined;
}

/** Everything from `start` up to the tail, without what stays as it is. */
export function rangeOf(
  messages: readonly Message[],
  start: number,
  { tokens: tailTokens, unread }: Tail,
  { meter, pins, questions }: Known & { readonly questions: readonly number[] },
): Range {
  let cut = leastTail(messages, unread, meter);
  let tail = cut >= start ? meter.between(messages, cut, messages.length) : 0;
  while (cut > start) {
    tail += meter.message(messages[cut - 1]!);
    if (tail > tailTokens) break;
    cut--;
  }
  cut = cut > start ? cutBackward(messages, start, cut) : start;
  const range = within(messages, start, cut, { meter, pins });
  const shown = questions.map((index) => messages[index]!).filter((one) => range.messages.includes(one));
  return { cut, ...range, shown };
}

/**
 * The latest place where the tail may begin. A summary is all the model would ever read of messages it hasn't read
 * yet, so everything since its last answer stays; if that is too much, the results it asked for. In any case the last
 * message of the history stays: what a middleware put after it is no tail by itself.
 */
function leastTail(messages: readonly Message[], unread: number | undefined, meter: TokenMeter): number {
  const last = lastLasting(messages);
  if (unread === undefined) return last;
  const first = messages.findLastIndex((message) => message.role === 'assistant' && !isPassing(message)) + 1;
  if (meter.between(messages, first, messages.length) <= unread) return Math.min(first, last);
  const result = messages.findLastIndex(({ role }) => role === 'tool');
  return result >= first ? Math.min(result, last) : last;
}

/** The messages from `start` to `cut` that are to be summarised. */
export function within(
  messages: readonly Message[],
  start: number,
  cut: number,
  { meter, pins }: Known,
): { readonly messages: readonly Message[]; readonly tokens: number } {
  const kept = new Set(pins.before(messages, cut));
  const range: Message[] = [];
  let tokens = 0;
  for (let i = start; i < cut; i++) {
    if (kept.has(i)) continue;
    range.push(messages[i]!);
    tokens += meter.message(messages[i]!);
  }
  return { messages: range, tokens };
}
