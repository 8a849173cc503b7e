import { describe, expect, it } from 'vitest';
import { Agent, attribution, defineMiddleware, type Middleware, type RunError, tool } from '../../index.js';
import { objectInput } from '../../kit/object-input.js';
import { failWith, scriptedModel, text, toolCalls } from '../../testing/index.js';

const look = tool({ name: 'look', description: 'Looks.', input: objectInput({}), execute: () => 'seen' });

function agentOf(middleware: Middleware, options: Partial<ConstructorParameters<typeof Agent>[0]> = {}) {
  const model = scriptedModel([toolCalls({ name: 'look' }), text('done')]);
  return new Agent({ model, tools: [look], middleware: [middleware], ...options });
}

const failureOf = (agent: Agent): Promise<RunError> =>
  agent.run('hi').then(
    () => {
      throw new Error('It did not fail.');
    },
    (error) => error,
  );

const throws = (value: unknown) => (): never => {
  throw value;
};

describe('a thrown value that is not an error', () => {
  it.each([
    ['beforeRun'],
    ['wrapRun'],
    ['beforeModel'],
    ['wrapModel'],
    ['afterModel'],
    ['transformContext'],
    ['afterModelResponse'],
    ['shouldStopAfterTurn'],
    ['onRunEnd'],
  ] as const)('in %s: the RunError names the middleware and the hook', async (hook) => {
    for (const value of ['quota', 7, undefined, null]) {
      const error = await failureOf(agentOf(defineMiddleware({ name: 'odd', [hook]: throws(value) })));
      expect(error.code).toBe('MIDDLEWARE_ERROR');
      expect(error.message).toBe(`The run failed: ${value} (in ${hook} of "odd")`);
      expect(error.cause).toBe(value);
      expect(attribution(error)).toMatchObject({ middleware: 'odd', hook });
    }
  });

  it('in a stream transform: the middleware that registered it', async () => {
    const odd = defineMiddleware({
      name: 'odd',
      beforeModel: (ctx) => ctx.transform(() => ({ part: throws('cut') })),
    });
    expect((await failureOf(agentOf(odd))).message).toBe('The run failed: cut (in transform of "odd")');
  });

  it('of a model is an error of the model', async () => {
    const model = scriptedModel([failWith('overloaded')]);
    const error = await failureOf(agentOf(defineMiddleware({ beforeModel() {} }), { model }));
    expect(error).toMatchObject({ code: 'MODEL_ERROR', cause: 'overloaded' });
    expect(attribution(error)).toMatchObject({ hook: 'model', attempts: 1 });
  });

  it('of a model is an error of the model, even if a middleware threw the same value before', async () => {
    const odd = defineMiddleware({ name: 'odd', beforeTool: throws('x') });
    const model = scriptedModel([toolCalls({ name: 'look' }), failWith('x')]);
    const error = await failureOf(agentOf(odd, { model }));
    expect(error).toMatchObject({ code: 'MODEL_ERROR', message: 'The run failed: x' });
  });

  it.each(['beforeTool', 'wrapTool', 'afterTool', 'beforeToolCall', 'afterToolCall'] as const)(
    'in %s: the model reads which middleware failed, and so does the caller',
    async (hook) => {
      const result = await agentOf(defineMiddleware({ name: 'odd', [hook]: throws('no') })).run('hi');
      expect(result.messages[2]).toMatchObject({
        isError: true,
        content: [{ text: '"look" was not completed: middleware "odd" failed: no' }],
      });
      expect(result.changes).toContainEqual({ turn: 1, by: 'odd', what: `${hook} failed for look: no` });
    },
  );

  it('of a tool is the failure of the tool', async () => {
    const odd = tool({ name: 'look', description: 'Looks.', input: objectInput({}), execute: throws('fog') });
    const { messages } = await agentOf(defineMiddleware({ wrapTool: (_, next) => next() }), {
      tools: [odd],
    }).run('hi');
    expect(messages[2]).toMatchObject({ isError: true, content: [{ text: '"look" failed: fog' }] });
  });

  it('reaches the layers further out as it is', async () => {
    const seen: unknown[] = [];
    const outer = defineMiddleware({ name: 'outer', onError: (_, error) => void seen.push(error) });
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [outer, defineMiddleware({ name: 'odd', beforeModel: throws('raw') })],
    });
    await failureOf(agent);
    expect(seen).toEqual(['raw']);
  });
});

describe('an onRequest that throws', () => {
  const asks = defineMiddleware({
    name: 'asks',
    suspends: true,
    beforeToolCall: () => ({ ask: { title: 'Look?' } }),
  });

  it.each([new Error('no terminal'), 'no terminal'])('is named in the RunError: %s', async (value) => {
    const error = await failureOf(agentOf(asks, { onRequest: throws(value) }));
    expect(error.message).toBe('The run failed: no terminal (in onRequest)');
    expect(error.cause).toBe(value);
    expect(attribution(error)).toEqual({ hook: 'onRequest' });
  });

  it('is named also if it returns something that is not a decision', async () => {
    const error = await failureOf(agentOf(asks, { onRequest: () => ({ type: 'perhaps' }) as never }));
    expect(error).toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/^The run failed: Expected a decision .* \(in onRequest\)$/),
    });
    expect(attribution(error)).toEqual({ hook: 'onRequest' });
  });

  it('names the middleware that brought it', async () => {
    const own = defineMiddleware({
      name: 'own',
      suspends: true,
      beforeToolCall: () => ({ ask: { title: 'Look?', onRequest: throws('broken') } }),
    });
    const error = await failureOf(agentOf(own));
    expect(error.message).toBe('The run failed: broken (in onRequest of "own")');
  });
});

