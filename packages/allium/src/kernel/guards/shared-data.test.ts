/** What is handed to the kernel, or read from it, is nobody else's to change. */
import {
  Agent,
  type AgentEvent,
  type Context,
  type Message,
  type Middleware,
  type Tool,
  textOf,
  tool,
  toolResult,
  toolSpec,
} from 'allium';
import { collect, failWith, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const make = (name: string, execute: Tool['execute'] = () => 'r'): Tool =>
  tool({ name, description: name, input: z.object({ q: z.string().optional() }), execute }) as Tool;

/** Frozen, but not what it holds. */
const shell = () => {
  const list = ['a'];
  return { list, data: Object.freeze({ list }) };
};

describe('a frozen object that holds one that is not', () => {
  it.each(['emit', 'update'] as const)('is copied into the events of ctx.%s', async (how) => {
    const { list, data } = shell();
    const told: AgentEvent[] = [];
    const teller = make('teller', async (_, ctx) => {
      if (how === 'emit') ctx.emit('told', data);
      else await ctx.update('told', data);
      return 'r';
    });
    await new Agent({
      model: scriptedModel([toolCalls({ name: 'teller' }), 'ok']),
      tools: [teller],
      observers: [(event) => void told.push(event)],
    }).run('go');
    list.push('later');
    const event = told.find(({ type }) => type === 'custom' || type === 'tool_execution_update') as {
      data?: { list: string[] };
      details?: { list: string[] };
    };
    expect((event.data ?? event.details)!.list).toEqual(['a']);
  });

  it('is copied if it is the details of a result', async () => {
    const { list, data } = shell();
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'x' }), 'ok']),
      tools: [make('x')],
      middleware: [
        {
          name: 'answers',
          wrapTool: async () => ({ ...toolResult({ content: 'r' }), details: data }),
        },
      ],
    }).run('go');
    list.push('later');
    const message = result.messages.find(({ role }) => role === 'tool') as { details?: { list: string[] } };
    expect(message.details!.list).toEqual(['a']);
  });

  it('is refused as details if it holds something that cannot be written', async () => {
    const result = await new Agent({
      model: scriptedModel([toolCalls({ name: 'x' }), 'ok']),
      tools: [make('x')],
      middleware: [
        {
          name: 'answers',
          wrapTool: async () => ({ ...toolResult({ content: 'r' }), details: Object.freeze({ n: 1n }) }),
        },
      ],
    }).run('go');
    const message = result.messages.find(({ role }) => role === 'tool')!;
    expect(message).toMatchObject({ isError: true });
    expect(textOf(message)).toContain('what can be written as JSON');
  });

  it('is frozen at every depth if it comes from a model', async () => {
    const { data } = shell();
    const result = await new Agent({
      model: {
        provider: 'p',
        id: 'i',
        *stream() {
          yield { type: 'text', text: 'hi', metadata: data };
          yield { type: 'provider', provider: 'p', kind: 'k', value: data };
          yield { type: 'finish', reason: 'stop' };
        },
      },
    }).run('go');
    const [first, second] = result.messages.at(-1)!.content as readonly unknown[] as {
      metadata?: typeof data;
      value?: typeof data;
    }[];
    expect(Object.isFrozen(first!.metadata!.list)).toBe(true);
    expect(Object.isFrozen(second!.value!.list)).toBe(true);
  });
});

describe('what is offered to a model', () => {
  it('is the list of tools as it is when the model is called', async () => {
    const loaded = [make('one')];
    const model = scriptedModel([toolCalls({ name: 'one' }), toolCalls({ name: 'two' }), 'ok']);
    await new Agent({
      model,
      middleware: [
        {
          name: 'loads',
          beforeModel(ctx) {
            if (ctx.turn === 2) loaded.push(make('two'));
            ctx.tools = loaded;
          },
        },
      ],
    }).run('go');
    const names = model.requests.map(({ tools }) => tools.map(({ name }) => name));
    expect(names).toEqual([['one'], ['one', 'two'], ['one', 'two']]);
  });

  it('cannot be edited in place: a schema belongs to every agent that has the tool', () => {
    const { properties } = toolSpec(make('x')).inputSchema as { properties: Record<string, object> };
    expect(() => Object.assign(properties, { extra: {} })).toThrow(TypeError);
    expect(() => Object.assign(properties.q!, { description: 'edited' })).toThrow(TypeError);
  });
});

