/** Reads the texts in a JSON value (keys, strings and numbers, at any depth) and replaces them. */

/** A text in pieces, which readers see joined. */
export type Text = readonly string[];

/** Every text of the value, in order. */
export function textsIn(value: unknown): string[] {
  const out: string[] = [];
  mapTexts(value, (text) => {
    out.push(text);
    return text;
  });
  return out;
}

/** The same value with its texts replaced, in the same order. Unchanged parts are kept. */
export function withTexts(value: unknown, texts: readonly string[]): unknown {
  let i = 0;
  return mapTexts(value, () => texts[i++] ?? '');
}

/** The same value with `each` applied to its strings and keys. Numbers stay as they are. */
export function mapStrings(value: unknown, each: (text: string) => string): unknown {
  return mapTexts(value, (text, _, isNumber) => (isNumber ? text : each(text)));
}

/** The texts in something, and the way to put others in their place. */
export interface Lens<T> {
  readonly texts: readonly Text[];
  /** `left`: each text after the change. */
  put(left: readonly Text[]): T;
}

/**
 * Groups strings into texts: those with the same key are pieces of one text; one without a key is a separate text. `put`
 * gets one string for each of these.
 */
export function lens<T>(
  strings: readonly string[],
  keys: readonly unknown[],
  put: (left: readonly string[]) => T,
): Lens<T> {
  const texts: string[][] = [];
  const known = new Map<unknown, number>();
  const places = strings.map((text, i): readonly [number, number] => {
    const key = keys[i];
    const at = known.get(key) ?? texts.length;
    if (at === texts.length) texts.push([]);
    if (key !== undefined) known.set(key, at);
    return [at, texts[at]!.push(text) - 1];
  });
  return { texts, put: (left) => put(places.map(([at, piece]) => left[at]?.[piece] ?? '')) };
}

/** The texts of a JSON value. Text blocks in one list are pieces of one text, as they are in a message. */
export function textsOfValue(value: unknown): Lens<unknown> {
  const strings: string[] = [];
  const keys: unknown[] = [];
  mapTexts(value, (text, key) => {
    strings.push(text);
    keys.push(key);
    return text;
  });
  return lens(strings, keys, (left) => withTexts(value, left));
}

/** A list or object that is being walked, and its copy so far. */
interface Frame {
  readonly items: readonly unknown[];
  /** The keys of an object; undefined for a list. */
  readonly keys: readonly string[] | undefined;
  readonly list: unknown[];
  readonly object: Map<string, unknown>;
  at: number;
  /** The new key of the current item. */
  key: string;
  /** For a text block in a list: a token it shares with the other text blocks there. */
  readonly block: object | undefined;
  /** For a list: the tokens of its blocks, by their type. */
  readonly blocks: Record<string, object>;
}

const OPEN = Symbol('open');

/**
 * The value with `each` applied to its texts, in order. `block` is the same for text blocks of one list. No recursion,
 * because a value may be nested deeper than calls can be.
 */
function mapTexts(
  value: unknown,
  each: (text: string, block?: object, isNumber?: boolean) => string,
): unknown {
  const frames: Frame[] = [];
  const enter = (item: unknown, within?: Frame): unknown => {
    if (typeof item === 'string') {
      const inBlock = within?.keys?.[within.at - 1] === 'text';
      return each(item, inBlock ? within.block : undefined);
    }
    if (typeof item === 'number') {
      const text = each(String(item), undefined, true);
      return text === String(item) ? item : text;
    }
    if (typeof item !== 'object' || item === null) return item;
    const keys = Array.isArray(item) ? undefined : Object.keys(item);
    const { type } = item as { readonly type?: unknown };
    const isBlock = within !== undefined && !within.keys && (type === 'text' || type === 'thinking');
    if (isBlock) within.blocks[type] ??= {};
    const block = isBlock ? within.blocks[type] : undefined;
    const items = Object.values(item);
    frames.push({ items, keys, list: [], object: new Map(), at: 0, key: '', block, blocks: {} });
    return OPEN;
  };
  let made = enter(value);
  for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
    if (made !== OPEN && frame.at > 0) {
      if (frame.keys) frame.object.set(frame.key, made);
      else frame.list.push(made);
    }
    if (frame.at === frame.items.length) {
      frames.pop();
      made = frame.keys ? Object.fromEntries(frame.object) : frame.list;
      continue;
    }
    if (frame.keys) frame.key = unused(each(frame.keys[frame.at]!), frame.object);
    made = enter(frame.items[frame.at++], frame);
  }
  return made;
}

/** Two keys may have become the same. Neither value may be lost. */
function unused(key: string, made: ReadonlyMap<string, unknown>): string {
  let name = key;
  for (let n = made.has(key) ? made.size + 1 : 0; made.has(name); n++) name = `${key}#${n}`;
  return name;
}

