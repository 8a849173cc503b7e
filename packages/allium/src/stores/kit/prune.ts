/** Deletes sessions that nobody has used for a long time. */

import type { SessionInfo, Store } from '../../index.js';
import { checkKeys, invalidOption, parentSession } from '../../kit/index.js';

export interface PruneOptions {
  /** Sessions last used before this time are deleted (milliseconds since the epoch). */
  readonly before: number;
  /** Only sessions of this tenant. @default all */
  readonly tenant?: string;
  /** Also those with a run that waits or broke off, which could still be resumed. @default false */
  readonly open?: boolean;
}

/**
 * Finds the sessions to delete, newest first. Sessions of sub-agents are deleted with the session they belong to, so
 * they are only found if that one is gone.
 */
export async function* prunable(store: Store, options: PruneOptions): AsyncGenerator<SessionInfo> {
  checkKeys('prunable()', options, ['before', 'tenant', 'open']);
  const { before, tenant, open = false } = options;
  if (!Number.isFinite(before)) throw invalidOption('before', 'a time in milliseconds', before);
  let cursor: string | undefined;
  do {
    const page = await store.list({
      limit: 1000,
      ...(tenant !== undefined && { tenant }),
      ...(cursor !== undefined && { cursor }),
    });
    for (const info of page.sessions) {
      if (info.updatedAt >= before || !(await isAlone(store, info.sessionId))) continue;
      if (open || !(await hasOpenRun(store, info))) yield info;
    }
    cursor = page.next;
  } while (cursor !== undefined);
}

/** Deletes a session that was found. False if somebody has used it since. */
export async function pruneSession(store: Store, { sessionId, seq }: SessionInfo): Promise<boolean> {
  if ((await store.head(sessionId)) !== seq) return false;
  await store.delete(sessionId);
  return true;
}

async function isAlone(store: Store, sessionId: string): Promise<boolean> {
  const parent = parentSession(sessionId);
  if (parent === undefined) return true;
  // It may have been deleted with its parent since the list was read.
  return (await store.head(parent)) === 0 && (await store.head(sessionId)) > 0;
}

/** The end of a run is nearly always among the last entries. */
const LAST = 20;

async function hasOpenRun(store: Store, { sessionId, seq }: SessionInfo): Promise<boolean> {
  for (const from of [Math.max(1, seq - LAST), 1]) {
    const entries = await store.read(sessionId, from);
    const last = entries.findLast(({ type }) => type === 'run_start' || type === 'run_end');
    if (last) return last.type === 'run_start';
  }
  return false;
}
