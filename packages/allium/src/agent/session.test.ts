import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { counting, echo, entriesOf } from '../../../../test/session-setup.js';
import { Agent, defineMiddleware, defineState, memoryStore, RunError, textOf, tool } from '../index.js';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  scriptedModel,
  text,
  toolCalls,
} from '../testing/index.js';

describe('sessions', () => {
  it('goes on with the same history in the next run', async () => {
    const model = scriptedModel([text('one'), text('two')]);
    const session = new Agent({ model, store: memoryStore() }).session('chat');
    await session.run('first');
    await session.run('second');
    expect(model.requests[1]!.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect((await session.messages()).length).toBe(4);
  });

  it('is found again by another agent over the same store', async () => {
    const store = memoryStore();
    await new Agent({ model: scriptedModel([text('one')]), store }).session('chat').run('first');
    const model = scriptedModel([text('two')]);
    await new Agent({ model, store }).session('chat').run('second');
    expect(model.requests[0]!.messages.length).toBe(3);
  });

  it('is in the store given to agent.session(), whatever store the agent has', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: scriptedModel([text('one')]), store: memoryStore() });
    await agent.session('chat', { store }).run('first');
    expect((await agent.session('chat', { store }).messages()).length).toBe(2);
    expect(await agent.session('chat').messages()).toEqual([]);
    expect(() => agent.session('chat', { store: {} as never })).toThrow('`store`');
  });

  it('runs under the id that a run is given, and resumes only that one', async () => {
    const model = scriptedModel([toolCalls({ name: 'echo', args: { say: 'a' } }), text('done')]);
    const ask = () => ({ ask: { title: 'May I?' } });
    const agent = new Agent({ model, tools: [echo], beforeToolCall: ask, store: memoryStore() });
    const session = agent.session('chat');
    const { runId, pending } = await session.run('first', { runId: 'mine' });
    expect([runId, (await session.messages())[0]!.id]).toEqual(['mine', 'mine.1']);
    const answers = { [pending[0]!.id]: { type: 'approve' } } as const;
    await expect(session.resume({ runId: 'other', answers })).rejects.toMatchObject({
      code: 'SESSION_UNKNOWN',
      message: expect.stringContaining('"mine" is'),
    });
    expect(await session.resume({ runId: 'mine', answers })).toMatchObject({ status: 'done', runId: 'mine' });
    await expect(session.run('again', { runId: 'a b' })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });

  it('numbers messages by run: runId.1, runId.2, …', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { say: 'a' } }, { name: 'echo', args: { say: 'b' } }),
      text('done'),
    ]);
    const result = await new Agent({ model, tools: [echo], newId: counting() }).run('hi');
    expect(result.messages.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((n) => `r_id2.${n}`));
  });

  it('freezes the history it hands out', async () => {
    const session = new Agent({ model: scriptedModel([text('one')]), store: memoryStore() }).session('chat');
    const result = await session.run('first');
    const messages = await session.messages();
    for (const list of [messages, result.messages]) {
      expect(() => (list as unknown[]).push('x')).toThrow(TypeError);
      expect(() => Object.assign(list[0]!, { role: 'tool' })).toThrow(TypeError);
      expect(() => Object.assign(list[1]!.content[0]!, { text: 'forged' })).toThrow(TypeError);
    }
  });

  it('refuses a second run at a time with SESSION_BUSY, which says to steer or follow up', async () => {
    const agent = new Agent({ model: scriptedModel([hang()]) });
    const session = agent.session('chat');
    const first = session.run('hi');
    await expect(agent.session('chat').run('again')).rejects.toMatchObject({
      code: 'SESSION_BUSY',
      message: expect.stringMatching(/steer\(\).*followUp\(\)/),
    });
    await session.abort('enough');
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('runs any number of sessions at once on one agent', async () => {
    const agent = new Agent({ model: scriptedModel([text('same')], { repeat: true }) });
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => agent.session(`s${i}`).run(`hi ${i}`)),
    );
    expect(new Set(results.map(({ runId }) => runId)).size).toBe(50);
    expect(results.every(({ messages }) => messages.length === 2)).toBe(true);
  });

  it('belongs to one tenant: another gets TENANT_MISMATCH and nothing is written', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: scriptedModel([text('one'), text('two')]), store });
    await agent.session('chat').run('hi', { tenant: 'acme' });
    const before = await store.head('chat');
    await expect(agent.session('chat').run('hi', { tenant: 'other' })).rejects.toMatchObject({
      code: 'TENANT_MISMATCH',
    });
    await expect(agent.session('chat').run('hi')).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
    expect(await store.head('chat')).toBe(before);
    await expect(agent.session('chat').run('hi', { tenant: 'acme' })).resolves.toMatchObject({ text: 'two' });
  });

  it('two runners on one session: the second append fails with SESSION_CONFLICT and nothing is interleaved', async () => {
    const store = memoryStore();
    const slow = new Agent({ model: scriptedModel([chunks('tick', 'slow')]), store });
    const fast = new Agent({ model: scriptedModel([text('fast')]), store });
    const outcomes = await Promise.allSettled([slow.session('chat').run('a'), fast.session('chat').run('b')]);
    const failed = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    expect(failed.length).toBe(1);
    expect(failed[0]!.reason).toMatchObject({ code: 'SESSION_CONFLICT' });
    const runs = (await entriesOf(store, 'chat')).flatMap((entry) =>
      'runId' in entry && entry.type !== 'state' ? [entry.runId] : [],
    );
    expect(runs).toEqual([...runs].sort((a, b) => runs.indexOf(a!) - runs.indexOf(b!)));
  });

  it('forgets single runs when no store was given, and keeps them when one was', async () => {
    const store = memoryStore();
    const kept = await new Agent({ model: scriptedModel([text('x')]), store }).run('hi');
    expect(await store.head(kept.sessionId)).toBeGreaterThan(0);
    const agent = new Agent({ model: scriptedModel([text('x')]) });
    const forgotten = await agent.run('hi');
    expect(await agent.store.head(forgotten.sessionId)).toBe(0);
  });
});

