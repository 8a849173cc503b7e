import { Agent, AlliumError, defineState, type Middleware, memoryStore, type StateCell, tool } from 'allium';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { counter, increment, journal, noop, recording } from '../../../../../test/state-setup.js';
import { Cells } from '../context/cells.js';
import { toJson } from '../lib/frozen-json.js';
import type { StoredCell } from './state.js';

describe('defineState', () => {
  it.each([
    [{ name: '', scope: 'run', initial: 0 }, 'Expected `name` to be non-empty text, got ""'],
    [
      { name: 'x', scope: 'turn', initial: 0 },
      "Expected `scope` to be 'call', 'run' or 'session', got \"turn\"",
    ],
    [{ name: 'x', scope: 'run', initial: 0, version: 0 }, 'Expected `version` to be an integer ≥ 1, got 0'],
    [{ name: 'x', scope: 'run', initial: 0, migrate: 5 }, 'Expected `migrate` to be a function, got 5'],
    [{ name: 'x', scope: 'run', initial: 0, migrat: null }, 'Unknown option `migrat` of defineState()'],
    [undefined, 'Expected `options` to be an object with name, scope'],
    [{ name: 'x', scope: 'run', initial: new Date(0) }, 'State cell "x" takes JSON values only'],
  ])('rejects %j', (options, message) => {
    expect(() => defineState(options as never)).toThrow(
      expect.objectContaining({
        code: expect.stringMatching(/^INVALID_/),
        message: expect.stringContaining(message),
      }),
    );
  });
});

describe('cells by scope', () => {
  const seenBy = (cell: StateCell<number>): [Middleware, number[]] => {
    const seen: number[] = [];
    return [
      {
        name: 'counting',
        state: [cell],
        beforeModel(ctx) {
          ctx.state.update(cell, increment);
          seen.push(ctx.state.get(cell));
        },
        beforeTool(ctx) {
          ctx.state.update(cell, increment);
          seen.push(ctx.state.get(cell));
        },
      },
      seen,
    ];
  };
  const twoRuns = async (cell: StateCell<number>): Promise<{ seen: number[]; entries: string[] }> => {
    const [middleware, seen] = seenBy(cell);
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'work' }), text('done'), text('again')]);
    const session = new Agent({ model, tools: [noop('work')], middleware: [middleware], store }).session('s');
    await session.run('one');
    await session.run('two');
    return { seen, entries: (await journal(store)).filter((line) => line.startsWith('state')) };
  };

  it('call: one model or tool call; never journaled', async () => {
    const { seen, entries } = await twoRuns(counter('call'));
    expect(seen).toEqual([1, 1, 1, 1]);
    expect(entries).toEqual([]);
  });

  it('run: from the start of a run to its end', async () => {
    const { seen, entries } = await twoRuns(counter('run'));
    expect(seen).toEqual([1, 2, 3, 1]);
    expect(entries).toEqual([
      'state counting:count=1',
      'state counting:count=2',
      'state counting:count=3',
      'state counting:count=1',
    ]);
  });

  it('session: as long as the session', async () => {
    const { seen } = await twoRuns(counter('session'));
    expect(seen).toEqual([1, 2, 3, 4]);
  });

  it('lets a call cell hold anything', async () => {
    const cell = defineState({ name: 'started', scope: 'call', initial: undefined as Date | undefined });
    const seen: unknown[] = [];
    const timing: Middleware = {
      name: 'timing',
      state: [cell],
      beforeModel: (ctx) => ctx.state.set(cell, new Date(5)),
      afterModel: (ctx) => void seen.push(ctx.state.get(cell)),
    };
    await new Agent({ model: scriptedModel(['ok']), middleware: [timing] }).run('go');
    expect(seen).toEqual([new Date(5)]);
  });

  it('keeps concurrent runs of one agent apart', async () => {
    const cell = counter('run');
    const seen: number[] = [];
    const counting: Middleware = {
      name: 'counting',
      state: [cell],
      beforeModel: (ctx) => ctx.state.update(cell, increment),
      afterRun: (ctx) => void seen.push(ctx.state.get(cell)),
    };
    const model = scriptedModel([text('ok')], { repeat: true });
    const agent = new Agent({ model, middleware: [counting] });
    await Promise.all([agent.run('a'), agent.run('b'), agent.run('c')]);
    expect(seen).toEqual([1, 1, 1]);
  });

  it('reports changes with state_change events', async () => {
    const cell = counter();
    const counting: Middleware = {
      name: 'counting',
      state: [cell],
      beforeModel: (ctx) => ctx.state.update(cell, increment),
    };
    const { events } = await collect(
      new Agent({ model: scriptedModel(['ok']), middleware: [counting] }).stream('go'),
    );
    expect(events.filter(({ type }) => type === 'state_change')).toMatchObject([
      { cell: 'counting:count', value: 1 },
    ]);
  });
});

