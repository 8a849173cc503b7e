import { Agent, defineMiddleware, defineState, type Middleware, pipeline, tool } from 'allium';
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

  it('says whether runs in long sessions read only their end, and who keeps them from it', () => {
    const window: Middleware = { name: 'window', enoughHistory: () => true, transformContext: (all) => all };
    const near: Middleware = { name: 'near', looksBack: 0, beforeModel() {} };
    const far: Middleware = { name: 'far', beforeModel() {} };
    const tracing: Middleware = { name: 'tracing', looksBack: 0, traces: true, afterRun() {} };
    const explained = (...middleware: Middleware[]) => new Agent({ model, middleware }).explain();
    expect(explained(near).longSessions).toEqual({ shortenedBy: [], readWholeFor: [] });
    expect(String(explained(near, far))).not.toContain('Long sessions');
    expect(String(explained(window, near))).toContain(
      'Long sessions: only the end is read, thanks to window',
    );
    expect(explained(window, near, far, tracing).longSessions).toEqual({
      shortenedBy: ['window'],
      readWholeFor: ['far', 'tracing'],
    });
    expect(String(explained(window, far))).toContain('Long sessions: read whole, because of far');
    const own = new Agent({ model, middleware: [window], shouldStopAfterTurn: () => false });
    expect(own.explain().longSessions.readWholeFor).toEqual(['the hooks of the agent']);
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

  it('tells a middleware called "agent" from the agent', () => {
    const convertToLlm: Middleware['convertToLlm'] = (messages) => messages;
    const middleware: Middleware[] = [{ name: 'agent', convertToLlm }];
    expect(String(new Agent({ model, middleware, convertToLlm }).explain())).toContain(
      'convertToLlm (last wins): agent; never runs: the middleware "agent"\n',
    );
    expect(String(new Agent({ model, middleware }).explain())).toMatch(/convertToLlm \(last wins\): agent$/);
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

  it('names both of two replaced hooks only if both can run', () => {
    const fixOf = (hook: object) =>
      new Agent({ model, middleware: [hook], ...hook }).explain().hazards[0]?.fix;
    expect(fixOf({ beforeToolCall() {} })).toBe('Pass it as a middleware to have both.');
    expect(fixOf({ convertToLlm })).toMatch(/^Only one converts in any case: merge them/);
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

  it('a cache around a convertToLlm that varies, which runs innermost in either order', () => {
    const [cache, clock] = [trait('cache', ['caches']), trait('clock', ['varies'], { convertToLlm })];
    const found = ['cache-outside-variation: cache, clock'];
    expect(hazards([cache, clock])).toEqual(found);
    expect(hazards([clock, cache])).toEqual(found);
    expect(hazards([cache, { ...clock, wrapModel }])).toEqual(found);
    expect(hazards([trait('tool-cache', ['caches'], { wrapTool }), clock])).toEqual([]);
    const early = trait('clock', ['varies'], { transformContext: (messages) => messages });
    expect(hazards([cache, early])).toEqual([]);
    // It never runs: that of another middleware, or of the agent, does.
    expect(hazards([cache, clock, { name: 'last', convertToLlm }])).toEqual([
      'two-convert-to-llm: clock, last',
    ]);
    expect(hazards([cache, clock], { convertToLlm })).toEqual(['hook-replaced: clock']);
  });

  it('a transform outside a cache that stores untransformed text', () => {
    const [transform, cache] = [trait('style', ['transforms']), trait('cache', ['caches'])];
    expect(hazards([transform, cache])).toEqual(['transform-outside-cache: style, cache']);
    expect(hazards([cache, transform])).toEqual([]);
  });

  it('a transform in a rule that runs after every layer, in either order', () => {
    const cache = trait('cache', ['caches']);
    const toolCache = trait('tool-cache', ['caches'], { wrapTool });
    const answers = trait('style', ['transforms'], { afterModelResponse() {} });
    const results = trait('style', ['transforms'], { afterToolCall() {} });
    expect(hazards([answers, cache])).toEqual(['transform-outside-cache: style, cache']);
    expect(hazards([cache, answers])).toEqual(['transform-outside-cache: style, cache']);
    expect(hazards([results, toolCache])).toEqual(['transform-outside-cache: style, tool-cache']);
    expect(hazards([toolCache, results])).toEqual(['transform-outside-cache: style, tool-cache']);
    expect(hazards([answers, toolCache])).toEqual([]);
    expect(hazards([results, cache])).toEqual([]);
    expect(hazards([{ name: 'silent', afterModelResponse() {} }, cache])).toEqual([]);
    // The hook of the agent runs in its place.
    expect(hazards([cache, answers], { afterModelResponse() {} })).toEqual(['hook-replaced: style']);
  });

  it('a redaction outside a cache', () => {
    const cache = trait('cache', ['caches'], { wrapModel, sink: true });
    const redact = (rest: Partial<Middleware>) => trait('redact', ['redacts'], rest);
    const found = ['transform-outside-cache: redact, cache'];
    expect(hazards([redact({ wrapModel }), cache])).toEqual(found);
    expect(hazards([redact({ afterModel() {} }), cache])).toEqual(found);
    expect(hazards([cache, redact({ afterModelResponse() {} })])).toEqual(found);
    expect(hazards([cache, redact({ wrapModel })])).toEqual([]);
    // What is cut from a request is cut before the cache, which is where it belongs.
    expect(hazards([redact({ beforeModel() {} }), cache])).toEqual([]);
    expect(hazards([redact({ wrapTool }), cache])).toEqual([]);
    const guard = { on: ['output'], find: () => [] } as const;
    expect(hazards([redact({ guard }), cache])).toEqual([]);
    expect(hazards([redact({ guard, afterModel() {} }), cache])).toEqual([]);
    expect(hazards([redact({ guard: { ...guard, on: ['input'] }, afterModel() {} }), cache])).toEqual(found);
  });

  it('a redaction after a sink has been given the text', () => {
    const redact = (rest: Partial<Middleware>) => trait('redact', ['redacts'], rest);
    const sink = (rest: Partial<Middleware>) => trait('audit', ['exports'], { sink: true, ...rest });
    const found = ['redaction-outside-sink: redact, audit'];
    expect(hazards([redact({ wrapModel }), sink({ afterModel() {} })])).toEqual(found);
    expect(hazards([sink({ wrapModel }), redact({ wrapModel })])).toEqual([]);
    expect(hazards([redact({ wrapModel }), sink({ wrapTool })])).toEqual([]);
    expect(hazards([redact({ wrapModel }), sink({ beforeModel() {} })])).toEqual([]);
    expect(
      hazards([redact({ wrapModel, guard: { on: ['output'], find: () => [] } }), sink({ wrapModel })]),
    ).toEqual([]);
    expect(hazards([trait('style', ['transforms']), sink({ wrapModel })])).toEqual([]);
    // Rules are asked after all layers, one after the other.
    const [cuts, writes] = [redact({ afterToolCall() {} }), sink({ afterToolCall() {} })];
    expect(hazards([cuts, sink({ wrapTool })])).toEqual(found);
    expect(hazards([writes, cuts])).toEqual(found);
    expect(hazards([cuts, writes])).toEqual([]);
    expect(hazards([redact({ wrapTool }), writes])).toEqual([]);
    // Whoever keeps results, or says that it is a sink, writes as well.
    expect(hazards([redact({ wrapTool }), trait('audit', ['keeps'], { wrapTool })])).toEqual(found);
    expect(hazards([redact({ wrapTool }), { name: 'audit', sink: true, wrapTool }])).toEqual(found);
    expect(hazards([redact({ wrapTool }), { name: 'audit', wrapTool }])).toEqual([]);
    // One that only looks up what a sink wrote does not, unless it says so.
    const looksUp = (...traits: string[]) =>
      trait('audit', ['replays', ...traits], { sink: true, wrapModel });
    expect(hazards([redact({ wrapModel }), looksUp()])).toEqual([]);
    expect(hazards([redact({ wrapModel }), looksUp('exports')])).toEqual(found);
  });

  it('advises a guard if text is stored before it is redacted', () => {
    const redact = trait('redact', ['redacts']);
    const fixOf = (inner: Middleware) =>
      new Agent({ model, middleware: [redact, inner] }).explain().hazards[0]?.fix;
    const guard = 'what a guard removes reaches no sink, wherever they stand.';
    expect(fixOf(trait('cache', ['caches'], { wrapModel, sink: true }))).toBe(
      `Make "redact" a guard: ${guard}`,
    );
    expect(fixOf(trait('cache', ['caches']))).toBe(
      `Make "redact" a guard, and declare "cache" a sink: ${guard}`,
    );
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

  it('a cell that the agent and a middleware declare', () => {
    for (const scope of ['run', 'session'] as const) {
      const [shared, own] = ['shared', 'own'].map((name) => defineState({ name, scope, initial: 0 }));
      expect(hazards([{ name: 'a', state: [shared!] }], { state: [shared] })).toEqual([
        'shared-cell: agent, a',
      ]);
      expect(hazards([{ name: 'a', state: [shared!] }], { state: [own] })).toEqual([]);
      expect(hazards([{ name: 'agent', state: [shared!] }])).toEqual([]);
      expect(
        hazards([
          { name: 'agent', state: [shared!] },
          { name: 'a', state: [shared!] },
        ]),
      ).toEqual(['shared-cell: agent, a']);
    }
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

  it('several unnamed middleware that keep state of the run', () => {
    const counts = (name?: string, scope: 'run' | 'session' = 'run'): Middleware => ({
      ...(name !== undefined && { name }),
      state: [defineState({ name: 'count', scope, initial: 0 })],
      beforeModel() {},
    });
    expect(hazards([counts('a'), counts('b')])).toEqual([]);
    expect(hazards([counts('a'), counts('a')])).toEqual(['told-apart-by-order: a, a#2']);
    expect(hazards([counts('a'), { name: 'a', beforeModel() {} }])).toEqual([]);
    expect(hazards([counts(), counts()])).toEqual(['told-apart-by-order: middleware-1, middleware-2']);
  });

  it('a timeout outside a wait for humans', () => {
    const approval: Middleware = { name: 'approval', suspends: true, beforeToolCall() {} };
    const timeout = trait('timeout', ['times-out'], { wrapTool });
    const asking: Middleware = { name: 'asking', suspends: true, wrapTool };
    expect(hazards([timeout, asking])).toEqual(['timeout-outside-human: timeout, asking']);
    expect(hazards([asking, timeout])).toEqual([]);
    // Rules are asked before the time of a tool begins.
    expect(hazards([timeout, approval])).toEqual([]);
    expect(hazards([approval, timeout])).toEqual([]);
    expect(hazards([trait('model-timeout', ['times-out'], { wrapModel }), approval])).toEqual([]);
    expect(hazards([timeout, { name: 'policy', beforeToolCall() {} }])).toEqual([]);
  });

  it('a timeout of the run around a wait for humans, which no order changes', () => {
    const wrapRun: Middleware['wrapRun'] = (_, next) => next();
    const limit = trait('limit', ['times-out'], { wrapRun });
    const found = ['timeout-outside-human: limit, human'];
    for (const asks of [
      { beforeToolCall() {} },
      { wrapTool },
      { tools: [work('ask')] },
      { guard: { on: ['tool-args'], judge() {} } },
      { beforeRun() {}, beforeToolCall() {} },
    ] satisfies Partial<Middleware>[]) {
      const human: Middleware = { name: 'human', suspends: true, ...asks };
      expect(hazards([limit, human])).toEqual(found);
      expect(hazards([human, limit])).toEqual(found);
      expect(hazards([{ ...limit, traits: ['times-out', 'pauses'] }, human])).toEqual([]);
      expect(hazards([limit, { ...human, suspends: false }])).toEqual([]);
    }
    const door: Middleware = { name: 'human', suspends: true, wrapRun };
    expect(hazards([limit, door])).toEqual(found);
    expect(hazards([door, limit])).toEqual([]);
  });

  it('a timeout of tools around a tool that asks, which no order changes', () => {
    const limit = trait('limit', ['times-out'], { wrapTool });
    const human: Middleware = { name: 'human', suspends: true, tools: [work('ask')] };
    expect(hazards([limit, human])).toEqual(['timeout-outside-human: limit, human']);
    expect(hazards([human, limit])).toEqual(['timeout-outside-human: limit, human']);
    expect(hazards([{ ...limit, traits: ['times-out', 'pauses'] }, human])).toEqual([]);
    expect(hazards([trait('limit', ['times-out'], { wrapModel }), human])).toEqual([]);
    // What asks before the layers of a call, or in a layer outside, is not taken to ask in its tools as well.
    expect(hazards([limit, { ...human, beforeToolCall() {} }])).toEqual([]);
    expect(hazards([limit, { ...human, guard: { on: ['tool-args'], judge() {} } }])).toEqual([]);
    expect(hazards([{ ...human, wrapTool }, limit])).toEqual([]);
  });

  it('advises only what really helps against a timeout around a wait for humans', () => {
    const fixOf = (...middleware: Middleware[]) => new Agent({ model, middleware }).explain().hazards[0]?.fix;
    const asking: Middleware = { name: 'human', suspends: true, wrapTool };
    expect(fixOf(trait('limit', ['times-out'], { wrapTool }), asking)).toMatch(
      /^Put "limit" inside "human", or/,
    );
    expect(fixOf(trait('limit', ['times-out'], { wrapRun: (_, next) => next() }), asking)).toBe(
      'Use limits.timeoutMs, which does not count the time people take. Moving "limit" does not help.',
    );
    const asks: Middleware = { name: 'human', suspends: true, tools: [work('ask')] };
    expect(fixOf(asks, trait('limit', ['times-out'], { wrapTool }))).toMatch(
      /^Moving "limit" does not help: /,
    );
  });

  it('errors that become results before a middleware that acts on errors sees them', () => {
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

  it('say nothing about an order that one side declares', () => {
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

it('lists what a middleware says about itself, with its name', () => {
  const knows = defineMiddleware({
    name: 'knows',
    beforeRun() {},
    hazards: (plan) =>
      plan.toolsByName.has('pay') ? [] : [{ id: 'no-tool', message: 'There is no "pay".', fix: 'Add it.' }],
  });
  const explanation = new Agent({ model: scriptedModel([]), middleware: [knows] }).explain();
  expect(explanation.hazards).toEqual([
    { id: 'no-tool', between: ['knows'], message: 'There is no "pay".', fix: 'Add it.' },
  ]);
  expect(String(explanation)).toContain('! no-tool: There is no "pay".');
});
