/** Checks whether a part is still what the provider made. */

/**
 * 53 bits of the text, cyrb53. Metadata of an answer may be a signature over the text or the name of a copy that
 * the provider keeps; once a guard or a middleware has rewritten the text, it must not go back.
 */
export function digestOf(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
}

const verdicts = new WeakMap<object, boolean>();

/** Is this the text the digest was made from? Parts in a history are frozen, so each is checked once. */
export function isUntouched(part: object, text: string, digest: unknown): boolean {
  if (typeof digest !== 'string') return true;
  const known = verdicts.get(part);
  if (known !== undefined) return known;
  const verdict = digestOf(text) === digest;
  if (Object.isFrozen(part)) verdicts.set(part, verdict);
  return verdict;
}
