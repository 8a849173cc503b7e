import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  defineMiddleware,
  type Message,
  memoryStore,
  type Tool,
  textOf,
  tool,
  toolSpec,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { observability, type SpanHandle } from 'allium/middleware/observability';
import { type SubagentsOptions, subagents } from 'allium/middleware/subagents';
import {
  type Answer,
  collect,
  failWith,
  hang,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  deferred,
  expectBalanced,
  settle,
  type Watched,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

const delegates = {
  name: 'two tasks at once',
  answers: [
    toolCalls(
      { name: 'subagent', args: { name: 'Ann', task: 'Look.', prompt: 'Look around.' }, id: 'a' },
      { name: 'subagent', args: { name: 'Bob', task: 'Look.', prompt: 'Look up.' }, id: 'b' },
    ),
    text('Both have looked.'),
  ],
};
testMiddleware(() => subagents({ defaultModel: scriptedModel(['I looked.'], { repeat: true }) }), {
  name: 'subagents',
  changes: ['tools'],
  scenarios: [delegates],
  describe,
  it,
});
testMiddleware(() => subagents({ excludeTools: ['subagent'], maxDepth: 1, maxConcurrent: 1 }), {
  name: 'subagents with everything closed',
  changes: ['tools'],
  describe,
  it,
});

/** A model that answers by how many answers there are already, whichever process asks. */
const byTurn = (...answers: Answer[]) =>
  scriptedModel(
    [
      ({ messages }) =>
        answers[messages.filter(({ role }) => role === 'assistant').length] ?? 'Nothing more.',
    ],
    { repeat: true },
  );
const task = (more: Record<string, unknown> = {}, id?: string) => ({
  name: 'subagent',
  args: { name: 'Ann', task: 'Look.', prompt: 'Look around.', ...more },
  ...(id && { id }),
});
const toolTexts = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
const childEvents = (events: readonly AgentEvent[]) =>
  events.flatMap((event) =>
    event.type === 'tool_execution_update'
      ? [{ call: event.toolCallId, ...(event.details as { agentId: string; event: AgentEvent }) }]
      : [],
  );
const named = (name: string, ran: string[] = []) =>
  tool({
    name,
    description: name,
    input: z.any(),
    idempotent: true,
    execute: () => {
      ran.push(name);
      return `${name} has run`;
    },
  });

/** An agent that makes these calls at once, and then ends. */
function parent(
  options: SubagentsOptions,
  calls: readonly ReturnType<typeof task>[],
  more: Partial<AgentOptions> = {},
): Agent {
  return new Agent({
    model: byTurn(toolCalls(...calls), text('end')),
    middleware: [subagents(options)],
    ...more,
  });
}
const run = (...args: Parameters<typeof parent>): Promise<Watched> => watched(parent(...args), 'go');

describe('the tool', () => {
  it('shows the types with their descriptions', () => {
    const spec = { description: 'Reads long texts.', systemPrompt: '' };
    const shown = toolSpec(subagents({ agents: { reader: spec } }).tools![0]!);
    expect(shown.name).toBe('subagent');
    expect(shown.description).toContain('- general-purpose: ');
    expect(shown.description).toContain('- reader: Reads long texts.');
    expect(shown.inputSchema).toMatchObject({
      required: ['name', 'task', 'prompt'],
      properties: { subagent_type: { enum: ['general-purpose', 'reader'] } },
    });
  });

  it('runs one task and returns the final text, with details for the application', async () => {
    const model = scriptedModel(['A house and a tree.']);
    const { result } = await run({ defaultModel: model }, [task({ role: 'a scout' })], {
      store: memoryStore(),
    });
    expect(toolTexts(result.messages)).toEqual(['A house and a tree.']);
    const { systemPrompt, messages, tools } = model.requests[0]!;
    expect(systemPrompt).toContain('You work on one task for another agent.');
    expect(messages.map(textOf)).toEqual(['You are "Ann", a scout.\nTask: Look.\n\nLook around.']);
    expect(tools.map(({ name }) => name)).toEqual(['subagent']);
    expect(result.messages[2]).toMatchObject({
      details: {
        agentId: `${result.sessionId}/${result.messages[1]!.id}.0`,
        text: 'A house and a tree.',
        events: [
          { type: 'turn_start', turn: 1 },
          { type: 'message_end', text: 'A house and a tree.' },
          { type: 'agent_end', status: 'done' },
        ],
      },
    });
    expect(result.messages[2]).not.toHaveProperty('details.error');
  });

  it("uses the calling agent's model if no other is given", async () => {
    const model = scriptedModel([toolCalls(task()), 'from the child', 'end']);
    const result = await new Agent({ model, middleware: [subagents()] }).run('go');
    expect([toolTexts(result.messages), result.text]).toEqual([['from the child'], 'end']);
  });

  it('chooses model, prompt, tools and middleware by type', async () => {
    const seen: string[] = [];
    const note = (name: string) => defineMiddleware({ name, beforeRun: () => void seen.push(name) });
    const model = scriptedModel(['read']);
    const shared = named('shared');
    const [first, second] = [named('look'), named('look')];
    await run(
      {
        agents: {
          reader: {
            name: 'The Reader',
            description: '',
            systemPrompt: 'Read.',
            model,
            tools: [second],
            middleware: [note('own')],
          },
        },
        defaultModel: scriptedModel([]),
        sharedTools: [shared, first],
        inheritMiddleware: [note('inherited')],
        tracer: note('tracer'),
      },
      [task({ subagent_type: 'reader' })],
    );
    const { systemPrompt, tools } = model.requests[0]!;
    expect([systemPrompt, tools.map(({ name }) => name)]).toEqual(['Read.', ['shared', 'look', 'subagent']]);
    expect(seen).toEqual(['tracer', 'inherited', 'own']);
  });

  it('general-purpose can be changed', async () => {
    const model = scriptedModel(['ok']);
    await run(
      { agents: { 'general-purpose': { description: '', systemPrompt: 'Be brief.' } }, defaultModel: model },
      [task()],
    );
    expect(model.requests[0]!.systemPrompt).toBe('Be brief.');
  });

  it('lists the types when the model names another', async () => {
    const { result } = await run({ agents: { reader: { description: '', systemPrompt: '' } } }, [
      task({ subagent_type: 'writer' }),
    ]);
    expect(toolTexts(result.messages)).toEqual([
      'There is no subagent_type "writer". Types: general-purpose, reader.',
    ]);
    expect(result.messages[2]).toMatchObject({ isError: true });
  });

  it('a sub-agent that fails, or is refused, is an error result with its reason in the details', async () => {
    const refuse = defineMiddleware({
      name: 'refuse',
      acceptMessage: () => ({ block: true, reason: 'Not this.' }),
    });
    const { result } = await run(
      {
        agents: {
          broken: { description: '', systemPrompt: '', model: scriptedModel([failWith(new Error('down'))]) },
          shy: { description: '', systemPrompt: '', model: scriptedModel([]), middleware: [refuse] },
        },
      },
      [task({ subagent_type: 'broken' }, 'a'), task({ subagent_type: 'shy' }, 'b')],
    );
    expect(result).toMatchObject({ status: 'done', text: 'end' });
    const [broken, shy] = result.messages.slice(2);
    expect(broken).toMatchObject({
      isError: true,
      details: { error: 'Sub-agent "broken" failed (error): down' },
    });
    expect(shy).toMatchObject({
      isError: true,
      details: { error: 'Sub-agent "shy" did not finish (guardrail): Not this.' },
    });
  });
});

describe('excludeTools', () => {
  it('takes tools out of every source, and blocks those that come in by other ways', async () => {
    const ran: string[] = [];
    const secret = (name: string): Tool => named(name, ran);
    const model = scriptedModel([
      toolCalls({ name: 'kept' }, { name: 'from_middleware' }, { name: 'alias' }),
      'done',
    ]);
    const brings = defineMiddleware({ name: 'brings', tools: [secret('from_middleware')] });
    const adds = defineMiddleware({
      name: 'adds',
      beforeModel(ctx) {
        ctx.tools = [...ctx.tools, secret('from_layer')];
      },
      resolveToolCall: (toolCall) =>
        toolCall.name === 'alias' ? { toolCall, tool: secret('resolved') } : undefined,
    });
    const { events } = await run(
      {
        agents: {
          'general-purpose': {
            description: '',
            systemPrompt: '',
            tools: [secret('own'), secret('kept')],
            middleware: [adds],
          },
        },
        sharedTools: [secret('shared')],
        inheritMiddleware: [brings],
        excludeTools: ['own', 'shared', 'from_middleware', 'from_layer', 'resolved', 'subagent'],
        defaultModel: model,
      },
      [task()],
    );
    expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['kept']);
    expect(ran).toEqual(['kept']);
    const results = childEvents(events).flatMap(({ event }) =>
      event.type === 'tool_execution_end' ? [[event.toolCall.name, textOf(event.message!)]] : [],
    );
    expect(results).toHaveLength(3);
    expect(Object.fromEntries(results)).toMatchObject({
      from_middleware: expect.stringContaining('from_middleware'),
      alias: '"resolved" is not for sub-agents.',
    });
  });
});

