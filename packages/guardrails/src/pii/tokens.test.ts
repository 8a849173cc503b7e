import {
  Agent,
  defineMiddleware,
  type Message,
  type Middleware,
  memoryStore,
  textOf,
  tool,
  toolResult,
  type UserMessage,
  userMessage,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { cache } from 'allium/middleware/cache';
import { localMemory, memoryRecall } from 'allium/middleware/memory-recall';
import { record } from 'allium/middleware/record';
import { retry } from 'allium/middleware/retry';
import { structuredOutput } from 'allium/middleware/structured-output';
import { todoList } from 'allium/middleware/todo-list';
import { toolCache } from 'allium/middleware/tool-cache';
import { toolResultLimit } from 'allium/middleware/tool-result-limit';
import { chunks, collect, failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { contentFilter } from '../content-filter/index.js';
import { egress } from '../egress/index.js';
import { toolPolicy } from '../tool-policy/index.js';
import { type PiiOptions, pii } from './index.js';

const tokenize = (options: PiiOptions = {}) => pii({ strategy: 'tokenize', ...options });

/** A tool that tells what it was given, and returns something of its own. */
function echo(returned: (to: string) => string = () => 'Done.') {
  const given: string[] = [];
  const mail = tool({
    name: 'mail',
    description: 'Mails.',
    input: z.object({ to: z.string() }),
    execute({ to }) {
      given.push(to);
      return returned(to);
    },
  });
  return { given, mail };
}

const address = fc.stringMatching(/^[a-z]{3,8}$/).map((name) => `${name}@example.org`);

describe('placeholders', () => {
  it('are numbered by kind in order of appearance, the same for the same value, however text is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(address, { minLength: 1, maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 10 }),
        async (found, cuts) => {
          const said = found.map((one) => `Write to ${one} now.`).join(' ');
          const order = [...new Set(found)];
          const wanted = said.replace(/\S+@example\.org/g, (one) => `<EMAIL_${order.indexOf(one) + 1}>`);
          const pieces: string[] = [];
          let rest = said;
          for (const cut of cuts) {
            pieces.push(rest.slice(0, cut));
            rest = rest.slice(cut);
          }
          const answered = async (model: ReturnType<typeof scriptedModel>) =>
            (await collect(new Agent({ model, middleware: [tokenize()] }).stream('Well?'))).result?.text;
          expect(await answered(scriptedModel([said]))).toBe(wanted);
          expect(await answered(scriptedModel([chunks(...pieces, rest)]))).toBe(wanted);
        },
      ),
      { numRuns: 40 },
    );
  });

  it.each([true, false])(
    'stay in a todo list, which the model reads again (pii first: %s)',
    async (first) => {
      const todos = [{ content: 'Write to ann@example.org.', status: 'completed' }];
      const model = scriptedModel([toolCalls({ name: 'write_todos', args: { todos } }), text('Done.')]);
      const middleware = first ? [tokenize(), todoList()] : [todoList(), tokenize()];
      const store = memoryStore();
      const session = new Agent({ model, middleware, store }).session('s');
      const { events, result } = await collect(session.stream('Write to ann@example.org.'));
      expect(result?.status).toBe('done');
      expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain('Write to <EMAIL_1>.');
      for (const seen of [events, model.requests])
        expect(JSON.stringify(seen)).not.toContain('ann@example.org');
      const kept = (await store.read('s', 1)).filter(
        (entry) => entry.type === 'state' && /todo/.test(entry.cell),
      );
      expect(JSON.stringify(kept)).toContain('<EMAIL_1>');
      expect(JSON.stringify(kept)).not.toContain('ann@example.org');
    },
  );

  it('are as many as there are values when results come in at the same time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(address, { minLength: 2, maxLength: 6 }), async (all) => {
        const look = tool({
          name: 'look',
          description: 'Looks.',
          input: z.object({ i: z.number() }),
          execute: async ({ i }) => {
            await Promise.resolve();
            return `It is ${all[i]} or ${all[(i + 1) % all.length]}.`;
          },
        });
        const { given, mail } = echo();
        const model = scriptedModel([
          toolCalls(...all.map((_, i) => ({ name: 'look', args: { i } }))),
          toolCalls(...all.map((_, i) => ({ name: 'mail', args: { to: `<EMAIL_${i + 1}>` } }))),
          text('Done.'),
        ]);
        await new Agent({ model, tools: [look, mail], middleware: [tokenize()] }).run('Go');
        expect(given.sort()).toEqual([...all].sort());
      }),
      { numRuns: 30 },
    );
  });

  it('are kept by a session, for another instance and after a restart', async () => {
    const store = memoryStore();
    const { given, mail } = echo();
    const agentWith = (...answers: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ model: scriptedModel(answers), tools: [mail], middleware: [tokenize()], store });
    await agentWith(text('Hello bob@example.org.')).session('s').run('I am ann@example.org');
    const later = agentWith(
      toolCalls({ name: 'mail', args: { to: '<EMAIL_2>' } }),
      text('To ann@example.org, cy@example.org.'),
    );
    const { text: said } = await later.session('s').run('Mail Bob');
    expect(given).toEqual(['bob@example.org']);
    expect(said).toBe('To <EMAIL_1>, <EMAIL_3>.');
  });

  it('are not issued again for another value when the attempt that issued them failed', async () => {
    const store = memoryStore();
    const overloaded = Object.assign(new Error('overloaded'), { status: 529 });
    // Long enough for the first address to be released before the attempt fails.
    const failing = failWith(overloaded, 'Ask ann@example.org. '.repeat(20));
    const model = scriptedModel([failing, text('Ask bob@example.org.')]);
    const middleware = [retry({ minDelayMs: 0, maxDelayMs: 0 }), tokenize()];
    const session = new Agent({ model, middleware, store }).session('s');
    const { text: said } = await session.run('Who?');
    const [, number] = /<EMAIL_(\d)>/.exec(said)!;
    const again = new Agent({
      model: scriptedModel(['ann@example.org bob@example.org cy@example.org']),
      middleware,
      store,
    });
    const { text: later } = await again.session('s').run('And?');
    expect(new Set(later.match(/\d/g)).size).toBe(3);
    expect(later.split(' ')[1]).toBe(`<EMAIL_${number}>`);
  });

  it('stay text when they were never issued, or by another session', async () => {
    const { given, mail } = echo();
    const store = memoryStore();
    const model = () =>
      scriptedModel([
        toolCalls({ name: 'mail', args: { to: '<EMAIL_1> <EMAIL_2> <PHONE_1>' } }),
        text('Done.'),
      ]);
    const agent = () => new Agent({ model: model(), tools: [mail], middleware: [tokenize()], store });
    await agent().session('a').run('I am ann@example.org');
    await agent().session('b').run('Hi');
    expect(given).toEqual(['ann@example.org <EMAIL_2> <PHONE_1>', '<EMAIL_1> <EMAIL_2> <PHONE_1>']);
  });

  it('written as plain text are never mistaken for real ones, before, beside or after them', async () => {
    for (const said of [
      'See <EMAIL_1>, and write to ann@example.org',
      'Write to ann@example.org, and see <EMAIL_1>',
      [
        { type: 'text' as const, text: 'Write to ann@example.org ' },
        { type: 'text' as const, text: 'and see <EMAIL_1>' },
      ],
    ]) {
      const { given, mail } = echo();
      const model = scriptedModel([
        ({ messages }) => toolCalls({ name: 'mail', args: { to: textOf(messages.at(-1)!) } }),
        text('Done.'),
      ]);
      await new Agent({ model, tools: [mail], middleware: [tokenize()] }).run(said);
      // The tool gets what the user wrote: the address once, and the text as text.
      expect(given[0]).toBe(typeof said === 'string' ? said : said.map((part) => part.text).join(''));
    }
  });

  const changing: [string, () => Middleware | readonly Middleware[]][] = [
    ['a hook', () => ({ name: 'hook', afterToolCall: ({ result }) => ({ content: [...result!.content] }) })],
    [
      'a sink',
      () => ({
        name: 'sink',
        sink: true,
        wrapTool: async (_, next) => toolResult({ content: textOf(await next()) }),
      }),
    ],
    ['toolResultLimit', () => toolResultLimit({ maxTokens: 100 })],
    ['toolCache', () => toolCache({ tools: ['look'] })],
    ['two sinks', () => [record({ to: () => {} }), toolCache({ tools: ['look'] })]],
  ];
  it.each(changing)('stay in a result that passes the guard again: after %s', async (_, make) => {
    for (const first of [true, false]) {
      const { given, mail } = echo();
      const look = tool({
        name: 'look',
        description: 'Looks.',
        input: z.object({}),
        execute: async () => [
          { type: 'text', text: `It is ann@example.org, not <EMAIL_7>. ${'And more. '.repeat(100)}` },
          { type: 'text', text: 'The manual says <EMAIL_8>.' },
        ],
      });
      const found = (messages: readonly Message[]) =>
        messages.slice(-2).map((one) => /<EMAIL_\d+>/.exec(textOf(one))![0]);
      const model = scriptedModel([
        toolCalls({ name: 'look' }, { name: 'look' }),
        ({ messages }) => toolCalls(...found(messages).map((to) => ({ name: 'mail', args: { to } }))),
        text('Done.'),
      ]);
      const middleware = first ? [tokenize(), make()] : [make(), tokenize()];
      await new Agent({ model, tools: [look, mail], middleware }).run('Mail them');
      expect(given).toEqual(['ann@example.org', 'ann@example.org']);
    }
  });

  it.each([true, false])('stay in a message that a hook adds to (pii first: %s)', async (first) => {
    const { given, mail } = echo();
    const stamp = defineMiddleware({
      name: 'stamp',
      acceptMessage: (message) =>
        userMessage([...(message as UserMessage).content, { type: 'text', text: ' (Monday)' }]),
    });
    const quoting = defineMiddleware({
      name: 'quoting',
      afterModelResponse: ({ content }, { history }) =>
        content.some(({ type }) => type === 'tool-call')
          ? { injectMessages: [userMessage(`Remember: ${textOf(history.at(-1)!)}`)] }
          : undefined,
    });
    const found = (messages: readonly Message[]) => /<\w+_1>/.exec(textOf(messages.at(-1)!))![0];
    const model = scriptedModel([
      ({ messages }) => toolCalls({ name: 'mail', args: { to: found(messages) } }),
      ({ messages }) => toolCalls({ name: 'mail', args: { to: found(messages) } }),
      text('Done.'),
    ]);
    const middleware = first ? [tokenize(), stamp, quoting] : [stamp, quoting, tokenize()];
    await new Agent({ model, tools: [mail], middleware }).run('I am ann@example.org.');
    expect(textOf(model.requests[0]!.messages[0]!)).toBe('I am <EMAIL_1>. (Monday)');
    expect(given).toEqual(['ann@example.org', 'ann@example.org']);
  });

  it('are told from text that looks like them in another block of the same result', async () => {
    const { given, mail } = echo();
    const blocks = ['Write to ann@example.org.', 'The manual says <EMAIL_1>.'];
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      execute: () => blocks.map((one) => ({ type: 'text', text: one })),
    });
    const model = scriptedModel([
      toolCalls({ name: 'look' }),
      ({ messages }) => toolCalls({ name: 'mail', args: { to: textOf(messages.at(-1)!) } }),
      text('Done.'),
    ]);
    await new Agent({ model, tools: [look, mail], middleware: [tokenize()] }).run('Look');
    expect(given).toEqual([blocks.join('')]);
  });

  it('may come back from a tool that did not get the value', async () => {
    const { given, mail } = echo((to) => `Queued for ${to}.`);
    const model = scriptedModel([
      toolCalls({ name: 'mail', args: { to: '<EMAIL_1>' } }),
      ({ messages }) => text(textOf(messages.at(-1)!)),
    ]);
    const middleware = [tokenize({ restoreTools: false, restoreAnswer: true })];
    const { text: said } = await new Agent({ model, tools: [mail], middleware }).run('Mail ann@example.org');
    expect(given).toEqual(['<EMAIL_1>']);
    expect(said).toBe('Queued for ann@example.org.');
  });

  it('of a sub-agent are those of its caller again, for values that the caller knows', async () => {
    const guard = tokenize({ restoreAnswer: true });
    const inner = new Agent({
      name: 'inner',
      model: scriptedModel([
        ({ messages }) =>
          text(`Found ${/<EMAIL_\w+>/.exec(textOf(messages.at(-1)!))?.[0]}, zed@example.org.`),
      ]),
    });
    const model = scriptedModel([
      toolCalls({ name: 'ask', args: { prompt: 'Look up <EMAIL_2>' } }),
      ({ messages }) => text(textOf(messages.at(-1)!)),
    ]);
    const ask = inner.asTool({ name: 'ask', description: 'Asks.' });
    const agent = new Agent({ model, tools: [ask], middleware: [guard] });
    const { text: said, messages } = await agent.run('I am ann@example.org, find bob@example.org');
    expect(JSON.stringify(messages)).not.toMatch(/(?:ann|bob|zed)@/);
    expect(textOf(messages.at(-1)!)).toMatch(/^Found <EMAIL_2>, <EMAIL_[0-9a-f]{12}>\.$/);
    // What only the sub-agent saw stays a placeholder, and is nobody else's.
    expect(said).toMatch(/^Found bob@example\.org, <EMAIL_[0-9a-f]{12}>\.$/);
  });
});

