/** Keeps keys, tokens and passwords from models, tools, logs and readers. */
import type { Middleware } from 'allium';
import { checkFields, kinds, type OptionsOf } from 'allium/kit';
import { SEARCH_FIELDS, searchGuard } from '../scan/guard.js';
import { secretDetector } from './detect.js';

export const OPTIONS = {
  ...SEARCH_FIELDS,
  /** Also find what looks random after a word such as `password` or `token`, whatever its format. @default true */
  entropy: kinds.flag,
  /** Texts that look like secrets but aren't, such as keys of a public test account. */
  allow: kinds.listOf(kinds.nonEmptyText),
};

export type SecretsOptions = OptionsOf<typeof OPTIONS>;

/**
 * Cuts out secrets: formats of more than fifty vendors, private keys, JWTs, connection strings, and random text after a
 * word such as `token`.
 *
 * @example
 * new Agent({ model, middleware: [secrets()] });
 */
export function secrets(options: SecretsOptions = {}): Middleware {
  checkFields('secrets()', OPTIONS, options);
  const { entropy = true, allow = [] } = options;
  const detect = secretDetector({ entropy });
  const allowed = new Set(allow);
  return searchGuard(options, {
    kind: 'secrets',
    hold: options.window ?? 128,
    severity: 'high',
    detect: (text, from) =>
      allowed.size === 0
        ? detect(text, from)
        : detect(text, from).filter(({ start, end, value = text.slice(start, end) }) => !allowed.has(value)),
    replace: ({ kind }) => `[${kind}]`,
  });
}
