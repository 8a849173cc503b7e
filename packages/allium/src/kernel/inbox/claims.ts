/** A sub-agent's question can be answered in its own session or in a caller's. Makes sure the first answer counts. */

import { catchUp } from '../journal/read-session.js';
import { SessionState } from '../journal/session-state.js';
import { type PendingRequest, parentOf, type Store } from '../protocol/store.js';
import { cameTooLate, firstAnswer } from './answers.js';
import { posted } from './inbox.js';
import { post } from './posting.js';

/**
 * Called before a question is answered in a caller's session: claims it in the sessions further in, so that later answers
 * there don't count. Throws if somebody has answered there already.
 */
export async function claim(store: Store, sessionId: string, request: PendingRequest): Promise<void> {
  for (const { at, requestId } of placesOf(sessionId, request)) {
    const state = new SessionState(at);
    await catchUp(store, state);
    const open = state.open?.requests.get(requestId);
    if (!open) throw cameTooLate(request.id, []);
    await post(store, at, { type: 'claim', requestId });
    const items = await posted(store, state);
    await catchUp(store, state);
    if (firstAnswer(items, open, open.createdAt) || !state.open?.requests.has(requestId))
      throw cameTooLate(request.id, []);
  }
}

/** The sessions below this one that have the question, outermost first, and its id in each. */
export function placesOf(
  sessionId: string,
  { id, from }: PendingRequest,
): { at: string; requestId: string }[] {
  const sessions: string[] = [];
  for (let at = from?.sessionId; at !== sessionId; at = parentOf(at)) {
    if (at === undefined) return [];
    sessions.unshift(at);
  }
  let outer = sessionId;
  let requestId = id;
  return sessions.map((at) => {
    // The id starts with the place of the sub-agent, which is also the end of its session id.
    requestId = requestId.slice(at.slice(outer.length).replace(/~\d+$/, '').length);
    outer = at;
    return { at, requestId };
  });
}
