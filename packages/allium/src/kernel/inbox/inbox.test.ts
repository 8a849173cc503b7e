/** What waits for its turn: in the inbox until it is judged, taken once, and never in the journal before. */
import { Agent, memoryStore, type Store, textOf, tool, userMessage } from 'allium';
import { collect, scriptedModel, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../../../test/run-checks.js';

const guard = {
  name: 'guard',
  guard: {
    on: ['input' as const],
    find: (text: string) =>
      [...text.matchAll(/SECRET/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
    replacement: '[x]',
  },
};
const journalOf = async (store: Store, id = 's') => JSON.stringify(await store.read(id, 1));

describe('what waits', () => {
  it('is never in the journal in its unjudged form: before a run, during it or after it', async () => {
    const store = memoryStore();
    const speaks = tool({
      name: 'speaks',
      description: 'Speaks.',
      input: z.object({}),
      execute: async () => {
        await session.followUp('SECRET in it');
        return 'done';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'speaks' }), 'a', 'b', 'c', 'd']);
    const agent = new Agent({ store, model, tools: [speaks], middleware: [guard], limits: { turns: 1 } });
    const session = agent.session('s');
    await session.steer('SECRET before');
    const { result } = await collect(session.stream('go'));
    expect(result!.queued).toHaveLength(1);
    await session.followUp('SECRET after');
    const next = await session.run('go on', { limits: { turns: 9 } });
    expect(next.queued).toEqual([]);
    expect(result!.messages.map(textOf).slice(0, 2)).toEqual(['go', '[x] before']);
    expect(next.messages.map(textOf)).toEqual(['go on', 'a', '[x] in it', '[x] after', 'b']);
    expect(await journalOf(store)).not.toContain('SECRET');
  });

  it.each([
    ['without what a guard finds in it', {}, [[{ type: 'text', text: '[x] later' }]]],
    ['without what it says where a guard judges', { judge: () => undefined }, [[]]],
    ['without what it says where a guard refuses it', { action: 'block' as const }, [[]]],
    [
      'without what it says where a guard breaks',
      {
        find: (text: string) => {
          if (text.includes('SECRET')) throw new Error('broken');
          return [];
        },
      },
      [[]],
    ],
  ])('is reported %s', async (_, more, told) => {
    const store = memoryStore();
    const middleware = [{ name: 'guard', guard: { ...guard.guard, ...more } }];
    const session = new Agent({ store, model: scriptedModel(['a']) }).session('s');
    await session.followUp('SECRET later');
    const limits = { turns: 1 };
    const { events, result } = await collect(session.stream('go', { middleware, limits }));
    expect(result!.queued.map(({ content }) => content)).toEqual(told);
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });

  it.each<[string, unknown]>([
    ['nothing', null],
    ['text', 'hey'],
    ['content of no kind', { id: '', role: 'user', content: [{ type: 'poem' }] }],
  ])('and is not a message is left out, visibly, and blocks nothing: %s', async (_, message) => {
    const store = memoryStore();
    for (const type of ['steer', 'follow_up'] as const) store.post('s', { type, message: message as never });
    const agent = new Agent({ store, model: scriptedModel(['a', 'b']), middleware: [guard] });
    const session = agent.session('s');
    const { events, result } = await collect(session.stream('go'));
    expect(result).toMatchObject({ status: 'done', queued: [] });
    expect(events.filter(({ type }) => type === 'custom')).toMatchObject(
      ['steer', 'follow_up'].map(() => ({ name: 'message_refused', by: 'kernel' })),
    );
    expect((await session.run('on')).messages.map(textOf)).toEqual(['on', 'b']);
  });

  it('and is not a message is reported once, however often it is found', async () => {
    const store = memoryStore();
    const posts = {
      name: 'posts',
      afterModel: () => {
        store.post('s', { type: 'steer', message: null as never });
        store.post('s', { type: 'steer', message: userMessage('later') });
      },
    };
    const session = new Agent({ store, model: scriptedModel(['a', 'b', 'c']) }).session('s');
    // The limit ends the run when both are found, and before they are taken.
    const limited = await collect(session.stream('go', { middleware: [posts], limits: { turns: 1 } }));
    expect(limited.result!.queued.map(textOf)).toEqual(['later']);
    const { events } = await collect(session.stream('on'));
    const told = [...limited.events, ...events].filter(({ type }) => type === 'custom');
    expect(told).toMatchObject([{ name: 'message_refused' }]);
  });

  it('keeps nothing in the inbox that was taken', async () => {
    const store = memoryStore();
    const agent = new Agent({ store, model: scriptedModel(['a', 'b', 'c']) });
    const session = agent.session('s');
    await session.followUp('later');
    await session.steer('now');
    await session.run('go');
    const taken = (await store.read('s', 1)).flatMap((entry) => (entry.type === 'inbox' ? [entry] : []));
    expect(taken.map(({ cursor, waits }) => [cursor, waits])).toEqual([
      [2, [1, 2]],
      [2, [1]],
      [2, undefined],
    ]);
    expect(await store.take('s', 2)).toEqual([]);
  });

  it('stays with the source of a fork; the fork hears only its own messages', async () => {
    const store = memoryStore();
    const agent = new Agent({ store, model: scriptedModel(['a', 'b', 'c', 'd']), limits: { turns: 1 } });
    const session = agent.session('s');
    await session.followUp('to the source');
    expect((await session.run('go')).queued).toHaveLength(1);
    await store.fork('s', await store.head('s'), 'f');
    const fork = agent.session('f');
    await fork.followUp('to the fork');
    const forked = await fork.run('go on', { limits: { turns: 9 } });
    expect(forked.messages.map(textOf)).toEqual(['go on', 'b', 'to the fork', 'c']);
    expect((await session.run('and you', { limits: { turns: 1 } })).queued.map(textOf)).toEqual([
      'to the source',
    ]);
  });

  it('is an error of the store if items are malformed or come without numbers', async () => {
    for (const wrong of [{ item: { type: 'cancel' } }, { n: 1, item: null }, null]) {
      const store = storeWith(memoryStore(), { take: () => [wrong] as never });
      const agent = new Agent({ store, model: scriptedModel(['a']) });
      await expect(agent.session('s').run('go')).rejects.toMatchObject({
        code: 'STORE_FAILED',
        message: expect.stringContaining('take() of the store'),
      });
    }
  });

  const down = new Error('ECONNREFUSED');
  it.each<[string, () => unknown]>([
    [
      'at once',
      () => {
        throw down;
      },
    ],
    ['later', () => Promise.reject(down)],
    ['with what is no answer', () => null],
  ])('leaves a run that can be resumed if the store fails %s', async (_, fails) => {
    let ran = 0;
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => `seen ${++ran}` });
    const session = (store: Store, ...script: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ store, model: scriptedModel(script), tools: [look] }).session('s');
    const script = [toolCalls({ name: 'look' }), 'end'];
    // Before the input, after each turn, and at the end.
    for (let nth = 1; nth <= 4; nth++) {
      ran = 0;
      const whole = memoryStore();
      let n = 0;
      const take = (...given: Parameters<Store['take']>) =>
        ++n === nth ? (fails() as never) : whole.take(...given);
      const failing = session(storeWith(whole, { take }), ...script).run('go');
      await expect(failing, `take ${nth}`).rejects.toMatchObject({ code: 'STORE_FAILED' });
      // Before the input was taken in there is no run.
      if (nth === 1) {
        expect(await whole.head('s')).toBe(0);
        continue;
      }
      const left = session(whole, 'heard');
      await left.steer('meanwhile');
      expect(await left.resume(), `take ${nth}`).toMatchObject({ status: 'done', text: 'heard' });
      const said = (await left.messages()).map(textOf);
      expect(said).toEqual(['go', '', 'seen 1', ...(nth === 2 ? [] : ['end']), 'meanwhile', 'heard']);
      expect(ran).toBe(1);
    }
  });

  it('leaves no call in doubt if the store fails while its result is being written', async () => {
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
    const whole = memoryStore();
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    let writes = (): void => {};
    const written = new Promise<void>((resolve) => {
      writes = resolve;
    });
    let takes = 0;
    const store = storeWith(whole, {
      async append(id, seq, entries) {
        if (entries.some(({ type }) => type === 'tool_finished')) {
          writes();
          for (let i = 0; i < 5; i++) await turn();
        }
        return whole.append(id, seq, entries);
      },
      async take(id, cursor) {
        if (++takes !== 3) return whole.take(id, cursor);
        await written;
        throw new Error('ECONNREFUSED');
      },
    });
    const session = (of: Store, ...script: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ store: of, model: scriptedModel(script), tools: [look] }).session('s');
    const failing = session(store, toolCalls({ name: 'look' })).run('go');
    await expect(failing).rejects.toMatchObject({ code: 'STORE_FAILED' });
    const { messages } = await session(whole, 'end').resume();
    expect(messages.map(textOf)).toEqual(['go', '', 'seen', 'end']);
  });
});

