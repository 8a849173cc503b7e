import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  type Message,
  type Middleware,
  type Model,
  type ModelRequest,
  memoryStore,
  type Store,
  tool,
  userMessage,
} from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { retry } from 'allium/middleware/retry';
import { scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const add = tool({ name: 'add', description: 'Adds.', input: z.object({}), execute: async (_args) => '3' });

/** Shows the model only the last messages from a user message on, and says so. */
const lastFew = (count: number): Middleware =>
  defineMiddleware({
    name: 'last-few',
    enoughHistory: (latest) => latest.length >= count,
    transformContext: (messages) => messages.slice(-count),
  });

/** Answers after one call, always under the same id, and keeps what it was asked. */
function model(): Model & { readonly asked: ModelRequest[] } {
  const asked: ModelRequest[] = [];
  return {
    provider: 'test',
    id: 'plain',
    asked,
    async *stream(request) {
      asked.push(request);
      const isAnswered = request.messages.at(-1)!.role === 'tool';
      if (isAnswered) yield { type: 'text', text: 'done' };
      else yield { type: 'tool-call', id: 'same', name: 'add', arguments: '{}' };
      yield { type: 'finish', reason: isAnswered ? 'stop' : 'tool-calls' };
    },
  };
}

/** Counts the entries that are read. `whole`: without snapshots, so that everything is read at once. */
function watched(inner = memoryStore(), whole = false) {
  const counts = { entries: 0 };
  const counted = <T extends { readonly length: number }>(list: T): T => {
    counts.entries += list.length;
    return list;
  };
  const { tail: _, ...plain } = Object.fromEntries(
    ['append', 'head', 'list', 'fork', 'delete', 'post', 'take', 'tail'].map((name) => [
      name,
      (...args: never[]) => (inner as any)[name](...args),
    ]),
  ) as unknown as Store;
  const store: Store = {
    ...plain,
    read: (id, from) => counted(inner.read(id, from) as readonly never[]),
    ...(!whole && {
      tail(id: string) {
        const tail = inner.tail!(id) as { readonly entries: readonly never[] };
        counted(tail.entries);
        return tail;
      },
    }),
  };
  return { inner, store, counts };
}

const RUNS = 600;

/** A session of 600 runs, in which the first message may be pinned. */
async function long(middleware: readonly Middleware[] = [], first = userMessage('first')) {
  const { store, inner } = watched();
  const session = new Agent({ model: model(), tools: [add], store, middleware }).session('s');
  for (let i = 0; i < RUNS; i++) await session.run(i === 0 ? first : `question ${i}`);
  return inner;
}

async function copied(inner: Store) {
  const copy = memoryStore();
  copy.append(
    's',
    0,
    (await inner.read('s', 1)).map(({ seq, ...entry }) => entry) as never,
    (await inner.tail!('s')).snapshot,
  );
  return copy;
}

interface Tried {
  readonly requests: readonly (readonly Message[])[];
  readonly entries: number;
  readonly messages: readonly Message[];
}

/** One more run in a fork of the session, read from its newest snapshot or whole. */
async function oneMore(
  inner: Store,
  middleware: readonly Middleware[],
  { whole = false, tools = [add], ...options }: Partial<AgentOptions> & { readonly whole?: boolean } = {},
): Promise<Tried> {
  const copy = await copied(inner);
  const { store, counts } = watched(copy, whole);
  const asking = model();
  const agent = new Agent({ model: asking, tools, store, middleware, newId: () => 'fixed', ...options });
  const { messages } = await agent.session('s').run('one more');
  return {
    requests: asking.asked.map((request) => [...request.messages]),
    entries: counts.entries,
    messages,
  };
}

const session = long();

describe('a run in a long session', () => {
  it('reads only the end of it if a middleware needs no more', async () => {
    const given = await session;
    const { entries, requests, messages } = await oneMore(given, [retry(), lastFew(40)]);
    expect(entries).toBeLessThan(2000);
    expect(requests[0]!.length).toBeGreaterThan(30);
    expect(messages).toHaveLength(4);
    const all = await oneMore(given, [retry(), lastFew(40)], { whole: true });
    expect(all.entries).toBeGreaterThan(3 * RUNS);
    expect(contents(requests)).toEqual(contents(all.requests));
  });

  it('reads all of it if no middleware shortens requests, or one does not say how far back it looks', async () => {
    const given = await session;
    const seen: number[] = [];
    const looking = defineMiddleware({
      name: 'looking',
      beforeModel: (ctx) => void seen.push(ctx.history.length),
    });
    expect((await oneMore(given, [retry()])).entries).toBeGreaterThan(3 * RUNS);
    expect((await oneMore(given, [lastFew(40), looking])).entries).toBeGreaterThan(3 * RUNS);
    expect(seen).toEqual([4 * RUNS + 1, 4 * RUNS + 3]);
    // A hook of the agent itself, and a trace, which counts messages from the first one on.
    expect(
      (await oneMore(given, [lastFew(40)], { shouldStopAfterTurn: () => false })).entries,
    ).toBeGreaterThan(3 * RUNS);
    expect((await oneMore(given, [lastFew(40)], { trace: 'changes' })).entries).toBeGreaterThan(3 * RUNS);
  });

  it('reads as far back as middleware say they look', async () => {
    const seen: number[] = [];
    const looking = defineMiddleware({
      name: 'looking',
      looksBack: 1500,
      beforeModel: (ctx) => void seen.push(ctx.history.length),
    });
    const { entries } = await oneMore(await session, [lastFew(40), looking]);
    expect(entries).toBeGreaterThan(1500);
    expect(seen[0]).toBeGreaterThanOrEqual(1500);
    expect(seen[0]).toBeLessThan(4 * RUNS);
  });

  it('reads the rest for a tool that looks at the history', async () => {
    const seen: number[] = [];
    const looking = tool({
      ...add,
      execute: async (_args, ctx) => {
        seen.push(ctx.history.length);
        return '3';
      },
    });
    const given = await session;
    const { requests } = await oneMore(given, [lastFew(40)], { tools: [looking] });
    expect(seen).toEqual([4 * RUNS + 2]);
    expect(contents(requests)).toEqual(contents((await oneMore(given, [lastFew(40)])).requests));
    const near = await oneMore(given, [lastFew(40)], { tools: [tool({ ...looking, looksBack: 0 })] });
    expect(seen[1]).toBeLessThan(2000);
    expect(near.entries).toBeLessThan(2000);
  });

  it('reads back to a pinned message', async () => {
    const pinned = await long([], userMessage('first', { pinned: true }));
    const { entries, requests } = await oneMore(pinned, [historyTruncator({ maxMessages: 20 })]);
    expect(entries).toBeGreaterThan(3 * RUNS);
    expect(requests[0]![0]!.content).toEqual([{ type: 'text', text: 'first' }]);
  });

  it('gives calls new ids while the ids in older messages are unknown', async () => {
    const { messages } = await oneMore(await session, [lastFew(40)]);
    const call = messages.find(({ role }) => role === 'assistant')!.content[0]!;
    expect(call).toMatchObject({ type: 'tool-call', id: 'r_fixed.2.call0' });
  });

  it('can be suspended, and resumed elsewhere', async () => {
    const copy = await copied(await session);
    const asking = defineMiddleware({
      name: 'asking',
      looksBack: 0,
      beforeToolCall: () => ({ ask: {} }),
    });
    const { store, counts } = watched(copy);
    const agent = () =>
      new Agent({ model: model(), tools: [add], store, middleware: [lastFew(40), asking] }).session('s');
    const { pending } = await agent().run('one more');
    const result = await agent().resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result).toMatchObject({ status: 'done', text: 'done' });
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(counts.entries).toBeLessThan(3000);
    expect(await agent().messages()).toHaveLength(4 * RUNS + 4);
  });

  it('fails with the name of a middleware that answers with something invalid', async () => {
    const given = await session;
    const broken = (answer: () => unknown) => [
      defineMiddleware({
        name: 'broken',
        enoughHistory: answer as () => boolean,
        transformContext: (all) => all,
      }),
    ];
    await expect(
      oneMore(
        given,
        broken(() => 'yes'),
      ),
    ).rejects.toMatchObject({
      code: 'INVALID_HOOK_RESULT',
      message: 'enoughHistory of "broken" returned "yes". Return true or false.',
    });
    await expect(
      oneMore(
        given,
        broken(() => {
          throw new Error('no');
        }),
      ),
    ).rejects.toMatchObject({ code: 'MIDDLEWARE_ERROR', message: 'enoughHistory of "broken" failed: no' });
  });
});

