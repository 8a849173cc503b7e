import { Agent, type AgentOptions, defineMiddleware, memoryStore, textOf, tool } from 'allium';
import { deferredTools } from 'allium/middleware/deferred-tools';
import { todoList } from 'allium/middleware/todo-list';
import { type ToolSelectorOptions, toolSelector } from 'allium/middleware/tool-selector';
import {
  collect,
  failWith,
  hang,
  type Script,
  type ScriptedModel,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const make = (name: string) =>
  tool({ name, description: `Does\n${name}.`, input: z.object({}), execute: () => `${name} done` });
const NAMES = ['a', 'b', 'c', 'd', 'e'];
const call = (name: string) => toolCalls({ name });

function setup(
  picks: readonly Script[],
  script: readonly Script[],
  options: Partial<ToolSelectorOptions> = {},
  agent: Partial<AgentOptions> = {},
) {
  const picker = scriptedModel(picks);
  const model = scriptedModel(script);
  const { middleware = [], ...rest } = agent;
  const made = new Agent({
    model,
    tools: NAMES.map(make),
    middleware: [toolSelector({ model: picker, maxTools: 2, ...options }), ...(middleware as [])],
    ...rest,
  });
  return { agent: made, model, picker };
}

const shown = ({ requests }: ScriptedModel) =>
  requests.map(({ tools }) => tools.map(({ name }) => name).join(''));

/** The laws need the tools of the kit, so what is picked is among others. */
const scenarios = [
  { name: 'a tool that was picked', answers: [call('b'), text('done')], tools: ['a', 'b', 'c'].map(make) },
];
const KIT = [
  'add',
  'slow',
  'fail',
  'overload',
  'refused',
  'hang',
  'stop',
  'suspend',
  'abort',
  'throw',
  'reject',
];
const kit =
  (picks: Script, maxTools = 2) =>
  () =>
    toolSelector({
      model: scriptedModel([picks], { repeat: true }),
      maxTools,
      alwaysInclude: KIT.map((name) => `kit_${name}`),
    });
testMiddleware(kit('["b"]'), { name: 'tool-selector', neutral: kit('[]', 100), scenarios, describe, it });
testMiddleware(kit(failWith(new Error('down'))), {
  name: 'tool-selector whose model fails',
  neutral: kit('[]', 100),
  scenarios,
  describe,
  it,
});

describe('tool-selector', () => {
  it('shows what was picked, in the order of the agent, and what is always included', async () => {
    const { agent, model } = setup(['["d", "b"]'], [text('done')], { alwaysInclude: ['a', 'nothing'] });
    await agent.run('go');
    expect(shown(model)).toEqual(['abd']);
  });

  it('tells the picking model the tools and the conversation', async () => {
    const { agent, picker } = setup(['["b"]', '["b"]'], [text('Hello.'), text('done')], {
      alwaysInclude: ['a'],
    });
    const session = agent.session('s');
    await session.run('Hi');
    await session.run('Do b.');
    const [, request] = picker.requests;
    expect(request?.systemPrompt).toContain('at most 2');
    expect(request?.tools).toEqual([]);
    expect(textOf(request!.messages[0]!)).toBe(
      'Tools:\n- b: Does b.\n- c: Does c.\n- d: Does d.\n- e: Does e.\n\nConversation:\nuser: Hi\nassistant: Hello.\nuser: Do b.',
    );
  });

  it('keeps the tools of middleware, so that a todo list can be finished', async () => {
    const write = (status: string) =>
      toolCalls({ name: 'write_todos', args: { todos: [{ content: 'Do b', status }] } });
    const { agent, model, picker } = setup(
      ['["b"]'],
      [write('in_progress'), call('b'), write('completed'), text('done')],
      {},
      { middleware: [todoList()] },
    );
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'done', turns: 4 });
    expect(shown(model)).toEqual(Array(4).fill('bwrite_todos'));
    expect(textOf(picker.requests[0]!.messages[0]!)).not.toContain('write_todos');
  });

  it('lets those be picked too if told so, and does not mix up the middleware of runs', async () => {
    const brings = defineMiddleware({ name: 'brings', tools: [make('m')] });
    const { agent, model } = setup(['["a"]', '["a"]'], [text('done'), text('done'), text('done')], {
      includeMiddlewareTools: false,
    });
    await agent.run('go', { middleware: [brings] });
    await agent.run('go');
    expect(shown(model)).toEqual(['a', 'a']);
    const other = setup(['["a"]', '["a"]'], [text('done'), text('done')]);
    await other.agent.run('go', { middleware: [brings] });
    await other.agent.run('go');
    expect(shown(other.model)).toEqual(['am', 'a']);
  });

  it('asks once for a message of the user, however many turns it takes', async () => {
    const { agent, model, picker } = setup(['["a"]'], [call('a'), call('a'), call('a'), text('done')]);
    const { usage } = await agent.run('go');
    expect(picker.requests).toHaveLength(1);
    expect(shown(model)).toEqual(['a', 'a', 'a', 'a']);
    expect(usage.totalTokens).toBe(5 * 15);
    // Nothing is made anew for every turn.
    expect(model.requests[3]?.tools).toBe(model.requests[0]?.tools);
  });

  it('asks again for the next run, and when somebody steers', async () => {
    const { agent, model, picker } = setup(
      ['["a"]', '["b"]', '["c"]'],
      [call('a'), text('one'), text('two')],
    );
    const session = agent.session('s');
    const steer = defineMiddleware({
      name: 'steer',
      async afterToolCall() {
        await session.steer('Rather b.');
      },
    });
    await session.run('go', { middleware: [steer] });
    await session.run('Now c.');
    expect(shown(model)).toEqual(['a', 'b', 'c']);
    expect(textOf(picker.requests[1]!.messages[0]!)).toContain('user: Rather b.');
  });

  it('does not ask again because a middleware speaks', async () => {
    const nudge = defineMiddleware({
      name: 'nudge',
      onRunEnd: (ctx) =>
        ctx.turn < 3 ? [{ id: '', role: 'user', content: [{ type: 'text', text: 'Go on.' }] }] : [],
    });
    const { agent, picker } = setup(
      ['["a"]'],
      [text('1'), text('2'), text('3')],
      {},
      { middleware: [nudge] },
    );
    expect((await agent.run('go')).turns).toBe(3);
    expect(picker.requests).toHaveLength(1);
  });

  it('asks again when there are other tools to choose from', async () => {
    const grow = defineMiddleware({
      name: 'grow',
      transformSystemPrompt(prompt, ctx) {
        if (ctx.turn > 1) ctx.tools = [...ctx.tools, make('f')];
        return prompt;
      },
    });
    const picker = scriptedModel(['["a"]', '["f"]']);
    const model = scriptedModel([call('a'), call('f'), text('done')]);
    const agent = new Agent({
      model,
      tools: NAMES.map(make),
      middleware: [grow, toolSelector({ model: picker, maxTools: 2 })],
    });
    await agent.run('go');
    expect(shown(model)).toEqual(['a', 'f', 'f']);
    expect(picker.requests).toHaveLength(2);
  });

  it('asks nothing with no more tools than it may pick', async () => {
    const { agent, model } = setup([], [text('done')], { maxTools: 4, alwaysInclude: ['c'] });
    await agent.run('go');
    expect(shown(model)).toEqual(['abcde']);
  });

  it('does not ask again after a resume', async () => {
    const store = memoryStore();
    const ask = () =>
      defineMiddleware({ name: 'ask', suspends: true, beforeToolCall: () => ({ ask: { title: 'May I?' } }) });
    const first = setup(['["a"]'], [call('a')], {}, { store, middleware: [ask()] });
    const { pending } = await first.agent.session('s').run('go');
    const second = setup([], [text('done')], {}, { store, middleware: [ask()] });
    const result = await second.agent
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result.status).toBe('done');
    expect(shown(second.model)).toEqual(['a']);
  });

  it.each([
    ['a fence', '```json\n["a"]\n```', 'a'],
    ['words around the list', 'I pick ["b", "a"].', 'ab'],
    ['unknown names', '["x", "a", 5, "b"]', 'ab'],
    ['repeated names', '["a", "a", "b"]', 'ab'],
    ['too many names', '["e", "d", "c", "b"]', 'de'],
    ['an empty list', '[]', ''],
  ])('copes with %s', async (_, pick, expected) => {
    const { agent, model } = setup([pick], [text('done')]);
    await agent.run('go');
    expect(shown(model)).toEqual([expected]);
  });

  it.each([
    ['fails', failWith(new Error('down')), 'down'],
    ['gives no list', text('Take a.'), 'Expected a JSON list of tool names, got "Take a.".'],
    ['gives broken JSON', text('["a", ]'), 'JSON'],
    ['knows no tool', text('["x", "y"]'), 'Expected names of tools, got'],
  ])('shows all tools when the model %s, says so, and asks no second time', async (_, pick, problem) => {
    const { agent, model, picker } = setup([pick], [call('c'), text('done')]);
    const { events, result } = await collect(agent.stream('go'));
    expect(result?.status).toBe('done');
    expect(shown(model)).toEqual(['abcde', 'abcde']);
    expect(picker.requests).toHaveLength(1);
    const [event] = events.filter(({ type }) => type === 'custom');
    expect(event).toMatchObject({
      name: 'tool-selector',
      by: 'tool-selector',
      data: { error: expect.stringContaining(problem) },
    });
  });

  it('really leaves the others out', async () => {
    const { agent } = setup(['["a"]'], [call('c'), text('done')]);
    const { messages } = await agent.run('go');
    expect(textOf(messages[2]!)).toBe('There is no tool "c". Available: a.');
  });

  it('shows a tool that has to be called', async () => {
    const { agent, model } = setup(
      ['["a"]'],
      [text('done')],
      {},
      { settings: { toolChoice: { tool: 'd' } } },
    );
    await agent.run('go');
    expect(shown(model)).toEqual(['ad']);
  });

  it('shows all tools when none was picked and the model has to call one', async () => {
    const settings = { toolChoice: 'required' } as const;
    const none = setup(['[]'], [text('done')], {}, { settings });
    await none.agent.run('go');
    expect(shown(none.model)).toEqual(['abcde']);
    const always = setup(['[]'], [text('done')], { alwaysInclude: ['b'] }, { settings });
    await always.agent.run('go');
    expect(shown(always.model)).toEqual(['b']);
  });

  it('finds what the user said behind many answers', async () => {
    const grow = defineMiddleware({
      name: 'grow',
      transformSystemPrompt(prompt, ctx) {
        if (ctx.turn > 6) ctx.tools = [...ctx.tools, make('f')];
        return prompt;
      },
    });
    const picker = scriptedModel(['["a"]', '["f"]']);
    const steps = Array.from({ length: 6 }, (_, i) => toolCalls({ name: 'a', text: `Step ${i}.` }));
    const model = scriptedModel([...steps, text('done')]);
    await new Agent({
      model,
      tools: NAMES.map(make),
      middleware: [grow, toolSelector({ model: picker, maxTools: 2 })],
    }).run('Do it.');
    expect(textOf(picker.requests[1]!.messages[0]!).split('Conversation:\n')[1]).toBe(
      'user: Do it.\nassistant: Step 3.\nassistant: Step 4.\nassistant: Step 5.',
    );
  });

  it.each(['dispatch', 'inject'] as const)(
    'stands behind deferredTools (%s), whose loaded tools can be picked',
    async (strategy) => {
      const group = {
        id: 'more',
        title: 'More',
        description: 'More tools.',
        toolNames: ['x', 'y', 'z'],
        load: () => ['x', 'y', 'z'].map(make),
      };
      const picker = scriptedModel(['["a"]', '["y"]']);
      const model = scriptedModel([
        toolCalls({ name: 'load_tools', args: { groups: ['more'] } }),
        strategy === 'inject'
          ? call('y')
          : toolCalls({ name: 'deferred_tool_call', args: { tool_name: 'y' } }),
        text('done'),
      ]);
      const agent = new Agent({
        model,
        tools: NAMES.map(make),
        middleware: [
          deferredTools({ groups: [group], strategy }),
          toolSelector({ model: picker, maxTools: 1 }),
        ],
      });
      const { messages } = await agent.run('go');
      expect(textOf(messages[4]!)).toBe('y done');
      const own = shown(model).map((names) =>
        names.replace('load_tools', '').replace('deferred_tool_call', ''),
      );
      expect(own).toEqual(strategy === 'inject' ? ['a', 'y', 'y'] : ['a', 'a', 'a']);
    },
  );

  it('stops picking when the run is aborted', async () => {
    const { agent, picker, model } = setup([hang('[')], []);
    const abort = new AbortController();
    const run = agent.run('go', { signal: abort.signal }).catch((error) => error);
    while (picker.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(picker.aborted).toBe(1);
    expect(model.requests).toHaveLength(0);
  });

  it('ends with the budget of the run, and does not take that for a failure', async () => {
    const { agent, model } = setup(['["a"]'], [text('done')], {}, { limits: { tokens: 1 } });
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens' } });
    expect(model.requests).toHaveLength(0);
  });

  it('keeps concurrent runs apart', async () => {
    const picker = scriptedModel([({ messages }) => `["${textOf(messages[0]!).at(-1)}"]`], { repeat: true });
    const seen = new Map<string, string>();
    const model = scriptedModel(
      [
        ({ messages, tools }) => {
          seen.set(textOf(messages[0]!), tools.map(({ name }) => name).join(''));
          return text('done');
        },
      ],
      { repeat: true },
    );
    const agent = new Agent({
      model,
      tools: NAMES.map(make),
      middleware: [toolSelector({ model: picker, maxTools: 1 })],
    });
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => agent.session(`s${i}`).run(`${i} needs ${NAMES[i % 5]}`)),
    );
    expect([...seen].every(([said, tools]) => said.endsWith(tools))).toBe(true);
    expect(seen.size).toBe(50);
  });

  it('lists the model it calls', () => {
    const model = scriptedModel([]);
    expect([...toolSelector({ model }).extraLlmCalls!()]).toEqual([model]);
  });

  it.each([
    [{}, 'Expected `model` to be a model with provider, id and stream(), got undefined.'],
    [{ model: scriptedModel([]), maxTools: 0 }, 'Expected `maxTools` to be an integer ≥ 1, got 0.'],
    [
      { model: scriptedModel([]), alwaysInclude: 'a' },
      'Expected `alwaysInclude` to be a list of tool names, got "a".',
    ],
    [
      { model: scriptedModel([]), alwaysInclude: [5] },
      'Expected `alwaysInclude` to be a list of tool names, got [5].',
    ],
    [
      { model: scriptedModel([]), includeMiddlewareTools: 'no' },
      'Expected `includeMiddlewareTools` to be true or false, got "no".',
    ],
    [{ model: scriptedModel([]), max: 5 }, 'Unknown option `max` of toolSelector().'],
  ])('refuses options %#', (options, message) => {
    expect(() => toolSelector(options as never)).toThrow(message);
  });
});
