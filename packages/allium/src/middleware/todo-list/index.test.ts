import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  isSyntheticMessage,
  type Message,
  type ModelRequest,
  memoryStore,
  textOf,
  tool,
} from 'allium';
import { type Todo, type TodoListOptions, todoList } from 'allium/middleware/todo-list';
import { collect, hang, type Script, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const item = (content: string, status: Todo['status'] = 'pending'): Todo => ({ content, status });
const PLAN = [item('Dig', 'in_progress'), item('Plant')];
const DONE = [item('Dig', 'completed'), item('Plant', 'completed')];

const write = (todos: unknown) => ({ name: 'write_todos', args: { todos } });
const plan = toolCalls(write(PLAN));
const finish = toolCalls(write(DONE));
const work = toolCalls({ name: 'look' });

function setup(
  script: readonly Script[],
  { repeat = false, ...options }: Partial<AgentOptions> & { repeat?: boolean } = {},
) {
  const looked: string[] = [];
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({}),
    execute: (_, ctx) => `seen ${looked.push(ctx.sessionId)}`,
  });
  const model = scriptedModel(script, { repeat });
  const agent = new Agent({
    model,
    tools: [look],
    middleware: [todoList()],
    store: memoryStore(),
    ...options,
  });
  return { agent, model, looked };
}

/** An answer that never comes, and a promise that it is waited for. */
function hanging(): [Promise<void>, Script] {
  let reach = (): void => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return [
    reached,
    () => {
      reach();
      return hang();
    },
  ];
}

/** What the guards said, in a few words each. */
const said = (messages: readonly Message[]) =>
  messages.filter(isSyntheticMessage).map((message) => {
    const note = textOf(message);
    const [word] = [
      'Call no tool',
      'You answered',
      'times in one answer',
      'was not carried out',
      'not updated',
    ].filter((phrase) => note.includes(phrase));
    return word;
  });
const results = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? [[message.isError, textOf(message)]] : []));
/** The list as the model is shown it, without the line above it. */
const shown = ({ messages }: ModelRequest) => {
  const last = textOf(messages.at(-1)!);
  return last.startsWith('Your todo list as it stands') ? last.split('\n').slice(1) : [];
};

testMiddleware(() => todoList(), {
  name: 'todo-list',
  changes: ['tools', 'system-prompt'],
  scenarios: [
    {
      name: 'a plan that is carried out',
      answers: [plan, toolCalls({ name: 'kit_add', args: { a: 1, b: 2 } }), finish],
    },
    { name: 'an answer that comes too early', answers: [plan, 'Done.', finish, 'Really done.'] },
    { name: 'a model that never complies', answers: [plan, 'a', 'b', 'c', work, work, work, work] },
    { name: 'two lists at once', answers: [toolCalls(write(PLAN), write(DONE))] },
  ],
  describe,
  it,
});

describe('the list', () => {
  it('is written by the model and shown to it in every call while there is one', async () => {
    const { agent, model } = setup([plan, work, finish, text('Done.')]);
    const { status, messages } = await agent.run('go');
    expect(status).toBe('done');
    expect(model.requests.map(shown)).toEqual([
      [],
      ['[>] Dig', '[ ] Plant'],
      ['[>] Dig', '[ ] Plant'],
      ['[x] Dig', '[x] Plant'],
    ]);
    expect(results(messages)).toEqual([
      [false, 'Written: 0 of 2 done.'],
      [false, 'seen 1'],
      [false, 'Written: 2 of 2 done.'],
    ]);
    expect(messages.filter(isSyntheticMessage)).toEqual([]);
    expect(messages.find(({ role }) => role === 'tool')).toMatchObject({ details: { todos: PLAN } });
  });

  it('belongs to the session: the next run and another agent see it', async () => {
    const store = memoryStore();
    await setup([plan, finish, text('ok')], { store })
      .agent.session('s')
      .run('go');
    const other = setup([text('still there')], { store });
    await other.agent.session('s').run('and now?');
    expect(shown(other.model.requests[0]!)).toEqual(['[x] Dig', '[x] Plant']);
    await other.agent
      .session('t')
      .run('go')
      .catch(() => {});
    expect(shown(other.model.requests[1]!)).toEqual([]);
  });

  it('is reported when it changes', async () => {
    const { agent } = setup([plan, finish, text('ok')]);
    const { events } = await collect(agent.stream('go'));
    const values = events.flatMap((event) =>
      event.type === 'state_change' && event.cell === 'todo-list:todos' ? [event.value] : [],
    );
    expect(values).toEqual([PLAN, DONE]);
  });

  it('can be emptied once it is finished, and is then shown no more', async () => {
    const { agent, model } = setup([plan, finish, toolCalls(write([])), text('ok')]);
    expect((await agent.run('go')).status).toBe('done');
    expect(model.requests.map((request) => shown(request).length)).toEqual([0, 2, 2, 0]);
  });

  it('leaves out unknown fields', async () => {
    const odd = toolCalls(write([{ ...DONE[0], owner: 'me' }]));
    const { messages } = await setup([odd, text('ok')]).agent.run('go');
    expect(messages.find(({ role }) => role === 'tool')).toMatchObject({ details: { todos: [DONE[0]] } });
    expect(messages.find(({ role }) => role === 'tool')).not.toHaveProperty('details.todos.0.owner');
  });
});

