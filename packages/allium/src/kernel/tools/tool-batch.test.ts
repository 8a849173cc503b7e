/** Tool batches: every call gets exactly one result, in call order, whatever happens. */
import {
  Agent,
  assistantMessage,
  type Middleware,
  memoryStore,
  type Tool,
  tool,
  toolCallsOf,
  toolResult,
} from 'allium';
import { chunks, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  breakingStore,
  expectValidHistory,
  settle,
  transcript,
  watch,
  watched,
} from '../../../../../test/run-checks.js';
import { calls, gates, make, results } from '../../../../../test/tool-batch-setup.js';

describe('tool batches', () => {
  it('run in parallel by default, with results in call order', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a', 'a'), 'end']),
      tools: [make('a', execute)],
    });
    const running = watched(agent, 'go');
    await settle();
    expect(log).toEqual(['+0', '+1', '+2']);
    for (const n of [2, 0, 1]) await release(n);
    const { result, events } = await running;
    expect(results(result.messages)).toEqual(['r0', 'r1', 'r2']);
    expect(
      events.flatMap((event) => (event.type === 'tool_execution_end' ? [event.toolCall.id] : [])),
    ).toEqual(['c2', 'c0', 'c1']);
    const turn = events.find(({ type }) => type === 'turn_end');
    expect(turn).toMatchObject({
      toolResults: [{ toolCallId: 'c0' }, { toolCallId: 'c1' }, { toolCallId: 'c2' }],
    });
  });

  it("run one after the other with toolExecution: 'sequential'", async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a'), 'end']),
      tools: [make('a', execute)],
      toolExecution: 'sequential',
    });
    const running = watched(agent, 'go');
    await settle();
    await release(0);
    await release(1);
    await running;
    expect(log).toEqual(['+0', '-0', '+1', '-1']);
  });

  it('never run a tool with `sequential` beside another call', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'alone', 'a'), 'end']),
      tools: [make('a', execute), make('alone', execute, { sequential: true })],
    });
    const running = watched(agent, 'go');
    await settle();
    for (const n of [0, 1, 2]) await release(n);
    await running;
    expect(log).toEqual(['+0', '-0', '+1', '-1', '+2', '-2']);
  });

  it('run at most `concurrency` calls of a tool at once, beside others', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('two', 'two', 'two', 'free'), 'end']),
      tools: [make('two', execute, { concurrency: 2 }), make('free', execute)],
    });
    const running = watched(agent, 'go');
    await settle();
    expect(log).toEqual(['+0', '+1', '+3']);
    await release(1);
    expect(log).toEqual(['+0', '+1', '+3', '-1', '+2']);
    for (const n of [0, 2, 3]) await release(n);
    expect(results((await running).result.messages)).toEqual(['r0', 'r1', 'r2', 'r3']);
  });

  it('never lose the siblings of a call that fails', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('fine', 'sync', 'async', 'fine'), 'end']),
      tools: [
        make('fine', () => 'fine'),
        make('sync', () => {
          throw new Error('sync');
        }),
        make('async', () => Promise.reject('async')),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(results(result.messages)).toEqual([
      'fine',
      '"sync" failed: sync',
      '"async" failed: async',
      'fine',
    ]);
    expect(result.messages.slice(2, 6).map((message) => 'isError' in message && message.isError)).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it('answer an unknown tool, bad JSON and invalid arguments with an error the model can act on', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls(
          { name: 'nope', id: '1' },
          { name: 'a', args: '{"n":', id: '2' },
          { name: 'a', args: { n: 'x' }, id: '3' },
          { name: 'a', args: '[]', id: '4' },
          { name: 'a', args: '', id: '5' },
        ),
        text('end'),
      ]),
      tools: [make('a', () => 'ran')],
    });
    const [unknown, json, type, list, empty] = results((await watched(agent, 'go')).result.messages);
    expect(unknown).toBe('There is no tool "nope". Available: a.');
    expect(json).toMatch(/^The arguments of "a" are not valid JSON: .*Send one JSON object\.$/);
    expect(type).toMatch(/^Invalid arguments for "a":\nn: /);
    expect(list).toMatch(/^Invalid arguments for "a":/);
    expect(empty).toBe('ran');
  });

  it('say so when there are no tools at all', async () => {
    const { result } = await watched(new Agent({ model: scriptedModel([calls('a'), 'end']) }), 'go');
    expect(results(result.messages)).toEqual(['There is no tool "a". No tools are available.']);
  });

  it('use the tools a layer gave the call, and miss those it took away', async () => {
    const layer: Middleware = {
      beforeModel: (ctx) => {
        ctx.tools = [make('added', () => 'added')];
      },
    };
    const agent = new Agent({
      model: scriptedModel([calls('added', 'removed'), 'end']),
      tools: [make('removed', () => 'ran')],
      middleware: [layer],
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual([
      'added',
      'There is no tool "removed". Available: added.',
    ]);
  });

  it('end the run by `terminate` only when all results say so', async () => {
    const end = make('end', () => toolResult({ content: 'over', terminate: true }));
    const all = new Agent({ model: scriptedModel([calls('end', 'end')]), tools: [end] });
    expect((await watched(all, 'go')).result).toMatchObject({ status: 'done', turns: 1 });
    const some = new Agent({ model: scriptedModel([calls('end', 'nope'), 'go on']), tools: [end] });
    expect((await watched(some, 'go')).result).toMatchObject({ status: 'done', turns: 2 });
  });

  it('journal each result as it comes, and the history has them in call order after a crash too', async () => {
    const store = memoryStore();
    const broken = breakingStore(store, 5);
    const tools = (log: string[]) => [
      make(
        'a',
        ({ n }) => {
          log.push(`ran ${n}`);
          return `r${n}`;
        },
        { idempotent: true },
      ),
    ];
    const crashed = new Agent({
      model: scriptedModel([calls('a', 'a', 'a'), 'not written']),
      tools: tools([]),
      store: broken.store,
      toolExecution: 'sequential',
    });
    await expect(crashed.session('s').run('go')).rejects.toMatchObject({ cause: { message: 'disk full' } });
    const ran: string[] = [];
    const agent = new Agent({ model: scriptedModel(['end']), tools: tools(ran), store });
    const { result } = await watch(agent.session('s').resumeStream());
    expect(ran).toEqual(['ran 2']);
    expect(results(result.messages)).toEqual(['r0', 'r1', 'r2']);
  });
});

