import {
  Agent,
  type AgentEvent,
  defineMiddleware,
  type Guard,
  type Middleware,
  type ModelPart,
  memoryStore,
  RunError,
  type RunResult,
  tool,
  window,
} from 'allium';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (pattern: RegExp) => (given: string) =>
  [...given.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));
const guard = (how: Partial<Guard>): Middleware =>
  defineMiddleware({ name: 'guard', guard: { on: ['output'], ...how } as Guard });
const again = defineMiddleware({ name: 'again', wrapModel: (_, next) => next().catch(() => next()) });
const answer = (text: string) =>
  ({ role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' }) as const;

/** Lets everything that is ready run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The events of the last message, in short. */
function story(events: readonly AgentEvent[]): string[] {
  const last = events.findLast((one) => one.type === 'message_start');
  const id = last?.type === 'message_start' ? last.messageId : '';
  return events.flatMap((one) => {
    if (!('messageId' in one) || one.messageId !== id) return [];
    if (one.type === 'message_update')
      return [
        one.delta.type === 'text'
          ? one.delta.text
          : `${one.delta.type}:${one.delta.type === 'thinking' ? one.delta.text : one.delta.arguments}`,
      ];
    if (one.type === 'message_end' && one.discarded) return ['discarded'];
    return [one.type.replace('message_', '')];
  });
}

async function stream(script: readonly Script[], ...middleware: Middleware[]) {
  const model = scriptedModel(script);
  const collected = await collect(new Agent({ model, middleware }).stream('hi'));
  return { ...collected, model, story: story(collected.events) };
}

describe('a refused response', () => {
  it.each([
    ['shown in part', { find: find(/SECRET/g), hold: window(4), action: 'block' }, 'x'.repeat(30)],
    ['never shown', { find: find(/SECRET/g), action: 'block' }, ''],
    ['by a judge', { judge: () => ({ type: 'deny', reason: 'no' }) }, ''],
  ] as [string, Partial<Guard>, string][])(
    '%s ends with message_reset and message_end { discarded: true }',
    async (_, how, before) => {
      const {
        story: told,
        result,
        events,
      } = await stream([chunks(before, 'SECRET', 'x'.repeat(30))], guard(how));
      expect(told[0]).toBe('start');
      expect(told.slice(-2)).toEqual(['reset', 'discarded']);
      expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'guard' } });
      expect(result!.messages.map(({ role }) => role)).toEqual(['user']);
      expect(events.find((one) => one.type === 'turn_end')).not.toHaveProperty('message.content');
    },
  );

  it('is not in the history, though its tokens are counted', async () => {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([chunks('SECRET'), 'fine']),
      store,
      middleware: [guard({ find: find(/SECRET/g), action: 'block' })],
    });
    const { usage } = await agent.session('s').run('hi');
    expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    await agent.session('s').run('again');
    expect((await agent.session('s').messages()).map(({ role }) => role)).toEqual([
      'user',
      'user',
      'assistant',
    ]);
  });

  it('cut off in the middle is counted by estimate', async () => {
    const { result } = await stream(
      [chunks('x'.repeat(400), 'SECRET', 'x'.repeat(400))],
      guard({ find: find(/SECRET/g), hold: window(8), action: 'block' }),
    );
    expect(result!.usage.outputTokens).toBeGreaterThan(100);
    expect(result!.usage.inputTokens).toBeGreaterThan(0);
  });

  it('cannot be brought back by a layer that swallows the signal', async () => {
    const stubborn = defineMiddleware({
      name: 'stubborn',
      wrapModel: (_, next) => next().catch(() => answer('mine')),
    });
    const { result } = await stream(
      [chunks('x'.repeat(40), 'SECRET', 'x'.repeat(40))],
      stubborn,
      guard({ find: find(/SECRET/g), hold: window(8), action: 'block' }),
    );
    expect(result).toMatchObject({ stop: { reason: 'guardrail' }, text: '' });
  });

  it('that was preset is shown and discarded too', async () => {
    const preset = defineMiddleware({ name: 'preset', wrapModel: () => answer('SECRET') });
    const { story: told } = await stream([], preset, guard({ find: find(/SECRET/g), action: 'block' }));
    expect(told).toEqual(['start', 'reset', 'discarded']);
  });
});

