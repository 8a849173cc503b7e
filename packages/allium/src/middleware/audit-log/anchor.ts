/** Where the chain of a session ends. It is stored with the session, so that nobody can cut off lines unnoticed. */

import type { Store } from '../../index.js';
import { checkMethods, checkText } from '../../kit/index.js';
import type { AuditHead } from './seal.js';

/** The end of the chain, and which calls of the latest batch are in it. */
export interface Anchor {
  /** Whose chain it is: a fork begins with the cells of its source. */
  readonly session: string;
  readonly seq: number;
  readonly hash: string;
  readonly message: string;
  readonly calls: readonly string[];
}

export const EMPTY: Anchor = { session: '', seq: 0, hash: '', message: '', calls: [] };

/** A call of a batch: the id of its message, and its own. */
export interface ToolCallId {
  readonly message: string;
  readonly call: string;
}

/**
 * The end of the chain of a session, from its journal. Keep a copy elsewhere now and then: it also shows if somebody
 * restored an old journal together with an old log.
 */
export async function auditHead(store: Store, session: string, name = 'audit-log'): Promise<AuditHead> {
  checkMethods('store', store, ['read']);
  checkText('session', session);
  let found: Anchor = EMPTY;
  for (const entry of await store.read(session, 1))
    if (entry.type === 'state' && entry.cell === `${name}:head`) found = entry.value as Anchor;
  const { seq, hash } = ownAnchor(found, session);
  return { session, seq, hash };
}

/** A fork begins its own chain. Calls that were logged in its source are not logged again. */
export function ownAnchor(stored: Anchor, session: string): Anchor {
  return stored.session === session ? stored : { ...stored, session, seq: 0, hash: '' };
}

export function nextAnchor(anchor: Anchor, hash: string, added: ToolCallId | undefined): Anchor {
  const { session, message, calls } = anchor;
  const seq = anchor.seq + 1;
  if (!added) return { session, seq, hash, message, calls };
  const before = message === added.message ? calls : NO_CALLS;
  const all = before.length === 0 ? [added.call] : [...before, added.call];
  return { session, seq, hash, message: added.message, calls: all };
}

export const NO_CALLS: readonly string[] = [];
