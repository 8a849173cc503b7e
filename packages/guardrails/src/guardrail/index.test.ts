import { Agent, type Span, window } from 'allium';
import { chunks, scriptedModel, testMiddleware, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { guardrail } from './index.js';

const shout = (given: string): Span[] =>
  [...given.matchAll(/[A-Z]{6,}/g)].map(({ index, 0: found }) => ({
    start: index,
    end: index + found.length,
  }));

testMiddleware(() => guardrail({ name: 'no-shouting', check: shout, hold: window(40) }), {
  name: 'guardrail',
  describe,
  it,
  scenarios: [{ name: 'shouting', answers: [text('Oh NOOOOOO, really.')] }],
});

describe('guardrail', () => {
  it('cuts the spans a check returns, while text streams', async () => {
    const middleware = [
      guardrail({ name: 'no-shouting', check: shout, hold: window(12), replacement: '(loud)' }),
    ];
    const model = scriptedModel([chunks('Oh NOO', 'OOOO', ', really.')]);
    expect((await new Agent({ model, middleware }).run('Hi')).text).toBe('Oh (loud), really.');
  });

  it.each([[true], ['Too loud.']])('takes %j for an objection to the whole text', async (said) => {
    const check = (given: string) => given.includes('LOUD') && said;
    const middleware = [guardrail({ name: 'quiet', check, on: ['input'], action: 'block' })];
    const agent = new Agent({ model: scriptedModel(['Yes.']), middleware });
    expect((await agent.run('hello')).text).toBe('Yes.');
    expect(await agent.run('LOUD')).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'quiet' },
    });
  });

  it('asks a judge about the whole, with its reason', async () => {
    const judge = async ({ text: given }: { text: string }) =>
      given.includes('horoscope') && 'No horoscopes.';
    const middleware = [guardrail({ name: 'on-topic', judge, on: ['input'] })];
    const { stop } = await new Agent({ model: scriptedModel([]), middleware }).run('My horoscope?');
    expect(stop).toEqual({ reason: 'guardrail', message: 'No horoscopes.', by: 'on-topic' });
  });

  it.each([
    ['closed', 'GUARD_FAILED'],
    ['open', 'Hi.'],
  ] as const)('fails %s', async (onFail, outcome) => {
    const check = () => {
      throw new Error('broken');
    };
    const agent = new Agent({
      model: scriptedModel(['Hi.']),
      middleware: [guardrail({ check, on: ['output'], onFail })],
    });
    const came = await agent.run('Hi').then(
      ({ text: said }) => said,
      (error) => error.code,
    );
    expect(came).toBe(outcome);
  });

  it.each([
    [{}, 'Expected `check` to be a function, unless `judge` is one'],
    [{ judge: () => undefined, hold: window(3) }, "Expected `hold` to be 'full' beside `judge`"],
    [{ check: shout, hold: 3 }, "Expected `hold` to be 'full' or window(n), got 3."],
    [{ check: shout, on: ['inputs'] }, 'Expected `on[0]` to be '],
  ])('refuses %j', (options, message) => {
    expect(() => guardrail(options as never)).toThrow(message);
  });
});
