/** What detectors find, and where they begin to look. */

/** Text at `[start, end)` that a detector recognised. */
export interface Finding {
  readonly start: number;
  readonly end: number;
  /** What it is, such as `email` or `github-token`. */
  readonly kind: string;
  /** What it says, if it is written in disguise: `ann@x.org` for `ann%40x.org`. */
  readonly value?: string;
}

/** Finds things in a text. Everything that begins before `from` is decided already and need not be found again. */
export type Detector = (text: string, from: number) => Finding[];

/**
 * How far to the left detectors look: for the beginning of a match, and for words that say what a number is. A search
 * that begins this far before `from` finds what a search of the whole text would find after it.
 */
export const LEFT_CONTEXT = 160;

/** The place where a search begins, so that streamed text is not searched again from its beginning. */
export function searchStart(from: number): number {
  return from > LEFT_CONTEXT ? from - LEFT_CONTEXT : 0;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** A letter or digit of any script, or an underscore: what would make a match a part of something longer. */
export function isWordCode(code: number): boolean {
  return (
    (code >= 48 && code <= 57) ||
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    code === 95 ||
    (code >= 0xc0 && code !== 0xd7 && code !== 0xf7 && code < 0x2000)
  );
}

/** The text right before a place, in lower case, for words that say what follows. It ends at a line break. */
export function before(text: string, place: number, length: number): string {
  const start = place > length ? place - length : 0;
  const piece = text.slice(start, place);
  const line = Math.max(piece.lastIndexOf('\n'), piece.lastIndexOf('\r'));
  return (line === -1 ? piece : piece.slice(line + 1)).toLowerCase();
}