describe('a call that had started when the run broke off', () => {
  const crash = async (options: Partial<Tool>) => {
    const store = memoryStore();
    const keys: string[] = [];
    const tools = [
      make(
        'a',
        (_, ctx) => {
          keys.push(ctx.idempotencyKey);
          return 'ran';
        },
        options,
      ),
    ];
    const entries = breakingStore(store, 3);
    await expect(
      new Agent({ model: scriptedModel([calls('a')]), tools, store: entries.store }).session('s').run('go'),
    ).rejects.toThrow();
    const { result } = await watch(
      new Agent({ model: scriptedModel(['end']), tools, store }).session('s').resumeStream(),
    );
    return { keys, text: results(result.messages)[0] };
  };
  it('is not run again, and the model is told so', async () => {
    const { keys, text: said } = await crash({});
    expect(keys).toHaveLength(1);
    expect(said).toContain('In doubt: "a" had started');
  });
  it('runs again when it is idempotent, with the same idempotency key', async () => {
    const { keys, text: said } = await crash({ idempotent: true });
    expect(said).toBe('ran');
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
  });
});

describe('idempotency keys', () => {
  it('differ by session, message, call and arguments', async () => {
    const keys = new Set<string>();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a'), calls('a'), 'end'], { repeat: true }),
      tools: [make('a', (_, ctx) => keys.add(ctx.idempotencyKey) && 'x')],
    });
    await agent.run('go');
    await agent.run('go');
    expect(keys.size).toBe(6);
  });
});