describe('nesting', () => {
  /** A model that hands everything on, at every level. */
  const handsOn = () =>
    scriptedModel(
      [
        ({ messages, tools }) => {
          const answer = messages.find(({ role }) => role === 'tool');
          if (answer) return `> ${textOf(answer)}`;
          return tools.some(({ name }) => name === 'subagent') ? toolCalls(task()) : 'the bottom';
        },
      ],
      { repeat: true },
    );

  it('goes as deep as maxDepth, and at the bottom there is no tool', async () => {
    for (const maxDepth of [1, 2, 3]) {
      const model = handsOn();
      const result = await new Agent({ model, middleware: [subagents({ maxDepth })] }).run('go');
      expect(result.text).toBe(`${'> '.repeat(maxDepth)}the bottom`);
      expect(model.requests.length).toBe(2 * maxDepth + 1);
    }
  });

  it('is three deep unless said otherwise; usage of all levels is the parent’s', async () => {
    const result = await new Agent({ model: handsOn(), middleware: [subagents()] }).run('go');
    expect(result.text).toBe('> > > the bottom');
    expect(result.usage.totalTokens).toBe(7 * 15);
  });

  it('counts agents that are tools as well', async () => {
    const inner = new Agent({ model: handsOn(), middleware: [subagents({ maxDepth: 1 })] });
    const outer = new Agent({
      model: byTurn(toolCalls({ name: 'inner', args: { prompt: 'go' } }), text('end')),
      tools: [inner.asTool({ name: 'inner', description: '' })],
    });
    const [said] = toolTexts((await outer.run('go')).messages);
    expect(said).toContain('Sub-agents may nest 1 deep');
  });

  it('events of all levels are in the stream of the first, each inside the next', async () => {
    const agent = new Agent({ model: handsOn(), middleware: [subagents()] });
    const { events } = await watched(agent, 'go');
    let level: readonly AgentEvent[] = events;
    for (let depth = 0; depth < 3; depth++) {
      level = childEvents(level).map(({ event }) => event);
      expectBalanced(level);
    }
    expect(childEvents(level)).toEqual([]);
  });

  it('tells children who their parents are, so that one tracer sees one tree', async () => {
    const spans: { name: string; parent: string | undefined }[] = [];
    const names = new Map<SpanHandle, string>();
    const tracer = observability({
      span(name, attributes, above) {
        const handle = { end() {} };
        const full = `${name} ${attributes['allium.depth'] ?? ''}`.trim();
        names.set(handle, full);
        spans.push({ name: full, parent: above && names.get(above) });
        return handle;
      },
    });
    await new Agent({
      model: handsOn(),
      middleware: [tracer, subagents({ maxDepth: 2, tracer })],
    }).run('go');
    expect(spans.filter(({ name }) => name.startsWith('invoke_agent'))).toEqual([
      { name: 'invoke_agent agent 0', parent: undefined },
      { name: 'invoke_agent general-purpose 1', parent: 'invoke_agent agent 0' },
      { name: 'invoke_agent general-purpose 2', parent: 'invoke_agent general-purpose 1' },
    ]);
  });
});

