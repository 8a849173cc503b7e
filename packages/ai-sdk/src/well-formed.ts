/** Text that providers can read. */

/** Half of a character, as cutting a text in the wrong place leaves it. Anthropic refuses every request with one. */
const HALF = /\p{Surrogate}/gu;
/** Text, or JSON with escapes, that may have one. */
export const MAY_BE_HALF = /[\ud800-\udfff]|\\ud[89a-f]/i;

export function wellFormed(text: string): string {
  return MAY_BE_HALF.test(text) ? text.replace(HALF, '\ufffd') : text;
}

export function wellFormedValue(_: string, value: unknown): unknown {
  return typeof value === 'string' ? wellFormed(value) : value;
}
