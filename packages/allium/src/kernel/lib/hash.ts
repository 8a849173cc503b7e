/** Keys derived from content. Not for secrets: they only have to be the same for the same input, everywhere. */

/** JSON in which equal values are equal texts: keys sorted, undefined left out, dates and the like as their own JSON. */
export function canonical(value: unknown): string {
  let text = '';
  const open: Open[] = [];
  const write = (given: unknown): void => {
    const item = hasJson(given) ? given.toJSON() : given;
    if (typeof item === 'string') text += quoted(item);
    else if (typeof item === 'number' && Number.isFinite(item)) text += item;
    else if (item === null || typeof item !== 'object') text += JSON.stringify(item) ?? 'null';
    else {
      const isList = Array.isArray(item);
      if (open.length % DEEP === DEEP - 1 && open.some((one) => one.item === item))
        throw new RangeError('Expected JSON without cycles.');
      text += isList ? '[' : '{';
      open.push({
        item: item as Open['item'],
        keys: isList ? undefined : sortedKeys(item),
        at: 0,
        isFirst: true,
      });
    }
  };
  write(value);
  // No recursion: how deep a value is was chosen by whoever wrote it.
  for (let last = open.at(-1); last; last = open.at(-1)) {
    const { item, keys } = last;
    if (last.at === (keys ?? (item as unknown as unknown[])).length) {
      text += keys ? '}' : ']';
      open.pop();
      continue;
    }
    const key = keys ? keys[last.at]! : last.at;
    last.at++;
    if (keys && item[key] === undefined) continue;
    if (!last.isFirst) text += ',';
    last.isFirst = false;
    if (keys) text += `${quoted(key as string)}:`;
    write(item[key]);
  }
  return text;
}

/** A list or object that is being written. */
interface Open {
  readonly item: Readonly<Record<string | number, unknown>>;
  readonly keys: readonly string[] | undefined;
  at: number;
  isFirst: boolean;
}

/** Every so many levels a value is looked at for cycles. */
const DEEP = 1000;

function hasJson(value: unknown): value is { toJSON(): unknown } {
  return (
    typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
  );
}

/** By their codes, characters that need no escapes. */
const BARE = Array.from({ length: 128 }, (_, code) => /[\w .,:;/+-]/.test(String.fromCharCode(code)));

/** As JSON. Keys and short words are most of what is quoted, and need nothing but quotes. */
function quoted(text: string): string {
  return text.length < 40 && isBare(text) ? `"${text}"` : JSON.stringify(text);
}

/** A regular expression takes longer to begin than most texts take to be read. */
function isBare(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (BARE[text.charCodeAt(i)] !== true) return false;
  return true;
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

/** A key of 22 characters for a text, the same everywhere. Good against chance, not against attackers: no secret goes into it. */
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

  /** As its digits. */
  number(value: number): this {
    return this.text(`${value}`);
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

const DIGITS = Uint8Array.from('0123456789abcdefghijklmnopqrstuvwxyz', (digit) => digit.charCodeAt(0));
const codes = new Array<number>(22).fill(0);

/** Two integers below 2^53, each in 11 digits. `toString(36)` of a large number costs more than all the rest of a hash. */
function base36(one: number, other: number): string {
  write(one, 0);
  write(other, 11);
  return String.fromCharCode(...codes);
}

/** From the last digit on, in two halves: integers that are small are several times cheaper to divide. */
function write(value: number, from: number): void {
  const upper = Math.floor(value / 36 ** 5);
  let rest = upper | 0;
  for (let at = from + 5; at >= from; at--) {
    codes[at] = DIGITS[rest % 36]!;
    rest = (rest / 36) | 0;
  }
  rest = (value - upper * 36 ** 5) | 0;
  for (let at = from + 10; at > from + 5; at--) {
    codes[at] = DIGITS[rest % 36]!;
    rest = (rest / 36) | 0;
  }
}

function lowOf(a: number, b: number): number {
  return Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
}

function highOf(b: number, low: number): number {
  return Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
}

/** A key for a tool call: equal for equal names and arguments. */
export function callHash(name: string, args: unknown): string {
  return hash(`${name}\n${canonical(args)}`);
}
