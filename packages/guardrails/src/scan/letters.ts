/** A text that was rewritten character by character, and where each of its characters stands in the original. */

export interface Places {
  readonly text: string;
  /** The place in the original of the character at `index`; the end of the original for the length of the text. */
  start(index: number): number;
  /** Where the character at `index` ends in the original. */
  end(index: number): number;
}

/** Characters with their places, in arrays that grow. */
export class Letters {
  codes: Uint16Array;
  starts: Int32Array;
  ends: Int32Array;
  length = 0;

  constructor(size: number) {
    this.codes = new Uint16Array(size);
    this.starts = new Int32Array(size);
    this.ends = new Int32Array(size);
  }

  push(code: number, start: number, end: number): void {
    if (this.length === this.codes.length) this.grow();
    this.codes[this.length] = code;
    this.starts[this.length] = start;
    this.ends[this.length++] = end;
  }

  private grow(): void {
    const larger = new Letters(this.codes.length * 2 + 16);
    larger.codes.set(this.codes);
    larger.starts.set(this.starts);
    larger.ends.set(this.ends);
    ({ codes: this.codes, starts: this.starts, ends: this.ends } = larger);
  }

  read(original: number): Places {
    const { starts, ends, length } = this;
    return {
      text: textOf(this.codes.subarray(0, length)),
      start: (index) => (index < length ? starts[index]! : original),
      end: (index) => (index < length ? ends[index]! : original),
    };
  }
}

export function textOf({ buffer, byteOffset, byteLength }: Uint16Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('utf16le');
}