describe('a guard that returns something invalid', () => {
  const guarded = (guard: Partial<NonNullable<Middleware['guard']>>) =>
    failureOf(agentOf(defineMiddleware({ name: 'strict', guard: { on: ['input'], ...guard } })));

  it.each([
    [
      { judge: () => ({ type: 'block', reason: 'my SECRET' }) as never },
      "its judge returned { type: 'block', reason: text }. Return { type: 'allow' | 'deny' | 'ask' | 'rewrite' } or nothing.",
    ],
    [{ judge: () => false as never }, "its judge returned false. Return { type: 'allow'"],
    [
      { judge: ({ text }: { text: string }) => text as never },
      "its judge returned text. Return { type: 'allow'",
    ],
    [
      { judge: () => ({ type: 'rewrite' }) as never },
      "its judge returned { type: 'rewrite' }. A rewrite brings `text`.",
    ],
    [
      { find: (async () => []) as never },
      'its find returned a promise. Return a list of { start, end }, at once.',
    ],
    [
      // If nobody took care of the promise, its rejection would end the process.
      { find: (() => Promise.reject(new Error('my SECRET'))) as never },
      'its find returned a promise. Return a list of { start, end }, at once. What takes its time is a `judge`',
    ],
    [
      { find: () => [{ start: 4, end: 1 }] },
      'its find returned { start: 4, end: 1 }. Return spans with 0 ≤ start ≤ end ≤ 2, the length of the text.',
    ],
    [
      { find: () => [{ start: 0, end: 1, replacement: 5 as never }] },
      'its find returned { start: 0, end: 1, replacement: a number }. A `replacement` is text, and so is a `reason`.',
    ],
    [
      { judge: () => ({ type: 'deny', reason: { why: 'my SECRET' } }) as never },
      "its judge returned { type: 'deny', reason: an object }. `reason` is text.",
    ],
  ])('gets an error with what it returned and what is expected: %#', async (guard, said) => {
    const error = await guarded(guard);
    expect(error.code).toBe('GUARD_FAILED');
    expect(error.message).toContain(`Guard "strict" failed, so nothing more was released: ${said}`);
    expect(error.message).not.toContain('SECRET');
    expect(error.cause).toMatchObject({ code: 'INVALID_HOOK_RESULT' });
  });

  it('is reported without what it threw, which may quote the judged text', async () => {
    const error = await guarded({ judge: throws(new Error('my SECRET')) });
    expect(error.message).toBe(
      'The run failed: Guard "strict" failed, so nothing more was released. (in guard of "strict")',
    );
  });
});

describe('ctx.result without ctx.skip in beforeTool', () => {
  const preset = (more: object) =>
    defineMiddleware({
      name: 'preset',
      beforeTool(ctx) {
        ctx.result = { content: [{ type: 'text', text: 'known' }], isError: false };
        Object.assign(ctx, more);
      },
    });

  it('is an error that says what to set', async () => {
    const { messages } = await agentOf(preset({})).run('hi');
    expect(messages[2]).toMatchObject({ isError: true });
    expect(JSON.stringify(messages[2])).toContain(
      'beforeTool of \\"preset\\" set ctx.result without ctx.skip, so the tool would still run.',
    );
  });

  it('together with ctx.skip, answers without the tool', async () => {
    const { messages } = await agentOf(preset({ skip: true })).run('hi');
    expect(messages[2]).toMatchObject({ isError: false, content: [{ text: 'known' }] });
  });

  it('is undone if the middleware fails open', async () => {
    const { messages } = await agentOf({ ...preset({}), onFail: 'open' }).run('hi');
    expect(messages[2]).toMatchObject({ isError: false, content: [{ text: 'seen' }] });
  });
});

describe('ctx.generate() with wrong arguments', () => {
  const side = scriptedModel([text('ok')], { repeat: true });
  const asking = (model: unknown, request: unknown) =>
    failureOf(
      agentOf(
        defineMiddleware({
          name: 'asks',
          extraLlmCalls: () => [side],
          async beforeModel(ctx) {
            await ctx.generate(model as never, request as never);
          },
        }),
      ),
    );

  it.each([
    [side, { messages: 'hi', system: 'x' }, /Unknown option `system` of ctx\.generate\(\)\./],
    [side, { mesages: 'hi' }, /Unknown option `mesages` of ctx\.generate\(\)\. Did you mean `messages`\?/],
    [side, undefined, /for ctx\.generate\(\), got undefined/],
    [side, 'hi', /for ctx\.generate\(\), got "hi"/],
    [side, {}, /Expected `messages` to be text or messages/],
    [side, { messages: 'hi', systemPrompt: 1 }, /Expected `systemPrompt` to be text, got 1/],
    [side, { messages: 'hi', tools: ['look'] }, /Expected `tools` to be a list of tools made with tool\(\)/],
    [side, { messages: 'hi', settings: null }, /Expected `settings` to be an object, got null/],
    [side, { messages: 'hi', settings: { max_tokens: 5 } }, /Unknown option `max_tokens` of settings\./],
    [
      side,
      { messages: 'hi', settings: { temperature: 'hot' } },
      /Expected `settings\.temperature` to be a finite number ≥ 0, got "hot"/,
    ],
    [
      'gpt',
      { messages: 'hi' },
      /Expected `model of ctx\.generate\(\)` to be a model with provider, id and stream\(\)/,
    ],
    [undefined, { messages: 'hi' }, /Expected `model of ctx\.generate\(\)`/],
  ])('says what is wrong: %#', async (model, request, said) => {
    const error = await asking(model, request);
    expect(error.code).toBe('INVALID_OPTION');
    expect(error.message).toMatch(said);
    expect(error.message).toContain('(in beforeModel of "asks")');
  });
});
