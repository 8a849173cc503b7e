import {
  assistantMessage,
  defineMiddleware,
  defineState,
  type GuardPoint,
  type Middleware,
  type RunError,
  textOf,
} from 'allium';
import { chunks, collect, hang, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { agentOf, calls, find, guarding, judging, redacting } from '../../../../../test/guards-setup.js';

describe('guards run wherever they stand in the list', () => {
  const cache = defineMiddleware({
    name: 'cache',
    wrapModel: () => ({ role: 'assistant', content: [{ type: 'text', text: 'SECRET' }], stopReason: 'stop' }),
  });

  it.each([
    ['first', [redacting(['output']), cache]],
    ['last', [cache, redacting(['output'])]],
  ])('%s', async (_, middleware) => {
    await expect(agentOf([], ...middleware).agent.run('hi')).resolves.toMatchObject({ text: '[redacted]' });
  });

  it('per run', async () => {
    await expect(
      agentOf(['SECRET']).agent.run('hi', { middleware: [redacting(['output'])] }),
    ).resolves.toMatchObject({ text: '[redacted]' });
  });

  it('in list order among themselves', async () => {
    const one = guarding('one', { on: ['output'], find: find(/a/g), replacement: 'b' });
    const two = guarding('two', { on: ['output'], find: find(/b/g), replacement: 'c' });
    expect((await agentOf(['ab'], one, two).agent.run('hi')).text).toBe('cc');
    expect((await agentOf(['ab'], two, one).agent.run('hi')).text).toBe('bc');
  });
});

describe('what guards have judged', () => {
  type Text = { text: string };
  const edit = (content: readonly object[]): void => {
    (content[0] as Text).text = 'the SECRET again';
  };

  it.each<[string, Middleware]>([
    ['acceptMessage', { acceptMessage: ({ content }) => edit(content) }],
    ['afterModelResponse', { afterModelResponse: ({ content }) => edit(content) }],
    ['ctx.message', { afterModelResponse: (_, { message }) => edit(message!.content) }],
    ['a sink', { sink: true, afterModelResponse: ({ content }) => edit(content) }],
    ['afterToolCall', { afterToolCall: ({ result }) => edit(result!.content) }],
  ])('cannot be edited in place: %s', async (_, hooks) => {
    const swap: Middleware = {
      afterModelResponse: (response) => ({
        response: hooks.sink ? assistantMessage('SECRET') : response,
      }),
    };
    const { agent, session } = agentOf(
      [toolCalls({ name: 'act', text: 'a SECRET' }), 'b SECRET'],
      swap,
      defineMiddleware({ name: 'editing', ...hooks }),
      redacting(['input', 'output', 'tool-result']),
    );
    await agent
      .session('s')
      .run('c SECRET')
      .catch(() => undefined);
    const said = (await session.messages()).map(textOf).join();
    expect(said).not.toContain('SECRET');
  });
});

describe('a judge', () => {
  it('that calls a model is not judged itself, whatever layers and sinks there are', async () => {
    const judge = scriptedModel(['safe'], { repeat: true, id: 'judge' });
    const sink = defineMiddleware({ name: 'sink', sink: true, wrapModel: (_, next) => next() });
    const points: GuardPoint[] = ['input', 'request', 'output'];
    let asked = 0;
    const { agent } = agentOf(
      ['hello'],
      judging(points, async ({ text: given }, { context }) => {
        asked++;
        const answer = await context.generate(judge, { messages: given });
        return textOf(answer) === 'safe' ? undefined : { type: 'deny' };
      }),
      sink,
    );
    await expect(agent.run('hi')).resolves.toMatchObject({ text: 'hello' });
    expect(asked).toBe(3);
    expect(judge.requests).toHaveLength(3);
  });

  it('keeps state, also when the response streamed', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    for (const watched of [true, false]) {
      const guard = judging(['output'], (_, { context }) => void context.state.update(count, (n) => n + 1), {
        state: [count],
      });
      const { session, store } = agentOf(['a', 'b'], guard);
      for (const input of ['1', '2']) await (watched ? session.stream(input).result : session.run(input));
      const values = (await store.read('s', 0)).flatMap((entry) =>
        entry.type === 'state' ? [entry.value] : [],
      );
      expect(values).toEqual([1, 2]);
    }
  });

  it('may stop the run, even if it swallows its own signal', async () => {
    const { agent } = agentOf(
      ['a'],
      judging(['output'], (_, { context }) => {
        try {
          context.stop('stopped', 'enough');
        } catch {
          return undefined;
        }
      }),
    );
    await expect(agent.run('hi')).resolves.toMatchObject({
      stop: { reason: 'stopped', message: 'enough', by: 'judge' },
    });
  });

  it.each([
    ['ask at a point where nobody can be asked', ['output'], { type: 'ask', request: {} }],
    ['ask without a request', ['tool-args'], { type: 'ask' }],
    ['rewrite without anything', ['output'], { type: 'rewrite' }],
    ['rewrite text with arguments', ['output'], { type: 'rewrite', args: {} }],
    ['rewrite arguments with text', ['tool-args'], { type: 'rewrite', text: 'x' }],
    ['a word', ['output'], 'deny'],
    ['nothing, as null', ['output'], null],
    ['a word in a list', ['output'], { type: ['deny'] }],
    ['what every object has', ['output'], { type: 'toString' }],
    ['a misspelt reason', ['output'], { type: 'deny', resaon: 'x' }],
    ['allow with a rewritten text', ['output'], { type: 'allow', text: 'x' }],
    ['rewrite with a misspelt field', ['tool-args'], { type: 'rewrite', args: {}, arg: {} }],
    ['ask with a misspelt request', ['tool-args'], { type: 'ask', request: { titel: 'x' } }],
    ['ask with a request that is no JSON', ['tool-args'], { type: 'ask', request: { details: 1n } }],
  ])('that returns %s has failed', async (_, on, verdict) => {
    const { agent } = agentOf(
      [toolCalls({ name: 'act', args: { q: 1 }, text: 'calling' }), 'end'],
      judging(on as GuardPoint[], () => verdict as never),
    );
    const done = await agent.run('hi').catch((error) => error);
    if (on[0] === 'output')
      expect(done).toMatchObject({ code: 'GUARD_FAILED', cause: { code: 'INVALID_HOOK_RESULT' } });
    else {
      expect(calls).toEqual([]);
      expect(done).not.toMatchObject({ status: 'suspended' });
    }
  });

  it('is not waited for when the run is aborted', async () => {
    const controller = new AbortController();
    const { agent } = agentOf(
      ['a'],
      judging(['output'], (_, { context }) => {
        expect(context.signal.aborted).toBe(false);
        controller.abort();
        return new Promise(() => {});
      }),
    );
    await expect(agent.run('hi', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('rewrites text of several blocks into the first', async () => {
    const blocks = chunks({ type: 'text', text: 'a', block: 1 }, { type: 'text', text: 'b', block: 2 });
    const { agent } = agentOf(
      [blocks],
      judging(['output'], ({ text: given }) => ({ type: 'rewrite', text: given.toUpperCase() })),
    );
    const { result, shown } = await collect(agent.stream('hi'));
    expect([result!.text, [...shown.values()].at(-1)]).toEqual(['AB', 'AB']);
  });
});

describe('a call in a run that hangs', () => {
  it('is not shown before the guards have judged it', async () => {
    const controller = new AbortController();
    const { agent } = agentOf(
      [hang({ type: 'tool-call', id: 'a', name: 'act', arguments: '{"q":"SECRET"}' }, 'text')],
      redacting(['tool-args']),
    );
    const stream = agent.stream('hi', { signal: controller.signal });
    const events: unknown[] = [];
    await expect(
      (async () => {
        for await (const one of stream) {
          events.push(one);
          if (one.type === 'message_update') controller.abort();
        }
      })(),
    ).rejects.toMatchObject({ code: 'ABORTED' });
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });
});

describe('an error that ends the run', () => {
  const parses = defineMiddleware({
    name: 'parses',
    afterModel(ctx) {
      JSON.parse(textOf(ctx.response!));
    },
  });
  const told = async (...middleware: Middleware[]) => {
    const { session, store } = agentOf(['SECRET is'], parses, ...middleware);
    const { events, error } = await collect(session.stream('hi'));
    const failure = error as RunError;
    return { failure, written: JSON.stringify([events, await store.read('s', 0)]) };
  };

  it('is reported by its kind if a guard objects to its message; the caller gets it unchanged', async () => {
    for (const guard of [redacting(['output']), judging(['output'], () => undefined)]) {
      const { failure, written } = await told(guard);
      expect(failure.result!.stop).toEqual({ reason: 'error', message: 'SyntaxError' });
      expect((failure.cause as Error).message).toContain('"SECRET is" is not valid JSON');
      expect(written).not.toContain('SECRET');
    }
  });

  it('is reported with its message otherwise', async () => {
    for (const guards of [[], [guarding('other', { on: ['output'], find: find(/PIN/g) })]]) {
      const { failure } = await told(...guards);
      expect(failure.result!.stop.message).toContain('"SECRET is" is not valid JSON');
    }
  });

  it('stays out of events and journal even if the store fails while it writes the end', async () => {
    const { agent, store } = agentOf(['hi'], redacting(['output']));
    const { append } = store;
    store.append = (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'run_end')) throw new Error('no room for SECRET');
      return append.call(store, id, seq, entries);
    };
    const { events, error } = await collect(agent.session('s').stream('hi'));
    expect((error as RunError).result!.stop).toEqual({ reason: 'error', message: 'Error' });
    expect(JSON.stringify(events)).not.toContain('SECRET');
  });

  it('names the guard that broke', async () => {
    const broken = judging(['output'], () => {
      throw new Error('SECRET');
    });
    const failure: RunError = await agentOf(['hi'], broken)
      .agent.run('hi')
      .catch((error) => error);
    expect(failure.result!.stop.message).toBe('Guard "judge" failed, so nothing more was released.');
  });

  it("an abort is reported with the caller's reason", async () => {
    const { agent } = agentOf(
      [hang('hi')],
      judging(['output'], () => undefined),
    );
    const stream = agent.stream('hi', { signal: AbortSignal.abort(new Error('Enough.')) });
    const failure: RunError = await stream.result.catch((error) => error);
    expect(failure.result!.stop).toEqual({ reason: 'aborted', message: 'Enough.' });
  });
});
