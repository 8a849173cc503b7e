// What a guard can do about what it finds, which of several verdicts counts, and what happens when a guard fails.

import {
  Agent,
  attribution,
  defineMiddleware,
  type Guard,
  type GuardPoint,
  type RunError,
  tool,
  toolResult,
  type Verdict,
  window,
} from 'allium';
import { chunks, collect, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  agentOf,
  calls,
  find,
  guarding,
  judging,
  redacting,
  resultTexts,
} from '../../../../../test/guards-setup.js';

describe('deny beats ask beats rewrite beats allow', () => {
  const verdicts: Record<string, Verdict> = {
    deny: { type: 'deny', reason: 'no' },
    ask: { type: 'ask', request: { title: 'Sure?' } as never },
    rewrite: { type: 'rewrite', args: { q: 'rewritten' } },
    allow: { type: 'allow' },
  };
  const orders = [
    ['deny', 'ask', 'rewrite', 'allow'],
    ['allow', 'rewrite', 'ask', 'deny'],
    ['ask', 'deny', 'allow', 'rewrite'],
  ];
  const guards = (names: readonly string[]) =>
    names.map((name) => guarding(name, { on: ['tool-args'], judge: () => verdicts[name]! }));

  it.each(orders)('deny wins among %s, %s, %s, %s: nobody is asked, nothing runs', async (...names) => {
    const { agent } = agentOf([toolCalls({ name: 'act', args: { q: 1 } }), 'end'], ...guards(names));
    const { status, messages } = await agent.run('hi');
    expect(status).toBe('done');
    expect(resultTexts(messages)).toEqual(['no']);
    expect(calls).toEqual([]);
  });

  it.each([
    ['rewrite', 'ask'],
    ['ask', 'rewrite'],
  ])('ask wins over rewrite (%s, %s), about the rewritten arguments', async (...names) => {
    const { session } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 } }), 'end'],
      ...guards([...names, 'allow']),
    );
    const { status, pending } = await session.run('hi');
    expect(status).toBe('suspended');
    expect(pending[0]!.arguments).toBe('{"q":"rewritten"}');
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(calls).toEqual([{ q: 'rewritten' }]);
  });

  it('rewrite wins over allow', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 } }), 'end'],
      ...guards(['allow', 'rewrite', 'allow']),
    );
    await agent.run('hi');
    expect(calls).toEqual([{ q: 'rewritten' }]);
  });

  it('at response points: a later deny wins over an earlier rewrite', async () => {
    const { agent } = agentOf(
      ['hi'],
      judging(['output'], () => ({ type: 'rewrite', text: 'x' })),
      guarding('no', { on: ['output'], judge: () => ({ type: 'deny', reason: 'never' }) }),
    );
    await expect(agent.run('hi')).resolves.toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', message: 'never', by: 'no' },
    });
  });

  it('a refused call is cleaned by the guards before and after the one that refuses', async () => {
    const no = guarding('no', { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'no' }) });
    const first = guarding('first', { on: ['tool-args'], find: find(/ONE/g) });
    const last = guarding('last', { on: ['tool-args'], find: find(/TWO/g) });
    const { agent } = agentOf([toolCalls({ name: 'act', args: { q: 'ONE TWO' } }), 'end'], first, no, last);
    const { messages } = await agent.run('hi');
    expect(JSON.stringify(messages)).not.toMatch(/ONE|TWO/);
    expect(resultTexts(messages)).toEqual(['no']);
  });
});

