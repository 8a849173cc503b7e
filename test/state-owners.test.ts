/** State of a run belongs to whoever is called by its name, wherever that stands in the list after a resume. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, defineState, type Middleware, memoryStore, type NewEntry, type Store, tool } from 'allium';
import * as middleware from 'allium/middleware';
import { auditLog } from 'allium/middleware/audit-log';
import { callLimits } from 'allium/middleware/call-limits';
import { fileStore } from 'allium/stores/file';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { middlewareArguments } from './middleware-arguments.js';

const input = z.object({});
const asks = tool({
  name: 'asks',
  description: '',
  input,
  execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
});
const look = tool({ name: 'look', description: '', input, execute: () => 'seen' });

/** Begins under one list, with one model call, and goes on under another; how many model calls it makes in all. */
async function calls(before: Middleware[], after: Middleware[], more: object = {}): Promise<number> {
  const store = memoryStore();
  const agent = (list: Middleware[], script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ model: scriptedModel(script), tools: [asks, look], store, middleware: list });
  const { pending } = await agent(before, [toolCalls({ name: 'asks' })])
    .session('s')
    .run('go');
  const looks = Array.from({ length: 60 }, () => toolCalls({ name: 'look' }));
  const { turns } = await agent(after, [...looks, text('done')])
    .session('s')
    .resume({ answers: { [pending[0]!.id]: { type: 'approve' } }, ...more });
  return turns;
}

const three = (name?: string) => callLimits({ modelCalls: 3, ...(name && { name }) });
const fifty = (name?: string) => callLimits({ modelCalls: 50, ...(name && { name }) });

describe('a run that goes on under another list', () => {
  it.each([
    ['with one more before it', () => [fifty(), three()]],
    ['with one more after it', () => [three(), fifty()]],
  ])('is refused where it is not clear whose its state is: %s', async (_, after) => {
    await expect(calls([three()], after())).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('Give each instance its own `name`'),
    });
    expect(await calls([three()], [three(), fifty()], { allowPlanChange: true })).toBe(3);
  });

  it('is refused with one fewer', async () => {
    await expect(calls([three(), fifty()], [three()])).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
  });

  it('has its state where the name is', async () => {
    expect(await calls([three()], [fifty('more'), three()])).toBe(3);
    expect(await calls([three()], [three(), fifty('more')])).toBe(3);
    expect(await calls([three('a'), fifty('b')], [fifty('b'), three('a')])).toBe(3);
    expect(await calls([three('a')], [fifty('b'), fifty('c'), three('a')])).toBe(3);
  });

  it('goes on with several of a kind when there are as many as before', async () => {
    expect(await calls([fifty(), three()], [fifty(), three()])).toBe(3);
  });

  it('has its state where the options are: several of a kind that count different things', async () => {
    const looks = () => callLimits({ perTool: { look: 60 } });
    expect(await calls([looks(), three()], [looks(), three()])).toBe(3);
    expect(await calls([looks(), three()], [three(), looks()])).toBe(3);
    await expect(
      calls([looks(), three()], [callLimits({ perTool: { look: 61 } }), three()]),
    ).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('none of that name has the options it had'),
    });
    expect(await calls([callLimits({ modelCalls: 3, toolCalls: 9 })], [three()])).toBe(3);
  });

  it('is refused where those without a name have changed places', async () => {
    const owning = (cell: string): Middleware => {
      const count = defineState({ name: cell, scope: 'run', initial: 0 });
      return { state: [count], beforeModel: (ctx) => ctx.state.update(count, (n) => n + 1) };
    };
    await expect(calls([owning('a'), owning('b')], [owning('b'), owning('a')])).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('"middleware-1", "middleware-2"'),
    });
    await expect(calls([owning('a'), three()], [owning('a'), three()])).resolves.toBe(3);
  });
});

/** Two that count model calls and stop at a limit. They differ in nothing but that number, which only options may tell. */
const counting = (limit: number, madeWith?: Record<string, unknown>): Middleware => {
  const count = defineState({ name: 'count', scope: 'run', initial: 0 });
  return {
    name: 'counting',
    ...(madeWith && { madeWith }),
    state: [count],
    beforeModel(ctx) {
      if (ctx.state.get(count) >= limit) ctx.stop('max_turns', `after ${limit}`);
      ctx.state.update(count, (n) => n + 1);
    },
  };
};