describe('maxConcurrent', () => {
  it.each([
    [undefined, 4],
    [1, 1],
    [7, 7],
    [50, 20],
  ])('%s: of 20 at most the limit work at once, and all finish', async (maxConcurrent, expected) => {
    let [working, peak] = [0, 0];
    const model = scriptedModel(
      [
        (request) => {
          const said = textOf(request.messages[0]!);
          return `did ${said.slice(said.lastIndexOf(' ') + 1)}`;
        },
      ],
      { repeat: true },
    );
    const busy = defineMiddleware({
      name: 'busy',
      async wrapRun(_, next) {
        peak = Math.max(peak, ++working);
        await settle();
        const result = await next();
        working--;
        return result;
      },
    });
    const calls = Array.from({ length: 20 }, (_, i) => task({ prompt: `number ${i}` }, `c${i}`));
    const { result, events } = await run(
      {
        defaultModel: model,
        inheritMiddleware: [busy],
        ...(maxConcurrent !== undefined && { maxConcurrent }),
      },
      calls,
    );
    expect(peak).toBe(expected);
    expect(toolTexts(result.messages)).toEqual(calls.map((_, i) => `did ${i}`));
    for (const { id } of calls)
      expectBalanced(
        childEvents(events)
          .filter(({ call }) => call === id)
          .map(({ event }) => event),
      );
  });

  it('20 of them share one budget', async () => {
    const model = scriptedModel([text('spent', { inputTokens: 20, outputTokens: 10 })], { repeat: true });
    const calls = Array.from({ length: 20 }, (_, i) => task({}, `c${i}`));
    const { result } = await run({ defaultModel: model }, calls, { limits: { tokens: 300 } });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens' } });
    expect(model.requests.length).toBeLessThanOrEqual(10);
    expect(result.usage.totalTokens).toBeLessThanOrEqual(330);
  });
});

