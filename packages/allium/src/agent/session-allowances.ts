/** Lists and revokes what was allowed in a session, from outside a run. */

import { placesOf } from '../kernel/inbox/claims.js';
import { posted, revokedIn } from '../kernel/inbox/inbox.js';
import { post } from '../kernel/inbox/posting.js';
import { type Allowed, revoking } from '../kernel/journal/allowances.js';
import type { SessionState } from '../kernel/journal/session-state.js';
import type { Store } from '../kernel/protocol/store.js';

/** Something that isn't asked again in a session. */
export interface Allowance {
  /** For `session.revoke(id)`. */
  readonly id: string;
  readonly toolName: string;
  /** `tool`: any call of the tool. `arguments`: only calls with the same arguments. */
  readonly scope: 'tool' | 'arguments';
  /** For scope `arguments`: the arguments as the model wrote them, as JSON text. */
  readonly arguments?: string;
  /** The middleware that asked. The allowance only counts for this one. */
  readonly by?: string;
  /** The name of the sub-agent that asked, if one did. */
  readonly agent?: string;
  /** When the run took the answer, in milliseconds since the epoch. */
  readonly at: number;
}

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

/** The allowances as users see them, oldest first. */
export function listed(allowed: Allowed | undefined): readonly Allowance[] {
  return [...(allowed?.values() ?? [])].map(({ request, scope, at }) => ({
    id: request.id,
    toolName: request.toolName,
    scope,
    ...(scope === 'arguments' && { arguments: request.arguments }),
    ...(request.by !== undefined && { by: request.by }),
    ...(request.from && { agent: request.from.agent }),
    at,
  }));
}
