/** A trace shows nothing that guards refuse, and changes nothing about the run. */

import { Agent, type Guard, type Middleware, memoryStore, textOf, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const SECRET = 'HUSH-4242';
const change = { trace: 'changes' } as const;

const add = tool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.number() }),
  execute: ({ a }) => `${a + 1}`,
});

describe('input that guards judge beside the first model call', () => {
  const beside = (says: 'deny' | 'allow'): Middleware => {
    const judge: Guard['judge'] = async () => {
      // By then the model has answered.
      for (let i = 0; i < 3; i++) await new Promise(setImmediate);
      return says === 'deny' ? { type: 'deny', reason: 'no' } : { type: 'allow' };
    };
    return { name: 'beside', guard: { on: ['input'], parallel: true, judge } };
  };
  const quoting: Middleware = {
    name: 'quoting',
    transformContext: (messages) => messages.map((message) => ({ ...message, metadata: { copied: true } })),
    transformSystemPrompt: (prompt, ctx) => `${prompt}They said: ${textOf(ctx.messages.at(-1)!)}`,
  };

  it('is not in the trace if it is refused, neither live nor in the journal', async () => {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([text('fine')]),
      store,
      middleware: [quoting, beside('deny')],
      ...change,
    });
    const { status, trace } = await agent.session('s').run(`say ${SECRET}`);
    expect(status).toBe('stopped');
    expect(trace!.records.find(({ sent }) => sent)?.did).toBe('called');
    expect(JSON.stringify(trace!.records)).not.toContain(SECRET);
    expect(JSON.stringify(store.read('s', 1))).not.toContain(SECRET);
  });

  it('is in the trace once it is allowed', async () => {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([text('fine')]),
      store,
      middleware: [quoting, beside('allow')],
      ...change,
    });
    const { trace } = await agent.session('s').run('say hello');
    const read = await agent.session('s').trace();
    for (const one of [trace!, read!]) {
      const { n } = one.records.find(({ sent }) => sent)!;
      const { messages, systemPrompt } = one.requestAt(n);
      expect(messages.map(({ message }) => textOf(message))).toEqual(['say hello']);
      expect(systemPrompt).toBe('They said: say hello');
    }
  });
});

it('a trace does not hold a secret that two steps wrote into the system prompt in pieces', async () => {
  const found: Guard['find'] = (said) =>
    [...said.matchAll(/HUSH-\d{4}/g)].map(({ index, 0: { length } }) => ({
      start: index,
      end: index + length,
    }));
  const writes = (name: string, more: string): Middleware => ({
    name,
    transformSystemPrompt: (prompt) => `${prompt}${more}`,
  });
  const agent = new Agent({
    model: scriptedModel([text('fine')]),
    middleware: [
      { name: 'secrets', guard: { on: ['request'], find: found } },
      writes('first', 'HUSH-'),
      writes('second', '4242'),
    ],
    ...change,
  });
  const { trace } = await agent.run('x');
  expect(JSON.stringify(trace!.records)).not.toContain('4242');
  const { n } = trace!.records.find(({ sent }) => sent)!;
  expect(trace!.requestAt(n).systemPrompt).toBe('[redacted]');
});

describe('a traced run', () => {
  /** How a run of these middleware ends, without and with a trace. */
  async function both(make: () => ConstructorParameters<typeof Agent>[0]): Promise<readonly unknown[]> {
    const ends: unknown[] = [];
    for (const trace of ['off', 'changes'] as const) {
      const told = await new Agent({ ...make(), trace }).run('x').then(
        ({ messages }) => messages.map(textOf),
        ({ code, message }) => ({ code, message }),
      );
      ends.push(told);
    }
    return ends;
  }

  it.each([
    { tools: null },
    { messages: 5 },
    { systemPrompt: 7 },
    { settings: null },
    { model: undefined },
    { model: null },
    5,
  ])('fails or goes on like any other where next() is given %j', async (override) => {
    const wrap: Middleware = { name: 'wrap', wrapModel: (_, next) => next(override as never) };
    const [off, on] = await both(() => ({ model: scriptedModel([text('fine')]), middleware: [wrap] }));
    expect(on).toEqual(off);
  });

  it('goes on with settings that are no JSON', async () => {
    const odd: Middleware = {
      name: 'odd',
      beforeModel(ctx) {
        const own: Record<string, unknown> = {};
        own.self = own;
        ctx.settings = { provider: { own } };
      },
    };
    const script = [toolCalls({ name: 'add', args: { a: 1 } }), text('fine')];
    const [off, on] = await both(() => ({ model: scriptedModel(script), tools: [add], middleware: [odd] }));
    expect(off).toEqual(['x', '', '2', 'fine']);
    expect(on).toEqual(off);
  });

  it('reports an unreadable error like any other run', async () => {
    const broken = tool({
      name: 'broken',
      description: 'Breaks.',
      input: z.object({}),
      execute: () => {
        throw Object.defineProperty(new Error(), 'message', {
          get: () => {
            throw new Error('unreadable');
          },
        });
      },
    });
    const script = [toolCalls({ name: 'broken', args: {} }), text('fine')];
    const [off, on] = await both(() => ({ model: scriptedModel(script), tools: [broken] }));
    expect(on).toEqual(off);
  });

  it('fails like any other where a layer forgets to await next()', async () => {
    const hasty: Middleware = { name: 'hasty', wrapTool: async (_, next) => void next() as never };
    const slow = tool({
      name: 'slow',
      description: 'Takes a moment.',
      input: z.object({}),
      execute: async () => 'done',
    });
    const script = [toolCalls({ name: 'slow', args: {} }), text('fine')];
    const [off, on] = await both(() => ({
      model: scriptedModel(script),
      tools: [slow],
      middleware: [hasty],
    }));
    expect(JSON.stringify(off)).toContain('still pending');
    expect(on).toEqual(off);
  });

  it('shows the arguments given to next()', async () => {
    const more: Middleware = { name: 'more', wrapTool: (_, next) => next({ args: { a: 5 } }) };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1 } }), text('fine')]),
      tools: [add],
      middleware: [more],
      ...change,
    });
    const { trace } = await agent.run('x');
    const { changes } = trace!.records.find(({ by }) => by === 'more')!;
    expect(changes?.args).toEqual([{ path: ['a'], from: 1, to: 5 }]);
  });
});