it('steering into a run of the same agent reads nothing from the store', async () => {
  const store = memoryStore();
  const read = vi.spyOn(store, 'read');
  const steering = tool({
    name: 'steer',
    description: 'Steers.',
    input: z.object({}),
    async execute() {
      read.mockClear();
      await agent.session('chat').steer('left');
      await agent.session('chat').followUp('and right');
      return `read ${read.mock.calls.length} times`;
    },
  });
  const model = scriptedModel([toolCalls({ name: 'steer' }), text('one'), text('two')]);
  const agent = new Agent({ model, tools: [steering], store });
  const { messages } = await agent.session('chat').run('go');
  expect(messages.map(textOf)).toEqual(['go', '', 'read 0 times', 'left', 'one', 'and right', 'two']);
});

it.each([
  [null, 'an object with tenant'],
  [{ tenant: 5 }, 'Expected `tenant` to be text, got 5'],
  [{ tenat: 'acme' }, 'Did you mean `tenant`?'],
])('agent.session(id, %j) is refused', (options, message) => {
  const agent = new Agent({ model: scriptedModel([]) });
  expect(() => agent.session('chat', options as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
  );
});

describe('what other parts of a run see', () => {
  const visits = defineState({ name: 'visits', scope: 'session', initial: 0 });

  it('state written in beforeRun holds inside the same run', async () => {
    const seen: string[] = [];
    const counter = defineMiddleware({
      name: 'visits',
      state: [visits],
      beforeRun: (ctx) => ctx.state.update(visits, (n) => n + 1),
      transformSystemPrompt: (prompt, ctx) => {
        seen.push(String(ctx.state.get(visits)));
        return prompt;
      },
    });
    const session = new Agent({
      model: scriptedModel([text('a'), text('b')]),
      middleware: [counter],
      store: memoryStore(),
    }).session('chat');
    await session.run('one');
    await session.run('two');
    expect(seen).toEqual(['1', '2']);
  });

  it('what the caller passes in stays the caller’s: hooks see frozen copies', async () => {
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] };
    const metadata = { tags: ['a'] };
    const outcomes: boolean[] = [];
    const meddler = defineMiddleware({
      name: 'meddler',
      acceptMessage: (given, ctx) => {
        outcomes.push(
          Reflect.set(given, 'role', 'tool'),
          Reflect.set(given.content[0]!, 'text', 'x'),
          Reflect.set(ctx.runMetadata.tags as object, '0', 'x'),
        );
      },
    });
    await new Agent({ model: scriptedModel([text('ok')]), middleware: [meddler] }).run(message, { metadata });
    expect(outcomes).toEqual([false, false, false]);
    expect(message.content[0]!.text).toBe('hi');
    expect(metadata.tags).toEqual(['a']);
  });

  it('usage of a child run stays with its parent through suspend and resume', async () => {
    const child = new Agent({ model: scriptedModel([text('c', { inputTokens: 400, outputTokens: 100 })]) });
    const delegate = tool({
      name: 'delegate',
      description: 'Asks another agent.',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('go', { parent: ctx })).text,
    });
    const ask = defineMiddleware({
      name: 'ask',
      suspends: true,
      beforeToolCall: (ctx) => (ctx.toolCall.name === 'echo' ? { ask: {} } : undefined),
    });
    const model = scriptedModel([
      toolCalls({ name: 'delegate' }),
      toolCalls({ name: 'echo', args: { say: 'x' } }),
      text('done'),
    ]);
    const store = memoryStore();
    const agent = new Agent({ model, tools: [delegate, echo], middleware: [ask], store });
    const first = await agent.session('chat').run('hi');
    expect(first.usage.totalTokens).toBe(530);
    const second = await agent
      .session('chat')
      .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second.usage.totalTokens).toBe(545);
  });

  it('timeoutMs goes on counting through suspend and resume', async () => {
    const clock = fakeClock();
    const ask = defineMiddleware({
      name: 'ask',
      suspends: true,
      beforeToolCall: (ctx) => (ctx.toolCall.name === 'echo' ? { ask: {} } : undefined),
    });
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      execute: () => clock.advance(80),
    });
    const model = scriptedModel([
      toolCalls({ name: 'wait' }),
      toolCalls({ name: 'echo', args: { say: 'x' } }),
      toolCalls({ name: 'wait' }),
      text('done'),
    ]);
    const agent = new Agent({
      model,
      tools: [wait, echo],
      middleware: [ask],
      store: memoryStore(),
      clock,
      limits: { timeoutMs: 100 },
    });
    const first = await agent.session('chat').run('hi');
    expect(first.status).toBe('suspended');
    await clock.advance(1000);
    const second = await agent
      .session('chat')
      .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
  });

  it('assistant messages in the input do not count as turns of the run', async () => {
    const seeded = {
      id: 'x',
      role: 'assistant' as const,
      content: [{ type: 'text' as const, text: 'earlier' }],
      stopReason: 'stop' as const,
    };
    const result = await new Agent({ model: scriptedModel([text('now')]), limits: { turns: 1 } }).run([
      'hello',
      seeded,
      'and?',
    ]);
    expect(result).toMatchObject({ status: 'done', turns: 1, text: 'now' });
  });
});

