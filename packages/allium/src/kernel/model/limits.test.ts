/** Limits of the kernel: hard, shared with sub-agents, and a cached answer costs nothing. */
import {
  Agent,
  type AgentOptions,
  assistantMessage,
  type Middleware,
  type ModelRequest,
  memoryStore,
  textOf,
  tool,
} from 'allium';
import {
  chunks,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { agent, call, free, input, price, usage } from '../../../../../test/limits-setup.js';
import { deferred, settle, transcript, watch, watched } from '../../../../../test/run-checks.js';

describe('turns', () => {
  it('is 100 by default', async () => {
    const model = scriptedModel([call()], { repeat: true });
    const { result } = await watched(new Agent({ model, tools: [free] }), 'go');
    expect(result).toMatchObject({
      status: 'stopped',
      turns: 100,
      stop: { reason: 'max_turns', by: 'kernel' },
    });
    expect(model.requests).toHaveLength(100);
  });
  it('may be 0, 1 and overridden per run', async () => {
    expect((await watched(agent([], { limits: { turns: 0 } }), 'go')).result).toMatchObject({
      turns: 0,
      stop: { reason: 'max_turns' },
    });
    expect((await watched(agent([call()], { limits: { turns: 1 } }), 'go')).result.turns).toBe(1);
    expect(
      (
        await watched(agent([call(), call(), 'end'], { limits: { turns: 1 } }), 'go', {
          limits: { turns: 3 },
        })
      ).result.status,
    ).toBe('done');
  });
  it('goes on counting over a resume', async () => {
    const one = new Agent({
      model: scriptedModel([call(), call()]),
      tools: [free],
      store: memoryStore(),
      limits: { turns: 2 },
      middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
    });
    const first = await watched(one.session('s'), 'go');
    const second = await watch(
      one.session('s').resumeStream({ answers: { [first.result.pending[0]!.id]: { type: 'approve' } } }),
    );
    expect(second.result).toMatchObject({ status: 'suspended', turns: 2 });
    const third = await watch(
      one.session('s').resumeStream({ answers: { [second.result.pending[0]!.id]: { type: 'approve' } } }),
    );
    expect(third.result.stop.reason).toBe('max_turns');
  });
});

describe('toolCalls', () => {
  it('runs the calls that fit, answers the rest, and stops', async () => {
    const after: string[] = [];
    const { result } = await watched(
      agent([call(), call(3)], {
        limits: { toolCalls: 2 },
        middleware: [{ afterToolCall: (ctx) => void after.push(`${ctx.toolCall.id} ${ctx.blocked}`) }],
      }),
      'go',
    );
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'max_tool_calls', by: 'kernel' },
      turns: 2,
    });
    const not = 'tool: Not run: The limit on tool calls is used up.';
    expect(transcript(result.messages).slice(4)).toEqual(['tool: free', not, not]);
    // Calls that don't run have their result at once, before the one beside them that does.
    expect(after.map((line) => line.split(' ')[1])).toEqual(['false', 'true', 'true', 'false']);
  });
  it('of 0 runs none', async () => {
    const { result } = await watched(agent([call()], { limits: { toolCalls: 0 } }), 'go');
    expect(result.stop.reason).toBe('max_tool_calls');
  });
  it('that is exactly enough does not stop the run', async () => {
    expect((await watched(agent([call(2), 'end'], { limits: { toolCalls: 2 } }), 'go')).result.status).toBe(
      'done',
    );
  });
});

