import { Agent, type AgentEvent, type Model, type ModelPart, RunError, type RunStream, tool } from 'allium';
import { chunks, collect, failWith, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { EventQueue } from './event-queue.js';

const event = (name: string): AgentEvent => ({ type: 'custom', runId: 'r', sessionId: 's', name });

/** Lets everything that is ready run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Yields text for ever, counting; ends when it is told to stop. */
function endless(): Model & { produced: number; returned: number } {
  const model = {
    provider: 'test',
    id: 'endless',
    produced: 0,
    returned: 0,
    async *stream(): AsyncGenerator<ModelPart> {
      try {
        for (;;) {
          model.produced++;
          yield { type: 'text', text: 'x'.repeat(100) };
        }
      } finally {
        model.returned++;
      }
    },
  };
  return model;
}

const delta = (index: number): AgentEvent => ({
  type: 'message_update',
  runId: 'r',
  sessionId: 's',
  messageId: 'm',
  delta: { type: 'text', block: 0, text: `${index} ` },
});

/** Reads so many deltas one by one, each awaited before it comes, that the next ones are handed over together. */
async function burst(queue: EventQueue): Promise<void> {
  for (let i = 0; i < 64; i++) {
    const step = queue.next();
    queue.pushDelta(delta(i));
    expect((await step).value).toEqual(delta(i));
  }
}

/** What a promise has come to when promises have had `ticks` turns. */
async function within<T>(ticks: number, promise: Promise<T>): Promise<T | 'waits'> {
  let value: T | 'waits' = 'waits';
  void promise.then((given) => {
    value = given;
  });
  for (let i = 0; i < ticks; i++) await undefined;
  return value;
}

describe('the queue', () => {
  it('delivers deltas one by one at first, then in batches once all promises are waiting', async () => {
    const queue = new EventQueue();
    await burst(queue);
    const step = queue.next();
    queue.pushDelta(delta(64));
    expect(await within(20, step)).toBe('waits');
    await settle();
    expect(await within(1, step)).toEqual({ done: false, value: delta(64) });
  });

  it('delivers a batch even while promises keep resolving', async () => {
    const queue = new EventQueue();
    await burst(queue);
    const step = queue.next();
    for (let i = 64; i < 127; i++) queue.pushDelta(delta(i));
    expect(await within(20, step)).toBe('waits');
    queue.pushDelta(delta(127));
    expect(await within(1, step)).toEqual({ done: false, value: delta(64) });
    for (let i = 65; i < 128; i++) expect((await queue.next()).value).toEqual(delta(i));
  });

  it('releases held deltas when any other event or the end comes', async () => {
    const queue = new EventQueue();
    await burst(queue);
    const first = queue.next();
    queue.pushDelta(delta(64));
    queue.push(event('a'));
    expect(await within(1, first)).toEqual({ done: false, value: delta(64) });
    expect((await queue.next()).value).toEqual(event('a'));
    await burst(queue);
    const second = queue.next();
    queue.pushDelta(delta(64));
    queue.end();
    expect(await within(1, second)).toEqual({ done: false, value: delta(64) });
    expect(await queue.next()).toEqual({ done: true, value: undefined });
  });

  it('gives a held delta to the reader who asked first', async () => {
    const queue = new EventQueue();
    await burst(queue);
    const first = queue.next();
    queue.pushDelta(delta(64));
    queue.pushDelta(delta(65));
    const second = queue.next();
    expect((await first).value).toEqual(delta(64));
    expect((await second).value).toEqual(delta(65));
  });

  it('shows all of a long answer that never waits, and of a cut-off answer what its message holds', async () => {
    const model = scriptedModel([chunks(...Array.from({ length: 1000 }, (_, i) => `${i} `))]);
    const { events: whole } = await collect(new Agent({ model }).stream('go'));
    const shown = (events: readonly AgentEvent[]): string =>
      events
        .map((e) => (e.type === 'message_update' && e.delta.type === 'text' ? e.delta.text : ''))
        .join('');
    expect(shown(whole)).toBe(Array.from({ length: 1000 }, (_, i) => `${i} `).join(''));

    const cut = new AbortController();
    const stream = new Agent({ model: endless() }).stream('go', { signal: cut.signal });
    const seen: AgentEvent[] = [];
    const error = await (async () => {
      for await (const one of stream) {
        seen.push(one);
        if (seen.length === 300) cut.abort();
      }
    })().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RunError);
    expect(shown(seen).length).toBeGreaterThan(20_000);
    expect((error as RunError).result.text).toBe(shown(seen));
  });

  it('gives each event to one of several waiting readers, in order', async () => {
    const queue = new EventQueue();
    const steps = [queue.next(), queue.next(), queue.next()];
    for (const name of ['a', 'b', 'c', 'd']) queue.push(event(name));
    expect(
      (await Promise.all([...steps, queue.next()])).map(({ value }) => (value as { name: string }).name),
    ).toEqual(['a', 'b', 'c', 'd']);
  });

  it('ends for all waiting readers; the first one gets the error', async () => {
    const queue = new EventQueue();
    const steps = [queue.next(), queue.next()];
    queue.end({ error: new Error('boom') });
    await expect(steps[0]).rejects.toThrow('boom');
    await expect(steps[1]).resolves.toEqual({ done: true, value: undefined });
    await expect(queue.next()).resolves.toEqual({ done: true, value: undefined });
  });

  it('delivers the remaining events before the end or the error', async () => {
    const queue = new EventQueue();
    queue.push(event('a'));
    queue.end({ error: undefined });
    await expect(queue.next()).resolves.toMatchObject({ done: false });
    await expect(queue.next()).rejects.toBeUndefined();
    await expect(queue.next()).resolves.toMatchObject({ done: true });
  });

  it('signals once when there is room again, not at every event', async () => {
    const queue = new EventQueue();
    for (let i = 0; i < 255; i++) queue.push(event('x'));
    expect(queue.pressure()).toBeUndefined();
    queue.push(event('x'));
    let room = false;
    const wait = queue.pressure()!.then(() => {
      room = true;
    });
    for (let i = 0; i < 191; i++) await queue.next();
    expect(room).toBe(false);
    await queue.next();
    await wait;
    expect(queue.length).toBe(64);
  });
});

