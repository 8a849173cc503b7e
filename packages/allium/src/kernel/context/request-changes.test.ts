import { describe, expect, it } from 'vitest';
import { Agent, defineMiddleware, type Middleware, tool, userMessage } from '../../index.js';
import { objectInput } from '../../kit/object-input.js';
import { failWith, scriptedModel, text, toolCalls } from '../../testing/index.js';

const look = tool({ name: 'look', description: 'Looks.', input: objectInput({}), execute: () => 'seen' });
const other = scriptedModel([text('other')], { id: 'other', repeat: true });

async function changesOf(middleware: readonly Middleware[], answers = [text('hi')]) {
  const agent = new Agent({ model: scriptedModel(answers), tools: [look], middleware });
  return (await agent.run('hello')).changes;
}

const assign = (name: string, fields: object): Middleware =>
  defineMiddleware({ name, beforeModel: (ctx) => void Object.assign(ctx, fields) });

/** Has hooks at the model and changes nothing. */
const idle = (name: string): Middleware =>
  defineMiddleware({ name, beforeModel() {}, afterModel() {}, wrapModel: (_, next) => next() });

describe('result.changes after a layer rewrote the request', () => {
  it.each([
    ['messages', { messages: [userMessage('other')] }],
    ['system prompt', { systemPrompt: 'Be kind.' }],
    ['tools', { tools: [] }],
    ['model', { model: other }],
    ['settings', { settings: { temperature: 0 } }],
  ])('says who rewrote the %s, whichever way it was done', async (part, fields) => {
    const what = `rewrote the ${part} of the request`;
    const ways: Middleware[] = [
      assign('m', fields),
      defineMiddleware({ name: 'm', wrapModel: (_, next) => next(fields) }),
      defineMiddleware({
        name: 'm',
        wrapModel(ctx, next) {
          Object.assign(ctx, fields);
          return next();
        },
      }),
      defineMiddleware({ name: 'm', seams: ['model'], process: (_, next) => next(fields) }),
    ];
    for (const way of ways)
      expect(await changesOf([idle('a'), idle('b'), way, idle('c')])).toEqual([{ turn: 1, by: 'm', what }]);
  });

  it('says who assigned it in a transform of the request', async () => {
    const settings = { temperature: 0 };
    const transform = defineMiddleware({
      name: 'm',
      transformContext(messages, ctx) {
        ctx.settings = settings;
        return messages;
      },
      transformSystemPrompt(prompt, ctx) {
        ctx.messages = [...ctx.messages, userMessage('more')];
        return prompt;
      },
    });
    const changes = await changesOf([idle('a'), transform, idle('b')]);
    expect(changes.map(({ by, what }) => `${by} ${what}`)).toEqual([
      'm rewrote the settings of the request',
      'm rewrote the messages of the request',
    ]);
  });

  it('is empty when nobody rewrote anything, or wrote what was there', async () => {
    const same = defineMiddleware({
      name: 'same',
      beforeModel(ctx) {
        const { messages, settings } = ctx;
        Object.assign(ctx, { messages, settings });
        ctx.metadata.seen = true;
      },
    });
    expect(await changesOf([idle('a'), same, idle('b')])).toEqual([]);
  });

  it('names each of several from the outside in, and each turn', async () => {
    const changes = await changesOf(
      [
        assign('prompt', { systemPrompt: 'a' }),
        idle('x'),
        assign('messages', { messages: [userMessage('b')] }),
        defineMiddleware({
          name: 'both',
          wrapModel: (ctx, next) => {
            ctx.settings = { seed: 1 };
            return next({ systemPrompt: 'c' });
          },
        }),
      ],
      [toolCalls({ name: 'look' }), text('done')],
    );
    const turn = (n: number) => [
      { turn: n, by: 'prompt', what: 'rewrote the system prompt of the request' },
      { turn: n, by: 'messages', what: 'rewrote the messages of the request' },
      { turn: n, by: 'both', what: 'rewrote the settings of the request' },
      { turn: n, by: 'both', what: 'rewrote the system prompt of the request' },
    ];
    expect(changes).toEqual([...turn(1), ...turn(2)]);
  });

  it('names a rewrite once for a call that is tried again', async () => {
    const again = defineMiddleware({ name: 'again', onError: (ctx) => (ctx.attempt < 3 ? 'retry' : 'fail') });
    const changes = await changesOf(
      [assign('prompt', { systemPrompt: 'a' }), again],
      [failWith(new Error('no')), failWith(new Error('no')), text('yes')],
    );
    expect(changes.filter(({ by }) => by === 'prompt')).toHaveLength(1);
  });

  it('says nothing of a request that was not sent', async () => {
    const cached = defineMiddleware({
      name: 'cached',
      beforeModel(ctx) {
        ctx.response = { role: 'assistant', content: [{ type: 'text', text: 'known' }], stopReason: 'stop' };
      },
    });
    const changes = await changesOf([assign('prompt', { systemPrompt: 'a' }), cached]);
    expect(changes).toEqual([{ turn: 1, by: 'cached', what: 'answered the model call itself' }]);
  });

  it('tells transforms from layers', async () => {
    const transforms = defineMiddleware({
      name: 'transforms',
      transformContext: (messages) => [...messages, userMessage('more')],
      transformSystemPrompt: (prompt) => `${prompt}!`,
      beforeModel() {},
    });
    const quiet = defineMiddleware({
      name: 'quiet',
      transformContext: (messages) => messages,
      transformSystemPrompt: (prompt) => prompt,
    });
    const layer = assign('layer', { systemPrompt: 'other' });
    expect(await changesOf([transforms, quiet, layer])).toEqual([
      { turn: 1, by: 'transforms', what: 'rewrote the messages of the request' },
      { turn: 1, by: 'transforms', what: 'rewrote the system prompt of the request' },
      { turn: 1, by: 'layer', what: 'rewrote the system prompt of the request' },
    ]);
    const converts = defineMiddleware({ name: 'converts', convertToLlm: (messages) => [...messages] });
    expect(await changesOf([converts])).toEqual([
      { turn: 1, by: 'converts', what: 'converted the messages of the request' },
    ]);
  });

  it('tells what convertToLlm assigned beside the messages, which it returns', async () => {
    const converts = defineMiddleware({
      name: 'converts',
      convertToLlm(messages, ctx) {
        Object.assign(ctx, {
          messages: [userMessage('not sent')],
          systemPrompt: 'other',
          settings: { seed: 1 },
        });
        return messages;
      },
    });
    expect(await changesOf([converts])).toEqual([
      { turn: 1, by: 'converts', what: 'rewrote the system prompt of the request' },
      { turn: 1, by: 'converts', what: 'rewrote the settings of the request' },
    ]);
  });

  it('counts the rewrites of a call of a middleware itself, from what it asked', async () => {
    const asks = defineMiddleware({
      name: 'asks',
      extraLlmCalls: () => [other],
      async beforeRun(ctx) {
        await ctx.generate(other, { messages: 'what?', systemPrompt: 'Own.', settings: { seed: 2 } });
      },
    });
    expect(await changesOf([asks, idle('a')])).toEqual([]);
    expect(await changesOf([asks, assign('prompt', { systemPrompt: 'a' })])).toEqual([
      { turn: 0, by: 'prompt', what: 'rewrote the system prompt of the request' },
      { turn: 1, by: 'prompt', what: 'rewrote the system prompt of the request' },
    ]);
  });
});
