/** How a run writes its journal: what goes into which append, and when. */
import {
  Agent,
  type AgentOptions,
  defineState,
  type Model,
  memoryStore,
  type NewEntry,
  type Store,
  type Tool,
  tool,
} from 'allium';
import { chunks, failWith, fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  deferred,
  expectValidHistory,
  settle,
  storeWith,
  transcript,
} from '../../../../../test/run-checks.js';

const make = (name: string, execute: Tool['execute'] = () => 'ok', options: Partial<Tool> = {}): Tool =>
  tool({ name, description: '', input: z.object({}), execute, ...(options as object) });
const kind = (entry: NewEntry): string =>
  entry.type === 'message'
    ? entry.message.role
    : entry.type === 'tool_finished'
      ? `result ${entry.message.toolCallId}`
      : entry.type;

/** A store that notes what was in each append that succeeded, without the start and the end of runs. */
function recording(store: Store = memoryStore()): { store: Store; appends: string[][] } {
  const appends: string[][] = [];
  const note = (entries: readonly NewEntry[], seq: number): number => {
    appends.push(entries.map(kind));
    return seq;
  };
  const append: Store['append'] = (id, seq, entries) => {
    const wait = store.append(id, seq, entries);
    return typeof wait === 'number' ? note(entries, wait) : wait.then((last) => note(entries, last));
  };
  return { store: storeWith(store, { append }), appends };
}

const START = ['run_start', 'user'];