describe('JSON only', () => {
  class Account {
    constructor(readonly balance: number) {}
  }
  it.each([
    [new Date(0), 'got a Date.'],
    [{ seen: new Set(['a']) }, 'got a Set at .seen.'],
    [[new Map()], 'got a Map at [0].'],
    [new Account(5), 'got an Account.'],
    [new (class {})(), 'got an object of a class.'],
    [Object.create({ constructor: 1 }), 'got an object of a class.'],
    [/x/, 'got a RegExp.'],
    [Promise.resolve(1), 'got a Promise.'],
  ])('says what kind of object it was given: %o', (value, said) => {
    expect(() => toJson(value, 'notes')).toThrow(
      `State cell "notes" takes JSON values only, ${said} Store plain data.`,
    );
  });

  it.each([
    ['a date', new Date(0), ''],
    ['a function', () => {}, ''],
    ['NaN', Number.NaN, ''],
    ['a bigint', 1n, ''],
    ['a map inside', { a: [1, new Map()] }, ' at .a[1]'],
    ['undefined itself', undefined, ''],
  ])('rejects %s with an error that names the cell and the place', (_, value, place) => {
    expect(() => toJson(value, 'notes')).toThrow(
      expect.objectContaining({
        code: 'INVALID_STATE',
        message: expect.stringMatching(
          new RegExp(
            `^State cell "notes" takes JSON values only, got .*${place.replace(/[[\]]/g, '\\$&')}\\.`,
          ),
        ),
      }),
    );
  });

  it('rejects a cycle', () => {
    const value: Record<string, unknown> = {};
    value.self = value;
    expect(() => toJson(value, 'notes')).toThrow('got a cycle at .self');
  });

  it('rejects a value more than 1000 levels deep', () => {
    let value: unknown = 'bottom';
    for (let i = 0; i < 1001; i++) value = [value];
    expect(() => toJson(value, 'notes')).toThrow(
      'got something more than 1000 levels deep. Store plain data.',
    );
  });

  it('keeps a property named like the prototype, and says where a hole in a list is', () => {
    const copy = toJson(JSON.parse('{"__proto__":{"a":1},"b":2}'), 'notes');
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"a":1},"b":2}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(() => toJson({ list: Array(2) }, 'notes')).toThrow('got undefined at .list[0].');
  });

  it('copies and freezes JSON values, whatever they are', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const copy = toJson(value, 'any');
        expect(copy).toEqual(value);
        if (typeof copy === 'object' && copy !== null) expect(Object.isFrozen(copy)).toBe(true);
      }),
    );
  });

  it('copies and freezes all of a value, however deep it is', () => {
    for (const depth of [1, 2, 200, 1000]) {
      let value: unknown = 'bottom';
      for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { __proto__: null, inner: value };
      const copy = toJson(value, 'any');
      expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
      let levels = 0;
      for (let at: any = copy; typeof at === 'object'; at = at.inner ?? at[0], levels++)
        expect(Object.isFrozen(at)).toBe(true);
      expect(levels).toBe(depth);
    }
  });

  it('leaves out properties that are undefined', () => {
    expect(toJson({ a: 1, b: undefined }, 'any')).toEqual({ a: 1 });
    expect(Object.keys(toJson({ a: 1, b: undefined }, 'any'))).toEqual(['a']);
  });

  it('fails the hook that set or updated it', async () => {
    const cell = defineState<any>({ name: 'notes', scope: 'run', initial: [] });
    for (const write of [
      (ctx: any) => ctx.state.set(cell, new Date(0)),
      (ctx: any) => ctx.state.update(cell, () => () => {}),
      (ctx: any) => ctx.state.update(cell, 5),
    ]) {
      const agent = new Agent({
        model: scriptedModel(['ok']),
        middleware: [{ name: 'odd', state: [cell], beforeModel: (ctx) => void write(ctx) }],
      });
      await expect(agent.run('go')).rejects.toMatchObject({
        code: 'INVALID_STATE',
        message: expect.stringContaining('"notes"'),
      });
    }
  });
});

