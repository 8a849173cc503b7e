import {
  Agent,
  type AgentEvent,
  type Context,
  defineMiddleware,
  defineState,
  type Guard,
  type Middleware,
  memoryStore,
  type Span,
  textOf,
  tool,
  toolResult,
  window,
} from 'allium';
import { toolCache } from 'allium/middleware';
import { chunks, collect, type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const EMAIL = /[a-z]+@[a-z]+\.org/g;
const PLACEHOLDER = /<EMAIL_\d+>/g;

/** Replaces e-mail addresses by placeholders, and gives the originals to the tools named. */
function tokenize(tools: readonly string[], more: Partial<Guard> = {}, answer = false): Middleware {
  const known = defineState<Record<string, string>>({
    name: 'known',
    scope: 'session',
    initial: {},
    hidden: true,
  });
  const placeholderOf = (email: string, { state }: Context): string => {
    const before = Object.entries(state.get(known)).find(([, original]) => original === email)?.[0];
    const made = before ?? `<EMAIL_${Object.keys(state.get(known)).length + 1}>`;
    if (!before) state.update(known, (all) => ({ ...all, [made]: email }));
    return made;
  };
  return defineMiddleware({
    name: 'tokenize',
    state: [known],
    guard: {
      on: ['input', 'output', 'tool-args', 'tool-result'],
      hold: window(30),
      find: (text, { context }) =>
        [...text.matchAll(EMAIL)].map((m) => ({
          start: m.index,
          end: m.index + m[0].length,
          replacement: placeholderOf(m[0], context),
        })),
      restore: {
        find(text, ctx): Span[] {
          if (ctx.for === 'tool' && !tools.includes(ctx.tool!)) return [];
          const originals = ctx.context.state.get(known);
          return [...text.matchAll(PLACEHOLDER)].flatMap((m) => {
            const replacement = originals[m[0]];
            return replacement === undefined
              ? []
              : { start: m.index, end: m.index + m[0].length, replacement };
          });
        },
        ...(answer && { answer: window(12) }),
      },
      ...more,
    },
  });
}

const got: unknown[] = [];
const contexts: unknown[] = [];
const send = tool({
  name: 'send',
  description: 'Sends a mail.',
  input: z.object({ to: z.array(z.email()), note: z.string().default('-') }),
  execute(args, ctx) {
    got.push(args);
    contexts.push(ctx.args, ctx.rawArgs);
    return toolResult({ content: `sent to ${args.to[0]}`, details: args });
  },
});
const log = tool({
  name: 'log',
  description: 'Logs.',
  input: z.any(),
  execute: (args) => {
    got.push(args);
    return 'ok';
  },
});

function agentOf(script: readonly Script[], ...middleware: Middleware[]) {
  got.length = 0;
  contexts.length = 0;
  const seen: AgentEvent[] = [];
  const model = scriptedModel(script);
  const store = memoryStore();
  const observers = [(event: AgentEvent) => void seen.push(event)];
  const agent = new Agent({ model, store, middleware, tools: [send, log], observers });
  return { agent, model, store, seen, session: agent.session('s') };
}

const withoutCells = (entries: readonly { type: string }[]): string =>
  JSON.stringify(entries.filter(({ type }) => type !== 'state'));

describe('originals for tools', () => {
  it('reach the tool that may have them, and nobody else', async () => {
    const layers: unknown[] = [];
    const watches = defineMiddleware({
      name: 'watches',
      wrapTool(ctx, next) {
        layers.push(ctx.args, ctx.toolCall);
        return next();
      },
      beforeToolCall: (ctx) => void layers.push(ctx.args),
    });
    const script = [
      toolCalls({ name: 'send', args: { to: ['<EMAIL_1>', '<EMAIL_2>'] } }),
      toolCalls({ name: 'log', args: { who: '<EMAIL_1>' } }),
      'Told <EMAIL_1>.',
    ];
    const { session, store, seen, model } = agentOf(script, watches, tokenize(['send']));
    const { events, result } = await collect(session.stream('Write to ann@x.org and bob@y.org'));
    expect(got).toEqual([{ to: ['ann@x.org', 'bob@y.org'], note: '-' }, { who: '<EMAIL_1>' }]);
    expect(result!.text).toBe('Told <EMAIL_1>.');
    expect(textOf(result!.messages.find(({ role }) => role === 'tool')!)).toBe('sent to <EMAIL_1>');
    const all = [events, seen, result, model.requests, layers, contexts];
    expect(JSON.stringify(all)).not.toMatch(/ann@|bob@/);
    expect(withoutCells(await store.read('s', 1))).not.toMatch(/ann@|bob@/);
  });

  it('reach any depth, keys too, and a placeholder that was never issued stays text', async () => {
    const args = { '<EMAIL_1>': [{ deep: 'to <EMAIL_1>, <EMAIL_7>' }] };
    const { session } = agentOf([toolCalls({ name: 'log', args }), 'done'], tokenize(['log']));
    await session.run('I am ann@x.org');
    expect(got).toEqual([{ 'ann@x.org': [{ deep: 'to ann@x.org, <EMAIL_7>' }] }]);
  });

  it('a placeholder that stands for nothing is validated as it is', async () => {
    const call = toolCalls({ name: 'send', args: { to: ['<EMAIL_9>'] } });
    const { session } = agentOf([call, 'done'], tokenize(['send']));
    const { messages } = await session.run('I am ann@x.org');
    expect(got).toEqual([]);
    expect(textOf(messages.find(({ role }) => role === 'tool')!)).toContain('Invalid arguments for "send"');
  });

  it('an original that does not fit the schema is reported without quoting it', async () => {
    const input = z.object({ a: z.string().startsWith('<') });
    const short = tool({ name: 'short', description: 'Short.', input, execute: () => 'no' });
    const model = scriptedModel([toolCalls({ name: 'short', args: { a: '<EMAIL_1>' } }), 'done']);
    const agent = new Agent({ model, middleware: [tokenize(['short'])], tools: [short] });
    const { messages, changes } = await agent.run('I am ann@x.org');
    const said = textOf(messages.find(({ role }) => role === 'tool')!);
    expect(said).toContain('the original value of a placeholder does not fit at a');
    expect(JSON.stringify([messages, changes])).not.toContain('ann@');
  });

  it('hold across a question and a resume, and the question shows the placeholder', async () => {
    const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'Send?' } }) });
    const script = [toolCalls({ name: 'send', args: { to: ['<EMAIL_1>'] } }), 'done'];
    const { session, agent } = agentOf(script, asks, tokenize(['send']));
    const first = await session.run('Write to ann@x.org');
    expect(first.status).toBe('suspended');
    expect(JSON.stringify(first)).not.toContain('ann@');
    expect(first.pending[0]!.arguments).toContain('<EMAIL_1>');
    const answers = { [first.pending[0]!.id]: { type: 'approve' as const } };
    await expect(agent.session('s').resume({ answers })).resolves.toMatchObject({ status: 'done' });
    expect(got).toEqual([{ to: ['ann@x.org'], note: '-' }]);
  });

  it('a restore that fails runs nothing, unless its middleware fails open', async () => {
    for (const onFail of ['closed', 'open'] as const) {
      const { guard, ...rest } = tokenize(['log']);
      const restore = {
        find: () => {
          throw new Error('no');
        },
      };
      const broken = defineMiddleware({ ...rest, guard: { ...guard!, restore }, onFail });
      const { session } = agentOf([toolCalls({ name: 'log', args: { a: '<EMAIL_1>' } }), 'done'], broken);
      await session.run('I am ann@x.org');
      expect(got).toEqual(onFail === 'open' ? [{ a: '<EMAIL_1>' }] : []);
    }
  });
});

