import { Agent, type Middleware, requestKey, type Tool, tool, toolSpec } from 'allium';
import { deferredTools, toolSelector } from 'allium/middleware';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { inDoubtPolicy } from './tool.js';

const weather = tool({
  name: 'weather',
  description: 'The weather of a city.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `${city}: rain`,
});

const peek: Tool = {
  ...weather,
  name: 'peek',
  description: 'Looks out of the window.',
  input: z.object({ window: z.number() }),
  execute: ({ window }: { window: number }) => `window ${window}: rain`,
};

const callsPeek = () => scriptedModel([toolCalls({ name: 'peek', args: { window: 2 } }), text('ok')]);

const shownToModel = {
  name: 'peek',
  description: 'Looks out of the window.',
  inputSchema: { properties: { window: { type: 'number' } } },
};

describe('a changed copy of a tool is a tool', () => {
  const ways: Record<string, (model: ReturnType<typeof callsPeek>) => Agent> = {
    'among the tools of an agent': (model) => new Agent({ model, tools: [peek] }),
    'beside the tool it was made from': (model) => new Agent({ model, tools: [peek, weather] }),
    'among the tools of a middleware': (model) => new Agent({ model, middleware: [{ tools: [peek] }] }),
    'put into ctx.tools by a layer': (model) =>
      new Agent({
        model,
        tools: [weather],
        middleware: [
          {
            beforeModel(ctx) {
              ctx.tools = [peek];
            },
          },
        ],
      }),
    'given to next() by a layer': (model) =>
      new Agent({
        model,
        tools: [weather],
        middleware: [{ wrapModel: (_, next) => next({ tools: [peek] }) }],
      }),
    'made anew for every request': (model) =>
      new Agent({
        model,
        tools: [weather],
        middleware: [
          {
            beforeModel(ctx) {
              ctx.tools = [{ ...peek }];
            },
          },
        ],
      }),
    'kept by a selector': (model) => {
      const others = ['a', 'b'].map((name) => ({ ...weather, name }));
      const cheap = scriptedModel([text('["peek"]')]);
      return new Agent({
        model,
        tools: [peek, ...others],
        middleware: [toolSelector({ model: cheap, maxTools: 1 })],
      });
    },
  };

  it.each(Object.keys(ways))('%s', async (way) => {
    const model = callsPeek();
    const result = await ways[way]!(model).run('go');
    expect(model.requests[0]!.tools[0]).toMatchObject(shownToModel);
    expect(result.messages).toContainEqual(
      expect.objectContaining({ role: 'tool', content: [{ type: 'text', text: 'window 2: rain' }] }),
    );
  });

  it('in a run with one more middleware', async () => {
    const model = callsPeek();
    const result = await new Agent({ model }).run('go', { middleware: [{ tools: [peek] }] });
    expect(model.requests[0]!.tools).toMatchObject([shownToModel]);
    expect(JSON.stringify(result.messages)).toContain('window 2: rain');
  });

  it('brought by resolveToolCall', async () => {
    const model = scriptedModel([toolCalls({ name: 'anything', args: { window: 2 } }), text('ok')]);
    const bring: Middleware = {
      resolveToolCall: (call) => ({ toolCall: { ...call, name: 'peek' }, tool: peek }),
    };
    const result = await new Agent({ model, middleware: [bring] }).run('go');
    expect(JSON.stringify(result.messages)).toContain('window 2: rain');
  });

  it.each(['dispatch', 'inject'] as const)('loaded by deferredTools, %s', async (strategy) => {
    const call =
      strategy === 'inject'
        ? { name: 'peek', args: { window: 2 } }
        : { name: 'deferred_tool_call', args: { tool_name: 'peek', arguments: { window: 2 } } };
    const model = scriptedModel([
      toolCalls({ name: 'load_tools', args: { groups: ['g'] } }),
      toolCalls(call),
      text('ok'),
    ]);
    const group = { id: 'g', title: 'G', description: 'G', toolNames: ['peek'], load: () => [peek] };
    const result = await new Agent({
      model,
      middleware: [deferredTools({ groups: [group], strategy })],
    }).run('go');
    expect(JSON.stringify(result.messages)).toContain('window 2: rain');
    const seen = JSON.stringify(strategy === 'inject' ? model.requests[1]!.tools : result.messages);
    expect(seen).toContain('Looks out of the window.');
    expect(seen).toContain('window');
  });

  it('whose own description a layer changes keeps what its middleware does for it', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'deferred_tool_call', args: { tool_name: 'peek', arguments: { window: 2 } } }),
      text('ok'),
    ]);
    const group = { id: 'g', title: 'G', description: 'G', toolNames: ['peek'], load: () => [peek] };
    const rewords: Middleware = {
      beforeModel(ctx) {
        ctx.tools = ctx.tools.map((one) => ({ ...one, description: 'Shorter.' }));
      },
    };
    const result = await new Agent({ model, middleware: [rewords, deferredTools({ groups: [group] })] }).run(
      'go',
    );
    expect(JSON.stringify(result.messages)).toContain('window 2: rain');
  });

  it('is the tool for ctx.is() as long as it has its name and its input', async () => {
    const asked: boolean[] = [];
    const model = scriptedModel([
      toolCalls({ name: 'weather', args: { city: 'Oslo' } }, { name: 'peek', args: { window: 1 } }),
      text('ok'),
    ]);
    await new Agent({
      model,
      tools: [{ ...weather, description: 'Other words.' }, peek],
      middleware: [
        {
          beforeToolCall(ctx) {
            asked.push(ctx.is(weather));
          },
        },
      ],
    }).run('go');
    expect(asked).toEqual([true, false]);
  });

  it('has its own key, and a copy that changes nothing has the same', () => {
    const model = { provider: 'p', id: 'm' };
    const key = (one: Tool) => requestKey({ model, tools: [one] });
    expect(key({ ...weather })).toBe(key(weather));
    expect(key({ ...weather, description: 'x' })).not.toBe(key(weather));
  });

  it('shares the JSON Schema of its input, and a field that is changed later is seen', () => {
    const toJsonSchema = vi.fn(() => ({ type: 'object' }));
    const made = tool({ ...weather, toJsonSchema });
    const copy = { ...made, description: 'a' };
    expect(toolSpec(copy).inputSchema).toBe(toolSpec(made).inputSchema);
    copy.description = 'b';
    expect(toolSpec(copy).description).toBe('b');
    expect(toJsonSchema).toHaveBeenCalledTimes(1);
  });

  it('that is made idempotent is run again after a crash, like any idempotent tool', () => {
    expect(inDoubtPolicy(weather)).toBe('fail');
    expect(inDoubtPolicy({ ...weather, idempotent: true })).toBe('retry');
    expect(inDoubtPolicy(tool({ ...weather, idempotent: true }))).toBe('retry');
    expect(inDoubtPolicy({ ...weather, idempotent: true, onInDoubt: 'fail' })).toBe('fail');
  });
});

