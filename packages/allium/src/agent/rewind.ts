/** Rewinds and forks a session: which points are possible, and what the session was like there. Nothing is deleted. */

import { endRun } from '../kernel/calls/end-children.js';
import { post } from '../kernel/inbox/posting.js';
import type { Allowed } from '../kernel/journal/allowances.js';
import { upgradeEntries } from '../kernel/journal/entry-upgrade.js';
import { applyEntry } from '../kernel/journal/read-session.js';
import { SessionState } from '../kernel/journal/session-state.js';
import { AlliumError, invalidOption, shown } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { checkValue } from '../kernel/lib/shapes.js';
import { type Message, toolCallsOf } from '../kernel/messages/messages.js';
import type { StoredCell } from '../kernel/protocol/state.js';
import type { Stop } from '../kernel/protocol/stop.js';
import { ENTRY_VERSION, type Entry, type NewEntry, type Store } from '../kernel/protocol/store.js';
import type { RunAgent } from '../kernel/run/start.js';
import { allowedIn, listed } from './session-allowances.js';

/** A message id: the history ends with that message, or `before` it. */
export type HistoryPoint = string | { readonly before: string };

export interface ForkOptions {
  /** Id of the new session, which must not exist yet. @default random */
  readonly id?: string;
}

export function checkSessionId(id: unknown): void {
  checkValue('session id', kinds.nonEmptyText, id);
}

/** Where a session is stored, and for which tenant it is opened. */
export interface Place {
  readonly agent: RunAgent;
  readonly store: Store;
  readonly sessionId: string;
  readonly tenant: string | undefined;
}

/**
 * Appends an entry that moves the history back, and the values the session's cells had there, except those that stay. An open
 * run is ended first, as by a new message.
 */
export async function rewind(place: Place, point: HistoryPoint): Promise<void> {
  const { agent, store, sessionId } = place;
  const before = await readAll(place);
  const to = lastOf(before.state, point);
  if (before.state.open) await endOpen(place, 'The session was rewound.');
  else if (idOf(before.state) === to) return;
  const { state, entries } = before.state.open ? await readAll(place) : before;
  const frame = { v: ENTRY_VERSION, at: agent.clock.now() };
  const cells = [...(pastAt(sessionId, entries, to).cells ?? [])].filter(
    ([cell]) => !state.cells?.get(cell)?.stays,
  );
  await store.append(sessionId, state.seq, [
    { ...frame, type: 'rewind', to },
    ...cells.map(([cell, held]): NewEntry => ({ ...frame, type: 'state', cell, ...held })),
  ]);
}

/** Copies a session up to a point. A run that was open there is ended in the copy; the original keeps it. */
export async function fork(place: Place, point: HistoryPoint | undefined, newId: string): Promise<void> {
  const { store, sessionId } = place;
  const { state, entries } = await readAll(place);
  const to = point === undefined ? undefined : lastOf(state, point);
  const seq = to === undefined ? state.seq : pastAt(sessionId, entries, to).seq;
  await store.fork(sessionId, seq, newId);
  await revokeIn(place, newId, await allowedIn(store, state));
  await endOpen({ ...place, sessionId: newId }, 'The session was forked.');
}

/** What was revoked since that point, or is about to be, isn't allowed in the copy either. */
async function revokeIn(place: Place, copyId: string, held: Allowed | undefined): Promise<void> {
  const { state: copy } = await readAll({ ...place, sessionId: copyId });
  const ids = new Set(listed(held).map(({ id }) => id));
  for (const { id } of listed(copy.allowed))
    if (!ids.has(id)) await post(place.store, copyId, { type: 'revoke', id });
}

function endOpen({ store, agent, sessionId }: Place, message: string): Promise<void> {
  const stop: Stop = { reason: 'stopped', message, by: 'kernel' };
  return endRun({ store, agent, forgets: false }, sessionId, { status: 'stopped', stop });
}

async function readAll(place: Place): Promise<{ state: SessionState; entries: readonly Entry[] }> {
  const { store, sessionId, tenant } = place;
  const entries = upgradeEntries(sessionId, await store.read(sessionId, 1));
  const state = new SessionState(sessionId);
  for (const entry of entries) applyEntry(state, entry);
  return { state: state.checkTenant(tenant), entries };
}

/** The id of the last message up to a point; null if the history is empty there. */
function lastOf({ sessionId, history }: SessionState, point: HistoryPoint): string | null {
  const before = typeof point === 'object' && point !== null;
  const id = before ? point.before : point;
  if (typeof id !== 'string')
    throw invalidOption('point', "a message id, or { before: '…' } with one", point);
  const messages = history.all();
  const at = messages.findIndex((message) => message.id === id);
  if (at < 0)
    throw new AlliumError(
      'MESSAGE_UNKNOWN',
      `Session "${sessionId}" has no message ${shown(id)} in its history. Take an id from session.messages(). Messages removed by a rewind no longer count.`,
      { data: { sessionId, messageId: id } },
    );
  const length = before ? at : at + 1;
  checkWhole(messages, length);
  return messages[length - 1]?.id ?? null;
}

/** No model accepts a history that ends between calls and their results. */
function checkWhole(messages: readonly Message[], length: number): void {
  const last = messages[length - 1];
  const open = last?.role === 'assistant' && toolCallsOf(last).length > 0;
  if (!open && messages[length]?.role !== 'tool') return;
  const asking = messages.slice(0, length).findLast(({ role }) => role === 'assistant')!;
  const end = messages.findIndex(({ role }, i) => i >= length && role !== 'tool');
  const result = messages.at(end < 0 ? -1 : end - 1)!;
  const after = result.role === 'tool' ? `, or with the last result, "${result.id}"` : '';
  throw new AlliumError(
    'CALLS_UNANSWERED',
    `The history cannot end there: tool calls of message "${asking.id}" would be left without results. End it with { before: "${asking.id}" }${after}.`,
    { data: { before: asking.id, ...(after && { after: result.id }) } },
  );
}

interface Past {
  readonly seq: number;
  readonly cells: ReadonlyMap<string, StoredCell> | undefined;
}

/** The last entry at which the history ended with this message, and the values of the session's cells then. */
function pastAt(sessionId: string, entries: readonly Entry[], to: string | null): Past {
  const past = new SessionState(sessionId);
  let found: Past | undefined;
  /** The start of a run that has not ended. If it adds the next message, it isn't part of what came before. */
  let start: number | undefined;
  for (const entry of entries) {
    const { cells } = past;
    const there = idOf(past) === to;
    if (entry.type === 'run_end' || !there) start = undefined;
    if (entry.type === 'run_start') start = entry.seq;
    applyEntry(past, entry);
    if (!there || idOf(past) === to) continue;
    // A copy: later entries write to this map.
    found = { seq: Math.max(1, (start ?? entry.seq) - 1), cells: cells && new Map(cells) };
  }
  return idOf(past) === to ? past : found!;
}

function idOf({ history }: SessionState): string | null {
  return history.last?.id ?? null;
}
