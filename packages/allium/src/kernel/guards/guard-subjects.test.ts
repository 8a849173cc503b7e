import {
  Agent,
  defineMiddleware,
  type Guard,
  type GuardPoint,
  type GuardSubject,
  type Middleware,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { structuredOutput } from 'allium/middleware';
import { collect, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (given: string) =>
  [...given.matchAll(/SECRET/g)].map((m) => ({ start: m.index, end: m.index + 6 }));
const redacting = (...on: GuardPoint[]): Middleware =>
  defineMiddleware({ name: 'redact', guard: { on, find } });
const judging = (on: GuardPoint[], judge: Guard['judge']): Middleware =>
  defineMiddleware({ name: 'judge', guard: { on, judge } });

const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' };
const file = { type: 'file' as const, data: 'aGk=', mimeType: 'application/pdf', name: 'a.pdf' };
const seen: unknown[] = [];
const act = tool({
  name: 'act',
  description: 'Acts.',
  input: z.any(),
  async execute(args, ctx) {
    seen.push(args);
    await ctx.update([{ type: 'text', text: 'at SECRET' }], { step: { SECRET: ['SECRET'] } });
    return toolResult({
      content: [{ type: 'text', text: 'done' }, image],
      details: { list: [{ SECRET: 'SECRET' }] },
    });
  },
});

function agentOf(script: readonly Script[], ...middleware: Middleware[]): Agent {
  seen.length = 0;
  return new Agent({ model: scriptedModel(script), middleware, tools: [act] });
}

describe('what guards see', () => {
  it('arguments at any depth: keys, strings and numbers', async () => {
    const digits = defineMiddleware({
      name: 'digits',
      guard: {
        on: ['tool-args'],
        find: (given) =>
          [...given.matchAll(/\d{6,}/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
      },
    });
    const args = { a: [{ SECRET: { n: 4111111, m: -12.5, s: 'x SECRET' } }, [[123456]]] };
    await agentOf([toolCalls({ name: 'act', args }), 'ok'], redacting('tool-args'), digits).run('hi');
    expect(seen).toEqual([
      { a: [{ '[redacted]': { n: '[redacted]', m: -12.5, s: 'x [redacted]' } }, [['[redacted]']]] },
    ]);
  });

  it('results, their details and updates', async () => {
    const { events, result } = await collect(
      agentOf([toolCalls({ name: 'act', args: {} }), 'ok'], redacting('tool-result')).stream('hi'),
    );
    expect(events.find((one) => one.type === 'tool_execution_update')).toMatchObject({
      update: [{ text: 'at [redacted]' }],
      details: { step: { '[redacted]': ['[redacted]'] } },
    });
    expect(JSON.stringify([events, result])).not.toContain('SECRET');
  });

  it('messages that middleware inject', async () => {
    const injects = defineMiddleware({
      name: 'injects',
      afterModelResponse: (_, ctx) =>
        ctx.turn === 1 ? { injectMessages: [userMessage('SECRET')], decision: 'loop_to_model' } : undefined,
      onRunEnd: (ctx) => (ctx.turn === 2 ? [userMessage('SECRET again')] : undefined),
    });
    const { messages } = await agentOf(['a', 'b', 'c'], injects, redacting('input')).run('hi');
    expect(messages).toHaveLength(6);
    expect(JSON.stringify(messages)).not.toContain('SECRET');
  });

  it('structured output, from the text of an answer or from anything else', async () => {
    const schema = z.object({ a: z.array(z.string()) });
    const asked = agentOf([text('{"a":["SECRET"]}')], structuredOutput({ schema }), redacting('output'));
    await expect(asked.run('hi')).resolves.toMatchObject({ output: { a: ['[redacted]'] } });
    for (const point of ['output', 'final'] as const) {
      const sets = defineMiddleware({
        name: 'sets',
        afterModelResponse: (_, ctx) => ctx.setOutput({ n: [{ SECRET: 'a SECRET' }] }),
      });
      const { output } = await agentOf(['hi'], sets, redacting(point)).run('hi');
      expect(output).toEqual({ n: [{ '[redacted]': 'a [redacted]' }] });
    }
    const day = new Date(0);
    const dates = defineMiddleware({ name: 'dates', afterModelResponse: (_, ctx) => ctx.setOutput({ day }) });
    expect((await agentOf(['hi'], dates, redacting('output')).run('hi')).output).toEqual({ day });
  });

  it('images and files, at every point that can have them', async () => {
    const found: [GuardPoint, readonly string[]][] = [];
    const looks = judging(
      ['input', 'request', 'output', 'tool-result', 'tool-args'],
      ({ point, media }: GuardSubject) => {
        if (media.length > 0) found.push([point, media.map(({ type }) => type)]);
      },
    );
    const script = [toolCalls({ name: 'act', args: {} }), [file]];
    await agentOf(script, looks).run([userMessage([{ type: 'text', text: 'see' }, image, file])]);
    expect(found).toEqual([
      ['input', ['image', 'file']],
      ['request', ['image', 'file']],
      ['tool-result', ['image']],
      ['request', ['image']],
      ['output', ['file']],
    ]);
  });

  it.each<[GuardPoint, string]>([
    ['input', 'stopped'],
    ['output', 'stopped'],
    ['tool-result', 'done'],
  ])('a classifier refuses what holds nothing but a picture, at %s', async (point, status) => {
    const classifier = { classify: async (data: string) => data === image.data };
    const guard = judging([point], async ({ media }) => {
      for (const { data } of media)
        if (await classifier.classify(data!))
          return { type: 'deny', reason: 'No such pictures.', kind: 'image' };
      return undefined;
    });
    const script: Script[] = point === 'output' ? [[file]] : [toolCalls({ name: 'act', args: {} }), 'ok'];
    const result = await agentOf(script, guard).run([userMessage([image])]);
    expect(result.status).toBe(status);
    expect(JSON.stringify(result.messages.filter(({ role }) => role !== 'user'))).not.toContain(image.data);
  });
});
