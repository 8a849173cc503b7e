/**
 * Ids of events. An id says how far its reader is in the journal, and how much it has seen of a message that is still
 * being written, so that any process can continue from it.
 *
 * - `12.3`: the fourth event of entry 12.
 * - `12~k3f.7`: the seventh live event after entry 12, in the process that calls itself `k3f`.
 * - `12w1`: sent after entry 12, because the run waits for answers.
 * - `12s`: sent after entry 12, because nothing more was written for a long time.
 * - `12r`: what was shown after entry 12 is taken back.
 *
 * A message that is still open follows after a semicolon: characters shown, their hash, its id.
 */
import { Shown } from './shown.js';

export interface Cursor {
  /** The last entry of which something was sent. */
  readonly seq: number;
  /** Which event of it; Infinity: all of them. */
  readonly index: number;
  /** For a live event. */
  readonly live?: { readonly epoch: string; readonly n: number };
  /** How many events about waiting were sent after it. */
  readonly waiting?: number;
  /** The reader was told that the run seems to have died. */
  readonly stalled?: boolean;
  readonly shown?: Shown;
}

export const START: Cursor = { seq: 0, index: Number.POSITIVE_INFINITY };

export function factId(seq: number, index: number, shown?: Shown): string {
  return `${seq}.${index}${suffix(shown)}`;
}

/** After everything that entry `seq` tells. */
export function afterEntry(seq: number): string {
  return factId(seq, 999_999_999);
}

export function liveId(seq: number, epoch: string, n: number, shown: Shown | undefined): string {
  return `${seq}~${epoch}.${n}${suffix(shown)}`;
}

export function waitingId(seq: number, n: number): string {
  return `${seq}w${n}`;
}

export function stalledId(seq: number, shown: Shown | undefined): string {
  return `${seq}s${suffix(shown)}`;
}

export function resetId(seq: number, shown: Shown | undefined): string {
  return `${seq}r${suffix(shown)}`;
}

function suffix(shown: Shown | undefined): string {
  if (shown === undefined) return '';
  return `;${shown.length}.${shown.hash.toString(36)}.${encodeURIComponent(shown.messageId)}`;
}

const ID =
  /^(\d{1,15})(?:\.(\d{1,9})|~([a-z0-9]+)\.(\d{1,15})|w(\d)|(s)|r)(?:;(\d{1,15})\.([a-z0-9]{1,7})\.(\S+))?$/;

/** Undefined if it is not the id of an event. */
export function parseCursor(id: string): Cursor | undefined {
  const match = ID.exec(id);
  if (match === null) return undefined;
  const [, seq, index, epoch, n, waiting, stalled, length, hash, messageId] = match;
  try {
    const shown =
      messageId === undefined
        ? undefined
        : new Shown(decodeURIComponent(messageId), Number(length), Number.parseInt(hash!, 36));
    return {
      seq: Number(seq),
      index: index === undefined ? Number.POSITIVE_INFINITY : Number(index),
      ...(epoch !== undefined && { live: { epoch, n: Number(n) } }),
      ...(waiting !== undefined && { waiting: Number(waiting) }),
      ...(stalled !== undefined && { stalled: true }),
      ...(shown && { shown }),
    };
  } catch {
    return undefined;
  }
}
