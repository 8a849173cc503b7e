/** Ends runs of sub-agents whose call was answered without them: nobody can resume those. */
import { Journal } from '../journal/journal.js';
import type { OpenRun } from '../journal/journaled-run.js';
import { catchUp } from '../journal/read-session.js';
import { SessionState } from '../journal/session-state.js';
import type { Clock } from '../lib/clock.js';
import { AlliumError } from '../lib/errors.js';
import { toolCallsOf } from '../messages/messages.js';
import type { RunStatus, Stop } from '../protocol/stop.js';
import type { Store } from '../protocol/store.js';
import { unanswered } from './unanswered.js';

/** Where sub-agents are kept. */
export interface Home {
  readonly store: Store;
  /** The parent's agent. */
  readonly agent: { readonly clock: Clock; readonly _forgets: boolean };
  /** Sessions are deleted when their run has ended. */
  readonly forgets: boolean;
}

/** Names one of the children of a call: unique in its session, and the same after a resume. */
export function placeOf(messageId: string, index: number, ordinal: number): string {
  return `${messageId}.${index}${ordinal > 1 ? `+${ordinal}` : ''}`;
}

/** The session of a child; a new try has one of its own. */
export function childId(parentId: string, place: string, tries: number): string {
  return `${parentId}/${place}${tries > 1 ? `~${tries}` : ''}`;
}

/** Ends the run of a session if one is open. Runs below it end first, so that they are still found after a crash. */
export async function endRun(
  home: Home,
  sessionId: string,
  { status, stop }: { readonly status: RunStatus; readonly stop: Stop } = GIVEN_UP,
): Promise<void> {
  const state = new SessionState(sessionId);
  await catchUp(home.store, state);
  const { open } = state;
  if (open) {
    await endChildren(home, sessionId, turnOf(open));
    const { runId, turns } = open;
    await new Journal(home.store, state, home.agent.clock).append([
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
export async function endChildren(home: Home, parentId: string, left: GivenUp | undefined): Promise<void> {
  if (!left) return;
  const { messageId, calls } = left;
  for (const index of calls)
    await inTurn(home, (ordinal) => {
      const place = placeOf(messageId, index, ordinal);
      return inTurn(home, (tries) => endIfThere(home, childId(parentId, place, tries)));
    });
}

/**
 * Ends the children of calls that have a result. They normally have ended before: only a store that failed while the run was
 * being aborted can have kept them open, because results are written first.
 */
export async function endAnswered(home: Home, parentId: string, open: OpenRun): Promise<void> {
  const turn = turnOf(open);
  if (!turn) return;
  const { batch } = open;
  const calls = batch ? turn.calls.filter((index) => batch.results[index]) : turn.calls;
  await endChildren(home, parentId, { ...turn, calls });
}

/** Counts up until there are no more. Sessions that were deleted at the end of their run leave gaps. */
async function inTurn(home: Home, end: (number: number) => Promise<boolean>): Promise<boolean> {
  let found = false;
  for (let number = 1, missed = 0; missed <= (home.agent._forgets ? LONGEST_GAP : 0); number++) {
    const there = await end(number);
    missed = there ? 0 : missed + 1;
    found ||= there;
  }
  return found;
}

const LONGEST_GAP = 8;

async function endIfThere(home: Home, sessionId: string): Promise<boolean> {
  if ((await home.store.head(sessionId)) === 0) return false;
  await endRun(home, sessionId).catch((error) => {
    // Nobody can resume a damaged session, and its parent need not wait for it.
    if (!(error instanceof AlliumError) || error.code !== 'SESSION_CORRUPT') throw error;
  });
  return true;
}

/** The calls of a run that have no result yet, if there are any. */
export function waiting({ batch }: OpenRun): GivenUp | undefined {
  if (!batch) return undefined;
  const { message, calls, results } = batch;
  return { messageId: message.id, calls: [...calls.keys()].filter((index) => !results[index]) };
}

/** All calls of the current turn. */
export function turnOf({ batch, answer }: OpenRun): GivenUp | undefined {
  const message = batch?.message ?? answer;
  return message && { messageId: message.id, calls: [...toolCallsOf(message).keys()] };
}