describe('update', () => {
  it('is applied at commit, so parallel tools do not lose writes', async () => {
    const cell = counter();
    let arrived = 0;
    let release = (): void => {};
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seen: number[] = [];
    const count = tool({
      name: 'count',
      description: 'Counts.',
      input: z.object({}),
      async execute(_, ctx) {
        const before = ctx.state.get(cell);
        if (++arrived === 3) release();
        await all;
        ctx.state.update(cell, increment);
        seen.push(before, ctx.state.get(cell));
      },
    });
    const store = memoryStore();
    const model = scriptedModel([
      toolCalls({ name: 'count' }, { name: 'count' }, { name: 'count' }),
      text('done'),
    ]);
    await new Agent({ model, tools: [count], state: [cell], store }).session('s').run('go');
    expect(seen.filter((_, i) => i % 2 === 0)).toEqual([0, 0, 0]);
    expect((await journal(store)).filter((line) => line.startsWith('state')).at(-1)).toBe(
      'state agent:count=3',
    );
  });

  it('applied to a value that changed meanwhile gives the value of the last one to commit', () => {
    const cell = counter();
    const cells = new Cells(new Map([[cell, 'count']]), { cells: undefined }, { cells: undefined });
    const [one, two] = [cells.overlay(), cells.overlay()];
    one.set(cell, 10);
    two.update(cell, increment);
    expect(two.get(cell)).toBe(1);
    cells.stage(one);
    cells.stage(two);
    expect(cells.commit()).toEqual([{ key: 'count', version: 1, scope: 'session', value: 11 }]);
  });

  it('that throws at commit names the cell it was for and does not stay in the way', () => {
    const cell = defineState<any>({ name: 'list', scope: 'session', initial: [] });
    const cells = new Cells(new Map([[cell, 'list']]), { cells: undefined }, { cells: undefined });
    const [one, two] = [cells.overlay(), cells.overlay()];
    two.update(cell, (list) => [...list, 1]);
    one.set(cell, null);
    cells.stage(one);
    cells.stage(two);
    expect(() => cells.commit()).toThrow(
      expect.objectContaining({ code: 'INVALID_STATE', message: expect.stringContaining('"list"') }),
    );
    expect(cells.dirty).toBe(false);
  });

  it('never loses a write, in any order of commits', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(5), { maxLength: 20 }), (tools) => {
        const cell = defineState<Record<string, number>>({ name: 'by', scope: 'session', initial: {} });
        const cells = new Cells(new Map([[cell, 'by']]), { cells: undefined }, { cells: undefined });
        const overlays = tools.map((key) => {
          const overlay = cells.overlay();
          overlay.update(cell, (by) => ({ ...by, [key]: (by[key] ?? 0) + 1 }));
          return overlay;
        });
        for (const overlay of overlays.reverse()) {
          cells.stage(overlay);
          cells.commit();
        }
        const wanted: Record<string, number> = {};
        for (const key of tools) wanted[key] = (wanted[key] ?? 0) + 1;
        expect(cells.get(cell)).toEqual(wanted);
      }),
    );
  });
});

