/** Finds keys, tokens and passwords: by their format, by the words before them, and by how random they look. */
import { isPlaceholder } from '../pii/addresses.js';
import { type Detector, type Finding, isWordCode, searchStart } from '../scan/finding.js';
import { inPlainText } from '../scan/plain.js';
import { SECRET_FORMATS, type SecretFormat } from './formats.js';

export interface SecretDetectorOptions {
  /** Also finds what looks random after a word such as `token`, even if its format is unknown. */
  readonly entropy: boolean;
}

/** Makes a detector. Its time is proportional to the length of the text. */
export function secretDetector({ entropy }: SecretDetectorOptions): Detector {
  const detectors: Detector[] = [findFormats, findPrivateKeys, findTokens, findConnectionStrings];
  if (entropy) detectors.push(findAssigned);
  return inPlainText((text, from) => {
    const found: Finding[] = [];
    for (const detect of detectors) for (const one of detect(text, from)) found.push(one);
    return found;
  });
}

// ── Formats ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Formats by the prefix they begin with, the longest first where one begins like another. */
const BY_PREFIX: readonly (readonly [string, SecretFormat])[] = SECRET_FORMATS.flatMap((format) =>
  format.prefixes.map((prefix) => [prefix, format] as const),
).sort((a, b) => b[0].length - a[0].length);

/** The first two characters of prefixes, and those formats. One look at a table rules out nearly every place. */
const BY_START = new Map<number, (readonly [string, SecretFormat])[]>();
const FIRST = new Uint8Array(128);
for (const entry of BY_PREFIX) {
  const key = startKey(entry[0], 0);
  BY_START.set(key, [...(BY_START.get(key) ?? []), entry]);
  FIRST[entry[0].charCodeAt(0)] = 1;
}

function startKey(text: string, at: number): number {
  return text.charCodeAt(at) * 128 + text.charCodeAt(at + 1);
}

/** No key of a vendor is shorter; words of prose hardly ever are this long. */
const SHORTEST_RUN = 18;

function findFormats(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  const start = searchStart(from);
  let run = start;
  // Keys are long runs without spaces, so only those are looked at.
  for (let place = start; place <= text.length; place++) {
    const code = place < text.length ? text.charCodeAt(place) : 32;
    if (code > 32 && code < 127 && code !== 34 && code !== 39 && code !== 96) continue;
    if (place - run >= SHORTEST_RUN) searchRun(text, run, place, found);
    run = place + 1;
  }
  return found;
}

function searchRun(text: string, start: number, end: number, found: Finding[]): void {
  const run = end - start >= 59 ? text.slice(start, end) : '';
  if (run.includes('.')) {
    for (const match of run.matchAll(DISCORD))
      if (/\d/.test(match[0]) && !isExample(match[0]))
        found.push({
          start: start + match.index,
          end: start + match.index + match[0].length,
          kind: 'discord-token',
        });
  }
  for (let place = start; place < end - 15; place++) {
    const code = text.charCodeAt(place);
    if (code > 127 || FIRST[code] === 0) continue;
    const candidates = BY_START.get(startKey(text, place));
    if (!candidates) continue;
    for (const [prefix, { kind, pattern, apart }] of candidates) {
      if (!text.startsWith(prefix, place)) continue;
      if (apart !== false && isWordCode(text.charCodeAt(place - 1))) continue;
      pattern.lastIndex = place;
      if (!pattern.test(text)) continue;
      const last = pattern.lastIndex;
      if (isPattern(text.slice(place + prefix.length, last))) continue;
      found.push({ start: place, end: last, kind });
      place = last - 1;
      break;
    }
  }
}

/** `xxxxxxxx`, `your-key-here`, `abcabcabc…`: these are never keys, whatever stands before them. */
function isPattern(body: string): boolean {
  if (/(.)\1{7}/.test(body) || /your[-_]|placeholder|redacted|xxxx|dummy/i.test(body)) return true;
  return new Set(body.slice(0, 64)).size < Math.min(8, body.length / 3);
}

/** Without the prefix of a vendor, `example-…` and `abcdefgh…` aren't keys either: they are documentation. */
function isExample(body: string): boolean {
  return isPattern(body) || /example|sample|0123456789|123456789|abcdefghij/i.test(body);
}

// ── Private keys ─────────────────────────────────────────────────────────────────────────────────────────────

const KEY_BEGIN = /-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-[23]:/y;
/** No private key is longer. */
const LONGEST_KEY = 16_384;

/**
 * From the header to the footer. Until the footer has come, to the end of the text, so that all of it is held back.
 */
