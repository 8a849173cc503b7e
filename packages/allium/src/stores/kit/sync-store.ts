/** Stores that need no server. */

import type {
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  Posted,
  SessionPage,
  Snapshot,
  Store,
  Tail,
} from '../../index.js';

/** A store that answers without promises, because it needs no server. */
export interface SyncStore extends Store {
  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number;
  read(sessionId: string, fromSeq: number): readonly Entry[];
  tail?(sessionId: string): Tail;
  head(sessionId: string): number;
  list(options?: ListOptions): SessionPage;
  fork(sessionId: string, seq: number, newId: string): void;
  delete(sessionId: string): void;
  post(sessionId: string, item: InboxItem): void;
  take(sessionId: string, after: number): readonly Posted[];
  close(): void;
}
