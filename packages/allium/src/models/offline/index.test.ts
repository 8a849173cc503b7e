import { Agent, type Model, type ModelPart, type ModelRequest, textOf, tool, toolCallsOf } from 'allium';
import { approval, cache, retry, structuredOutput } from 'allium/middleware';
import { collect, testModel } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { toMessages } from '../../kernel/messages/message-input.js';
import { offlineModel } from './index.js';

testModel(() => offlineModel(), {
  name: 'offline',
  // It has no way to fail but an abort that came first; the law wants a call that rejects.
  failing: { model: () => aborted() },
  skip: { thinking: 'It does not think.' },
  describe,
  it,
});

function aborted(): Model {
  const model = offlineModel();
  return { ...model, stream: (request) => model.stream(request, { signal: AbortSignal.abort() }) };
}

const spec = (name: string, properties: object, required = Object.keys(properties), description = '') => ({
  name,
  description,
  inputSchema: { type: 'object', properties, required },
});

async function ask(message: string, options: Partial<ModelRequest> = {}) {
  const request = { messages: toMessages(message), systemPrompt: '', tools: [], settings: {}, ...options };
  const parts: ModelPart[] = [];
  for await (const part of offlineModel().stream(request, { signal: new AbortController().signal }))
    parts.push(part);
  return {
    parts,
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    calls: parts.flatMap((part) =>
      part.type === 'tool-call' ? [[part.name, JSON.parse(part.arguments)] as const] : [],
    ),
    end: parts.at(-1) as ModelPart & { type: 'finish' },
  };
}

const text = { type: 'string' };
const number = { type: 'number' };

describe('which tools it calls', () => {
  const tools = [
    spec('get_weather', { city: text }),
    spec('sendMail', { to: text }, ['to'], 'Sends a letter to a friend.'),
  ];

  it('calls tools whose characteristic words are all in the message, one per turn, in the order of the words', async () => {
    expect((await ask('Send a mail to ann@example.com with the weather in Oslo.', { tools })).calls).toEqual([
      ['sendMail', { to: 'ann@example.com' }],
    ]);
    expect((await ask('What is the weather in Oslo? Then send mail to a@b.co', { tools })).calls).toEqual([
      ['get_weather', { city: 'Oslo' }],
    ]);
  });

  it('calls none for half a name, and falls back to two words of a description', async () => {
    expect((await ask('Any mail in Oslo?', { tools })).calls).toEqual([]);
    expect((await ask('Letters for friends, such as a@b.co', { tools })).calls).toEqual([
      ['sendMail', { to: 'a@b.co' }],
    ]);
  });

  it('understands word endings', async () => {
    const some = [spec('delete_entry', { id: number })];
    expect((await ask('I am deleting entries: 3', { tools: some })).calls).toEqual([
      ['delete_entry', { id: 3 }],
    ]);
  });

  it('calls a tool several times if it takes one text and the message has several names', async () => {
    expect((await ask('Compare the weather in Oslo and in New York.', { tools })).calls).toEqual([
      ['get_weather', { city: 'Oslo' }],
      ['get_weather', { city: 'New York' }],
    ]);
  });

  it('follows toolChoice', async () => {
    expect((await ask('weather in Oslo', { tools, settings: { toolChoice: 'none' } })).calls).toEqual([]);
    expect((await ask('Hi', { tools, settings: { toolChoice: 'required' } })).calls).toEqual([
      ['get_weather', {}],
    ]);
    expect((await ask('Hi a@b.co', { tools, settings: { toolChoice: { tool: 'sendMail' } } })).calls).toEqual(
      [['sendMail', { to: 'a@b.co' }]],
    );
  });

  it('says which argument it cannot find instead of making one up', async () => {
    const { text: said, calls } = await ask('Send a mail.', { tools });
    expect(calls).toEqual([]);
    expect(said).toContain('I would call sendMail, but I find nothing in your message for `to`.');
  });
});