describe('tokens', () => {
  it('end the run before a call that cannot be afforded', async () => {
    const model = scriptedModel([call(), 'never'], { usage: usage(80, 15) });
    const { result } = await watched(new Agent({ model, tools: [free], limits: { tokens: 100 } }), 'go');
    expect(result).toMatchObject({
      status: 'stopped',
      turns: 1,
      stop: { reason: 'max_tokens', by: 'kernel' },
    });
    expect(result.usage.totalTokens).toBe(95);
  });
  it('cap the output of the model', async () => {
    const model = scriptedModel(['a']);
    await new Agent({ model, limits: { tokens: 100 } }).run('12345678');
    const { maxOutputTokens } = model.requests[0]!.settings;
    expect(maxOutputTokens).toBe(100 - 4);
    const small = scriptedModel(['a']);
    await new Agent({ model: small, limits: { tokens: 100 }, settings: { maxOutputTokens: 7 } }).run(
      '12345678',
    );
    expect(small.requests[0]!.settings.maxOutputTokens).toBe(7);
  });
  it('leave the settings alone without a limit, and with an infinite one', async () => {
    for (const limits of [{}, { tokens: Number.POSITIVE_INFINITY, costUsd: Number.POSITIVE_INFINITY }]) {
      const model = scriptedModel([call(), 'a']);
      await watched(new Agent({ model, tools: [free], limits }), 'go');
      expect(model.requests.map(({ settings }) => settings)).toEqual([{}, {}]);
    }
  });
  it('are corrected to what was really used', async () => {
    const model = scriptedModel([call(), call(), 'end'], { usage: usage(1, 1) });
    const { result } = await watched(new Agent({ model, tools: [free], limits: { tokens: 500 } }), 'go');
    expect(result.usage.totalTokens).toBe(6);
    expect(model.requests.map(({ settings }) => settings.maxOutputTokens! > 300)).toEqual([true, true, true]);
  });
  it('are given back when a call fails', async () => {
    const retry: Middleware = { onError: (ctx) => (ctx.attempt < 3 ? 'retry' : undefined) };
    const { result } = await watched(
      agent([failWith(new Error('1')), failWith(new Error('2')), 'ok'], {
        limits: { tokens: 60 },
        middleware: [retry],
      }),
      'go',
    );
    expect(result).toMatchObject({ status: 'done', usage: { totalTokens: 15 } });
  });
  it('count what middleware asks with ctx.generate', async () => {
    const helper = scriptedModel(['summary'], { usage: usage(40, 10) });
    const asks: Middleware = {
      beforeModel: async (ctx) => void (await ctx.generate(helper, { messages: 'Summarise.' })),
    };
    const { result } = await watched(
      new Agent({ model: scriptedModel(['a']), limits: { tokens: 55 }, middleware: [asks] }),
      'go',
    );
    expect(result).toMatchObject({ status: 'done', usage: { totalTokens: 65 } });
    const greedy = scriptedModel(['summary'], { usage: usage(50, 10) });
    const poor: Middleware = {
      beforeModel: async (ctx) => void (await ctx.generate(greedy, { messages: 'x' })),
    };
    const stopped = await watched(
      new Agent({ model: scriptedModel([]), limits: { tokens: 55 }, middleware: [poor] }),
      'go',
    );
    expect(stopped.result).toMatchObject({
      stop: { reason: 'max_tokens' },
      turns: 0,
      usage: { totalTokens: 60 },
    });
  });
});

describe('stop.by', () => {
  const through: Middleware = {
    name: 'through',
    wrapRun: (_, next) => next(),
    wrapModel: (_, next) => next(),
    wrapTool: (_, next) => next(),
    beforeModel() {},
  };

  it.each([
    ['max_tokens', { tokens: 1 }],
    ['max_tokens', { tokens: 60 }],
    ['max_cost', { costUsd: 1e-9 }],
    ['max_turns', { turns: 1 }],
    ['max_tool_calls', { toolCalls: 1 }],
  ] as const)('is the kernel for %s, whatever layers the limit is met in: %j', async (reason, limits) => {
    const model = scriptedModel([call(), call(), call()], { price, usage: usage(50, 5) });
    const { result } = await watched(
      new Agent({ model, tools: [free], limits, middleware: [through] }),
      'go',
    );
    expect(result.stop).toMatchObject({ reason, by: 'kernel' });
  });

  it('is the kernel for a timeout in a model and in a tool', async () => {
    const never = tool({ name: 'free', description: '', input, execute: () => new Promise(() => {}) });
    for (const model of [scriptedModel([hang('half')]), scriptedModel([call()])]) {
      const clock = fakeClock();
      const limits = { timeoutMs: 100 };
      const agent = new Agent({ model, tools: [never], clock, limits, middleware: [through] });
      const running = watched(agent, 'go');
      await clock.advance(100);
      expect((await running).result.stop).toMatchObject({ reason: 'timeout', by: 'kernel' });
    }
  });

  it('is the middleware that stops with the same reason', async () => {
    const stops: Middleware = { name: 'stops', beforeModel: (ctx) => ctx.stop('max_tokens', 'enough') };
    const { result } = await watched(new Agent({ model: scriptedModel([]), middleware: [stops] }), 'go');
    expect(result.stop).toEqual({ reason: 'max_tokens', message: 'enough', by: 'stops' });
  });
});