it('waiting messages are taken once and in order, wherever the process dies', async () => {
  const step = fc.record({
    say: fc.array(fc.constantFrom<'steer' | 'followUp'>('steer', 'followUp'), { maxLength: 3 }),
    calls: fc.boolean(),
  });
  const scenario = fc.record({
    before: fc.array(fc.constantFrom<'steer' | 'followUp'>('steer', 'followUp'), { maxLength: 3 }),
    steps: fc.array(step, { minLength: 1, maxLength: 6 }),
    turns: fc.constantFrom(1, 2, 50),
    /** Appends after which the process dies; with half of them the append was written, and nobody was told. */
    deaths: fc.array(fc.record({ after: fc.integer({ min: 0, max: 6 }), written: fc.boolean() }), {
      maxLength: 4,
    }),
  });
  await fc.assert(
    fc.asyncProperty(scenario, async ({ before, steps, turns, deaths }) => {
      const inner = memoryStore();
      const said: Record<string, string[]> = { steer: [], followUp: [] };
      const say = async (agent: Agent, type: 'steer' | 'followUp') => {
        const text = `${type} ${said[type]!.length} SECRET`;
        await agent.session('s')[type](text);
        said[type]!.push(text.replace('SECRET', '[x]'));
      };
      const script = [...steps];
      const process = (death: { after: number; written: boolean } | undefined): Agent => {
        let left = death?.after ?? Number.POSITIVE_INFINITY;
        let dead = false;
        const store = storeWith(inner, {
          append(id, seq, entries) {
            if (dead) throw new Error('dead');
            dead = left-- <= 0;
            if (!dead || death!.written) inner.append(id, seq, entries);
            if (dead) throw new Error('dead');
            return seq + entries.length;
          },
          post(id, item) {
            if (dead) throw new Error('dead');
            inner.post(id, item);
          },
        });
        const speaks = tool({
          name: 'speaks',
          description: 'Speaks.',
          input: z.object({}),
          execute: async () => {
            for (const type of script.shift()?.say ?? []) await say(agent, type);
            return 'done';
          },
        });
        const model = scriptedModel(
          Array.from({ length: 40 }, () => () => (script[0]?.calls ? toolCalls({ name: 'speaks' }) : 'ok')),
        );
        const agent = new Agent({
          store,
          model,
          tools: [speaks],
          middleware: [guard],
          limits: { turns: death ? turns : 50 },
        });
        return agent;
      };
      for (const type of before) await say(process(undefined), type);
      for (const death of [...deaths, undefined]) {
        const agent = process(death);
        const session = agent.session('s');
        // The last process lives until nothing waits; the others are limited, so that something does.
        for (let i = 0; i < (death ? 2 : 30); i++) {
          const open = (await inner.read('s', 1)).findLast(
            ({ type }) => type === 'run_start' || type === 'run_end',
          );
          const started = open?.type === 'run_start' ? session.resume() : session.run('go');
          const result = await started.catch((error) => error.result);
          if (!death && result.queued.length === 0) break;
          script.shift();
        }
      }
      const heard = (await process(undefined).session('s').messages()).map(textOf);
      for (const type of ['steer', 'followUp'])
        expect(heard.filter((text) => text.startsWith(type))).toEqual(said[type]);
      expect(await journalOf(inner)).not.toContain('SECRET');
    }),
    { numRuns: 150 },
  );
});
