/** What other processes, and other code of this one, posted to a session while it runs. */
import { firstAnswers } from './answers.js';
import { Aborted, isThenable, storeAnswered } from './errors.js';
import type { Message } from './messages.js';
import type { Run } from './run.js';
import type { SessionState } from './session-state.js';
import type { Awaitable, Decision, EntryBody, InboxItem, Posted, Queued, Store } from './store.js';

/** Messages that are due, answers to open questions by request id, and the entries to be written together with them. */
export interface Due {
  readonly messages: readonly Message[];
  readonly answers: ReadonlyMap<string, Decision>;
  /** Messages that wait on. */
  readonly queued: readonly Queued[];
  readonly entries: readonly EntryBody[];
}

/**
 * Which messages are due: steering after every turn, follow-ups (`all`) when nothing else is left to do. A cancel
 * aborts the run, unless it was posted before the run began.
 */
export type Wanted = 'steer' | 'all' | 'none' | 'none, before it began';

/** Takes over what was posted; nothing is taken before the entries are written. */
export function drain(run: Run, wanted: Wanted): Awaitable<Due | undefined> {
  let items: Awaitable<readonly Posted[]>;
  try {
    items = run.store.take(run.sessionId, run.state.inboxCursor);
  } catch (error) {
    throw run.ofStore(error);
  }
  if (!isThenable(items)) return sort(run, items, wanted);
  return Promise.resolve(items).then(
    (taken) => sort(run, taken, wanted),
    (error) => {
      throw run.ofStore(error);
    },
  );
}

/** The same for those who only look. */
export function posted(
  store: Store,
  { sessionId, inboxCursor }: SessionState,
): Awaitable<readonly InboxItem[]> {
  const taken = store.take(sessionId, inboxCursor);
  return isThenable(taken) ? Promise.resolve(taken).then(itemsOf) : itemsOf(taken);
}

function itemsOf(taken: readonly Posted[]): readonly InboxItem[] {
  if (!Array.isArray(taken)) throw storeAnswered('take', taken, 'a list of items');
  return taken.map(({ item }) => item);
}

function sort(run: Run, taken: readonly Posted[], wanted: Wanted): Due | undefined {
  const items = itemsOf(taken);
  if (taken.length === 0 && run.state.queued.length === 0) return undefined;
  const queued: Queued[] = [...run.state.queued];
  for (const item of items) {
    if (item.type === 'steer' || item.type === 'follow_up') queued.push(item);
    else if (item.type === 'cancel') {
      if (wanted !== 'none, before it began')
        run.scope.abort(new Aborted(item.reason ?? 'The run was cancelled.'));
    }
  }
  const answers = firstAnswers(items, run.open.requests, run.clock.now());
  const steering = queued.filter((one) => one.type === 'steer');
  const all = steering.length > 0 || wanted === 'steer' ? steering : queued;
  const ready = wanted === 'steer' || wanted === 'all' ? all : [];
  if (taken.length === 0 && ready.length === 0) return undefined;
  const rest = queued.filter((one) => !ready.includes(one));
  const cursor = taken.at(-1)?.n ?? run.state.inboxCursor;
  return {
    messages: ready.map((one) => one.message),
    answers,
    queued: rest,
    entries: [{ type: 'inbox', cursor, queued: rest }],
  };
}
