/** One composition rule per decision hook, each tried at its edges. */
import {
  Agent,
  assistantMessage,
  attribution,
  defineMiddleware,
  defineState,
  isSyntheticMessage,
  type Message,
  type Middleware,
  type ModelContext,
  memoryStore,
  RULES,
  syntheticUserMessage,
  type ToolContext,
  type TurnContext,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { collect, failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { transcript, watched } from '../../../../../test/run-checks.js';

const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  execute: ({ text: said }) => said,
});
const call = (said: unknown = 'hi') => toolCalls({ name: 'echo', args: { text: said } });
const named = (name: string, hooks: Middleware): Middleware => ({ name, ...hooks });
const spansOf = (word: string) => (said: string) =>
  said.includes(word) ? [{ start: said.indexOf(word), end: said.indexOf(word) + word.length }] : [];
const resultText = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

describe('acceptMessage: chain, first block stops', () => {
  const append = (suffix: string): Middleware =>
    named(suffix, { acceptMessage: (message) => userMessage(`${textOf(message)}${suffix}`) });

  it('gives each hook the message as the one before left it', async () => {
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [append('a'), append('b')] }).run('>');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: >ab']);
  });

  it('keeps the message where a hook returns nothing', async () => {
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [{ acceptMessage: () => undefined }, append('b')] }).run('>');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: >b']);
  });

  it('stops the run at the first block, asks nobody after it, and appends nothing of the input', async () => {
    const later: string[] = [];
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([]),
      store,
      middleware: [
        named('gate', {
          acceptMessage: (message) =>
            textOf(message) === 'bad' ? { block: true, reason: 'No.' } : undefined,
        }),
        named('later', { acceptMessage: (message) => void later.push(textOf(message)) }),
      ],
    });
    const { result } = await watched(agent.session('s'), ['good', 'bad']);
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', message: 'No.', by: 'gate' },
    });
    expect(later).toEqual(['good']);
    expect(await agent.session('s').messages()).toEqual([]);
  });

  it('sees steering and follow-ups; what it refuses is left out and told', async () => {
    const agent = new Agent({
      model: scriptedModel([text('1'), text('2')]),
      store: memoryStore(),
      middleware: [
        named('gate', {
          acceptMessage: (message) =>
            textOf(message).startsWith('bad') ? { block: true } : userMessage(`${textOf(message)}!`),
        }),
      ],
    });
    const session = agent.session('s');
    await session.steer('bad steering');
    await session.followUp('good follow-up');
    const { result, events } = await watched(session, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go!',
      'assistant: 1',
      'user: good follow-up!',
      'assistant: 2',
    ]);
    expect(events.filter(({ type }) => type === 'custom')).toMatchObject([
      { name: 'message_refused', by: 'gate' },
    ]);
  });

  it('sees the prompt of a sub-agent', async () => {
    const seen: string[] = [];
    const child = new Agent({
      model: scriptedModel(['done']),
      middleware: [{ acceptMessage: (message) => void seen.push(textOf(message)) }],
    });
    const ask = tool({
      name: 'ask',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('sub prompt', { parent: ctx })).text,
    });
    await new Agent({ model: scriptedModel([toolCalls({ name: 'ask' }), text('end')]), tools: [ask] }).run(
      'go',
    );
    expect(seen).toEqual(['sub prompt']);
  });

  it('sees what a human answers', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        {
          acceptMessage: (message) => (textOf(message) === 'secret answer' ? userMessage('***') : undefined),
        },
        { beforeToolCall: () => ({ ask: { title: '?' } }) },
      ],
      onRequest: () => ({ type: 'respond', text: 'secret answer' }),
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['***']);
  });
});

describe('transformContext: chain', () => {
  it('takes a hook that returns nothing for one without an opinion, sync or not, run or streamed', async () => {
    const nothing: Middleware = {
      transformContext() {},
      async transformSystemPrompt() {},
      convertToLlm() {},
    };
    const something: Middleware = {
      transformContext: (messages) => [...messages, userMessage('more')],
      transformSystemPrompt: (prompt) => `${prompt} now`,
      convertToLlm: (messages) => [...messages, userMessage('converted')],
    };
    for (const middleware of [[nothing], [something, nothing], [nothing, something]]) {
      const model = scriptedModel(['ok', 'ok']);
      const agent = new Agent({ model, systemPrompt: 'Be brief', middleware });
      await agent.run('go');
      await agent.stream('go').result;
      const changed = middleware.length > 1;
      for (const request of model.requests) {
        expect(request.systemPrompt).toBe(changed ? 'Be brief now' : 'Be brief');
        expect(request.messages.map(textOf)).toEqual(changed ? ['go', 'more', 'converted'] : ['go']);
      }
    }
  });

  it('keeps what a hook that returns nothing assigned to its context', async () => {
    const model = scriptedModel(['ok']);
    const assigning: Middleware = {
      transformContext(_, ctx) {
        ctx.settings = { temperature: 0 };
      },
    };
    await new Agent({ model, middleware: [assigning] }).run('go');
    expect(model.requests[0]?.settings).toMatchObject({ temperature: 0 });
  });

  it('gives each hook the output of the one before and never touches the history', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({
      model,
      middleware: [
        named('one', { transformContext: (messages) => [...messages, userMessage('one')] }),
        named('two', {
          transformContext: (messages) => [...messages, userMessage(`two after ${messages.length}`)],
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: go', 'user: one', 'user: two after 2']);
    expect(transcript(result.messages)).toEqual(['user: go', 'assistant: ok']);
  });

  it('works without any hook, with one, and with one that returns what it was given', async () => {
    for (const middleware of [[], [{ transformContext: (messages: readonly Message[]) => messages }]]) {
      const model = scriptedModel(['ok']);
      await new Agent({ model, middleware }).run('go');
      expect(transcript(model.requests[0]!.messages)).toEqual(['user: go']);
    }
  });

  it('drops orphaned calls and results from the request only, and reports who caused it', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        named('innocent', { transformContext: (messages) => [userMessage('note'), ...messages] }),
        named('cutter', {
          transformContext: (messages) => messages.filter(({ role }) => role !== 'assistant'),
        }),
        named('late', { transformContext: (messages) => [...messages, userMessage('end')] }),
      ],
    });
    const { result, events } = await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual(['user: note', 'user: go', 'user: end']);
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'assistant: end',
    ]);
    expect(result.changes.filter(({ what }) => what.includes('without'))).toMatchObject([
      { by: 'cutter', turn: 2 },
    ]);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'orphans_dropped',
      data: { by: ['cutter'], calls: ['call_1'] },
    });
  });

  it('drops a call whose result was cut, and keeps the text beside it', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { text: 'x' }, text: 'Let me see.' }),
      text('end'),
    ]);
    const agent = new Agent({
      model,
      tools: [echo],
      middleware: [
        named('cutter', { transformContext: (messages) => messages.filter(({ role }) => role !== 'tool') }),
      ],
    });
    await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual(['user: go', 'assistant: Let me see.']);
  });
});