const folder = mkdtempSync(join(tmpdir(), 'allium-owners-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let stores = 0;

describe.each([
  ['memory', memoryStore],
  ['files', () => fileStore({ dir: join(folder, String(++stores)) })],
] as const)('twins that swap places on a resume, in %s', (_, newStore) => {
  /** What the run comes to that begins under the first list and goes on under each of the others, with one call in each. */
  async function resumed(
    how: 'suspended' | 'crashed',
    [first, ...lists]: (readonly Middleware[])[],
    more: object = {},
  ): Promise<string | undefined> {
    let store: Store = newStore();
    const agent = (list: readonly Middleware[], script: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ model: scriptedModel(script), tools: [asks, look], store, middleware: list });
    const asking =
      how === 'suspended' ? [toolCalls({ name: 'asks' })] : [toolCalls({ name: 'look' }), text('no')];
    let { pending } = await agent(first!, asking).session('s').run('go');
    let stop: string | undefined;
    for (const [i, list] of lists.entries()) {
      if (how === 'crashed') store = await upToTurn(store, newStore(), i + 1);
      const looks = Array.from({ length: 9 }, () => toolCalls({ name: 'look' }));
      const script = i === lists.length - 1 ? looks : asking;
      const answers = pending.map(({ id }) => [id, { type: 'approve' }] as const);
      const result = await agent(list, script)
        .session('s')
        .resume({ ...(answers.length > 0 && { answers: Object.fromEntries(answers) }), ...more });
      pending = result.pending;
      stop = 'message' in result.stop ? result.stop.message : result.stop.reason;
    }
    return stop;
  }

  /** The journal as a crash leaves it after so many turns. */
  async function upToTurn(from: Store, to: Store, turns: number): Promise<Store> {
    const entries = await from.read('s', 1);
    const answers = entries.filter((entry) => entry.type === 'message' && entry.message.role === 'assistant');
    const before = entries.filter(({ seq }) => seq < answers[turns]!.seq);
    await to.append(
      's',
      0,
      before.map(({ seq: _, ...entry }) => entry as NewEntry),
    );
    return to;
  }

  describe.each(['suspended', 'crashed'] as const)('%s', (how) => {
    it.each([
      ['of the box', () => callLimits({ modelCalls: 50 }), () => callLimits({ modelCalls: 3 })],
      ['written by hand', () => counting(50, { limit: 50 }), () => counting(3, { limit: 3 })],
      [
        'with code beside',
        () => counting(50, { limit: 50, on() {} }),
        () => counting(3, { limit: 3, on() {} }),
      ],
    ])('have their state: %s', async (_, large, small) => {
      const expected = expect.stringMatching(/3 model calls|after 3/);
      expect(
        await resumed(how, [
          [large(), small()],
          [large(), small()],
        ]),
      ).toEqual(expected);
      expect(
        await resumed(how, [
          [large(), small()],
          [small(), large()],
        ]),
      ).toEqual(expected);
      expect(
        await resumed(how, [
          [small(), large()],
          [large(), small()],
        ]),
      ).toEqual(expected);
      // The names they had stay theirs, so they may swap again.
      const back = [
        [large(), small()],
        [small(), large()],
        [large(), small()],
        [small(), large()],
      ];
      if (how === 'suspended') expect(await resumed(how, back)).toEqual(expected);
    });

    it.each([
      ['no options', () => counting(50), () => counting(3)],
      ['the same options', () => counting(50, { on() {} }), () => counting(3, { on() {} })],
    ])('are refused elsewhere if nothing tells them apart: %s', async (_, large, small) => {
      for (const after of [
        [large(), small()],
        [small(), large()],
      ]) {
        await expect(resumed(how, [[large(), small()], after])).rejects.toMatchObject({
          code: 'PLAN_MISMATCH',
          message: expect.stringMatching(
            /"counting", "counting#2".*Give each instance its own `name`.*allowPlanChange/,
          ),
        });
      }
      expect(
        await resumed(
          how,
          [
            [large(), small()],
            [large(), small()],
          ],
          { allowPlanChange: true },
        ),
      ).toBe('after 3');
    });

    it('have their state if they are the same objects', async () => {
      const [large, small] = [counting(50), counting(3)];
      expect(
        await resumed(how, [
          [large, small],
          [large, small],
        ]),
      ).toBe('after 3');
      expect(
        await resumed(how, [
          [large, small],
          [small, large],
        ]),
      ).toBe('after 3');
    });

    it('without a name are refused elsewhere, too', async () => {
      const unnamed = (limit: number): Middleware => ({ ...counting(limit), name: undefined }) as never;
      await expect(
        resumed(how, [
          [unnamed(50), unnamed(3)],
          [unnamed(3), unnamed(50)],
        ]),
      ).rejects.toMatchObject({
        code: 'PLAN_MISMATCH',
        message: expect.stringContaining('"middleware-1", "middleware-2"'),
      });
    });

    it('that are the same in all they say are one as good as the other', async () => {
      const one = () => callLimits({ modelCalls: 3 });
      expect(
        await resumed(how, [
          [one(), one()],
          [one(), one()],
        ]),
      ).toContain('3 model calls');
    });
  });

  it('are told apart by their order in journals that were written before', async () => {
    const store = newStore();
    const large = () => callLimits({ modelCalls: 50 });
    const small = () => callLimits({ modelCalls: 3 });
    const agent = (list: Middleware[], script: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ model: scriptedModel(script), tools: [asks, look], store, middleware: list });
    const begun = new Agent({
      model: scriptedModel([toolCalls({ name: 'asks' })]),
      tools: [asks],
      middleware: [large(), small()],
      store: newStore(),
    });
    const session = begun.session('s');
    await session.run('go');
    const old = (await begun.store.read('s', 1)).map(({ seq: _, ...entry }) => {
      const { twins: __, ...before } = entry as typeof entry & { twins?: unknown };
      return before as NewEntry;
    });
    await store.append('s', 0, old);
    const again = agent(
      [large(), small()],
      Array.from({ length: 9 }, () => toolCalls({ name: 'look' })),
    ).session('s');
    const { pending } = await again.resume();
    const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' } as const]));
    expect((await again.resume({ answers })).turns).toBe(3);
  });
});

