/** Keys derived from content: equal input gives equal keys, everywhere. Not for secrets. */

/** JSON text that is equal for equal values: keys are sorted, undefined is left out, `toJSON` is used. */
export function canonicalJson(value: unknown): string {
  let text = '';
  const above: object[] = [];
  // A stack and no recursion, because a value may be nested deeper than calls can be.
  const rest: Piece[] = [{ text: '', value }];
  for (let piece = rest.pop(); piece; piece = rest.pop()) {
    text += piece.text;
    if (piece.ends) {
      above.pop();
      continue;
    }
    const item = hasJson(piece.value) ? piece.value.toJSON() : piece.value;
    if (item === null || typeof item !== 'object') {
      text += JSON.stringify(item) ?? 'null';
      continue;
    }
    if (above.length % DEEP === DEEP - 1 && above.includes(item))
      throw new RangeError('Expected JSON without cycles.');
    above.push(item);
    const isList = Array.isArray(item);
    text += isList ? '[' : '{';
    rest.push({ text: isList ? ']' : '}', ends: true });
    const inside = isList ? piecesOf(item) : fieldsOf(item as Record<string, unknown>);
    for (const one of inside.reverse()) rest.push(one);
  }
  return text;
}

/** What remains to be written: a text and a value after it, or the end of a list or object. */
interface Piece {
  readonly text: string;
  readonly value?: unknown;
  readonly ends?: boolean;
}

/** A value is checked for cycles every so many levels. */
const DEEP = 1000;

function piecesOf(list: readonly unknown[]): Piece[] {
  return Array.from(list, (value, i) => ({ text: i > 0 ? ',' : '', value }));
}

function fieldsOf(record: Readonly<Record<string, unknown>>): Piece[] {
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  return keys
    .sort()
    .map((key, i) => ({ text: `${i > 0 ? ',' : ''}${JSON.stringify(key)}:`, value: record[key] }));
}

function hasJson(value: unknown): value is { toJSON(): unknown } {
  return (
    typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
  );
}

/** A key of 22 characters for a text. Collisions are unlikely by chance, but an attacker can make them. */
export function hash(text: string): string {
  return new Hash().text(text).digest();
}

/** A hash that can be extended, so that a growing text is only read once. */
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

  /** Adds a number as its digits. */
  number(value: number): this {
    return this.text(`${value}`);
  }

  /** Adds another hash. No text can add the same, because hash words are wider than characters. */
  hash({ a, b, c, d }: Hash): this {
    const low = lowOf(a, b);
    this.word(low);
    this.word(highOf(b, low));
    const other = lowOf(c, d);
    this.word(other);
    this.word(highOf(d, other));
    return this;
  }

  /** Shifts after multiplying, or the upper bits of a word would never reach the lower ones. */
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
    return wordOf(this.a, this.b) + wordOf(this.c, this.d);
  }
}

/** 53 bits, in 11 characters. */
function wordOf(a: number, b: number): string {
  const low = lowOf(a, b);
  const bits = 4294967296 * (2097151 & highOf(b, low)) + (low >>> 0);
  return bits.toString(36).padStart(11, '0');
}

function lowOf(a: number, b: number): number {
  return Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
}

function highOf(b: number, low: number): number {
  return Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
}

/** A key for a tool call: equal for equal names and arguments. */
export function toolCallKey(name: string, args: unknown): string {
  return hash(`${name}\n${canonicalJson(args)}`);
}