describe('transformSystemPrompt: chain', () => {
  it('gives each hook the prompt of the one before', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({
      model,
      systemPrompt: 'a',
      middleware: [
        { transformSystemPrompt: (prompt) => `${prompt}b` },
        { transformSystemPrompt: async (prompt) => `${prompt}c` },
      ],
    });
    await agent.run('go');
    expect(model.requests[0]!.systemPrompt).toBe('abc');
  });
});

describe('convertToLlm: last wins', () => {
  it('runs only the last one', async () => {
    const model = scriptedModel(['ok']);
    const first: number[] = [];
    const agent = new Agent({
      model,
      middleware: [
        named('first', {
          convertToLlm: (messages) => {
            first.push(1);
            return messages;
          },
        }),
        named('last', { convertToLlm: () => [userMessage('converted')] }),
      ],
    });
    await agent.run('go');
    expect(first).toEqual([]);
    expect(transcript(model.requests[0]!.messages)).toEqual(['user: converted']);
  });

  it('runs innermost, once per attempt, after every layer, with the model really called', async () => {
    const second = scriptedModel(['ok'], { id: 'second' });
    const seen: string[] = [];
    const agent = new Agent({
      model: scriptedModel([failWith(new Error('down'))], { id: 'first' }),
      middleware: [
        named('convert', {
          convertToLlm: (messages, ctx) => {
            seen.push(`${ctx.model.id}: ${transcript(messages).join()}`);
            return messages;
          },
        }),
        named('fallback', {
          onError: (ctx) => {
            (ctx as ModelContext).model = second;
            return 'fallback';
          },
        }),
        named('inner', {
          beforeModel: (ctx) => {
            ctx.messages = [...ctx.messages, userMessage('by a layer')];
          },
        }),
      ],
    });
    await agent.run('go');
    expect(seen).toEqual(['first: user: go,user: by a layer', 'second: user: go,user: by a layer']);
  });
});

describe('resolveToolCall: first answer wins', () => {
  const rename = (name: string, to: string): Middleware =>
    named(name, { resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, id: 'forged', name: to } }) });

  it('takes the first answer, before validation, and keeps the id of the call', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ehco', args: { text: 'typo' }, id: 'c1' }), text('end')]),
      tools: [echo],
      middleware: [{ resolveToolCall: () => undefined }, rename('fixes', 'echo'), rename('never', 'nothing')],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ toolCallId: 'c1', toolName: 'ehco', isError: false });
    expect(resultText(result.messages)).toEqual(['typo']);
  });

  it('may bring a tool that is in no plan', async () => {
    const deferred = tool({
      name: 'deferred',
      description: '',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => n + 1,
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'deferred', args: { n: 41 } }), text('end')]),
      middleware: [{ resolveToolCall: (toolCall) => ({ toolCall, tool: deferred }) }],
    });
    expect(resultText((await watched(agent, 'go')).result.messages)).toEqual(['42']);
  });

  it('cannot smuggle arguments past validation', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { resolveToolCall: (toolCall) => ({ toolCall: { ...toolCall, arguments: '{"text":1}' } }) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ isError: true });
    expect(resultText(result.messages)[0]).toContain('Invalid arguments for "echo"');
  });
});

