import { Agent, memoryStore, textOf, tool, toolResult } from 'allium';
import { retry } from 'allium/middleware/retry';
import { type ToolErrorsOptions, toolErrors } from 'allium/middleware/tool-errors';
import { collect, fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

function setup(execute: () => unknown, options?: ToolErrorsOptions) {
  const work = tool({ name: 'work', description: 'Works.', input: z.object({}), execute });
  const model = scriptedModel([toolCalls({ name: 'work' }), text('done')]);
  return new Agent({ model, tools: [work], middleware: [toolErrors(options)] });
}

const fails = (error: unknown) => () => {
  throw error;
};

/** The result the model read. */
async function resultOf(agent: Agent) {
  const { messages } = await agent.run('go');
  const message = messages.find(({ role }) => role === 'tool')!;
  return { text: textOf(message), isError: (message as { isError?: boolean }).isError };
}

testMiddleware(() => toolErrors(), { name: 'tool-errors', handles: ['tool-errors'], describe, it });
testMiddleware(() => toolErrors({ format: async () => 'It failed.', hide: [/fail\w*/] }), {
  name: 'tool-errors with a format of its own',
  handles: ['tool-errors'],
  describe,
  it,
});

describe('tool-errors', () => {
  it('tells the model the message of the error', async () => {
    const agent = setup(fails(new Error('disk full')));
    expect(await resultOf(agent)).toEqual({ text: '"work" failed: disk full', isError: true });
  });

  it('leaves out stack lines that a message carries', async () => {
    const message = 'Remote failed\n    at run (/srv/app.js:1:2)\n    at main (/srv/app.js:9:9)\nGive up.';
    expect((await resultOf(setup(fails(new Error(message))))).text).toBe(
      '"work" failed: Remote failed\nGive up.',
    );
  });

  it.each([
    ['text', 'plain', '"work" failed: plain'],
    ['an object', { code: 5 }, '"work" failed: {"code":5}'],
    ['nothing', undefined, '"work" failed: undefined'],
  ])('copes with %s that was thrown', async (_, thrown, expected) => {
    expect((await resultOf(setup(fails(thrown)))).text).toBe(expected);
  });

  it('hides every match of patterns and texts, whatever their flags', async () => {
    const secret = /KEY-\d+/y;
    secret.lastIndex = 7;
    const agent = setup(fails(new Error('key-1 KEY-2 KEY-3 a.b a+b')), { hide: [secret, 'a.b', /a\+b/g] });
    expect((await resultOf(agent)).text).toBe('"work" failed: key-1 [hidden] [hidden] [hidden] [hidden]');
    expect(secret.lastIndex).toBe(7);
  });

  it('cleans error results that the tool returned itself, and nothing else', async () => {
    const hide = ['secret'];
    const returned = (isError: boolean) =>
      toolResult({ content: [{ type: 'text', text: 'a secret' }], isError, details: { kept: true } });
    expect(await resultOf(setup(() => returned(true), { hide }))).toEqual({
      text: 'a [hidden]',
      isError: true,
    });
    expect(await resultOf(setup(() => returned(false), { hide }))).toEqual({
      text: 'a secret',
      isError: false,
    });
  });

  it('uses the format it is given, with the error itself', async () => {
    const oh = new Error('oh');
    const seen: unknown[] = [];
    const agent = setup(fails(oh), {
      format: async (error, ctx) => {
        seen.push(error);
        return `${ctx.toolCall.name} is out of order`;
      },
    });
    expect((await resultOf(agent)).text).toBe('work is out of order');
    expect(seen).toEqual([oh]);
  });

  it.each([
    ['throws', fails(new Error('bug'))],
    ['returns no text', () => 5],
  ])('withholds the failure when the format %s', async (_, format) => {
    const { text: told, isError } = await resultOf(
      setup(fails(new Error('private')), { format: format as never }),
    );
    expect(isError).toBe(true);
    expect(told).toContain('middleware "tool-errors" failed');
    expect(told).not.toContain('private');
  });

  it('lets retries further in do their work first', async () => {
    const clock = fakeClock();
    let calls = 0;
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: z.object({}),
      idempotent: true,
      execute() {
        if (++calls < 3) throw Object.assign(new Error('busy'), { status: 503 });
        return 'fine';
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'work' }), text('done')]),
      tools: [work],
      middleware: [toolErrors(), retry({ on: 'tool', clock })],
    });
    const run = resultOf(agent);
    await clock.advance(60_000);
    expect(await run).toEqual({ text: 'fine', isError: false });
  });

  it('lets stops pass', async () => {
    const stop = tool({
      name: 'work',
      description: 'Stops.',
      input: z.object({}),
      execute: (_, ctx) => ctx.stop('stopped', 'Enough.'),
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'work' })]),
      tools: [stop],
      middleware: [toolErrors({ format: () => 'never' })],
    });
    const result = await agent.run('go');
    expect(result.status).toBe('stopped');
    expect(textOf(result.messages.at(-1)!)).not.toContain('never');
  });

  it.each(['asks somebody', 'stops the run'])(
    'hides what it has to when another call %s meanwhile',
    async (does) => {
      const other = tool({
        name: 'other',
        description: 'Asks or stops.',
        input: z.object({}),
        async execute(_, ctx) {
          await Promise.resolve();
          return does === 'asks somebody' ? ctx.suspend({ title: 'May I?' }) : ctx.stop('stopped', 'Enough.');
        },
      });
      const failing = tool({
        name: 'failing',
        description: 'Fails, a little later.',
        input: z.object({}),
        async execute() {
          await new Promise(setImmediate);
          throw new Error('Wrong password hunter2.');
        },
      });
      const store = memoryStore();
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'other' }, { name: 'failing' })]),
        tools: [other, failing],
        middleware: [toolErrors({ hide: ['hunter2'] })],
        store,
      });
      await agent.session('s').run('go');
      const journal = JSON.stringify(await store.read('s', 1));
      expect(journal).toContain('Wrong password [hidden].');
      expect(journal).not.toContain('hunter2');
    },
  );

  it('writes nothing for an aborted run', async () => {
    const abort = new AbortController();
    const work = tool({
      name: 'work',
      description: 'Aborts.',
      input: z.object({}),
      execute() {
        abort.abort();
        throw new Error('interrupted');
      },
    });
    let asked = 0;
    const format = () => `${++asked}`;
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'work' })]),
      tools: [work],
      middleware: [toolErrors({ format })],
    });
    await expect(agent.run('go', { signal: abort.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(asked).toBe(0);
  });

  it('serves 100 concurrent runs, and stands twice in a list', async () => {
    const work = tool({
      name: 'work',
      description: 'Fails.',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => Promise.reject(new Error(`failure ${n}`)),
    });
    const model = scriptedModel(
      [
        ({ messages }) =>
          messages.length === 1
            ? toolCalls({ name: 'work', args: { n: Number(textOf(messages[0]!)) } })
            : 'done',
      ],
      { repeat: true },
    );
    const middleware = [toolErrors({ hide: ['failure'] }), toolErrors({ hide: ['work'] })];
    const agent = new Agent({ model, tools: [work], middleware });
    const texts = await Promise.all(
      Array.from({ length: 100 }, async (_, n) => textOf((await agent.run(String(n))).messages[2]!)),
    );
    expect(texts).toEqual(texts.map((_, n) => `"[hidden]" failed: [hidden] ${n}`));
  });

  it('does the same when the run is streamed', async () => {
    const make = () => setup(fails(new Error('oh')), { hide: ['oh'] });
    const { result } = await collect(make().stream('go'));
    expect(result?.messages.map(textOf)).toEqual((await make().run('go')).messages.map(textOf));
  });

  it.each([
    [{ format: 'short' }, 'Expected `format` to be a function, got "short".'],
    [{ hide: /x/ }, 'Expected `hide` to be a list of regular expressions and non-empty texts'],
    [{ hide: [''] }, 'Expected `hide` to be a list of regular expressions and non-empty texts, got "list".'],
    [{ hides: [] }, 'Unknown option `hides` of toolErrors(). Did you mean `hide`?'],
  ])('refuses %j', (options, message) => {
    expect(() => toolErrors(options as never)).toThrow(message);
  });
});
