import { describe, expect, it } from 'vitest';
import { Agent, attribution, defineMiddleware, type Middleware, type RunError, tool } from '../../index.js';
import { objectInput } from '../../kit/object-input.js';
import { failWith, scriptedModel, text } from '../../testing/index.js';

const look = tool({ name: 'look', description: 'Looks.', input: objectInput({}), execute: () => 'seen' });

async function failureOf(middleware: readonly Middleware[], answers = [text('hi')]): Promise<RunError> {
  const model = scriptedModel(answers);
  const error = await new Agent({ model, tools: [look], middleware }).run('hello').then(
    () => undefined,
    (reason) => reason,
  );
  expect(error, 'It did not fail.').toBeDefined();
  return error;
}

/** Has hooks at the model and assigns what is fine. */
const fine = (name: string): Middleware =>
  defineMiddleware({
    name,
    beforeModel(ctx) {
      ctx.settings = { ...ctx.settings, seed: 1 };
    },
    wrapModel: (ctx, next) => next({ systemPrompt: `${ctx.systemPrompt} ${name}` }),
    onError() {},
  });

/** Has hooks at the model and changes nothing. */
const idle = (name: string): Middleware =>
  defineMiddleware({ name, beforeModel() {}, wrapModel: (_, next) => next(), onError() {} });

const WRONG: [string, object, string][] = [
  [
    'model',
    { model: 'gpt' },
    'Expected `ctx.model` to be a model with provider, id and stream(), got "gpt". A name alone is not a model: write resolveModel("<provider>/gpt") of "@allium/ai-sdk", or fromAiSdk( … ) with a model of the AI SDK.',
  ],
  [
    'model',
    { model: { stream() {} } },
    'Expected `ctx.model` to be a model with `provider` and `id` as text, got {}.',
  ],
  ['model', { model: null }, 'Expected `ctx.model` to be a model with provider, id and stream(), got null.'],
  ['messages', { messages: 'hi' }, 'Expected `ctx.messages` to be a list of messages, got "hi".'],
  [
    'messages',
    { messages: [null] },
    "Expected `ctx.messages` to be a list of messages (at [0]: a message { role: 'user' | 'assistant' | 'tool', content: [...] }), got [null].",
  ],
  [
    'messages',
    { messages: [{ role: 'user', content: [null] }] },
    'Expected `ctx.messages` to be a list of messages (at [0]: every content part to have a `type`), got [{"role":"user","content":[null]}].',
  ],
  ['systemPrompt', { systemPrompt: 5 }, 'Expected `ctx.systemPrompt` to be text, got 5.'],
  [
    'tools',
    { tools: ['look'] },
    'Expected `ctx.tools` to be a list of tools made with tool(), got ["look"].',
  ],
  ['settings', { settings: null }, 'Expected `ctx.settings` to be an object, got null.'],
  [
    'settings',
    { settings: { temperature: 'hot' } },
    'Expected `ctx.settings.temperature` to be a finite number ≥ 0, got "hot".',
  ],
  [
    'settings',
    { settings: { max_tokens: 5 } },
    'Unknown option `max_tokens` of ctx.settings. Here that is `maxOutputTokens`. It takes: maxOutputTokens, temperature, topP, stopSequences, seed, toolChoice, responseSchema, provider, systemMetadata, systemBlocks.',
  ],
];

/** Each way for a middleware to say what a call asks, and the hook that is to blame. */
const WAYS: [string, (fields: object) => Partial<Middleware>][] = [
  ['beforeModel', (fields) => ({ beforeModel: (ctx) => void Object.assign(ctx, fields) })],
  [
    'beforeModel',
    (fields) => ({
      async beforeModel(ctx) {
        await undefined;
        Object.assign(ctx, fields);
      },
      wrapModel: (_, next) => next({}),
    }),
  ],
  ['wrapModel', (fields) => ({ beforeModel() {}, onError() {}, wrapModel: (_, next) => next(fields) })],
  [
    'wrapModel',
    (fields) => ({
      beforeModel() {},
      wrapModel(ctx, next) {
        Object.assign(ctx, fields);
        return next();
      },
    }),
  ],
  ['process', (fields) => ({ seams: ['model'], beforeModel() {}, process: (_, next) => next(fields) })],
  [
    'transformContext',
    (fields) => ({
      transformContext(messages, ctx) {
        Object.assign(ctx, fields);
        return messages;
      },
    }),
  ],
  [
    'transformSystemPrompt',
    (fields) => ({
      transformSystemPrompt(prompt, ctx) {
        Object.assign(ctx, fields);
        return prompt;
      },
    }),
  ],
  [
    'convertToLlm',
    (fields) => ({
      convertToLlm(messages, ctx) {
        Object.assign(ctx, fields);
        return messages;
      },
    }),
  ],
];