describe('calls side by side', () => {
  const both: Middleware = {
    wrapModel: async (_, next) => (await Promise.all([next(), next()]))[1]!,
  };
  const first: Middleware = { wrapModel: (_, next) => Promise.any([next(), next()]) };
  const caps = ({ requests }: { readonly requests: readonly ModelRequest[] }) =>
    requests.map(({ settings }) => settings.maxOutputTokens);

  it('start at once if more is left than one answer can need', async () => {
    const model = scriptedModel([hang(), 'b']);
    const limits = { tokens: 1_000_000 };
    const { result } = await watched(new Agent({ model, limits, middleware: [first] }), 'go');
    expect(result).toMatchObject({ status: 'done', text: 'b' });
    expect(caps(model)).toEqual([Math.floor(999_997 / 2), Math.floor(499_996 / 2)]);
  });
  it('wait for each other if one may need all that is left', async () => {
    for (const limits of [{ tokens: 103 }, { costUsd: 203e-6 }]) {
      const model = scriptedModel([chunks('tick', 'a'), 'b'], { price, usage: usage(3, 10) });
      const { result } = await watched(new Agent({ model, limits, middleware: [both] }), 'go');
      expect(result).toMatchObject({ status: 'done', text: 'b', usage: { totalTokens: 26 } });
      expect(caps(model)).toEqual(limits.tokens ? [100, 87] : [100, 88]);
    }
  });
  it('wait for each other if the rest is too short for an answer', async () => {
    for (const limits of [{ tokens: 33_000 }, { costUsd: 66_000e-6 }]) {
      const model = scriptedModel([chunks('tick', 'a'), 'b'], { price, usage: usage(3, 10) });
      const { result } = await watched(new Agent({ model, limits, middleware: [both] }), 'go');
      expect(result).toMatchObject({ status: 'done', text: 'b', usage: { totalTokens: 26 } });
      expect(caps(model)).toEqual([32_768, 32_768]);
    }
  });
  it('wait for each other if the rest is less than they say they need', async () => {
    const model = scriptedModel([chunks('tick', 'a'), 'b'], { usage: usage(3, 10) });
    const settings = { maxOutputTokens: 60 };
    const limits = { tokens: 100 };
    await new Agent({ model, limits, settings, middleware: [both] }).run('go');
    expect(caps(model)).toEqual([60, 60]);
  });
  it('of sub-agents get enough for an answer each, or all that is left', async () => {
    const inner = scriptedModel(['sub'], { repeat: true, usage: usage(0, 500) });
    const child = new Agent({ model: inner });
    const ask = tool({
      name: 'free',
      description: '',
      input,
      execute: async (_, ctx) => (await child.run('sub', { parent: ctx })).text,
    });
    const model = scriptedModel([call(4), 'end'], { usage: usage(10, 10) });
    const { result } = await watched(new Agent({ model, tools: [ask], limits: { tokens: 2500 } }), 'go');
    expect(result.status).toBe('done');
    expect(transcript(result.messages).slice(2, -1)).toEqual(Array(4).fill('tool: sub'));
    const [first, second, third, fourth] = caps(inner);
    expect([first, second, third]).toEqual([1024, 1024, 1024]);
    expect(fourth).toBeGreaterThan(900);
  });
  it('start at once if they say what they need', async () => {
    const model = scriptedModel([hang(), 'b']);
    const settings = { maxOutputTokens: 40 };
    const limits = { tokens: 100 };
    const { result } = await watched(new Agent({ model, limits, settings, middleware: [first] }), 'go');
    expect(result.text).toBe('b');
    expect(caps(model)).toEqual([40, 40]);
  });
  it('are not made when an answer came while they waited', async () => {
    const model = scriptedModel([chunks('tick', 'a')]);
    const limits = { tokens: 100 };
    const { result } = await watched(new Agent({ model, limits, middleware: [first] }), 'go');
    expect(result).toMatchObject({ status: 'done', text: 'a', usage: { totalTokens: 15 } });
  });
  it('go on when the one they wait for fails', async () => {
    const model = scriptedModel([failWith(new Error('broken'), 'tick'), 'b']);
    const limits = { tokens: 100 };
    const { result } = await watched(new Agent({ model, limits, middleware: [first] }), 'go');
    expect(result).toMatchObject({ status: 'done', text: 'b' });
  });
  it('end with the run while they wait', async () => {
    for (const how of ['abort', 'timeout']) {
      const clock = fakeClock();
      const model = scriptedModel([hang()]);
      const limits = { tokens: 100, timeoutMs: 50 };
      const caller = new AbortController();
      const running = watched(new Agent({ model, clock, limits, middleware: [both] }), 'go', {
        signal: caller.signal,
      });
      await settle();
      if (how === 'abort') caller.abort();
      else await clock.advance(50);
      expect((await running).result.stop.reason).toBe(how === 'abort' ? 'aborted' : 'timeout');
      expect(model).toMatchObject({ aborted: 1, requests: { length: 1 } });
    }
  });
  it('that would not fit alone either end the run without waiting', async () => {
    const side = scriptedModel([]);
    const asks: Middleware = {
      wrapModel: (ctx, next) =>
        Promise.all([next(), ctx.generate(side, { messages: 'x'.repeat(400) })]).then(([answer]) => answer),
    };
    const limits = { tokens: 100 };
    const { result } = await watched(
      new Agent({ model: scriptedModel([hang()]), limits, middleware: [asks] }),
      'go',
    );
    expect(result.stop).toMatchObject({ reason: 'max_tokens', by: 'kernel' });
  });
  it('of tools and of sub-agents share what is left, and never use more', async () => {
    const greedy = (request: ModelRequest) => {
      const most = request.settings.maxOutputTokens!;
      return text('side', usage(0, Math.min(most, 150)));
    };
    const side = scriptedModel([greedy], { repeat: true, price });
    const child = new Agent({ model: scriptedModel([greedy], { repeat: true, price }) });
    const asks = tool({
      name: 'free',
      description: '',
      input,
      execute: async (_, ctx) =>
        ctx.toolCall.id < 'c3'
          ? textOf(await ctx.generate(side, { messages: 'q' }))
          : (await child.run('sub', { parent: ctx })).text,
    });
    const results = async (tokens: number) => {
      const model = scriptedModel([call(6), text('end', usage(0, 1))], { price, usage: usage(10, 10) });
      const { result } = await watched(new Agent({ model, tools: [asks], limits: { tokens } }), 'go');
      expect(result.usage.totalTokens).toBeLessThanOrEqual(tokens);
      return result;
    };
    const plenty = await results(2000);
    expect(plenty.status).toBe('done');
    expect(transcript(plenty.messages).slice(2, -1)).toEqual(Array(6).fill('tool: side'));
    expect((await results(400)).stop.reason).toBe('max_tokens');
  });
});