describe('how it fills arguments', () => {
  const args = async (message: string, properties: object, required?: string[]) =>
    (await ask(message, { tools: [spec('go', properties, required)] })).calls[0]?.[1];

  it.each([
    ['go 19 and -2.5', { a: number, b: number }, { a: 19, b: -2.5 }],
    ['go for two days', { days: { type: 'integer' } }, { days: 2 }],
    ['go 2.5 or 900 or 7', { n: { type: 'integer', maximum: 100 } }, { n: 7 }],
    ['go on 2026-11-15 at 9', { date: text, hour: number }, { date: '2026-11-15', hour: 9 }],
    [
      'go with "two words" and \'three more words\'',
      { a: text, b: text },
      { a: 'two words', b: 'three more words' },
    ],
    ['go to https://example.com/a?b=1.', { url: text }, { url: 'https://example.com/a?b=1' }],
    [
      'go to bob.b+c@mail.example.org!',
      { address: { type: 'string', format: 'email' } },
      { address: 'bob.b+c@mail.example.org' },
    ],
    ['go in HIGH priority', { priority: { enum: ['low', 'high'] } }, { priority: 'high' }],
    ['go, not urgent', { urgent: { type: 'boolean' } }, { urgent: false }],
    ['go, urgent', { urgent: { type: 'boolean' } }, { urgent: true }],
    ['go 1, 2 and 3', { all: { type: 'array', items: number } }, { all: [1, 2, 3] }],
    ['go with Ann and Bob', { people: { type: 'array', items: text } }, { people: ['Ann', 'Bob'] }],
    ['go', { all: { type: 'array', items: { const: 'x' } } }, { all: ['x'] }],
    ['go low', { all: { type: 'array', items: { enum: ['low', 'high'] } } }, { all: ['low'] }],
    [
      'go low, urgent',
      {
        lists: { type: 'array', items: { type: 'array', items: { enum: ['low'] } } },
        urgent: { type: 'array', items: { type: 'array', items: { type: 'boolean' } } },
      },
      { lists: [['low']], urgent: [[true]] },
    ],
    [
      'go 3 "x"',
      { any: { type: 'array', items: true }, pair: { type: 'array', prefixItems: [text], items: false } },
      { any: [], pair: ['x'] },
    ],
    [
      'go 4',
      { box: { type: 'object', properties: { size: number }, required: ['size'] } },
      { box: { size: 4 } },
    ],
    ['go home now', { query: text }, { query: 'go home now' }],
    ['go', { n: { type: 'number', default: 5 } }, { n: 5 }],
    ['go', { kind: { const: 'x' } }, { kind: 'x' }],
    [
      'go 3',
      { n: { anyOf: [{ type: 'null' }, number] }, m: { type: ['null', 'number'], default: 1 } },
      { n: 3, m: 1 },
    ],
  ])('%s', async (message, properties, expected) => {
    expect(await args(message, properties)).toEqual(expected);
  });

  it('finds nothing for a schema that takes anything', async () => {
    expect(await args('go 3', { n: number, any: true, none: false }, ['n'])).toEqual({ n: 3 });
    const { calls, text: said } = await ask('go 3', { tools: [spec('go', { any: true })] });
    expect(calls).toEqual([]);
    expect(said).toContain('I find nothing in your message for `any`.');
  });

  it('leaves out what is not required and not there', async () => {
    expect(await args('go 3', { n: number, m: number, note: text }, ['n'])).toEqual({ n: 3 });
    expect(await args('go 3 and 4', { n: number, m: number }, ['n'])).toEqual({ n: 3, m: 4 });
  });

  it('takes values from the part of the message that belongs to the tool', async () => {
    const add = tool({ name: 'add', description: '', input: pair, execute: ({ a, b }) => a + b });
    const multiply = tool({ name: 'multiply', description: '', input: pair, execute: ({ a, b }) => a * b });
    const agent = new Agent({ model: offlineModel(), tools: [add, multiply] });
    const { text: said } = await agent.run('Add 1 and 2, then multiply 5 and 6.');
    expect(said).toContain('add: 3\nmultiply: 30');
  });

  const pair = z.object({ a: z.number(), b: z.number() });

  it('passes on what a tool found: an address, and its text', async () => {
    const find = tool({
      name: 'find_contact',
      description: 'Finds the address of someone.',
      input: z.object({ name: z.string() }),
      execute: ({ name }) => ({ name, email: 'ann@example.com' }),
    });
    const sent: unknown[] = [];
    const send = tool({
      name: 'send_mail',
      description: 'Sends a mail.',
      input: z.object({ to: z.string(), body: z.string() }),
      execute: (args) => void sent.push(args),
    });
    await new Agent({ model: offlineModel(), tools: [find, send] }).run(
      'Look up the contact Ann and send a mail.',
    );
    expect(sent).toEqual([{ to: 'ann@example.com', body: '{"name":"Ann","email":"ann@example.com"}' }]);
  });
});

