/** Runs of sub-agents whose call has got its answer without them: nobody can go on with those, so they end. */
import type { Clock } from './clock.js';
import { Journal } from './journal.js';
import type { RunStatus, Stop } from './result.js';
import { catchUp, type OpenRun, SessionState } from './session-state.js';
import type { Store } from './store.js';
import { unanswered } from './unanswered.js';

/** Where sub-agents are kept. */
export interface Home {
  readonly store: Store;
  readonly clock: Clock;
  /** Sessions are deleted when their run has ended. */
  readonly forgets: boolean;
}

/** Names a call in its session, and which of its children is meant: the same after a resume, unlike any other. */
export function placeOf(messageId: string, index: number, ordinal: number): string {
  return `${messageId}.${index}${ordinal > 1 ? `+${ordinal}` : ''}`;
}

/** The session of a child; a new try has one of its own. */
export function childId(parentId: string, place: string, tries: number): string {
  return `${parentId}/${place}${tries > 1 ? `~${tries}` : ''}`;
}

/** Ends the run of a session if one is open, and those below it first: after a crash it is still found. */
export async function endRun(
  home: Home,
  sessionId: string,
  { status, stop }: { readonly status: RunStatus; readonly stop: Stop } = GIVEN_UP,
): Promise<void> {
  const state = new SessionState(sessionId);
  await catchUp(home.store, state);
  const { open } = state;
  if (open) {
    await endChildren(home, sessionId, waiting(open));
    const { runId, turns } = open;
    await new Journal(home.store, state, home.clock).append([
      ...unanswered(open, 'the run was given up.'),
      { type: 'run_end', runId, status, stop, turns },
    ]);
  }
  if (home.forgets) await home.store.delete(sessionId);
}

const GIVEN_UP = {
  status: 'aborted',
  stop: { reason: 'aborted', message: 'The call that started it was answered without it.' },
} as const;

/** Calls of a message that have no result of their own. */
export interface GivenUp {
  readonly messageId: string;
  readonly calls: readonly number[];
}

/** Ends the runs of all children of these calls. */
export async function endChildren(
  home: Home,
  parentId: string,
  { messageId, calls }: GivenUp,
): Promise<void> {
  const exists = async (id: string): Promise<boolean> => (await home.store.head(id)) > 0;
  for (const index of calls)
    for (let ordinal = 1; ; ordinal++) {
      const place = placeOf(messageId, index, ordinal);
      if (!(await exists(childId(parentId, place, 1)))) break;
      for (let tries = 1; await exists(childId(parentId, place, tries)); tries++)
        await endRun(home, childId(parentId, place, tries));
    }
}

/** The calls of a run that have no result yet. */
export function waiting({ batch }: OpenRun): GivenUp {
  if (!batch) return { messageId: '', calls: [] };
  const { message, calls, results } = batch;
  return { messageId: message.id, calls: [...calls.keys()].filter((index) => !results[index]) };
}