describe('what run() settles with', () => {
  it('rejects with a RunError that carries the code, the result so far and the original error', async () => {
    const cause = new Error('boom');
    const error = await new Agent({ model: scriptedModel([failWith(cause, 'half')]) })
      .run('hi')
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RunError);
    expect(error.code).toBe('MODEL_ERROR');
    expect(error.cause).toBe(cause);
    expect(error.result).toMatchObject({ status: 'error', stop: { reason: 'error' }, turns: 0 });
    expect(error.result.messages.map(({ role }: { role: string }) => role)).toEqual(['user']);
  });

  it('an abort before the start makes no model call', async () => {
    const model = scriptedModel([text('x')]);
    const error = await new Agent({ model })
      .run('hi', { signal: AbortSignal.abort(new Error('not today')) })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
    expect(error.cause.message).toBe('not today');
    expect(model.requests.length).toBe(0);
  });

  it('an abort before the start writes nothing, and ends nothing that waits', async () => {
    const store = memoryStore();
    const pay = tool({
      name: 'pay',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => String(await ctx.suspend({ title: 'Pay?' })),
    });
    const answers = defineMiddleware({ name: 'answers', wrapRun: async (_, next) => next().catch(() => {}) });
    const session = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay' })]),
      tools: [pay],
      store,
      middleware: [answers],
    }).session('s');
    await session.run('pay it');
    const before = store.read('s', 1);
    const signal = AbortSignal.abort('no');
    await expect(session.run('other', { signal })).rejects.toMatchObject({
      code: 'ABORTED',
      result: { status: 'aborted', messages: [] },
    });
    await expect(session.stream('other', { signal }).result).rejects.toMatchObject({ code: 'ABORTED' });
    expect(store.read('s', 1)).toEqual(before);
    expect(await session.pending()).toHaveLength(1);
  });

  it('an abort while the run begins leaves the input out', async () => {
    const store = memoryStore();
    const controller = new AbortController();
    const late = defineMiddleware({ name: 'late', beforeRun: () => controller.abort('changed my mind') });
    const session = new Agent({ model: scriptedModel([]), store, middleware: [late] }).session('s');
    const running = session.run('hi', { signal: controller.signal });
    await expect(running).rejects.toMatchObject({ code: 'ABORTED', result: { messages: [] } });
    expect(await session.messages()).toEqual([]);
  });
});