describe('a cached answer', () => {
  it('costs nothing: no reservation, no tokens, no price needed', async () => {
    const preset: Middleware = {
      beforeModel: (ctx) => {
        ctx.response = assistantMessage('cached', {
          usage: { inputTokens: 500, outputTokens: 500, cacheRead: 0, cacheWrite: 0, totalTokens: 1000 },
        });
      },
    };
    const model = scriptedModel([]);
    const { result } = await watched(
      new Agent({ model, limits: { tokens: 10, costUsd: 0.001 }, middleware: [preset] }),
      'go',
    );
    expect(result).toMatchObject({ status: 'done', text: 'cached', usage: { totalTokens: 0 }, costUsd: 0 });
    expect(result.messages[1]).toMatchObject({ usage: { totalTokens: 0 } });
  });
});

describe('timeoutMs', () => {
  it('cancels what runs through its signal', async () => {
    const clock = fakeClock();
    const model = scriptedModel([hang('half')]);
    const running = watched(new Agent({ model, clock, limits: { timeoutMs: 100 } }), 'go');
    await clock.advance(100);
    const { result } = await running;
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'timeout', by: 'kernel' } });
    expect(model.aborted).toBe(1);
    expect(clock.pending).toBe(0);
  });
  it('cancels tools; every call has its result', async () => {
    const clock = fakeClock();
    const never = tool({ name: 'free', description: '', input, execute: () => new Promise(() => {}) });
    const running = watched(
      new Agent({ model: scriptedModel([call(2)]), tools: [never], clock, limits: { timeoutMs: 10 } }),
      'go',
    );
    await clock.advance(10);
    const { result } = await running;
    expect(result.stop).toMatchObject({ reason: 'timeout', message: 'The run took longer than 10 ms.' });
    expect(transcript(result.messages).slice(2)).toEqual([
      'tool: Stopped: The run took longer than 10 ms.',
      'tool: Stopped: The run took longer than 10 ms.',
    ]);
  });
  it('is kept even if nothing ever waits, so that no timer fires', async () => {
    let now = 0;
    const clock = { now: () => now, setTimer: () => () => {} };
    const busy = tool({
      name: 'free',
      description: '',
      input,
      execute: () => {
        now += 40;
        return 'free';
      },
    });
    const { result } = await watched(
      new Agent({
        model: scriptedModel([toolCalls({ name: 'free' })], { repeat: true }),
        tools: [busy],
        clock,
        limits: { timeoutMs: 100 },
      }),
      'go',
    );
    expect(result).toMatchObject({ turns: 3, stop: { reason: 'timeout', by: 'kernel' } });
  });
  it('does not count the time of a human', async () => {
    const clock = fakeClock();
    const answer = deferred();
    const running = watched(
      agent([call(), 'end'], {
        clock,
        limits: { timeoutMs: 100 },
        middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
        onRequest: async () => {
          await answer.promise;
          return { type: 'approve' };
        },
      }),
      'go',
    );
    await clock.advance(10_000);
    answer.resolve();
    expect((await running).result.status).toBe('done');
    expect(clock.pending).toBe(0);
  });
  it('does not count the time of a slow consumer', async () => {
    const clock = fakeClock();
    const words = Array.from({ length: 600 }, (_, i) => `${i} `);
    const stream = new Agent({
      model: scriptedModel([
        {
          parts: [
            ...words.map((word) => ({ type: 'text' as const, text: word })),
            { type: 'finish', reason: 'stop' },
          ],
        },
      ]),
      clock,
      limits: { timeoutMs: 100 },
    }).stream('go');
    let seen = 0;
    for await (const event of stream) {
      if (event.type === 'message_update' && seen++ === 10) await clock.advance(5000);
    }
    expect((await stream.result).status).toBe('done');
  });
});

