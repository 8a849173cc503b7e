/** The reference implementation of the store port: everything in this process, synchronous, gone with it. */
import { AlliumError, checkKeys, invalidOption, sessionConflict, shown } from './errors.js';
import { deepFreeze } from './messages.js';
import type { Entry, InboxItem, ListOptions, NewEntry, SessionInfo, Store } from './store.js';

/**
 * A store that keeps sessions in memory.
 *
 * Entries are kept by reference and frozen, never copied: an append costs the same however long the session is.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: memoryStore() });
 * ```
 */
export function memoryStore(): Store {
  return new MemoryStore();
}

class Journal {
  /** Entry `seq` stands at index `seq - 1`; it is given its number when somebody reads it. */
  readonly entries: NewEntry[] = [];
  numbered = 0;
  tenant: string | undefined = undefined;
  started = false;

  add(entry: NewEntry): void {
    this.entries.push(entry);
    if (this.started || entry.type !== 'run_start') return;
    this.started = true;
    this.tenant = entry.tenant;
  }
}

class Inbox {
  /** The number of the newest item ever posted: numbers are never used twice. */
  last = 0;
  readonly items: { readonly n: number; readonly item: InboxItem }[] = [];
}

class MemoryStore implements Store {
  readonly #journals = new Map<string, Journal>();
  readonly #inboxes = new Map<string, Inbox>();

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number {
    let journal = this.#journals.get(sessionId);
    const seq = journal === undefined ? 0 : journal.entries.length;
    if (seq !== expectedSeq) throw sessionConflict(sessionId, expectedSeq, seq);
    if (entries.length === 0) return seq;
    // Frozen before anything is kept: a getter that throws must not leave half a batch behind.
    for (let i = 0; i < entries.length; i++) settle(entries[i]!);
    if (journal === undefined) this.#journals.set(sessionId, (journal = new Journal()));
    for (let i = 0; i < entries.length; i++) journal.add(entries[i]!);
    return seq + entries.length;
  }

  read(sessionId: string, fromSeq: number): readonly Entry[] {
    const journal = this.#journals.get(sessionId);
    if (journal === undefined) return [];
    const { entries } = journal;
    for (; journal.numbered < entries.length; journal.numbered++) {
      const entry: Entry = Object.freeze({ ...entries[journal.numbered]!, seq: journal.numbered + 1 });
      entries[journal.numbered] = entry;
    }
    return entries.slice(Math.max(0, fromSeq - 1)) as Entry[];
  }

  head(sessionId: string): number {
    return this.#journals.get(sessionId)?.entries.length ?? 0;
  }

  list(options: ListOptions = {}): { readonly sessions: readonly SessionInfo[]; readonly next?: string } {
    const infos: SessionInfo[] = [];
    for (const [sessionId, { entries, tenant }] of this.#journals) {
      const times = { createdAt: entries[0]!.at, updatedAt: entries[entries.length - 1]!.at };
      infos.push({ sessionId, ...(tenant === undefined ? {} : { tenant }), seq: entries.length, ...times });
    }
    return listPage(infos, options);
  }

  fork(sessionId: string, seq: number, newId: string): void {
    const source = this.#journals.get(sessionId);
    checkFork(sessionId, seq, source?.entries.length ?? 0, newId, this.head(newId));
    const copy = new Journal();
    for (let i = 0; i < seq; i++) copy.add(source!.entries[i]!);
    copy.numbered = Math.min(seq, source!.numbered);
    this.#journals.set(newId, copy);

    // The copied journal says how far the inbox was taken over. The fork's own inbox counts on from there:
    // with numbers from 1 its first items would look as if they had been taken already.
    const before = this.#inboxes.get(sessionId)?.last ?? 0;
    if (before === 0) return;
    const own = this.#inboxes.get(newId) ?? new Inbox();
    own.last += before;
    own.items.forEach(({ n, item }, i) => (own.items[i] = { n: n + before, item }));
    this.#inboxes.set(newId, own);
  }