describe('beforeToolCall: first block stops', () => {
  it('answers a blocked call with its reason as an error, and asks nobody after it', async () => {
    const ran: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute: () => ran.push('tool') })],
      middleware: [
        named('allows', { beforeToolCall: () => void ran.push('allows') }),
        named('blocks', { beforeToolCall: () => ({ block: true, reason: 'Not today.' }) }),
        named('after', { beforeToolCall: () => void ran.push('after') }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(ran).toEqual(['allows']);
    expect(result.messages[2]).toMatchObject({ isError: true, content: [{ text: 'Not today.' }] });
    expect(result.changes).toMatchObject([{ by: 'blocks', what: 'blocked echo' }]);
  });

  it('judges the whole batch in call order before anything executes', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'echo', args: { text: 'a' } }, { name: 'echo', args: { text: 'b' }, id: 'b' }),
        text('end'),
      ]),
      tools: [tool({ ...echoOptions(), execute: ({ text: said }) => order.push(`run ${said}`) })],
      middleware: [
        {
          beforeToolCall: async ({ args }) => {
            await Promise.resolve();
            order.push(`judge ${args.text}`);
          },
        },
      ],
    });
    await watched(agent, 'go');
    expect(order).toEqual(['judge a', 'judge b', 'run a', 'run b']);
  });

  it('does not end the chain at an ask: a later block wins and nobody is asked', async () => {
    let asked = 0;
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: () => ({ ask: { title: 'May I?' } }) },
        { beforeToolCall: () => ({ block: true, reason: 'Never.' }) },
      ],
      onRequest: () => {
        asked++;
        return { type: 'approve' };
      },
    });
    const { result } = await watched(agent, 'go');
    expect(asked).toBe(0);
    expect(resultText(result.messages)).toEqual(['Never.']);
  });

  it('answers a call with { result } instead of running it, unless a later hook blocks', async () => {
    const run = async (...later: Middleware[]) => {
      const agent = new Agent({
        model: scriptedModel([call(), text('end')]),
        tools: [echo],
        middleware: [
          {
            beforeToolCall: () => ({ result: toolResult({ content: 'preset', details: { from: 'cache' } }) }),
          },
          ...later,
        ],
      });
      return (await watched(agent, 'go')).result.messages[2];
    };
    expect(await run()).toMatchObject({
      isError: false,
      content: [{ text: 'preset' }],
      details: { from: 'cache' },
    });
    expect(await run({ beforeToolCall: () => ({ block: true, reason: 'No.' }) })).toMatchObject({
      isError: true,
    });
    expect(await run({ beforeToolCall: () => ({ result: 'second' }) })).toMatchObject({
      content: [{ text: 'preset' }],
    });
  });

  it('validates rewritten arguments again, as raw input', async () => {
    const parsed: unknown[] = [];
    const double = tool({
      name: 'echo',
      description: '',
      input: z.object({ text: z.string().transform((said) => said + said) }),
      execute: ({ text: said }) => parsed.push(said) && said,
    });
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [double],
      middleware: [
        {
          beforeToolCall: (ctx) =>
            ctx.revision === 0 ? { args: { text: `${(ctx.rawArgs as { text: string }).text}b` } } : undefined,
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['abab']);
  });

  it('blocks a call whose rewritten arguments are invalid', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [named('breaks', { beforeToolCall: () => ({ args: { text: 5 } }) })],
    });
    const { result } = await watched(agent, 'go');
    expect(result.messages[2]).toMatchObject({ isError: true });
    expect(resultText(result.messages)[0]).toMatch(
      /"breaks" wrote were refused.\nInvalid arguments for "echo":\ntext:/,
    );
  });

  it('runs the hooks before the rewriter again with ctx.revision > 0, and the rewriter itself only once', async () => {
    const seen: string[] = [];
    const note = (name: string) => (ctx: ToolContext) =>
      void seen.push(`${name} ${ctx.revision} ${ctx.args.text}`);
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: note('first') },
        {
          beforeToolCall: (ctx) => {
            note('rewriter')(ctx);
            return { args: { text: `${ctx.args.text}!` } };
          },
        },
        { beforeToolCall: note('last') },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(seen).toEqual(['first 0 a', 'rewriter 0 a', 'first 1 a!', 'last 1 a!']);
    expect(resultText(result.messages)).toEqual(['a!']);
  });

  it('lets a hook before the rewriter block what the rewriter wrote', async () => {
    const agent = new Agent({
      model: scriptedModel([call('fine'), text('end')]),
      tools: [echo],
      middleware: [
        {
          beforeToolCall: ({ args }) => (args.text === 'evil' ? { block: true, reason: 'Evil.' } : undefined),
        },
        { beforeToolCall: () => ({ args: { text: 'evil' } }) },
      ],
    });
    expect(resultText((await watched(agent, 'go')).result.messages)).toEqual(['Evil.']);
  });

  it('forgets the ask and the result of a hook that thinks otherwise about rewritten arguments', async () => {
    const agent = new Agent({
      model: scriptedModel([call('a'), text('end')]),
      tools: [echo],
      middleware: [
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { result: 'stale' } : undefined) },
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { ask: {} } : undefined) },
        { beforeToolCall: () => ({ args: { text: 'b' } }) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.status).toBe('done');
    expect(resultText(result.messages)).toEqual(['b']);
  });

  it('allows 8 rewrites and blocks at the ninth', async () => {
    const rewriting = (times: number) => {
      let done = 0;
      const more = (): Middleware => ({
        beforeToolCall: (ctx) => (done++ < times ? { args: { text: `${ctx.args.text}.` } } : undefined),
      });
      return new Agent({
        model: scriptedModel([call(''), text('end')]),
        tools: [echo],
        middleware: [more(), more()],
      });
    };
    expect(resultText((await watched(rewriting(8), 'go')).result.messages)).toEqual(['........']);
    const { result } = await watched(rewriting(Number.POSITIVE_INFINITY), 'go');
    expect(resultText(result.messages)).toEqual(['Not run: its arguments were rewritten more than 8 times.']);
  });

  it('has guards judge what a hook rewrote', async () => {
    const ran: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([call('fine'), text('end')]),
      tools: [tool({ ...echoOptions(), execute: (args) => ran.push(args) })],
      middleware: [
        named('guard', {
          guard: {
            on: ['tool-args'],
            judge: ({ text: said }) =>
              said.includes('evil') ? { type: 'deny', reason: 'Denied.' } : undefined,
          },
        }),
        { beforeToolCall: (ctx) => (ctx.revision === 0 ? { args: { text: 'evil' } } : undefined) },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(ran).toEqual([]);
    expect(resultText(result.messages)[0]).toContain('Denied.');
  });

  it('takes arguments a hook assigns like those it returns: validated once, judged by all', async () => {
    const seen: unknown[] = [];
    const count = tool({
      name: 'count',
      description: '',
      input: z.object({ n: z.string().transform(Number) }),
      execute: ({ n }) => seen.push(n) && typeof n,
    });
    const run = async (n: unknown, refuse = false) => {
      seen.length = 0;
      const middleware: Middleware[] = [
        named('first', {
          beforeToolCall: (ctx) => {
            seen.push(ctx.args);
            return refuse && ctx.revision > 0 ? { block: true, reason: 'no' } : undefined;
          },
        }),
        named('writer', {
          beforeToolCall: (ctx) => {
            ctx.args = { n };
          },
        }),
      ];
      const model = scriptedModel([toolCalls({ name: 'count', args: { n: '1' } }), 'end']);
      return resultText(
        (await watched(new Agent({ model, tools: [count], middleware }), 'go')).result.messages,
      );
    };
    expect(await run('5')).toEqual(['number']);
    expect(seen).toEqual([{ n: 1 }, { n: 5 }, 5]);
    expect(await run('5', true)).toEqual(['no']);
    expect((await run(5))[0]).toContain('the arguments that "writer" wrote were refused');
    expect(seen).toEqual([{ n: 1 }]);
  });

  it.each<[string, (ctx: ToolContext) => ReturnType<NonNullable<Middleware['beforeToolCall']>>]>([
    ['refuses the call', () => ({ block: true, reason: 'no' })],
    [
      'throws',
      () => {
        throw new Error('broken');
      },
    ],
    ['writes without end', () => undefined],
  ])('journals nothing that a hook assigned and no guard has judged: it %s', async (_, answer) => {
    const store = memoryStore();
    const writer: Middleware = {
      beforeToolCall: (ctx) => {
        ctx.args = { text: 'secret' };
        return answer(ctx);
      },
    };
    const middleware = [
      named('guard', { guard: { on: ['tool-args'], find: spansOf('secret') } }),
      named('one', writer),
      named('two', writer),
    ];
    const agent = new Agent({ model: scriptedModel([call(), 'end']), tools: [echo], middleware, store });
    const { result, events } = await watched(agent.session('s'), 'go');
    expect(resultText(result.messages)).toHaveLength(1);
    expect(JSON.stringify([await store.read('s', 1), events])).not.toContain('secret');
  });

  it('does not parse parsed arguments again that a hook hands back', async () => {
    const count = tool({
      name: 'count',
      description: '',
      input: z.object({ n: z.number().transform((n) => n + 1) }),
      execute: ({ n }) => n,
    });
    const model = scriptedModel([toolCalls({ name: 'count', args: { n: 1 } }), 'end']);
    const middleware = [named('same', { beforeToolCall: (ctx) => ({ args: ctx.args }) })];
    const { result } = await watched(new Agent({ model, tools: [count], middleware }), 'go');
    expect(resultText(result.messages)).toEqual(['2']);
  });

  it.each([
    ['result', 'beforeToolCall'],
    ['skip', 'beforeToolCall'],
    ['result', 'resolveToolCall'],
    ['skip', 'resolveToolCall'],
  ])(
    'says so where a hook sets ctx.%s in %s, and blames no layer or other hook for it',
    async (field, hook) => {
      const setter = named('setter', {
        [hook]: (...given: unknown[]) => {
          const ctx = given.at(-1) as ToolContext;
          if (field === 'skip') ctx.skip = true;
          ctx.result = toolResult({ content: 'preset' });
        },
      });
      const other = named('other', { beforeTool: () => {}, beforeToolCall: () => undefined });
      for (const middleware of [[setter], [setter, other]]) {
        const model = scriptedModel([call(), 'end']);
        const { result } = await watched(new Agent({ model, tools: [echo], middleware }), 'go');
        expect(resultText(result.messages)[0]).toContain(`middleware "setter" failed: ${hook} of "setter"`);
        const open = { ...setter, onFail: 'open' as const };
        const again = scriptedModel([call(), 'end']);
        const skipped = new Agent({
          model: again,
          tools: [echo],
          middleware: [open, ...middleware.slice(1)],
        });
        expect(resultText((await skipped.run('go')).messages)).toEqual(['hi']);
      }
    },
  );

  it('turns an exception into an error result of that call; its siblings run', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'echo', args: { text: 'a' } }, { name: 'echo', args: { text: 'b' }, id: 'b' }),
        text('end'),
      ]),
      tools: [echo],
      middleware: [
        named('fragile', {
          beforeToolCall: ({ args }) => {
            if (args.text === 'a') throw new Error('broken');
          },
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.status).toBe('done');
    expect(resultText(result.messages)).toEqual([
      '"echo" was not completed: middleware "fragile" failed: broken',
      'b',
    ]);
  });

  it("skips a hook with onFail: 'open' that throws or returns the wrong shape", async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        { name: 'throws', onFail: 'open', beforeToolCall: () => Promise.reject(new Error('down')) },
        { name: 'odd', onFail: 'open', beforeToolCall: () => ({ blok: true }) as never },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(resultText(result.messages)).toEqual(['hi']);
    expect(result.changes.map(({ by }) => by)).toEqual(['throws', 'odd']);
  });
});