describe('abort', () => {
  it('of the parent ends those that work, and starts none of those that wait', async () => {
    const model = scriptedModel([hang('I ')], { repeat: true });
    const controller = new AbortController();
    const calls = Array.from({ length: 6 }, (_, i) => task({}, `c${i}`));
    const store = memoryStore();
    const running = watch(
      parent({ defaultModel: model, maxConcurrent: 2 }, calls, { store }).session('s').stream('go', {
        signal: controller.signal,
      }),
    );
    while (model.requests.length < 2) await settle();
    controller.abort();
    expect((await running).result.status).toBe('aborted');
    expect([model.requests.length, model.aborted]).toEqual([2, 2]);
    const { sessions } = await store.list();
    const ends = sessions.map(async ({ sessionId }) => (await store.read(sessionId, 1)).at(-1));
    expect(await Promise.all(ends)).toMatchObject(
      Array.from({ length: 3 }, () => ({ type: 'run_end', status: 'aborted' })),
    );
  });
});

describe('a sub-agent that asks', () => {
  it('three levels down suspends the parent, which goes on in another process with the answer', async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const made = () => {
      const model = scriptedModel(
        [
          ({ messages, tools }) => {
            const answer = messages.find(({ role }) => role === 'tool');
            if (answer) return `> ${textOf(answer)}`;
            return toolCalls(tools.some(({ name }) => name === 'subagent') ? task() : { name: 'pay' });
          },
        ],
        { repeat: true },
      );
      const options = {
        inheritMiddleware: [approval({ policy: { pay: 'ask', '*': 'allow' } })],
        sharedTools: [named('pay', ran)],
      };
      return new Agent({ model, middleware: [subagents(options)], store }).session('s');
    };
    const first = await watched(made(), 'go');
    expect(first.result).toMatchObject({ status: 'suspended' });
    expect(first.result.pending).toMatchObject([
      { toolName: 'pay', callId: 'call_1', from: { agent: 'general-purpose' } },
    ]);
    expect(ran).toEqual([]);
    await made().answer(first.result.pending[0]!.id, { type: 'approve' });
    const { result, events } = await watch(made().resumeStream());
    expect(result).toMatchObject({ status: 'done', text: '> > > > pay has run', runId: first.result.runId });
    expect(ran).toEqual(['pay']);
    expectBalanced(childEvents(events).map(({ event }) => event));
    const { sessions } = await store.list();
    expect(sessions.map(({ sessionId }) => sessionId.split('/').length).sort()).toEqual([1, 2, 3, 4]);
  });

  it('does not keep those that wait for a place from their turn', async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const made = () =>
      parent(
        {
          defaultModel: byTurn(toolCalls({ name: 'pay' }), text('paid')),
          inheritMiddleware: [approval()],
          sharedTools: [named('pay', ran)],
          maxConcurrent: 2,
        },
        Array.from({ length: 5 }, (_, i) => task({}, `c${i}`)),
        { store },
      ).session('s');
    let result = await made().run('go');
    for (let n = 0; result.status === 'suspended' && n < 10; n++) {
      expect(result.pending.length).toBeLessThanOrEqual(2);
      const answers = Object.fromEntries(result.pending.map(({ id }) => [id, { type: 'approve' as const }]));
      result = await made().resume({ answers });
    }
    expect(result).toMatchObject({ status: 'done', pending: [] });
    expect(ran).toHaveLength(5);
    expect(toolTexts(result.messages)).toEqual(Array.from({ length: 5 }, () => 'paid'));
  });
});