describe('a wrong value that a middleware assigns to a request', () => {
  it.each(WRONG)('as %s is told with the middleware and the hook: %j', async (_, fields, message) => {
    for (const [hook, way] of WAYS) {
      const odd = defineMiddleware({ name: 'odd', ...way(fields) });
      for (const others of [[odd], [fine('a'), odd, idle('b')]]) {
        const error = await failureOf(others);
        expect(error.message).toBe(`The run failed: ${message} (in ${hook} of "odd")`);
        expect(error.code).toBe('INVALID_OPTION');
        expect(attribution(error.cause)).toMatchObject({ middleware: 'odd', hook });
      }
    }
  });

  it('may be a tool of the same name as another one', async () => {
    const twice = defineMiddleware({ name: 'twice', ...WAYS[0]![1]({ tools: [look, { ...look }] }) });
    const error = await failureOf([fine('a'), twice, idle('b')]);
    expect(error.code).toBe('DUPLICATE_TOOL');
    expect(error.message).toContain('"look" is in ctx.tools twice, so a call could mean either.');
    expect(attribution(error.cause)).toMatchObject({ middleware: 'twice', hook: 'beforeModel' });
  });

  it('is blamed on the onError that assigned it', async () => {
    const odd = defineMiddleware({
      name: 'odd',
      beforeModel() {},
      onError(ctx) {
        Object.assign(ctx, { model: 'gpt' });
        return ctx.attempt === 1 ? ('fallback' as const) : undefined;
      },
    });
    const error = await failureOf([fine('a'), odd, idle('b')], [failWith(new Error('busy'))]);
    expect(error.message).toContain('`ctx.model`');
    expect(attribution(error.cause)).toMatchObject({ middleware: 'odd', hook: 'onError' });
  });

  it('is blamed on the middleware that assigned it last, not on one that assigned something else', async () => {
    const assign = (name: string, fields: object): Middleware =>
      defineMiddleware({ name, beforeModel: (ctx) => void Object.assign(ctx, fields) });
    const error = await failureOf([
      assign('mended', { settings: 'none' }),
      assign('mends', { settings: { seed: 3 } }),
      assign('odd', { tools: 'all' }),
      assign('last', { systemPrompt: 'Be brief.' }),
    ]);
    expect(error.message).toContain('`ctx.tools`');
    expect(attribution(error.cause)).toMatchObject({ middleware: 'odd', hook: 'beforeModel' });
  });

  it('in a transform that fails open is undone', async () => {
    const model = scriptedModel([text('hi')]);
    const odd = defineMiddleware({
      name: 'odd',
      onFail: 'open',
      transformSystemPrompt(prompt, ctx) {
        Object.assign(ctx, { settings: { temperature: 'hot' } });
        return `${prompt}!`;
      },
    });
    const agent = new Agent({ model, systemPrompt: 'Hi', settings: { seed: 1 }, middleware: [odd] });
    const { changes } = await agent.run('hello');
    expect(model.requests[0]).toMatchObject({ settings: { seed: 1 } });
    expect(changes[0]).toMatchObject({ by: 'odd' });
    expect(changes[0]!.what).toMatch(/^transformSystemPrompt failed and was skipped: .*ctx\.settings\.temp/);
  });

  it('reaches no model, and passes the layers further out as the same error', async () => {
    const seen: unknown[] = [];
    const outer = defineMiddleware({ name: 'outer', onError: (_, error) => void seen.push(error) });
    const odd = defineMiddleware({
      name: 'odd',
      wrapModel: (_, next) => next({ settings: { topP: '1' } as never }),
    });
    const model = scriptedModel([text('hi')]);
    const error = await new Agent({ model, middleware: [outer, odd] }).run('hello').catch((reason) => reason);
    expect(seen).toEqual([error.cause]);
    expect(model.requests).toEqual([]);
  });

  it('in a call of a middleware itself is blamed on the layer inside it', async () => {
    const side = scriptedModel([text('ok')], { id: 'side' });
    const asks = defineMiddleware({
      name: 'asks',
      extraLlmCalls: () => [side],
      async beforeRun(ctx) {
        await ctx.generate(side, { messages: 'what?', settings: { seed: 2 } });
      },
    });
    const odd = defineMiddleware({
      name: 'odd',
      beforeModel: (ctx) => void Object.assign(ctx, { systemPrompt: null }),
    });
    const error = await failureOf([asks, fine('a'), odd]);
    expect(attribution(error.cause)).toMatchObject({ middleware: 'odd', hook: 'beforeModel' });
  });
});