describe('afterToolCall: merge by field, later wins', () => {
  const after = (patch: object, seen?: unknown[]): Middleware => ({
    afterToolCall: (ctx) => {
      seen?.push(ctx.result);
      return patch;
    },
  });
  const run = async (
    middleware: Middleware[],
    execute: () => unknown = () => toolResult({ content: 'raw', details: { a: 1 } }),
  ) => {
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute })],
      middleware,
    });
    return (await watched(agent, 'go')).result.messages[2]!;
  };

  it('merges field by field, and later hooks see the merge so far', async () => {
    const seen: { content: unknown; details?: unknown }[] = [];
    const message = await run([
      after({ details: { rich: true } }),
      after({ content: 'clean' }, seen),
      after({ isError: true }, seen),
    ]);
    expect(message).toMatchObject({
      content: [{ type: 'text', text: 'clean' }],
      details: { rich: true },
      isError: true,
    });
    expect(seen).toMatchObject([
      { content: [{ text: 'raw' }], details: { rich: true } },
      { content: [{ text: 'clean' }], details: { rich: true } },
    ]);
  });

  it('keeps a field that is undefined and lets null clear the details', async () => {
    expect(await run([after({ content: undefined, details: undefined, isError: undefined })])).toMatchObject({
      content: [{ text: 'raw' }],
      details: { a: 1 },
      isError: false,
    });
    expect(await run([after({ details: null })])).not.toHaveProperty('details');
  });

  it('takes content as text, as a list and as nothing', async () => {
    const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' };
    expect(await run([after({ content: [image] })])).toMatchObject({ content: [image] });
    expect(await run([after({ content: [] })])).toMatchObject({ content: [] });
  });

  it('fires for blocked, skipped and failed calls', async () => {
    const fired: string[] = [];
    const note = named('note', {
      afterToolCall: (ctx) => void fired.push(`${ctx.blocked} ${ctx.isError} ${textOf(ctx.result!)}`),
    });
    await run([note, { beforeToolCall: () => ({ block: true, reason: 'blocked' }) }]);
    await run([note, { beforeToolCall: () => ({ result: 'preset' }) }]);
    await run([
      note,
      {
        beforeTool: (ctx) => {
          ctx.skip = true;
          ctx.result = toolResult({ content: 'skipped' });
        },
      },
    ]);
    await run([note], () => {
      throw new Error('failed');
    });
    expect(fired).toEqual([
      'true true blocked',
      'false false preset',
      'false false skipped',
      'false true "echo" failed: failed',
    ]);
  });

  it('fires for unknown tools and bad arguments', async () => {
    const fired: string[] = [];
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'nope' }, { name: 'echo', args: '{', id: 'c2' }, { name: 'echo', id: 'c3' }),
        text('end'),
      ]),
      tools: [echo],
      middleware: [
        { afterToolCall: (ctx) => void fired.push(`${ctx.toolCall.name} ${ctx.blocked} ${ctx.tool?.name}`) },
      ],
    });
    await watched(agent, 'go');
    expect(fired).toEqual(['nope true undefined', 'echo true echo', 'echo true echo']);
  });

  it('sends the merged result to events, journal and history, and only the content to the model', async () => {
    const store = memoryStore();
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [echo],
      store,
      middleware: [after({ content: 'clean', details: { for: 'the app' } })],
    });
    const { result, events } = await watched(agent.session('s'), 'go');
    const merged = { content: [{ type: 'text', text: 'clean' }], details: { for: 'the app' } };
    expect(result.messages[2]).toMatchObject(merged);
    expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject({ message: merged });
    const entries = await store.read('s', 1);
    expect(entries.find(({ type }) => type === 'tool_finished')).toMatchObject({ message: merged });
    expect(JSON.stringify(entries)).not.toContain('"hi"}');
    expect(model.requests[1]!.messages[2]).toMatchObject({ content: merged.content });
  });

  it('withholds the content when a hook fails', async () => {
    const message = await run([
      named('cleaner', {
        afterToolCall: () => {
          throw new Error('cannot clean');
        },
      }),
    ]);
    expect(message).toMatchObject({
      isError: true,
      content: [{ text: '"echo" was not completed: middleware "cleaner" failed: cannot clean' }],
    });
    expect(JSON.stringify(message)).not.toContain('raw');
  });

  it.each<[string, unknown, string]>([
    ['text', 'mine', 'mine'],
    ['JSON', { a: 1 }, '{"a":1}'],
    ['a result', toolResult({ content: 'mine', details: 1 }), 'mine'],
    ['nothing', undefined, 'middleware "setter" failed: afterToolCall of "setter": it left no result.'],
    ['what is no JSON', 1n, 'middleware "setter" failed'],
  ])('takes a result that is assigned like that of a layer: %s', async (_, value, expected) => {
    for (const wait of [false, true]) {
      const setter = named('setter', {
        afterToolCall: (ctx) => {
          ctx.result = value as never;
          return wait ? Promise.resolve(undefined) : undefined;
        },
      });
      const agent = new Agent({ model: scriptedModel([call(), 'end']), tools: [echo], middleware: [setter] });
      const { result } = await watched(agent, 'go');
      expect(result.status).toBe('done');
      expect(resultText(result.messages)[0]).toContain(expected);
      expect(resultText(result.messages)[0]).not.toContain('hi');
    }
  });

  it('may end the run with terminate', async () => {
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [after({ terminate: true })],
    });
    expect((await watched(agent, 'go')).result).toMatchObject({ status: 'done', turns: 1 });
  });
});

