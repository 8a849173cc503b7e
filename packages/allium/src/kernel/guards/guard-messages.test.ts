/** Whatever becomes a message is judged where it is written down, whoever wrote it. */
import { Agent, defineMiddleware, type Middleware, memoryStore, syntheticUserMessage, textOf } from 'allium';
import { goal } from 'allium/middleware';
import { collect, scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const MAIL = 'ann@x.org';
const mail = (action?: 'redact' | 'block' | 'stop'): Middleware =>
  defineMiddleware({
    name: 'mail',
    guard: {
      on: ['input'],
      ...(action && { action }),
      replacement: '[mail]',
      find: (given) => [...given.matchAll(/ann@x\.org/g)].map((m) => ({ start: m.index, end: m.index + 9 })),
    },
  });
const notice = () => syntheticUserMessage(`Write to ${MAIL}`, { source: 'notice' });

const notices: readonly [string, () => Middleware][] = [
  [
    'afterModelResponse',
    () => ({
      name: 'notice',
      afterModelResponse: (_, { turn }) =>
        turn === 1 ? { injectMessages: [notice()], decision: 'loop_to_model' } : undefined,
    }),
  ],
  ['onRunEnd', () => ({ name: 'notice', onRunEnd: ({ turn }) => (turn === 1 ? [notice()] : undefined) })],
];

describe.each(notices)('a message of %s', (hook, middleware) => {
  it.each(['before', 'after'])(
    'is written as the guards of input leave it, with the guard %s',
    async (where) => {
      const store = memoryStore();
      const model = scriptedModel([text('one'), text('two')]);
      const list = where === 'before' ? [mail(), middleware()] : [middleware(), mail()];
      const session = new Agent({ model, store, middleware: list }).session('s');
      const { events, result } = await collect(session.stream('go'));
      expect(result!.messages.map(textOf)).toEqual(['go', 'one', 'Write to [mail]', 'two']);
      expect(JSON.stringify([events, store.read('s', 1), model.requests])).not.toContain(MAIL);
      expect(result!.messages[2]).toMatchObject({ metadata: { synthetic: true } });
    },
  );

  it('is left out, visibly, if it is refused', async () => {
    const store = memoryStore();
    const model = scriptedModel([text('one'), text('two')]);
    const agent = new Agent({ model, store, middleware: [mail('block'), middleware()] });
    const { events, result } = await collect(agent.session('s').stream('go'));
    expect(result).toMatchObject({ status: 'done' });
    expect(result!.messages.map(textOf)).toEqual(hook === 'onRunEnd' ? ['go', 'one'] : ['go', 'one', 'two']);
    expect(events.some((event) => event.type === 'custom' && event.name === 'message_refused')).toBe(true);
    expect(JSON.stringify([events, store.read('s', 1)])).not.toContain(MAIL);
  });

  it('ends the run if a guard stops', async () => {
    const store = memoryStore();
    const model = scriptedModel([text('one'), text('two')]);
    const agent = new Agent({ model, store, middleware: [middleware(), mail('stop')] });
    expect(await agent.session('s').run('go')).toMatchObject({ stop: { reason: 'guardrail', by: 'mail' } });
    expect(JSON.stringify(store.read('s', 1))).not.toContain(MAIL);
  });
});

describe('run(input, { goal })', () => {
  const agentOf = (guard: Middleware, first: boolean) => {
    const evaluator = scriptedModel([
      text('{"achieved":false,"reason":"no"}'),
      text('{"achieved":true,"reason":"ok"}'),
    ]);
    const goals = goal({ evaluator });
    const store = memoryStore();
    const model = scriptedModel([text('one'), text('two')]);
    const middleware = first ? [guard, goals] : [goals, guard];
    return { agent: new Agent({ model, store, middleware }), model, evaluator, goals, store };
  };

  it.each([true, false])('is judged like a message, with the guard first: %s', async (first) => {
    const { agent, model, evaluator, goals, store } = agentOf(mail(), first);
    const session = agent.session('s');
    const { events, result } = await collect(session.stream('go', { goal: `tell ${MAIL}` }));
    expect(result!.messages.map(textOf)[2]).toContain('The goal is: tell [mail]');
    expect(goals.outcomeOf(result!)).toMatchObject({ condition: 'tell [mail]', status: 'achieved' });
    const all = [events, store.read('s', 1), model.requests, evaluator.requests];
    expect(JSON.stringify(all)).not.toContain(MAIL);
  });

  it.each(['block', 'stop'] as const)('ends the run if it is refused: %s', async (action) => {
    const { agent, model, store } = agentOf(mail(action), false);
    const result = await agent.session('s').run('go', { goal: `tell ${MAIL}` });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'mail' } });
    expect(model.requests).toEqual([]);
    expect(JSON.stringify(store.read('s', 1))).not.toContain(MAIL);
  });

  it('still refuses anything but a goal', async () => {
    const { agent } = agentOf(mail(), true);
    await expect(agent.run('go', { goal: 5 as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
});