describe('how a run ends does not depend on who watches', () => {
  const ways: Record<string, (agent: (observers: (() => void)[]) => Agent) => Promise<RunResult>> = {
    run: (agent) => agent([]).run('hi'),
    'run, with an observer': (agent) => agent([() => {}]).run('hi'),
    stream: (agent) => agent([]).stream('hi').result,
  };
  const refused = `${'x'.repeat(30)} SECRET ${'y'.repeat(30)}`;
  const pieces = refused.match(/.{1,5}/gs)!;
  const guards: [string, Partial<Guard>][] = [
    ['blocks', { find: find(/SECRET/g), hold: window(8), action: 'block' }],
    ['stops', { find: find(/SECRET/g), hold: window(8), action: 'stop' }],
    [
      'breaks',
      {
        hold: window(8),
        find(text) {
          if (text.includes('SECRET')) throw new Error('broken');
          return [];
        },
      },
    ],
  ];
  const cases = Object.keys(ways).flatMap((way) => guards.map(([what, how]) => [way, what, how] as const));

  it.each(cases)('%s: a guard %s what a retry leaves behind', async (way, _, how) => {
    const script = [chunks(...pieces), 'fine'];
    const picks = defineMiddleware({
      name: 'picks',
      async wrapModel(_ctx, next) {
        await next();
        await next();
      },
    });
    const result = await ways[way]!(
      (observers) => new Agent({ model: scriptedModel(script), middleware: [picks, guard(how)], observers }),
    );
    expect(result).toMatchObject({ status: 'done', text: 'fine' });
  });

  it.each(cases)('%s: a guard %s what is chosen', async (way, what, how) => {
    const ended = await ways[way]!(
      (observers) =>
        new Agent({ model: scriptedModel([chunks(...pieces)]), middleware: [guard(how)], observers }),
    ).then(
      ({ status, stop }) => [status, stop.reason],
      (error) => [error.result.status, error.code],
    );
    expect(ended).toEqual(what === 'breaks' ? ['error', 'GUARD_FAILED'] : ['stopped', 'guardrail']);
  });

  const milder: [string, Partial<Guard>, Partial<Middleware>][] = [
    ['warns of', { find: find(/SECRET/g), hold: window(8), action: 'warn' }, {}],
    ['redacts', { find: find(/SECRET/g), hold: window(8) }, {}],
    [
      'breaks open at',
      {
        hold: window(8),
        find(text) {
          if (text.includes('SECRET')) throw new Error('broken');
          return [];
        },
      },
      { onFail: 'open' },
    ],
  ];

  it.each(
    Object.keys(ways).flatMap((way) => milder.map(([what, how, more]) => [way, what, how, more] as const)),
  )(
    '%s: a guard that %s text is noted where it is chosen, not where it is left behind',
    async (way, _, how, more) => {
      const noted = async (calls: number): Promise<boolean> => {
        const picks: Middleware = {
          name: 'picks',
          async wrapModel(_ctx, next) {
            for (let i = 0; i < calls; i++) await next();
          },
        };
        const model = scriptedModel([chunks(...pieces), 'fine']);
        const middleware = [picks, { ...guard(how), name: 'looks', ...more }];
        const { changes, status } = await ways[way]!(
          (observers) => new Agent({ model, middleware, observers }),
        );
        expect(status).toBe('done');
        return changes.some(({ by }) => by === 'looks');
      };
      expect([await noted(1), await noted(2)]).toEqual([true, false]);
    },
  );

  it.each(Object.keys(ways))('%s: a guard stops what a tool tells of its progress', async (way) => {
    const chatty = tool({
      name: 'chatty',
      description: '',
      input: z.any(),
      async execute(_args, ctx) {
        await ctx.update('half SECRET');
        return 'done';
      },
    });
    const stops = guard({ on: ['tool-result'], find: find(/SECRET/g), action: 'stop' });
    const result = await ways[way]!(
      (observers) =>
        new Agent({
          model: scriptedModel([toolCalls({ name: 'chatty' }), 'end']),
          tools: [chatty],
          middleware: [stops],
          observers,
        }),
    );
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail' } });
  });
});