describe('afterModelResponse: chain with merge', () => {
  it('gives each hook the response of the one before; the last one is kept', async () => {
    const seen: string[] = [];
    const add = (suffix: string): Middleware => ({
      afterModelResponse: (response) => {
        seen.push(textOf(response));
        return {
          response: { ...response, content: [{ type: 'text', text: `${textOf(response)}${suffix}` }] },
        };
      },
    });
    const agent = new Agent({
      model: scriptedModel(['a']),
      middleware: [add('b'), { afterModelResponse: () => undefined }, add('c')],
    });
    const { result, shown } = await watched(agent, 'go');
    expect(seen).toEqual(['a', 'ab']);
    expect(result.text).toBe('abc');
    expect([...shown.values()]).toEqual(['abc']);
  });

  it('gives each hook a frozen `ctx.message` that is the response of the one before', async () => {
    const seen: unknown[] = [];
    const look = named('look', {
      afterModelResponse: (response, { message, toolResults }) => {
        seen.push([textOf(response), textOf(message!), message!.id]);
        expect([message, message!.content, toolResults].every(Object.isFrozen)).toBe(true);
      },
    });
    const swap = named('swap', { afterModelResponse: () => ({ response: assistantMessage('a SECRET') }) });
    const guard = named('guard', { guard: { on: ['output'], find: spansOf('SECRET') } });
    const sink = { ...look, name: 'sink', sink: true };
    const { messages } = await new Agent({
      model: scriptedModel(['hi']),
      middleware: [look, swap, look, sink, guard],
    }).run('go');
    const { id } = messages[1]!;
    expect(seen).toEqual([
      ['hi', 'hi', id],
      ['a SECRET', 'a SECRET', id],
      ['a [redacted]', 'a [redacted]', id],
    ]);
  });

  it('fires before message_end and before any tool', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [tool({ ...echoOptions(), execute: () => order.push('tool') })],
      middleware: [{ afterModelResponse: () => void order.push('hook') }],
      observers: [
        (event) =>
          void (
            event.type === 'message_end' &&
            event.message?.role === 'assistant' &&
            order.push('message_end')
          ),
      ],
    });
    await agent.run('go');
    await agent.observersIdle();
    expect(order.filter((step) => step !== 'message_end')).toEqual(['hook', 'tool', 'hook']);
  });

  it('concatenates injected messages, stamps user messages synthetic, and puts them after the tool results', async () => {
    let first = true;
    const inject = (name: string, message: Message): Middleware =>
      named(name, { afterModelResponse: () => (first ? { injectMessages: [message] } : undefined) });
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [
        inject('one', userMessage('plain', { mine: 1 })),
        inject('two', syntheticUserMessage('marked', { source: 'elsewhere' })),
        {
          afterModelResponse: () => {
            first = false;
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'user: plain',
      'user: marked',
      'assistant: end',
    ]);
    expect(result.messages[3]!.metadata).toEqual({ mine: 1, synthetic: true, source: 'one' });
    expect(result.messages[4]!.metadata).toEqual({ synthetic: true, source: 'elsewhere' });
    expect(result.messages.map(isSyntheticMessage)).toEqual([false, false, false, true, true, false]);
  });

  it("lets the last decision win: an explicit 'natural' overrides, an absent one has no opinion", async () => {
    const decide = (decision?: 'natural' | 'stop'): Middleware =>
      named(`says ${decision}`, { afterModelResponse: () => ({ decision }) });
    const run = async (...middleware: Middleware[]) => {
      const agent = new Agent({ model: scriptedModel([call(), text('end')]), tools: [echo], middleware });
      return (await watched(agent, 'go')).result;
    };
    expect(await run(decide('stop'), decide('natural'))).toMatchObject({ status: 'done', turns: 2 });
    expect(await run(decide('stop'), decide())).toMatchObject({
      status: 'stopped',
      turns: 1,
      stop: { reason: 'stopped', by: 'says stop' },
    });
    expect(await run(decide('natural'), decide('stop'))).toMatchObject({ status: 'stopped', turns: 1 });
  });

  it('keeps injected messages over a suspension', async () => {
    const store = memoryStore();
    const middleware: Middleware[] = [
      named('nudge', {
        afterModelResponse: (response) =>
          response.content.some(({ type }) => type === 'tool-call')
            ? { injectMessages: [userMessage('after the result')] }
            : undefined,
      }),
      named('asks', { beforeToolCall: () => ({ ask: {} }) }),
    ];
    const agent = () => new Agent({ model: scriptedModel([text('end')]), tools: [echo], store, middleware });
    const first = new Agent({ model: scriptedModel([call()]), tools: [echo], store, middleware });
    const { result } = await watched(first.session('s'), 'go');
    expect(result.status).toBe('suspended');
    await agent()
      .session('s')
      .resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
    const messages = await agent().session('s').messages();
    expect(transcript(messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'user: after the result',
      'assistant: end',
    ]);
    expect(isSyntheticMessage(messages[3]!)).toBe(true);
  });
});

