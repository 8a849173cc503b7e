/**
 * How much of a message a reader has seen: its length and a hash. Any process that has the message can check whether
 * that is its beginning, and send the rest. If not, it was taken back meanwhile.
 */
import type { ClientDelta } from './events.js';

const SEED = 0x811c9dc5;
/** For texts that were not shown in order: no message begins with them. */
const SCRAMBLED = 0;

export class Shown {
  private block = -1;

  constructor(
    readonly messageId: string,
    public length = 0,
    public hash = SEED,
  ) {}

  add(delta: ClientDelta): void {
    if (delta.block < this.block) this.hash = SCRAMBLED;
    if (delta.block > this.block) {
      this.take(header(delta));
      this.block = delta.block;
    }
    this.take(textOf(delta));
  }

  /** Nothing of it counts any more. */
  clear(): void {
    this.length = 0;
    this.hash = SEED;
    this.block = -1;
  }

  private take(text: string): void {
    this.length += text.length;
    if (this.hash !== SCRAMBLED) this.hash = fnv(this.hash, text, text.length);
  }
}

/** What follows after what was shown; undefined if that isn't the beginning of these pieces. */
export function remainder(
  deltas: readonly ClientDelta[],
  { length, hash }: Shown,
): readonly ClientDelta[] | undefined {
  if (length === 0) return deltas;
  let left = length;
  let sum = SEED;
  for (const [index, delta] of deltas.entries()) {
    const start = header(delta);
    const text = textOf(delta);
    if (left < start.length) return undefined;
    sum = fnv(sum, start, start.length);
    left -= start.length;
    const seen = Math.min(left, text.length);
    sum = fnv(sum, text, seen);
    left -= seen;
    if (left > 0) continue;
    if (sum !== hash) return undefined;
    const rest = text.slice(seen);
    return rest === '' ? deltas.slice(index + 1) : [withText(delta, rest), ...deltas.slice(index + 1)];
  }
  return undefined;
}

function header(delta: ClientDelta): string {
  return delta.type === 'tool-call'
    ? `${delta.block} call ${delta.id} ${delta.name}\n`
    : `${delta.block} ${delta.type}\n`;
}

function textOf(delta: ClientDelta): string {
  return delta.type === 'tool-call' ? delta.arguments : delta.text;
}

export function withText(delta: ClientDelta, text: string): ClientDelta {
  return delta.type === 'tool-call' ? { ...delta, arguments: text } : { ...delta, text };
}

/** FNV-1a, 32 bits: fast, and enough to tell two answers of a model apart. */
function fnv(seed: number, text: string, end: number): number {
  let hash = seed;
  for (let i = 0; i < end; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
}
