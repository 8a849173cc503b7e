/** Passes answers to the run that asked. However often an answer is sent, one run continues with it. */
import type { Decision } from '../index.js';
import { type FollowedRun, readerOf, startRun } from './answer-run.js';
import { afterEntry } from './cursor.js';
import type { SentEvent } from './events.js';
import { HttpFailure } from './failures.js';
import type { Found } from './find-session.js';
import type { EventReader } from './reader.js';
import type { Call } from './route.js';
import { RunReader } from './run-reader.js';

export type Answers = Readonly<Record<string, Decision>>;

/**
 * Gives answers and reads on. `since`: the entry that the questions follow. Answers that were given before in the same
 * words are told what came of them, from the first of them on: a client that sends twice gets the rest twice, and misses
 * nothing.
 */
export async function answerAndFollow(
  call: Call,
  found: Found,
  answers: Answers,
  since: number,
): Promise<FollowedRun> {
  const { hub } = call.handling;
  // A run that is just beginning may have the same answers with it.
  await hub.begun(found.storeId);
  const pending = await found.session.pending();
  const open = pending.filter(({ id }) => id in answers);
  if (open.length > 0)
    try {
      // Without the answers that come too late: those calls count as rejected, and the run continues.
      const now = found.agent.clock.now();
      const inTime = Object.fromEntries(
        open
          .filter(({ createdAt, timeoutMs = Infinity }) => now <= createdAt + timeoutMs)
          .map(({ id }) => [id, answers[id]!]),
      );
      if (hub.isLive(found.storeId)) return joined(await answerLive(call, found, inTime));
      return await startRun(call, found, { type: 'resume', answers: inTime });
    } catch (error) {
      if (!isLate(error)) throw error;
    }
  return joined(await followGiven(call, found, answers, since));
}

/** A run that another request has begun: only that one ends it by leaving. */
export function joined(reader: EventReader): FollowedRun {
  return { reader: () => reader, stop: async () => {} };
}

/** Gives answers to the run that is under way here, and reads on. If it was about to wait and misses them, it is resumed. */
export async function answerLive(call: Call, found: Found, answers: Answers): Promise<EventReader> {
  const head = await call.handling.store.head(found.storeId);
  for (const [id, decision] of Object.entries(answers)) await found.session.answer(id, decision);
  return follow(call, found, answers, head);
}

async function followGiven(call: Call, found: Found, answers: Answers, since: number): Promise<EventReader> {
  const { store } = call.handling;
  const { storeId } = found;
  // What a run has taken out of the inbox is in the journal by then.
  const posted = await store.take(storeId, 0);
  const entries = await store.read(storeId, since + 1);
  const given = entries.filter((one) => one.type === 'answer');
  const waiting = posted.flatMap(({ item }) => (item.type === 'answer' ? [item] : []));
  const isGiven = ([id, decision]: [string, Decision]): boolean => {
    const first = [...given, ...waiting].find(({ requestId }) => requestId === id);
    return first !== undefined && isSame(first.decision, decision);
  };
  if (!Object.entries(answers).every(isGiven))
    throw new HttpFailure(409, 'REQUEST_UNKNOWN', 'Those questions are not open.');
  const first = given.find(({ requestId }) => requestId in answers);
  const head = entries.at(-1)?.seq ?? since;
  return follow(call, found, answers, first ? first.seq - 1 : head);
}

/** Reads on after entry `seq`. A run that waits though it was answered is resumed, also if the client has left by then. */
function follow(call: Call, found: Found, answers: Answers, seq: number): EventReader {
  const { storeId, session } = found;
  const from = (id = afterEntry(seq)): EventReader => readerOf(call, storeId, id);
  // Workers see to it themselves.
  if (call.handling.queue) return new RunReader(from());
  const reader = new RunReader(from(), async (id) => {
    const pending = await session.pending();
    if (!pending.some((one) => one.id in answers)) return undefined;
    try {
      return (await startRun(call, found, { type: 'resume' })).reader();
    } catch (error) {
      if (!isLate(error)) throw error;
      return from(id);
    }
  });
  return new ToTheEnd(reader, (over) => {
    const told = over.catch((error: unknown) => call.handling.onError(error, call.request));
    call.context?.waitUntil?.(told);
  });
}

/** When its client leaves, it reads on to the end by itself. */
class ToTheEnd implements EventReader {
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly inner: EventReader,
    private readonly onLeave: (over: Promise<void>) => void,
  ) {}

  next(): Promise<readonly SentEvent[] | undefined> {
    const batch = this.inner.next();
    this.last = batch;
    return batch;
  }

  hasMore(): Promise<boolean> {
    return this.inner.hasMore();
  }

  leave(): void {
    this.onLeave(this.drain());
  }

  private async drain(): Promise<void> {
    await this.last;
    while (await this.inner.next());
  }
}

/** The reason of a refusal may have been changed by guards. */
function isSame(one: Decision, other: Decision): boolean {
  const said = ({ type, args, text, remember }: Record<string, unknown> & Decision): string =>
    JSON.stringify([type, args, text, remember]);
  return said(one) === said(other);
}

/** Somebody else was quicker. */
function isLate(error: unknown): boolean {
  return LATE.has((error as { code?: string } | undefined)?.code);
}

const LATE: ReadonlySet<string | undefined> = new Set([
  'SESSION_BUSY',
  'SESSION_CONFLICT',
  'SESSION_UNKNOWN',
  'REQUEST_UNKNOWN',
]);
