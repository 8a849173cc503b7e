/** What the tests of tool-approval begin with. */
import {
  Agent,
  type Decision,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Request,
  type Store,
  type Tool,
  textOf,
  tool,
} from 'allium';
import { type fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { z } from 'zod';
import { storeWith, type Watched, watch, watched } from './run-checks.js';

export const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
export const results = ({ result }: Watched) =>
  result.messages.filter(({ role }) => role === 'tool').map(textOf);
export const asks = (request: Request = { title: 'May it?' }): Middleware => ({
  name: 'asks',
  beforeToolCall: (ctx) => (ctx.toolCall.name === 'free' ? undefined : { ask: request }),
});

/** One store, any number of agents that take turns with it, and what ran. */
export function world(
  middleware: readonly Middleware[],
  options: { tools?: readonly Tool[]; clock?: ReturnType<typeof fakeClock>; store?: Store } = {},
) {
  const ran: string[] = [];
  const store = options.store ?? memoryStore();
  const make = (name: string): Tool =>
    tool({
      name,
      description: '',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => {
        ran.push(`${name} ${n}`);
        return `${name} ${n}`;
      },
    });
  const tools = options.tools ?? [make('a'), make('free')];
  const session = (...script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({
      model: scriptedModel(script),
      tools,
      middleware,
      store,
      ...(options.clock && { clock: options.clock }),
    }).session('s');
  return {
    ran,
    store,
    session,
    start: (...names: string[]) => watched(session(calls(...names)), 'go'),
    resume: (answers: Record<string, Decision>) => watch(session('end').resumeStream({ answers })),
  };
}
/** The process dies between what a tool did and its result. */
export const withoutResults = (store: Store): Store =>
  storeWith(store, {
    append(id, seq, entries) {
      if (entries.some(({ type }) => type === 'tool_finished')) throw new Error('gone');
      return store.append(id, seq, entries);
    },
  });
export const idOf = (pending: readonly PendingRequest[], callId: string) =>
  pending.find((request) => request.callId === callId)!.id;
