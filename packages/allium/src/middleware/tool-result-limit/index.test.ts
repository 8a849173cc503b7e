import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, type AgentOptions, defineMiddleware, memoryStore, textOf, tool, toolResult } from 'allium';
import { loopGuard } from 'allium/middleware/loop-guard';
import {
  fileSpill,
  type SpillStore,
  type ToolResultLimitOptions,
  toolResultLimit,
} from 'allium/middleware/tool-result-limit';
import { collect, type Script, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

const folder = mkdtempSync(join(tmpdir(), 'tool-result-limit-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** 10,000 characters that all know their place. */
const LONG = Array.from({ length: 1000 }, (_, i) => `line ${String(i).padStart(4, '0')}\n`).join('');
const REF = /"ref":"(\w+)","offset":(\d+)/;

function setup(
  result: unknown,
  script: readonly Script[] = [],
  options: ToolResultLimitOptions = {},
  { middleware = [], ...agent }: Partial<AgentOptions> = {},
) {
  const spill = new Map<string, string>();
  const log = tool({ name: 'log', description: 'Logs.', input: z.object({}), execute: () => result });
  const model = scriptedModel([toolCalls({ name: 'log' }), ...script, text('done')]);
  const made = new Agent({
    model,
    tools: [log],
    middleware: [toolResultLimit({ maxTokens: 100, spill, ...options }), ...(middleware as [])],
    ...agent,
  });
  return { agent: made, model, spill };
}

/** Reads on from where the last result says. */
const readOn: Script = ({ messages }) => {
  const said = textOf(messages.at(-1)!);
  const first = textOf(messages.find(({ role }) => role === 'tool')!);
  const offset = /Read on with offset (\d+)/.exec(said)?.[1] ?? REF.exec(said)?.[2];
  return toolCalls({ name: 'read_tool_result', args: { ref: REF.exec(first)?.[1], offset: Number(offset) } });
};
const readWith =
  (args: object): Script =>
  ({ messages }) => {
    const [, ref] = REF.exec(textOf(messages[2]!))!;
    return toolCalls({ name: 'read_tool_result', args: { ref, ...args } });
  };

const results = (messages: readonly { role: string }[]) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

testMiddleware(() => toolResultLimit(), { name: 'tool-result-limit', changes: ['tools'], describe, it });
testMiddleware(() => toolResultLimit({ maxTokens: 100 }), {
  name: 'tool-result-limit with something to do',
  changes: ['tools'],
  scenarios: [
    {
      name: 'a result that is too long',
      answers: [
        toolCalls({ name: 'long' }),
        toolCalls({ name: 'read_tool_result', args: { ref: 'none' } }),
        text('done'),
      ],
      tools: [tool({ name: 'long', description: '', input: z.object({}), execute: () => LONG })],
    },
  ],
  describe,
  it,
});

describe('tool-result-limit', () => {
  it('shows the beginning and a reference, and keeps the whole', async () => {
    const { agent, model, spill } = setup(LONG);
    const { messages } = await agent.run('go');
    const [shown] = results(messages);
    expect(shown).toMatch(/^line 0000\nline 0001\n/);
    expect(shown).toMatch(
      /\[This result has 10000 characters; these are the first 158\. To read on, call read_tool_result with /,
    );
    expect(shown!.length / 4).toBeLessThanOrEqual(100);
    expect([...spill.values()]).toEqual([LONG]);
    expect(textOf(model.requests[1]!.messages.at(-1)!)).toBe(shown);
  });

  it('shows the same for the same result, so that a run in circles is noticed in either order', async () => {
    for (const order of [
      [toolResultLimit({ maxTokens: 100 }), loopGuard()],
      [loopGuard(), toolResultLimit({ maxTokens: 100 })],
    ]) {
      const log = tool({ name: 'log', description: '', input: z.object({}), execute: () => LONG });
      const model = scriptedModel([toolCalls({ name: 'log' })], { repeat: true });
      const { stop, messages } = await new Agent({ model, tools: [log], middleware: order }).run('go');
      expect(stop.reason).toBe('loop');
      expect(new Set(results(messages)).size).toBe(1);
    }
  });

  it('distinguishes results that only begin alike', async () => {
    let calls = 0;
    const spill = new Map<string, string>();
    const log = tool({ name: 'log', description: '', input: z.object({}), execute: () => LONG + ++calls });
    const model = scriptedModel([...Array(4).fill(toolCalls({ name: 'log' })), text('done')]);
    const middleware = [toolResultLimit({ maxTokens: 100, spill }), loopGuard()];
    const { stop, messages } = await new Agent({ model, tools: [log], middleware }).run('go');
    expect(stop.reason).toBe('final');
    expect(new Set(results(messages)).size).toBe(4);
    expect([...spill.values()]).toEqual([1, 2, 3, 4].map((n) => LONG + n));
  });

  it('lets the model read all of it, piece by piece', async () => {
    const { agent } = setup(LONG, Array(70).fill(readOn));
    const { messages } = await agent.run('go', { limits: { turns: 200 } });
    const pieces = results(messages).map((one) => one.slice(0, one.lastIndexOf('\n[')));
    expect(pieces.join('').startsWith(LONG)).toBe(true);
    expect(results(messages).some((one) => one.endsWith('of 10000. This is the end.]'))).toBe(true);
    for (const one of results(messages)) expect(one.length / 4).toBeLessThanOrEqual(100);
  });

  it('reads where it is told to', async () => {
    const { agent } = setup(LONG, [
      readWith({ offset: 5000, limit: 9 }),
      readWith({}),
      readWith({ offset: 9_990, limit: 1000 }),
    ]);
    const { messages } = await agent.run('go');
    expect(
      results(messages)
        .slice(1)
        .map((one) => one.split('\n')[0]),
    ).toEqual(['line 0500', 'line 0000', 'line 0999']);
    expect(results(messages)[1]).toBe(
      'line 0500\n[Characters 5000 to 5009 of 10000. Read on with offset 5009.]',
    );
    expect(results(messages)[3]).toBe('line 0999\n\n[Characters 9990 to 10000 of 10000. This is the end.]');
  });

  it.each([
    [{ ref: 'nothing' }, 'There is no stored result "nothing" in this conversation, or it is gone.'],
    [{ offset: 10_000 }, 'The result has 10000 characters; there is nothing at 10000.'],
    [{ offset: -1 }, 'offset: Expected an integer ≥ 0.'],
    [{ limit: 0 }, 'limit: Expected an integer ≥ 1.'],
  ])('tells the model what is wrong with %j', async (args, message) => {
    const { agent } = setup(LONG, [readWith(args)]);
    const { messages } = await agent.run('go');
    expect(results(messages)[1]).toContain(message);
    expect(messages[4]).toMatchObject({ isError: true });
  });

  it('leaves alone what is not too long, to the character', async () => {
    const { agent, spill } = setup('x'.repeat(400));
    expect(results((await agent.run('go')).messages)).toEqual(['x'.repeat(400)]);
    expect(spill.size).toBe(0);
    expect(results((await setup('x'.repeat(401)).agent.run('go')).messages)[0]).toContain(
      'has 401 characters',
    );
  });

  it('keeps errors errors, and images where they are', async () => {
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' } as const;
    const part = { type: 'text', text: LONG } as const;
    const { agent, spill } = setup(
      toolResult({ content: [part, image, part], isError: true, details: { a: 1 } }),
    );
    const { messages } = await agent.run('go');
    expect(messages[2]).toMatchObject({
      isError: true,
      details: { a: 1 },
      content: [{ type: 'text' }, image],
    });
    expect([...spill.values()]).toEqual([`${LONG}\n${LONG}`]);
  });

  it('counts as it is told to', async () => {
    const words = (said: string) => said.split(/\s+/).length;
    const { agent } = setup(LONG, [readOn], { tokenCounter: words });
    const [shown, read] = results((await agent.run('go')).messages);
    expect(words(shown!)).toBeLessThanOrEqual(100);
    expect(words(read!)).toBeLessThanOrEqual(100);
    expect(words(shown!)).toBeGreaterThan(40);
  });

  it('does not store a piece that was read back, whatever the counter says', async () => {
    const { agent, spill } = setup(LONG, [readWith({ offset: 5 })], { tokenCounter: () => 1e6 });
    const { messages } = await agent.run('go');
    expect(results(messages)[1]).toBe('00\n[Characters 5 to 7 of 10000. Read on with offset 7.]');
    expect(spill.size).toBe(1);
  });

  it('never cuts a character in two, and always makes progress', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', '🧅', '\ud83e', 'ü'), { minLength: 401, maxLength: 900 }),
        fc.integer({ min: 1, max: 3 }),
        async (chars, limit) => {
          const given = chars.join('');
          const spill = new Map([['allium:tool-result:[null,"s","r"]', given]]);
          const [read] = toolResultLimit({ maxTokens: 100, spill }).tools!;
          let made = '';
          for (let offset = 0; offset < given.length; ) {
            const ctx = { sessionId: 's', signal: new AbortController().signal };
            const { content } = (await read!.execute(
              { ref: 'r', offset, limit },
              ctx as never,
            )) as ReturnType<typeof toolResult>;
            const said = textOf({ content });
            const next = Number(/\[Characters \d+ to (\d+) of/.exec(said)![1]);
            expect(next).toBeGreaterThan(offset);
            made += said.slice(0, said.lastIndexOf('\n['));
            offset = next;
          }
          expect(made).toBe(given);
        },
      ),
      { numRuns: 30 },
    );
  });
});

describe('tool-result-limit and guards', () => {
  const secret = 'sk-123456';
  const dirty = `${LONG}${secret}${LONG}${secret}`;
  const found = (said: string) =>
    [...said.matchAll(/sk-\d+/g)].map((m) => ({ start: m.index, end: m.index + m[0].length }));

  it.each(['before', 'after'])('never stores what a guard removed, standing %s it', async (where) => {
    const spill = new Map<string, string>();
    const guard = defineMiddleware({ name: 'redact', guard: { on: ['tool-result'], find: found } });
    const limit = toolResultLimit({ maxTokens: 100, spill });
    const log = tool({
      name: 'log',
      description: '',
      input: z.object({}),
      execute: () => toolResult({ content: dirty }),
    });
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'log' }),
        readWith({ offset: 9_990, limit: 40 }),
        text('done'),
      ]),
      tools: [log],
      middleware: where === 'before' ? [guard, limit] : [limit, guard],
    });
    const { messages } = await agent.run('go');
    expect([...spill.values()]).toEqual([dirty.replaceAll(secret, '[redacted]')]);
    expect(results(messages)[1]).toContain('line 0999\n[redacted]line 0000');
    expect(JSON.stringify([messages, [...spill]])).not.toContain(secret);
  });

  it('stores nothing of what a guard withheld or rewrote', async () => {
    for (const verdict of [
      { type: 'deny', reason: 'No.' },
      { type: 'rewrite', text: 'clean' },
    ] as const) {
      const guard = defineMiddleware({ name: 'judge', guard: { on: ['tool-result'], judge: () => verdict } });
      const { agent, spill } = setup(dirty, [], {}, { middleware: [guard] });
      await agent.run('go');
      expect(spill.size).toBe(0);
    }
  });

  it('stores nothing when a guard breaks', async () => {
    const broken = defineMiddleware({
      name: 'broken',
      guard: {
        on: ['tool-result'],
        judge() {
          throw new Error('broken');
        },
      },
    });
    const { agent, spill } = setup(dirty, [], {}, { middleware: [broken] });
    await agent.run('go').catch(() => {});
    expect(spill.size).toBe(0);
  });

  it('stores what hooks before it left', async () => {
    const spill = new Map<string, string>();
    const hook = defineMiddleware({
      name: 'hook',
      afterToolCall: (ctx) => ({ content: textOf(ctx.result!).replaceAll(secret, '') }),
    });
    const log = tool({ name: 'log', description: '', input: z.object({}), execute: () => dirty });
    const model = scriptedModel([toolCalls({ name: 'log' }), text('done')]);
    await new Agent({
      model,
      tools: [log],
      middleware: [hook, toolResultLimit({ maxTokens: 100, spill })],
    }).run('go');
    expect([...spill.values()]).toEqual([`${LONG}${LONG}`]);
  });
});