it('explain() shows the options of a middleware, code and secrets as marks', () => {
  const audit = auditLog({ sink: () => {}, key: 'do not tell', content: false });
  const again = callLimits({ modelCalls: 3, name: 'mine' });
  const { middleware: shown } = new Agent({ model: scriptedModel([]), middleware: [audit, again] }).explain();
  expect(shown.map(({ madeWith }) => madeWith)).toEqual([
    { sink: '[function]', key: '[secret]', content: false },
    { modelCalls: 3, onExceed: 'stop' },
  ]);
});

it('explain() warns of twins that only their objects tell apart', () => {
  const ids = (list: Middleware[]) =>
    new Agent({ model: scriptedModel([]), middleware: list }).explain().hazards.map(({ id }) => id);
  expect(ids([counting(50), counting(3)])).toEqual(['told-apart-by-order']);
  expect(ids([counting(50, { limit: 50 }), counting(3, { limit: 3 })])).toEqual([]);
  expect(ids([callLimits({ modelCalls: 50 }), callLimits({ modelCalls: 3 })])).toEqual([]);
});

const HELPERS = new Set(
  'ask auditHead cacheKey cacheMark deny fileSpill isTransient mayFallBack policyFor verifyAudit localMemory sqliteMemory memorySpill'.split(
    ' ',
  ),
);
const factories = Object.entries(middleware).filter(
  ([name, one]) => typeof one === 'function' && !HELPERS.has(name),
) as [string, (options: object) => Middleware][];

describe.each(factories)('%s()', (name, make) => {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const [options] = (middlewareArguments[kebab]?.() ?? [{}]) as [object];

  it('takes a name', () => {
    expect(make({ ...options, name: 'mine' }).name).toBe('mine');
  });

  it('refuses what is no name', () => {
    for (const wrong of ['', 5, null])
      expect(() => make({ ...options, name: wrong })).toThrow('Expected `name` to be non-empty text');
  });
});
