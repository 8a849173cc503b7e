/** Limits of the kernel: hard, shared with sub-agents, and a cached answer costs nothing. */
import {
  Agent,
  type AgentOptions,
  type AssistantMessage,
  assistantMessage,
  type Message,
  type Middleware,
  type ModelPart,
  type ModelRequest,
  memoryStore,
  NO_USAGE,
  textOf,
  tool,
  toolSpec,
  type Usage,
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
import { z } from 'zod';
import { deferred, settle, transcript, watch, watched } from '../../../../../test/run-checks.js';
import { costOf } from '../messages/prices.js';
import { Budget, isCrowded } from './budget.js';
import { estimateTokens } from './estimates.js';

const input = z.object({});
const free = tool({ name: 'free', description: '', input, execute: () => 'free' });
const call = (count = 1) =>
  toolCalls(...Array.from({ length: count }, (_, n) => ({ name: 'free', id: `c${n}` })));
const price = { input: 1, output: 2 };
const usage = (inputTokens: number, outputTokens: number) => ({ inputTokens, outputTokens });
const agent = (script: readonly Script[], options: Partial<AgentOptions> = {}) =>
  new Agent({ model: scriptedModel(script, { price }), tools: [free], ...options });

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
  it('lets run what fits, answers the rest, and stops', async () => {
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
    const not = 'tool: Not run: The limit of tool calls is used up.';
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
  it('are settled to what was really used', async () => {
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

  it('is the middleware that stops with the same word', async () => {
    const stops: Middleware = { name: 'stops', beforeModel: (ctx) => ctx.stop('max_tokens', 'enough') };
    const { result } = await watched(new Agent({ model: scriptedModel([]), middleware: [stops] }), 'go');
    expect(result.stop).toEqual({ reason: 'max_tokens', message: 'enough', by: 'stops' });
  });
});

describe('costUsd', () => {
  it('needs a known price, before the first call', async () => {
    const model = scriptedModel(['a']);
    const { error } = await watched(new Agent({ model, limits: { costUsd: 1 } }), 'go');
    expect(error).toMatchObject({ code: 'PRICE_UNKNOWN', message: expect.stringContaining('test/scripted') });
    expect(model.requests).toEqual([]);
  });
  it('takes the price from priceOf as well', async () => {
    const { result } = await watched(
      new Agent({ model: scriptedModel(['a']), limits: { costUsd: 1 }, priceOf: () => price }),
      'go',
    );
    expect(result.costUsd).toBeCloseTo(20e-6, 12);
  });
  it('ends the run when the money is used up', async () => {
    const model = scriptedModel([call(), 'never'], { price, usage: usage(80, 10) });
    const { result } = await watched(new Agent({ model, tools: [free], limits: { costUsd: 110e-6 } }), 'go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_cost', by: 'kernel' }, turns: 1 });
    expect(result.costUsd).toBeCloseTo(100e-6, 12);
  });
  it('caps the output at what can be paid', async () => {
    const model = scriptedModel(['a'], { price: { input: 0, output: 1_000_000 } });
    await new Agent({ model, limits: { costUsd: 12 } }).run('go');
    expect(model.requests[0]!.settings.maxOutputTokens).toBe(12);
  });
  it('works with output that is free', async () => {
    const model = scriptedModel([call(), call(), 'end'], { price: { input: 1, output: 0 } });
    const { result } = await watched(new Agent({ model, tools: [free], limits: { costUsd: 1 } }), 'go');
    expect(result.status).toBe('done');
    expect(result.costUsd).toBeCloseTo(30e-6, 12);
  });
});

describe('a price', () => {
  const run = (priceOf: unknown, limits = {}) => {
    const model = scriptedModel(['never']);
    return { model, ended: new Agent({ model, limits, priceOf: priceOf as never }).run('go') };
  };

  it('that `priceOf` throws for fails the run, with what was thrown and before anything is asked', async () => {
    const thrown = new TypeError('no such row');
    const priceOf = () => {
      throw thrown;
    };
    for (const limits of [{}, { tokens: 100 }, { costUsd: 1 }]) {
      const { model, ended } = run(priceOf, limits);
      await expect(ended).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(/`priceOf`.* of test\/scripted.* threw: no such row$/),
        cause: { cause: thrown },
      });
      expect(model.requests).toHaveLength(0);
    }
  });
  it('that cannot be read is told once, however many agents hand it down', async () => {
    const thrown = new Error('no such row');
    const outer = new Agent({
      model: scriptedModel([]),
      priceOf: () => {
        throw thrown;
      },
    });
    await expect(run(outer.priceOf).ended).rejects.toMatchObject({ cause: { cause: thrown } });
  });
  it('needs a function', () => {
    expect(() => run(5)).toThrow('Expected `priceOf` to be a function from a model to its price, got 5.');
  });
  it.each([
    [{ input: 1 }, 'price.output', 'undefined'],
    [{ input: Number.NaN, output: 1 }, 'price.input', 'NaN'],
    [{ input: 1, output: -1 }, 'price.output', '-1'],
    [{ input: '1', output: 1 }, 'price.input', '"1"'],
    [{ input: 1, output: Number.POSITIVE_INFINITY }, 'price.output', 'Infinity'],
    [{ input: 1, output: 1, cacheRead: null }, 'price.cacheRead', 'null'],
    [{ input: 1, output: 1, cacheWrite: -2 }, 'price.cacheWrite', '-2'],
    [5, 'price', '5'],
  ])('that is not made of numbers ≥ 0 fails the run: %j', async (wrong, field, got) => {
    const carries = scriptedModel(['never'], { price: wrong as never });
    const error = {
      code: 'INVALID_OPTION',
      message: expect.stringMatching(new RegExp(`\`${field}\` of test/scripted to be .*, got ${got}\\.$`)),
    };
    for (const limits of [{}, { costUsd: 1 }]) {
      await expect(new Agent({ model: carries, limits }).run('go')).rejects.toMatchObject(error);
      await expect(run(() => wrong, limits).ended).rejects.toMatchObject(error);
    }
    expect(carries.requests).toHaveLength(0);
  });
  it('is not waited for', async () => {
    await expect(run(async () => price).ended).rejects.toThrow(
      'to be an object with `input` and `output`, got a promise.',
    );
    const rejects = run(() => Promise.reject(new Error('nobody hears of this'))).ended;
    await expect(rejects).rejects.toThrow('got a promise.');
  });
  it('of 0 is a price, and null is none', async () => {
    const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    expect((await run(() => nothing, { costUsd: 1 }).ended).costUsd).toBe(0);
    expect((await run(() => null).ended).costUsd).toBeUndefined();
    await expect(run(() => null, { costUsd: 1 }).ended).rejects.toMatchObject({ code: 'PRICE_UNKNOWN' });
  });
});

