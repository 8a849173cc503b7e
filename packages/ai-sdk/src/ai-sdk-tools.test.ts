import { jsonSchema, tool } from 'ai';
import { Agent, textOf } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { z as z3 } from 'zod/v3';
import { type AiSdkTool, fromAiSdkTools, fromLangChainTools, type LangChainTool } from './index.js';

function agentWith(tools: Record<string, AiSdkTool>, ...calls: { name: string; args?: object }[]) {
  const named = calls.map(({ name, args = {} }, i) => ({ name, args, id: `c${i}` }));
  const model = scriptedModel([toolCalls(...named), text('done')], { repeat: true });
  return { model, agent: new Agent({ model, middleware: [fromAiSdkTools(tools)] }) };
}

const weather = tool({
  description: 'The weather of a city.',
  inputSchema: z.object({ city: z.string(), days: z.number().default(1) }),
  execute: ({ city, days }, { toolCallId, abortSignal, messages }) =>
    `${city} ${days} ${toolCallId} ${abortSignal?.aborted} ${messages.length}`,
});

describe('fromAiSdkTools()', () => {
  it('runs a tool with its own schema and options', async () => {
    const { agent, model } = agentWith(
      { weather },
      { name: 'weather', args: { city: 'Rome' } },
      { name: 'weather', args: { city: 5 } },
    );
    const { messages } = await agent.run('go');
    expect(textOf(messages[2]!)).toBe('Rome 1 c0 false 1');
    expect(messages[3]).toMatchObject({ isError: true });
    expect(model.requests[0]!.tools[0]).toMatchObject({
      name: 'weather',
      inputSchema: { required: ['city'] },
    });
  });

  it('takes schemas made by jsonSchema(), with and without validation', async () => {
    const checked = tool({
      inputSchema: jsonSchema<{ n: number }>(
        { type: 'object', properties: { n: { type: 'number' } } },
        {
          validate: (value) =>
            (value as { n: number }).n > 0
              ? { success: true, value: value as never }
              : { success: false, error: new Error('n must be positive') },
        },
      ),
      execute: ({ n }) => ({ twice: 2 * n }),
    });
    const { agent } = agentWith(
      { checked },
      { name: 'checked', args: { n: 2 } },
      { name: 'checked', args: { n: -2 } },
    );
    const { messages } = await agent.run('go');
    expect(messages.slice(2, 4)).toMatchObject([
      { content: [{ text: '{"twice":4}' }], details: { twice: 4 } },
      { isError: true, content: [{ text: expect.stringContaining('n must be positive') }] },
    ]);
  });

  it('asks before a call that needs approval, and the answer counts only for its arguments', async () => {
    let paid = 0;
    const pay = tool({
      inputSchema: z.object({ amount: z.number() }),
      needsApproval: ({ amount }: { amount: number }) => amount > 10,
      execute: ({ amount }) => {
        paid += amount;
        return 'paid';
      },
    });
    const { agent } = agentWith({ pay }, { name: 'pay', args: { amount: 50 } });
    const session = agent.session('s');
    const { status, pending } = await session.run('go');
    expect(status).toBe('suspended');
    expect(paid).toBe(0);
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(paid).toBe(50);
    const small = agentWith({ pay }, { name: 'pay', args: { amount: 5 } });
    expect((await small.agent.run('go')).status).toBe('done');
    expect(paid).toBe(55);
  });

  it('shows every value a generator yields, and takes the last one as the result', async () => {
    const count = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield 'one';
        yield 'two';
        yield 'three';
      },
    });
    const { agent } = agentWith({ count }, { name: 'count' });
    const updates: unknown[] = [];
    const stream = agent.stream('go');
    for await (const event of stream) if (event.type === 'tool_execution_update') updates.push(event.update);
    expect(updates).toEqual(['one', 'two', 'three'].map((value) => [{ type: 'text', text: value }]));
    expect(textOf((await stream.result).messages[2]!)).toBe('three');
  });

  it('shows what a generator yields before it goes on', async () => {
    let seen = () => {};
    const isSeen = new Promise<void>((resolve) => {
      seen = resolve;
    });
    const load = tool({
      inputSchema: z.object({}),
      async *execute() {
        yield { status: 'loading' };
        await isSeen;
        yield { status: 'done' };
      },
    });
    const stream = agentWith({ load }, { name: 'load' }).agent.stream('go');
    for await (const event of stream) if (event.type === 'tool_execution_update') seen();
    expect((await stream.result).messages[2]).toMatchObject({ details: { status: 'done' } });
  });

  it('gives tools their context, under both of its names', async () => {
    const who: AiSdkTool = {
      description: () => 'Who it is.',
      inputSchema: z.object({}),
      execute: (_, { context, experimental_context }) => `${context.user} ${experimental_context.user}`,
    };
    const model = scriptedModel([toolCalls({ name: 'who', id: 'w' }), text('done')]);
    const tools = fromAiSdkTools({ who }, { context: ({ tenant }) => ({ user: tenant }) });
    const { messages } = await new Agent({ model, middleware: [tools] }).run('go', { tenant: 'ann' });
    expect(textOf(messages[2]!)).toBe('ann ann');
    expect(model.requests[0]!.tools[0]!.description).toBe('Who it is.');
  });

  it('takes schemas of zod 3', async () => {
    const input = z3.object({ city: z3.string().describe('Where.'), days: z3.number().int().default(1) });
    const forecast: AiSdkTool = {
      inputSchema: input,
      execute: ({ city, days }) => `${city} ${days}`,
    };
    const { agent, model } = agentWith(
      { forecast },
      { name: 'forecast', args: { city: 'Rome' } },
      { name: 'forecast', args: { city: 5 } },
    );
    const { messages } = await agent.run('go');
    expect(textOf(messages[2]!)).toBe('Rome 1');
    expect(textOf(messages[3]!)).toContain('Expected string, received number');
    expect(model.requests[0]!.tools[0]!.inputSchema).toEqual({
      type: 'object',
      properties: { city: { type: 'string', description: 'Where.' }, days: { type: 'integer', default: 1 } },
      required: ['city'],
    });
    const strange = z3.object({ f: z3.function() });
    expect(() => fromAiSdkTools({ x: { inputSchema: strange, execute: () => '' } })).toThrow(
      'a ZodFunction of zod 3 has no JSON Schema here',
    );
  });

  it('lets toModelOutput say what the model reads', async () => {
    const shot = tool({
      inputSchema: z.object({}),
      execute: () => ({ png: 'iVBORw0KGgo=' }),
      toModelOutput: ({ output }) => ({
        type: 'content',
        value: [
          { type: 'text', text: 'Here it is.' },
          { type: 'image-data', data: output.png, mediaType: 'image/png' },
        ],
      }),
    });
    const { agent } = agentWith({ shot }, { name: 'shot' });
    expect((await agent.run('go')).messages[2]).toMatchObject({
      content: [
        { type: 'text', text: 'Here it is.' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
      ],
      details: { png: 'iVBORw0KGgo=' },
    });
  });

  it('calls toModelOutput as version 5 does if the tools are made for version 5', async () => {
    const shot: AiSdkTool = {
      inputSchema: z.object({}),
      execute: () => 'as text',
      toModelOutput: (output: string) => ({ type: 'text', value: `It is ${output}.` }),
    };
    const model = scriptedModel([toolCalls({ name: 'shot', id: 's' }), text('done')]);
    const agent = new Agent({ model, middleware: [fromAiSdkTools({ shot }, { version: 5 })] });
    expect(textOf((await agent.run('go')).messages[2]!)).toBe('It is as text.');
    expect(() => fromAiSdkTools({ shot }, { version: 4 } as never)).toThrow('Expected `version` to be');
  });

  it('gives the model the output as it is if toModelOutput returns nothing', async () => {
    const look: AiSdkTool = {
      inputSchema: z.object({}),
      execute: () => ({ a: 1 }),
      toModelOutput: () => undefined,
    };
    const { messages } = await agentWith({ look }, { name: 'look' }).agent.run('go');
    expect(textOf(messages[2]!)).toBe('{"a":1}');
  });

  it('ends a generator that does not look at its signal', async () => {
    let left = () => {};
    const isLeft = new Promise<void>((resolve) => {
      left = resolve;
    });
    const stopping = new AbortController();
    const spin = tool({
      inputSchema: z.object({}),
      async *execute() {
        try {
          for (;;) {
            yield 'again';
            stopping.abort();
          }
        } finally {
          left();
        }
      },
    });
    const run = agentWith({ spin }, { name: 'spin' }).agent.run('go', { signal: stopping.signal });
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    await isLeft;
  });

  it('tells a tool what the model was asked, without the answer that called it', async () => {
    let asked: unknown;
    const look: AiSdkTool = {
      inputSchema: z.object({}),
      execute: (_, { messages }) => {
        asked = messages;
        return '';
      },
    };
    await agentWith({ look }, { name: 'look' }).agent.run('go');
    expect(asked).toEqual([{ role: 'user', content: [{ type: 'text', text: 'go' }] }]);
  });

  it('refuses tools that it cannot run', () => {
    expect(() => fromAiSdkTools([] as never)).toThrow(
      'Expected `tools` to be an object with tools of the AI SDK by name',
    );
    expect(() => fromAiSdkTools({ x: { inputSchema: z.object({}) } })).toThrow(
      'Expected `tools.x` to be a tool with `execute`',
    );
    expect(() => fromAiSdkTools({ x: { inputSchema: 5, execute: () => '' } })).toThrow('JSON Schema');
  });
});

