/** Keys derived from content. Not for secrets: they only have to be the same for the same input, everywhere. */

/** Canonical JSON: object keys sorted, undefined left out, dates and the like as their own JSON. */
export function canonical(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value === 'number' && Number.isFinite(value)) return `${value}`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if ('toJSON' in value && typeof value.toJSON === 'function') return canonical(value.toJSON());
  let text = '';
  if (Array.isArray(value)) {
    for (const item of value) text += text === '' ? canonical(item) : `,${canonical(item)}`;
    return `[${text}]`;
  }
  const record = value as Record<string, unknown>;
  for (const key of sortedKeys(record)) {
    if (record[key] === undefined) continue;
    text += `${text === '' ? '' : ','}${quoted(key)}:${canonical(record[key])}`;
  }
  return `{${text}}`;
}

/** Text that needs no escapes. */
const BARE = /^[\w .,:;/+-]*$/;

/** As JSON. Keys and short words are most of what is quoted, and need nothing but quotes. */
function quoted(text: string): string {
  return text.length < 40 && BARE.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** Most objects have few keys, for which a real sort costs more than all the rest. */
function sortedKeys(record: object): readonly string[] {
  const keys = Object.keys(record);
  if (keys.length > 8) return keys.sort();
  for (let i = 1; i < keys.length; i++) {
    const key = keys[i]!;
    let at = i;
    for (; at > 0 && keys[at - 1]! > key; at--) keys[at] = keys[at - 1]!;
    keys[at] = key;
  }
  return keys;
}

/** 106 bits in 22 characters: two independently seeded 53-bit mixing hashes, in one pass. */
export function hash(text: string): string {
  return new Hash().text(text).digest();
}

/** A hash that can be gone on with, so that what grows at its end is read once. */
export class Hash {
  private a = 0xdeadbeef ^ 0x9e3779b9;
  private b = 0x41c6ce57 ^ 0x9e3779b9;
  private c = 0xdeadbeef ^ 0x85ebca6b;
  private d = 0x41c6ce57 ^ 0x85ebca6b;

  text(text: string): this {
    let { a, b, c, d } = this;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      a = Math.imul(a ^ code, 2654435761);
      b = Math.imul(b ^ code, 1597334677);
      c = Math.imul(c ^ code, 2654435761);
      d = Math.imul(d ^ code, 1597334677);
    }
    this.a = a;
    this.b = b;
    this.c = c;
    this.d = d;
    return this;
  }

  /** Goes on with what another hash came to. The same as text never is, for the words are wider than characters. */
  hash({ a, b, c, d }: Hash): this {
    const low = lowOf(a, b);
    this.word(low);
    this.word(highOf(b, low));
    const other = lowOf(c, d);
    this.word(other);
    this.word(highOf(d, other));
    return this;
  }

  /** Shifts as well: the upper bits of a whole word would otherwise never reach the lower ones. */
  private word(word: number): void {
    const a = Math.imul(this.a ^ word, 2654435761);
    const b = Math.imul(this.b ^ word, 1597334677);
    const c = Math.imul(this.c ^ word, 2654435761);
    const d = Math.imul(this.d ^ word, 1597334677);
    this.a = a ^ (a >>> 15);
    this.b = b ^ (b >>> 13);
    this.c = c ^ (c >>> 15);
    this.d = d ^ (d >>> 13);
  }

  copy(): Hash {
    const copy = new Hash();
    copy.a = this.a;
    copy.b = this.b;
    copy.c = this.c;
    copy.d = this.d;
    return copy;
  }

  digest(): string {
    return base36(wordOf(this.a, this.b), wordOf(this.c, this.d));
  }
}

/** 53 bits. */
function wordOf(a: number, b: number): number {
  const low = lowOf(a, b);
  return 4294967296 * (2097151 & highOf(b, low)) + (low >>> 0);
}

/** Character codes of all pairs of digits, each pair in a row. */
const PAIRS = Uint8Array.from(
  Array.from({ length: 36 ** 2 }, (_, i) => i.toString(36).padStart(2, '0')).join(''),
  (digit) => digit.charCodeAt(0),
);

/**
 * Two integers below 2^53, each in 11 digits. `toString(36)` of a large number costs more than all the rest of a hash.
 * So each is taken apart into small integers first: three pairs of digits, and five digits.
 */
function base36(one: number, other: number): string {
  const a = Math.floor(one / 36 ** 5) | 0;
  const b = (one - a * 36 ** 5) | 0;
  const c = Math.floor(other / 36 ** 5) | 0;
  const d = (other - c * 36 ** 5) | 0;
  return String.fromCharCode(
    first(a, 36 ** 4),
    second(a, 36 ** 4),
    first(a, 36 ** 2),
    second(a, 36 ** 2),
    first(a, 1),
    second(a, 1),
    second(b, 36 ** 4),
    first(b, 36 ** 2),
    second(b, 36 ** 2),
    first(b, 1),
    second(b, 1),
    first(c, 36 ** 4),
    second(c, 36 ** 4),
    first(c, 36 ** 2),
    second(c, 36 ** 2),
    first(c, 1),
    second(c, 1),
    second(d, 36 ** 4),
    first(d, 36 ** 2),
    second(d, 36 ** 2),
    first(d, 1),
    second(d, 1),
  );
}

/** The first digit of the pair at `unit`. */
function first(value: number, unit: number): number {
  return PAIRS[2 * (((value / unit) | 0) % 36 ** 2)]!;
}

function second(value: number, unit: number): number {
  return PAIRS[2 * (((value / unit) | 0) % 36 ** 2) + 1]!;
}

function lowOf(a: number, b: number): number {
  return Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
}

function highOf(b: number, low: number): number {
  return Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
}

/** What an approval is bound to. */
export function callHash(name: string, args: unknown): string {
  return hash(`${name}\n${canonical(args)}`);
}
