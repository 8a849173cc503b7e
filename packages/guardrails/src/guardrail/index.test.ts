import { Agent, memoryStore, type Span, tool, toolResult, userMessage, window } from 'allium';
import { chunks, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
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

  it.each([[true], ['Too loud.']])('takes %j as an objection to the whole text', async (said) => {
    const check = (given: string) => given.includes('LOUD') && said;
    const middleware = [guardrail({ name: 'quiet', check, on: ['input'], action: 'block' })];
    const agent = new Agent({ model: scriptedModel(['Yes.']), middleware });
    expect((await agent.run('hello')).text).toBe('Yes.');
    expect(await agent.run('LOUD')).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'quiet' },
    });
  });

  describe('a check that returns a verdict', () => {
    const LOUD = /LOUD/;
    const checks = {
      'a verdict': (given: string) =>
        LOUD.test(given) ? { type: 'deny' as const, reason: 'Too loud.' } : undefined,
      'a reason': (given: string) => LOUD.test(given) && 'Too loud.',
      'a promise of a verdict': async (given: string) =>
        LOUD.test(given) ? { type: 'deny' as const, reason: 'Too loud.' } : { type: 'allow' as const },
      'a promise of spans': async (given: string) =>
        [...given.matchAll(/LOUD/g)].map(({ index }) => ({
          start: index,
          end: index + 4,
          reason: 'Too loud.',
        })),
    };

    it.each(Object.entries(checks))('%s: refuses with its reason', async (_, check) => {
      const blocked = new Agent({
        model: scriptedModel([]),
        middleware: [guardrail({ check, on: ['input'], action: 'block' })],
      });
      expect((await blocked.run('LOUD')).stop).toMatchObject({ reason: 'guardrail', message: 'Too loud.' });

      const model = scriptedModel(['LOUD noise', 'quiet']);
      const again = new Agent({
        model,
        middleware: [guardrail({ check, on: ['output'], action: 'feedback' })],
      });
      expect((await again.run('Hi')).text).toBe('quiet');
      expect(JSON.stringify(model.requests[1]!.messages)).toContain('Too loud.');

      const warned = new Agent({
        model: scriptedModel(['LOUD']),
        middleware: [guardrail({ check, on: ['output'], action: 'warn' })],
      });
      const { text: said, changes } = await warned.run('Hi');
      expect([said, changes[0]?.verdict?.action]).toEqual(['LOUD', 'warn']);
    });

    it.each(Object.entries(checks))('%s: judges beside the first model call', async (_, check) => {
      const middleware = [guardrail({ check, on: ['input'], parallel: true })];
      const agent = () => new Agent({ model: scriptedModel(['Yes.']), middleware });
      expect((await agent().run('LOUD')).stop).toMatchObject({ reason: 'guardrail', message: 'Too loud.' });
      expect((await agent().run('hello')).text).toBe('Yes.');
    });

    it.each([
      ['at once', (given: string) => ({ type: 'rewrite' as const, text: given.replace('LOUD', 'loud') })],
      ['later', async (given: string) => ({ type: 'rewrite' as const, text: given.replace('LOUD', 'loud') })],
      [
        'with spans, later',
        async (given: string) =>
          [...given.matchAll(/LOUD/g)].map(({ index }) => ({
            start: index,
            end: index + 4,
            replacement: 'loud',
          })),
      ],
    ])('rewrites %s', async (_, check) => {
      const agent = new Agent({
        model: scriptedModel([chunks('So LO', 'UD.')]),
        middleware: [guardrail({ check, on: ['output'] })],
      });
      expect((await agent.run('Hi')).text).toBe('So loud.');
    });

    it('cuts spans out of arguments, at any depth, also later', async () => {
      const got: unknown[] = [];
      const say = tool({
        name: 'say',
        description: 'Says.',
        input: z.looseObject({}),
        execute: (args) => got.push(args),
      });
      const model = scriptedModel([
        toolCalls({ name: 'say', args: { a: ['LOUD', 1], b: { c: 'so LOUD' } } }),
        'Done.',
      ]);
      const middleware = [
        guardrail({ check: checks['a promise of spans'], on: ['tool-args'], replacement: '(loud)' }),
      ];
      await new Agent({ model, tools: [say], middleware }).run('Hi');
      expect(got).toEqual([{ a: ['(loud)', 1], b: { c: 'so (loud)' } }]);
    });

    it('gets an error that says what it may return', async () => {
      for (const wrong of [{ type: 'ask', request: {} }, { type: 'maybe' }, { type: 'rewrite' }]) {
        const agent = new Agent({
          model: scriptedModel(['Hi.']),
          middleware: [guardrail({ check: () => wrong as never, on: ['output'] })],
        });
        const error = await agent.run('Hi').catch((failure) => failure);
        expect([error.code, error.cause?.cause?.message ?? error.cause?.message]).toEqual([
          'GUARD_FAILED',
          expect.stringContaining('A check returns spans'),
        ]);
      }
      expect(() => guardrail({ check: async () => [], hold: window(8) })).toThrow(
        "Expected `hold` to be 'full'",
      );
    });
  });

  it('asks a judge about the whole, with its reason', async () => {
    const judge = async ({ text: given }: { text: string }) =>
      given.includes('horoscope') && 'No horoscopes.';
    const middleware = [guardrail({ name: 'on-topic', judge, on: ['input'] })];
    const { stop } = await new Agent({ model: scriptedModel([]), middleware }).run('My horoscope?');
    expect(stop).toEqual({ reason: 'guardrail', message: 'No horoscopes.', by: 'on-topic' });
  });

  describe('with a classifier of images and files', () => {
    const picture = (data: string) => ({ type: 'image' as const, data, mimeType: 'image/png' });
    const [weapon, kitten] = [picture('d2VhcG9u'), picture('a2l0dGVu')];
    const asked: string[] = [];
    const classify = async (data: string) => {
      asked.push(data);
      return data === weapon.data ? 'weapon' : 'harmless';
    };
    const safePictures = () =>
      guardrail({
        name: 'safe-pictures',
        on: ['input', 'tool-result'],
        async judge({ media }) {
          for (const { data } of media)
            if ((await classify(data)) === 'weapon')
              return { type: 'deny', reason: 'A picture shows a weapon.', kind: 'weapon', severity: 'high' };
        },
      });
    const camera = tool({
      name: 'camera',
      description: 'Takes a picture.',
      input: z.object({ of: z.string() }),
      execute: ({ of }) => toolResult({ content: [of === 'weapon' ? weapon : kitten] }),
    });
    const agentOf = (...steps: Parameters<typeof scriptedModel>[0]) => {
      asked.length = 0;
      const model = scriptedModel(steps);
      const agent = new Agent({ model, store: memoryStore(), tools: [camera], middleware: [safePictures()] });
      return { model, session: agent.session('s') };
    };

    it('refuses a picture in the input, and nothing keeps it', async () => {
      const { model, session } = agentOf('A kitten.');
      const result = await session.run(userMessage([{ type: 'text', text: 'What is it?' }, kitten, weapon]));
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', by: 'safe-pictures', message: 'A picture shows a weapon.' },
      });
      expect(result.changes.map(({ verdict }) => verdict)).toEqual([
        { guard: 'safe-pictures', point: 'input', action: 'block', kind: 'weapon', severity: 'high' },
      ]);
      expect(asked).toEqual([kitten.data, weapon.data]);
      expect(model.requests).toEqual([]);
      expect(JSON.stringify([result, await session.messages()])).not.toContain(weapon.data);
      expect(await session.run(userMessage([kitten]))).toMatchObject({ text: 'A kitten.' });
    });

    it('keeps a picture that a tool returns from the model', async () => {
      const { model, session } = agentOf(
        toolCalls({ name: 'camera', args: { of: 'weapon' } }),
        toolCalls({ name: 'camera', args: { of: 'kitten' } }),
        'Cute.',
      );
      const result = await session.run('Look around.');
      expect(result.text).toBe('Cute.');
      expect(asked).toEqual([weapon.data, kitten.data]);
      const sent = JSON.stringify([model.requests, result, await session.messages()]);
      expect(sent).toContain('A picture shows a weapon.');
      expect(sent).toContain(kitten.data);
      expect(sent).not.toContain(weapon.data);
    });
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

  it('says what to do if a check that is not async returns a promise, even one that fails', async () => {
    const check = () => Promise.reject(new Error('broken'));
    const agent = new Agent({
      model: scriptedModel(['Hi.']),
      middleware: [guardrail({ check, on: ['output'] })],
    });
    await expect(agent.run('Hi')).rejects.toThrow('or a `check` written as an async function.');
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