describe('calls side by side', () => {
  const both: Middleware = {
    wrapModel: async (_, next) => (await Promise.all([next(), next()]))[1]!,
  };
  const first: Middleware = { wrapModel: (_, next) => Promise.any([next(), next()]) };
  const caps = ({ requests }: { readonly requests: readonly ModelRequest[] }) =>
    requests.map(({ settings }) => settings.maxOutputTokens);

  it('start at once where more is left than one answer can need', async () => {
    const model = scriptedModel([hang(), 'b']);
    const limits = { tokens: 1_000_000 };
    const { result } = await watched(new Agent({ model, limits, middleware: [first] }), 'go');
    expect(result).toMatchObject({ status: 'done', text: 'b' });
    expect(caps(model)).toEqual([Math.floor(999_997 / 2), Math.floor(499_996 / 2)]);
  });
  it('wait for each other where one may need all that is left', async () => {
    for (const limits of [{ tokens: 103 }, { costUsd: 203e-6 }]) {
      const model = scriptedModel([chunks('tick', 'a'), 'b'], { price, usage: usage(3, 10) });
      const { result } = await watched(new Agent({ model, limits, middleware: [both] }), 'go');
      expect(result).toMatchObject({ status: 'done', text: 'b', usage: { totalTokens: 26 } });
      expect(caps(model)).toEqual(limits.tokens ? [100, 87] : [100, 88]);
    }
  });
  it('wait for each other where what is left beside is too short for an answer', async () => {
    for (const limits of [{ tokens: 33_000 }, { costUsd: 66_000e-6 }]) {
      const model = scriptedModel([chunks('tick', 'a'), 'b'], { price, usage: usage(3, 10) });
      const { result } = await watched(new Agent({ model, limits, middleware: [both] }), 'go');
      expect(result).toMatchObject({ status: 'done', text: 'b', usage: { totalTokens: 26 } });
      expect(caps(model)).toEqual([32_768, 32_768]);
    }
  });
  it('wait for each other where less is left beside than they say they need', async () => {
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
  it('start at once where they say what they need', async () => {
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
  it('is kept where nothing ever waits, so that no timer fires', async () => {
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
  it('of money end a run whose session has used what has no known price, and say so', async () => {
    const store = memoryStore();
    await new Agent({ model: scriptedModel(['a']), store }).session('s').run('go');
    const limited = agent(['b'], { store, sessionLimits: { costUsd: 1 } });
    const { result } = await watched(limited.session('s'), 'go');
    expect(result.stop).toMatchObject({
      reason: 'max_cost',
      message: 'What was used before has no known price, so nobody knows what is left of $1.',
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

describe('a budget', () => {
  const model = scriptedModel([], { price });
  const refusal = (refused: () => unknown): unknown => {
    try {
      return refused();
    } catch (error) {
      return error;
    }
  };

  it('gives back exactly what it set aside', () => {
    const budget = new Budget({ tokens: 100, costUsd: 1 }, () => price);
    const first = budget.reserve(model, () => 10, 40, 1);
    expect(first).toEqual({ tokens: 50, costUsd: expect.closeTo(90e-6, 12), maxOutputTokens: 40 });
    budget.settle(price, first, {
      inputTokens: 10,
      outputTokens: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 11,
    });
    expect(budget.reserve(model, () => 10, undefined, 1)?.maxOutputTokens).toBe(100 - 11 - 10);
  });
  it('lets concurrent calls share by their part', () => {
    const budget = new Budget({ tokens: 10_000 }, () => undefined);
    expect(budget.reserve(model, () => 0, undefined, 0.25)?.maxOutputTokens).toBe(2500);
    expect(budget.reserve(model, () => 0, undefined, 0.25)?.maxOutputTokens).toBe(1875);
  });
  it('gives no part that is too short for an answer while others may leave more', () => {
    const budget = new Budget({ tokens: 2000 }, () => undefined);
    const first = budget.reserve(model, () => 0, undefined, 0.25);
    expect(first?.maxOutputTokens).toBe(1024);
    expect(isCrowded(refusal(() => budget.reserve(model, () => 0, undefined, 0.25)))).toBe(true);
    expect(budget.reserve(model, () => 0, 900, 0.25)?.maxOutputTokens).toBe(900);
    const tight = new Budget({ tokens: 100 }, () => undefined);
    expect(tight.reserve(model, () => 10, undefined, 0.25)?.maxOutputTokens).toBe(90);
  });
  it('has nobody wait when no call is under way, whatever is left over of sums of dollars', () => {
    const budget = new Budget({ costUsd: 1 }, () => ({ input: 0, output: 1e5 }));
    const [first, second] = [2, 6].map((output) => budget.reserve(model, () => 0, output, 1));
    budget.add(NO_USAGE, 0, first);
    // 0.2 + 0.6 - 0.2 - 0.6 is as much as this leaves, not 0.
    budget.add(NO_USAGE, 1 - 2 ** -53, second);
    const error = refusal(() => budget.reserve(model, () => 0, 1, 1));
    expect(error).toMatchObject({ reason: 'max_cost' });
    expect(isCrowded(error)).toBe(false);
  });
  it('draws on all budgets above it, and the tightest decides', () => {
    const session = new Budget({ tokens: 30 }, () => undefined);
    const run = new Budget({ tokens: 100 }, () => undefined, session);
    expect(run.reserve(model, () => 10, undefined, 1)?.maxOutputTokens).toBe(20);
    expect(() => run.reserve(model, () => 1, undefined, 1)).toThrow(
      expect.objectContaining({ reason: 'max_tokens' }),
    );
  });
  it('tells a call that others leave no room for from one there is no room for at all', () => {
    const session = new Budget({ tokens: 30 }, () => undefined);
    const run = new Budget({ tokens: 100 }, () => undefined, session);
    run.reserve(model, () => 10, 15, 1);
    expect(isCrowded(refusal(() => run.reserve(model, () => 29, undefined, 1)))).toBe(true);
    expect(isCrowded(refusal(() => run.reserve(model, () => 30, undefined, 1)))).toBe(false);
  });
  it('prices cached tokens like input where nothing else is said', () => {
    const used = { inputTokens: 1, outputTokens: 1, cacheRead: 10, cacheWrite: 10, totalTokens: 22 };
    expect(costOf(price, used)).toBeCloseTo((1 + 2 + 10 + 10) / 1e6, 12);
    expect(costOf({ ...price, cacheRead: 0.1, cacheWrite: 2 }, used)).toBeCloseTo((1 + 2 + 1 + 20) / 1e6, 12);
  });
});

describe('estimateTokens', () => {
  const user = (chars: number) => ({
    id: '',
    role: 'user' as const,
    content: [{ type: 'text' as const, text: 'x'.repeat(chars) }],
  });
  const answer = (totalTokens: number) => ({
    ...assistantMessage('a'),
    id: '',
    usage: { inputTokens: 7, outputTokens: 3, cacheRead: 0, cacheWrite: 0, totalTokens },
  });

  it('starts from what the last answer reported', () => {
    const first = [user(392)];
    expect(estimateTokens(first, 0, first)).toBe(100);
    expect(estimateTokens(first, 40, first)).toBe(110);
    const all = [user(392), answer(10), user(392)];
    expect(estimateTokens(all, 40, all)).toBe(110);
    expect(estimateTokens([...all], 40, all)).toBe(110);
  });

  it('counts characters when something before that answer is no longer in the request', () => {
    const [long, old, next] = [user(392), answer(5000), user(392)] as const;
    const history = [user(20_000), long, old, next];
    expect(estimateTokens([long, old, next], 40, history)).toBe(100 + 3 + 100 + 10);
    // Cleared in its place.
    expect(estimateTokens([user(392), long, old, next], 0, history)).toBe(100 + 100 + 3 + 100);
    // Replaced by a summary, or not of this history at all.
    expect(estimateTokens([user(392), old, next], 0, history)).toBe(100 + 3 + 100);
    expect(estimateTokens([long, old, next], 0, [])).toBe(100 + 3 + 100);
  });

  it('trusts an answer when messages were put in, marked, or taken out after it', () => {
    const history = [user(392), answer(20), user(392), answer(5000), user(392), user(392)];
    const [first, second, third, fourth, , last] = history as [any, any, any, any, any, any];
    const request = [user(8), { ...first, metadata: {} }, second, third, user(8), fourth, last];
    expect(estimateTokens(request, 0, history)).toBe(5100);
  });

  it('counts the characters that an answer does not tell of', () => {
    const told = (part: Partial<Usage>, totalTokens: number) => {
      return { ...assistantMessage('a'.repeat(392)), id: '', usage: { ...NO_USAGE, ...part, totalTokens } };
    };
    const after = (...messages: readonly Message[]) => estimateTokens(messages, 40, messages);
    expect(after(user(392), told({ inputTokens: 70 }, 70), user(392))).toBe(70 + 100 + 100);
    expect(after(user(392), told({ outputTokens: 30 }, 30), user(392))).toBe(100 + 100 + 100 + 10);
    // What was written is at least what is sent back.
    expect(after(user(392), told({ outputTokens: 3000 }, 3000), user(392))).toBe(3000 + 100);
    // An answer before it told of more.
    const before = [user(392), answer(5000)];
    expect(after(...before, user(392), told({ outputTokens: 30 }, 30))).toBe(5000 + 100 + 100);
  });
});

describe('a model that does not say what it used', () => {
  const silent = (script: readonly Script[], options: Partial<AgentOptions> = {}) =>
    agent([], { model: scriptedModel(script, { price, usage: {} }), ...options });

  it('costs nobody knows how much, with a price or without; a later call does not change that', async () => {
    for (const model of [scriptedModel(['a'], { price, usage: {} }), scriptedModel(['a'], { usage: {} })]) {
      const { costUsd, usage: used } = await agent([], { model }).run('go');
      expect([costUsd, used]).toEqual([undefined, NO_USAGE]);
    }
    const { costUsd, usage: used } = await silent([call(), text('b', usage(3, 2))]).run('go');
    expect([costUsd, used.totalTokens]).toEqual([undefined, 5]);
  });

  it('nor is it known after a resume, and it is written once', async () => {
    const ask = tool({
      name: 'ask',
      description: '',
      input,
      execute: (_, ctx) => ctx.suspend({ title: '?' }).then(() => 'ok'),
    });
    const store = memoryStore();
    const script = [call(), toolCalls({ name: 'ask' }), text('b', usage(3, 2))];
    const model = scriptedModel(script, { price, usage: {} });
    const open = () => new Agent({ model, store, tools: [free, ask] }).session('s');
    const { pending } = await open().run('go');
    await open().answer(pending[0]!.id, { type: 'approve' });
    const { costUsd, usage: used } = await open().resume();
    expect([costUsd, used.totalTokens]).toEqual([undefined, 5]);
    const entries = await store.read('s', 0);
    expect(entries.filter(({ type }) => type === 'usage')).toHaveLength(1);
  });

  it('costs nothing where nothing was asked or answered', async () => {
    const failing = failWith(Object.assign(new Error('Down'), { status: 503 }));
    const again: Middleware = { name: 'again', wrapModel: (_, next) => next().catch(() => next()) };
    const { costUsd } = await agent([failing, text('a', usage(3, 2))], { middleware: [again] }).run('go');
    expect(costUsd).toBe(costOf(price, { ...NO_USAGE, ...usage(3, 2) }));
  });

  it('is counted as estimated where tokens or money are limited', async () => {
    const long = 'x'.repeat(4000);
    for (const limits of [{ tokens: 5000 }, { costUsd: 0.005 }]) {
      const { costUsd, usage: used } = await silent([long], { limits }).run('go');
      expect(used.outputTokens).toBe(1000);
      expect(used.inputTokens).toBeGreaterThan(0);
      expect(costUsd).toBeCloseTo(costOf(price, used), 12);
    }
    const looping = chunks(long, { type: 'tool-call', id: 'c', name: 'free', arguments: '{}' });
    const { stop, turns } = await silent([looping, 'never'], { limits: { tokens: 1000 } }).run('go');
    expect([stop.reason, turns]).toEqual(['max_tokens', 1]);
  });
});

describe('a model that says only part of what it used', () => {
  const long = 'x'.repeat(4000);
  const tells = (told: Partial<Usage>, ...more: readonly ModelPart[]) =>
    chunks(long, ...more, { type: 'finish', reason: more.length > 0 ? 'tool-calls' : 'stop', usage: told });
  const counted = async (told: Partial<Usage>, options: Partial<AgentOptions>) => {
    const { costUsd, usage: used, messages } = await agent([tells(told)], options).run('x'.repeat(392));
    return { costUsd, used, message: (messages[1] as AssistantMessage).usage };
  };

  it('costs nobody knows how much, and what it said is kept', async () => {
    for (const told of [{ inputTokens: 4 }, { outputTokens: 4 }, { cacheRead: 4 }, { totalTokens: 4 }]) {
      const { costUsd, used, message } = await counted(told, {});
      expect(costUsd).toBeUndefined();
      expect(used).toEqual({ ...NO_USAGE, ...told, totalTokens: 4 });
      expect(message).toEqual(used);
    }
  });

  it.each([{ tokens: 9000 }, { costUsd: 0.009 }])(
    'is estimated for the rest where %j limits',
    async (limits) => {
      const cases: [Partial<Usage>, [input: number, output: number, total: number]][] = [
        [{ inputTokens: 4 }, [4, 1000, 1004]],
        [{ inputTokens: 4, cacheRead: 3 }, [4, 1000, 1007]],
        [{ outputTokens: 7 }, [ESTIMATE, 7, ESTIMATE + 7]],
        [{ outputTokens: 7, cacheRead: 30 }, [ESTIMATE - 30, 7, ESTIMATE + 7]],
        [{ cacheRead: 500 }, [0, 1000, 1500]],
        // A total is believed: it only has to be divided.
        [{ totalTokens: 1200 }, [200, 1000, 1200]],
        [{ totalTokens: 12, cacheWrite: 2 }, [0, 10, 12]],
      ];
      for (const [told, [inputTokens, outputTokens, totalTokens]] of cases) {
        const { costUsd, used, message } = await counted(told, { limits });
        expect(used).toMatchObject({ inputTokens, outputTokens, totalTokens });
        expect(costUsd).toBeCloseTo(costOf(price, used), 12);
        expect(message).toMatchObject(told);
      }
    },
  );

  it('says all where one part follows from the total', async () => {
    for (const told of [
      { inputTokens: 4, totalTokens: 20, cacheRead: 6 },
      { outputTokens: 10, totalTokens: 20, cacheRead: 6 },
    ])
      for (const limits of [{}, { tokens: 9000 }]) {
        const { costUsd, used, message } = await counted(told, { limits });
        expect(used).toMatchObject({ inputTokens: 4, outputTokens: 10, totalTokens: 20 });
        expect(message).toEqual(used);
        expect(costUsd).toBeCloseTo(costOf(price, used), 12);
      }
  });

  it('is not estimated for what it says is nothing', async () => {
    const { used, costUsd } = await counted(usage(4, 0), { limits: { tokens: 9000 } });
    expect(used.totalTokens).toBe(4);
    expect(costUsd).toBe(4e-6);
  });

  it('ends a run at its limit, also one that is resumed', async () => {
    const ask = tool({
      name: 'ask',
      description: '',
      input,
      execute: (_, ctx) => ctx.suspend({ title: '?' }).then(() => 'ok'),
    });
    for (const told of [{ inputTokens: 4 }, { outputTokens: 4 }, { totalTokens: 1100 }])
      for (const limits of [{ tokens: 1080 }, { costUsd: 1080e-6 }, { tokens: 4000, costUsd: 1 }]) {
        const store = memoryStore();
        const asks = tells(told, { type: 'tool-call', id: 'c', name: 'ask', arguments: '{}' });
        const model = scriptedModel([asks, text('end', usage(1, 1))], { price });
        const open = () => new Agent({ model, store, tools: [ask], limits }).session('s');
        const first = await open().run('x'.repeat(392));
        await open().answer(first.pending[0]!.id, { type: 'approve' });
        const last = await open().resume();
        expect(last.usage.totalTokens).toBe(first.usage.totalTokens + (last.status === 'done' ? 2 : 0));
        expect(last.costUsd).toBeCloseTo(costOf(price, last.usage), 12);
        expect(last.status).toBe(limits.tokens === 4000 ? 'done' : 'stopped');
      }
  });

  /** Of 392 characters in one message, and a tool. */
  const ESTIMATE = 100 + Math.ceil(JSON.stringify(toolSpec(free)).length / 4);
});

describe('the output cap', () => {
  it('follows what is left from turn to turn', async () => {
    const caps: (number | undefined)[] = [];
    const step = (request: ModelRequest, n: number) => {
      caps.push(request.settings.maxOutputTokens);
      return n < 3 ? call() : text('end');
    };
    await watched(agent([step, step, step], { limits: { tokens: 300 } }), 'go');
    expect(caps).toHaveLength(3);
    expect(caps[0]).toBeGreaterThan(caps[1]!);
    expect(caps[1]).toBeGreaterThan(caps[2]!);
    await settle();
  });
});