describe('when shown text is abandoned', () => {
  it('a retry resets and goes on under the same id', async () => {
    const { story: told, result } = await stream(
      [failWith(new Error('cut'), 'he', 'l'), chunks('hi', '!')],
      again,
    );
    expect(told).toEqual(['start', 'he', 'l', 'reset', 'hi', '!', 'end']);
    expect(result!.text).toBe('hi!');
  });

  it('a fallback to another model resets', async () => {
    const other = scriptedModel(['other'], { id: 'other' });
    const fallback = defineMiddleware({
      name: 'fallback',
      onError(ctx) {
        if (ctx.seam !== 'model' || ctx.model === other) return undefined;
        ctx.model = other;
        return 'fallback';
      },
    });
    const { story: told, result } = await stream([failWith(new Error('cut'), 'half')], fallback);
    expect(told).toEqual(['start', 'half', 'reset', 'other', 'end']);
    expect(result!.messages.at(-1)).toMatchObject({ model: 'test/other' });
  });

  it.each([
    ['a layer', defineMiddleware({ name: 'r', wrapModel: (_, next) => next().then(() => answer('new')) })],
    [
      'afterModel',
      defineMiddleware({
        name: 'r',
        afterModel: (ctx) => {
          ctx.response = answer('new');
        },
      }),
    ],
    [
      'afterModelResponse',
      defineMiddleware({ name: 'r', afterModelResponse: () => ({ response: answer('new') }) }),
    ],
  ])('a response replaced by %s resets', async (_, replace) => {
    const { story: told, result } = await stream([chunks('o', 'ld')], replace);
    expect(told).toEqual(['start', 'o', 'ld', 'reset', 'new', 'end']);
    expect(result!.text).toBe('new');
  });

  it('an earlier attempt that is chosen after all is shown again', async () => {
    const best = defineMiddleware({
      name: 'best',
      async wrapModel(_, next) {
        const first = await next();
        await next();
        return first;
      },
    });
    const { story: told, result } = await stream(['first', 'second'], best);
    expect(told).toEqual(['start', 'first', 'reset', 'second', 'reset', 'first', 'end']);
    expect(result!.text).toBe('first');
  });

  it('a turn that is restarted resets', async () => {
    const restart = defineMiddleware({ name: 'restart', onError: () => 'restart' });
    expect((await stream([failWith(new Error('cut'), 'half'), 'whole'], restart)).story).toEqual([
      'start',
      'half',
      'reset',
      'whole',
      'end',
    ]);
  });

  it('does not reset if nothing was shown', async () => {
    expect((await stream([failWith(new Error('cut')), 'whole'], again)).story).toEqual([
      'start',
      'whole',
      'end',
    ]);
  });

  it('a response that is only passed on, copied or annotated is not shown again', async () => {
    const copy = defineMiddleware({
      name: 'copy',
      wrapModel: async (_, next) => ({ ...(await next()), metadata: { seen: true } }),
    });
    const { story: told, result } = await stream([chunks('a', 'b')], copy);
    expect(told).toEqual(['start', 'a', 'b', 'end']);
    expect(result!.messages.at(-1)).toMatchObject({ metadata: { seen: true } });
  });

  it('a run that fails ends the message', async () => {
    expect((await stream([failWith(new Error('cut'), 'half')])).story).toEqual([
      'start',
      'half',
      'reset',
      'discarded',
    ]);
  });
});

describe('while two attempts overlap none streams live', () => {
  it('what the first had shown is reset; the chosen one is shown whole', async () => {
    const hedge = defineMiddleware({
      name: 'hedge',
      async wrapModel(_, next) {
        const first = next();
        await settle();
        return (await Promise.all([first, next()]))[1];
      },
    });
    const { story: told, result } = await stream(
      [chunks('a', 'tick', 'tick', 'tick', 'b'), chunks('c', 'tick', 'd')],
      hedge,
    );
    expect(told).toEqual(['start', 'a', 'reset', 'cd', 'end']);
    expect(result!.text).toBe('cd');
  });

  it('the next attempt after both are over streams again', async () => {
    const three = defineMiddleware({
      name: 'three',
      async wrapModel(_, next) {
        await Promise.all([next(), next()]);
        return next();
      },
    });
    expect((await stream([chunks('a'), chunks('b'), chunks('c', 'd')], three)).story).toEqual([
      'start',
      'c',
      'd',
      'end',
    ]);
  });

  it('an attempt that is no longer needed is cancelled', async () => {
    const race = defineMiddleware({ name: 'race', wrapModel: (_, next) => Promise.race([next(), next()]) });
    const { result, model } = await stream([hang('slow'), 'fast'], race);
    expect(result!.text).toBe('fast');
    expect(model.aborted).toBe(1);
  });
});

