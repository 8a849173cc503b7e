/** What compaction remembers with the session. */

import { defineState, type StateCell } from '../../index.js';

/** The summary and what it stands for. JSON. */
export interface CompactionState {
  /** Empty as long as nothing was summarised. */
  readonly summary: string;
  readonly lastSummarizedMessageId: string | null;
  readonly summarizedMessageIds: readonly string[];
  /** The summariser failed, so the summary was made without it. */
  readonly isFallback: boolean;
}

const NO_SUMMARY: CompactionState = Object.freeze({
  summary: '',
  lastSummarizedMessageId: null,
  summarizedMessageIds: Object.freeze([]),
  isFallback: false,
});

/** How earlier rounds went. */
export interface Progress {
  /** Calls of the summariser that failed since the last successful one. */
  readonly failures: number;
  /** Rounds without a call, since the last call. */
  readonly fallbackRounds: number;
  /** Rounds in a row that saved too little. */
  readonly poorRounds: number;
  /** The last message at the last round; null before the first. */
  readonly lastRoundAt: string | null;
  /**
   * The last message when the summary was put in: what answers up to here reported says nothing about the request
   * now.
   */
  readonly viewSince: string | null;
  /** The last summary that a model wrote, while fallbacks replace the next. */
  readonly written: { readonly summary: string; readonly lastId: string | null } | null;
}

const NO_PROGRESS: Progress = Object.freeze({
  failures: 0,
  fallbackRounds: 0,
  poorRounds: 0,
  lastRoundAt: null,
  viewSince: null,
  written: null,
});

export interface CompactionCells {
  readonly summary: StateCell<CompactionState>;
  readonly progress: StateCell<Progress>;
}

export function compactionCells(): CompactionCells {
  return {
    summary: defineState({ name: 'summary', scope: 'session', initial: NO_SUMMARY }),
    progress: defineState({ name: 'progress', scope: 'session', initial: NO_PROGRESS }),
  };
}

/** Failures in a row after which the summariser is left alone. */
const MAX_FAILURES = 3;
/** Rounds it is left alone for. */
const FALLBACK_ROUNDS = 5;
/** Rounds that save less than this part of the request are poor. */
const MIN_SAVINGS = 0.1;
/** After this many poor rounds there are no more, until one of these is true. */
const MAX_POOR_ROUNDS = 2;
export const THRASH_NEW_MESSAGES = 8;
const THRASH_SIZE = 1.5;

/** May the summariser be called? After enough rounds without it, it gets one try. */
export function mayCall({ failures, fallbackRounds }: Progress): boolean {
  return failures < MAX_FAILURES || fallbackRounds >= FALLBACK_ROUNDS;
}

export function isOpen({ failures }: Progress): boolean {
  return failures >= MAX_FAILURES;
}

export function afterFailure(progress: Progress): Progress {
  return { ...progress, failures: Math.min(progress.failures + 1, MAX_FAILURES), fallbackRounds: 0 };
}

export function afterRound(progress: Progress, saved: number, size: number, at: string | null): Progress {
  const poor = saved < size * MIN_SAVINGS;
  return { ...progress, poorRounds: poor ? progress.poorRounds + 1 : 0, lastRoundAt: at };
}

/** Would another round be like the last ones, with the same cost and hardly anything saved? */
export function isThrashing(
  { poorRounds }: Progress,
  { newMessages, size, maxTokens }: { newMessages: number; size: number; maxTokens: number },
): boolean {
  return poorRounds >= MAX_POOR_ROUNDS && newMessages < THRASH_NEW_MESSAGES && size < maxTokens * THRASH_SIZE;
}
