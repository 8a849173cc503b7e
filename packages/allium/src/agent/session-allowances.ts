/** Lists and revokes what was allowed in a session, from outside a run. */

import { placesOf } from '../kernel/inbox/claims.js';
import { posted, revokedIn } from '../kernel/inbox/inbox.js';
import { post } from '../kernel/inbox/posting.js';
import { type Allowed, revoking } from '../kernel/journal/allowances.js';
import type { SessionState } from '../kernel/journal/session-state.js';
import type { Store } from '../kernel/protocol/store.js';

/** What is allowed now. Revocations that no run has taken in yet count too. */
export async function allowedIn(store: Store, state: SessionState): Promise<Allowed | undefined> {
  return revoking(state.allowed, revokedIn(await posted(store, state)));
}

/**
 * Goes through the inbox, because an append would end a run in another process. The current or next run journals it when it
 * reads the inbox, which it does before it relies on an allowance.
 */
export async function revoke(store: Store, state: SessionState, id: string): Promise<boolean> {
  const allowed = await allowedIn(store, state);
  const given = [...(allowed?.values() ?? [])].find(({ request }) => request.id === id);
  if (!given) return false;
  // The sub-agent that asked remembers it too. Ours comes last: while it is listed, it can be revoked again.
  for (const { at, requestId } of placesOf(state.sessionId, given.request))
    await post(store, at, { type: 'revoke', id: requestId });
  await post(store, state.sessionId, { type: 'revoke', id });
  return true;
}
