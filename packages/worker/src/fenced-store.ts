/** The store of one run of one worker: it is shut when somebody else has the run, or when the worker leaves. */
import { AlliumError, type Awaitable, type NewEntry, type Store, type Tail } from 'allium';

export class Fence {
  /**
   * `draining`: results are written, but not the model's next request for tools. So the run breaks off where nothing
   * is in doubt, and another worker asks the model again. `shut`: nothing is written any more.
   */
  state: 'open' | 'draining' | 'shut' = 'open';
  /** Something could not be written, so the run broke off. */
  refused = false;

  constructor(readonly sessionId: string) {}

  /** How many of the entries may be written. */
  allowed(sessionId: string, entries: readonly NewEntry[]): number {
    if (this.state === 'open') return entries.length;
    if (this.state === 'shut') return 0;
    // Sub-agents may finish: their caller would mistake a refusal of the store for a failure of the sub-agent.
    const first = sessionId === this.sessionId ? entries.findIndex(beginsSomething) : -1;
    return first < 0 ? entries.length : first;
  }
}

function beginsSomething(entry: NewEntry): boolean {
  if (entry.type === 'tool_started') return true;
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return false;
  return entry.message.content.some(({ type }) => type === 'tool-call');
}

/** Called with every append that went through. */
export type Appended = (sessionId: string, expectedSeq: number, entries: readonly NewEntry[]) => void;

/** What `store.tail` says of the session a run begins with. It holds until the run writes. */
export type Opening = Promise<Tail> | undefined;

/** Starts reading early, because the read needs nothing else. If it fails, the one who uses the answer gets the error. */
export function openAhead(store: Store, sessionId: string): Opening {
  const opening = store.tail && (async () => store.tail!(sessionId))();
  opening?.catch(() => undefined);
  return opening;
}

/** Stands between a run and the store. `opening`: for those who open the session before anything is written. */
export function fencedStore(store: Store, fence: Fence, appended: Appended, opening?: Opening): Store {
  type Append = (
    sessionId: string,
    seq: number,
    entries: readonly NewEntry[],
    ...rest: unknown[]
  ) => Awaitable<unknown>;
  let ahead = opening;
  const guard =
    (append: Append): Append =>
    async (sessionId, seq, entries, ...rest) => {
      const allowed = fence.allowed(sessionId, entries);
      ahead = undefined;
      // The result of the turn before may come with the model's next answer, and must not be in doubt.
      const written = allowed === entries.length ? entries : entries.slice(0, allowed);
      const result = allowed > 0 ? await append.call(store, sessionId, seq, written, ...rest) : undefined;
      if (allowed > 0) appended(sessionId, seq, written);
      if (allowed === entries.length) return result;
      fence.refused = true;
      throw new AlliumError(
        'STORE_FAILED',
        `This worker no longer has session "${sessionId}": another worker has taken it over, or this one is leaving.`,
      );
    };
  const tail = (sessionId: string): Awaitable<Tail> =>
    (sessionId === fence.sessionId ? ahead : undefined) ?? store.tail!(sessionId);
  // Whatever else a store can do goes through as it is.
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (name === 'tail') return tail;
      if (String(name).startsWith('append')) return guard(member as Append);
      return member.bind(target);
    },
  });
}