describe('the last result of a batch', () => {
  const twoTurns = () =>
    scriptedModel([toolCalls({ name: 'a', id: 'c1' }), toolCalls({ name: 'a', id: 'c2' }), text('done')]);

  /** A model that looks at what is written before and after it has waited for something. */
  const looking = (appends: string[][], wait: () => Promise<unknown>) => {
    const seen: string[][] = [];
    const script = scriptedModel([toolCalls({ name: 'a', id: 'c1' }), text('done')]);
    const model: Model = {
      ...script,
      async *stream(request, options) {
        seen.push(appends.at(-1)!);
        await wait();
        seen.push(appends.at(-1)!);
        yield* script.stream(request, options);
      },
    };
    return { model, seen };
  };

  const agentWith = (store: Store, options: Partial<AgentOptions> = {}) =>
    new Agent({ model: twoTurns(), tools: [make('a'), make('b')], store, ...options });

  it('is written together with the next answer: one append per turn', async () => {
    const { store, appends } = recording();
    const { messages } = await agentWith(store).session('s').run('go');
    expect(appends).toEqual([
      START,
      ['assistant'],
      ['result c1', 'assistant'],
      ['result c2', 'assistant'],
      ['run_end'],
    ]);
    expect(await agentWith(store).session('s').messages()).toEqual(messages);
  });

  it('is written before the process waits for anything, whatever the clock says', async () => {
    const { store, appends } = recording();
    const { model, seen } = looking(appends, () => new Promise((resolve) => setTimeout(resolve)));
    await agentWith(store, { model, clock: fakeClock() }).session('s').run('go');
    expect(seen).toEqual([START, START, ['assistant'], ['result c1']]);
    expect(appends).toEqual([START, ['assistant'], ['result c1'], ['assistant'], ['run_end']]);
  });

  it('is written at once if somebody watches', async () => {
    for (const way of ['stream', 'observer']) {
      const { store, appends } = recording();
      const observers = way === 'observer' ? [() => {}] : [];
      const session = agentWith(store, { observers }).session('s');
      if (way === 'observer') await session.run('go');
      else
        for await (const event of session.stream('go'))
          if (event.type === 'tool_execution_end')
            expect(appends.flat()).toContain(`result ${event.toolCall.id}`);
      expect(appends, way).toEqual([
        START,
        ['assistant'],
        ['result c1'],
        ['assistant'],
        ['result c2'],
        ['assistant'],
        ['run_end'],
      ]);
    }
  });

  it('is the only one that may wait: the others are written while their siblings run', async () => {
    const { store, appends } = recording();
    const slow = deferred<string>();
    const running = agentWith(store, {
      model: scriptedModel([toolCalls({ name: 'b', id: 'slow' }, { name: 'a', id: 'fast' }), text('done')]),
      tools: [make('a'), make('b', () => slow.promise)],
    })
      .session('s')
      .run('go');
    await settle();
    expect(appends.at(-1)).toEqual(['result fast']);
    slow.resolve('late');
    await running;
    expect(appends.slice(-2)).toEqual([['result slow', 'assistant'], ['run_end']]);
  });

  it('is written with the state of its tool', async () => {
    const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
    const { store, appends } = recording();
    const tools = [make('a', (_, ctx) => ctx.state.update(cell, (n) => n + 1))];
    await agentWith(store, { tools, state: [cell] })
      .session('s')
      .run('go');
    expect(appends.slice(2, 4)).toEqual([
      ['result c1', 'state', 'assistant'],
      ['result c2', 'state', 'assistant'],
    ]);
  });

  it.each([
    ['that ends the run', [make('a', () => ({ content: 'bye', terminate: true }))], undefined],
    ['before a model that fails', [make('a')], failWith(new Error('offline'))],
  ])('%s is written with its end', async (_, tools, next) => {
    const { store, appends } = recording();
    const model = scriptedModel([toolCalls({ name: 'a', id: 'c1' }), ...(next ? [next] : [])]);
    const session = agentWith(store, { model, tools }).session('s');
    await session.run('go').catch(() => {});
    expect(appends).toEqual([START, ['assistant'], ['result c1', 'run_end']]);
    expectValidHistory(await session.messages());
  });

  it('of a run that is aborted meanwhile is written with its end', async () => {
    const { store, appends } = recording();
    const abort = new AbortController();
    const tools = [
      make('a', () => {
        abort.abort();
        return 'ok';
      }),
    ];
    const session = agentWith(store, { tools }).session('s');
    await expect(session.run('go', { signal: abort.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(appends).toEqual([START, ['assistant'], ['result c1', 'run_end']]);
    expectValidHistory(await session.messages());
  });

  it('is visible to anybody who reads the session meanwhile', async () => {
    const { store } = recording();
    const agent = agentWith(store, { middleware: [{ name: 'look', beforeModel: () => look() }] });
    const session = agent.session('s');
    let look = (): void => {};
    const seen: string[][] = [];
    look = () => void session.messages().then((messages) => seen.push(transcript(messages)));
    await session.run('go');
    expect(seen[1]).toEqual(['user: go', 'assistant: <a>', 'tool: ok']);
  });

  it('of a call that asks first is written with the question that follows', async () => {
    const { store, appends } = recording();
    const asking = make('b', async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type);
    const model = scriptedModel([
      toolCalls({ name: 'a', id: 'c1' }),
      toolCalls({ name: 'b', id: 'c2' }),
      text('done'),
    ]);
    const session = agentWith(store, { model, tools: [make('a'), asking] }).session('s');
    const { pending } = await session.run('go');
    expect(appends.slice(2)).toEqual([['result c1', 'assistant'], ['request']]);
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    expect(await session.resume({ answers })).toMatchObject({ status: 'done', text: 'done' });
    expect(appends.at(-2)).toEqual(['result c2', 'assistant']);
  });
});

describe('a result that cannot be written when its time has come', () => {
  /** Somebody else appends while the model of this run thinks. */
  async function overtaken(sync: boolean) {
    const kept = memoryStore();
    const { store, appends } = recording(
      sync ? kept : storeWith(kept, { append: async (...given) => kept.append(...given) }),
    );
    const [thinking, asked] = [deferred(), deferred()];
    const script = scriptedModel([toolCalls({ name: 'a', id: 'c1' }), toolCalls({ name: 'a', id: 'c2' })]);
    let calls = 0;
    let ran = 0;
    const model: Model = {
      ...script,
      async *stream(request, options) {
        if (++calls === 2) {
          asked.resolve();
          await thinking.promise;
        }
        yield* script.stream(request, options);
      },
    };
    const tools = [
      make('a', () => {
        ran++;
        // In the same breath as the tool: the result is not written yet.
        const runId = 'other';
        kept.append('s', kept.head('s'), [{ v: 1, at: 0, type: 'run_start', runId, plan: [] }]);
        return 'ok';
      }),
    ];
    const running = new Agent({ model, tools, store }).session('s').run('go');
    running.catch(() => {});
    await asked.promise;
    await settle();
    thinking.resolve();
    await expect(running).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
    return { appends, calls, ran, stored: kept.read('s', 1).map(kind) };
  }

  it.each([
    ['a store that answers at once', true],
    ['a store that takes its time', false],
  ])('ends the run with the reason before anything else has effects (%s)', async (_, sync) => {
    const { appends, calls, ran, stored } = await overtaken(sync);
    expect(appends).toEqual([START, ['assistant']]);
    expect(stored).toEqual([...START, 'assistant', 'run_start']);
    expect({ calls, ran }).toEqual({ calls: 2, ran: 1 });
  });
});

describe('a store that takes its time', () => {
  it('writes the last result while the model answers, and everything in order', async () => {
    const kept = memoryStore();
    const gates = [deferred()];
    const { store, appends } = recording(
      storeWith(kept, {
        append: async (id, seq, entries) => {
          if (kind(entries[0]!) === 'result c1') await gates[0]!.promise;
          return kept.append(id, seq, entries);
        },
      }),
    );
    const model = scriptedModel([toolCalls({ name: 'a', id: 'c1' }), chunks('tick', 'tick', 'done')]);
    const running = new Agent({ model, tools: [make('a')], store }).session('s').run('go');
    while (model.requests.length < 2) await settle();
    expect(appends).toEqual([START, ['assistant']]);
    await settle();
    gates[0]!.resolve();
    expect(await running).toMatchObject({ status: 'done', text: 'done' });
    expect(kept.read('s', 1).map(kind)).toEqual([...START, 'assistant', 'result c1', 'assistant', 'run_end']);
    expectValidHistory((await running).messages);
  });

  it('writes what waited for it before what comes next, however soon that comes', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    for (let ticks = 0; ticks < 24; ticks++) {
      const inner = memoryStore();
      const first = deferred();
      let slow = false;
      const store = storeWith(inner, {
        async append(id, seq, entries) {
          const last = inner.append(id, seq, entries);
          if (slow) {
            slow = false;
            await first.promise;
          }
          return last;
        },
      });
      const gates = [deferred(), deferred(), deferred(), deferred()];
      const tools = gates.map((gate, i) =>
        make(`t${i}`, async (_, ctx) => {
          await gate.promise;
          ctx.state.update(count, (n) => n + 1);
          return 'ok';
        }),
      );
      const model = scriptedModel([toolCalls(...tools.map(({ name }) => ({ name }))), text('done')]);
      const agent = new Agent({ store, model, tools, state: [count] });
      const running = agent.session('s').run('go');
      await settle();
      slow = true;
      gates[0]!.resolve();
      await settle();
      // This one waits for the append under way, and the next comes just when that has ended.
      gates[1]!.resolve();
      await settle();
      first.resolve();
      for (let i = 0; i < ticks; i++) await undefined;
      gates[2]!.resolve();
      await settle();
      gates[3]!.resolve();
      await running;
      const values = (await inner.read('s', 1)).flatMap((entry) =>
        entry.type === 'state' ? [entry.value] : [],
      );
      expect(values, `after ${ticks} ticks`).toEqual([1, 2, 3, 4]);
    }
  });
});