describe('what afterRun writes', () => {
  const runs = defineState({ name: 'runs', scope: 'run', initial: 0 });
  const kept = defineState({ name: 'kept', scope: 'session', initial: 0 });
  const late = defineMiddleware({
    name: 'late',
    state: [runs, kept],
    async afterRun(ctx) {
      ctx.state.set(runs, 1);
      ctx.state.update(kept, (n) => n + 1);
      await ctx.generate(scriptedModel(['note']), { messages: 'note it' });
    },
  });

  it('is journaled before the end of the run', async () => {
    const store = memoryStore();
    const result = await new Agent({ model: scriptedModel(['a']), middleware: [late], store })
      .session('chat')
      .run('hi');
    expect(result).toMatchObject({ status: 'done', usage: { totalTokens: 30 } });
    const types = (await entriesOf(store, 'chat')).map(({ type }) => type);
    expect(types.slice(-4)).toEqual(['state', 'state', 'usage', 'run_end']);
  });

  it('is kept when the run failed, wherever its middleware stands', async () => {
    const store = memoryStore();
    const outer = defineMiddleware({ name: 'outer', afterRun() {} });
    const agent = new Agent({
      model: scriptedModel([failWith(new Error('down'))]),
      middleware: [outer, late],
      store,
    });
    await expect(agent.session('chat').run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
    const cells = (await entriesOf(store, 'chat')).flatMap((entry) =>
      entry.type === 'state' ? [entry.cell] : [],
    );
    expect(cells).toContain('late:kept');
  });
});

describe('mistakes that must not hang, leak or corrupt', () => {
  it('a layer that tries again for ever is cut off, and timers still fire', async () => {
    const stubborn = defineMiddleware({
      name: 'stubborn',
      async wrapModel(_, next) {
        for (;;) {
          try {
            return await next();
          } catch {}
        }
      },
    });
    const clock = fakeClock();
    const run = new Agent({
      model: scriptedModel([failWith(new Error('down'))], { repeat: true }),
      middleware: [stubborn],
      clock,
    }).run('hi');
    const outcome = run.catch((error) => error);
    await clock.advance(20_000);
    expect(await outcome).toMatchObject({ code: 'TOO_MANY_ATTEMPTS', result: { status: 'error' } });
  });

  it('an abort is an abort, however often a layer tried again', async () => {
    const stubborn = defineMiddleware({
      name: 'stubborn',
      async wrapModel(_, next) {
        for (let tries = 0; ; tries++) {
          try {
            return await next();
          } catch (error) {
            if (tries > 150) throw error;
          }
        }
      },
    });
    const controller = new AbortController();
    const run = new Agent({ model: scriptedModel([hang()], { repeat: true }), middleware: [stubborn] }).run(
      'hi',
      { signal: controller.signal },
    );
    setImmediate(() => controller.abort(new Error('enough')));
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('what afterToolCall puts into a result is judged like what the tool returned', async () => {
    const secret = tool({
      name: 'secret',
      description: 'Tells.',
      input: z.object({}),
      execute: () => 'SECRET',
    });
    const guard = defineMiddleware({
      name: 'guard',
      guard: {
        on: ['tool-result'],
        find: (given) =>
          [...given.matchAll(/SECRET/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
      },
    });
    const leak = defineMiddleware({
      name: 'leak',
      afterToolCall: () => ({ content: 'again: SECRET', details: { raw: 'SECRET' } }),
    });
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'secret' }), text('done')]);
    const { events } = await collect(
      new Agent({ model, tools: [secret], middleware: [guard, leak], store }).session('chat').stream('hi'),
    );
    expect(
      JSON.stringify([events, await entriesOf(store, 'chat'), model.requests[1]!.messages]),
    ).not.toContain('SECRET');
  });

  it('input that a run layer assigns is checked before it is appended', async () => {
    for (const input of ['text', [{ role: 'user' }], 5]) {
      const store = memoryStore();
      const odd = defineMiddleware({
        name: 'odd',
        beforeRun: (ctx) => Object.assign(ctx, { input }) && undefined,
      });
      await expect(
        new Agent({ model: scriptedModel(['x']), middleware: [odd], store }).session('chat').run('hi'),
      ).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
      expect((await entriesOf(store, 'chat')).filter(({ type }) => type === 'message')).toEqual([]);
    }
  });

  it('what a model layer assigns is checked before the model is called', async () => {
    for (const [field, value] of Object.entries({
      messages: 'x',
      systemPrompt: 5,
      settings: 5,
      tools: [{}],
    })) {
      const model = scriptedModel(['x']);
      const odd = defineMiddleware({
        name: 'odd',
        beforeModel: (ctx) => void Object.assign(ctx, { [field]: value }),
      });
      await expect(new Agent({ model, middleware: [odd] }).run('hi')).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(`ctx.${field}`),
      });
      expect(model.requests).toHaveLength(0);
    }
  });

  it('a result prints its values', async () => {
    const result = await new Agent({ model: scriptedModel(['answer']) }).run('hi');
    expect(inspect(result)).toContain('totalTokens: 15');
    expect(inspect(result)).not.toContain('[Getter]');
  });
});