describe('tool-result-limit, whose results', () => {
  it('gives a session only its own', async () => {
    const spill = new Map<string, string>();
    const store = memoryStore();
    const { agent } = setup(LONG, [], { spill }, { store });
    const { messages } = await agent.session('mine').run('go', { tenant: 't' });
    const [, ref] = REF.exec(results(messages)[0]!)!;
    for (const [id, tenant, allowed] of [
      ['mine', 't', true],
      ['other', 't', false],
      ['third', 'u', false],
      ['fourth', undefined, false],
    ] as const) {
      const model = scriptedModel([toolCalls({ name: 'read_tool_result', args: { ref } }), text('done')]);
      const reader = new Agent({ model, middleware: [toolResultLimit({ maxTokens: 100, spill })], store });
      const read = await reader.session(id).run('go', { ...(tenant && { tenant }) });
      expect(results(read.messages)[0]).toContain(
        allowed ? 'line 0000' : `There is no stored result "${ref}"`,
      );
    }
  });

  it('is read in a fork too, and in a fork of it, but not in a session that only knows the reference', async () => {
    const store = memoryStore();
    const { agent, spill } = setup(LONG, [], {}, { store });
    const session = agent.session('s');
    const { messages } = await session.run('go');
    const [, ref] = REF.exec(results(messages)[0]!)!;
    const read = toolCalls({ name: 'read_tool_result', args: { ref, offset: 20, limit: 9 } });
    const model = scriptedModel([read, 'done'], { repeat: true });
    const reader = new Agent({ model, middleware: [toolResultLimit({ maxTokens: 100, spill })], store });
    const readIn = async (id: string) => results((await reader.session(id).run('and?')).messages)[0];
    const fork = await session.fork(messages.at(-1)!.id, { id: 'fork' });
    await fork.fork(undefined, { id: 'fork of it' });
    expect(await readIn('fork')).toContain('line 0002');
    expect(await readIn('fork of it')).toContain('line 0002');
    await session.fork({ before: messages[1]!.id }, { id: 'before it' });
    expect(await readIn('before it')).toContain('There is no stored result');
    expect(await readIn('other')).toContain('There is no stored result');
  });

  it('is read by another process, with a store that outlives the first', async () => {
    const store = memoryStore();
    const dir = join(folder, 'shared');
    await setup(LONG, [], { spill: fileSpill(dir) }, { store })
      .agent.session('s')
      .run('go');
    const second = setup('', [], {}, { store });
    const model = scriptedModel([readWith({ offset: 20 }), text('done')]);
    const agent = new Agent({
      model,
      middleware: [toolResultLimit({ maxTokens: 100, spill: fileSpill(dir) })],
      store,
    });
    expect(results((await agent.session('s').run('and?')).messages)[0]).toContain('line 0002');
    expect(second.spill.size).toBe(0);
  });

  it('gives two results at once two references, and one result of two calls one', async () => {
    const log = tool({
      name: 'log',
      description: '',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => `${n}${LONG}`,
    });
    const model = scriptedModel([
      toolCalls(
        { name: 'log', args: { n: 1 }, id: 'a' },
        { name: 'log', args: { n: 2 }, id: 'b' },
        { name: 'log', args: { n: 1 }, id: 'c' },
      ),
      text('done'),
    ]);
    const spill = new Map<string, string>();
    await new Agent({ model, tools: [log], middleware: [toolResultLimit({ maxTokens: 100, spill })] }).run(
      'go',
    );
    expect([...spill.values()]).toEqual([`1${LONG}`, `2${LONG}`]);
  });
});

