/** A run as a file, and files as runs. */
import type { Entry, NewEntry, Store } from 'allium';
import type { Sources } from './sources.js';
import { agentOf } from './traces.js';
import type { ExportedTrace } from './wire.js';

/** The journal of a run's session, and those of its sub-agents. */
export async function exportRun(sources: Sources, sessionId: string, runId: string): Promise<ExportedTrace> {
  const sessions: { sessionId: string; entries: readonly Entry[] }[] = [];
  const wanted = [sessionId];
  const seen = new Set(wanted);
  for (const id of wanted) {
    const entries = await sources.read(id, 1);
    sessions.push({ sessionId: id, entries });
    for (const entry of entries) {
      const child = agentOf(entry) ?? (entry.type === 'request' ? entry.request.from?.sessionId : undefined);
      if (child === undefined || seen.has(child) || !child.startsWith(`${sessionId}/`)) continue;
      seen.add(child);
      wanted.push(child);
    }
  }
  return { allium: 'trace', version: 1, sessionId, runId, sessions };
}

export class NotATrace extends Error {
  override readonly name = 'NotATrace';
}

/** Puts the sessions of a file into a store, under ids of their own: the real ones may be in the other store. */
export async function openTrace(store: Store, text: string): Promise<{ sessionId: string; runId: string }> {
  const { sessionId: root, runId, sessions } = parsed(text);
  const idOf = (id: string) => `opened:${id}`;
  for (const { sessionId, entries } of sessions) {
    await store.delete(idOf(sessionId));
    const own = entries.map((entry) => renamed(entry as Entry, idOf));
    if (own.length > 0) await store.append(idOf(sessionId), 0, own);
  }
  return { sessionId: idOf(root), runId };
}

function parsed(text: string): ExportedTrace {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new NotATrace('It is not JSON. Drop a file that Export wrote.');
  }
  const trace = value as ExportedTrace;
  if (trace?.allium !== 'trace')
    throw new NotATrace('It is not a trace of Allium. Drop a file that Export wrote.');
  if (trace.version !== 1)
    throw new NotATrace(`It has version ${String(trace.version)}, and only 1 can be read here.`);
  const sound =
    typeof trace.sessionId === 'string' &&
    typeof trace.runId === 'string' &&
    Array.isArray(trace.sessions) &&
    trace.sessions.length > 0 &&
    trace.sessions.every(
      ({ sessionId, entries }) =>
        typeof sessionId === 'string' && Array.isArray(entries) && entries.every(isEntry),
    ) &&
    trace.sessions.some(({ sessionId }) => sessionId === trace.sessionId);
  if (!sound) throw new NotATrace('It is damaged: sessions or entries are missing.');
  return trace;
}

function isEntry(value: unknown): boolean {
  const { type, at, v } = (value ?? {}) as Record<string, unknown>;
  return typeof type === 'string' && typeof at === 'number' && typeof v === 'number';
}

/** The entry without its number, and with the new ids of sub-agents. */
function renamed({ seq: _, ...entry }: Entry, idOf: (id: string) => string): NewEntry {
  const draft = entry as NewEntry;
  const child = agentOf(entry as Entry);
  if (draft.type === 'tool_finished' && child !== undefined) {
    const details = { ...(draft.message.details as object), agentId: idOf(child) };
    return { ...draft, message: { ...draft.message, details } };
  }
  if (draft.type === 'request' && draft.request.from) {
    const from = { ...draft.request.from, sessionId: idOf(draft.request.from.sessionId) };
    return { ...draft, request: { ...draft.request, from } };
  }
  return draft;
}