describe('originals for whoever reads the answer', () => {
  const shown = (events: readonly AgentEvent[]): string => {
    let text = '';
    for (const event of events) {
      if (event.type === 'message_reset') text = '';
      if (event.type === 'message_update' && event.delta.type === 'text') text += event.delta.text;
    }
    return text;
  };

  it.each([1, 2, 5, 100])(
    'are in the events of the stream and in the result, in pieces of %i',
    async (size) => {
      const said = 'I wrote to <EMAIL_1>, and then again to <EMAIL_1>; not to <EMAIL_3> < or <EMAIL_1>';
      const pieces = said.match(new RegExp(`.{1,${size}}`, 'g'))!;
      const { session, seen, store } = agentOf([chunks(...pieces)], tokenize([], {}, true));
      const { events, result } = await collect(session.stream('I am ann@x.org'));
      const expected = said.replaceAll('<EMAIL_1>', 'ann@x.org');
      expect(shown(events)).toBe(expected);
      expect(result!.text).toBe(expected);
      const ends = events.flatMap((one) =>
        one.type === 'message_end' && one.message ? textOf(one.message) : [],
      );
      expect(ends).toEqual(['I am <EMAIL_1>', expected]);
      expect(events.at(-1)).toMatchObject({ type: 'agent_end', result: { text: expected } });
      expect(shown(seen)).toBe(said);
      expect(JSON.stringify(seen)).not.toContain('ann@');
      expect(withoutCells(await store.read('s', 1))).not.toContain('ann@');
      expect(textOf(result!.messages.at(-1)!)).toBe(said);
      expect(result!.changes.length).toBeGreaterThan(0);
    },
  );

  it('are there too for text that the guard replaced in the same answer', async () => {
    const { session, store } = agentOf(
      [chunks('Ask ', 'carl@z', '.org for it, he knows.')],
      tokenize([], {}, true),
    );
    const { events, result } = await collect(session.stream('Who?'));
    expect(result!.text).toBe('Ask carl@z.org for it, he knows.');
    expect(shown(events)).toBe(result!.text);
    expect(withoutCells(await store.read('s', 1))).not.toContain('carl@');
  });

  it('are in result.text of run(), and in the next run', async () => {
    const { session } = agentOf(['Hello <EMAIL_1>', 'Again <EMAIL_1>'], tokenize([], {}, true));
    await expect(session.run('I am ann@x.org')).resolves.toMatchObject({ text: 'Hello ann@x.org' });
    await expect(session.run('And?')).resolves.toMatchObject({ text: 'Again ann@x.org' });
  });

  it('are not there if nobody asked for them, nor in the answer of a sub-agent', async () => {
    const plain = agentOf(['Hello <EMAIL_1>'], tokenize([]));
    await expect(plain.session.run('I am ann@x.org')).resolves.toMatchObject({ text: 'Hello <EMAIL_1>' });
    const child = new Agent({ name: 'child', model: scriptedModel(['It is ann@x.org']) });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'child', args: { prompt: 'Who?' } }), 'done']),
      middleware: [tokenize([], {}, true)],
      tools: [child.asTool({ name: 'child', description: 'Asks.' })],
    });
    const { messages } = await agent.run('Ask');
    expect(textOf(messages.find(({ role }) => role === 'tool')!)).toBe('It is <EMAIL_1>');
  });

  it('a cache of tool results keeps sessions apart, because the same placeholder stands for different values', async () => {
    const call = toolCalls({ name: 'log', args: { who: '<EMAIL_1>' } });
    const { agent } = agentOf([call, 'a', call, 'b'], toolCache({ tools: ['log'] }), tokenize(['log']));
    await agent.session('one').run('I am ann@x.org');
    await agent.session('two').run('I am bob@y.org');
    expect(got).toEqual([{ who: 'ann@x.org' }, { who: 'bob@y.org' }]);
  });
});

describe('hidden cells', () => {
  it('are journaled but appear in no event', async () => {
    const { session, seen, store } = agentOf(['hi'], tokenize([]));
    await session.run('I am ann@x.org');
    expect(seen.filter(({ type }) => type === 'state_change')).toEqual([]);
    expect((await store.read('s', 1)).some(({ type }) => type === 'state')).toBe(true);
    expect(() => defineState({ name: 'a', scope: 'run', initial: 0, hidden: 'yes' as never })).toThrow(
      'hidden',
    );
  });
});

describe('restore', () => {
  it.each<[unknown, string]>([
    [{}, 'guard.restore.find'],
    [{ find: 1 }, 'guard.restore.find'],
    [{ find: () => [], hold: 1 }, 'It takes: find, answer.'],
    [{ find: () => [], answer: 5 }, 'window(n)'],
  ])('%o is refused', (restore, why) => {
    expect(() => agentOf([], tokenize([], { restore: restore as never }))).toThrow(why);
  });
});
