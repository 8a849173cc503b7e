/** Random, unique ids. */

const ALPHABET = new TextEncoder().encode('0123456789abcdefghijklmnopqrstuvwxyz');
const pool = new Uint8Array(4096);
const codes = new Array<number>(16).fill(0);
let used = pool.length;

/** 16 characters, about 80 bits. Random bytes are fetched in bulk: each fetch costs more than a turn. */
export function randomId(): string {
  if (used + 16 > pool.length) {
    globalThis.crypto.getRandomValues(pool);
    used = 0;
  }
  for (let i = 0; i < 16; i++) codes[i] = ALPHABET[pool[used++]! % 36]!;
  return String.fromCharCode(...codes);
}