describe('what the model is told', () => {
  it('stands after the system prompt, or alone', async () => {
    for (const [systemPrompt, begins] of [
      ['You dig.', /^You dig\.\n\nKeep a todo list/],
      ['', /^Keep a todo list/],
    ] as const) {
      const { agent, model } = setup([text('ok')], { systemPrompt });
      await agent.run('go');
      expect(model.requests[0]!.systemPrompt).toMatch(begins);
      expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['look', 'write_todos']);
    }
  });

  it('can be replaced or left out', async () => {
    for (const [given, prompt] of [
      ['Plan!', 'You dig.\n\nPlan!'],
      ['', 'You dig.'],
    ] as const) {
      const options: TodoListOptions = { systemPrompt: given, toolDescription: 'Plans.' };
      const { agent, model } = setup([text('ok')], {
        systemPrompt: 'You dig.',
        middleware: [todoList(options)],
      });
      await agent.run('go');
      expect(model.requests[0]!.systemPrompt).toBe(prompt);
      expect(model.requests[0]!.tools[1]).toMatchObject({ name: 'write_todos', description: 'Plans.' });
    }
  });

  it.each([
    [{ systemPrompt: 5 }, 'Expected `systemPrompt` to be text, got 5.'],
    [{ toolDescription: null }, 'Expected `toolDescription` to be text, got null.'],
    [{ prompt: 'x' }, 'Unknown option `prompt` of todoList().'],
    ['x', 'Expected `options` to be an object with systemPrompt, toolDescription, name for todoList()'],
  ])('refuses options %j', (options, message) => {
    expect(() => todoList(options as never)).toThrow(message);
  });
});