describe('tool-result-limit, when the store fails', () => {
  const failing = (spill: Partial<SpillStore>): SpillStore => ({
    get: () => undefined,
    set: () => {},
    ...spill,
  });
  const boom = () => {
    throw new Error('disk full');
  };

  it.each([
    ['at once', boom],
    ['later', async () => boom()],
  ])('goes on with the beginning when it cannot be written, %s', async (_, set) => {
    const { agent } = setup(LONG, [], { spill: failing({ set }) });
    const { events, result } = await collect(agent.stream('go'));
    expect(results(result!.messages)[0]).toContain('these are the first 158. The rest could not be stored.]');
    expect(result!.messages[2]).toMatchObject({ isError: false });
    expect(events).toContainEqual(
      expect.objectContaining({
        type: 'custom',
        name: 'tool-result-limit',
        data: { toolCallId: 'call_1', error: 'disk full' },
      }),
    );
  });

  it('tells the model when it cannot be read', async () => {
    const { agent } = setup(LONG, [readWith({})], { spill: failing({ get: boom }) });
    expect(results((await agent.run('go')).messages)[1]).toBe('"read_tool_result" failed: disk full');
  });

  it('does not hold up an abort', async () => {
    let waiting = false;
    const set = () => {
      waiting = true;
      return new Promise(() => {});
    };
    const { agent } = setup(LONG, [], { spill: failing({ set }) });
    const abort = new AbortController();
    const run = agent.run('go', { signal: abort.signal }).catch((error) => error);
    while (!waiting) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
  });

  it('withholds a result it cannot count', async () => {
    const { agent } = setup(LONG, [], { tokenCounter: () => Number.NaN });
    expect(results((await agent.run('go')).messages)[0]).toContain(
      'Expected `tokenCounter` to be a function that returns a finite number ≥ 0, got NaN.',
    );
  });
});

describe('toolResultLimit()', () => {
  it.each([
    [{ maxTokens: 99 }, 'Expected `maxTokens` to be an integer ≥ 100, got 99.'],
    [{ spill: {} }, 'Expected `spill` to be an object with get(), set(), got {}.'],
    [{ tokenCounter: 4 }, 'Expected `tokenCounter` to be a function, got 4.'],
    [{ maxToken: 5 }, 'Unknown option `maxToken` of toolResultLimit(). Did you mean `maxTokens`?'],
  ])('refuses %j', (options, message) => {
    expect(() => toolResultLimit(options as never)).toThrow(message);
  });
});