describe('commit points', () => {
  const cell = counter();
  const update = (ctx: any): void => ctx.state.update(cell, increment);
  const appendsOf = async (
    middleware: Partial<Middleware>,
    script: Parameters<typeof scriptedModel>[0] = [toolCalls({ name: 'work' }), text('done')],
  ): Promise<string[][]> => {
    const { store, appends } = recording();
    const agent = new Agent({
      model: scriptedModel(script),
      tools: [noop('work')],
      middleware: [{ name: 'counting', state: [cell], ...middleware }],
      store,
    });
    await agent.session('s').run('go');
    return appends.filter((entries) => entries.includes('state'));
  };

  it.each([
    [
      'transformContext',
      {
        transformContext(messages: any, ctx: any) {
          update(ctx);
          return messages;
        },
      },
    ],
    ['beforeModel', { beforeModel: update }],
    ['afterModel', { afterModel: update }],
    ['afterModelResponse', { afterModelResponse: (_: unknown, ctx: any) => update(ctx) }],
  ])('writes of the model phase (%s) ride in the append of the assistant message', async (_, hook) => {
    expect(await appendsOf(hook, ['done'])).toEqual([['assistant', 'state']]);
  });

  it.each([
    ['beforeTool', { beforeTool: update }],
    ['afterTool', { afterTool: update }],
    ['afterToolCall', { afterToolCall: update }],
  ])('writes of a tool (%s) ride in the append of its result', async (_, hook) => {
    expect(await appendsOf(hook)).toEqual([['tool_finished', 'state', 'assistant']]);
  });

  it('writes of the rest ride with turn or run end', async () => {
    expect(await appendsOf({ shouldStopAfterTurn: (ctx) => void update(ctx) }, ['done'])).toEqual([
      ['state', 'run_end'],
    ]);
    expect(await appendsOf({ onRunEnd: (ctx) => void update(ctx) }, ['done'])).toEqual([
      ['state', 'run_end'],
    ]);
    expect(await appendsOf({ afterRun: update }, ['done'])).toEqual([['state', 'run_end']]);
  });

  it('writes of beforeRun hold inside the run: they ride in its first append', async () => {
    expect(await appendsOf({ beforeRun: update }, ['done'])).toEqual([['run_start', 'user', 'state']]);
  });

  it('writes of acceptMessage ride in the append of the message', async () => {
    expect(await appendsOf({ acceptMessage: (_, ctx) => update(ctx) }, ['done'])).toEqual([
      ['run_start', 'user', 'state'],
    ]);
  });

  it('writes nothing if nothing changed', async () => {
    expect(
      await appendsOf({ beforeModel: (ctx) => ctx.state.set(cell, ctx.state.get(cell)) }, ['done']),
    ).toEqual([]);
  });
});

describe('version and migrate', () => {
  const stored = (version: number, value: unknown): Map<string, StoredCell> =>
    new Map([['cell', { version, value }]]);
  const cells = (cell: StateCell<any>, session: Map<string, StoredCell>) =>
    new Cells(new Map([[cell, 'cell']]), { cells: session }, { cells: undefined });

  it('migrates an older value once, and says from which version', () => {
    const calls: number[] = [];
    const cell = defineState({
      name: 'cell',
      scope: 'session',
      initial: { total: 0 },
      version: 3,
      migrate(old, version) {
        calls.push(version);
        return { total: old as number };
      },
    });
    const all = cells(cell, stored(1, 7));
    expect(all.get(cell)).toEqual({ total: 7 });
    expect(all.get(cell)).toEqual({ total: 7 });
    expect(calls).toEqual([1]);
  });

  it('fails with STATE_VERSION for an older value without migrate, and for a newer one', () => {
    const plain = defineState({ name: 'cell', scope: 'session', initial: 0, version: 2 });
    expect(() => cells(plain, stored(1, 7)).get(plain)).toThrow(
      expect.objectContaining({
        code: 'STATE_VERSION',
        message: expect.stringContaining(
          'stored as version 1, but this code reads version 2 and has no `migrate`',
        ),
      }),
    );
    const migrating = defineState({
      name: 'cell',
      scope: 'session',
      initial: 0,
      version: 2,
      migrate: () => 0,
    });
    expect(() => cells(migrating, stored(3, 7)).get(migrating)).toThrow(
      expect.objectContaining({ code: 'STATE_VERSION' }),
    );
  });

  it('reads what an earlier version of the middleware stored', async () => {
    const store = memoryStore();
    const first = counter();
    const counting: Middleware = {
      name: 'counting',
      state: [first],
      beforeModel: (ctx) => ctx.state.update(first, increment),
    };
    await new Agent({ model: scriptedModel(['ok']), middleware: [counting], store }).session('s').run('go');
    const second = defineState({
      name: 'count',
      scope: 'session',
      initial: { n: 0 },
      version: 2,
      migrate: (old) => ({ n: old as number }),
    });
    const seen: unknown[] = [];
    const newer: Middleware = {
      name: 'counting',
      state: [second],
      beforeModel: (ctx) => void seen.push(ctx.state.get(second)),
    };
    await new Agent({ model: scriptedModel(['ok']), middleware: [newer], store }).session('s').run('go');
    expect(seen).toEqual([{ n: 1 }]);
  });
});

