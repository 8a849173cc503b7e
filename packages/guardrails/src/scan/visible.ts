/** What a character shows to a reader: nothing, a space, or a letter that it is another form of. */

/** Letters that show nothing: of Hangul and Braille. */
const FILLERS = new Set([0x115f, 0x1160, 0x3164, 0xffa0, 0x2800]);

/** Empty for what nobody sees, and the character itself if it is as plain as can be. */
export function visibleForm(code: number): string {
  // Tags repeat ASCII, invisibly; so do variation selectors, a byte each.
  if (code >= 0xe0020 && code <= 0xe007e) return String.fromCharCode(code - 0xe0000);
  if (code >= 0xe0100 && code <= 0xe01ef) return byteForm(code - 0xe0100 + 16);
  const letter = String.fromCodePoint(code);
  if (FILLERS.has(code) || /\p{Cf}/u.test(letter)) return '';
  if (code === 0x2028 || code === 0x2029) return '\n';
  if (/[\p{Z}\p{Cc}]/u.test(letter)) return ' ';
  // Letters in squares and circles, as in flags and signs.
  for (const first of SIGNS)
    if (code >= first && code < first + 26) return String.fromCharCode(65 + code - first);
  return letter;
}

const SIGNS = [0x1f130, 0x1f150, 0x1f170, 0x1f1e6];

function byteForm(byte: number): string {
  return byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '';
}