describe('agent.stream()', () => {
  const agentOf = (...script: Parameters<typeof scriptedModel>[0][number][]): Agent =>
    new Agent({ model: scriptedModel(script) });

  it('returns an object that is not a thenable', async () => {
    const stream = agentOf('hi').stream('x');
    expect('then' in stream).toBe(false);
    expect(await stream).toBe(stream);
    await stream.result;
  });

  it('gives events and then the result', async () => {
    const { types, result } = await collect(agentOf('hi').stream('x'));
    expect(types.at(-1)).toBe('agent_end');
    expect(result).toMatchObject({ status: 'done', text: 'hi' });
  });

  it('awaiting `result` lets the run finish without a reader', async () => {
    const parts: ModelPart[] = Array.from({ length: 5000 }, () => ({ type: 'text', text: 'x' }));
    const agent = agentOf({ parts: [...parts, { type: 'finish', reason: 'stop' }] });
    await expect(agent.stream('x').result).resolves.toMatchObject({ text: 'x'.repeat(5000) });
  });

  it('awaiting `result` lets a run finish that already waits for a reader', async () => {
    const model = endless();
    const controller = new AbortController();
    const stream = new Agent({ model }).stream('x', { signal: controller.signal });
    await settle();
    const { produced } = model;
    const result = stream.result.catch((error) => error);
    await settle();
    expect(model.produced).toBeGreaterThan(produced);
    controller.abort();
    expect(await result).toBeInstanceOf(RunError);
  });

  const all = Array.from({ length: 1000 }, (_, i) => `${i} `);
  const long = (): Agent => agentOf(chunks(...all));
  const texts = (events: readonly AgentEvent[]): readonly string[] =>
    events.flatMap((one) =>
      one.type === 'message_update' && one.delta.type === 'text' ? one.delta.text : [],
    );

  it.each(['just then', 'before'])(
    'awaiting `result` inside the loop works too, when it was asked for %s; no event is lost',
    async (when) => {
      const stream = long().stream('x');
      const early = when === 'before' ? stream.result : undefined;
      const events: AgentEvent[] = [];
      for await (const one of stream) {
        events.push(one);
        if (texts(events).length === 1)
          expect(await (early ?? stream.result)).toMatchObject({ status: 'done' });
      }
      expect(texts(events)).toEqual(all);
    },
  );

  it.each([0, 1, 200])(
    'awaiting `result` lets the run finish after %i events were read; the rest can still be read',
    async (n) => {
      const stream = long().stream('x');
      const iterator = stream[Symbol.asyncIterator]();
      const events: AgentEvent[] = [];
      for (let i = 0; i < n; i++) events.push((await iterator.next()).value!);
      for (let i = 0; i < 5; i++) await settle();
      expect(await stream.result).toMatchObject({ status: 'done' });
      for await (const one of iterator) events.push(one);
      expect(texts(events)).toEqual(all);
    },
  );

  it('a reader as fast as the model gets every event, even with `result` awaited', async () => {
    const stream = long().stream('x');
    const [{ types }, { text: said }] = await Promise.all([collect(stream), stream.result]);
    expect(types.filter((type) => type === 'message_update')).toHaveLength(1000);
    expect(said).toBe(all.join(''));
  });

  it('`result` may be taken first and the events read afterwards', async () => {
    const stream = agentOf('hi').stream('x');
    const { result } = stream;
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect([types[0], types.at(-1)]).toEqual(['agent_start', 'agent_end']);
    expect((await result).text).toBe('hi');
  });

  it.each<[string, () => Agent, number]>([
    ['that waits for a reader by then', long, 5],
    [
      'whose model has said all by then',
      () => {
        const said: ModelPart[] = all.map((piece) => ({ type: 'text', text: piece }));
        const stream = () => [...said, { type: 'finish', reason: 'stop' } as const];
        return new Agent({ model: { provider: 'test', id: 'list', stream } });
      },
      0,
    ],
  ])('`result` may be taken first, of a run %s', async (_, make, ticks) => {
    const stream = make().stream('x');
    for (let i = 0; i < ticks; i++) await settle();
    const { result } = stream;
    const { events } = await collect(stream);
    expect(texts(events)).toEqual(all);
    expect((await result).text).toBe(all.join(''));
  });

  it('iterating late still starts at the first event', async () => {
    const stream = agentOf('hi').stream('x');
    await settle();
    const { types } = await collect(stream);
    expect([types[0], types.at(-1)]).toEqual(['agent_start', 'agent_end']);
  });

  it('breaking out of the loop aborts, and waits until the run has ended', async () => {
    const model = endless();
    const agent = new Agent({ model });
    const stream = agent.stream('x');
    for await (const one of stream) if (one.type === 'message_update') break;
    expect(model.returned).toBe(1);
    await expect(stream.result).rejects.toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
  });

  it('after breaking out there is nothing more to read', async () => {
    const iterator = agentOf(hang('hi')).stream('x')[Symbol.asyncIterator]();
    await iterator.next();
    expect(await iterator.return!()).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('throws the error of the run to the iterator, after agent_end', async () => {
    const boom = new Error('boom');
    const { types, error } = await collect(agentOf(failWith(boom, 'half')).stream('x'));
    expect(types.at(-1)).toBe('agent_end');
    expect(error).toMatchObject({ code: 'MODEL_ERROR', cause: boom });
  });

  it('throws to the iterator when the run could not even begin', async () => {
    const stream = agentOf('hi').stream('x', { nonsense: 1 } as never);
    await expect(stream[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(stream.result).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });

  it('an error nobody listens to is no unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    agentOf(failWith(new Error('boom'))).stream('x');
    await settle();
    await settle();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});

describe('slow consumers exert back-pressure', () => {
  it('a model is read no further ahead than the queue is long', async () => {
    const model = endless();
    const iterator = new Agent({ model }).stream('x')[Symbol.asyncIterator]();
    for (let read = 1; read <= 2000; read++) {
      await iterator.next();
      if (read % 100 === 0) await settle();
      expect(model.produced).toBeLessThan(read + 300);
    }
    await iterator.return!();
  });

  it('nobody reads: the model waits', async () => {
    const model = endless();
    const stream = new Agent({ model }).stream('x');
    for (let i = 0; i < 20; i++) await settle();
    expect(model.produced).toBeLessThan(300);
    for await (const _ of stream) break;
    expect(model.returned).toBe(1);
  });

  it('turns wait as well, not only deltas', async () => {
    let ran = 0;
    const count = tool({
      name: 'count',
      description: 'Counts.',
      input: z.object({}),
      execute: () => `${++ran}`,
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'count' })], { repeat: true }),
      tools: [count],
      limits: { turns: 1000 },
    });
    const stream = agent.stream('x');
    for (let i = 0; i < 50; i++) await settle();
    expect(ran).toBeLessThan(60);
    for await (const _ of stream) break;
  });

  it('an abort ends the wait of a turn for its consumer, and the turn has its end', async () => {
    const clock = fakeClock();
    const chatty = tool({
      name: 'chatty',
      description: 'Tells a lot.',
      input: z.object({}),
      execute(_, ctx) {
        for (let i = 0; i < 400; i++) ctx.update(`${i}`);
        return 'done';
      },
    });
    const seen: string[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'chatty' }), text('ok')]),
      tools: [chatty],
      clock,
      observers: [({ type }) => void seen.push(type)],
    });
    const controller = new AbortController();
    const stream = agent.stream('x', { signal: controller.signal });
    await stream[Symbol.asyncIterator]().next();
    for (let i = 0; i < 5; i++) await settle();
    await agent.observersIdle();
    expect(seen.at(-1)).toBe('turn_start');
    controller.abort('enough');
    // Nobody reads, and no time passes.
    for (let i = 0; i < 5; i++) await settle();
    await agent.observersIdle();
    expect(seen.slice(-3)).toEqual(['turn_start', 'turn_end', 'agent_end']);
    await expect(stream.result).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('time spent waiting for the consumer is not active time', async () => {
    const clock = fakeClock();
    const parts: ModelPart[] = Array.from({ length: 400 }, () => ({ type: 'text', text: 'x' }));
    const model = scriptedModel([{ parts: [...parts, { type: 'finish', reason: 'stop' }] }]);
    const iterator = new Agent({ model, clock, limits: { timeoutMs: 1000 } })
      .stream('x')
      [Symbol.asyncIterator]();
    await iterator.next();
    for (let i = 0; i < 5; i++) await clock.advance(900);
    const types: string[] = [];
    for (let step = await iterator.next(); !step.done; step = await iterator.next())
      types.push(step.value.type);
    expect(types.at(-1)).toBe('agent_end');
    expect(types.filter((type) => type === 'message_update')).toHaveLength(400);
  });
});

