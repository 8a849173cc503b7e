import {
  Agent,
  type AgentEvent,
  type Context,
  defineMiddleware,
  defineState,
  type Guard,
  type Middleware,
  type ModelPart,
  memoryStore,
  textOf,
  tool,
  type Verdict,
} from 'allium';
import { collect, failWith, hang, type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** A guard whose verdict comes when the test says so. */
function waiting(more: Partial<Guard> = {}, options: Partial<Middleware> = {}) {
  const asked: string[] = [];
  let answer!: (verdict: Verdict | undefined) => void;
  let fail!: (error: unknown) => void;
  const verdict = new Promise<Verdict | undefined>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  verdict.catch(() => {});
  const guard: Guard = {
    on: ['input'],
    parallel: true,
    judge({ text }) {
      asked.push(text);
      return verdict;
    },
    ...more,
  };
  return { middleware: defineMiddleware({ name: 'beside', guard, ...options }), answer, fail, asked };
}

const ran: unknown[] = [];
const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  execute: (args) => void ran.push(args),
});

function agentOf(script: readonly Script[], ...middleware: Middleware[]) {
  ran.length = 0;
  const model = scriptedModel(script);
  const store = memoryStore();
  const agent = new Agent({ model, store, middleware, tools: [act] });
  return { agent, model, store, session: agent.session('s') };
}

/** Lets everything happen that does not wait for the verdict. */
const quiet = (): Promise<void> =>
  new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));

const types = (events: readonly AgentEvent[]): string[] => events.map(({ type }) => type);

