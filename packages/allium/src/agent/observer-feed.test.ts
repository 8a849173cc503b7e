import {
  Agent,
  type AgentEvent,
  defineMiddleware,
  type Observer,
  type ObserverProblem,
  textOf,
  tool,
} from 'allium';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { ObserverFeed } from './observer-feed.js';

const event = (name: string): AgentEvent => ({ type: 'custom', runId: 'r', sessionId: 's', name });
const nameOf = (one: AgentEvent): string => (one.type === 'custom' ? one.name : one.type);

function deferred() {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function feedOf(observer: Observer, capacity?: number) {
  const problems: ObserverProblem[] = [];
  const feed = new ObserverFeed(observer, 0, (problem) => void problems.push(problem), capacity);
  return { feed, problems };
}

const echo = tool({
  name: 'echo',
  description: 'Echoes.',
  input: z.object({ text: z.string() }),
  execute: ({ text: said }) => said,
});

describe('observers', () => {
  it('see frozen events, in order', async () => {
    const seen: AgentEvent[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'echo', args: { text: 'a' } }), 'done']),
      tools: [echo],
      observers: [(one) => void seen.push(one)],
    });
    await agent.run('hi');
    await agent.observersIdle();
    expect(seen.map(({ type }) => type)).toEqual([
      ...[
        'agent_start',
        'message_start',
        'message_end',
        'turn_start',
        'message_start',
        'message_update',
        'message_end',
      ],
      ...['tool_execution_start', 'tool_execution_end', 'turn_end'],
      ...['turn_start', 'message_start', 'message_update', 'message_end', 'turn_end', 'agent_end'],
    ]);
    const frozen = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(seen.filter((one) => !frozen(one)).map(({ type }) => type)).toEqual([]);
  });

  it.each([
    ['nobody', false, false],
    ['an observer', true, false],
    ['a consumer', false, true],
    ['both', true, true],
  ])('cannot change the data of whoever emitted it (watched by %s)', async (_, observed, streamed) => {
    const counts: Record<string, unknown> = { n: 0, list: [] };
    counts.self = counts;
    const counting = defineMiddleware({
      name: 'counting',
      afterModel(ctx) {
        counts.n = (counts.n as number) + 1;
        (counts.list as unknown[]).push(counts.n);
        ctx.emit('count', counts);
      },
    });
    const works = tool({
      name: 'works',
      description: 'Works.',
      input: z.object({}),
      execute(_args, ctx) {
        const progress = { done: 0 };
        const parts = [{ type: 'text' as const, text: 'begun' }];
        for (let i = 0; i < 2; i++) {
          progress.done++;
          parts.push({ type: 'text', text: `${i}` });
          ctx.update(parts, progress);
        }
        return `${progress.done} of ${parts.length}`;
      },
    });
    const seen: AgentEvent[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'works' }), 'done']),
      tools: [works],
      middleware: [counting],
      observers: observed ? [(one) => void seen.push(one)] : [],
    });
    const stream = streamed ? await collect(agent.stream('hi')) : undefined;
    const result = stream ? stream.result! : await agent.run('hi');
    await agent.observersIdle();
    expect(result.messages.map(textOf)).toEqual(['hi', '', '2 of 3', 'done']);
    for (const events of [observed ? seen : [], stream?.events ?? []]) {
      if (events.length === 0) continue;
      const told = events.flatMap((one) => (one.type === 'custom' ? [one.data as typeof counts] : []));
      expect(told.map(({ n, list }) => [n, list])).toEqual([
        [1, [1]],
        [2, [1, 2]],
      ]);
      expect(told.every((one) => one !== counts && one.self === one)).toBe(true);
      const updates = events.flatMap((one) => (one.type === 'tool_execution_update' ? one : []));
      expect(updates.map(({ update, details }) => [update.length, details])).toEqual([
        [2, { done: 1 }],
        [3, { done: 2 }],
      ]);
    }
  });

  it.each([[''], [5], [{ type: 'told' }]])('never get a custom event named %o', async (name) => {
    const telling = defineMiddleware({ name: 'telling', beforeModel: (ctx) => ctx.emit(name as never) });
    const agent = new Agent({ model: scriptedModel(['done']), middleware: [telling] });
    await expect(agent.run('hi')).rejects.toThrow('Expected `name` to be text in ctx.emit(name, data)');
  });

  it('get class instances unchanged', async () => {
    const error = new Error('boom');
    const bytes = new Uint8Array([1, 2]);
    const telling = defineMiddleware({
      name: 'telling',
      beforeModel: (ctx) => ctx.emit('told', { error, bytes, call: Math.max }),
    });
    const seen: AgentEvent[] = [];
    const agent = new Agent({
      model: scriptedModel(['done']),
      middleware: [telling],
      observers: [(one) => void seen.push(one)],
    });
    await agent.run('hi');
    await agent.observersIdle();
    const data = seen.flatMap((one) => (one.type === 'custom' ? [one.data as object] : []));
    expect(Object.values(data[0]!)).toEqual([error, bytes, Math.max]);
    expect(Object.values(data[0]!)[0]).toBe(error);
  });

  it('see the same events whether or not somebody streams', async () => {
    const types = async (go: (agent: Agent) => Promise<unknown>): Promise<string[]> => {
      const seen: string[] = [];
      const agent = new Agent({
        model: scriptedModel(['done']),
        observers: [({ type }) => void seen.push(type)],
      });
      await go(agent);
      await agent.observersIdle();
      return seen;
    };
    expect(await types((agent) => agent.run('hi'))).toEqual(
      await types((agent) => agent.stream('hi').result),
    );
  });

  it('that throw or reject are reported to onObserverError and never affect the run', async () => {
    const problems: ObserverProblem[] = [];
    const agent = new Agent({
      model: scriptedModel(['done']),
      observers: [
        {
          name: 'thrower',
          onEvent() {
            throw new Error('boom');
          },
        },
        async function rejecter() {
          throw new Error('later');
        },
      ],
      onObserverError: (problem) => void problems.push(problem),
    });
    const { status } = await agent.run('hi');
    await agent.observersIdle();
    expect(status).toBe('done');
    const messages = (name: string) =>
      problems.filter(({ observer }) => observer === name).map(({ error }) => (error as Error).message);
    expect(new Set(messages('thrower'))).toEqual(new Set(['boom']));
    expect(messages('rejecter')).toHaveLength(messages('thrower').length);
  });

  it('whose error handler fails as well do not affect the run either', async () => {
    const thrower = (): never => {
      throw new Error('boom');
    };
    for (const onObserverError of [thrower, async () => thrower()]) {
      const agent = new Agent({ model: scriptedModel(['done']), observers: [thrower], onObserverError });
      await expect(agent.run('hi')).resolves.toMatchObject({ status: 'done' });
      await agent.observersIdle();
    }
  });

  it('that are slow never delay the run', async () => {
    const gate = deferred();
    const seen: string[] = [];
    const slow = async ({ type }: AgentEvent): Promise<void> => {
      await gate.promise;
      seen.push(type);
    };
    const agent = new Agent({ model: scriptedModel(['done']), observers: [slow] });
    await agent.run('hi');
    expect(seen).toEqual([]);
    gate.resolve();
    await agent.observersIdle();
    expect(seen.at(-1)).toBe('agent_end');
  });

  it.each<[string, (count: () => void) => Observer]>([
    [
      'answer at once',
      (count) => (one) => {
        if (one.type === 'message_update') count();
      },
    ],
    [
      'are async and wait for nothing',
      (count) => async (one) => {
        if (one.type === 'message_update') count();
      },
    ],
  ])('that %s miss no event of a model that never waits', async (_, observerOf) => {
    const said = Array.from({ length: 5000 }, (_, i) => ({ type: 'text' as const, text: `${i} ` }));
    const stream = () => [...said, { type: 'finish', reason: 'stop' } as const];
    const problems: ObserverProblem[] = [];
    let updates = 0;
    const agent = new Agent({
      model: { provider: 'test', id: 'list', stream },
      observers: [observerOf(() => void updates++)],
      onObserverError: (problem) => void problems.push(problem),
    });
    await agent.run('hi');
    await agent.observersIdle();
    expect(problems).toEqual([]);
    expect(updates).toBe(5000);
  });

  it('that are slow hold up no model that never waits', async () => {
    const said = Array.from({ length: 5000 }, (_, i) => ({ type: 'text' as const, text: `${i} ` }));
    const stream = () => [...said, { type: 'finish', reason: 'stop' } as const];
    const { promise, resolve } = deferred();
    const problems: ObserverProblem[] = [];
    const agent = new Agent({
      model: { provider: 'test', id: 'list', stream },
      observers: [() => promise],
      onObserverError: (problem) => void problems.push(problem),
    });
    expect((await agent.run('hi')).status).toBe('done');
    expect(problems[0]).toMatchObject({ dropped: 1 });
    resolve();
    await agent.observersIdle();
  });

  it('get one event at a time, in order', async () => {
    const running: string[] = [];
    const log: string[] = [];
    const { feed } = feedOf(async (one) => {
      running.push(nameOf(one));
      expect(running).toHaveLength(1);
      await undefined;
      log.push(running.pop()!);
    });
    for (const name of ['a', 'b', 'c']) feed.push(event(name));
    await feed.idle();
    expect(log).toEqual(['a', 'b', 'c']);
  });

  it('that reject with nothing are not called slow', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const agent = new Agent({ model: scriptedModel([text('Hi.')]), observers: [() => Promise.reject()] });
    await agent.run('hi');
    await agent.observersIdle();
    expect(warn.mock.calls[0]).toEqual(['[allium] observer "observer 1" threw: undefined']);
    warn.mockRestore();
  });

  it('that are too slow lose the oldest events, counted and reported', async () => {
    const gate = deferred();
    const seen: string[] = [];
    const { feed, problems } = feedOf(
      {
        name: 'slow',
        async onEvent(one) {
          seen.push(nameOf(one));
          await gate.promise;
        },
      },
      3,
    );
    feed.push(event('first'));
    await Promise.resolve();
    for (let i = 1; i <= 10; i++) feed.push(event(`e${i}`));
    expect(problems).toEqual([{ observer: 'slow', dropped: 1 }]);
    gate.resolve();
    await feed.idle();
    expect(seen).toEqual(['first', 'e8', 'e9', 'e10']);
    expect(problems.at(-1)).toEqual({ observer: 'slow', dropped: 7 });
  });

  it('that stay behind are reported again every thousand drops', async () => {
    const gate = deferred();
    const { feed, problems } = feedOf(() => gate.promise, 10);
    for (let i = 0; i < 3011; i++) feed.push(event('x'));
    expect(problems.map(({ dropped }) => dropped)).toEqual([1, 1001, 2001, 3001]);
    gate.resolve();
    await feed.idle();
  });

  it('without a name are numbered', async () => {
    const { feed, problems } = feedOf({
      onEvent() {
        throw new Error('boom');
      },
    });
    feed.push(event('a'));
    await feed.idle();
    expect(problems[0]!.observer).toBe('observer 1');
  });

  it('cannot change the run through what they are given', async () => {
    const agent = new Agent({
      model: scriptedModel([text('done')]),
      observers: [
        (one) => {
          if (one.type === 'message_end') (one.message!.content as unknown[]).length = 0;
        },
      ],
      onObserverError: () => {},
    });
    await expect(agent.run('hi')).resolves.toMatchObject({ text: 'done' });
  });
});