describe('a second reader of a stream', () => {
  it.each([
    ['beside the first', async (events: AsyncIterator<AgentEvent>) => void (await events.next())],
    [
      'after the first has read everything',
      async (events: AsyncIterator<AgentEvent>) => {
        while (!(await events.next()).done);
      },
    ],
  ])('is refused %s, which loses nothing', async (_, read) => {
    const stream = new Agent({ model: scriptedModel([text('hi')]) }).stream('x');
    const first = stream[Symbol.asyncIterator]();
    await read(first);
    const second = async () => {
      for await (const event of stream) return event;
    };
    await expect(second()).rejects.toMatchObject({ code: 'STREAM_TAKEN' });
    let last: AgentEvent | undefined;
    for (let step = await first.next(); !step.done; step = await first.next()) last = step.value;
    if (last) expect(last.type).toBe('agent_end');
    expect(await stream.result).toMatchObject({ status: 'done', text: 'hi' });
  });

  it('is refused after the run has failed, too', async () => {
    const stream = new Agent({ model: scriptedModel([failWith(new Error('boom'))]) }).stream('x');
    expect((await collect(stream)).error).toMatchObject({ code: 'MODEL_ERROR' });
    expect((await collect(stream).catch((error) => ({ error }))).error).toMatchObject({
      code: 'STREAM_TAKEN',
    });
  });
});

