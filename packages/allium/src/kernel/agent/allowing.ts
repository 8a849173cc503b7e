/** What is allowed in a session, seen from outside a run. */

import { placesOf } from '../inbox/claims.js';
import { posted, revokedIn } from '../inbox/inbox.js';
import { post } from '../inbox/posting.js';
import { type Allowed, revoking } from '../journal/allowances.js';
import type { SessionState } from '../journal/session-state.js';
import type { Store } from '../protocol/store.js';

/** Without what somebody revoked, whether or not a run has taken that in yet. */
export async function allowedIn(store: Store, state: SessionState): Promise<Allowed | undefined> {
  return revoking(state.allowed, revokedIn(await posted(store, state)));
}

/**
 * Goes through the inbox, as an append would end a run of another process. The next run, or the one under way, journals it
 * when it looks there, which it does before it takes anything for allowed.
 */
export async function revoke(store: Store, state: SessionState, id: string): Promise<boolean> {
  const allowed = await allowedIn(store, state);
  const given = [...(allowed?.values() ?? [])].find(({ request }) => request.id === id);
  if (!given) return false;
  // The sub-agent that asked remembers it as well. Ours is last: as long as it is listed, it can be revoked again.
  for (const { at, requestId } of placesOf(state.sessionId, given.request))
    await post(store, at, { type: 'revoke', id: requestId });
  await post(store, state.sessionId, { type: 'revoke', id });
  return true;
}