function findPrivateKeys(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  for (const [header, footer] of [
    ['-----BEGIN ', /-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----/g],
    ['PuTTY-User-Key-File-', /Private-MAC: [0-9a-f]+/g],
  ] as const) {
    for (let at = text.indexOf(header, searchStart(from)); at !== -1; at = text.indexOf(header, at + 1)) {
      KEY_BEGIN.lastIndex = at;
      if (!KEY_BEGIN.test(text)) continue;
      const head = KEY_BEGIN.lastIndex;
      const body = text.slice(head, head + LONGEST_KEY);
      footer.lastIndex = 0;
      const match = footer.exec(body);
      if (match && /^(?:\\[rn]|[\s.…]|your|key|here|\[.*?\]|<.*?>)*$/i.test(body.slice(0, match.index)))
        continue;
      const end = match ? head + match.index + match[0].length : bodyEnd(text, head);
      // A header that is only mentioned in prose has no key after it.
      if (end - head < 40 && end < text.length) continue;
      found.push({ start: at, end, kind: 'private-key' });
      at = end - 1;
    }
  }
  return found;
}

/** How far the text after a header without a footer can be a key. */
function bodyEnd(text: string, start: number): number {
  const body = /(?:[A-Za-z0-9+/=]|\\[rn]|[\r\n\t ]|[\w-]+: ?[^\r\n]*[\r\n])*/y;
  body.lastIndex = start;
  body.test(text.length - start > LONGEST_KEY ? text.slice(0, start + LONGEST_KEY) : text);
  return Math.max(start, body.lastIndex);
}

// ── Tokens ───────────────────────────────────────────────────────────────────────────────────────────────────

const JWT = /eyJ[A-Za-z0-9_-]{8,2048}\.eyJ[A-Za-z0-9_-]{8,8192}(?:\.[A-Za-z0-9_-]{10,2048})?/y;
const TELEGRAM = /\b\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])/g;
const TERRAFORM = /\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}/g;
const DISCORD = /\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])/g;
const MAILCHIMP = /\b[0-9a-f]{32}-us\d{1,2}\b/g;
const AZURE = /(?:AccountKey|SharedAccessKey|sharedaccesssignature)=([A-Za-z0-9+/]{43,88}={0,2})/gi;
const AUTHORIZATION = /(?:bearer|basic)\s{1,8}([A-Za-z0-9._~+/-]{16,4096}={0,2})/iy;
const SAS = /[?&]sig=([A-Za-z0-9%+/]{43,120}(?:%3D|=)*)/gi;

function findTokens(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  const start = searchStart(from);
  for (let at = text.indexOf('eyJ', start); at !== -1; at = text.indexOf('eyJ', at + 3)) {
    if (isTokenCode(text.charCodeAt(at - 1))) continue;
    JWT.lastIndex = at;
    if (JWT.test(text)) {
      found.push({ start: at, end: JWT.lastIndex, kind: 'jwt' });
      at = JWT.lastIndex - 3;
    }
  }
  if (text.indexOf(':AA', start) !== -1) search(text, start, TELEGRAM, 'telegram-token', found);
  if (text.indexOf('.atlasv1.', start) !== -1) search(text, start, TERRAFORM, 'terraform-token', found);
  if (text.indexOf('-us', start) !== -1) search(text, start, MAILCHIMP, 'mailchimp-key', found);
  if (text.indexOf('Key=', start) !== -1) search(text, start, AZURE, 'azure-key', found);
  if (text.indexOf('sig=', start) !== -1) search(text, start, SAS, 'azure-sas', found);
  for (const word of ['earer ', 'asic ', 'EARER ', 'ASIC '])
    for (let at = text.indexOf(word, start); at !== -1; at = text.indexOf(word, at + 1)) {
      AUTHORIZATION.lastIndex = at - 1;
      const value = AUTHORIZATION.exec(text)?.[1];
      if (value === undefined || !looksRandom(value) || isExample(value)) continue;
      found.push({
        start: AUTHORIZATION.lastIndex - value.length,
        end: AUTHORIZATION.lastIndex,
        kind: 'authorization',
      });
    }
  return found;
}

/** Adds the first group of every match, or the whole match. */
function search(
  text: string,
  start: number,
  pattern: RegExp,
  kind: string,
  found: Finding[],
  counts: (value: string) => boolean = () => true,
): void {
  pattern.lastIndex = start;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const value = match[1] ?? match[0];
    const end = match.index + match[0].length;
    if (counts(value) && !isExample(value)) found.push({ start: end - value.length, end, kind });
  }
}

function isTokenCode(code: number): boolean {
  return isWordCode(code) || code === 45 || code === 43 || code === 47;
}

// ── Connection strings ───────────────────────────────────────────────────────────────────────────────────────

const CONNECTION =
  /(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|sqlserver|oracle|clickhouse|cockroachdb|ldaps?|smtps?|imaps?|ftps?|sftp|kafka|nats|jdbc:\w+|https?)$/i;
