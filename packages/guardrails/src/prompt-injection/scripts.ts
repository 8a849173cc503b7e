/** Which characters are letters, and how their scripts put words together. */

/** A letter of any script; marks are gone. Letters of scripts without spaces count as none: any of them may end a word. */
export function isLetterCode(code: number): boolean {
  if (code < 128) return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
  if (code < 0xc0 || code === 0xd7 || code === 0xf7) return false;
  return code < 0x2000 || (code >= 0x2c00 && !isSpaceless(code) && !(code >= 0xff00 && code < 0xff66));
}

export function isArabic(code: number): boolean {
  return code >= 0x620 && code < 0x700;
}

/** Of a script that puts no spaces between words: Chinese, Japanese. */
export function isSpaceless(code: number): boolean {
  return code >= 0x3000 && code < 0xa000;
}