describe('lists that are not carried out', () => {
  it('gives every one of several at once an error, says why, and leaves the list alone', async () => {
    const both = toolCalls({ ...write(DONE), id: 'a' }, { name: 'look', id: 'b' }, { ...write([]), id: 'c' });
    const { agent, model, looked } = setup([plan, both, finish, text('ok')]);
    const { messages, status } = await agent.run('go');
    expect(status).toBe('done');
    expect(results(messages).slice(1, 4)).toEqual([
      [true, expect.stringContaining('more than once in one answer')],
      [false, 'seen 1'],
      [true, expect.stringContaining('more than once in one answer')],
    ]);
    expect(looked).toHaveLength(1);
    expect(said(messages)).toEqual(['times in one answer']);
    expect(shown(model.requests[2]!)).toEqual(['[>] Dig', '[ ] Plant']);
    // The note comes after the results, before the view of the list.
    expect(model.requests[2]!.messages.slice(-5).map(({ role }) => role)).toEqual([
      'tool',
      'tool',
      'tool',
      'user',
      'user',
    ]);
  });

  it.each([
    ['empty content', [item(' ', 'in_progress')], 'Item 1 has no content'],
    ['nothing in progress', [item('Dig')], 'but none is'],
    ['two in progress', [PLAN[0], PLAN[0]], 'but 2 are'],
    ['an unknown status', [{ content: 'Dig', status: 'later' }], 'status of item 1 must be'],
    ['no list', 'Dig', '`todos` must be a list'],
    ['nothing, while items are unfinished', [], 'may not be emptied while 2 of its items are unfinished'],
  ])('refuses %s with a result and a correction', async (_, todos, problem) => {
    const { agent, model } = setup([plan, toolCalls(write(todos)), finish, text('ok')]);
    const { messages } = await agent.run('go');
    expect(results(messages)[1]).toEqual([true, expect.stringContaining(problem)]);
    expect(said(messages)).toEqual(['was not carried out']);
    expect(textOf(messages.find(isSyntheticMessage)!)).toContain(problem);
    expect(shown(model.requests[2]!)).toEqual(['[>] Dig', '[ ] Plant']);
  });

  it('does not complain about a repaired call, and takes it as a written list', async () => {
    const repair = defineMiddleware({
      name: 'repair',
      resolveToolCall: (call) =>
        call.arguments === '"plan"'
          ? { toolCall: { ...call, arguments: JSON.stringify({ todos: PLAN }) } }
          : undefined,
    });
    const wrong = toolCalls({ name: 'write_todos', args: '"plan"' });
    const { agent, model } = setup(
      [
        plan,
        work,
        work,
        work,
        wrong,
        work,
        work,
        toolCalls({ name: 'write_todos', args: '"no"' }),
        finish,
        text('ok'),
      ],
      { middleware: [todoList(), repair] },
    );
    const { messages } = await agent.run('go');
    expect(results(messages)[4]).toEqual([false, 'Written: 0 of 2 done.']);
    // Two turns after it there is no reminder: the count began anew.
    const notes = messages.filter(isSyntheticMessage).map(textOf);
    expect(notes).toEqual([
      expect.stringMatching(/wrong as you wrote it\..*Unless its result says that it was written/),
      expect.stringMatching(/wrong as you wrote it\./),
    ]);
    expect(results(messages)[7]![0]).toBe(true);
    expect(shown(model.requests[5]!)).toEqual(['[>] Dig', '[ ] Plant']);
  });

  it('refuses anything but JSON', async () => {
    const { agent } = setup([toolCalls({ name: 'write_todos', args: '{"todos":' }), text('ok')]);
    const { messages } = await agent.run('go');
    expect(results(messages)[0]![0]).toBe(true);
    expect(said(messages)).toEqual(['was not carried out']);
  });
});

describe('a list that is forgotten', () => {
  it('is mentioned after 5, 10 and 15 turns, and the run goes on', async () => {
    const { agent, model, looked } = setup([plan, ...Array(16).fill(work), finish, text('ok')]);
    const { messages, status } = await agent.run('go');
    expect(status).toBe('done');
    expect(looked).toHaveLength(16);
    expect(said(messages)).toEqual(['not updated', 'not updated', 'not updated']);
    const reminded = model.requests.flatMap(({ messages: asked }, index) =>
      /not updated your todo list for (\d+) turns/.test(textOf(asked.at(-2) ?? asked[0]!)) ? [index] : [],
    );
    // The plan is answer 1, so the fifth turn after it is answer 6: request 7 brings the reminder.
    expect(reminded).toEqual([6, 11, 16]);
  });

  it('is counted from the last write, over runs', async () => {
    const [reached, waiting] = hanging();
    const { agent } = setup([
      plan,
      work,
      work,
      plan,
      work,
      work,
      work,
      waiting,
      work,
      work,
      finish,
      text('ok'),
    ]);
    const session = agent.session('s');
    const controller = new AbortController();
    const first = session.run('go', { signal: controller.signal });
    await reached;
    controller.abort();
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
    const { messages } = await session.run('go on');
    expect(said(messages)).toEqual(['not updated']);
  });

  it('is not mentioned when it is finished, or when there is none', async () => {
    for (const first of [finish, work]) {
      const { messages } = await setup([first, ...Array(11).fill(work), text('ok')]).agent.run('go');
      expect(said(messages)).toEqual([]);
    }
  });
});

