import { Agent, defineState, type Middleware, pipeline, tool } from 'allium';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const model = scriptedModel([]);
const work = (name: string, idempotent = false) =>
  tool({ name, description: name, input: z.object({}), idempotent, execute: () => name });

describe('explain()', () => {
  const agent = (): Agent =>
    new Agent({
      model,
      tools: [work('search', true)],
      middleware: [
        { name: 'limit', traits: ['budgets'], wrapModel: (_, next) => next(), beforeRun() {} },
        pipeline([
          { name: 'cache', traits: ['caches'], seams: ['model', 'tool'], process: (_, next) => next() },
          { name: 'retry', traits: ['retries'], onError() {}, onFail: 'open' },
        ]),
        {
          name: 'policy',
          state: [defineState({ name: 'refusals', scope: 'session', initial: 0 })],
          beforeToolCall() {},
          beforeTool() {},
          afterTool() {},
        },
        {
          name: 'first',
          convertToLlm: (messages) => messages,
          guard: { on: ['input', 'output'], find: () => [] },
        },
        { name: 'second', convertToLlm: (messages) => messages, tools: [work('note', true)] },
      ],
      transformSystemPrompt: (prompt) => prompt,
    });

  it('is data: chains at every seam, rule and guard point, tools, state and hazards', () => {
    const explanation = agent().explain();
    expect(explanation.middleware.map(({ name, onFail }) => `${name} ${onFail}`)).toEqual([
      'limit closed',
      'cache closed',
      'retry open',
      'policy closed',
      'first closed',
      'second closed',
    ]);
    expect(explanation.layers).toEqual({
      run: [{ name: 'limit', hooks: ['beforeRun'] }],
      model: [
        { name: 'limit', hooks: ['wrapModel'] },
        { name: 'cache', hooks: ['process'] },
        { name: 'retry', hooks: ['onError'] },
      ],
      tool: [
        { name: 'cache', hooks: ['process'] },
        { name: 'retry', hooks: ['onError'] },
        { name: 'policy', hooks: ['beforeTool', 'afterTool'] },
      ],
    });
    expect(explanation.rules).toMatchObject([
      { hook: 'transformSystemPrompt', members: ['agent'], shadowed: [] },
      { hook: 'convertToLlm', members: ['first', 'second'], shadowed: ['first'] },
      { hook: 'beforeToolCall', members: ['policy'], shadowed: [] },
    ]);
    expect(explanation.guards).toEqual([
      { point: 'input', members: ['first'] },
      { point: 'output', members: ['first'] },
    ]);
    expect(explanation.tools).toEqual(['search', 'note']);
    expect(explanation.state).toEqual(['policy:refusals (session)']);
    expect(explanation.hazards.map(({ id }) => id)).toEqual(['two-convert-to-llm']);
    expect(JSON.parse(JSON.stringify(explanation))).toMatchObject({ tools: ['search', 'note'] });
  });

  it('is readable text', () => {
    expect(String(agent().explain())).toMatchInlineSnapshot(`
      "Plan: 6 middleware, 2 tools

      run layers, from the outside in
        limit (beforeRun)
          the loop

      model layers, from the outside in
        limit (wrapModel)
          cache (process)
            retry (onError)
              the model

      tool layers, from the outside in
        cache (process)
          retry (onError)
            policy (beforeTool, afterTool)
              the tool

      Rules
        transformSystemPrompt (chain): agent
        convertToLlm (last wins): second; never runs: first
        beforeToolCall (first block stops): policy

      Guards
        input: first
        output: first

      Tools: search, note

      State: policy:refusals (session)

      Hazards
        ! two-convert-to-llm: 2 middleware convert messages for the model; only "second" runs.
          Merge them into one that calls both, or use transformContext, which chains."
    `);
  });

  it('is short where there is little to say', () => {
    expect(String(new Agent({ model }).explain())).toMatchInlineSnapshot(`"Plan: 0 middleware, 0 tools"`);
  });

  it('runs nothing', () => {
    agent().explain();
    expect(model.requests).toEqual([]);
  });

  it('includes per-run middleware', () => {
    const explanation = agent().explain({ middleware: [{ name: 'extra', beforeModel() {} }] });
    expect(explanation.layers.model.at(-1)).toEqual({ name: 'extra', hooks: ['beforeModel'] });
  });

  it('names an explicit hook and whom it shadows', () => {
    const explicit = new Agent({
      model,
      middleware: [{ name: 'a', onRunEnd() {} }],
      onRunEnd() {},
    }).explain();
    expect(explicit.rules).toMatchObject([{ hook: 'onRunEnd', members: ['agent'], shadowed: ['a'] }]);
    expect(String(explicit)).toContain('onRunEnd (concatenate): agent; never runs: a');
  });
});

