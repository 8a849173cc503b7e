import { Agent, type Context, defineMiddleware, type Middleware, memoryStore, tool } from 'allium';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';

declare module 'allium' {
  interface RunOptions {
    readonly locale?: string;
    readonly depthFirst?: unknown;
  }
}

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

/** Takes `locale` and notes what its hooks are given. */
function localised(seen: unknown[] = []): Middleware {
  const note = (ctx: Context) => void seen.push(ctx.options);
  return defineMiddleware({
    name: 'localised',
    runOptions: ['locale'],
    beforeRun: note,
    acceptMessage: (_, ctx) => note(ctx),
    beforeModel: note,
    afterModelResponse: (_, ctx) => note(ctx),
    beforeToolCall: (ctx) => note(ctx),
    onRunEnd: (ctx) => note(ctx),
    afterRun: note,
  });
}

const model = () => scriptedModel([text('ok')], { repeat: true });

describe('options that middleware declare', () => {
  it('are in the context of every hook, for run and stream, with a session and without', async () => {
    const seen: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'look' }), text('ok')], { repeat: true }),
      tools: [look],
      middleware: [localised(seen)],
    });
    const options = { locale: 'de' };
    const ways = [
      () => agent.run('go', options),
      () => collect(agent.stream('go', options)),
      () => agent.session('a').run('go', options),
      () => collect(agent.session('b').stream('go', options)),
    ];
    for (const way of ways) {
      seen.length = 0;
      await way();
      expect(seen).toHaveLength(9);
      for (const one of seen) expect(one).toEqual({ locale: 'de' });
    }
  });

  it('are in the context of tools, but not in runs that the tools start', async () => {
    const seen: unknown[] = [];
    const child = new Agent({ model: model(), middleware: [localised(seen)] });
    const ask = tool({
      name: 'ask',
      description: 'Asks another agent.',
      input: z.object({}),
      execute: async (_, ctx) => {
        await child.run('go', { parent: ctx });
        return String(ctx.options.locale);
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask' }), text('ok')]),
      tools: [ask],
      middleware: [localised()],
    });
    const { messages } = await agent.run('go', { locale: 'de' });
    expect(messages.find(({ role }) => role === 'tool')?.content).toEqual([{ type: 'text', text: 'de' }]);
    expect(new Set(seen)).toEqual(new Set([{}]));
  });

  it("are a frozen record of what was passed, without the kernel's own options; empty if there are none", async () => {
    const seen: unknown[] = [];
    const list = ['a'];
    const agent = new Agent({
      model: model(),
      middleware: [{ ...localised(seen), runOptions: ['depthFirst'] }],
    });
    await agent.run('go', { depthFirst: list, metadata: { a: 1 }, limits: { turns: 3 } });
    expect(seen[0]).toEqual({ depthFirst: ['a'] });
    expect((seen[0] as { depthFirst: unknown }).depthFirst).toBe(list);
    expect(Object.isFrozen(seen[0])).toBe(true);
    expect(Object.isFrozen(list)).toBe(false);
    seen.length = 0;
    await agent.run('go');
    await agent.run('go', { depthFirst: undefined });
    for (const one of seen) expect(one).toEqual({});
    expect(seen.every(Object.isFrozen)).toBe(true);
  });

  it('belong to one run: concurrent ones do not see each other’s', async () => {
    const seen: string[] = [];
    const middleware = defineMiddleware({
      name: 'noting',
      runOptions: ['locale'],
      afterModelResponse: (_, ctx) => void seen.push(`${ctx.sessionId} ${ctx.options.locale}`),
    });
    const agent = new Agent({ model: model(), middleware: [middleware] });
    await Promise.all(['a', 'b', 'c'].map((id) => agent.session(id).run('go', { locale: id })));
    expect(seen.sort()).toEqual(['a a', 'b b', 'c c']);
  });

  it('may be declared by the middleware of the run itself', async () => {
    const seen: unknown[] = [];
    const agent = new Agent({ model: model() });
    await agent.run('go', { middleware: [localised(seen)], locale: 'fr' });
    expect(seen[0]).toEqual({ locale: 'fr' });
    await expect(agent.run('go', { locale: 'fr' })).rejects.toThrow('Unknown option `locale` of run().');
  });

  it('may be declared by several, which all get them', async () => {
    const [one, two]: unknown[][] = [[], []];
    const middleware = [localised(one), { ...localised(two), name: 'other' }];
    await new Agent({ model: model(), middleware }).run('go', { locale: 'it' });
    expect([one![0], two![0]]).toEqual([{ locale: 'it' }, { locale: 'it' }]);
  });

  it('may be passed to a resume, which does not remember those of the first start', async () => {
    const seen: unknown[] = [];
    const asking = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask' }), text('ok')]),
      tools: [asking],
      middleware: [localised(seen)],
      store: memoryStore(),
    });
    const session = agent.session('s');
    const { pending } = await session.run('go', { locale: 'de' });
    seen.length = 0;
    await session.resume({ locale: 'es', answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(seen.length).toBeGreaterThan(0);
    for (const one of seen) expect(one).toEqual({ locale: 'es' });
  });

  it('are typed as unknown in hooks', () => {
    expectTypeOf<Context['options']>().toEqualTypeOf<Readonly<Record<string, unknown>>>();
  });
});

describe('options nobody declares', () => {
  it('are refused with a list of the declared names, and nothing is written', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: model(), middleware: [localised()], store });
    const message =
      'Unknown option `local` of run(). Did you mean `locale`? It takes: middleware, observers, signal, limits, tenant, queue, runId, trace, metadata, onRequest, parent, inheritGuards, locale.';
    const options = { local: 'de' } as never;
    for (const attempt of [
      () => agent.run('go', options),
      () => agent.stream('go', options).result,
      () => agent.session('s').run('go', options),
      () => agent.session('s').stream('go', options).result,
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'INVALID_OPTION', message });
    await expect(agent.session('s').resume(options)).rejects.toThrow('allowPlanChange, locale.');
    expect(await store.head('s')).toBe(0);
  });

  it('are refused beside one that is declared', async () => {
    const agent = new Agent({ model: model(), middleware: [localised()] });
    await expect(agent.run('go', { locale: 'de', colour: 'red' } as never)).rejects.toThrow(
      'Unknown option `colour` of run().',
    );
  });
});

it.each([
  ['locale', 'Expected `runOptions` to be a list, got "locale"'],
  [[''], 'Expected `runOptions[0]` to be a name that is not already an option of a run (middleware, '],
  [['x', 5], 'Expected `runOptions[1]` to be a name'],
  [['signal'], 'allowPlanChange), got "signal"'],
  [['answers'], 'allowPlanChange), got "answers"'],
])('the declaration %j is refused', (runOptions, message) => {
  const middleware = [{ name: 'a', runOptions } as never];
  expect(() => new Agent({ model: model(), middleware })).toThrow(message);
});

it('a misspelt declaration is noticed', () => {
  const middleware = [{ name: 'a', run_options: ['x'], beforeModel() {} } as never];
  expect(() => new Agent({ model: model(), middleware })).toThrow('Did you mean `runOptions`?');
});
