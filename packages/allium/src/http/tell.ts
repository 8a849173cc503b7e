/** What a reader gets of a journal entry, depending on what it has seen of a message that was being written. */
import type { Entry } from '../index.js';
import { factId, resetId } from './cursor.js';
import type { ClientDelta, ClientEvent, SentEvent } from './events.js';
import type { Projection } from './projection.js';
import { remainder, Shown } from './shown.js';

export interface Told {
  readonly sent: readonly SentEvent[];
  /** The message that is open afterwards. */
  readonly shown: Shown | undefined;
}

/** The events of an entry after the one numbered `after`; -1: all of them. */
export function tellEntry(
  projection: Projection,
  entry: Entry,
  after: number,
  shown: Shown | undefined,
): Told {
  const { seq } = entry;
  const events = projection.entry(entry);
  const send = (open?: Shown, from = after + 1): SentEvent[] =>
    events.slice(from).map((event, i) => ({ id: factId(seq, from + i, open), event }));
  if (shown === undefined || after >= 0) return { sent: send(), shown: undefined };
  const { messageId } = shown;
  if (entry.type === 'message' && entry.message.role === 'assistant' && entry.message.id === messageId) {
    const deltas = projection.deltas(entry.message);
    const rest = remainder(deltas, shown);
    // The first event is the start, which the reader has seen; the pieces follow it.
    const sent = rest === undefined ? [takeBack(seq - 1, messageId)] : [];
    const pieces = rest ?? deltas;
    const from = 1 + deltas.length - pieces.length;
    for (const [i, delta] of pieces.entries())
      sent.push({ id: factId(seq, from + i), event: { type: 'message_update', messageId, delta } });
    return { sent: [...sent, ...send(undefined, 1 + deltas.length)], shown: undefined };
  }
  if (!isPast(entry)) return { sent: send(shown), shown };
  return { sent: [...discard(seq - 1, shown), ...send()], shown: undefined };
}

/** The message was abandoned. */
export function discard(seq: number, { messageId, length }: Shown): readonly SentEvent[] {
  const end: ClientEvent = { type: 'message_end', messageId, discarded: true };
  const sent = { id: resetId(seq, undefined), event: end };
  return length === 0 ? [sent] : [takeBack(seq, messageId), sent];
}

function takeBack(seq: number, messageId: string): SentEvent {
  return { id: resetId(seq, new Shown(messageId)), event: { type: 'message_reset', messageId } };
}

/**
 * What a reader who has seen `shown` gets of a message that is still being written. `idOf` makes an id from what it
 * has seen then.
 */
export function tellOpen(
  messageId: string,
  deltas: readonly ClientDelta[],
  shown: Shown | undefined,
  seq: number,
  idOf: (shown: Shown) => string,
): readonly SentEvent[] {
  const sent: SentEvent[] = [];
  const mine = shown?.messageId === messageId ? shown : undefined;
  if (shown !== undefined && mine === undefined) sent.push(...discard(seq, shown));
  const seen = new Shown(messageId);
  if (mine === undefined)
    sent.push({ id: idOf(seen), event: { type: 'message_start', messageId, role: 'assistant' } });
  const rest = mine ? remainder(deltas, mine) : deltas;
  if (rest === undefined) sent.push(takeBack(seq, messageId));
  const pieces = rest ?? deltas;
  for (const [i, delta] of deltas.entries()) {
    seen.add(delta);
    const at = i - (deltas.length - pieces.length);
    if (at >= 0)
      sent.push({ id: idOf(seen), event: { type: 'message_update', messageId, delta: pieces[at]! } });
  }
  return sent;
}

/** After these entries, a message that was open before them won't come any more. */
function isPast(entry: Entry): boolean {
  if (entry.type === 'run_start' || entry.type === 'run_end' || entry.type === 'rewind') return true;
  return entry.type === 'message' && !entry.seeded && entry.message.role === 'assistant';
}
