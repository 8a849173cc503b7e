/** Posting an answer from outside a run, and finding out whether it was the first. */

import { cameTooLate, checkEdit, checkFits, firstAnswer, unknownRequest } from '../inbox/answers.js';
import { claim, isClaimed } from '../inbox/claims.js';
import { posted } from '../inbox/inbox.js';
import { post } from '../inbox/posting.js';
import type { SessionState } from '../journal/session-state.js';
import { randomId } from '../lib/random-id.js';
import type { Awaitable, Decision, PendingRequest, Store } from '../protocol/store.js';
import type { Agent } from './agent.js';

/** Whose question it is. */
export interface Asked {
  readonly agent: Agent;
  readonly store: Store;
  readonly id: string;
  /** What the journal says now. */
  look(): Awaitable<SessionState>;
  /** What the store says, or that it failed. */
  reached<T>(ask: () => Awaitable<T>): Promise<T>;
}

/** Throws unless it is the first answer to an open question. */
export async function giveAnswer(session: Asked, requestId: string, decision: Decision): Promise<void> {
  const { agent, store, id, look, reached } = session;
  const state = await reached(look);
  const { open, seq } = state;
  const request = open?.requests.get(requestId);
  const now = agent.clock.now();
  const items = await reached(() => posted(store, state));
  const others = [...(open?.requests.values() ?? [])].filter((other) => other.id !== requestId);
  const taken = open?.decided?.answers.has(requestId) || isClaimed(items, requestId);
  if (taken || (request && firstAnswer(items, request, now))) throw cameTooLate(requestId, others);
  if (!request) throw unknownRequest(requestId, others);
  checkFits(request, decision, now);
  await checkEdit(agent.plan, open!, request, decision);
  await reached(() => claim(store, id, request));
  const postId = randomId();
  await reached(() => post(store, id, { type: 'answer', requestId, decision, at: now, postId }));
  if (!(await reached(() => isFirst(session, state, request, postId, seq))))
    throw cameTooLate(requestId, others);
}

/**
 * Did this post come before every other answer? What the inbox says holds as long as the question is open; afterwards the
 * journal has the answer that was taken, behind `seq`.
 */
async function isFirst(
  { store, id, look }: Asked,
  before: SessionState,
  request: PendingRequest,
  postId: string,
  seq: number,
): Promise<boolean> {
  const items = await posted(store, before);
  const { open } = await look();
  if (open?.requests.has(request.id)) {
    const first = firstAnswer(items, request, request.createdAt);
    return first ? first.postId === postId : !isClaimed(items, request.id);
  }
  const entries = await store.read(id, seq + 1);
  return entries.some((entry) => entry.type === 'answer' && entry.postId === postId);
}
