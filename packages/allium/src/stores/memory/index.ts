/**
 * Sessions in memory: the reference implementation of the store port, for tests, demos and runs that need not outlive the
 * process. Agents without a store have one of these.
 */

import {
  type Entry,
  type InboxItem,
  type ListOptions,
  type NewEntry,
  type Posted,
  type SessionInfo,
  type SessionPage,
  type Snapshot,
  sessionConflict,
  type Tail,
} from '../../index.js';
import { checkKeys, deepFreeze } from '../../kit/index.js';
import { checkFork, firstRun, listPage, parentOf, type SyncStore, takenBy } from '../kit/index.js';

/** One empty list for every call that finds nothing: every turn makes such a call. */
const NOTHING: readonly never[] = Object.freeze([]);

/**
 * A store that keeps sessions in memory.
 *
 * Entries belong to the store from the moment they are appended: they are kept by reference, never copied, and frozen
 * when somebody reads them. An append costs the same however long the session is.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: memoryStore() });
 * ```
 */
export function memoryStore(options: Readonly<Record<string, never>> = {}): SyncStore {
  checkKeys('memoryStore()', options, []);
  return new MemoryStore();
}

class Journal {
  /** Entry `seq` is at index `seq - 1`. It gets its number when somebody reads it. */
  readonly entries: NewEntry[] = [];
  snapshot: Snapshot | undefined = undefined;
}

class Inbox {
  /** The number of the newest item ever posted. Numbers are never reused. */
  last = 0;
  readonly items: Posted[] = [];
}

class MemoryStore implements SyncStore {
  readonly #journals = new Map<string, Journal>();
  readonly #inboxes = new Map<string, Inbox>();
  /** The sessions of sub-agents, by that of the agent that called them. */
  readonly #children = new Map<string, string[]>();

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number {
    let journal = this.#journals.get(sessionId);
    const seq = journal === undefined ? 0 : journal.entries.length;
    if (seq !== expectedSeq) throw sessionConflict(sessionId, expectedSeq, seq);
    if (entries.length === 0) return seq;
    // Do this first: a getter that throws must not leave half a batch behind.
    for (let i = 0; i < entries.length; i++) freezeEntry(entries[i]!);
    if (journal === undefined) {
      journal = new Journal();
      this.#journals.set(sessionId, journal);
      if (sessionId.includes('/')) this.#noteChild(sessionId);
    }
    for (let i = 0; i < entries.length; i++) journal.entries.push(entries[i]!);
    if (snapshot && snapshot.seq <= journal.entries.length) journal.snapshot = snapshot;
    if (this.#inboxes.size > 0) this.#forget(sessionId, entries);
    return seq + entries.length;
  }

  /** Removes the inbox items that the entries take out. */
  #forget(sessionId: string, entries: readonly NewEntry[]): void {
    const inbox = this.#inboxes.get(sessionId);
    const taken = inbox && takenBy(entries);
    if (!taken) return;
    const left = inbox.items.filter(({ n }) => n > taken.cursor || taken.waits.includes(n));
    inbox.items.splice(0, inbox.items.length, ...left);
  }

  #noteChild(sessionId: string): void {
    const parent = parentOf(sessionId);
    if (parent === undefined) return;
    const known = this.#children.get(parent);
    if (known) known.push(sessionId);
    else this.#children.set(parent, [sessionId]);
  }

  read(sessionId: string, fromSeq: number): readonly Entry[] {
    const journal = this.#journals.get(sessionId);
    if (journal === undefined) return [];
    const { entries } = journal;
    const first = Math.max(0, fromSeq - 1);
    for (let i = first; i < entries.length; i++)
      if (!('seq' in entries[i]!)) entries[i] = deepFreeze({ ...entries[i]!, seq: i + 1 }) as Entry;
    return entries.slice(first) as Entry[];
  }

  tail(sessionId: string): Tail {
    const snapshot = this.#journals.get(sessionId)?.snapshot;
    return snapshot
      ? { snapshot, entries: this.read(sessionId, snapshot.seq + 1) }
      : { entries: this.read(sessionId, 1) };
  }

  head(sessionId: string): number {
    return this.#journals.get(sessionId)?.entries.length ?? 0;
  }

  list(options: ListOptions = {}): SessionPage {
    const infos: SessionInfo[] = [];
    for (const [sessionId, { entries }] of this.#journals) {
      const tenant = firstRun(entries)?.tenant;
      const times = { createdAt: entries[0]!.at, updatedAt: entries[entries.length - 1]!.at };
      infos.push({ sessionId, ...(tenant === undefined ? {} : { tenant }), seq: entries.length, ...times });
    }
    return listPage(infos, options);
  }

  fork(sessionId: string, seq: number, newId: string): void {
    const source = this.#journals.get(sessionId);
    checkFork(sessionId, seq, source?.entries.length ?? 0, newId, this.head(newId));
    const copy = new Journal();
    for (let i = 0; i < seq; i++) copy.entries.push(source!.entries[i]!);
    this.#journals.set(newId, copy);

    // The copied journal says how far the inbox was processed. The inbox of the fork continues from there: numbered from 1,
    // its first items would look as if they had been taken already.
    const before = this.#inboxes.get(sessionId)?.last ?? 0;
    if (before === 0) return;
    const own = this.#inboxes.get(newId) ?? new Inbox();
    own.last += before;
    for (const [i, { n, item }] of own.items.entries()) own.items[i] = Object.freeze({ n: n + before, item });
    this.#inboxes.set(newId, own);
  }

  delete(sessionId: string): void {
    const children = this.#children.get(sessionId);
    if (children !== undefined) {
      this.#children.delete(sessionId);
      for (const child of children) this.delete(child);
    }
    // Emptied first: tables that a Map has outgrown keep pointing at their entries until the next full collection.
    const journal = this.#journals.get(sessionId);
    if (journal !== undefined) journal.entries.length = 0;
    this.#journals.delete(sessionId);
    this.#inboxes.delete(sessionId);
  }

  post(sessionId: string, item: InboxItem): void {
    deepFreeze(item);
    const inbox = this.#inboxes.get(sessionId) ?? new Inbox();
    this.#inboxes.set(sessionId, inbox);
    inbox.items.push(Object.freeze({ n: ++inbox.last, item }));
  }

  take(sessionId: string, after: number): readonly Posted[] {
    const inbox = this.#inboxes.get(sessionId);
    if (inbox === undefined || inbox.items.length === 0) return NOTHING;
    const taken = inbox.items.findIndex((item) => item.n > after);
    inbox.items.splice(0, taken === -1 ? inbox.items.length : taken);
    return inbox.items.slice();
  }

  close(): void {
    // There is nothing to release, and tests may still want to read a closed store.
  }
}

/**
 * Freezes the contents of an entry, which may still belong to somebody else. Messages are frozen by the kernel before anybody
 * sees them, so the entries that every turn writes cost nothing here.
 */
function freezeEntry(entry: NewEntry): void {
  const { type } = entry;
  if (type === 'message' || type === 'tool_finished' || type === 'tool_started' || type === 'trace') return;
  // Also written in every turn; only its value may belong to somebody else.
  if (type === 'state') deepFreeze(entry.value);
  else if (type !== 'run_start' && type !== 'run_end') deepFreeze(entry);
}