describe('messages that a middleware puts into a request', () => {
  type Editable = { content: { text: string }[] }[];
  const mine = (): Message => ({ id: 'x', role: 'user', content: [{ type: 'text', text: 'mine' }] });
  const adds: Record<string, (note: Message) => Middleware> = {
    'ctx.messages': (note) => ({
      beforeModel(ctx) {
        ctx.messages = [...ctx.messages, note];
      },
    }),
    'next()': (note) => ({ wrapModel: (ctx, next) => next({ messages: [...ctx.messages, note] }) }),
    transformContext: (note) => ({ transformContext: (messages) => [...messages, note] }),
    'ctx.generate()': (note) => ({
      async wrapModel(ctx, next) {
        return ctx.caller ? next() : ctx.generate(ctx.model, { messages: [...ctx.messages, note] });
      },
    }),
  };
  const edits: Record<string, (messages: Editable) => unknown> = {
    text: (messages) => {
      messages.at(-1)!.content[0]!.text += '!';
    },
    content: (messages) => messages.at(-1)!.content.push({ text: '!' }),
    list: (messages) => messages.push(messages[0]!),
  };

  it.each(Object.keys(adds).flatMap((how) => Object.keys(edits).map((what) => [how, what] as const)))(
    'stay unchanged for everybody further in: %s, %s',
    async (how, what) => {
      const note = mine();
      const model = scriptedModel([failWith(new Error('down')), 'ok']);
      const editing: Middleware = {
        name: 'editing',
        beforeModel(ctx) {
          expect(() => edits[what]!(ctx.messages as never)).toThrow(TypeError);
        },
      };
      const again: Middleware = {
        name: 'again',
        onError: ({ attempt }) => (attempt < 2 ? 'retry' : undefined),
      };
      await new Agent({ model, middleware: [adds[how]!(note), again, editing] }).run('go');
      expect(model.requests.map(({ messages }) => messages.map(textOf))).toEqual([
        ['go', 'mine'],
        ['go', 'mine'],
      ]);
      expect(note).toEqual(mine());
      // Who made them may change them for the next request.
      expect(Object.isFrozen(note)).toBe(false);
    },
  );

  it('are not editable for the next transformContext either', async () => {
    const model = scriptedModel(['ok']);
    const next: Middleware = {
      transformContext(messages) {
        for (const edit of Object.values(edits)) expect(() => edit(messages as never)).toThrow(TypeError);
        return messages;
      },
    };
    await new Agent({ model, middleware: [adds.transformContext!(mine()), next] }).run('go');
    expect(model.requests[0]!.messages.map(textOf)).toEqual(['go', 'mine']);
  });
});

it('input cannot be edited in place, so a hook that fails open leaves nothing behind', async () => {
  const result = await new Agent({
    model: scriptedModel(['ok']),
    middleware: [
      {
        name: 'edits',
        onFail: 'open',
        beforeRun(ctx) {
          (ctx.input as Message[]).push({ ...ctx.input[0]! });
        },
      },
    ],
  }).run('go');
  expect(result.messages.map(textOf)).toEqual(['go', 'ok']);
});

it('a kept context emits nothing after the end of the run', async () => {
  let kept: Context | undefined;
  const observed: string[] = [];
  const agent = new Agent({
    model: scriptedModel(['ok']),
    middleware: [
      {
        name: 'keeps',
        beforeModel(ctx) {
          kept = ctx;
          ctx.emit('early');
        },
      },
    ],
    observers: [({ type }) => void observed.push(type)],
  });
  const { events } = await collect(agent.stream('go'));
  kept!.emit('late');
  await agent.observersIdle();
  expect(events.map(({ type }) => type)).toContain('custom');
  expect(observed.at(-1)).toBe('agent_end');
});
