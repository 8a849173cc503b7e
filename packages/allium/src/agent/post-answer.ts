/** Posts an answer from outside a run, and finds out whether it was the first. */

import {
  cameTooLate,
  checkEdit,
  checkFits,
  firstAnswer,
  settles,
  unknownRequest,
} from '../kernel/inbox/answers.js';
import { claim } from '../kernel/inbox/claims.js';
import { posted } from '../kernel/inbox/inbox.js';
import { post, reached } from '../kernel/inbox/posting.js';
import type { SessionState } from '../kernel/journal/session-state.js';
import type { Clock } from '../kernel/lib/clock.js';
import { randomId } from '../kernel/lib/random-id.js';
import type { Plan } from '../kernel/protocol/middleware.js';
import type { Awaitable, Decision, PendingRequest, Posted, Store } from '../kernel/protocol/store.js';

/** The session that asks. */
export interface Asked {
  readonly agent: { readonly clock: Clock; readonly plan: Plan };
  readonly store: Store;
  readonly id: string;
  /** Reads the current state of the session. */
  look(): Awaitable<SessionState>;
}

/** Throws unless it is the first answer to an open question. */
export async function giveAnswer(session: Asked, requestId: string, decision: Decision): Promise<void> {
  const { agent, store, id, look } = session;
  const state = await reached(look);
  const { open, seq } = state;
  const request = open?.requests.get(requestId);
  const now = agent.clock.now();
  const items = await reached(() => posted(store, state));
  const others = [...(open?.requests.values() ?? [])].filter((other) => other.id !== requestId);
  const taken =
    open?.decided?.answers.has(requestId) || isClaimed(items, requestId) || isOver(state, requestId);
  if (taken || (request && isCancelled(items)) || (request && firstAnswer(items, request, now)))
    throw cameTooLate(requestId, others);
  if (!request) throw unknownRequest(requestId, others);
  checkFits(request, decision, now);
  await checkEdit(agent.plan, open!, request, decision);
  await reached(() => claim(store, id, request));
  const postId = randomId();
  await reached(() => post(store, id, { type: 'answer', requestId, decision, at: now, postId }));
  if (!(await reached(() => isFirst(session, state, request, postId, seq))))
    throw cameTooLate(requestId, others);
}

/** The id of a question begins with that of its run. */
function isOver({ ended }: SessionState, requestId: string): boolean {
  return ended !== undefined && requestId.startsWith(`${ended.runId}.`);
}

/**
 * Did this post come before every other answer, and before a cancel? Reads the inbox first: anything a run has taken out of it is in the journal
 * by then, after `seq`. The state in memory of a run in this process may not show it yet.
 */
async function isFirst(
  { store, id }: Asked,
  state: SessionState,
  request: PendingRequest,
  postId: string,
  seq: number,
): Promise<boolean> {
  const items = await posted(store, state);
  const entries = await store.read(id, seq + 1);
  const end = entries.find((entry) => settles(entry, request));
  if (end) return end.type === 'answer' && end.postId === postId;
  return !isCancelled(items) && firstAnswer(items, request, request.createdAt)?.postId === postId;
}

/** If somebody cancelled it, the run ends as soon as anybody works on it, answered or not. */
function isCancelled(items: readonly Posted[]): boolean {
  return items.some(({ item }) => item.type === 'cancel');
}

/** Is it being answered in a caller's session? */
function isClaimed(items: readonly Posted[], requestId: string): boolean {
  return items.some(({ item }) => item.type === 'claim' && item.requestId === requestId);
}
