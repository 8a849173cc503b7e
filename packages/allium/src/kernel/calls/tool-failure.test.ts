/** A tool that throws: observers get the error, the model its message, and the result of the run notes it. */
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Middleware,
  memoryStore,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

async function failing(thrown: unknown, middleware: Middleware[] = [], more: Partial<AgentOptions> = {}) {
  const events: AgentEvent[] = [];
  const store = memoryStore();
  const breaks = tool({
    name: 'breaks',
    description: '',
    input: z.object({}),
    execute: async () => {
      throw thrown;
    },
    ...more,
  } as never);
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'breaks' }), text('done')]),
    tools: [breaks],
    store,
    middleware,
    observers: [(event) => void events.push(event)],
  });
  const streamed: AgentEvent[] = [];
  const stream = agent.session('s').stream('go');
  for await (const event of stream) streamed.push(event);
  const result = await stream.result;
  const ends = [events, streamed].map((all) => all.find(({ type }) => type === 'tool_execution_end'));
  const [observed, seen] = ends as (AgentEvent & { type: 'tool_execution_end' })[];
  return { result, observed, seen, journal: JSON.stringify(await store.read('s', 1)) };
}

describe('a tool that throws', () => {
  it('shows observers and readers its error, shows the model its message, and is noted', async () => {
    const error = new TypeError('No disk.', { cause: new Error('Full.') });
    const { result, observed, seen, journal } = await failing(error);
    expect(observed?.error).toBe(error);
    expect(seen?.error).toBe(error);
    expect(textOf(seen!.message!)).toBe('"breaks" failed: No disk.');
    expect(result.changes).toContainEqual({ turn: 1, by: 'kernel', what: '"breaks" failed: No disk.' });
    expect(journal).not.toContain('tool-failure.test');
    expect(JSON.stringify(result.messages)).not.toContain('Full.');
  });

  it('is shown also if a middleware writes its result', async () => {
    const error = new Error('No disk.');
    const words: Middleware = {
      name: 'words',
      wrapTool: (_, next) => next().catch(() => ({ content: 'Try later.', isError: true }) as never),
    };
    const { observed, result } = await failing(error, [words]);
    expect(observed?.error).toBe(error);
    expect(result.changes).toContainEqual({ turn: 1, by: 'kernel', what: '"breaks" failed: No disk.' });
  });

  it('and is rescued is no failure', async () => {
    const rescue: Middleware = { name: 'rescue', wrapTool: (_, next) => next().catch(() => 'fine' as never) };
    const { observed, result } = await failing(new Error('No disk.'), [rescue]);
    expect(observed).not.toHaveProperty('error');
    expect(result.changes.filter(({ by }) => by === 'kernel')).toEqual([]);
  });

  it('may throw anything, not only errors', async () => {
    const { observed, result } = await failing('No disk.');
    expect(observed?.error).toBe('No disk.');
    expect(result.changes).toContainEqual({ turn: 1, by: 'kernel', what: '"breaks" failed: No disk.' });
  });

  it('may throw nothing at all, as Promise.reject() does; so may a layer around it', async () => {
    const layer: Middleware = { name: 'layer', wrapTool: () => Promise.reject() };
    for (const [middleware, words] of [
      [[], '"breaks" failed: undefined'],
      [[layer], '"breaks" was not completed: middleware "layer" failed: undefined'],
    ] as const) {
      const { result, seen } = await failing(undefined, [...middleware]);
      expect(result.messages.map(textOf)).toEqual(['go', '', words, 'done']);
      expect(seen).toMatchObject({ message: { isError: true }, error: undefined });
    }
  });

  it('is shown without its error if a guard objects to it, its stack or its causes', async () => {
    const guard: Middleware = {
      name: 'secrets',
      guard: {
        on: ['tool-result'],
        find: (text: string) =>
          [...text.matchAll(/SECRET/g)].map(({ index }) => ({ start: index, end: index + 6 })),
        action: 'redact',
      } as never,
    };
    for (const error of [
      new Error('SECRET'),
      new Error('x', { cause: new Error('SECRET') }),
      Object.assign(new Error('x'), { body: { key: 'SECRET' } }),
    ]) {
      const { observed, seen, result } = await failing(error, [guard]);
      expect(observed).not.toHaveProperty('error');
      expect(seen).not.toHaveProperty('error');
      expect(JSON.stringify(result)).not.toContain('SECRET');
    }
    expect((await failing(new Error('fine'), [guard])).observed?.error).toBeInstanceOf(Error);
  });

  it('also shows a middleware that failed around it', async () => {
    const error = new Error('Mine.');
    const broken: Middleware = {
      name: 'broken',
      afterToolCall: () => {
        throw error;
      },
    };
    const { observed, result } = await failing(new Error('No disk.'), [broken]);
    expect(observed?.error).toBe(error);
    expect(result.changes.map(({ by }) => by)).toContain('broken');
  });
});
