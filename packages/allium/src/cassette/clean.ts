/** Removes what differs from run to run, and what nobody may read, from everything that is written or compared. */

import { type Fields, hasRepeatedKeys, kinds } from '../kit/index.js';
import { isCredentialHeader, MASK, masking, PATTERN, type Pattern } from './secrets.js';

/** Options of both `record` and `replay`. Both need the same ones, or their keys differ. */
export const CLEANING = {
  /** Texts and expressions that are never written, besides secrets from the environment and authorization headers. */
  redact: kinds.withDefault(
    kinds.secret(kinds.listOf(PATTERN, 'a list of texts and regular expressions')),
    [],
  ),
  /**
   * Applied to every text of a question before it is compared and written: for dates and other things that change
   * each time.
   */
  normalise: kinds.func<(text: string) => string>(),
} satisfies Fields;

interface Cleans {
  readonly redact?: readonly Pattern[] | undefined;
  readonly normalise?: ((text: string) => string) | undefined;
}

export interface Cleaner {
  text(text: string): string;
  /** Any JSON value: texts, keys and numbers at any depth. */
  value<T>(value: T): T;
  /** JSON text, which remains valid JSON. */
  json(text: string): string;
}

/** The ids of this run, which a cassette replaces with these words. */
interface Ids {
  readonly runId: string;
  readonly sessionId: string;
}

export interface Cleaning {
  /** For questions: a request, or the arguments of a call. */
  question(ids: Ids): Cleaner;
  /** For answers. */
  answer(ids: Ids): Cleaner;
}

export function cleaning({ redact = [], normalise }: Cleans): Cleaning {
  const masks = masking(redact);
  return {
    question(ids) {
      const mask = masks();
      return cleaner((text) => withoutIds(mask(normalise ? String(normalise(text)) : text), ids));
    },
    answer(ids) {
      const mask = masks();
      return cleaner((text) => withoutIds(mask(text), ids));
    },
  };
}

/** Puts the ids of this run in the place of those of the recorded run. */
export function withIds({ runId, sessionId }: Ids): Cleaner {
  return cleaner((text) => text.replaceAll('{{runId}}', runId).replaceAll('{{sessionId}}', sessionId));
}

/**
 * Only ids that were made for this run: short ones may be part of anything, and chosen ones are the same next time.
 */
function withoutIds(text: string, { runId, sessionId }: Ids): string {
  let made = text;
  if (runId.length >= 8) made = made.replaceAll(runId, '{{runId}}');
  if (sessionId.length >= 8 && /\d|^s_/.test(sessionId)) made = made.replaceAll(sessionId, '{{sessionId}}');
  return made;
}

/** Under these keys stand names of this package, even if something of the run is called the same. */
const TAGS = new Set(['type', 'role', 'reason', 'finish']);
const TAG =
  /^(text|image|file|thinking|tool-call|tool-call-delta|provider|user|assistant|tool|stop|tool-calls|length|content-filter|error|other|aborted)$/;

function cleaner(text: (text: string) => string): Cleaner {
  const walk = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string') {
      if (isCredentialHeader(key)) return MASK;
      return TAGS.has(key) && TAG.test(value) ? value : text(value);
    }
    if (typeof value === 'number' || typeof value === 'bigint') {
      const seen = text(String(value));
      return seen === String(value) ? value : seen;
    }
    if (typeof value !== 'object' || value === null) return value;
    if ('toJSON' in value && typeof value.toJSON === 'function') return walk(value.toJSON(), key);
    if (Array.isArray(value)) return value.map((item) => walk(item, key));
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return Object.fromEntries(entries.map(([name, item]) => [text(name), walk(item, name)]));
  };
  const json = (given: string): string => {
    const plain = text(given);
    let value: unknown;
    try {
      value = JSON.parse(given);
    } catch {
      return plain;
    }
    const cleaned = JSON.stringify(walk(value));
    const same = plain === given && cleaned === JSON.stringify(value) && !hasRepeatedKeys(given, value);
    return same ? given : cleaned;
  };
  return { text, value: <T>(value: T) => walk(value) as T, json };
}