  delete(sessionId: string): void {
    this.#journals.delete(sessionId);
    this.#inboxes.delete(sessionId);
  }

  post(sessionId: string, item: InboxItem): void {
    deepFreeze(item);
    let inbox = this.#inboxes.get(sessionId);
    if (inbox === undefined) this.#inboxes.set(sessionId, (inbox = new Inbox()));
    inbox.items.push(Object.freeze({ n: ++inbox.last, item }));
  }

  take(sessionId: string, after: number): readonly { readonly n: number; readonly item: InboxItem }[] {
    const inbox = this.#inboxes.get(sessionId);
    if (inbox === undefined || inbox.items.length === 0) return [];
    const taken = inbox.items.findIndex((item) => item.n > after);
    inbox.items.splice(0, taken === -1 ? inbox.items.length : taken);
    return inbox.items.slice();
  }
}

/**
 * Entries are given away by whoever appends them; what they hold may still be somebody's. A message is the only
 * thing its entry holds and is frozen by the kernel, so the entries every turn writes cost one look each.
 */
function settle(entry: NewEntry): void {
  if ((entry.type === 'message' || entry.type === 'tool_finished') && Object.isFrozen(entry.message)) return;
  deepFreeze(entry);
}

// ── What other stores share ──────────────────────────────────────────────────────────────────────────────────

/** Raises the error of a fork that cannot be made, given how many entries the two sessions have. */
export function checkFork(sessionId: string, seq: number, head: number, newId: string, newHead: number): void {
  if (head === 0) {
    throw new AlliumError('SESSION_UNKNOWN', `Session ${shown(sessionId)} does not exist, so it cannot be forked. Check the id.`, {
      data: { sessionId },
    });
  }
  if (!Number.isInteger(seq) || seq < 1 || seq > head) throw invalidOption('seq', `an entry number from 1 to ${head}`, seq);
  if (newHead !== 0) throw sessionConflict(newId, 0, newHead);
}

/** The options of `list` with their defaults; `after` is the last session of the page before. */
export interface ListQuery {
  readonly tenant: string | undefined;
  readonly since: number | undefined;
  readonly limit: number;
  readonly after: { readonly updatedAt: number; readonly sessionId: string } | undefined;
}

export function listQuery(options: ListOptions): ListQuery {
  checkKeys('`list`', options, ['tenant', 'since', 'limit', 'cursor']);
  const { tenant, since, limit = 100, cursor } = options;
  if (!Number.isInteger(limit) || limit < 1) throw invalidOption('limit', 'an integer ≥ 1', limit);
  if (cursor === undefined) return { tenant, since, limit, after: undefined };
  const parts = /^(-?\d+(?:\.\d+)?):(.*)$/s.exec(cursor);
  if (parts === null) throw invalidOption('cursor', 'the `next` of an earlier page', cursor);
  return { tenant, since, limit, after: { updatedAt: Number(parts[1]), sessionId: parts[2]! } };
}

/** The cursor that goes on after a session. It names a place in the order, so nothing shifts while somebody pages. */
export function listCursor(last: SessionInfo): string {
  return `${last.updatedAt}:${last.sessionId}`;
}

/** Newest first; sessions of the same time by id, in the order of their UTF-16 code units. */
export function compareSessions(a: { updatedAt: number; sessionId: string }, b: { updatedAt: number; sessionId: string }): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  return a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0;
}

/** One page of `infos`, for stores that have them all at hand. */
export function listPage(infos: readonly SessionInfo[], options: ListOptions): { readonly sessions: readonly SessionInfo[]; readonly next?: string } {
  const { tenant, since, limit, after } = listQuery(options);
  const wanted = infos
    .filter((info) => tenant === undefined || info.tenant === tenant)
    .filter((info) => since === undefined || info.updatedAt >= since)
    .filter((info) => after === undefined || compareSessions(info, after) > 0)
    .sort(compareSessions);
  const sessions = wanted.slice(0, limit);
  return wanted.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
}