describe('built-in middleware', () => {
  const counter = (given: string) => given.length;
  const summaryModel = scriptedModel([text('They added.')], { repeat: true });
  const cases: Record<string, () => Middleware> = {
    'historyTruncator by messages': () => historyTruncator({ maxMessages: 30 }),
    'historyTruncator by tokens': () => historyTruncator({ maxTokens: 300, tokenCounter: counter }),
    compaction: () =>
      compaction({ summaryModel, maxTokens: 1500, keepTailTokens: 400, tokenCounter: counter }),
  };
  for (const [name, make] of Object.entries(cases))
    it(`${name} sends the same from the end of the history as from all of it`, async () => {
      const given = await long([make()]);
      const part = await oneMore(given, [make()]);
      const all = await oneMore(given, [make()], { whole: true });
      expect(part.entries).toBeLessThan(2000);
      expect(all.entries).toBeGreaterThan(3 * RUNS);
      expect(part.requests[0]!.length).toBeGreaterThan(3);
      expect(contents(part.requests)).toEqual(contents(all.requests));
    });
});

/** Without ids of calls, which differ. */
function contents(requests: readonly (readonly Message[])[]): unknown {
  return requests.map((messages) =>
    messages.map(({ role, id, content }) => [role, id, content.map((part) => ({ ...part, id: undefined }))]),
  );
}
