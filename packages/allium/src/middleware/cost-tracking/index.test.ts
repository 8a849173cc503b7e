import { Agent, assistantMessage, defineMiddleware, memoryStore, tool } from 'allium';
import { type CallCost, type CostTrackingOptions, costTracking } from 'allium/middleware/cost-tracking';
import { retry } from 'allium/middleware/retry';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { importWithout } from '../../../../../test/import-without.js';

const PRICE = { input: 3, output: 15 };
const prices = { 'test/scripted': PRICE };
const COST = (10 * 3 + 5 * 15) / 1e6;

function setup(script: readonly Script[], options: CostTrackingOptions = { prices }, more: object[] = []) {
  const costs: CallCost[] = [];
  const model = scriptedModel(script);
  const tracking = costTracking({ onCost: (cost) => costs.push(cost), ...options });
  return { costs, model, agent: new Agent({ model, middleware: [tracking, ...more] as never }) };
}

testMiddleware(() => costTracking({ prices: {} }), {
  name: 'cost-tracking',
  changes: ['state', 'custom-events'],
  describe,
  it,
});
testMiddleware(() => costTracking({ prices: () => PRICE }), {
  name: 'cost-tracking with known prices',
  changes: ['state', 'custom-events'],
  describe,
  it,
});

describe('cost-tracking', () => {
  it('waits for `onCost`, and fails with what it rejects with', async () => {
    const order: string[] = [];
    const onCost = async () => {
      await undefined;
      order.push('told');
    };
    await setup(['hi'], { prices, onCost }).agent.run('hi');
    order.push('done');
    expect(order).toEqual(['told', 'done']);
    const full = new Error('disk full');
    const { agent } = setup(['hi'], { prices, onCost: () => Promise.reject(full) });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MIDDLEWARE_ERROR', cause: full });
  });

  it('adds up what the calls of a run cost', async () => {
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'ok' });
    const model = scriptedModel([toolCalls({ name: 'look' }), text('done', { inputTokens: 1e6 })]);
    const costs: CallCost[] = [];
    const tracking = costTracking({ prices, onCost: (cost) => costs.push(cost) });
    const result = await new Agent({ model, tools: [look], middleware: [tracking] }).run('go');
    expect(result.costUsd).toBeCloseTo(3 + COST, 12);
    expect(costs.map(({ model: name, usd, totalUsd }) => [name, usd, totalUsd])).toEqual([
      ['test/scripted', COST, COST],
      ['test/scripted', 3, 3 + COST],
    ]);
  });

  it('leaves the cost unknown if the model reports only part of its usage', async () => {
    for (const usage of [{ inputTokens: 5 }, { outputTokens: 5 }, { totalTokens: 5 }]) {
      const costs: CallCost[] = [];
      const model = scriptedModel([chunks('hi', { type: 'finish', reason: 'stop', usage })]);
      const tracking = costTracking({ prices, onCost: (cost) => costs.push(cost) });
      const result = await new Agent({ model, middleware: [tracking] }).run('go');
      expect([result.costUsd, result.usage.totalTokens]).toEqual([undefined, 5]);
      expect(costs).toMatchObject([{ usd: undefined, totalUsd: undefined }]);
    }
  });

  it('prices what came from the cache of a provider by its own rates', async () => {
    const usage = { inputTokens: 100, cacheRead: 1e6, cacheWrite: 1e6, outputTokens: 0 };
    const price = { input: 10, output: 1, cacheRead: 1, cacheWrite: 2 };
    const { agent } = setup([text('hi', usage)], { prices: { scripted: price } });
    expect((await agent.run('go')).costUsd).toBeCloseTo(3.001, 12);
  });

  it.each<[string, CostTrackingOptions['prices']]>([
    ['provider and id', { 'test/scripted': PRICE, scripted: { input: 0, output: 0 } }],
    ['id', { scripted: PRICE }],
    ['a function', ({ provider, id }) => (provider === 'test' && id === 'scripted' ? PRICE : undefined)],
  ])('finds prices by %s', async (_, given) => {
    expect((await setup(['hi'], { prices: given }).agent.run('go')).costUsd).toBe(COST);
  });

  it('leaves the cost unknown, and never zero, when a price is missing', async () => {
    for (const given of [{}, { toString: PRICE, 'other/scripted': PRICE }, () => undefined]) {
      const { agent, costs } = setup(['hi'], { prices: given as never });
      expect((await agent.run('go')).costUsd).toBeUndefined();
      expect(costs[0]).toMatchObject({ usd: undefined, totalUsd: undefined });
    }
  });

  it.each<[string, unknown, string]>([
    ['text', { input: '3', output: 15 }, '`price.input` of test/scripted'],
    ['less than nothing', { input: 3, output: -5 }, '`price.output` of test/scripted'],
    ['nothing for the output', { input: 3 }, '`price.output` of test/scripted'],
    ['a promise', Promise.resolve(PRICE), '`price` of test/scripted'],
    ['a number', 3, '`price` of test/scripted'],
  ])('fails the run when a function of prices returns %s', async (_, price, named) => {
    const error = await setup(['hi'], { prices: () => price as never })
      .agent.run('go')
      .catch((thrown) => thrown);
    expect(error.code).toBe('INVALID_OPTION');
    expect(error.message).toContain(named);
  });

  it('leaves the sum unknown once one call is, even if later ones are known', async () => {
    let known = false;
    const { agent, costs } = setup(['one', 'two'], { prices: () => (known ? PRICE : undefined) }, [
      defineMiddleware({
        name: 'again',
        onRunEnd: () => {
          if (known) return undefined;
          known = true;
          return [{ id: '', role: 'user', content: [] }];
        },
      }),
    ]);
    expect((await agent.run('go')).costUsd).toBeUndefined();
    expect(costs.map(({ usd, totalUsd }) => [usd, totalUsd])).toEqual([
      [undefined, undefined],
      [COST, undefined],
    ]);
  });

  it('leaves the cost unknown when the model does not say what it used', async () => {
    const { agent, costs } = setup([text('hi', {})]);
    expect((await agent.run('go')).costUsd).toBeUndefined();
    expect(costs[0]).toMatchObject({ usd: undefined, totalUsd: undefined });
  });

  it('takes the price a model carries itself', async () => {
    const model = scriptedModel(['hi', 'hi'], { price: PRICE });
    for (const options of [{}, { prices: {} }]) {
      const costs: CallCost[] = [];
      const tracking = costTracking({ ...options, onCost: (cost) => costs.push(cost) });
      await new Agent({ model, middleware: [tracking] }).run('go');
      expect(costs[0]?.usd).toBe(COST);
    }
  });

  it('charges nothing for cached and preset answers', async () => {
    const preset = defineMiddleware({
      name: 'preset',
      beforeModel(ctx) {
        ctx.response = assistantMessage('made up');
      },
    });
    expect((await setup([], { prices: {} }, [preset]).agent.run('go')).costUsd).toBe(0);
    const cached = defineMiddleware({
      name: 'cached',
      beforeModel(ctx) {
        const metadata = { cacheHit: true };
        ctx.response = assistantMessage('stored', { model: 'test/scripted', metadata });
      },
    });
    const { agent, costs } = setup([], { prices: {} }, [cached]);
    await agent.run('go');
    expect(costs[0]?.usd).toBe(0);
  });

  it('charges the model that really answered', async () => {
    const other = scriptedModel(['hi'], { id: 'other' });
    const fallback = defineMiddleware({ name: 'other', wrapModel: (_, next) => next({ model: other }) });
    const { agent, costs } = setup([], { prices: { 'test/other': PRICE } }, [fallback]);
    await agent.run('go');
    expect(costs[0]).toMatchObject({ model: 'test/other', usd: COST });
  });

  it('does not claim to know a sum that includes calls it has not seen', async () => {
    const clock = fakeClock();
    const broken = failWith(Object.assign(new Error('cut'), { status: 503 }), 'Half an ans');
    const { agent } = setup([broken, text('hi')], { prices }, []);
    const outside = new Agent({
      model: agent.model,
      middleware: [retry({ clock }), costTracking({ prices })],
    });
    const run = outside.run('go');
    await clock.advance(10_000);
    const result = await run;
    expect(result.usage.totalTokens).toBeGreaterThan(15);
    expect(result.costUsd).toBeUndefined();
  });

  it('informs outer layers and the stream', async () => {
    const seen: unknown[] = [];
    const outer = defineMiddleware({
      name: 'outer',
      afterModel: (ctx) => void seen.push(ctx.metadata.costUsd),
    });
    const model = scriptedModel(['hi']);
    const { events } = await collect(
      new Agent({ model, middleware: [outer, costTracking({ prices })] }).stream('go'),
    );
    expect(seen).toEqual([COST]);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'cost',
      by: 'cost-tracking',
      data: { model: 'test/scripted', usd: COST, totalUsd: COST },
    });
  });

  it('goes on adding after a resume', async () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'ask' }), text('done')]);
    const make = () => new Agent({ model, tools: [ask], store, middleware: [costTracking({ prices })] });
    const first = await make().session('s').run('go');
    expect(first.costUsd).toBe(COST);
    const answers = { [first.pending[0]!.id]: { type: 'approve' as const } };
    expect((await make().session('s').resume({ answers })).costUsd).toBeCloseTo(2 * COST, 12);
  });

  it('leaves everything else in the result as it was', async () => {
    const result = await setup(['hi']).agent.run('go');
    expect(result).toMatchObject({ status: 'done', text: 'hi', turns: 1, usage: { totalTokens: 15 } });
    expect(result.messages).toHaveLength(2);
    expect(Object.keys(result)).toContain('costUsd');
  });

  it('keeps 100 concurrent runs and two instances apart', async () => {
    const model = scriptedModel(['hi'], { repeat: true });
    const costs: CallCost[] = [];
    const one = costTracking({ prices: {}, onCost: (cost) => costs.push(cost) });
    const agent = new Agent({ model, middleware: [costTracking({ prices }), one] });
    const results = await Promise.all(Array.from({ length: 100 }, () => agent.run('go')));
    expect(new Set(results.map(({ costUsd }) => costUsd))).toEqual(new Set([COST]));
    expect(costs.every(({ usd }) => usd === undefined)).toBe(true);
  });

  it('reports nothing for a call that was aborted', async () => {
    const { agent, costs, model } = setup([hang('Hel')]);
    const abort = new AbortController();
    const run = agent.run('go', { signal: abort.signal }).catch((error) => error);
    while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(costs).toEqual([]);
  });

  describe('the table', () => {
    const known = (script: readonly Script[], id = 'gpt-4o') =>
      scriptedModel(script, { provider: 'openai', id });

    it('knows well-known models', async () => {
      const model = known([text('hi', { inputTokens: 1e6, outputTokens: 1e6 })]);
      const { costUsd } = await new Agent({ model, middleware: [costTracking()] }).run('go');
      expect(costUsd).toBeGreaterThan(0.1);
      expect(costUsd).toBeLessThan(100);
    });

    it('counts what a provider cached as a part of the input', async () => {
      const cost = async (usage: object) => {
        const model = known([text('hi', usage)]);
        return (await new Agent({ model, middleware: [costTracking()] }).run('go')).costUsd!;
      };
      const plain = await cost({ inputTokens: 1e6 });
      const cached = await cost({ inputTokens: 0, cacheRead: 1e6 });
      expect(cached).toBeGreaterThan(0);
      expect(cached).toBeLessThan(plain);
    });

    it('leaves models it does not know unknown', async () => {
      const agents = [known(['hi'], 'no-such-model'), scriptedModel(['hi'])].map(
        (model) => new Agent({ model, middleware: [costTracking()] }),
      );
      for (const agent of agents) expect((await agent.run('go')).costUsd).toBeUndefined();
    });

    it('that is missing makes the cost unknown, and says once what to install', async () => {
      const fresh = await importWithout<typeof import('./index.js')>(
        '@pydantic/genai-prices',
        new URL('index.ts', import.meta.url),
      );
      const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'ok' });
      const model = scriptedModel([toolCalls({ name: 'look' }), 'hi', 'hi']);
      const tracked = new Agent({ model, tools: [look], middleware: [fresh.costTracking()] });
      const { events, result } = await collect(tracked.stream('go'));
      expect(result).toMatchObject({ status: 'done', text: 'hi' });
      expect(result!.costUsd).toBeUndefined();
      const told = expect.stringContaining('npm install @pydantic/genai-prices');
      expect(result!.changes).toEqual([{ turn: 1, by: 'cost-tracking', what: told }]);
      const costs = events.flatMap((event) => (event.type === 'custom' ? [event.data] : []));
      expect(costs).toEqual([
        expect.objectContaining({ usd: undefined, totalUsd: undefined, problem: told }),
        expect.not.objectContaining({ problem: expect.anything() }),
      ]);
      const agent = new Agent({ model, middleware: [fresh.costTracking({ prices })] });
      expect((await agent.run('go')).costUsd).toBe(COST);
    });
  });

  it.each([
    [{ prices: [] }, 'Expected `prices` to be an object of prices by model, or a function, got [].'],
    [{ prices: { m: 5 } }, 'Expected `prices.m` to be an object with input and output, got 5.'],
    [{ prices: { m: { input: 1 } } }, 'Expected `prices.m.output` to be a finite number ≥ 0, got undefined.'],
    [
      { prices: { m: { ...PRICE, cacheRead: -1 } } },
      'Expected `prices.m.cacheRead` to be a finite number ≥ 0, got -1.',
    ],
    [{ onCost: 1 }, 'Expected `onCost` to be a function, got 1.'],
    [{ price: {} }, 'Unknown option `price` of costTracking(). Did you mean `prices`?'],
  ])('refuses %j', (options, message) => {
    expect(() => costTracking(options as never)).toThrow(message);
  });
});