describe('what it says', () => {
  it('says what it is, with and without tools', async () => {
    expect((await ask('Hi')).text).toMatch(/offline model of Allium.*You said: Hi.*I have no tools/s);
    expect((await ask('Hi', { tools: [spec('go', {})] })).text).toContain('I can call go');
    expect((await ask('Hi')).end.metadata).toEqual({ offline: true });
  });

  it('streams word by word and counts what it reads and writes', async () => {
    const { parts, text: said, end } = await ask('Hi there');
    expect(parts.length).toBeGreaterThan(10);
    expect(end).toMatchObject({ reason: 'stop', usage: { outputTokens: Math.ceil(said.length / 4) } });
    expect(end.usage?.inputTokens).toBeGreaterThan(0);
  });

  it('stops at maxOutputTokens', async () => {
    const { text: said, end } = await ask('Hi', { settings: { maxOutputTokens: 5 } });
    expect(said.length).toBeLessThanOrEqual(20);
    expect(end.reason).toBe('length');
  });

  it('writes JSON for a schema', async () => {
    const schema = z.object({ city: z.string(), days: z.number(), note: z.string().optional() });
    const agent = new Agent({ model: offlineModel(), middleware: [structuredOutput({ schema })] });
    expect((await agent.run('Let us go to Oslo for 3 days')).output).toEqual({ city: 'Oslo', days: 3 });
    expect((await agent.run('nothing here')).output).toEqual({ city: '', days: 0 });
  });

  it('writes JSON for a schema with true and false in it', async () => {
    const properties = { any: true, choice: { anyOf: [true] }, pair: { type: 'array', items: false } };
    const responseSchema = { type: 'object', properties, required: ['any', 'choice', 'pair'] };
    const { text: said } = await ask('hi', { settings: { responseSchema } });
    expect(JSON.parse(said)).toEqual({ any: null, choice: null, pair: [] });
  });

  it('reports a tool that failed, and a call that was refused', async () => {
    const fail = tool({
      name: 'go',
      description: '',
      input: z.object({}),
      execute: () => Promise.reject(new Error('no way')),
    });
    const agent = new Agent({ model: offlineModel(), tools: [fail] });
    expect((await agent.run('go')).text).toMatch(/^go failed: .*no way/);
    const refused = new Agent({
      model: offlineModel(),
      tools: [fail],
      middleware: [approval({ policy: { go: 'deny' } })],
    });
    const { text: said, status } = await refused.run('go');
    expect(status).toBe('done');
    expect(said).toMatch(/^go failed: /);
    expect(said).not.toContain('no way');
  });

  it('calls what failed once more with the same arguments, and answers with what came of that', async () => {
    const asked: number[] = [];
    const busy = (times: number) =>
      tool({
        name: 'go',
        description: '',
        input: z.object({ n: z.number() }),
        execute({ n }) {
          asked.push(n);
          if (asked.length <= times) throw new Error('busy');
          return 'gone';
        },
      });
    const agentOf = (times: number) => new Agent({ model: offlineModel(), tools: [busy(times)] });
    const { text: said, turns, messages } = await agentOf(1).run('go 7');
    expect(asked.splice(0)).toEqual([7, 7]);
    expect(turns).toBe(3);
    expect(said).toMatch(/^go: gone\n/);
    expect(messages.flatMap((one) => (one.role === 'tool' ? [one.isError] : []))).toEqual([true, false]);
    expect((await agentOf(2).run('go 7')).text).toMatch(/^go failed: "go" failed: busy\n/);
    expect(asked).toEqual([7, 7]);
  });

  it('quotes the result of a call that a person changed, without the note that says so', async () => {
    const price = tool({
      name: 'price',
      description: 'The price of a fruit.',
      input: z.object({ fruit: z.string() }),
      execute: ({ fruit }) => ({ fruit, euros: 2 }),
    });
    const agent = new Agent({ model: offlineModel(), tools: [price], middleware: [approval()] });
    const { text } = await agent.run('What is the price of the fruit "apple"?', {
      onRequest: () => ({ type: 'edit', args: { fruit: 'pear' } }),
    });
    expect(text).toMatch(/^price: fruit pear, euros 2$/m);
  });

  it('does not make a call again that somebody refused', async () => {
    const go = tool({ name: 'go', description: '', input: z.object({}), execute: () => 'gone' });
    const asked = vi.fn(async () => ({ type: 'reject' as const, reason: 'Not now.' }));
    const agent = new Agent({
      model: offlineModel(),
      tools: [go],
      middleware: [approval({ policy: { go: 'ask' } })],
    });
    expect((await agent.run('go', { onRequest: asked })).text).toMatch(/^go failed: .*Not now\./);
    expect(asked).toHaveBeenCalledOnce();
  });

  it.each(['a', '.', '“', 'a@', 'Aa bb ', '1 ', '"a" '])(
    'answers a very long message that repeats %j',
    async (piece) => {
      const lists = { n: { type: 'array', items: number }, s: { type: 'array', items: text } };
      const tools = [spec('go', { ...lists, to: text }, ['n', 's'])];
      const { calls } = await ask(`go ${piece.repeat(200_000 / piece.length)}`, { tools });
      expect(calls).toEqual([['go', { n: expect.any(Array), s: expect.any(Array) }]]);
    },
  );

  it('separates addresses, quotations and sentence beginnings from the text around them', async () => {
    const tools = [spec('go', { to: text, note: text, who: text })];
    const message = 'go (Hello: “Ann” “Bob Lee”): <x.y+z@mail.org>, then. "(It is for Carl';
    expect((await ask(message, { tools })).calls).toEqual([
      ['go', { to: 'x.y+z@mail.org', note: 'Ann', who: 'Bob Lee' }],
    ]);
    const names = [spec('go', { who: { type: 'array', items: text } })];
    expect((await ask('go. Then Dan! (Eve Lee: Fay) to Gus', { tools: names })).calls).toEqual([
      ['go', { who: ['Dan', 'Lee', 'Gus'] }],
    ]);
  });

  it('answers anything, and the same each time', async () => {
    const tools = [spec('go', { n: number, s: text, l: { type: 'array', items: text } }), spec('find', {})];
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1 }), async (message) => {
        const first = await ask(`go ${message}`, { tools });
        expect(first.end.type).toBe('finish');
        expect((await ask(`go ${message}`, { tools })).parts).toEqual(first.parts);
      }),
      { numRuns: 200 },
    );
  });
});