describe('call ids', () => {
  const a = make('a', ({ n }) => `r${n}`);

  it('that repeat in one message are re-minted deterministically', async () => {
    const run = async () => {
      const agent = new Agent({
        model: scriptedModel([
          toolCalls({ name: 'a', args: { n: 1 }, id: 'x' }, { name: 'a', args: { n: 2 }, id: 'x' }),
          'end',
        ]),
        tools: [a],
        newId: () => 'fixed',
      });
      return (await watched(agent, 'go')).result.messages;
    };
    const messages = await run();
    expect(toolCallsOf(messages[1]!).map(({ id }) => id)).toEqual(['x', 'r_fixed.2.call1']);
    expect(results(messages)).toEqual(['r1', 'r2']);
    expect(await run()).toEqual(messages);
  });

  it('that are missing are created', async () => {
    const agent = new Agent({
      model: scriptedModel([
        chunks({ type: 'tool-call', name: 'a', arguments: '{"n":1}' } as never, {
          type: 'tool-call',
          id: '',
          name: 'a',
          arguments: '{"n":2}',
        }),
        'end',
      ]),
      tools: [a],
    });
    const { messages } = (await watched(agent, 'go')).result;
    expect(results(messages)).toEqual(['r1', 'r2']);
    for (const { id } of toolCallsOf(messages[1]!)) expect(id).toMatch(/\.call\d$/);
  });

  it.each([
    ['before', ['r_fixed.2.call1', '']],
    ['after', ['', 'r_fixed.2.call0']],
  ])('that are created differ from a look-alike that the model wrote %s', async (_, [first, second]) => {
    const agent = new Agent({
      model: scriptedModel([
        chunks(
          { type: 'tool-call', id: first!, name: 'a', arguments: '{"n":1}' },
          { type: 'tool-call', id: second!, name: 'a', arguments: '{"n":2}' },
        ),
        'end',
      ]),
      tools: [a],
      newId: () => 'fixed',
    });
    const { messages } = (await watched(agent, 'go')).result;
    expect(results(messages)).toEqual(['r1', 'r2']);
  });

  it('that repeat over the session are re-minted', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), calls('a'), 'end', calls('a'), 'end']),
      tools: [a],
      store: memoryStore(),
    });
    const session = agent.session('s');
    await watched(session, 'one');
    await watched(session, 'two');
    expectValidHistory(await session.messages());
  });

  it('of preset and replaced responses are made and checked alike', async () => {
    const response = assistantMessage([{ type: 'tool-call', name: 'a', arguments: '{"n":7}' } as never]);
    const preset: Middleware = {
      beforeModel: (ctx) => {
        if (ctx.turn === 1) ctx.response = response;
      },
    };
    const replaced: Middleware = {
      afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { response } : undefined),
    };
    for (const [middleware, script] of [
      [preset, ['end']],
      [replaced, ['raw', 'end']],
    ] as const) {
      const { result } = await watched(
        new Agent({ model: scriptedModel(script), tools: [a], middleware: [middleware] }),
        'go',
      );
      expect(results(result.messages)).toEqual(['r7']);
    }
  });
});

describe('arguments', () => {
  it('are parsed once: a schema with transforms never sees its own output', async () => {
    const seen: unknown[] = [];
    const counting = tool({
      name: 'counting',
      description: '',
      input: z.object({ list: z.string().transform((text) => text.split(',')) }),
      execute: ({ list }, ctx) => {
        seen.push(list, ctx.args.list, ctx.rawArgs, ctx.toolCall.arguments);
        return list.length;
      },
    });
    const layer: Middleware = {
      wrapTool: async (_, next) => {
        await next();
        return next();
      },
      beforeToolCall: () => undefined,
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'counting', args: { list: 'a,b' } }), 'end']),
      tools: [counting],
      middleware: [layer],
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual(['2']);
    expect(seen.slice(0, 4)).toEqual([['a', 'b'], ['a', 'b'], { list: 'a,b' }, '{"list":"a,b"}']);
    expect(seen).toHaveLength(8);
  });

  it('are frozen', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [
        make('a', (args) => {
          args.n = 2;
        }),
      ],
    });
    expect(results((await watched(agent, 'go')).result.messages)[0]).toContain('"a" failed');
  });

  it('that a layer changes are validated and judged again before the tool runs', async () => {
    const judged: string[] = [];
    const run = async (args: unknown) => {
      const agent = new Agent({
        model: scriptedModel([calls('a'), 'end']),
        tools: [make('a', ({ n }) => `ran ${n}`)],
        middleware: [
          {
            beforeToolCall: (ctx) => {
              judged.push(`${ctx.revision}:${ctx.args.n}`);
              return ctx.args.n === 13 ? { block: true, reason: 'Unlucky.' } : undefined;
            },
          },
          { wrapTool: (_, next) => next({ args }) },
        ],
      });
      return results((await watched(agent, 'go')).result.messages)[0];
    };
    expect(await run({ n: 5 })).toBe('ran 5');
    expect(await run({ n: 13 })).toBe('Unlucky.');
    expect(await run({ n: 'x' })).toContain('Invalid arguments for "a"');
    expect(judged).toEqual(['0:0', '1:5', '0:0', '1:13', '0:0']);
  });
});

