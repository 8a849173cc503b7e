import { Agent, assistantMessage, defineMiddleware, type Message, textOf } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { retry } from 'allium/middleware/retry';
import { failWith, fakeClock, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { BASE, long, setup, silent, summariser } from '../../../../../test/compaction-setup.js';
import { isContextOverflow } from './overflow.js';

describe('a request that the provider finds too long', () => {
  const tooLong = () =>
    Object.assign(new Error('This model’s maximum context length is 4096 tokens.'), {
      status: 400,
      code: 'context_length_exceeded',
    });
  const options = { maxTokens: 100_000, keepTailTokens: 8000, minMessages: 4 };
  const fits = ({ messages }: { messages: readonly Message[] }) =>
    messages.map(textOf).join('').length <= 600;

  it('is compacted, and the turn starts again', async () => {
    let refusals = 0;
    const answers = (request: { messages: readonly Message[] }) => {
      if (fits(request)) return silent;
      refusals++;
      return failWith(tooLong());
    };
    const { session, sent, state, model } = setup(['SUMMARY'], options, [answers]);
    await session.run([...[1, 2, 3, 4, 5, 6].map((n) => long(n)), long(7)]);
    expect(refusals).toBe(1);
    expect(sent()[0]).toContain('SUMMARY');
    expect(sent().at(-1)).toBe(long(7));
    expect(state()!.summarizedMessageIds.length).toBeGreaterThanOrEqual(4);
    expect(await session.messages()).toHaveLength(8);
    await session.run('Next.');
    expect(model.requests).toHaveLength(3);
    expect(sent()[0]).toContain('SUMMARY');
  });

  it('is refused for good the second time', async () => {
    const { session, model, summaryModel } = setup(['SUMMARY'], options, [failWith(tooLong())]);
    const error = await session.run([1, 2, 3, 4].map((n) => long(n))).catch((failed) => failed);
    expect(error.cause).toMatchObject({ code: 'context_length_exceeded' });
    expect(model.requests).toHaveLength(2);
    expect(summaryModel.requests).toHaveLength(1);
  });

  it('is not tried again when there is nothing to leave out', async () => {
    const { session, model } = setup(['SUMMARY'], options, [failWith(tooLong())]);
    await expect(session.run(long(1))).rejects.toMatchObject({ cause: { code: 'context_length_exceeded' } });
    expect(model.requests).toHaveLength(1);
  });

  it('is made shorter with a fallback when the summariser fails as well', async () => {
    const answers = (request: { messages: readonly Message[] }) =>
      fits(request) ? silent : failWith(tooLong());
    const { session, state } = setup([failWith(new Error('down'))], options, [answers]);
    expect((await session.run([long(1, 600), long(2, 96)])).status).toBe('done');
    expect(state()!.isFallback).toBe(true);
  });

  it('is summarised from its later half if it is too long for the summariser, too', async () => {
    const reads = (max: number) => (request: { messages: readonly Message[] }) =>
      textOf(request.messages[0]!).length > max ? failWith(tooLong()) : 'SUMMARY';
    const asked = async (max: number) => {
      const { session, summaryModel, state } = setup([reads(max)], {}, [silent]);
      await session.run([1, 2, 3, 4, 5, 6, 7].map((n) => long(n)));
      return { asked: summaryModel.requests.map(({ messages }) => textOf(messages[0]!)), state: state()! };
    };
    const { asked: questions, state } = await asked(400);
    expect(state).toMatchObject({ summary: 'SUMMARY', isFallback: false });
    expect(questions).toHaveLength(2);
    expect(questions[0]).toContain('1:xx');
    expect(questions[1]).toMatch(/^Transcript:\n\n\[\d older messages left out\]\n/);
    // What can't be made shorter is not asked again.
    const hopeless = await asked(0);
    expect(hopeless.asked.length).toBeLessThanOrEqual(4);
    expect(new Set(hopeless.asked).size).toBe(hopeless.asked.length);
    expect(hopeless.state.summary).toBe('');
  });

  it('keeps the summary of the first try', async () => {
    const answers = ({ messages }: { messages: readonly Message[] }) =>
      messages.length <= 3 ? silent : failWith(tooLong());
    const { session, summaryModel, state } = setup(
      ['FIRST', 'SECOND'],
      { maxTokens: 500, keepTailTokens: 350 },
      [answers],
    );
    await session.run([1, 2, 3, 4, 5, 6].map((n) => long(n)));
    expect(summaryModel.requests).toHaveLength(2);
    expect(textOf(summaryModel.requests[1]!.messages[0]!)).toContain('FIRST');
    expect(state()!.summary).toBe('SECOND');
  });

  it('is left to others if a middleware made the call itself', async () => {
    let asked = 0;
    const other = defineMiddleware({
      name: 'other',
      async beforeModel(ctx) {
        asked++;
        await ctx.generate(scriptedModel([failWith(tooLong())]), { messages: 'Hi' }).catch(() => {});
      },
    });
    const summaryModel = summariser('SUMMARY');
    const model = scriptedModel([silent]);
    const middleware = [other, compaction({ ...BASE, ...options, summaryModel })];
    await new Agent({ model, middleware }).run([1, 2, 3, 4].map((n) => long(n)));
    expect([asked, summaryModel.requests.length, model.requests.length]).toEqual([1, 0, 1]);
  });

  it('is forgotten if an outer layer answers the turn instead', async () => {
    let refused = 0;
    const answering = defineMiddleware({
      name: 'answering',
      async wrapModel(_, next) {
        try {
          return await next();
        } catch {
          refused++;
          return assistantMessage('Sorry.');
        }
      },
    });
    const summaryModel = summariser('SUMMARY');
    const model = scriptedModel([silent, failWith(tooLong()), silent]);
    const middleware = [answering, compaction({ ...BASE, ...options, summaryModel })];
    const session = new Agent({ model, middleware }).session('s');
    await session.run(long(1));
    await session.run(long(2));
    expect(refused).toBe(1);
    await session.run(long(3));
    expect(summaryModel.requests).toHaveLength(0);
    expect(model.requests.at(-1)!.messages).toHaveLength(5);
  });

  it('is not retried by retry(), in either order', async () => {
    for (const first of [true, false]) {
      const clock = fakeClock();
      const answers = (request: { messages: readonly Message[] }) =>
        fits(request) ? silent : failWith(tooLong());
      const model = scriptedModel([answers], { repeat: true });
      const made = compaction({ ...BASE, ...options, summaryModel: summariser('SUMMARY') });
      const middleware = first ? [retry({ clock }), made] : [made, retry({ clock })];
      await new Agent({ model, middleware }).run([1, 2, 3, 4, 5, 6, 7].map((n) => long(n)));
      expect(model.requests).toHaveLength(2);
    }
  });

  it.each<[unknown, boolean]>([
    [
      Object.assign(new Error('prompt is too long: 205000 tokens > 200000 maximum'), { statusCode: 400 }),
      true,
    ],
    [new Error('The input token count (1048577) exceeds the maximum number of tokens allowed'), true],
    [new Error('Input is too long for requested model.'), true],
    [new Error('input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000'), true],
    [new Error('the request exceeds the available context size, try increasing it'), true],
    [{ error: { code: 'context_length_exceeded' } }, true],
    [{ error: { error: { message: 'Please reduce the length of the messages or completion.' } } }, true],
    [new Error('wrapped', { cause: { responseBody: '{"message":"maximum context length is 8192"}' } }), true],
    [Object.assign(new Error('maximum context length'), { status: 429 }), false],
    [Object.assign(new Error('Too many tokens per minute'), { status: 429 }), false],
    [new Error('overloaded'), false],
    [new Error('Invalid context'), false],
    ['maximum context length', false],
    [undefined, false],
    [Object.assign(new Error('413 status code (no body)'), { status: 413 }), true],
    [Object.assign(new Error('too big'), { name: 'ContextWindowExceededError' }), true],
  ])('is told from %s: %s', (error, expected) => {
    expect(isContextOverflow(error)).toBe(expected);
  });

  // What servers say whose models run elsewhere: behind proxies, on one's own machine, in other countries.
  it.each([
    "The input (516 tokens) is longer than the model's context length (262 tokens).",
    'prompt token count of 136000 exceeds the limit of 128000',
    'The number of tokens to keep from the initial prompt is greater than the context length',
    'Trying to keep the first 5000 tokens, but the model is loaded with context length of only 4096 tokens',
    'invalid params, context window exceeds limit',
    'Your request exceeded model token limit: 262144 (requested: 291351)',
    'prompt too long; exceeded max context length by 1500 tokens',
    'Range of input length should be [1, 129024]',
    'The decoder prompt (length 40000) is longer than the maximum model length of 32768.',
    '`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens',
    'too many tokens: size limit exceeded by 1000 tokens. Try using shorter or fewer inputs',
    'Input tokens exceed the configured limit of 272000 tokens.',
    'Input exceeds the max input token limit',
    "total tokens exceeds the model's max of 4096",
    'Prompt exceeds max length',
    '400 {"error":{"code":"model_max_prompt_tokens_exceeded"}}',
    'litellm.ContextWindowExceededError: litellm.BadRequestError',
    'finish_reason: model_context_window_exceeded',
  ])('is told from the words: %s', (words) => {
    expect(isContextOverflow(new Error(words))).toBe(true);
  });

  it.each([
    'Throttled: too many tokens, please wait before trying again.',
    'Request too large for this model on tokens per min (TPM): Limit 30000, Requested 40000.',
    'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens',
    'max_tokens exceeds the maximum of 4096 output tokens',
    "Invalid 'tools[0].description': string too long. Expected a string with maximum length 1024.",
    'image exceeds 5 MB maximum',
    'You exceeded your current quota.',
    'This model does not support the context parameter.',
  ])('is something else: %s', (words) => {
    expect(isContextOverflow(Object.assign(new Error(words), { status: 400 }))).toBe(false);
  });
});