describe('depth', () => {
  it('ends a sub-agent that nests too deep', async () => {
    const results: string[] = [];
    const nested: Agent = new Agent({
      model: scriptedModel(
        [({ messages }) => (messages.length === 1 ? toolCalls({ name: 'deeper' }) : text('end'))],
        { repeat: true },
      ),
      limits: { depth: 2 },
      tools: [
        tool({
          name: 'deeper',
          description: '',
          input,
          execute: async (_, ctx) => {
            const { status, stop } = await nested.run('deeper', { parent: ctx });
            results.push(`${ctx.depth}: ${status} ${stop.reason}`);
            return status;
          },
        }),
      ],
    });
    await watched(nested, 'go');
    expect(results).toEqual(['2: stopped max_depth', '1: done final', '0: done final']);
  });
  it('of the outermost agent holds for all further in, however they were started', async () => {
    const leaf = new Agent({ model: scriptedModel(['leaf']), limits: { depth: 5 } });
    const around = (inner: Agent, limits = {}): Agent =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'ask' }), 'end'], { repeat: true }),
        limits,
        tools: [
          tool({
            name: 'ask',
            description: '',
            input,
            execute: async (_, ctx) => {
              const { stop, messages } = await inner.run('sub', { parent: ctx });
              return [stop.reason, ...messages.filter(({ role }) => role === 'tool').map(textOf)].join(' ');
            },
          }),
        ],
      });
    const nested = async (depth: number, limits = {}) => {
      const { result } = await watched(around(around(around(leaf), limits), { depth }), 'go');
      return textOf(result.messages[2]!);
    };
    expect(await nested(0)).toBe('max_depth');
    expect(await nested(1)).toBe('final max_depth');
    expect(await nested(2)).toBe('final final max_depth');
    expect(await nested(3)).toBe('final final final');
    expect(await nested(3, { depth: 2 })).toBe('final final max_depth');
    expect(await nested(1, { depth: 9 })).toBe('final max_depth');
  });
});