describe('a stream that is detached', () => {
  it.each([
    ['before it is read', (stream: RunStream) => stream.detach()[Symbol.asyncIterator]()],
    [
      'while it is read',
      (stream: RunStream) => {
        const events = stream[Symbol.asyncIterator]();
        stream.detach();
        return events;
      },
    ],
  ])('%s goes on when its reader leaves', async (_, read) => {
    const stream = new Agent({ model: scriptedModel([chunks('a', 'b', 'c')]) }).stream('x');
    const events = read(stream);
    await events.next();
    expect(await events.return!()).toEqual({ done: true, value: undefined });
    expect(await events.next()).toEqual({ done: true, value: undefined });
    expect(await stream.result).toMatchObject({ status: 'done', text: 'abc' });
  });

  it('waits for no reader, and loses nothing where one is slow', async () => {
    const many = Array.from({ length: 1000 }, (_, i) => `${i} `);
    const agent = new Agent({ model: scriptedModel([chunks(...many)]) });
    const session = agent.session('s');
    const stream = session.stream('x').detach();
    const events = stream[Symbol.asyncIterator]();
    await events.next();
    while ((await session.messages()).length < 2) await settle();
    let said = '';
    for await (const one of events)
      if (one.type === 'message_update' && one.delta.type === 'text') said += one.delta.text;
    expect(said).toBe(many.join(''));
  });

  it('is still aborted by its session', async () => {
    const session = new Agent({ model: scriptedModel([hang()]) }).session('s');
    const stream = session.stream('x').detach();
    for await (const one of stream) if (one.type === 'turn_start') break;
    await session.abort('enough');
    await expect(stream.result).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('that fails unread harms nobody', async () => {
    const session = new Agent({ model: scriptedModel([failWith(new Error('boom'))]) }).session('s');
    session.stream('x').detach();
    await settle();
    expect((await session.messages()).length).toBe(1);
  });
});

describe('events are balanced', () => {
  const broken = tool({
    name: 'broken',
    description: 'Fails.',
    input: z.object({}),
    execute: () => Promise.reject(new Error('boom')),
  });
  const stops = tool({
    name: 'stops',
    description: 'Stops.',
    input: z.object({}),
    execute: (_, ctx) => ctx.stop('stopped'),
  });
  const aborting = new AbortController();
  const aborts = tool({
    name: 'aborts',
    description: 'Aborts.',
    input: z.object({}),
    execute: () => aborting.abort(),
  });
  const tools = [broken, stops, aborts];

  it.each([
    ['a plain answer', [text('hi')]],
    ['a failing tool', [toolCalls({ name: 'broken' }), 'end']],
    ['a tool that stops', [toolCalls({ name: 'stops' }, { name: 'broken' })]],
    ['an unknown tool', [toolCalls({ name: 'nobody' }), 'end']],
    ['a model that fails at once', [failWith(new Error('boom'))]],
    ['a model that fails half way', [failWith(new Error('boom'), 'half')]],
    ['a stream that is cut off', [{ parts: [{ type: 'text' as const, text: 'half' }] }]],
    ['an abort in a tool', [toolCalls({ name: 'aborts' }, { name: 'broken' })]],
  ])('%s', async (_, script) => {
    const { events } = await collect(
      new Agent({ model: scriptedModel(script), tools }).stream('x', { signal: aborting.signal }),
    );
    const open: string[] = [];
    for (const one of events) {
      const [what, when] = one.type.split(/_(?=start$|end$)/);
      const id = `${what}:${'messageId' in one && what === 'message' ? one.messageId : 'toolCall' in one ? one.toolCall.id : ''}`;
      if (when === 'start') open.push(id);
      if (when === 'end') {
        expect(open).toContain(id);
        open.splice(open.lastIndexOf(id), 1);
      }
    }
    expect(open).toEqual([]);
    expect(events.at(-1)!.type).toBe('agent_end');
  });
});
