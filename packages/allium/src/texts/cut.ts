/** Shortens texts without leaving half a character behind: one outside the basic plane is a pair of code units. */

/** The first `chars` code units, or one less where the last would be half of a pair. */
export function beginning(text: string, chars: number): string {
  return text.slice(0, splitsPair(text, chars) ? chars - 1 : chars);
}

/** The last `chars` code units, or one less where the first would be half of a pair. */
export function ending(text: string, chars: number): string {
  const from = Math.max(text.length - chars, 0);
  return text.slice(splitsPair(text, from) ? from + 1 : from);
}

/** Cuts a text of more than `chars` code units there, and adds an ellipsis. */
export function cut(text: string, chars: number): string {
  return text.length > chars ? `${beginning(text, chars)}…` : text;
}

/** Would a cut at `at` split a pair? */
export function splitsPair(text: string, at: number): boolean {
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}
