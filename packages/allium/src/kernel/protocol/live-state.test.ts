import { Agent, defineMiddleware, defineState, memoryStore, type StateCell, tool } from 'allium';
import { collect, failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const timer = defineState<{ readonly cancel: () => void } | undefined>({
  name: 'timer',
  scope: 'run',
  durable: false,
  initial: undefined,
});
const seen = defineState({ name: 'seen', scope: 'run', durable: false, create: () => new Set<string>() });
const input = z.object({});

/** Notes every call in a live set, and tells what the set holds when the run ends. */
function noting(cell: StateCell<Set<string>> = seen) {
  const ends: string[][] = [];
  const middleware = defineMiddleware({
    name: 'noting',
    state: [cell],
    beforeModel: (ctx) => void ctx.state.get(cell).add(`turn ${ctx.turn}`),
    beforeTool: (ctx) => void ctx.state.get(cell).add(ctx.toolCall.name),
    afterRun: (ctx) => void ends.push([...ctx.state.get(cell)]),
  });
  return { middleware, ends };
}

const noop = (name: string) => tool({ name, description: name, input, execute: () => name });

describe('a live cell', () => {
  it('holds what JSON cannot, for all hooks of its run, and nothing of it is journaled or told', async () => {
    const heard: unknown[] = [];
    const cancel = (): void => {};
    const middleware = defineMiddleware({
      name: 'timed',
      state: [timer],
      beforeRun: (ctx) => ctx.state.set(timer, { cancel }),
      beforeModel: (ctx) => void heard.push(ctx.state.get(timer)?.cancel),
      afterRun: (ctx) => void heard.push(ctx.state.get(timer)?.cancel),
    });
    const store = memoryStore();
    const session = new Agent({ model: scriptedModel(['Hi.']), store, middleware: [middleware] }).session(
      's',
    );
    const { events } = await collect(session.stream('Hello'));
    expect(heard).toEqual([cancel, cancel]);
    expect(events.filter(({ type }) => type === 'state_change')).toEqual([]);
    expect((await store.read('s', 1)).filter(({ type }) => type === 'state')).toEqual([]);
  });

  it('is made once for each run, so runs side by side do not share it', async () => {
    const { middleware, ends } = noting();
    const model = scriptedModel([
      toolCalls({ name: 'a' }),
      toolCalls({ name: 'b' }),
      text('First.'),
      text('Second.'),
    ]);
    const agent = new Agent({ model, tools: [noop('a'), noop('b')], middleware: [middleware] });
    await Promise.all([agent.run('One'), agent.run('Two')]);
    expect(ends).toHaveLength(2);
    for (const end of ends) expect(end.filter((name) => name.length === 1)).toHaveLength(1);
  });

  it('starts again in the next run of a session', async () => {
    const { middleware, ends } = noting();
    const session = new Agent({ model: scriptedModel(['A.', 'B.']), middleware: [middleware] }).session('s');
    await session.run('One');
    await session.run('Two');
    expect(ends).toEqual([['turn 1'], ['turn 1']]);
  });

  it.each(['the same agent', 'another one'])(
    'starts from its first value when %s resumes a run',
    async (who) => {
      const { middleware, ends } = noting();
      const count = defineState({ name: 'count', scope: 'run', durable: false, initial: 0 });
      const counted: number[] = [];
      const counting = defineMiddleware({
        name: 'counting',
        state: [count],
        beforeModel(ctx) {
          ctx.state.update(count, (value) => value + 1);
          counted.push(ctx.state.get(count));
        },
      });
      const ask = tool({
        name: 'ask',
        description: 'Asks.',
        input,
        execute: async (_, ctx) => (await ctx.suspend({ title: 'Well?' })).type,
      });
      const model = scriptedModel([toolCalls({ name: 'ask' }), text('Done.')]);
      const options = { model, store: memoryStore(), tools: [ask], middleware: [middleware, counting] };
      const first = new Agent(options);
      const { pending } = await first.session('s').run('Ask');
      const again = who === 'another one' ? new Agent(options) : first;
      const result = await again.session('s').resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
      expect(result.text).toBe('Done.');
      expect(counted).toEqual([1, 1]);
      expect(ends).toEqual([
        ['turn 1', 'ask'],
        ['ask', 'turn 2'],
      ]);
    },
  );

  it('is separate from that of a sub-agent with the same middleware', async () => {
    const { middleware, ends } = noting();
    const child = new Agent({
      name: 'child',
      model: scriptedModel([toolCalls({ name: 'inner' }), text('Inside.')]),
      tools: [noop('inner')],
      middleware: [middleware],
    });
    const parent = new Agent({
      model: scriptedModel([toolCalls({ name: 'child', args: { prompt: 'Go' } }), text('Outside.')]),
      tools: [child.asTool({ name: 'child', description: 'Helps.' })],
      middleware: [middleware],
    });
    await parent.run('Go');
    expect(ends).toEqual([
      ['turn 1', 'inner', 'turn 2'],
      ['turn 1', 'child', 'turn 2'],
    ]);
  });

  it('keeps writes of an abandoned attempt, and is shared by parallel calls', async () => {
    const { middleware, ends } = noting();
    const again = defineMiddleware({ name: 'again', wrapModel: (_, next) => next().catch(() => next()) });
    const marks = defineMiddleware({
      name: 'marks',
      wrapModel(ctx, next) {
        const cell = ctx.state.get(seen);
        cell.add(`attempt ${[...cell].filter((one) => one.startsWith('attempt')).length + 1}`);
        ctx.state.set(seen, new Set(cell));
        return next();
      },
    });
    const model = scriptedModel([
      failWith(new Error('down')),
      toolCalls({ name: 'a' }, { name: 'b' }),
      text('Done.'),
    ]);
    const tools = [noop('a'), noop('b')];
    await new Agent({ model, tools, middleware: [middleware, again, marks] }).run('Go');
    expect(ends).toEqual([['turn 1', 'attempt 1', 'attempt 2', 'a', 'b', 'turn 2', 'attempt 3']]);
  });

  it('ends with the run: results and sessions have its first value', async () => {
    const { middleware } = noting();
    const agent = new Agent({ model: scriptedModel(['Hi.']), middleware: [middleware], state: [timer] });
    const session = agent.session('s');
    const result = await session.run('Hello');
    expect(result.state.get(seen)).toEqual(new Set());
    expect(result.state.get(timer)).toBeUndefined();
    expect(await session.state(seen)).toEqual(new Set());
  });

  it('is declared like any other, and explain() says what it is', async () => {
    const { middleware } = noting();
    const agent = new Agent({ model: scriptedModel(['Hi.']), middleware: [middleware] });
    expect(agent.explain().state).toEqual(['noting:seen (run, live)']);
    const stranger = defineMiddleware({
      name: 'stranger',
      beforeRun: (ctx) => void ctx.state.set(seen, new Set()),
    });
    const run = new Agent({ model: scriptedModel(['Hi.']), middleware: [stranger] }).run('Hello');
    await expect(run).rejects.toMatchObject({ cause: { code: 'INVALID_STATE' } });
  });

  it.each([
    [
      { scope: 'session', durable: false, initial: 0 },
      'Expected `durable` to be true for a cell of the session, got false',
    ],
    [
      { scope: 'call', durable: true, initial: 0 },
      'Expected `durable` to be false for a cell of the call, got true',
    ],
    [
      { scope: 'run', durable: 'no', initial: 0 },
      'Expected `durable` to be true or false for a cell of the run, got "no"',
    ],
    [{ scope: 'run', durable: false, create: 5 }, 'Expected `create` to be a function, got 5'],
    [{ scope: 'run', create: (): number => 1 }, 'Expected `create` to be left out'],
    [
      { scope: 'run', durable: false, initial: 1, create: (): number => 1 },
      'Expected `create` to be left out',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => defineState({ name: 'x', ...options } as never)).toThrow(message);
  });
});
