// Limits of cost: prices, budgets, and models that do not say what they used.

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
  tool,
  toolSpec,
  type Usage,
} from 'allium';
import { chunks, failWith, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { agent, call, free, input, price, usage } from '../../../../../test/limits-setup.js';
import { settle, watched } from '../../../../../test/run-checks.js';
import { costOf } from '../messages/model.js';
import { Budget, isCrowded } from './budget.js';
import { estimateTokens } from './estimates.js';

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

  it('for which `priceOf` throws fails the run with that error, before the model is called', async () => {
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
  it('that cannot be read is reported once, however many agents pass it on', async () => {
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
  it('of 0 is a price, and null means no price', async () => {
    const nothing = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    expect((await run(() => nothing, { costUsd: 1 }).ended).costUsd).toBe(0);
    expect((await run(() => null).ended).costUsd).toBeUndefined();
    await expect(run(() => null, { costUsd: 1 }).ended).rejects.toMatchObject({ code: 'PRICE_UNKNOWN' });
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
    budget.bookUsage(price, first, {
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
  it('grants no part too short for an answer while other calls may leave more', () => {
    const budget = new Budget({ tokens: 2000 }, () => undefined);
    const first = budget.reserve(model, () => 0, undefined, 0.25);
    expect(first?.maxOutputTokens).toBe(1024);
    expect(isCrowded(refusal(() => budget.reserve(model, () => 0, undefined, 0.25)))).toBe(true);
    expect(budget.reserve(model, () => 0, 900, 0.25)?.maxOutputTokens).toBe(900);
    const tight = new Budget({ tokens: 100 }, () => undefined);
    expect(tight.reserve(model, () => 10, undefined, 0.25)?.maxOutputTokens).toBe(90);
  });
  it('makes nobody wait when no call is under way, whatever rounding leaves of dollars', () => {
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
  it('distinguishes a call that must wait for others from one that can never fit', () => {
    const session = new Budget({ tokens: 30 }, () => undefined);
    const run = new Budget({ tokens: 100 }, () => undefined, session);
    run.reserve(model, () => 10, 15, 1);
    expect(isCrowded(refusal(() => run.reserve(model, () => 29, undefined, 1)))).toBe(true);
    expect(isCrowded(refusal(() => run.reserve(model, () => 30, undefined, 1)))).toBe(false);
  });
  it('prices cached tokens like input by default', () => {
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

  it('counts by characters what the usage of an answer leaves out', () => {
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

  it('has unknown cost, with a price or without, and a later call does not change that', async () => {
    for (const model of [scriptedModel(['a'], { price, usage: {} }), scriptedModel(['a'], { usage: {} })]) {
      const { costUsd, usage: used } = await agent([], { model }).run('go');
      expect([costUsd, used]).toEqual([undefined, NO_USAGE]);
    }
    const { costUsd, usage: used } = await silent([call(), text('b', usage(3, 2))]).run('go');
    expect([costUsd, used.totalTokens]).toEqual([undefined, 5]);
  });

  it('has unknown cost after a resume too, and this is written once', async () => {
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

  it('costs nothing if nothing was sent or answered', async () => {
    const failing = failWith(Object.assign(new Error('Down'), { status: 503 }));
    const again: Middleware = { name: 'again', wrapModel: (_, next) => next().catch(() => next()) };
    const { costUsd } = await agent([failing, text('a', usage(3, 2))], { middleware: [again] }).run('go');
    expect(costUsd).toBe(costOf(price, { ...NO_USAGE, ...usage(3, 2) }));
  });

  it('is counted by estimate if tokens or money are limited', async () => {
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

  it('has unknown cost, and the reported counts are kept', async () => {
    for (const told of [{ inputTokens: 4 }, { outputTokens: 4 }, { cacheRead: 4 }, { totalTokens: 4 }]) {
      const { costUsd, used, message } = await counted(told, {});
      expect(costUsd).toBeUndefined();
      expect(used).toEqual({ ...NO_USAGE, ...told, totalTokens: 4 });
      expect(message).toEqual(used);
    }
  });

  it.each([{ tokens: 9000 }, { costUsd: 0.009 }])(
    'is estimated for the rest if %j limits',
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

  it('counts as complete if the missing part follows from the total', async () => {
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

  it('is not estimated for a count that it reports as 0', async () => {
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