const USER_AND_PASSWORD = /:\/\/([^\s/?#@:<>"'`]{0,128}):([^\s/?#@<>"'`]{1,256})@(?=[\w[])/y;
const PASSWORD_PART = /;\s*(?:password|pwd)\s*=\s*([^;"'\s]{3,128})/gi;

function findConnectionStrings(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  const start = searchStart(from);
  for (let at = text.indexOf('://', start); at !== -1; at = text.indexOf('://', at + 3)) {
    USER_AND_PASSWORD.lastIndex = at;
    const match = USER_AND_PASSWORD.exec(text);
    if (!match || !CONNECTION.test(text.slice(Math.max(0, at - 24), at))) continue;
    const password = match[2]!;
    if (isPlaceholder(password)) continue;
    const end = at + match[0].length - 1;
    found.push({ start: end - password.length, end, kind: 'connection-string' });
  }
  if (text.indexOf(';', start) !== -1)
    search(text, start, PASSWORD_PART, 'connection-string', found, (value) => !isPlaceholder(value));
  return found;
}

// ── What looks random ────────────────────────────────────────────────────────────────────────────────────────

/**
 * A word that says "secret", as a name in code, an environment or a form, at the end of the text before `=`, `:` or
 * `is`.
 */
const SECRET_NAME =
  /(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|(?:api|access|auth|private|encryption|signing|account|master|license|service|app)[_ -]?key)s?(?:[_ -]?(?:id|key|value|string|hash|prod|dev|live|test|v\d))?["'\])]{0,2}\s{0,4}$/i;
const VALUE = /[>=]?\s{0,4}["'`]?([^\s"'`,;<>(){}]{8,512})/y;

function findAssigned(text: string, from: number): Finding[] {
  const found: Finding[] = [];
  const start = searchStart(from);
  for (let place = start; place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (code === 61 || code === 58) assignedAt(text, place, place + 1, found);
  }
  for (const verb of [' is ', ' was '])
    for (let at = text.indexOf(verb, start); at !== -1; at = text.indexOf(verb, at + 1))
      assignedAt(text, at, at + verb.length, found);
  return found;
}

/** `name` ends at `nameEnd`; its value is at `place` or a little after it. */
function assignedAt(text: string, nameEnd: number, place: number, found: Finding[]): void {
  VALUE.lastIndex = place;
  const value = VALUE.exec(text)?.[1];
  if (value === undefined) return;
  if (!SECRET_NAME.test(text.slice(Math.max(0, nameEnd - 40), nameEnd))) return;
  const end = VALUE.lastIndex;
  if (isSecretValue(value) && !isExample(value))
    found.push({ start: end - value.length, end, kind: 'high-entropy' });
}

/** Is the text after such a word a secret, and not a name, path or expression? */
function isSecretValue(value: string): boolean {
  if (isPlaceholder(value)) return false;
  const plain = value.replace(/[.,;:!?)\]}]+$/, '');
  if (
    /^(?:https?:|\/|\.\/|~\/|process\.|os\.|env\.|import\.|config\.|this\.|self\.|req\.|ctx\.|\$|@|#|--)/i.test(
      plain,
    )
  )
    return false;
  // Names in code: words joined by dots, underscores, capitals or dashes.
  if (/^[A-Za-z]+(?:[._-][A-Za-z]+)*$/.test(plain) && !looksRandom(plain)) return false;
  return looksRandom(plain) || looksLikePassword(plain);
}

/** Entropy per character, in bits, of a value long enough to tell. */
function looksRandom(value: string): boolean {
  if (value.length < 16) return false;
  const piece = value.slice(0, 256);
  const bits = entropyOf(piece);
  if (/^[0-9a-f-]+$/i.test(piece)) return bits > 2.8 && /\d/.test(piece) && /[a-f]/i.test(piece);
  if (!/\d/.test(piece)) return bits > 4.2 && /[a-z]/.test(piece) && /[A-Z]/.test(piece) && !isWords(piece);
  return bits > 3.4 && !isWords(piece);
}

/** Short, but of three kinds of characters, as passwords have to be. */
function looksLikePassword(value: string): boolean {
  if (value.length < 8 || value.length > 64) return false;
  const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(value)).length;
  return kinds >= 3 && !/^[A-Za-z_$][\w$]*[.([]/.test(value) && !isWords(value);
}

/** Several words of letters, joined: a sentence as a name. */
function isWords(value: string): boolean {
  const words = value.split(/[._/:-]|(?<=[a-z])(?=[A-Z])/).filter((word) => word !== '');
  if (words.length < 2) return /^[a-z]+$|^[A-Z][a-z]+$/.test(value);
  const plain = words.filter((word) => /^(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,4}|v\d+)$/.test(word)).length;
  return plain / words.length > 0.7;
}

function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}