describe('an answer with unfinished items', () => {
  it('is sent back, and the run ends well once the list is done', async () => {
    const { agent } = setup([plan, text('Done?'), finish, text('Done.')]);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'done', text: 'Done.', turns: 4 });
    expect(said(result.messages)).toEqual(['You answered']);
  });

  it('is sent back twice, then the model is blocked; text ends the run', async () => {
    const { agent, model } = setup([plan, text('a'), text('b'), text('c'), text('I could not.')]);
    const result = await agent.run('go');
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'stopped', by: 'todo-list' },
      text: 'I could not.',
      turns: 5,
    });
    expect(said(result.messages)).toEqual(['You answered', 'You answered', 'Call no tool']);
    expect(model.remaining).toBe(0);
  });

  it('is sent back no more often for a list that is written again without progress', async () => {
    const lists: Record<string, Parameters<typeof write>[0]> = {
      'the same': PLAN,
      'in other words': [item('Dig a hole', 'in_progress'), item('Plant a tree')],
      'in another order': [item('Dig'), item('Plant', 'in_progress')],
      longer: [...PLAN, item('Water')],
    };
    for (const list of Object.values(lists)) {
      const again = toolCalls(write(list));
      const script = [
        plan,
        text('a'),
        again,
        text('b'),
        again,
        text('c'),
        text('I could not.'),
        text('never'),
      ];
      const result = await setup(script).agent.run('go');
      expect(result).toMatchObject({ status: 'stopped', text: 'I could not.', turns: 7 });
      expect(result.stop).toEqual({
        reason: 'stopped',
        by: 'todo-list',
        message: expect.stringMatching(
          /^The model answered three times with its todo list unfinished.*Unfinished: "/,
        ),
      });
      expect(said(result.messages)).toEqual(['You answered', 'You answered', 'Call no tool']);
    }
  });

  it('starts counting again after progress', async () => {
    const again = toolCalls(write([item('Dig', 'completed'), item('Plant', 'in_progress')]));
    const { agent } = setup([plan, text('a'), text('b'), again, text('c'), text('d'), finish, text('ok')]);
    const { status, messages } = await agent.run('go');
    expect(status).toBe('done');
    expect(said(messages)).toEqual(Array(4).fill('You answered'));
  });

  it('cannot be evaded by working in between', async () => {
    const { agent } = setup([plan, text('a'), work, text('b'), work, text('c'), text('I could not.')]);
    const result = await agent.run('go');
    expect(result.status).toBe('stopped');
    expect(said(result.messages)).toEqual(['You answered', 'You answered', 'Call no tool']);
  });
});

describe('a blocked model', () => {
  const blocked = [plan, text('a'), text('b'), text('c')];

  it('that only calls tools is told three times more, then the run ends; no call is run, every one is answered', async () => {
    const calls = toolCalls({ name: 'look', id: 'x' }, { ...write(DONE), id: 'y' });
    const { agent, looked } = setup([...blocked, calls, calls, calls, calls, text('never')]);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', stop: { by: 'todo-list' }, turns: 8 });
    expect(result.stop!.message).toMatch(/told 4 times to call no more tools.*Unfinished: "Dig", "Plant"\.$/);
    expect(said(result.messages)).toEqual(['You answered', 'You answered', ...Array(4).fill('Call no tool')]);
    expect(looked).toEqual([]);
    const answered = results(result.messages).slice(1);
    expect(answered).toHaveLength(8);
    for (const [isError, why] of answered) {
      expect(isError).toBe(true);
      expect(why).toMatch(/^Not run: /);
    }
    expect(answered.at(-1)![1]).toBe('Not run: the run was stopped.');
  });

  it('may answer in text at any time', async () => {
    const result = await setup([...blocked, work, work, text('I could not.')]).agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', text: 'I could not.', turns: 7 });
  });

  it('is not bothered afterwards, until it writes a list again', async () => {
    const again = toolCalls(write(PLAN));
    const { agent } = setup([
      ...[...blocked, text('I could not.')],
      ...[...Array(6).fill(work), text('quiet')],
      ...[again, text('too early'), finish, text('ok')],
    ]);
    const session = agent.session('s');
    expect((await session.run('one')).status).toBe('stopped');
    const quiet = await session.run('two');
    expect(quiet).toMatchObject({ status: 'done', text: 'quiet' });
    expect(said(quiet.messages)).toEqual([]);
    const after = await session.run('three');
    expect(after).toMatchObject({ status: 'done', text: 'ok' });
    expect(said(after.messages)).toEqual(['You answered']);
  });

  it('is not bothered in the same run if another middleware keeps it going', async () => {
    let ends = 0;
    const more = defineMiddleware({
      name: 'more',
      onRunEnd: () => (ends++ === 0 ? [{ id: '', role: 'user', content: [] }] : undefined),
    });
    const { agent } = setup([...blocked, text('I could not.'), text('Still not.')], {
      middleware: [todoList(), more],
    });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'Still not.' });
  });

  it('is still blocked after a resume, by another agent on the same store', async () => {
    const store = memoryStore();
    // The first process hangs while the model is blocked and was told so once more.
    const [reached, waiting] = hanging();
    const first = setup([...blocked, work, waiting], { store });
    const controller = new AbortController();
    const crashed = first.agent.session('s').run('go', { signal: controller.signal });
    await reached;
    const second = setup([work, work, work, text('never')], { store });
    const result = await second.agent.session('s').resume();
    expect(result).toMatchObject({ status: 'stopped', stop: { by: 'todo-list' } });
    expect([first.looked, second.looked]).toEqual([[], []]);
    expect(second.model.remaining).toBe(1);
    expect(said(result.messages)).toEqual(['You answered', 'You answered', ...Array(4).fill('Call no tool')]);
    // Suppression is the session's: a third agent finds it.
    const third = setup([text('quiet')], { store });
    expect((await third.agent.session('s').run('again')).status).toBe('done');
    controller.abort();
    await expect(crashed).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('is not blocked in the next run when an abort ended this one', async () => {
    const [reached, waiting] = hanging();
    const { agent, looked } = setup([...blocked, waiting, work, finish, text('ok')]);
    const session = agent.session('s');
    const controller = new AbortController();
    const aborted = session.run('go', { signal: controller.signal });
    await reached;
    controller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await session.run('go on')).toMatchObject({ status: 'done', text: 'ok' });
    expect(looked).toHaveLength(1);
  });
});