/** Does valid JSON text hold more than its parsed value? When keys repeat, parsing keeps only the last. */
export function hasRepeatedKeys(json: string, value: unknown): boolean {
  let strings = 0;
  withNumbers(json, undefined, () => strings++);
  return strings !== countStrings(value);
}

function countStrings(value: unknown): number {
  let count = 0;
  const open = [value];
  while (open.length > 0) {
    const item = open.pop();
    if (typeof item === 'string') count++;
    if (typeof item !== 'object' || item === null) continue;
    if (!Array.isArray(item)) count += Object.keys(item).length;
    for (const inner of Object.values(item)) open.push(inner);
  }
  return count;
}

const QUOTE = 34;
const NUMBER = /-?\d[\d.eE+-]*/y;

/**
 * Valid JSON with its numbers changed. Read by hand, because a regular expression that matches strings fails on long
 * ones.
 */
function withNumbers(
  json: string,
  change: ((token: string) => string) | undefined,
  onString?: () => void,
): string {
  let out = '';
  let kept = 0;
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(json, at);
      onString?.();
    } else if (change && (code === 45 || (code >= 48 && code <= 57))) {
      NUMBER.lastIndex = at;
      const token = NUMBER.exec(json)?.[0] ?? '-';
      const made = change(token);
      if (made !== token) {
        out += json.slice(kept, at) + made;
        kept = at + token.length;
      }
      at += token.length;
    } else at++;
  }
  return kept === 0 ? json : out + json.slice(kept);
}

/** Where the string that starts at `start` ends. */
function endOfString(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let before = at;
    while (json[before - 1] === '\\') before--;
    if ((at - before) % 2 === 0) return at + 1;
  }
  return json.length;
}

/** How deep a JSON text is nested; stops reading once it is deeper than `enough`. */
export function depthOf(json: string, enough: number): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < json.length && deepest <= enough; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at) - 1;
    else if (code === 91 || code === 123) deepest = Math.max(deepest, ++depth);
    else if (code === 93 || code === 125) depth--;
  }
  return deepest;
}

/** Valid JSON with every number that would lose digits turned into a string, so that parsing loses nothing. */
export function withoutRounding(json: string): string {
  return withNumbers(json, (token) =>
    digits(token) === digits(String(Number(token))) ? token : `"${token}"`,
  );
}

/** The digits that make the value: `1.0` and `1e3` have those of `1`. */
function digits(number: string): string {
  const plain = number.replace(/e.*$|[-.]/gi, '');
  let from = 0;
  let to = plain.length;
  while (plain[from] === '0') from++;
  while (to > from && plain[to - 1] === '0') to--;
  return plain.slice(from, to);
}

/** Valid JSON with numbers as guards see them: without exponents, which could hide their digits. */
function withPlainNumbers(json: string): string {
  return withNumbers(json, (token) => {
    const plain = String(Number(token));
    return /e/i.test(token + plain) && digits(token) === digits(plain) ? plain : token;
  });
}

/** Deeper JSON is neither searched nor stored: somewhere beyond this, `JSON.stringify` fails. */
export const DEEPEST = 1000;

/**
 * Parses the arguments of a call for guards. `kept` is the text to keep if they pass, without parts that can't be judged.
 * Undefined if the text isn't JSON or is nested too deep.
 */
export function readArguments(given: string): { readonly args: unknown; readonly kept: string } | undefined {
  if (depthOf(given, DEEPEST) > DEEPEST) return undefined;
  try {
    JSON.parse(given || '{}');
  } catch {
    return undefined;
  }
  const exact = withoutRounding(given || '{}');
  const args: unknown = JSON.parse(exact);
  return { args, kept: hasRepeatedKeys(exact, args) ? JSON.stringify(args) : withPlainNumbers(given) };
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))/g;
const ESCAPED: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** Text that was meant to be JSON, without escapes, as a reader understands it. */
export function unescaped(text: string): string {
  return text.replace(ESCAPE, (_, code?: string, plain?: string) =>
    code === undefined ? (ESCAPED[plain!] ?? plain!) : String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** A value as JSON would store it; undefined if it cannot be stored. */
export function toStoredJson(value: unknown, replacer?: (key: string, value: unknown) => unknown): unknown {
  try {
    const text = JSON.stringify(value, replacer);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a function that replaces these pieces of a text, the longest first. */
export function replacer(pieces: ReadonlyMap<string, string>): (text: string) => string {
  if (pieces.size === 0) return (text) => text;
  const longestFirst = [...pieces.keys()].sort((a, b) => b.length - a.length);
  const literal = longestFirst.map((piece) => piece.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  const pattern = new RegExp(literal.join('|'), 'g');
  return (text) => text.replace(pattern, (piece) => pieces.get(piece)!);
}

/** Are these the same items in the same order? */
export function isSameList<T>(list: readonly T[], given: readonly T[]): boolean {
  return list.length === given.length && list.every((item, i) => item === given[i]);
}
