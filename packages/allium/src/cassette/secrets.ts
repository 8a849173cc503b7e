/** Finds secrets in text: values from the environment, authorization headers, and what the user specifies. */

import { type Kind, kinds } from '../kit/index.js';

/** Text that may not be written, or an expression that finds it. */
export type Pattern = string | RegExp;

export const MASK = '[redacted]';

/** Variables whose names contain one of these hold secrets, if they are too long to be words. */
const NAMES = /KEY|TOKEN|SECRET/i;
const MIN_LENGTH = 8;

/** Headers that carry credentials, as keys of an object. */
const HEADERS = /^(?:(?:proxy-)?authorization|x-api-key|api-key|cookie|set-cookie)$/i;

/** The same as text: `Authorization: Bearer …`, in JSON, in quotes, in a command line. */
const IN_TEXT =
  /((?:proxy-)?authorization\\*["']?\s*[:=]\s*\\*["']?)((?:digest|aws4-hmac-sha256)\s[^\r\n]*|(?:basic|bearer|token|apikey|negotiate|ntlm)\s+[^\s"'\\]+|[^\s"'\\,;]{8,})/gi;

/** A token without its header. Tokens have digits in them, the words that follow "bearer" in a sentence do not. */
const BEARER = /\b(bearer\s+)(?=\S*\d)[\w.~+/-]{8,}=*/gi;

export function isCredentialHeader(name: string): boolean {
  return HEADERS.test(name);
}

export type Mask = (text: string) => string;

/** Makes masks for what is secret now. Keys may be loaded late, so the environment is read again for each call. */
export function masking(patterns: readonly Pattern[]): () => Mask {
  const own = patterns.map((pattern) =>
    typeof pattern === 'string'
      ? literal([pattern])!
      : new RegExp(pattern.source, `${pattern.flags.replace(/[gy]/g, '')}g`),
  );
  let known = '';
  let values: RegExp | undefined;
  return () => {
    const secrets = environment();
    const current = secrets.join('\n');
    if (current !== known) [known, values] = [current, literal(secrets)];
    const all = values ? [values, ...own] : own;
    return (text) => {
      let masked = text.replace(IN_TEXT, `$1${MASK}`).replace(BEARER, `$1${MASK}`);
      for (const pattern of all) masked = masked.replace(pattern, (found) => (found === '' ? '' : MASK));
      return masked;
    };
  };
}

export const PATTERN: Kind<Pattern> = kinds.kind(
  'non-empty text or a regular expression',
  (value) => (typeof value === 'string' ? value !== '' : value instanceof RegExp),
  { schema: kinds.nonEmptyText.schema! },
);

/** Looks at names first: reading a value is a call to the system. */
function environment(): string[] {
  const values: string[] = [];
  for (const name of Object.keys(process.env)) {
    const value = NAMES.test(name) ? process.env[name] : undefined;
    if (value !== undefined && value.length >= MIN_LENGTH) values.push(value);
  }
  return values;
}

/** Finds any of these texts, also as they are written in JSON, in JSON inside JSON, and in addresses. */
function literal(texts: readonly string[]): RegExp | undefined {
  const forms = new Set(texts.flatMap((text) => [text, inJson(text), inJson(inJson(text)), inAddress(text)]));
  if (forms.size === 0) return undefined;
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map((form) => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), 'g');
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function inAddress(text: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    // Half a surrogate pair has no place in an address.
    return text;
  }
}