describe('fromLangChainTools()', () => {
  // The shape of what `tool()` of @langchain/core makes.
  const langChain = (name: string, schema: unknown, invoke: (input: never) => unknown) => ({
    name,
    description: 'Does it.',
    schema,
    invoke,
  });

  it('runs LangChain tools, with schemas of zod and JSON Schema', async () => {
    const tools = fromLangChainTools([
      langChain('add', z.object({ a: z.number() }), ({ a }: { a: number }) => a + 1),
      langChain(
        'say',
        { type: 'object', properties: { word: { type: 'string' } } },
        ({ word }: { word: string }) => word,
      ),
      langChain('look', z.object({}), () => ({
        content: [{ type: 'text', text: 'seen' }],
        artifact: { x: 1 },
        status: 'success',
      })),
    ]);
    const calls = [
      { name: 'add', args: { a: 1 }, id: 'a' },
      { name: 'say', args: { word: 'hi' }, id: 'b' },
      { name: 'look', args: {}, id: 'c' },
    ];
    const model = scriptedModel([toolCalls(...calls), text('done')]);
    const { messages } = await new Agent({ model, tools }).run('go');
    expect(messages.slice(2, 5).map(textOf)).toEqual(['2', 'hi', 'seen']);
    expect(messages[4]).toMatchObject({ details: { x: 1 } });
  });

  it('keeps the artifact of a tool beside its content', async () => {
    // As @langchain/core does: a message for a call, and only the content for arguments.
    type Input = { q: string } | { type: 'tool_call'; id: string; args: { q: string } };
    const invoke = (input: Input) =>
      'type' in input
        ? { content: `found ${input.args.q}`, artifact: { rows: [1, 2], id: input.id }, status: 'success' }
        : `found ${input.q}`;
    const search = { ...langChain('search', z.object({ q: z.string() }), invoke) };
    const model = scriptedModel([
      toolCalls({ name: 'search', args: { q: 'onions' }, id: 'c' }),
      text('done'),
    ]);
    const tools = fromLangChainTools([{ ...search, responseFormat: 'content_and_artifact' }]);
    const { messages } = await new Agent({ model, tools }).run('go');
    expect(textOf(messages[2]!)).toBe('found onions');
    expect(messages[2]).toMatchObject({ details: { rows: [1, 2], id: 'c' } });
  });

  /** What each tool is given and returns, in one turn. */
  async function called(tools: LangChainTool[], args: object) {
    const calls = tools.map(({ name }, i) => ({ name, args, id: `c${i}` }));
    const model = scriptedModel([toolCalls(...calls), text('done')]);
    const result = await new Agent({ model, tools: fromLangChainTools(tools) }).run('go');
    return {
      ...result,
      tool: model.requests[0]!.tools[0]!,
      answers: result.messages.slice(2, 2 + tools.length),
    };
  }

  it('runs tools that take a text: their schema is of zod 3, and transforms', async () => {
    // As in the Tool and DynamicTool of @langchain/core.
    const schema = z3.object({ input: z3.string().optional() }).transform(({ input }) => input);
    const invoke = async (given: object) => `got ${await schema.parseAsync(given)}`;
    const { answers, tool: shown } = await called([langChain('echo', schema, invoke)], { input: 'hi' });
    expect(answers.map(textOf)).toEqual(['got hi']);
    expect(shown.inputSchema).toEqual({ type: 'object', properties: { input: { type: 'string' } } });
  });

  it('leaves it to the tool to transform its arguments', async () => {
    const schema = z.object({ n: z.string().transform(Number) });
    const invoke = (given: object) => schema.parse(given).n + 1;
    expect((await called([langChain('next', schema, invoke)], { n: '4' })).answers.map(textOf)).toEqual([
      '5',
    ]);
  });

  it('tells the tool which call it is, and keeps the images of its answer', async () => {
    const shot = langChain('shot', z.object({}), () => '');
    // As @langchain/core does: with a call in the config, it answers with a message.
    const invoke = (_: object, config: { toolCall: { id: string } }) => ({
      tool_call_id: config.toolCall.id,
      content: [
        { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
        { type: 'image_url', image_url: { url: 'data:image/webp;base64,UklGRg==' } },
        { type: 'image', source_type: 'base64', mime_type: 'image/png', data: 'iVBORw0KGgo=' },
        { type: 'text', text: config.toolCall.id },
      ],
    });
    const { answers } = await called([{ ...shot, invoke }], {});
    expect(answers[0]).toMatchObject({
      content: [
        { type: 'image', data: 'https://example.org/a.png' },
        { type: 'image', data: 'UklGRg==', mimeType: 'image/webp' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
        { type: 'text', text: 'c0' },
      ],
    });
  });

  it('takes the message out of a Command of LangGraph, and refuses one that says more', async () => {
    const said = { content: 'noted', tool_call_id: 'c0' };
    const command = (more: object) => ({ lg_name: 'Command', goto: [], ...more });
    const answerTo = async (returned: object) => {
      const { answers } = await called([langChain('note', z.object({}), () => returned)], {});
      return [textOf(answers[0]!), (answers[0] as { isError: boolean }).isError];
    };
    expect(await answerTo(command({ update: { messages: [said] } }))).toEqual(['noted', false]);
    expect(await answerTo(command({ update: [['messages', [{ content: 'x' }, said]]] }))).toEqual([
      'noted',
      false,
    ]);
    for (const [more, what] of [
      [{ update: { messages: [said], files: { a: 'b' } } }, 'update.files'],
      [{ update: { messages: [said] }, goto: 'other' }, 'goto'],
      [{ update: {} }, 'no message for the call'],
      [{}, 'no message for the call'],
    ] as const) {
      const [told, isError] = await answerTo(command(more));
      expect(isError).toBe(true);
      expect(told).toContain(
        `it returned a Command with ${what}, which only a graph of LangGraph can follow.`,
      );
    }
  });

  it('ends the run with a tool that answers the user itself', async () => {
    const direct = { ...langChain('direct', z.object({}), () => 'Here you are.'), returnDirect: true };
    const { turns, answers } = await called([direct], {});
    expect([turns, textOf(answers[0]!)]).toEqual([1, 'Here you are.']);
    const failing = { ...direct, invoke: () => ({ content: 'no', status: 'error' }) };
    expect((await called([failing], {})).turns).toBe(2);
  });

  it('refuses anything but a LangChain tool', () => {
    expect(() => fromLangChainTools([{} as never])).toThrow('Expected `tools[0]` to be a tool of LangChain');
    expect(() => fromLangChainTools([langChain('x', 5, () => '') as never])).toThrow(
      'Expected `tools[0].schema`',
    );
  });
});