describe('actions', () => {
  it.each<[GuardPoint, 'block' | 'stop']>([
    ['input', 'block'],
    ['output', 'block'],
    ['output', 'stop'],
    ['tool-result', 'block'],
    ['tool-result', 'stop'],
  ])('a refusal is noted: %s, %s', async (point, action) => {
    const { agent } = agentOf([toolCalls({ name: 'act' }), 'SECRET'], redacting([point], { action }));
    const { changes } = await agent.run(point === 'input' ? 'SECRET' : 'hi');
    expect(changes.map(({ by, what }) => [by, what])).toEqual([['redact', `refused ${point}`]]);
  });

  it('a call that is refused is noted once by its guard, and once as blocked', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { a: 'SECRET' } }), 'ok'],
      redacting(['tool-args'], { action: 'block' }),
    );
    expect((await agent.run('hi')).changes).toMatchObject([
      { by: 'redact', what: 'refused tool-args' },
      { by: 'redact', what: 'blocked act' },
    ]);
  });

  it.each(['window', 'full'] as const)(
    'redact inserts the replacement of the span, of the guard, or [redacted] (%s)',
    async (kind) => {
      const hold = kind === 'full' ? ('full' as const) : window(8);
      const own = guarding('own', {
        on: ['output'],
        hold,
        find: (given) => find(/SECRET/g)(given).map((span) => ({ ...span, replacement: '<own>' })),
        replacement: '<guard>',
      });
      expect((await agentOf(['a SECRET b'], own).agent.run('hi')).text).toBe('a <own> b');
      expect(
        (await agentOf(['a SECRET b'], redacting(['output'], { hold, replacement: '' })).agent.run('hi'))
          .text,
      ).toBe('a  b');
      expect((await agentOf(['a SECRET b'], redacting(['output'], { hold })).agent.run('hi')).text).toBe(
        'a [redacted] b',
      );
    },
  );

  it.each([
    ['block', 'window'],
    ['block', 'full'],
    ['stop', 'window'],
    ['stop', 'full'],
  ] as const)('%s refuses a response: the run stops with reason guardrail (%s)', async (action, kind) => {
    const guard = redacting(['output'], { action, hold: kind === 'full' ? 'full' : window(8) });
    for (const watched of [true, false]) {
      const { session, store } = agentOf([chunks('a long beginning, then SEC', 'RET and more')], guard);
      const result = watched ? (await collect(session.stream('hi'))).result! : await session.run('hi');
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', by: 'redact' },
        text: '',
      });
      expect(result.messages.map(({ role }) => role)).toEqual(['user']);
      expect(JSON.stringify(await store.read('s', 0))).not.toContain('beginning');
    }
  });

  it('block refuses a call; the run goes on', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 'SECRET' } }), 'end'],
      redacting(['tool-args'], { action: 'block' }),
    );
    const { text: said, messages } = await agent.run('hi');
    expect([said, calls]).toEqual(['end', []]);
    expect(resultTexts(messages)[0]).toContain('Refused by guard "redact"');
  });

  it('stop at the arguments ends the run, and nothing of the response stays', async () => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 'SECRET' } })],
      redacting(['tool-args'], { action: 'stop' }),
    );
    const { stop, messages } = await agent.run('hi');
    expect(stop).toMatchObject({ reason: 'guardrail', by: 'redact' });
    expect(messages).toHaveLength(1);
    expect(calls).toEqual([]);
  });

  it('block withholds a result with its details; stop also ends the run', async () => {
    const detailed = tool({
      name: 'detailed',
      description: 'D.',
      input: z.any(),
      execute: () => toolResult({ content: 'fine', details: { raw: 'SECRET' } }),
    });
    const run = (action: 'block' | 'stop') =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'detailed' }), 'end']),
        tools: [detailed],
        middleware: [redacting(['tool-result'], { action })],
      }).run('hi');
    const blocked = await run('block');
    expect([blocked.text, JSON.stringify(blocked.messages)]).toEqual([
      'end',
      expect.not.stringContaining('SECRET'),
    ]);
    const stopped = await run('stop');
    expect(stopped.stop).toMatchObject({ reason: 'guardrail' });
    expect(JSON.stringify(stopped.messages)).not.toContain('SECRET');
    expect(stopped.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  it.each([[1], [3], [50]])('warn only reports, once per match, for chunks of %i', async (size) => {
    const said = 'SECRET and SECRET again, and lastly SECRET.';
    const pieces = said.match(new RegExp(`.{1,${size}}`, 'g'))!;
    for (const hold of ['full' as const, window(8)]) {
      const { agent } = agentOf([chunks(...pieces)], redacting(['output'], { action: 'warn', hold }));
      const { events, result } = await collect(agent.stream('hi'));
      expect(result!.text).toBe(said);
      const warnings = events.filter((one) => one.type === 'custom');
      expect(warnings).toHaveLength(3);
      expect(warnings[0]).toMatchObject({ name: 'guard_warning', by: 'redact', data: { point: 'output' } });
    }
  });

  it('a judge with action warn refuses nothing either', async () => {
    const { agent } = agentOf(
      ['hi'],
      guarding('dry-run', {
        on: ['output'],
        action: 'warn',
        judge: () => ({ type: 'deny', reason: 'would refuse' }),
      }),
    );
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('hi');
    expect(events.filter((one) => one.type === 'custom')).toHaveLength(1);
  });

  it('result.changes names the guard that acted', async () => {
    const { changes } = await agentOf(['SECRET'], redacting(['output'])).agent.run('hi');
    expect(changes).toMatchObject([{ turn: 1, by: 'redact', what: 'redacted output' }]);
  });
});

