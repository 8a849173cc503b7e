import { Agent, memoryStore, type Tool, textOf, tool, toolOutput, toolResult } from 'allium';
import { jsonSchema } from 'allium/json-schema';
import { retry } from 'allium/middleware/retry';
import { toolCache } from 'allium/middleware/tool-cache';
import { toolErrors } from 'allium/middleware/tool-errors';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const call = toolCalls({ name: 'weather', args: {}, id: 'c' });

function weather(returns: unknown, output: object = z.object({ degrees: z.number() }), more: object = {}) {
  return tool({
    name: 'weather',
    description: 'The weather.',
    input: z.object({}),
    output: output as never,
    execute: () => (typeof returns === 'function' ? returns() : returns) as never,
    ...more,
  }) as Tool<object, object, { degrees: number }>;
}

async function resultOf(made: Tool) {
  const { messages } = await new Agent({
    model: scriptedModel([call, text('done')]),
    tools: [made],
  }).run('go');
  return messages[2]!;
}

describe('tool({ output })', () => {
  it('gives the validated value to the model as JSON, and typed to the application', async () => {
    const made = weather({ degrees: 21, extra: true });
    const message = await resultOf(made);
    expect(message).toMatchObject({ isError: false, details: { degrees: 21 } });
    expect(textOf(message)).toBe('{"degrees":21}');
    expect(toolOutput(made, message)).toEqual({ degrees: 21 });
  });

  it('makes a result that does not fit an error, and says where', async () => {
    const made = weather({ degrees: 'warm' });
    const message = await resultOf(made);
    expect(message).toMatchObject({ isError: true });
    expect(message).not.toHaveProperty('details');
    expect(textOf(message)).toMatch(
      /"weather" returned something that does not fit its `output` schema:\ndegrees: /,
    );
    expect(toolOutput(made, message)).toBeUndefined();
  });

  it('waits for schemas that check asynchronously, and applies transforms', async () => {
    const made = weather(
      async () => ({ degrees: '21' }),
      z.object({ degrees: z.string().transform(async (one) => Number(one)) }),
    );
    expect(await resultOf(made)).toMatchObject({
      content: [{ text: '{"degrees":21}' }],
      details: { degrees: 21 },
    });
  });

  it('takes JSON Schemas, and schemas that expose none', async () => {
    const raw = jsonSchema({ type: 'object', properties: { degrees: { type: 'number' } } });
    expect(await resultOf(weather({ degrees: 'x' }, raw))).toMatchObject({ isError: true });
    expect(await resultOf(weather({ degrees: 1 }, raw))).toMatchObject({ details: { degrees: 1 } });
    expect(await resultOf(weather({ degrees: 1 }, v.object({ degrees: v.number() })))).toMatchObject({
      details: { degrees: 1 },
    });
    expect(() => weather(1, { type: 'object' })).toThrow(/Expected `output` to be a Standard Schema/);
  });

  it('checks the details of toolResult(), and lets errors be errors', async () => {
    const said = weather(toolResult({ content: 'Warm.', details: { degrees: 21, extra: 1 } }));
    expect(await resultOf(said)).toMatchObject({ content: [{ text: 'Warm.' }], details: { degrees: 21 } });
    expect(await resultOf(weather(toolResult({ content: 'Warm.' })))).toMatchObject({ isError: true });
    const failed = weather(toolResult({ content: 'Offline.', isError: true }));
    expect(await resultOf(failed)).toMatchObject({ isError: true, content: [{ text: 'Offline.' }] });
  });

  it('tells the model what the tool returns, if the schema can say it', async () => {
    const model = scriptedModel([text('done')], { repeat: true });
    await new Agent({ model, tools: [weather(1)] }).run('go');
    expect(model.requests[0]!.tools[0]!.outputSchema).toMatchObject({
      properties: { degrees: { type: 'number' } },
    });
    await new Agent({ model, tools: [weather(1, v.object({ degrees: v.number() }))] }).run('go');
    expect(model.requests[1]!.tools[0]).not.toHaveProperty('outputSchema');
  });

  it('counts as a failure of the tool for retry and toolErrors, and is never cached', async () => {
    let calls = 0;
    const made = weather(() => ({ degrees: ++calls < 2 ? 'x' : calls }));
    const agent = new Agent({
      model: scriptedModel([call, text('done')], { repeat: true }),
      tools: [made],
      middleware: [
        toolErrors({ format: () => 'It failed.' }),
        toolCache({ tools: ['weather'] }),
        retry({ on: 'tool', retryOn: () => true, minDelayMs: 0 }),
      ],
    });
    expect(textOf((await agent.run('go')).messages[2]!)).toBe('{"degrees":2}');
    expect((await agent.run('go')).messages[2]).toMatchObject({ details: { degrees: 2 } });
    expect(calls).toBe(2);
    const plain = new Agent({
      model: scriptedModel([call, text('done')]),
      tools: [weather({})],
      middleware: [toolErrors({ format: (error) => (error as { code: string }).code })],
    });
    expect(textOf((await plain.run('go')).messages[2]!)).toBe('TOOL_OUTPUT_INVALID');
  });

  it('is redacted in details and text alike, and is there after a resume', async () => {
    const store = memoryStore();
    const ask = tool({
      name: 'ask',
      description: '',
      input: z.object({}),
      execute: (_, ctx) => ctx.suspend({ title: 'Go on?' }).then(() => 'ok'),
    });
    const made = weather(
      { degrees: 21, place: 'Rome' },
      z.object({ degrees: z.number(), place: z.string() }),
    );
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'weather', args: {}, id: 'w' }, { name: 'ask', args: {}, id: 'a' }),
        text('done'),
      ]),
      tools: [made, ask],
      store,
      middleware: [
        {
          name: 'no-places',
          guard: {
            on: ['tool-result'],
            find: (given) => [...given.matchAll(/Rome/g)].map((m) => ({ start: m.index, end: m.index + 4 })),
            action: 'redact',
          },
        },
      ],
    });
    const session = agent.session('s');
    const { pending } = await session.run('go');
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    const message = (await session.messages()).find((one) => one.role === 'tool')!;
    expect(JSON.stringify(message)).not.toContain('Rome');
    expect(toolOutput(made, message)).toMatchObject({ degrees: 21 });
  });
});