describe('hazards', () => {
  const wrapModel: Middleware['wrapModel'] = (_, next) => next();
  const wrapTool: Middleware['wrapTool'] = (_, next) => next();
  const trait = (name: string, traits: string[], rest: Partial<Middleware> = { wrapModel }): Middleware => ({
    name,
    traits,
    ...rest,
  });
  const hazards = (middleware: Middleware[], options: object = {}): string[] =>
    new Agent({ model, middleware, ...options })
      .explain()
      .hazards.map(({ id, between }) => `${id}: ${between.join(', ')}`);
  const convertToLlm: Middleware['convertToLlm'] = (messages) => messages;

  it('two convertToLlm', () => {
    expect(
      hazards([
        { name: 'a', convertToLlm },
        { name: 'b', convertToLlm },
      ]),
    ).toEqual(['two-convert-to-llm: a, b']);
    expect(hazards([{ name: 'a', convertToLlm }])).toEqual([]);
  });

  it('an explicit hook replacing others', () => {
    const beforeToolCall = () => {};
    expect(hazards([{ name: 'a', beforeToolCall }], { beforeToolCall })).toEqual(['hook-replaced: a']);
    expect(hazards([{ name: 'a', afterToolCall() {} }], { beforeToolCall })).toEqual([]);
  });

  it('a retry around a tool that is not idempotent', () => {
    expect(hazards([trait('retry', ['retries'], { wrapTool })], { tools: [work('pay')] })).toEqual([
      'retry-of-unsafe-tool: retry',
    ]);
    expect(hazards([trait('retry', ['retries'], { wrapTool })], { tools: [work('read', true)] })).toEqual([]);
    expect(hazards([trait('retry', ['retries'], { wrapModel })], { tools: [work('pay')] })).toEqual([]);
    expect(
      hazards([trait('retry', ['retries'], { seams: ['model'], onError() {} })], { tools: [work('pay')] }),
    ).toEqual([]);
    expect(hazards([trait('retry', ['retries'], { wrapTool })])).toEqual([]);
  });

  it('a cache outside something that varies per call', () => {
    const [cache, clock] = [trait('cache', ['caches']), trait('clock', ['varies'])];
    expect(hazards([cache, clock])).toEqual(['cache-outside-variation: cache, clock']);
    expect(hazards([clock, cache])).toEqual([]);
    expect(hazards([trait('tool-cache', ['caches'], { wrapTool }), clock])).toEqual([]);
  });

  it('a transform outside a cache that stores untransformed text', () => {
    const [transform, cache] = [trait('style', ['transforms']), trait('cache', ['caches'])];
    expect(hazards([transform, cache])).toEqual(['transform-outside-cache: style, cache']);
    expect(hazards([cache, transform])).toEqual([]);
  });

  it('two middleware writing one cell', () => {
    const cell = () => defineState({ name: 'shared', scope: 'run', initial: 0 });
    const shared = cell();
    expect(
      hazards([
        { name: 'a', state: [shared] },
        { name: 'b', state: [shared] },
      ]),
    ).toEqual(['shared-cell: a, b']);
    expect(
      hazards([
        { name: 'a', state: [cell()] },
        { name: 'b', state: [cell()] },
      ]),
    ).toEqual([]);
  });

  it('a budget inside a retry', () => {
    const [retry, budget] = [trait('retry', ['retries']), trait('budget', ['budgets'])];
    expect(hazards([retry, budget])).toEqual(['budget-inside-retry: retry, budget']);
    expect(hazards([budget, retry])).toEqual([]);
    expect(hazards([trait('tool-retry', ['retries'], { wrapTool }), budget])).toEqual([]);
  });

  it('the same object twice', () => {
    const cache = trait('cache', ['caches'], { wrapModel });
    expect(hazards([cache, cache])).toEqual(['listed-twice: cache#2']);
    expect(hazards([cache, { ...cache }])).toEqual([]);
  });

  it('a timeout outside a wait for humans', () => {
    const approval: Middleware = { name: 'approval', suspends: true, beforeToolCall() {} };
    const timeout = trait('timeout', ['times-out'], { wrapTool });
    const asking: Middleware = { name: 'asking', suspends: true, wrapTool };
    expect(hazards([timeout, asking])).toEqual(['timeout-outside-human: timeout, asking']);
    expect(hazards([asking, timeout])).toEqual([]);
    // Rules are asked before the time of a tool begins.
    expect(hazards([timeout, approval])).toEqual([]);
    expect(
      hazards([trait('run-timeout', ['times-out'], { wrapRun: (_, next) => next() }), approval]),
    ).toEqual(['timeout-outside-human: run-timeout, approval']);
    expect(hazards([approval, timeout])).toEqual([]);
    expect(hazards([trait('model-timeout', ['times-out'], { wrapModel }), approval])).toEqual([]);
    expect(hazards([timeout, { name: 'policy', beforeToolCall() {} }])).toEqual([]);
  });

  it('errors that become results before somebody who acts on errors sees them', () => {
    const settles = trait('worded', ['settles'], { wrapTool });
    const [retry, breaker] = [
      trait('retry', ['retries'], { wrapTool }),
      trait('breaker', ['trips'], { wrapTool }),
    ];
    expect(hazards([retry, settles])).toEqual(['errors-settled-inside: retry, worded']);
    expect(hazards([breaker, settles])).toEqual(['errors-settled-inside: breaker, worded']);
    expect(hazards([settles, retry, breaker])).toEqual([]);
    expect(hazards([trait('model-retry', ['retries']), settles])).toEqual([]);
    const keeps = trait('kept', ['keeps'], { wrapTool });
    expect(hazards([keeps, settles])).toEqual(['settled-errors-kept: kept, worded']);
    expect(hazards([settles, keeps])).toEqual([]);
  });

  it('a breaker around a fallback', () => {
    const [breaker, fallback] = [trait('breaker', ['trips']), trait('fallback', ['switches'])];
    expect(hazards([breaker, fallback])).toEqual(['breaker-outside-fallback: breaker, fallback']);
    expect(hazards([fallback, breaker])).toEqual([]);
    expect(hazards([trait('tool-breaker', ['trips'], { wrapTool }), fallback])).toEqual([]);
  });

  it('a timeout around a breaker', () => {
    const [timeout, breaker] = [trait('timeout', ['times-out']), trait('breaker', ['trips'])];
    expect(hazards([timeout, breaker])).toEqual(['timeout-outside-breaker: timeout, breaker']);
    expect(hazards([breaker, timeout])).toEqual([]);
  });

  it('an observer-like sink that is not declared one', () => {
    const audit = trait('audit', ['exports'], { afterModel() {} });
    expect(hazards([audit])).toEqual(['undeclared-sink: audit']);
    expect(hazards([{ ...audit, sink: true }])).toEqual([]);
  });

  it('come from what middleware declare, never from their names', () => {
    const silent = ['cache', 'clock', 'retry', 'budget', 'timeout', 'audit', 'redact'].map(
      (name): Middleware => ({ name, wrapModel, wrapTool }),
    );
    expect(hazards(silent, { tools: [work('pay')] })).toEqual([]);
    expect(hazards([trait('x', ['caches']), trait('y', ['varies'])])).toEqual([
      'cache-outside-variation: x, y',
    ]);
  });

  it('are silent about an order that one side declares', () => {
    const retry = trait('retry', ['retries']);
    expect(
      hazards([retry, trait('budget', ['budgets'], { wrapModel, order: { inside: ['retry'] } })]),
    ).toEqual([]);
    expect(hazards([{ ...retry, order: { outside: ['budget'] } }, trait('budget', ['budgets'])])).toEqual([]);
  });

  it('are found through nested lists, and say what to do', () => {
    const [hazard] = new Agent({
      model,
      middleware: [[trait('cache', ['caches'])], pipeline([trait('clock', ['varies'])])],
    }).explain().hazards;
    expect(hazard).toEqual({
      id: 'cache-outside-variation',
      between: ['cache', 'clock'],
      message:
        '"cache" stands outside "clock", which changes each request: the cache key does not see the change.',
      fix: 'Put "clock" outside "cache", or leave one out.',
    });
  });
});