describe('limits shared with sub-agents', () => {
  const parentOf = (
    child: Agent,
    options: Partial<AgentOptions>,
    script: readonly Script[] = [toolCalls({ name: 'ask' }), 'end'],
  ) =>
    new Agent({
      model: scriptedModel(script, { price }),
      tools: [
        tool({
          name: 'ask',
          description: '',
          input,
          execute: async (_, ctx) => (await child.run('sub', { parent: ctx })).stop.reason,
        }),
      ],
      ...options,
    });

  it('tokens of the child count for the parent', async () => {
    const child = new Agent({ model: scriptedModel(['sub'], { usage: usage(30, 20) }) });
    const { result } = await watched(parentOf(child, {}), 'go');
    expect(result.usage.totalTokens).toBe(15 + 50 + 15);
  });
  it('a child stops when the tokens of its parent are used up, and so does the parent', async () => {
    const child = new Agent({
      model: scriptedModel([call()], { repeat: true, usage: usage(20, 20) }),
      tools: [free],
    });
    const { result } = await watched(parentOf(child, { limits: { tokens: 100 } }), 'go');
    expect(result.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['max_tokens']);
    expect(result.stop.reason).toBe('max_tokens');
    expect(result.usage.totalTokens).toBeLessThanOrEqual(100);
  });
  it('a child needs a price when its parent has a cost limit', async () => {
    const child = new Agent({ model: scriptedModel(['sub'], { id: 'priceless' }) });
    const { result } = await watched(parentOf(child, { limits: { costUsd: 1 } }), 'go');
    expect(textOf(result.messages[2]!)).toContain('the price of test/priceless is not known');
  });
  it('money of the child is money of the parent', async () => {
    const child = new Agent({ model: scriptedModel(['sub'], { price, usage: usage(1000, 0) }) });
    const { result } = await watched(parentOf(child, { limits: { costUsd: 1 } }), 'go');
    expect(result.costUsd).toBeCloseTo((10 + 10 + 1000 + 10 + 10) / 1e6, 12);
  });
  it('the time of the parent ends the child', async () => {
    const clock = fakeClock();
    const inner = scriptedModel([hang()]);
    const running = watched(
      parentOf(new Agent({ model: inner, clock }), { clock, limits: { timeoutMs: 50 } }),
      'go',
    );
    await clock.advance(50);
    expect((await running).result.stop.reason).toBe('timeout');
    expect(inner.aborted).toBe(1);
  });
  it('children side by side share what is left', async () => {
    const child = new Agent({ model: scriptedModel(['sub'], { repeat: true, usage: usage(5, 5) }) });
    const { result } = await watched(
      parentOf(child, { limits: { tokens: 400 } }, [
        toolCalls({ name: 'ask', id: '1' }, { name: 'ask', id: '2' }, { name: 'ask', id: '3' }),
        'end',
      ]),
      'go',
    );
    expect(result.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual([
      'final',
      'final',
      'final',
    ]);
  });
});

describe('sessionLimits', () => {
  const store = () => memoryStore();
  it('count over the runs of a session', async () => {
    const one = agent(['a', 'b', 'c'], { store: store(), sessionLimits: { turns: 2 } });
    const session = one.session('s');
    await watched(session, '1');
    expect((await watched(session, '2')).result.status).toBe('done');
    expect((await watched(session, '3')).result.stop).toMatchObject({
      reason: 'max_turns',
      message: "The session's limit of 2 turns is reached.",
    });
    expect((await watched(one.session('other'), '1')).result.status).toBe('done');
  });
  it('stop by tokens, money and tool calls', async () => {
    const stops = async (sessionLimits: AgentOptions['sessionLimits'], script: readonly Script[]) => {
      const session = agent(script, { store: store(), sessionLimits }).session('s');
      await watched(session, '1');
      return (await watched(session, '2')).result.stop.reason;
    };
    expect(await stops({ tokens: 15 }, ['a', 'never'])).toBe('max_tokens');
    expect(await stops({ costUsd: 20e-6 }, ['a', 'never'])).toBe('max_cost');
    expect(await stops({ toolCalls: 1 }, [call(), 'a', call()])).toBe('max_tool_calls');
  });
  it('on money end a run whose session used something without a known price, and say so', async () => {
    const store = memoryStore();
    await new Agent({ model: scriptedModel(['a']), store }).session('s').run('go');
    const limited = agent(['b'], { store, sessionLimits: { costUsd: 1 } });
    const { result } = await watched(limited.session('s'), 'go');
    expect(result.stop).toMatchObject({
      reason: 'max_cost',
      message: 'The cost of earlier calls is unknown, so what is left of $1 is unknown too.',
    });
  });
  it('hold for another agent over the same store', async () => {
    const shared = store();
    await agent(['a'], { store: shared, sessionLimits: { turns: 1 } })
      .session('s')
      .run('1');
    expect(
      (
        await agent([], { store: shared, sessionLimits: { turns: 1 } })
          .session('s')
          .run('2')
      ).stop.reason,
    ).toBe('max_turns');
  });
});
