/** The store of one run of one worker: shut when somebody else has the run, or when the worker leaves. */
import { AlliumError, type Awaitable, type NewEntry, type Store } from 'allium';

export class Fence {
  /**
   * `draining`: results are written, but the model's next wish for tools is not: the run breaks off where nothing is in
   * doubt, and another worker asks the model again. `shut`: nothing is written any more.
   */
  state: 'open' | 'draining' | 'shut' = 'open';

  constructor(private readonly sessionId: string) {}

  refuses(sessionId: string, entries: readonly NewEntry[]): boolean {
    if (this.state === 'open') return false;
    if (this.state === 'shut') return true;
    // A sub-agent ends its work: its caller would take a store that refuses for a failure of the sub-agent.
    return sessionId === this.sessionId && entries.some(beginsSomething);
  }
}

function beginsSomething(entry: NewEntry): boolean {
  if (entry.type === 'tool_started') return true;
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return false;
  return entry.message.content.some(({ type }) => type === 'tool-call');
}

/** Stands between a run and the store. `appended` is told of every append that went through. */
export function fencedStore(store: Store, fence: Fence, appended: (sessionId: string) => void): Store {
  type Append = (sessionId: string, seq: number, entries: readonly NewEntry[]) => Awaitable<unknown>;
  const guard =
    (append: Append): Append =>
    async (...args) => {
      const [sessionId, , entries] = args;
      if (fence.refuses(sessionId, entries))
        throw new AlliumError('STORE_FAILED', `Session "${sessionId}" is worked on by another worker now.`);
      const result = await append.apply(store, args);
      appended(sessionId);
      return result;
    };
  // Whatever else a store can do goes through as it is.
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      if (String(name).startsWith('append')) return guard(member as Append);
      return member.bind(target);
    },
  });
}
