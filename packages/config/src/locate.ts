/** Finds the line of a key in the text of a config file. Parsers give values without positions. */

export type KeyPath = readonly (string | number)[];

/**
 * `lineOf(path)` gives the line of the key, or of the nearest one above it. The text has been parsed before. It is searched
 * for keys when somebody asks for the first time: a config without mistakes needs none of it.
 */
export function locator(text: string, format: 'toml' | 'json'): (path: KeyPath) => number | undefined {
  let lines: ReadonlyMap<string, number> | undefined;
  return (path) => {
    lines ??= linesOf(text, format);
    for (let length = path.length; length > 0; length--) {
      const line = lines.get(keyOf(path.slice(0, length)));
      if (line !== undefined) return line;
    }
    return undefined;
  };
}

function linesOf(text: string, format: 'toml' | 'json'): ReadonlyMap<string, number> {
  const scan = new Scan(text);
  if (format === 'toml') scan.document();
  else scan.value([]);
  return scan.lines;
}

function keyOf(path: KeyPath): string {
  return JSON.stringify(path);
}

/** Walks over text that is known to be well formed, and notes where each key begins. */
class Scan {
  readonly lines = new Map<string, number>();
  /** How many tables of an array of tables have begun. */
  readonly #tables = new Map<string, number>();
  #at = 0;
  #line = 1;

  constructor(readonly text: string) {}

  /** TOML from its beginning to its end. */
  document(): void {
    let table: KeyPath = [];
    for (this.space(); this.#at < this.text.length; this.space()) {
      if (this.text.startsWith('[[', this.#at)) table = this.header(2, true);
      else if (this.text[this.#at] === '[') table = this.header(1, false);
      else this.pair(table);
    }
  }

  /** `[a.b]` or `[[a.b]]`: the path that the keys below it have. */
  private header(brackets: number, array: boolean): KeyPath {
    const line = this.#line;
    this.skip(brackets);
    const keys = this.keys();
    this.skip(brackets);
    let path: (string | number)[] = [];
    for (const [index, key] of keys.entries()) {
      path = [...path, key];
      const count = this.#tables.get(keyOf(path)) ?? 0;
      const last = index === keys.length - 1;
      this.note(path, line);
      if (last && array) {
        this.#tables.set(keyOf(path), count + 1);
        path = [...path, count];
      } else if (count > 0) path = [...path, count - 1];
    }
    this.note(path, line);
    return path;
  }

  /** `a.b = value`, and `"a": value` in JSON. */
  private pair(table: KeyPath): void {
    const line = this.#line;
    const keys = this.keys();
    for (let length = 1; length <= keys.length; length++)
      this.note([...table, ...keys.slice(0, length)], line);
    this.skip(1);
    this.value([...table, ...keys]);
  }

  /** One value, with all that is inside. */
  value(path: KeyPath): void {
    this.space();
    const first = this.text[this.#at];
    if (first === '{') this.members('}', () => this.pair(path));
    else if (first === '[') {
      let index = 0;
      this.members(']', () => {
        this.note([...path, index], this.#line);
        this.value([...path, index++]);
      });
    } else if (first === '"' || first === "'") this.quoted();
    else this.skip(/^[^,\]}\r\n#]*/.exec(this.text.slice(this.#at))?.[0].length ?? 0);
  }

  private members(end: string, member: () => void): void {
    this.skip(1);
    for (this.space(); this.#at < this.text.length && this.text[this.#at] !== end; this.space()) {
      member();
      this.space();
      if (this.text[this.#at] === ',') this.skip(1);
    }
    this.skip(1);
  }

  /** The parts of a key; ends before `=`, `:` or `]`. */
  private keys(): string[] {
    const keys: string[] = [];
    for (;;) {
      this.space();
      const first = this.text[this.#at];
      if (first === '"' || first === "'") keys.push(this.quoted());
      else {
        const bare = /^[^\s.=:\]]*/.exec(this.text.slice(this.#at))?.[0] ?? '';
        this.skip(bare.length);
        keys.push(bare);
      }
      this.space();
      if (this.text[this.#at] !== '.') return keys;
      this.skip(1);
    }
  }

  /** Any of the four kinds of quoted text; returns what a one-line one holds. */
  private quoted(): string {
    const quote = this.text[this.#at]!;
    const long = this.text.startsWith(quote.repeat(3), this.#at);
    const mark = long ? quote.repeat(3) : quote;
    const start = this.#at;
    let end = start + mark.length;
    while (end < this.text.length && !this.text.startsWith(mark, end))
      end += quote === '"' && this.text[end] === '\\' ? 2 : 1;
    end += mark.length;
    // A text may end with up to two quotes of its own before the closing three.
    while (long && this.text[end] === quote) end++;
    this.skip(end - start);
    const inner = this.text.slice(start + mark.length, end - mark.length);
    if (quote === "'" || long) return inner;
    try {
      return JSON.parse(`"${inner}"`) as string;
    } catch {
      return inner;
    }
  }

  /** Blanks, line breaks and comments. */
  private space(): void {
    for (;;) {
      const blank = /^\s+|^#[^\n]*/.exec(this.text.slice(this.#at, this.#at + 4096))?.[0];
      if (!blank) return;
      this.skip(blank.length);
    }
  }

  private skip(length: number): void {
    for (const end = Math.min(this.#at + length, this.text.length); this.#at < end; this.#at++)
      if (this.text[this.#at] === '\n') this.#line++;
  }

  private note(path: KeyPath, line: number): void {
    const key = keyOf(path);
    if (!this.lines.has(key)) this.lines.set(key, line);
  }
}