describe('declaration', () => {
  it('rejects the use of a cell nobody declared, naming it', async () => {
    const cell = counter();
    const agent = new Agent({
      model: scriptedModel(['ok']),
      middleware: [{ name: 'sloppy', beforeModel: (ctx) => void ctx.state.get(cell) }],
    });
    await expect(agent.run('go')).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining('State cell "count" is not declared'),
    });
  });

  it('shows what was given instead of a cell', async () => {
    const agent = new Agent({
      model: scriptedModel(['ok']),
      middleware: [{ name: 'sloppy', beforeModel: (ctx) => void ctx.state.get('total' as never) }],
    });
    await expect(agent.run('go')).rejects.toThrow('State cell "total" is not declared');
  });

  const owning = (name?: string): Middleware => ({
    ...(name && { name }),
    state: [counter()],
    beforeModel() {},
  });
  const compose = (...middleware: Middleware[]) => new Agent({ model: scriptedModel([]), middleware });

  it('requires names when two instances own session cells', () => {
    expect(() => compose(owning('counting'), owning('counting'))).toThrow(
      expect.objectContaining({
        code: 'DUPLICATE_STATE',
        message: expect.stringContaining('Two middleware named "counting" own a cell "count"'),
      }),
    );
    expect(() => compose(owning(), owning())).toThrow(
      expect.objectContaining({
        code: 'DUPLICATE_STATE',
        message: expect.stringContaining('without a name'),
      }),
    );
    expect(() => compose(owning('one'), owning('two'), owning())).not.toThrow();
  });

  it('treats one middleware listed twice as two instances', () => {
    const one = owning('one');
    expect(() => compose(one, one)).toThrow(AlliumError);
  });

  it('needs no names for run and call cells', () => {
    const running = (): Middleware => ({
      name: 'counting',
      state: [counter('run'), defineState({ name: 'c', scope: 'call', initial: 0 })],
      beforeModel() {},
    });
    expect(() => compose(running(), running())).not.toThrow();
  });

  it('finds session values by name, wherever the middleware stands in the list', async () => {
    const store = memoryStore();
    const cell = counter();
    const seen: number[] = [];
    const counting: Middleware = {
      name: 'counting',
      state: [cell],
      beforeModel(ctx) {
        ctx.state.update(cell, increment);
        seen.push(ctx.state.get(cell));
      },
    };
    await new Agent({ model: scriptedModel(['ok']), middleware: [counting], store }).session('s').run('go');
    await new Agent({ model: scriptedModel(['ok']), middleware: [owning('other'), counting], store })
      .session('s')
      .run('go');
    expect(seen).toEqual([1, 2]);
  });

  it('rejects what is not a cell', () => {
    expect(() => compose({ name: 'odd', state: [{ name: 'x' } as never] })).toThrow(
      expect.objectContaining({ code: 'INVALID_STATE' }),
    );
  });
});

it('carries run cells through suspend and resume: a resumed run is the same run', async () => {
  const cell = counter('run');
  const seen: number[] = [];
  const counting: Middleware = {
    name: 'counting',
    state: [cell],
    beforeModel(ctx) {
      ctx.state.update(cell, increment);
      seen.push(ctx.state.get(cell));
    },
  };
  const asking: Middleware = {
    name: 'asking',
    suspends: true,
    beforeToolCall: () => ({ ask: { title: 'Really?' } }),
  };
  const store = memoryStore();
  const make = (script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ model: scriptedModel(script), tools: [noop('work')], middleware: [counting, asking], store });
  const first = await make([toolCalls({ name: 'work' })])
    .session('s')
    .run('go');
  expect(first.status).toBe('suspended');
  // Another process: nothing but the store is shared.
  const second = await make([text('done')])
    .session('s')
    .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
  expect(second.status).toBe('done');
  expect(second.runId).toBe(first.runId);
  expect(seen).toEqual([1, 2]);
});