describe('shouldStopAfterTurn: any true', () => {
  it('stops at the first true and asks nobody after it', async () => {
    const later: number[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [
        { shouldStopAfterTurn: () => false },
        { shouldStopAfterTurn: () => undefined },
        named('enough', { shouldStopAfterTurn: async () => true }),
        { shouldStopAfterTurn: () => later.push(1) > 0 },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result).toMatchObject({ status: 'stopped', turns: 1, stop: { reason: 'stopped', by: 'enough' } });
    expect(later).toEqual([]);
  });

  it('takes a reason and a message', async () => {
    const agent = new Agent({
      model: scriptedModel(['x']),
      middleware: [
        named('judge', { shouldStopAfterTurn: () => ({ reason: 'guardrail', message: 'Enough.' }) }),
      ],
    });
    expect((await watched(agent, 'go')).result.stop).toEqual({
      reason: 'guardrail',
      message: 'Enough.',
      by: 'judge',
    });
  });

  it("fires at every turn_end, loop turns included, and not after decision: 'stop'", async () => {
    const turns: number[] = [];
    const counted: Middleware = { shouldStopAfterTurn: (ctx) => void turns.push(ctx.turn) };
    const looping: Middleware = {
      afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { decision: 'loop_to_model' } : undefined),
    };
    await watched(
      new Agent({ model: scriptedModel(['a', call(), 'c']), tools: [echo], middleware: [counted, looping] }),
      'go',
    );
    expect(turns).toEqual([1, 2, 3]);
    turns.length = 0;
    await watched(
      new Agent({
        model: scriptedModel(['a']),
        middleware: [counted, { afterModelResponse: () => ({ decision: 'stop' }) }],
      }),
      'go',
    );
    expect(turns).toEqual([]);
  });

  it('sees the message and the results of the turn', async () => {
    const seen: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      middleware: [
        {
          shouldStopAfterTurn: (ctx) => {
            seen.push(transcript(ctx.newMessages), ctx.message?.id, ctx.toolResults.map(textOf));
            return true;
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(seen).toEqual([['user: go', 'assistant: <echo>', 'tool: hi'], result.messages[1]!.id, ['hi']]);
  });
});

describe('onRunEnd: concatenate', () => {
  it('injects the messages of all hooks together and goes on in the same run', async () => {
    let rounds = 0;
    const agent = new Agent({
      model: scriptedModel(['first', 'second']),
      middleware: [
        named('goal', { onRunEnd: () => (rounds++ === 0 ? [userMessage('try again')] : undefined) }),
        named('memory', { onRunEnd: () => (rounds === 1 ? [userMessage('remember')] : []) }),
      ],
    });
    const { result, types } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: first',
      'user: try again',
      'user: remember',
      'assistant: second',
    ]);
    expect(result.messages[2]!.metadata).toEqual({ synthetic: true, source: 'goal' });
    expect(result).toMatchObject({ status: 'done', turns: 2 });
    expect(types.filter((type) => type === 'agent_end')).toHaveLength(1);
  });

  it("ends with 'loop' at the 101st cycle", async () => {
    let fired = 0;
    const agent = new Agent({
      model: scriptedModel(['again'], { repeat: true }),
      limits: { turns: 1000 },
      middleware: [
        {
          onRunEnd: () => {
            fired++;
            return [userMessage('more')];
          },
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(fired).toBe(101);
    expect(result).toMatchObject({ status: 'stopped', turns: 101, stop: { reason: 'loop', by: 'kernel' } });
  });

  it("fires after decision: 'stop' and after shouldStopAfterTurn", async () => {
    const fired: string[] = [];
    const end: Middleware = { onRunEnd: () => void fired.push('end') };
    await watched(
      new Agent({
        model: scriptedModel(['a']),
        middleware: [end, { afterModelResponse: () => ({ decision: 'stop' }) }],
      }),
      'go',
    );
    await watched(
      new Agent({ model: scriptedModel(['a']), middleware: [end, { shouldStopAfterTurn: () => true }] }),
      'go',
    );
    expect(fired).toEqual(['end', 'end']);
  });
});

describe('explicit callables on the agent replace the composed hook', () => {
  it('runs only the explicit one, and explain() names those that no longer run', async () => {
    const ran: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [named('logger', { beforeToolCall: () => void ran.push('logger') })],
      beforeToolCall: () => void ran.push('explicit'),
    });
    await watched(agent, 'go');
    expect(ran).toEqual(['explicit']);
    expect(agent.explain().hazards).toMatchObject([{ id: 'hook-replaced', between: ['logger'] }]);
    expect(String(agent.explain())).toContain('never runs: logger');
  });

  it('replaces every rule of the table', async () => {
    const model = scriptedModel(['a', 'b']);
    const ran: string[] = [];
    let rounds = 0;
    const agent = new Agent({
      model,
      middleware: [
        {
          transformContext: () => [userMessage('never')],
          transformSystemPrompt: () => 'never',
          convertToLlm: () => [userMessage('never')],
          afterModelResponse: () => ({ decision: 'stop' as const }),
          shouldStopAfterTurn: () => true,
          onRunEnd: () => [userMessage('never')],
          acceptMessage: () => ({ block: true as const }),
        },
      ],
      acceptMessage: () => void ran.push('acceptMessage'),
      transformContext: (messages) => messages,
      transformSystemPrompt: () => 'explicit',
      convertToLlm: (messages) => messages,
      afterModelResponse: () => void ran.push('afterModelResponse'),
      shouldStopAfterTurn: () => false,
      onRunEnd: () => (rounds++ === 0 ? [userMessage('explicit')] : undefined),
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: a',
      'user: explicit',
      'assistant: b',
    ]);
    expect(result.messages[2]!.metadata).toEqual({ synthetic: true, source: 'agent' });
    expect(model.requests[0]!.systemPrompt).toBe('explicit');
    expect(ran).toEqual(['acceptMessage', 'afterModelResponse', 'afterModelResponse']);
  });

  it('refuses to replace the hook of a guard, unless `replaces` names it', () => {
    const guard = defineMiddleware({
      name: 'pii',
      guard: { on: ['output'], find: () => [] },
      beforeToolCall: () => undefined,
    });
    const options = { model: scriptedModel([]), middleware: [guard], beforeToolCall: () => undefined };
    expect(() => new Agent(options)).toThrow(
      expect.objectContaining({ code: 'GUARD_REPLACED', message: expect.stringContaining('"pii"') }),
    );
    expect(new Agent({ ...options, replaces: ['pii'] }).explain().hazards).toMatchObject([
      { id: 'hook-replaced' },
    ]);
  });

  it('accepts no layer hooks there', () => {
    expect(() => new Agent({ model: scriptedModel([]), beforeModel: () => undefined } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('`beforeModel`') }),
    );
  });
});

describe('hooks of all kinds', () => {
  it('fail the run with who threw, where a transform throws', async () => {
    const error = new Error('broken');
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [
        named('summary', {
          transformContext: () => {
            throw error;
          },
        }),
      ],
    });
    const { error: failure } = await watched(agent, 'go');
    expect(failure).toMatchObject({ code: 'MIDDLEWARE_ERROR', cause: error });
    expect(attribution(error)).toEqual({ middleware: 'summary', hook: 'transformContext' });
  });

  it("are skipped with onFail: 'open'", async () => {
    const fail = (): never => {
      throw new Error('down');
    };
    const open: Middleware = {
      name: 'open',
      onFail: 'open',
      acceptMessage: fail,
      transformContext: fail,
      transformSystemPrompt: fail,
      convertToLlm: fail,
      resolveToolCall: fail,
      beforeToolCall: fail,
      afterToolCall: fail,
      afterModelResponse: fail,
      shouldStopAfterTurn: fail,
      onRunEnd: fail,
      compact: fail,
    };
    const agent = new Agent({
      model: scriptedModel([call(), text('end')]),
      tools: [echo],
      middleware: [open],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    const compacted = await session.compact();
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'assistant: end',
    ]);
    const changes = [...result.changes, ...compacted.changes];
    expect(new Set(changes.map(({ what }) => what.split(' ')[0]))).toEqual(new Set(Object.keys(RULES)));
  });

  it.each([false, true])(
    "leave nothing behind with onFail: 'open' that they assigned (async: %s)",
    async (wait) => {
      const cell = defineState({ name: 'seen', scope: 'session', initial: 'nothing' });
      const after =
        <C extends { state: ToolContext['state']; metadata: Record<string, unknown> }>(
          assign?: (ctx: C) => void,
        ) =>
        (...given: unknown[]): never => {
          const ctx = given.at(-1) as C;
          ctx.state.set(cell, 'mine');
          ctx.metadata.mine = true;
          assign?.(ctx);
          const error = new Error('down');
          if (wait) return Promise.reject(error) as never;
          throw error;
        };
      const prompt = (ctx: ModelContext): void => {
        ctx.systemPrompt = 'mine';
      };
      const output = (ctx: TurnContext): void => ctx.setOutput('mine');
      const open: Middleware = {
        name: 'open',
        onFail: 'open',
        state: [cell],
        acceptMessage: after(),
        transformContext: after(prompt),
        transformSystemPrompt: after(prompt),
        convertToLlm: after(prompt),
        resolveToolCall: after(),
        beforeToolCall: after((ctx: ToolContext) => {
          ctx.args = { text: 'mine' };
          ctx.timeoutMs = 1;
        }),
        afterToolCall: after((ctx: ToolContext) => {
          ctx.result = toolResult({ content: 'mine' });
        }),
        afterModelResponse: after(output),
        shouldStopAfterTurn: after(output),
        onRunEnd: after(output),
      };
      const model = scriptedModel([call(), text('end')]);
      const agent = new Agent({ model, systemPrompt: 'Be kind.', tools: [echo], middleware: [open] });
      const { result, events } = await watched(agent, 'go');
      expect(transcript(result.messages)).toEqual([
        'user: go',
        'assistant: <echo>',
        'tool: hi',
        'assistant: end',
      ]);
      expect(model.requests.map(({ systemPrompt }) => systemPrompt)).toEqual(['Be kind.', 'Be kind.']);
      expect(events.filter(({ type }) => type === 'state_change')).toEqual([]);
      expect(result.output).toBeUndefined();
    },
  );

  it.each<[string, keyof Middleware, (ctx: any) => unknown]>([
    [
      'a prompt that is none',
      'transformContext',
      (ctx: ModelContext) => {
        ctx.systemPrompt = 5 as never;
        return [userMessage('mine')];
      },
    ],
    [
      'a result before the call',
      'resolveToolCall',
      (ctx: ToolContext) => {
        ctx.result = toolResult({ content: 'mine' });
        return { toolCall: { ...ctx.toolCall, arguments: '{"text":"mine"}' } };
      },
    ],
    [
      'that the call is skipped',
      'beforeToolCall',
      (ctx: ToolContext) => {
        ctx.skip = true;
        return { args: { text: 'mine' } };
      },
    ],
    [
      'a result that is no JSON',
      'afterToolCall',
      (ctx: ToolContext) => {
        ctx.result = 1n as never;
        return { content: 'mine' };
      },
    ],
  ])("are skipped whole with onFail: 'open' where they assign %s", async (_, hook, assign) => {
    const cell = defineState({ name: 'seen', scope: 'session', initial: 'nothing' });
    for (const wait of [false, true]) {
      const open: Middleware = {
        name: 'open',
        onFail: 'open',
        state: [cell],
        [hook]: (...given: unknown[]) => {
          const ctx = given.at(-1) as ToolContext;
          ctx.state.set(cell, 'mine');
          const answer = assign(ctx);
          return wait ? Promise.resolve(answer) : answer;
        },
      };
      const model = scriptedModel([call(), text('end')]);
      const agent = new Agent({ model, systemPrompt: 'Be kind.', tools: [echo], middleware: [open] });
      const { result, events } = await watched(agent, 'go');
      expect(resultText(result.messages)).toEqual(['hi']);
      expect(model.requests.map(({ systemPrompt }) => systemPrompt)).toEqual(['Be kind.', 'Be kind.']);
      expect(JSON.stringify(model.requests)).not.toContain('mine');
      expect(events.filter(({ type }) => type === 'state_change')).toEqual([]);
      expect(result.changes).toContainEqual(
        expect.objectContaining({
          by: 'open',
          what: expect.stringContaining(`${hook} failed and was skipped`),
        }),
      );
    }
  });

  it('have a rule for each, and explain() prints it', () => {
    const hooks = Object.fromEntries(Object.keys(RULES).map((hook) => [hook, () => undefined]));
    const text = String(
      new Agent({ model: scriptedModel([]), middleware: [{ name: 'all', ...hooks }] }).explain(),
    );
    for (const [hook, { rule }] of Object.entries(RULES)) expect(text).toContain(`${hook} (${rule}): all`);
  });

  it('may be sync or async, and per-run middleware come after those of the agent', async () => {
    const order: string[] = [];
    const note = (name: string): Middleware =>
      named(name, {
        transformSystemPrompt: async (prompt) => {
          order.push(name);
          return prompt;
        },
      });
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [note('agent')] });
    await collect(agent.stream('go', { middleware: [note('run')] }));
    expect(order).toEqual(['agent', 'run']);
  });

  it('keep a replaced response in the history and the tokens of the original in the usage', async () => {
    const agent = new Agent({
      model: scriptedModel(['raw']),
      middleware: [{ afterModelResponse: () => ({ response: assistantMessage('other') }) }],
    });
    const { result } = await watched(agent, 'go');
    expect(result.text).toBe('other');
    expect(result.usage.totalTokens).toBe(15);
  });
});

function echoOptions() {
  return { name: 'echo', description: '', input: z.object({ text: z.string() }) };
}
