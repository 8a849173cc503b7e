import { Agent, defineMiddleware, type Middleware, type Model } from 'allium';
import { compaction, goal, subagents, toolSelector } from 'allium/middleware';
import { scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const PRICE = { input: 1, output: 1 };
const priced = (id: string) => ({ ...scriptedModel([text('ok'), text('ok')], { id }), price: PRICE });
const calls = (model: Model): Middleware =>
  defineMiddleware({ name: 'calls', extraLlmCalls: () => [model], beforeRun() {} });

describe('explain() lists the models that middleware call for themselves', () => {
  it('with the middleware that calls them', () => {
    const small = scriptedModel([], { id: 'small' });
    const judge = scriptedModel([], { id: 'judge' });
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [
        compaction({ summaryModel: small, maxTokens: 100 }),
        goal({ evaluator: judge }),
        toolSelector({ model: small }),
      ],
    });
    const explanation = agent.explain();
    expect(explanation.models).toEqual([
      { by: 'compaction', model: 'test/small' },
      { by: 'goal', model: 'test/judge' },
      { by: 'tool-selector', model: 'test/small' },
    ]);
    expect(String(explanation)).toContain(
      'Further models: test/small (compaction), test/judge (goal), test/small (tool-selector)',
    );
  });

  it('and names a middleware that declares anything but a model', () => {
    const agent = new Agent({ model: scriptedModel([]), middleware: [calls('gpt' as never)] });
    expect(() => agent.explain()).toThrow(
      'Middleware "calls": `extraLlmCalls` must return models, got "gpt" among them.',
    );
  });
});

describe('a limit on cost', () => {
  const limited = { limits: { costUsd: 1 } };

  it.each([
    ['of the agent', limited, {}],
    ['of the run', {}, limited],
    ['of the session', { sessionLimits: { costUsd: 1 } }, {}],
  ])('%s needs the prices of these models too, before the first call', async (_, ofAgent, ofRun) => {
    const model = priced('main');
    const agent = new Agent({ model, middleware: [calls(scriptedModel([], { id: 'dear' }))], ...ofAgent });
    for (const run of [
      () => agent.run('go', ofRun),
      () => agent.stream('go', ofRun).result,
      () => agent.session('s').run('go', ofRun),
    ])
      await expect(run()).rejects.toMatchObject({
        code: 'PRICE_UNKNOWN',
        message: expect.stringContaining('the price of test/dear, which "calls" may call, is not known'),
      });
    expect(model.requests).toHaveLength(0);
  });

  it('accepts `price` or `priceOf`, and a run without a limit needs no prices', async () => {
    const dear = scriptedModel([], { id: 'dear' });
    const run = (options: object, extra: Model = dear) =>
      new Agent({ model: priced('main'), middleware: [calls(extra)], ...options }).run('go');
    expect((await run(limited, priced('dear'))).status).toBe('done');
    expect((await run({ ...limited, priceOf: () => PRICE })).status).toBe('done');
    expect((await run({})).status).toBe('done');
    expect((await run({ limits: { tokens: 10_000 } })).status).toBe('done');
  });

  it('counts the models of sub-agents', async () => {
    const spec = { description: 'x', systemPrompt: 'x', model: scriptedModel([], { id: 'child' }) };
    const model = priced('main');
    const agent = new Agent({
      model,
      middleware: [subagents({ agents: { reader: { name: 'reader', ...spec } }, defaultModel: model })],
      ...limited,
    });
    await expect(agent.run('go')).rejects.toMatchObject({ code: 'PRICE_UNKNOWN' });
  });
});
