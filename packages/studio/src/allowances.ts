/** What people approved for the rest of a session, listed and revoked. */
import type { Agent, Session } from 'allium';
import { AnswerRefused } from './approvals.js';
import type { Sources } from './sources.js';
import type { AllowanceView } from './wire.js';

export async function allowancesOf(
  sources: Sources,
  anyone: Agent,
  sessionId: string,
): Promise<AllowanceView> {
  const session = await sessionOf(sources, anyone, sessionId);
  return { allowances: session ? await session.allowances() : [] };
}

/** Throws if there is no such allowance, or no longer. */
export async function revokeAllowance(
  sources: Sources,
  anyone: Agent,
  sessionId: string,
  id: string,
): Promise<void> {
  const session = await sessionOf(sources, anyone, sessionId);
  if (!(await session?.revoke(id)))
    throw new AnswerRefused('This approval is gone: it was revoked already, or never given.');
}

/** Allowances belong to a session of a tenant. No agent's tools are needed to read them. */
async function sessionOf(sources: Sources, anyone: Agent, sessionId: string): Promise<Session | undefined> {
  const store = await sources.storeOf(sessionId);
  const entries = await sources.read(sessionId, 1);
  if (entries.length === 0) return undefined;
  const start = entries.find((one) => one.type === 'run_start');
  const tenant = start?.type === 'run_start' ? start.tenant : undefined;
  return anyone.session(sessionId, { store, ...(tenant !== undefined && { tenant }) });
}