it('one instance serves concurrent sessions, each with its own list and counts', async () => {
  // What a session's model does follows from its own conversation alone.
  const answer: Script = ({ messages }) => {
    const n = Number(textOf(messages[0]!));
    const answers = messages.filter(({ role }) => role === 'assistant').length;
    if (answers === 0) return toolCalls(write([item(`Job ${n}`, 'in_progress')]));
    if (n % 2 === 1) return text(`early ${n}`);
    return answers === 1 ? toolCalls(write([item(`Job ${n}`, 'completed')])) : text(`done ${n}`);
  };
  const { agent, model } = setup([answer], { repeat: true });
  const all = await Promise.all(Array.from({ length: 60 }, (_, n) => agent.session(`s${n}`).run(String(n))));
  for (const [n, { status, turns, messages }] of all.entries()) {
    expect([status, turns]).toEqual(n % 2 === 1 ? ['stopped', 5] : ['done', 3]);
    expect(said(messages)).toEqual(n % 2 === 1 ? ['You answered', 'You answered', 'Call no tool'] : []);
  }
  for (const request of model.requests)
    for (const line of shown(request)) expect(line.slice(4)).toBe(`Job ${textOf(request.messages[0]!)}`);
});

it('keeps the placeholders of a guard: the originals are for tools, not for the list', async () => {
  const spans = (text: string, what: string, replacement: string) =>
    text.includes(what)
      ? [{ start: text.indexOf(what), end: text.indexOf(what) + what.length, replacement }]
      : [];
  const tokens = defineMiddleware({
    name: 'tokens',
    guard: {
      on: ['input', 'tool-result'],
      find: (text) => spans(text, 'Ann', '<NAME_1>'),
      restore: { find: (text) => spans(text, '<NAME_1>', 'Ann') },
    },
  });
  const open = toolCalls(write([item('Write to <NAME_1>', 'in_progress')]));
  const done = toolCalls(write([item('Write to <NAME_1>', 'completed')]));
  const { agent, model } = setup([open, done, 'Done.'], { middleware: [todoList(), tokens] });
  const { events } = await collect(agent.session('s').stream('Write to Ann.'));
  expect(shown(model.requests[1]!)).toEqual(['[>] Write to <NAME_1>']);
  expect(JSON.stringify(events)).not.toContain('Ann');
});

it('two in one agent are refused', () => {
  expect(() => setup([], { middleware: [todoList(), todoList()] })).toThrow('write_todos');
});
