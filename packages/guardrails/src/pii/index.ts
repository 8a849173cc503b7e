/** Keeps personal data from models, tools, logs and readers. */
import { randomBytes } from 'node:crypto';
import type { GuardContext, Middleware } from 'allium';
import { checkFields, invalidOption, isThenable, type Kind, kinds, type OptionsOf } from 'allium/kit';
import type { Finding } from '../scan/finding.js';
import { SEARCH_FIELDS, searchGuard } from '../scan/guard.js';
import { DEFAULT_TYPES, PII_TYPES, type PiiType, piiDetector } from './detect.js';
import { hashed, masked, redacted } from './strategies.js';
import { tokens } from './tokens.js';

/** A part of a text that your own recognizer found. */
export interface Recognized {
  readonly start: number;
  readonly end: number;
  /** What it is, such as `person` or `address`. */
  readonly kind: string;
}

export const OPTIONS = {
  ...SEARCH_FIELDS,
  /** What to look for. @default everything it knows except `url` */
  types: kinds.listOf(kinds.oneOf(...PII_TYPES)) as Kind<readonly PiiType[]>,
  /**
   * What replaces it: `redact` writes `[email]`, `mask` keeps the last digits, `hash` writes the same code for the
   * same value, `tokenize` writes a placeholder, and tools get the value. @default 'redact'
   */
  strategy: kinds.oneOf('redact', 'mask', 'hash', 'tokenize'),
  /** Your own secret for `hash`, and for `tokenize` in sub-agents. @default a random one for this instance */
  key: kinds.nonEmptyText,
  /** Which tools get the values of placeholders: all, none, or these. @default true */
  restoreTools: kinds.either(kinds.flag, kinds.names) as Kind<boolean | readonly string[]>,
  /**
   * The reader of the answer also gets the values; history, journal and observers keep placeholders. @default false
   */
  restoreAnswer: kinds.flag,
  /**
   * Countries (ISO 3166, such as `GB`) whose national phone numbers count even without a word such as "Tel." before
   * them.
   */
  countries: kinds.listOf(kinds.nonEmptyText),
  /** Addresses and numbers that may pass, such as your own. */
  allow: kinds.listOf(kinds.nonEmptyText),
  /**
   * Finds what no pattern can, such as names and postal addresses: your own model or library. It answers
   * synchronously, and always the same for the same text.
   */
  recognize: kinds.func<(text: string) => readonly Recognized[]>(),
};

export type PiiOptions = OptionsOf<typeof OPTIONS>;

/**
 * Removes personal data from every text, streamed or not: e-mail addresses, phone numbers, card and account numbers,
 * IP and MAC addresses, social security numbers and other national ids, passwords in addresses.
 *
 * @example
 * new Agent({ model, middleware: [pii({ types: ['email', 'phone'], strategy: 'mask' })] });
 */
export function pii(options: PiiOptions = {}): Middleware {
  checkFields('pii()', OPTIONS, options);
  // Without a secret, a number is soon guessed from its hash.
  const {
    types = DEFAULT_TYPES,
    strategy = 'redact',
    key = randomBytes(32).toString('hex'),
    countries = [],
    allow = [],
    recognize,
  } = options;
  if (strategy !== 'tokenize' && (options.restoreTools ?? options.restoreAnswer) !== undefined)
    throw invalidOption('strategy', "'tokenize' beside `restoreTools` and `restoreAnswer`", strategy);
  for (const [i, country] of countries.entries())
    if (!/^[A-Z]{2}$/.test(country))
      throw invalidOption(`countries[${i}]`, 'two capitals such as GB', country);
  const known = piiDetector({ types, countries });
  const allowed = new Set(allow.map((value) => value.toLowerCase()));
  const tokenized =
    strategy === 'tokenize'
      ? tokens({ key, tools: options.restoreTools ?? true, answer: options.restoreAnswer ?? false })
      : undefined;
  const detect = (text: string, from: number, ctx: GuardContext): Finding[] => {
    // First, because they take numbers that values would get.
    const found = tokenized?.strangers(text, ctx) ?? [];
    for (const one of known(text, from)) found.push(one);
    if (recognize) found.push(...recognized(recognize(text)));
    return allowed.size === 0
      ? found
      : found.filter(({ start, end, value = text.slice(start, end) }) => !allowed.has(value.toLowerCase()));
  };
  return searchGuard(options, {
    kind: 'pii',
    hold: options.window ?? 128,
    detect,
    ...(tokenized && {
      more: { state: tokenized.state, afterRun: tokenized.afterRun },
      guard: { restore: tokenized.restore },
    }),
    replace(finding, text, ctx) {
      if (strategy === 'redact') return redacted(finding);
      const written = text.slice(finding.start, finding.end);
      // As it is written, so that tools get exactly that back.
      if (tokenized) return tokenized.placeholder(finding, written, ctx);
      const { value = written } = finding;
      return strategy === 'mask' ? masked(finding, value) : hashed(finding, value, key);
    },
  });
}

/** The failure of a promise would be nobody's. */
function recognized(found: readonly Recognized[]): readonly Recognized[] {
  if (isThenable(found)) throw invalidOption('recognize()', 'a function that returns a list at once', found);
  return found;
}