describe('mapEvent and onEvent', () => {
  it('shape what is kept and sent; undefined is left out', async () => {
    const told: unknown[] = [];
    const { result } = await run(
      {
        defaultModel: scriptedModel(['ok']),
        mapEvent: (event, agentId) =>
          event.type === 'message_update' ? { delta: event.delta, agentId } : undefined,
        onEvent: (agentId, payload) => void told.push([agentId, payload]),
      },
      [task()],
    );
    const { agentId, events } = (result.messages[2] as { details: { agentId: string; events: unknown[] } })
      .details;
    const payload = { delta: { type: 'text', block: 0, text: 'ok' }, agentId };
    expect(events).toEqual([payload]);
    expect(told).toEqual([[agentId, payload]]);
  });

  it('keeps those since the call went on, when a question suspended it', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls(task()), text('end')]),
      middleware: [
        subagents({
          defaultModel: scriptedModel([toolCalls({ name: 'act' }), text('It is done.')]),
          sharedTools: [tool({ name: 'act', description: '', input: z.object({}), execute: () => 'ok' })],
          inheritMiddleware: [approval()],
        }),
      ],
      store: memoryStore(),
    });
    const { pending } = await agent.session('s').run('go');
    const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
    const { messages } = await agent.session('s').resume({ answers });
    const { events } = (messages.find(({ role }) => role === 'tool') as { details: { events: object[] } })
      .details;
    expect(events).toContainEqual({ type: 'tool_execution_end', tool: 'act', isError: false });
    expect(events.at(-1)).toMatchObject({ type: 'agent_end', status: 'done' });
    expect(events).not.toContainEqual(expect.objectContaining({ type: 'suspended' }));
  });

  it('keeps at most 200 events, and reports all of them', async () => {
    let told = 0;
    const answers = Array.from({ length: 90 }, () => toolCalls({ name: 'look' }));
    const { result } = await run(
      {
        defaultModel: byTurn(...answers, text('ok')),
        sharedTools: [named('look')],
        mapEvent: ({ type }) => type,
        onEvent: () => void told++,
      },
      [task()],
    );
    const { events } = (result.messages[2] as { details: { events: unknown[] } }).details;
    expect(events).toHaveLength(200);
    expect(told).toBeGreaterThan(500);
    expect(toolTexts(result.messages)).toEqual(['ok']);
  });

  it('waits for onEvent', async () => {
    const gate = deferred();
    const model = scriptedModel(['ok']);
    let ended = false;
    const running = run({ defaultModel: model, onEvent: () => gate.promise }, [task()]).then(() => {
      ended = true;
    });
    for (let i = 0; i < 20; i++) await settle();
    expect(ended).toBe(false);
    gate.resolve();
    await running;
  });

  it('does not wait for onEvent when the run is aborted', async () => {
    const abort = new AbortController();
    const middleware = [
      subagents({
        defaultModel: scriptedModel(['ok']),
        onEvent: () => {
          abort.abort();
          return new Promise(() => {});
        },
      }),
    ];
    const agent = new Agent({ model: scriptedModel([toolCalls(task())]), middleware });
    const { error, events } = await collect(agent.stream('go', { signal: abort.signal }));
    expect(error).toMatchObject({ code: 'ABORTED' });
    expect(events.filter((event) => event.type === 'custom' && event.name.endsWith('failed'))).toEqual([]);
  });

  it.each<[string, Partial<SubagentsOptions>]>([
    [
      'mapEvent that throws',
      {
        mapEvent: () => {
          throw new Error('oops');
        },
      },
    ],
    ['a payload that is not JSON', { mapEvent: () => function oops() {} }],
    [
      'onEvent that throws',
      {
        onEvent: () => {
          throw new Error('oops');
        },
      },
    ],
    ['onEvent that rejects', { onEvent: () => Promise.reject(new Error('oops')) }],
  ])('%s is reported and changes nothing', async (_, options) => {
    const { result, events } = await run({ defaultModel: scriptedModel(['ok']), ...options }, [task()]);
    expect(toolTexts(result.messages)).toEqual(['ok']);
    const failed = events.filter((event) => event.type === 'custom');
    expect(failed[0]).toMatchObject({
      name: 'subagent_event_failed',
      data: { error: expect.stringContaining('oops') },
    });
  });
});