it.each(['json', 'tool'] as const)(
  'a structured answer (%s) has to fit as its reader gets it',
  async (mode) => {
    const schema = z.object({ to: z.email(), list: z.array(z.email()) });
    const answer = (messages: unknown) => {
      const to = /<EMAIL_1>/.exec(JSON.stringify(messages))![0];
      const args = { to, list: [to] };
      return mode === 'tool' ? toolCalls({ name: 'final_answer', args }) : text(JSON.stringify(args));
    };
    for (const restoreAnswer of [true, false])
      for (const first of [true, false]) {
        const output = structuredOutput({ schema, mode, maxRepairs: 0 });
        const hidden = tokenize({ restoreAnswer });
        const middleware = first ? [hidden, output] : [output, hidden];
        const model = scriptedModel([({ messages }) => answer(messages)], { repeat: true });
        const agent = new Agent({ model, middleware });
        const { result, error, events } = await collect(agent.stream('Write to ann@example.org.'));
        const want = { to: 'ann@example.org', list: ['ann@example.org'] };
        if (restoreAnswer) expect(result?.output).toEqual(want);
        else expect(error?.code).toBe('OUTPUT_INVALID');
        const told = events.filter(({ type }) => type !== 'message_update' && type !== 'message_end');
        if (!restoreAnswer) expect(JSON.stringify(told)).not.toContain('ann@example.org');
        if (restoreAnswer) expect((await agent.run('Again to ann@example.org.')).output).toEqual(want);
      }
  },
);