describe('a guard that fails', () => {
  const boom = new Error('cannot judge SECRET');
  const throwing = (): never => {
    throw boom;
  };
  const after = (count: number) => {
    let left = count;
    return (given: string) => (left-- > 0 ? find(/SECRET/g)(given) : throwing());
  };
  const kinds: [string, () => Partial<Guard>][] = [
    ['find, at once', () => ({ find: throwing, hold: window(4) })],
    ['find, mid-stream', () => ({ find: after(1), hold: window(4) })],
    ['find, at the end', () => ({ find: throwing, hold: 'full' })],
    ['judge', () => ({ judge: throwing })],
    ['judge, later', () => ({ judge: async () => throwing() })],
    ['an invalid span', () => ({ find: () => [{ start: 5, end: 2 }], hold: window(4) })],
    ['an invalid verdict', () => ({ judge: () => ({ type: 'maybe' }) as never })],
  ];

  describe.each(kinds)('closed: %s', (_, how) => {
    it.each([true, false])(
      'nothing more is released and the run fails with GUARD_FAILED (watched: %s)',
      async (watched) => {
        const released = 'x'.repeat(24);
        const { session, store } = agentOf(
          [chunks(released, released, 'SECRET', released), 'second'],
          guarding('broken', { on: ['output'], ...how() }),
        );
        const { events = [], error } = watched
          ? await collect(session.stream('hi'))
          : await session.run('hi').then(
              () => ({ error: undefined, events: [] }),
              (error: RunError) => ({ error, events: [] }),
            );
        expect(error).toMatchObject({ code: 'GUARD_FAILED', result: { status: 'error' } });
        expect(error!.message).toContain('"broken"');
        expect(error!.message).not.toContain('SECRET');
        expect(attribution(error!.cause)).toMatchObject({ middleware: 'broken', hook: 'guard' });
        expect(
          JSON.stringify([events.filter(({ type }) => type !== 'agent_end'), await store.read('s', 0)]),
        ).not.toContain('SECRET');
        expect(error!.result.messages.map(({ role }) => role)).toEqual(['user']);
      },
    );

    it('no layer gets past it by trying again', async () => {
      const stubborn = defineMiddleware({
        name: 'stubborn',
        wrapModel: (_ctx, next) =>
          next()
            .catch(() => next())
            .catch(
              () =>
                ({
                  role: 'assistant',
                  content: [{ type: 'text', text: 'SECRET' }],
                  stopReason: 'stop',
                }) as const,
            ),
      });
      const { agent, model } = agentOf(
        ['x'.repeat(30), 'second', 'third'],
        stubborn,
        guarding('broken', { on: ['output'], ...how() }),
      );
      const { error } = await collect(agent.stream('hi'));
      expect(error).toMatchObject({ code: 'GUARD_FAILED' });
      expect(model.requests).toHaveLength(1);
    });
  });

  it('the original object is the cause', async () => {
    const failure = await agentOf(['hi'], judging(['output'], throwing))
      .agent.run('hi')
      .catch((error) => error);
    expect(failure.cause).toBe(boom);
  });

  it.each(kinds)('open: %s — that guard is skipped, the others are not', async (_, how) => {
    const filler = 'x'.repeat(60);
    const broken = guarding('broken', { on: ['output'], ...how() }, { onFail: 'open' });
    const { agent } = agentOf(
      [chunks(filler, 'a SEC', 'RET b', filler)],
      broken,
      redacting(['output'], { hold: window(8) }),
    );
    const { result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe(`${filler}a [redacted] b${filler}`);
    expect(
      result!.changes.some(({ by, what }) => by === 'broken' && what.startsWith('failed and was skipped')),
    ).toBe(true);
  });

  it('at tool-args refuses the call and withholds its arguments; the run goes on', async () => {
    const { agent, model } = agentOf(
      [
        chunks(
          { type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":"SECRET"}' },
          { type: 'tool-call', id: 'b', name: 'act', arguments: 'SECRET' },
        ),
        'end',
      ],
      judging(['tool-args'], throwing),
    );
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('end');
    expect(calls).toEqual([]);
    expect(JSON.stringify([events, model.requests[1]!.messages])).not.toContain('SECRET');
  });

  it('at tool-result withholds the result; the run goes on', async () => {
    const { agent } = agentOf([toolCalls({ name: 'act' }), 'end'], judging(['tool-result'], throwing));
    const { events, result } = await collect(agent.stream('hi'));
    expect(result!.text).toBe('end');
    expect(JSON.stringify(events)).not.toContain('SECRET');
    expect(result!.messages[2]).toMatchObject({ role: 'tool', isError: true });
  });

  it('at input keeps the message out; at request sends nothing', async () => {
    for (const point of ['input', 'request'] as const) {
      const { agent, model } = agentOf(['hi'], judging([point], throwing));
      await expect(agent.run('SECRET')).rejects.toMatchObject({ code: 'GUARD_FAILED', cause: boom });
      expect(model.requests).toHaveLength(0);
    }
  });
});
