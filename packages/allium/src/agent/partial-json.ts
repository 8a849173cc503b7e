/** Reads JSON that is still being written. */

/**
 * Takes a JSON text piece by piece and reads what it says so far. Strings are shown as far as they go; keys, numbers
 * and words like `true` once they are complete. A code fence around the JSON is skipped, and so is what follows it.
 */
export class PartialJson {
  private text = '';
  /** The text was read up to here. */
  private at = 0;
  /** What closes the objects and lists that are open, innermost last. */
  private readonly open: string[] = [];
  private inString = false;
  private escaped = false;
  /** How many digits of an escape like `\\u00e4` are missing. */
  private digits = 0;
  /** The current string can be cut here: not inside an escape, nor inside a surrogate pair. */
  private safe = 0;
  /** The current string is a key, or the next one would be. */
  private expectsKey = false;
  private isKey = false;
  /** `text` cut here, and closed with `closers`, is valid JSON. */
  private cut = 0;
  private closers = '';
  private begun = false;
  private ended = false;
  private told = '';

  add(piece: string): void {
    if (this.ended) return;
    this.text += piece;
    if (!this.begun && !this.begin()) return;
    while (this.at < this.text.length && !this.ended) this.step();
  }

  /** The value so far, if it says something new since the last time; undefined otherwise. */
  nextValue(): { readonly value: unknown } | undefined {
    if (!this.begun) return undefined;
    const json =
      this.inString && !this.isKey
        ? `${this.text.slice(0, this.safe)}"${this.closing()}`
        : this.text.slice(0, this.cut) + this.closers;
    if (json === '' || json === this.told) return undefined;
    try {
      const value: unknown = JSON.parse(json);
      this.told = json;
      return { value };
    } catch {
      // It is not JSON. The check of the whole text says why.
      return undefined;
    }
  }

  /** Skips white space and the first line of a fence; false while it is not clear yet. */
  private begin(): boolean {
    const lead = /^\s*(?:```[\w-]*\r?\n\s*)?(?=[^\s`])/.exec(this.text);
    if (!lead) return false;
    this.text = this.text.slice(lead[0].length);
    this.begun = true;
    return true;
  }

  private closing(): string {
    return this.open.toReversed().join('');
  }

  private step(): void {
    const char = this.text[this.at++]!;
    if (this.inString) this.stepInString(char);
    else if (char === '"') {
      this.inString = true;
      this.isKey = this.expectsKey;
      this.safe = this.at;
    } else if (char === '{' || char === '[') {
      this.open.push(char === '{' ? '}' : ']');
      this.expectsKey = char === '{';
      this.complete();
    } else if (char === '}' || char === ']') {
      this.open.pop();
      this.expectsKey = false;
      this.complete();
    } else if (char === ',') {
      // The value before it is complete: only now a number shows.
      this.complete(this.at - 1);
      this.expectsKey = this.open.at(-1) === '}';
    } else if (char === ':') this.expectsKey = false;
  }

  private stepInString(char: string): void {
    if (this.digits > 0) {
      if (--this.digits === 0) this.unit(Number.parseInt(this.text.slice(this.at - 4, this.at), 16));
    } else if (this.escaped) {
      this.escaped = false;
      if (char === 'u') this.digits = 4;
      else this.safe = this.at;
    } else if (char === '\\') this.escaped = true;
    else if (char !== '"') this.unit(char.charCodeAt(0));
    else {
      this.inString = false;
      if (!this.isKey) this.complete();
    }
  }

  /** One unit of a string is complete; the first half of a character is not shown alone. */
  private unit(code: number): void {
    const isHalf = code >= 0xd800 && code <= 0xdbff;
    if (!isHalf) this.safe = this.at;
  }

  private complete(at = this.at): void {
    this.cut = at;
    this.closers = this.closing();
    if (this.open.length === 0) this.ended = true;
  }
}