it('a structured answer of a sub-agent may hold placeholders: the tools of its caller get the values', async () => {
  const { given, mail } = echo();
  const found = (messages: unknown) => /<EMAIL_\w+>/.exec(JSON.stringify(messages))![0];
  const kid = scriptedModel([({ messages }) => text(JSON.stringify({ to: found(messages) }))]);
  const child = new Agent({
    model: kid,
    middleware: [structuredOutput({ schema: z.object({ to: z.email() }), maxRepairs: 0 })],
  });
  const model = scriptedModel([
    ({ messages }) => toolCalls({ name: 'ask', args: { prompt: `Who is ${found(messages)}?` } }),
    ({ messages }) => toolCalls({ name: 'mail', args: { to: found(messages.at(-1)) } }),
    text('Done.'),
  ]);
  const tools = [mail, child.asTool({ name: 'ask', description: 'Asks.' })];
  const agent = new Agent({ model, tools, middleware: [tokenize()] });
  const { messages } = await agent.run('Write to ann@example.org.');
  expect(textOf(messages[2]!)).toBe('{"to":"<EMAIL_1>"}');
  expect(given).toEqual(['ann@example.org']);
});

describe('guards of arguments', () => {
  const there = 'bob@evil.com';
  /** A model that mails to what it was shown, or to what it writes itself. */
  const mailer = (isShown: boolean) =>
    scriptedModel([
      ({ messages }) => {
        const to = isShown ? /<\w+_1>/.exec(JSON.stringify(messages))![0] : there;
        return toolCalls({ name: 'mail', args: { to, more: 1 } });
      },
      text('Done.'),
    ]);

  it.each<[string, () => Middleware, given: readonly string[]]>([
    ['egress', () => egress({ allowHosts: ['example.org'], on: ['tool-args'] }), ['[link removed]']],
    ['contentFilter', () => contentFilter({ patterns: ['evil'], on: ['tool-args'] }), ['bob@[removed].com']],
    ['toolPolicy', () => toolPolicy({ args: { mail: { to: '@example\\.org$' } } }), []],
    ['toolPolicy with a rule', () => toolPolicy({ rules: [{ effect: 'deny', args: { to: 'evil' } }] }), []],
    ['toolPolicy that allows it', () => toolPolicy({ args: { mail: { to: '@evil\\.com$' } } }), [there]],
  ])(
    '%s judges what the tool gets, in either order, and nobody else sees it',
    async (name, make, expected) => {
      const value = name === 'egress' ? 'https://evil.com/x' : there;
      const pick = name === 'egress' ? tokenize({ types: ['url'] }) : tokenize();
      for (const isShown of name === 'egress' ? [true] : [true, false])
        for (const middleware of [
          [pick, make()],
          [make(), pick],
        ]) {
          const { given, mail } = echo();
          const store = memoryStore();
          const model = mailer(isShown);
          const session = new Agent({ model, tools: [mail], middleware, store }).session('s');
          const { events, result } = await collect(session.stream(`Write to ${value}.`));
          expect(result?.status).toBe('done');
          expect(given).toEqual(expected);
          const entries = (await store.read('s', 1)).filter(({ type }) => type !== 'state');
          for (const seen of [events, result, entries, model.requests])
            expect(JSON.stringify(seen)).not.toContain(value);
        }
    },
  );

  it.each([0, 1])(
    'leave placeholders for values that are only known by the words around them (%i)',
    async (at) => {
      const ssn = '123456789';
      const given: unknown[] = [];
      const file = tool({
        name: 'file',
        description: 'Files it.',
        input: z.object({ ssn: z.string(), note: z.string(), amount: z.number() }),
        execute: (args) => void given.push(args),
      });
      const quoting = defineMiddleware({
        name: 'quoting',
        guard: {
          on: ['tool-args'],
          originals: true,
          judge: ({ args }) =>
            given.length > 0 ? { type: 'deny', reason: `Not ${(args as { ssn: string }).ssn}.` } : undefined,
        },
      });
      const call = toolCalls({
        name: 'file',
        args: { ssn: '<SSN_1>', note: 'at https://evil.com/x', amount: 9123456789 },
      });
      const model = scriptedModel([call, call, 'Done.']);
      const middleware = [tokenize(), quoting, egress()];
      const agent = new Agent({ model, tools: [file], middleware: at ? middleware : middleware.reverse() });
      const { events, result } = await collect(agent.stream(`My SSN is ${ssn}.`));
      expect(given).toEqual([{ ssn, note: 'at [link removed]', amount: 9123456789 }]);
      expect(textOf(result!.messages[4]!)).toBe('Not <SSN_1>.');
      for (const seen of [events, result, model.requests])
        expect(JSON.stringify(seen)).not.toMatch(/(?<!9)123456789/);
    },
  );

  it('may quote what they ask about: people, events and the journal get placeholders', async () => {
    const asking = (name: string) =>
      defineMiddleware({
        name,
        suspends: true,
        guard: {
          on: ['tool-args'],
          originals: true,
          judge({ args }) {
            const { to } = args as { to: string };
            return { type: 'ask', request: { title: `To ${to}?`, details: { to, more: 1 } } };
          },
        },
      });
    const { mail } = echo();
    const store = memoryStore();
    const middleware = [asking('first'), tokenize(), asking('second')];
    const session = new Agent({ model: mailer(true), tools: [mail], middleware, store }).session('s');
    const { events, result } = await collect(session.stream(`Write to ${there}.`));
    expect(result!.pending).toMatchObject([
      { title: 'To <EMAIL_1>?', details: { to: '<EMAIL_1>', more: 1 } },
    ]);
    const entries = (await store.read('s', 1)).filter(({ type }) => type !== 'state');
    for (const seen of [events, result, entries]) expect(JSON.stringify(seen)).not.toContain(there);
  });

  it('see placeholders otherwise: others of their own, and for tools that do not get the values', async () => {
    const seen: unknown[] = [];
    const watching = (originals: boolean) =>
      defineMiddleware({
        name: `watching ${originals}`,
        guard: { on: ['tool-args'], originals, judge: ({ args }) => void seen.push(originals, args) },
      });
    const { mail } = echo();
    for (const restoreTools of [true, false]) {
      const middleware = [watching(true), watching(false), tokenize({ restoreTools })];
      await new Agent({ model: mailer(true), tools: [mail], middleware }).run(`Write to ${there}.`);
    }
    const hidden = { to: '<EMAIL_1>', more: 1 };
    expect(seen).toEqual([true, { to: there, more: 1 }, false, hidden, true, hidden, false, hidden]);
  });

  it('may quote what they refuse: the model reads placeholders', async () => {
    const quoting = defineMiddleware({
      name: 'quoting',
      guard: {
        on: ['tool-args'],
        originals: true,
        judge: ({ args }) => ({ type: 'deny', reason: `Not to ${(args as { to: string }).to}.` }),
      },
    });
    const { given, mail } = echo();
    const agent = new Agent({ model: mailer(true), tools: [mail], middleware: [quoting, tokenize()] });
    const { events, result } = await collect(agent.stream(`Write to ${there}.`));
    expect(given).toEqual([]);
    expect(textOf(result!.messages[2]!)).toBe('Not to <EMAIL_1>.');
    expect(JSON.stringify(events)).not.toContain(there);
  });
});