describe('aborted mid-stream', () => {
  const aborting = async (
    parts: readonly ModelPart[],
    watched: boolean,
    ...middleware: Middleware[]
  ): Promise<{ result: RunResult; events: readonly AgentEvent[]; journal: string }> => {
    const controller = new AbortController();
    const store = memoryStore();
    const session = new Agent({ model: scriptedModel([hang(...parts)]), store, middleware }).session('s');
    const running = watched
      ? collect(session.stream('hi', { signal: controller.signal }))
      : session.run('hi', { signal: controller.signal }).then(
          () => undefined,
          (error: RunError) => error,
        );
    for (let i = 0; i < 3; i++) await settle();
    controller.abort();
    const done = await running;
    const error = done instanceof RunError ? done : done?.error;
    return {
      result: error!.result,
      events: done && 'events' in done ? done.events : [],
      journal: JSON.stringify(await store.read('s', 0)),
    };
  };
  const pieces = (text: string, type: 'text' | 'thinking' = 'text'): ModelPart[] =>
    text.match(/.{1,3}/gs)!.map((piece) => ({ type, text: piece }));
  const said = 'The first thing to know about it is that SECRET is never said aloud by anybody here.';

  const cases: [string, readonly ModelPart[], Middleware[], string[]][] = [
    ['without guards all of it stays', pieces(said), [], [said]],
    [
      'with a window, what was before it',
      pieces(said),
      [guard({ find: find(/SECRET/g), hold: window(20) })],
      [said.slice(0, -20).replace('SECRET', '[redacted]')],
    ],
    ['with a guard that needs the whole, nothing', pieces(said), [guard({ find: find(/SECRET/g) })], []],
    ['with a judge, nothing', pieces(said), [guard({ judge: () => undefined })], []],
    [
      'without thinking or calls',
      [
        ...pieces('hm', 'thinking'),
        ...pieces(said),
        { type: 'tool-call', id: 'a', name: 'f', arguments: '{' },
        { type: 'text', text: 'more' },
      ],
      [],
      [said, 'more'],
    ],
    ['only thinking: nothing', pieces('hm', 'thinking'), [], []],
    ['nothing said: nothing', [], [], []],
    [
      'with a transform, what came out of it',
      pieces('abc'),
      [
        defineMiddleware({
          name: 'up',
          beforeModel: (ctx) =>
            ctx.transform(() => ({
              part: (part, emit) =>
                emit(part.type === 'text' ? { ...part, text: part.text.toUpperCase() } : part),
            })),
        }),
      ],
      ['ABC'],
    ],
    [
      'a guard that objects only now leaves nothing',
      pieces(`${'x'.repeat(30)}SECRET${'y'.repeat(9)}`),
      [guard({ find: find(/SECRET/g), hold: window(8), action: 'block' })],
      [],
    ],
  ];

  describe.each(cases)('%s', (_, parts, middleware, kept) => {
    it.each([true, false])('the same for stream() and run() (watched: %s)', async (watched) => {
      const { result, events, journal } = await aborting(parts, watched, ...middleware);
      expect(result).toMatchObject({ status: 'aborted', stop: { reason: 'aborted' } });
      const message = result.messages[1];
      const content = (message?.content ?? []) as readonly { type: string; text: string }[];
      expect(content).toEqual(kept.map((text) => ({ type: 'text', text })));
      if (kept.length > 0) expect(message).toMatchObject({ role: 'assistant', stopReason: 'aborted' });
      else expect(message).toBeUndefined();
      expect(journal.includes('"stopReason":"aborted"')).toBe(kept.length > 0);
      if (!watched) return;
      const told = story(events);
      const shown = told
        .slice(told.lastIndexOf('reset') + 1)
        .filter((one) => !['start', 'end', 'discarded', 'reset'].includes(one));
      if (told.length > 0 && kept.length > 0)
        expect(shown.join('')).toBe(content.map(({ text }) => text).join(''));
      expect(events.filter(({ type }) => type === 'message_start')).toHaveLength(
        events.filter(({ type }) => type === 'message_end').length,
      );
    });
  });

  it.each([true, false])(
    'a failed attempt leaves nothing, even with a transform (watched: %s)',
    async (watched) => {
      const controller = new AbortController();
      const waits = defineMiddleware({
        name: 'waits',
        wrapModel: (ctx, next) =>
          next().catch(
            () =>
              new Promise<never>((_, reject) => {
                ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason));
                controller.abort();
              }),
          ),
      });
      const passes = defineMiddleware({
        name: 'passes',
        beforeModel: (ctx) => ctx.transform(() => ({ part: (part, emit) => emit(part) })),
      });
      const session = new Agent({
        model: scriptedModel([failWith(new Error('boom'), 'half of it')]),
        middleware: [waits, passes],
      }).session('s');
      const failure = watched
        ? (await collect(session.stream('hi', { signal: controller.signal }))).error
        : await session.run('hi', { signal: controller.signal }).catch((error: RunError) => error);
      expect((failure as RunError).result.messages.map(({ role }) => role)).toEqual(['user']);
    },
  );

  it('two windows: run() and stream() keep the very same text', async () => {
    const middleware = [
      guard({ find: find(/SECRET/g), hold: window(20) }),
      { ...guard({ find: find(/first/g), hold: window(10) }), name: 'second' },
    ];
    const [live, quiet] = await Promise.all(
      [true, false].map((watched) => aborting(pieces(said), watched, ...middleware)),
    );
    expect(live!.result.text).toBe(quiet!.result.text);
    expect(live!.result.text).toMatch(/^The \[redacted\] thing to know/);
  });

  it.each([true, false])(
    'between two attempts nothing stays: what the failed one showed is already void (watched: %s)',
    async (watched) => {
      const controller = new AbortController();
      const wait = defineMiddleware({
        name: 'wait',
        wrapModel: (ctx, next) =>
          next().catch(async () => {
            controller.abort();
            ctx.signal.throwIfAborted();
            return next();
          }),
      });
      const session = new Agent({
        model: scriptedModel([failWith(new Error('cut'), 'half')]),
        middleware: [wait],
      }).session('s');
      const failure = watched
        ? (await collect(session.stream('hi', { signal: controller.signal }))).error
        : await session.run('hi', { signal: controller.signal }).catch((error: RunError) => error);
      expect((failure as RunError).result.text).toBe('');
      expect((failure as RunError).result.messages.map(({ role }) => role)).toEqual(['user']);
    },
  );

  it.each([true, false])('while attempts overlap nothing stays (watched: %s)', async (watched) => {
    const controller = new AbortController();
    const both = defineMiddleware({
      name: 'both',
      wrapModel: async (_, next) => (await Promise.all([next(), next()]))[0],
    });
    const session = new Agent({ model: scriptedModel([hang('a'), hang('b')]), middleware: [both] }).session(
      's',
    );
    const running = watched
      ? collect(session.stream('hi', { signal: controller.signal })).then(({ error }) => error)
      : session.run('hi', { signal: controller.signal }).catch((error: RunError) => error);
    await settle();
    await settle();
    controller.abort();
    expect(((await running) as RunError).result.messages).toHaveLength(1);
  });

  it.each([true, false])(
    'after the answer, in afterModelResponse: all of it stays (watched: %s)',
    async (watched) => {
      const controller = new AbortController();
      const late = defineMiddleware({
        name: 'late',
        afterModelResponse(_response, ctx) {
          controller.abort();
          ctx.signal.throwIfAborted();
        },
      });
      const session = new Agent({
        model: scriptedModel(['all SECRET of it']),
        middleware: [late, guard({ find: find(/SECRET/g) })],
      }).session('s');
      const failure = watched
        ? (await collect(session.stream('hi', { signal: controller.signal }))).error
        : await session.run('hi', { signal: controller.signal }).catch((error: RunError) => error);
      expect((failure as RunError).result.messages[1]).toMatchObject({
        stopReason: 'aborted',
        content: [{ text: 'all [redacted] of it' }],
      });
    },
  );

  it('the next run goes on from what was kept', async () => {
    const controller = new AbortController();
    const model = scriptedModel([hang('half a'), 'whole']);
    const session = new Agent({ model }).session('s');
    const running = session.run('hi', { signal: controller.signal }).catch((error) => error);
    await settle();
    controller.abort();
    await running;
    await session.run('go on');
    expect(model.requests[1]!.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  });

  it('a time limit keeps what was released as well', async () => {
    const clock = fakeClock();
    const agent = new Agent({ model: scriptedModel([hang('half')]), clock, limits: { timeoutMs: 20 } });
    const running = agent.run('hi');
    await clock.advance(20);
    expect(await running).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' }, text: 'half' });
  });
});

describe('without guards and transforms', () => {
  it('a delta goes out as the model made it, one event per part', async () => {
    const { story: told } = await stream(
      [chunks('a', '', 'b', { type: 'thinking', text: 't' }, 'c')],
      ...Array.from({ length: 10 }, (_, i) =>
        defineMiddleware({ name: `m${i}`, wrapModel: (_ctx, next) => next() }),
      ),
    );
    expect(told).toEqual(['start', 'a', 'b', 'thinking:t', 'c', 'end']);
  });

  it('calls stream under the id they will have', async () => {
    const echo = tool({ name: 'echo', description: 'E.', input: z.any(), execute: () => 'ok' });
    const step = toolCalls({ name: 'echo', id: 'same' });
    const { events, result } = await collect(
      new Agent({ model: scriptedModel([step, step, 'end']), tools: [echo] }).stream('hi'),
    );
    const live = events.flatMap((one) =>
      one.type === 'message_update' && one.delta.type === 'tool-call' ? [one.delta.id] : [],
    );
    const kept = result!.messages.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []));
    expect(live).toEqual(kept);
    expect(new Set(live).size).toBe(2);
  });
});