describe('options', () => {
  const spec = { description: '', systemPrompt: '' };
  it.each<[unknown, string]>([
    [null, 'for subagents(), got null.'],
    [{ maxDept: 1 }, 'Did you mean `maxDepth`?'],
    [{ agents: [] }, 'Expected `agents` to be an object of sub-agents by type, got [].'],
    [{ agents: { a: 1 } }, 'Expected `agents.a` to be an object, got 1.'],
    [{ agents: { a: { ...spec, tool: [] } } }, 'Did you mean `tools`?'],
    [{ agents: { a: { ...spec, description: 1 } } }, 'Expected `agents.a.description` to be text, got 1.'],
    [{ agents: { a: { description: '' } } }, 'Expected `agents.a.systemPrompt` to be text, got undefined.'],
    [{ agents: { a: { ...spec, name: 1 } } }, 'Expected `agents.a.name` to be text, got 1.'],
    [{ agents: { a: { ...spec, model: {} } } }, 'Expected `agents.a.model` to be a model with provider'],
    [{ agents: { a: { ...spec, tools: [1] } } }, 'Expected `agents.a.tools` to be a list of tools, got [1].'],
    [
      { agents: { a: { ...spec, middleware: 1 } } },
      'Expected `agents.a.middleware` to be a list of middleware',
    ],
    [{ agents: { a: { ...spec, middleware: [1] } } }, 'middleware[0] is 1, not a middleware object.'],
    [
      { defaultModel: { stream() {} } },
      'Expected `defaultModel` to be a model with `provider` and `id` as text',
    ],
    [{ sharedTools: 1 }, 'Expected `sharedTools` to be a list of tools, got 1.'],
    [{ inheritMiddleware: true }, 'Expected `inheritMiddleware` to be a list of middleware, got true.'],
    [{ excludeTools: [1] }, 'Expected `excludeTools` to be a list of names of tools, got [1].'],
    [{ maxDepth: 0 }, 'Expected `maxDepth` to be an integer ≥ 1, got 0.'],
    [{ maxConcurrent: 1.5 }, 'Expected `maxConcurrent` to be an integer ≥ 1, got 1.5.'],
    [{ mapEvent: 1 }, 'Expected `mapEvent` to be a function, got 1.'],
    [{ onEvent: 1 }, 'Expected `onEvent` to be a function, got 1.'],
    [{ tracer: 1 }, 'Expected `tracer` to be a middleware, got 1.'],
    [{ tracer: null }, 'Expected `tracer` to be a middleware, got null.'],
    [{ tracer: [] }, 'Expected `tracer` to be a middleware, got [].'],
    [{ tracer: { x: 1 } }, 'Middleware `tracer`: it has no hook, tool, state or guard.'],
    [{ inheritMiddleware: [null] }, 'inheritMiddleware[0] is null, not a middleware object.'],
    [{ sharedTools: [named('subagent')] }, 'subagent'],
  ])('refuses %j', (options, message) => {
    expect(() => subagents(options as never)).toThrow(message);
  });

  it('names the models it brings', () => {
    const [a, b] = [scriptedModel([]), scriptedModel([])];
    const made = subagents({
      agents: { x: { ...spec, model: a }, y: { ...spec, model: b } },
      defaultModel: a,
    });
    expect([...made.extraLlmCalls!()]).toEqual([a, b]);
  });
});