describe('tool() takes a tool and what is to be different', () => {
  it.each([
    ['timeoutMs', { timeoutMs: 5 }],
    ['name', { name: 'other' }],
    ['input', { input: z.object({ a: z.number() }) }],
  ])('%s', (_, change) => {
    expect(tool({ ...weather, ...change } as Tool)).toMatchObject(change);
  });
});

describe('a copy that is no tool is refused where it is handed over', () => {
  it.each([
    ['a bad name', { name: 'two words' }, 'got "two words"'],
    ['no description', { description: 5 }, 'Tool "weather": Expected `description` to be text, got 5.'],
    ['an input that is no object', { input: z.string() }, 'must be the schema of an object'],
    ['a bad time limit', { timeoutMs: -1 }, 'Expected `timeoutMs` to be a number ≥ 1, got -1.'],
  ])('%s', async (_, change, message) => {
    const wrong = { ...weather, ...change } as Tool;
    const refused = expect.objectContaining({
      code: 'INVALID_TOOL',
      message: expect.stringContaining(message),
    });
    expect(() => new Agent({ model: scriptedModel([]), tools: [wrong] })).toThrow(refused);
    const layer: Middleware = {
      beforeModel(ctx) {
        ctx.tools = [wrong];
      },
    };
    await expect(
      new Agent({ model: scriptedModel([]), middleware: [layer] }).run('go'),
    ).rejects.toMatchObject({ code: 'INVALID_TOOL', message: expect.stringContaining(message) });
  });
});
