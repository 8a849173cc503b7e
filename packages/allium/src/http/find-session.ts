/** Finds the session of a request: who owns it, and which agent runs it. */
import type { Agent, Entry, Session } from '../index.js';
import { HttpFailure, unknownSession } from './failures.js';
import type { Call } from './route.js';
import type { Caller } from './serve.js';

/** A session that exists and is the caller's. */
export interface Found {
  readonly sessionId: string;
  readonly storeId: string;
  readonly agent: Agent;
  readonly session: Session;
  /** Its id was just made, so nobody else writes to it. */
  readonly isNew?: boolean;
}

/** The session in the path. */
export async function sessionOf(call: Call): Promise<Found> {
  const found = await ownSession(call);
  if (found === undefined) throw unknownSession();
  return found;
}

/** The session in the path. One that doesn't exist and one of somebody else look the same to the caller. */
export async function ownSession(call: Call): Promise<Found | undefined> {
  try {
    return await openSession(call, call.parameters.sessionId!);
  } catch (error) {
    if ((error as { code?: string } | undefined)?.code === 'TENANT_MISMATCH') return undefined;
    throw error;
  }
}

/** Undefined if there is no such session. Throws `TENANT_MISMATCH` if it is somebody else's. */
export async function openSession(call: Call, sessionId: string): Promise<Found | undefined> {
  const { handling, caller } = call;
  const storeId = handling.ids.inStore(sessionId, caller);
  // Its first request may not have been answered yet.
  await handling.hub.begun(storeId);
  if ((await handling.store.head(storeId)) === 0) return undefined;
  const agent = await agentOf(call, storeId);
  const session = agent.session(storeId, tenantOf(caller));
  // Checks the owner.
  await session.pending();
  return { sessionId, storeId, agent, session };
}

export function newSession(call: Call, sessionId: string): Found {
  const { handling, caller } = call;
  const storeId = handling.ids.inStore(sessionId, caller);
  const agent = agentNamed(call) ?? handling.agents.values().next().value!;
  return { sessionId, storeId, agent, session: agent.session(storeId, tenantOf(caller)) };
}

/** For the options of sessions. */
export function tenantOf({ tenant }: Caller): { readonly tenant?: string } {
  return tenant === undefined ? {} : { tenant };
}

/** The agent a request names. */
function agentNamed({ handling, body, query }: Call): Agent | undefined {
  const name: string | undefined = body?.agent ?? query.get('agent');
  if (name === undefined) return undefined;
  const agent = handling.agents.get(name);
  if (!agent) throw new HttpFailure(404, 'AGENT_UNKNOWN', 'There is no such agent.');
  return agent;
}

/** The agent that is named, or the one that last ran the session. */
async function agentOf(call: Call, storeId: string): Promise<Agent> {
  const named = agentNamed(call);
  const { agents, store } = call.handling;
  const first = agents.values().next().value!;
  if (named || agents.size === 1) return named ?? first;
  const entries = await store.read(storeId, 1);
  const start = entries.findLast(
    (entry): entry is Entry & { type: 'run_start' } => entry.type === 'run_start',
  );
  const { agent } = (start?.metadata ?? {}) as { agent?: string };
  return agents.get(agent ?? '') ?? first;
}