describe('a guard beside the first model call', () => {
  it('lets the model answer meanwhile, but shows, writes and runs nothing before its verdict', async () => {
    const { middleware, answer, asked } = waiting();
    const { session, store, model } = agentOf(
      [toolCalls({ name: 'act', args: { a: 1 } }), 'done'],
      middleware,
    );
    const events: AgentEvent[] = [];
    const stream = session.stream('hi');
    const read = (async () => {
      for await (const event of stream) events.push(event);
    })();
    await quiet();
    expect(asked).toEqual(['hi']);
    expect(model.requests).toHaveLength(1);
    expect(model.requests[0]!.messages.map((one) => textOf(one))).toEqual(['hi']);
    expect(types(events)).toEqual(['agent_start', 'turn_start']);
    expect(await store.read('s', 1)).toEqual([]);
    expect(ran).toEqual([]);
    answer(undefined);
    await read;
    const result = await stream.result;
    expect(result).toMatchObject({ status: 'done', text: 'done', turns: 2 });
    expect(ran).toEqual([{ a: 1 }]);
    expect(result.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(new Set(result.messages.map(({ id }) => id)).size).toBe(4);
    const starts = events.flatMap((one) => (one.type === 'message_start' ? one.role : []));
    expect(starts).toEqual(['user', 'assistant', 'assistant']);
    expect(events.filter(({ type }) => type === 'message_start')).toHaveLength(
      events.filter(({ type }) => type === 'message_end').length,
    );
  });

  it('shows the answer before its end, however close the verdict and the answer are', async () => {
    const answer = ['message_start', 'message_update', 'message_end'];
    for (let steps = 0; steps < 40; steps++) {
      const judge = async (): Promise<void> => {
        for (let i = 0; i < steps; i++) await undefined;
      };
      const beside = defineMiddleware({ name: 'beside', guard: { on: ['input'], parallel: true, judge } });
      const { session } = agentOf(['Hello.'], beside);
      const { events } = await collect(session.stream('hi'));
      expect(types(events), `${steps} steps`).toEqual([
        ...['agent_start', 'turn_start', 'message_start', 'message_end', ...answer],
        ...['turn_end', 'agent_end'],
      ]);
    }
  });

  it('streams on as soon as it has allowed the input', async () => {
    const { middleware, answer } = waiting();
    let go!: () => void;
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const model = {
      provider: 'test',
      id: 'slow',
      async *stream(): AsyncGenerator<ModelPart> {
        yield { type: 'text', text: 'One ' };
        await gate;
        yield { type: 'text', text: 'two' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const agent = new Agent({ model, middleware: [middleware] });
    const texts: string[] = [];
    const stream = agent.stream('hi');
    const read = (async () => {
      for await (const event of stream)
        if (event.type === 'message_update' && event.delta.type === 'text') texts.push(event.delta.text);
    })();
    await quiet();
    expect(texts).toEqual([]);
    answer({ type: 'allow' });
    await quiet();
    expect(texts).toEqual(['One ']);
    go();
    await read;
    expect(texts.join('')).toBe('One two');
  });

  it.each<['block' | 'stop' | undefined]>([['block'], ['stop'], [undefined]])(
    'a refusal aborts the model call and ends the run, with action %s',
    async (action) => {
      const { middleware, answer } = waiting(action ? { action } : {});
      const { session, store } = agentOf([hang('Good ')], middleware);
      const done = collect(session.stream('SECRET question'));
      await quiet();
      answer({ type: 'deny', reason: 'No.', kind: 'topic' });
      const { events, result } = await done;
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', message: 'No.', by: 'beside' },
        messages: [],
        text: '',
      });
      // The call was begun, so it was paid for.
      expect(result!.usage.totalTokens).toBeGreaterThan(0);
      expect(types(events)).toEqual(['agent_start', 'turn_start', 'guard_verdict', 'turn_end', 'agent_end']);
      expect(JSON.stringify([events, await store.read('s', 1)])).not.toMatch(/SECRET|Good/);
      expect(await session.messages()).toEqual([]);
    },
  );

  it('a refusal that comes after the answer counts too', async () => {
    const { middleware, answer } = waiting();
    const { session, store } = agentOf([toolCalls({ name: 'act', args: {} }), 'done'], middleware);
    const done = session.run('hi');
    await quiet();
    answer({ type: 'deny' });
    await expect(done).resolves.toMatchObject({ stop: { reason: 'guardrail' }, messages: [] });
    expect(ran).toEqual([]);
    expect(JSON.stringify(await store.read('s', 1))).not.toContain('act');
  });

  it('warns without refusing', async () => {
    const { middleware, answer } = waiting({ action: 'warn' });
    const done = agentOf(['fine'], middleware).agent.run('hi');
    answer({ type: 'deny', reason: 'Hm.' });
    const result = await done;
    expect(result).toMatchObject({ status: 'done', text: 'fine' });
    expect(result.changes).toMatchObject([{ by: 'beside', verdict: { action: 'warn', point: 'input' } }]);
  });

  it.each(['closed', 'open'] as const)('that fails is handled by onFail: %s', async (onFail) => {
    const { middleware, fail } = waiting({}, { onFail });
    const { session, store } = agentOf(['fine'], middleware);
    const done = session.run('hi');
    done.catch(() => {});
    await quiet();
    fail(new Error('no judge'));
    if (onFail === 'open') await expect(done).resolves.toMatchObject({ text: 'fine' });
    else {
      await expect(done).rejects.toMatchObject({ code: 'GUARD_FAILED', result: { messages: [] } });
      expect(JSON.stringify(await store.read('s', 1))).not.toContain('fine');
    }
  });

  it('cannot rewrite: the model has read the text', async () => {
    const { middleware, answer } = waiting();
    const done = agentOf(['fine'], middleware).agent.run('hi');
    answer({ type: 'rewrite', text: 'ho' });
    await expect(done).rejects.toMatchObject({ code: 'GUARD_FAILED' });
  });

  it('an abort ends the wait, and nothing is written of the input', async () => {
    const { middleware } = waiting();
    const { session } = agentOf([hang('Good ')], middleware);
    const controller = new AbortController();
    const done = session.run('hi', { signal: controller.signal });
    await quiet();
    controller.abort();
    await expect(done).rejects.toMatchObject({ code: 'ABORTED', result: { messages: [] } });
  });

  it('a model that fails leaves the input in the history, if it is allowed', async () => {
    for (const verdict of [undefined, { type: 'deny' as const }]) {
      const { middleware, answer } = waiting();
      const { session } = agentOf([failWith(new Error('broken'))], middleware);
      const done = session.run('hi').catch((error) => error.result);
      await quiet();
      answer(verdict);
      const result = await done;
      expect(result.stop.reason).toBe(verdict ? 'guardrail' : 'error');
      expect((await session.messages()).map((one) => textOf(one))).toEqual(verdict ? [] : ['hi']);
    }
  });

  it.each(['outside', 'inside'])('with a layer that retries %s of it', async (where) => {
    const retries = defineMiddleware({ name: 'retries', onError: () => 'retry' });
    const { middleware, answer } = waiting();
    const list = where === 'outside' ? [retries, middleware] : [middleware, retries];
    const { agent, model } = agentOf([failWith(new Error('broken')), 'fine'], ...list);
    const done = agent.run('hi');
    await quiet();
    expect(model.requests).toHaveLength(2);
    answer(undefined);
    await expect(done).resolves.toMatchObject({ text: 'fine' });

    const other = waiting();
    const again = where === 'outside' ? [retries, other.middleware] : [other.middleware, retries];
    const second = agentOf([hang(), 'fine'], ...again);
    const refused = second.agent.run('hi');
    await quiet();
    other.answer({ type: 'deny' });
    await expect(refused).resolves.toMatchObject({ stop: { reason: 'guardrail' } });
    expect(second.model.requests).toHaveLength(1);
  });

  it("a layer's stop holds, and input that was not allowed by then is not kept", async () => {
    const stops = defineMiddleware({ name: 'stops', beforeModel: (ctx) => ctx.stop('stopped', 'Enough.') });
    const { middleware, answer } = waiting();
    const { session } = agentOf([], stops, middleware);
    const done = session.run('hi');
    await quiet();
    answer(undefined);
    await expect(done).resolves.toMatchObject({ stop: { reason: 'stopped', by: 'stops' } });
    expect(await session.messages()).toEqual([]);
  });

  it('a sink gets no answer before the input is allowed, and none if it is refused', async () => {
    for (const refuses of [false, true]) {
      const written: string[] = [];
      const sink = defineMiddleware({
        name: 'sink',
        sink: true,
        async wrapModel(_, next) {
          const response = await next();
          written.push(textOf(response));
          return response;
        },
      });
      const { middleware, answer } = waiting();
      const done = agentOf(['fine'], sink, middleware).agent.run('hi');
      await quiet();
      expect(written).toEqual([]);
      answer(refuses ? { type: 'deny' } : undefined);
      await done;
      expect(written).toEqual(refuses ? [] : ['fine']);
    }
  });

  it("calls its model within the run's budget, beside the run's own call", async () => {
    const judge = scriptedModel(['yes', 'yes']);
    const middleware = defineMiddleware({
      name: 'asks',
      extraLlmCalls: () => [judge],
      guard: {
        on: ['input'],
        parallel: true,
        async judge({ text }, { context }: { context: Context }) {
          const said = await context.generate(judge, { messages: text, settings: { maxOutputTokens: 10 } });
          return textOf(said) === 'yes' ? undefined : { type: 'deny' };
        },
      },
    });
    for (const limits of [{}, { tokens: 1000 }]) {
      const result = await agentOf(['fine'], middleware).agent.run('hi', { limits });
      expect(result).toMatchObject({ status: 'done', text: 'fine', usage: { totalTokens: 30 } });
    }
  });

  it('sees the input as earlier guards and hooks left it, and its state is kept with the input', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    const asked: string[] = [];
    const writes = defineMiddleware({
      name: 'writes',
      state: [count],
      guard: {
        on: ['input'],
        parallel: true,
        judge({ text }, { context }) {
          asked.push(text);
          context.state.update(count, (n) => n + 1);
        },
      },
    });
    const cleans = defineMiddleware({
      name: 'cleans',
      guard: { on: ['input'], find: (text) => (text.startsWith('SECRET') ? [{ start: 0, end: 6 }] : []) },
    });
    const { session } = agentOf(['a'], writes, cleans);
    const result = await session.run('SECRET hi');
    expect(asked).toEqual(['[redacted] hi']);
    expect(result.state.get(count)).toBe(1);
  });

  it('judges later messages before they are accepted', async () => {
    const { middleware, answer, asked } = waiting();
    const { session, model } = agentOf(['a', 'b'], middleware);
    const done = session.run('first');
    await quiet();
    await session.steer('second');
    answer(undefined);
    await expect(done).resolves.toMatchObject({ status: 'done', text: 'b' });
    expect(asked).toEqual(['first', 'second']);
    expect(model.requests[1]!.messages.map((one) => textOf(one))).toEqual(['first', 'a', 'second']);
  });

  it('messages that waited before the run come after its input', async () => {
    const { middleware, answer } = waiting();
    const { session, model } = agentOf(['a'], middleware);
    await session.steer('waited');
    const done = session.run('first');
    await quiet();
    answer(undefined);
    await done;
    expect(model.requests[0]!.messages.map((one) => textOf(one))).toEqual(['first', 'waited']);
  });

  it('an answer that came before the verdict carries its usage, and counts once after a resume', async () => {
    const { middleware, answer } = waiting();
    const asks = tool({
      name: 'asks',
      description: 'Asks.',
      input: z.any(),
      execute: (_, ctx) => ctx.suspend({ title: 'May I?' }),
    });
    const store = memoryStore();
    const price = { input: 1, output: 1 };
    const agent = (script: readonly Script[]) =>
      new Agent({ model: scriptedModel(script, { price }), store, middleware: [middleware], tools: [asks] });
    const running = agent([toolCalls({ name: 'asks' })])
      .session('s')
      .run('hi');
    await quiet();
    answer(undefined);
    const { messages, usage, pending } = await running;
    expect(messages[1]).toMatchObject({ usage: { inputTokens: 10, outputTokens: 5 } });
    expect(usage.totalTokens).toBe(15);
    const entries = await store.read('s', 1);
    expect(entries.filter(({ type }) => type === 'usage')).toEqual([]);
    const result = await agent(['done'])
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result.usage.totalTokens).toBe(30);
    expect(result.costUsd).toBeCloseTo(30e-6);
  });

  it('a resumed run does not ask for the verdict again', async () => {
    const { middleware, answer, asked } = waiting();
    const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'Do it?' } }) });
    const { session } = agentOf([toolCalls({ name: 'act', args: {} }), 'done'], asks, middleware);
    const first = session.run('hi');
    answer(undefined);
    const { pending } = await first;
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    await expect(session.resume({ answers })).resolves.toMatchObject({ status: 'done', text: 'done' });
    expect(asked).toEqual(['hi']);
  });

  it.each<[string, Partial<Guard>]>([
    ['other points', { on: ['input', 'output'] }],
    ['find', { find: () => [] }],
  ])('cannot have %s', (_, more) => {
    expect(() => agentOf([], waiting(more).middleware)).toThrow('`guard.parallel` is for a guard');
  });
});
