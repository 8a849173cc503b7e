/** What has to be true of every run, however it ends: balanced events and a valid history. For tests. */
import type {
  Agent,
  AgentEvent,
  Message,
  MessageInput,
  RunOptions,
  RunResult,
  RunStream,
  Session,
  Store,
} from 'allium';
import { toolCallsOf } from 'allium';
import { type Collected, collect } from 'allium/testing';
import { expect } from 'vitest';

/** Starts and ends pair up: one run around turns, calls inside turns, updates inside what they belong to. */
export function expectBalanced(events: readonly AgentEvent[]): void {
  expect(events[0]?.type, 'the first event').toBe('agent_start');
  expect(events.at(-1)?.type, 'the last event').toBe('agent_end');
  const open = new Set<string>();
  // A call that somebody is asked about may have started before a resume, and may end after the next one.
  const resumed = events[0]?.type === 'agent_start' && events[0].resumed;
  const waiting = new Set<string>();
  const start = (key: string): void => {
    expect(open.has(key), `${key} starts twice`).toBe(false);
    open.add(key);
  };
  const end = (key: string): void =>
    expect(open.delete(key), `${key} ends without having started`).toBe(true);
  for (const event of events) {
    if (event.type === 'agent_start') start('agent');
    else if (event.type === 'agent_end') end('agent');
    else {
      expect(open.has('agent'), `${event.type} outside the run`).toBe(true);
      if (event.type === 'turn_start') start('turn');
      else if (event.type === 'turn_end') end('turn');
      else if (event.type === 'message_start') start(`message ${event.messageId}`);
      else if (event.type === 'message_end') end(`message ${event.messageId}`);
      else if (event.type === 'tool_execution_start') start(`call ${event.toolCall.id}`);
      else if (event.type === 'tool_execution_waiting') {
        const key = `call ${event.toolCall.id}`;
        if (!resumed) expect(open).toContain(key);
        open.add(key);
        waiting.add(key);
      } else if (event.type === 'tool_execution_end') {
        if (resumed) open.add(`call ${event.toolCall.id}`);
        end(`call ${event.toolCall.id}`);
      } else if (event.type === 'tool_execution_update') {
        if (!resumed) expect(open).toContain(`call ${event.toolCallId}`);
      } else if (event.type === 'message_update' || event.type === 'message_reset') {
        expect(open).toContain(`message ${event.messageId}`);
      }
      if (event.type.startsWith('tool_')) expect(open.has('turn'), `${event.type} outside a turn`).toBe(true);
      if (event.type === 'turn_end')
        expect(
          [...open].filter((key) => !waiting.has(key)),
          'open at turn_end',
        ).toEqual(['agent']);
    }
  }
  const last = events.at(-1);
  const suspended = last?.type === 'agent_end' && last.result.pending.length > 0;
  expect(
    [...open].filter((key) => !(suspended && waiting.has(key))),
    'never ended',
  ).toEqual([]);
}

/** Every call is followed by exactly one result, in the order of the calls, and nothing stands between them. */
export function expectValidHistory(messages: readonly Message[]): void {
  let open: string[] = [];
  const seen = new Set<string>();
  for (const message of messages) {
    expect(Object.isFrozen(message), `message ${message.id} is frozen`).toBe(true);
    if (message.role === 'tool') {
      expect(message.toolCallId, 'results follow their calls, in order').toBe(open.shift());
      continue;
    }
    expect(open, `calls without a result before ${message.id}`).toEqual([]);
    if (message.role !== 'assistant') continue;
    open = toolCallsOf(message).map(({ id }) => id);
    for (const id of open) {
      expect(seen.has(id), `call id ${id} is used twice`).toBe(false);
      seen.add(id);
    }
  }
  expect(open, 'calls without a result at the end').toEqual([]);
}

export interface Watched extends Omit<Collected, 'result'> {
  /** Of the run, whether it resolved or rejected. */
  readonly result: RunResult;
}

/** Reads a run to its end and checks it. A suspended run may have calls without results. */
export async function watch(stream: RunStream): Promise<Watched> {
  const collected = await collect(stream);
  const result = collected.result ?? collected.error!.result;
  expectBalanced(collected.events);
  if (result.status !== 'suspended') expectValidHistory(result.messages);
  return { ...collected, result };
}

/** Runs, watched and unwatched alike pass through here: the same input twice must not behave differently. */
export function watched(
  owner: Agent | Session,
  input: MessageInput | readonly MessageInput[],
  options?: RunOptions,
): Promise<Watched> {
  return watch(owner.stream(input, options));
}

/** The texts of messages, one line each: `role: text`. */
export function transcript(messages: readonly Message[]): string[] {
  return messages.map((message) => {
    const parts = message.content.map((part) =>
      part.type === 'text' ? part.text : part.type === 'tool-call' ? `<${part.name}>` : `[${part.type}]`,
    );
    return `${message.role}: ${parts.join('')}`;
  });
}

/** A promise and its handles. */
export function deferred<T = void>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((done, fail) => {
    resolve = done;
    reject = fail;
  });
  return { promise, resolve, reject };
}

/** Lets everything that is ready run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}

/** A store with some methods replaced. */
export function storeWith(store: Store, replaced: Partial<Store>): Store {
  const bound = ['append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'].map((name) => [
    name,
    (store[name as keyof Store] as (...args: never[]) => unknown).bind(store),
  ]);
  return { ...Object.fromEntries(bound), ...replaced };
}

/** A store whose append number `n` fails, and all that follow. */
export function breakingStore(store: Store, n: number): { store: Store; appends: () => number } {
  let appends = 0;
  const append: Store['append'] = (id, seq, entries) => {
    if (++appends >= n) throw new Error('disk full');
    return store.append(id, seq, entries);
  };
  return { store: storeWith(store, { append }), appends: () => appends };
}