describe('outside the session, placeholders mean something else', () => {
  const model = () =>
    scriptedModel(
      [
        toolCalls(
          { name: 'mail', args: { to: 'ann@example.org' } },
          { name: 'mail', args: { to: 'bob@example.org' } },
        ),
        'Done.',
      ],
      { repeat: true },
    );

  it.each([0, 1])('a cached answer is for its session only, either way round: %i', async (at) => {
    const { given, mail } = echo();
    const middleware = [tokenize(), cache()];
    const asked = model();
    const agent = new Agent({
      model: asked,
      tools: [mail],
      middleware: at ? middleware : middleware.reverse(),
    });
    for (const id of ['a', 'b']) await agent.session(id).run('Write to ann@example.org.');
    expect(given).toEqual(['ann@example.org', 'bob@example.org', 'ann@example.org', 'bob@example.org']);
  });

  it('an answer that got a new placeholder is not cached: after a rewind nobody could restore it', async () => {
    const { given, mail } = echo();
    const asked = model();
    const session = new Agent({ model: asked, tools: [mail], middleware: [tokenize(), cache()] }).session(
      's',
    );
    for (let i = 0; i < 2; i++) {
      const { messages } = await session.run('Write to ann@example.org.');
      await session.rewind({ before: messages[0]!.id });
    }
    expect(given).toEqual(['ann@example.org', 'bob@example.org', 'ann@example.org', 'bob@example.org']);
    // The last answer has none.
    expect(asked.requests).toHaveLength(3);
  });

  it('are not issued again after a rewind, so no approval and no cached result passes to another value', async () => {
    const { given, mail } = echo((to) => `Sent to ${to.length} characters.`);
    const asked = scriptedModel(
      [
        ({ messages }) => {
          const last = textOf(messages.at(-1)!);
          const to = /<EMAIL_\d+>/.exec(last)?.[0];
          return to ? toolCalls({ name: 'mail', args: { to } }) : text(last);
        },
      ],
      { repeat: true },
    );
    const middleware = [approval(), tokenize(), toolCache({ tools: ['mail'] })];
    const session = new Agent({ model: asked, tools: [mail], middleware }).session('s');
    const onRequest = () => ({ type: 'approve', remember: 'arguments' }) as const;
    const first = await session.run('Write to ann@example.org.', { onRequest });
    await session.rewind({ before: first.messages[0]!.id });
    const second = await session.run('Write to bob@office.example.org.');
    expect(second.pending).toMatchObject([{ arguments: '{"to":"<EMAIL_2>"}' }]);
    const { text: answer } = await session.resume({
      answers: { [second.pending[0]!.id]: { type: 'approve' } },
    });
    expect(answer).toBe('Sent to 22 characters.');
    expect(given).toEqual(['ann@example.org', 'bob@office.example.org']);
  });

  it.each(['tenant', 'session'] as const)(
    'are not remembered for other sessions: scope %s',
    async (scope) => {
      const memory = localMemory();
      const asked = scriptedModel(['Noted, <EMAIL_1>.', 'Hi.', 'Hi.']);
      const agent = new Agent({ model: asked, middleware: [tokenize(), memoryRecall({ memory, scope })] });
      await agent.session('a').run('The boss is ann@example.org.');
      await agent.session(scope === 'tenant' ? 'b' : 'a').run('I am carl@example.org. Who is the boss?');
      const notes = textOf(asked.requests[1]!.messages.find((one) => textOf(one).startsWith('Notes'))!);
      expect(notes).toContain(
        scope === 'tenant'
          ? 'The boss is [redacted].\n  Assistant: Noted, [redacted].'
          : 'The boss is <EMAIL_1>.',
      );
    },
  );
});