describe('results', () => {
  it('of layers may be anything a tool could return', async () => {
    const skip = (result: unknown): Middleware => ({
      beforeTool: (ctx) => {
        ctx.skip = true;
        ctx.result = result as never;
      },
    });
    const run = async (result: unknown) =>
      results(
        (
          await watched(
            new Agent({
              model: scriptedModel([calls('a'), 'end']),
              tools: [make('a', () => 'never')],
              middleware: [skip(result)],
            }),
            'go',
          )
        ).result.messages,
      )[0];
    expect(await run('text')).toBe('text');
    expect(await run({ some: 'json' })).toBe('{"some":"json"}');
    expect(await run(toolResult({ content: 'made' }))).toBe('made');
    expect(await run({ isError: false, content: 'text' })).toBe('text');
    expect(await run({ isError: false, content: 5 })).toBe('{"isError":false,"content":5}');
  });

  it('keep order and count for any number of calls', async () => {
    for (const count of [1, 2, 17]) {
      const agent = new Agent({
        model: scriptedModel([calls(...Array.from({ length: count }, () => 'a')), 'end']),
        tools: [make('a', ({ n }) => `r${n}`)],
      });
      const { result } = await watched(agent, 'go');
      expect(results(result.messages)).toEqual(Array.from({ length: count }, (_, n) => `r${n}`));
      expect(transcript(result.messages)).toHaveLength(count + 3);
    }
  });
});

describe('what a tool does itself', () => {
  it('is not attributed to a layer: ctx.generate goes through all model layers, and no layer is blamed for a stop', async () => {
    const seen: string[] = [];
    const watch = {
      name: 'watch',
      beforeModel: (ctx: { systemPrompt: string }) => void seen.push(ctx.systemPrompt),
    };
    const passive = { name: 'passive', wrapTool: (_: unknown, next: () => Promise<never>) => next() };
    const asking = tool({
      name: 'asking',
      description: 'Asks a model, then stops.',
      input: z.object({}),
      execute: async (_, ctx) => {
        await ctx.generate(scriptedModel(['fine']), { messages: 'ok?', systemPrompt: 'inner' });
        ctx.stop('stopped', 'enough');
      },
    });
    const model = scriptedModel([toolCalls({ name: 'asking' })]);
    const agent = new Agent({ model, tools: [asking], systemPrompt: 'outer', middleware: [watch, passive] });
    const { stop } = await agent.run('go');
    expect(seen).toEqual(['outer', 'inner']);
    expect(stop).toEqual({ reason: 'stopped', message: 'enough' });
  });
});

it.each(['run', 'stream'] as const)(
  'a result is what the tool returned, whatever it does to it later: %s',
  async (way) => {
    const details = { n: 0 };
    const count = tool({
      name: 'count',
      description: '',
      input: z.any(),
      execute() {
        details.n++;
        return toolResult({ content: `${details.n}`, details });
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'count' }, { name: 'count' }), 'end']),
      tools: [count],
      toolExecution: 'sequential',
    });
    const { messages } = await (way === 'run' ? agent.run('go') : agent.stream('go').result);
    expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { isError: false, details: { n: 1 } },
      { isError: false, details: { n: 2 } },
    ]);
  },
);