describe('with middleware', () => {
  it('gives a demo all it needs: a retried tool, an address, an approval, and a second run from the cache', async () => {
    let tries = 0;
    const guide = tool({
      name: 'find_guide',
      description: 'Someone who shows people around.',
      input: z.object({ town: z.string() }),
      idempotent: true,
      execute: ({ town }) => {
        if (tries++ === 0) throw Object.assign(new Error('busy'), { status: 503 });
        return `Ingrid from ${town}, ingrid@example.com`;
      },
    });
    const book = tool({
      name: 'book_room',
      description: 'Books a room.',
      input: z.object({ town: z.string(), nights: z.number().int() }),
      execute: ({ town, nights }) => `Booked ${nights} nights in ${town}.`,
    });
    const asked: string[] = [];
    const agent = new Agent({
      model: offlineModel(),
      tools: [guide, book],
      middleware: [
        cache(),
        retry({ on: 'tool', attempts: 2, minDelayMs: 0 }),
        approval({ policy: { book_room: 'ask', '*': 'allow' } }),
      ],
      onRequest: (request) => {
        asked.push(request.toolName ?? '');
        return { type: 'approve' };
      },
    });
    const message = 'Find a guide in Bergen, and book a room for 2 nights.';
    const first = await agent.run(message);
    expect(first.text).toContain(
      'find_guide: Ingrid from Bergen, ingrid@example.com\nbook_room: Booked 2 nights in Bergen.',
    );
    expect([tries, asked.length, first.turns]).toEqual([2, 1, 3]);
    const { events } = await collect(agent.stream(message));
    const answers = events.flatMap((event) =>
      event.type === 'message_end' && event.message?.role === 'assistant' ? [event.message] : [],
    );
    expect(answers.map(({ metadata }) => metadata?.cacheHit)).toEqual([true, true, true]);
    expect(textOf(answers.at(-1)!)).toBe(first.text);
    const ids = first.messages.flatMap((one) =>
      one.role === 'assistant' ? toolCallsOf(one).map(({ id }) => id) : [],
    );
    expect(new Set(ids).size).toBe(2);
  });

  it('is free, and can be given a price', () => {
    expect(offlineModel().price).toEqual({ input: 0, output: 0 });
    expect(offlineModel({ price: { input: 1, output: 2 } }).price).toEqual({ input: 1, output: 2 });
    expect(() => offlineModel({ price: { input: -1, output: 2 } })).toThrow('`price.input`');
    expect(() => offlineModel({ prize: 1 } as object)).toThrow('Did you mean `price`?');
  });
});
