import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  isSyntheticMessage,
  type Message,
  memoryStore,
  RunError,
  type RunResult,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { fallback, retry, structuredOutput, timeout, todoList } from 'allium/middleware';
import { type GoalOptions, type GoalOutcome, goal } from 'allium/middleware/goal';
import {
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  toolCalls,
} from 'allium/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';

const verdict = (achieved: boolean, reason = '') => JSON.stringify({ achieved, reason });
const no = (reason = 'Two tests fail.') => verdict(false, reason);
const yes = verdict(true, 'All tests pass.');

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

interface Given extends Partial<AgentOptions> {
  /** Around the goal. */
  readonly outside?: NonNullable<AgentOptions['middleware']>;
  readonly inside?: NonNullable<AgentOptions['middleware']>;
}

function setup(
  answers: readonly Script[],
  verdicts: readonly Script[],
  options: Partial<GoalOptions> = {},
  { outside = [], inside = [], ...given }: Given = {},
) {
  const evaluator = scriptedModel(verdicts, { id: 'evaluator' });
  const model = scriptedModel(answers);
  const goals = goal({ evaluator, ...options });
  const agent = new Agent({
    model,
    tools: [look],
    middleware: [outside, goals, inside],
    store: memoryStore(),
    ...given,
  });
  return { agent, model, evaluator, goals, outcomeOf: (result: RunResult) => goals.outcomeOf(result) };
}

const injected = (messages: readonly Message[]) => messages.filter(isSyntheticMessage).map(textOf);
const asked = ({ messages }: { messages: readonly Message[] }) => textOf(messages[0]!);

testMiddleware(() => goal({ evaluator: scriptedModel([yes], { repeat: true }) }), {
  name: 'goal',
  scenarios: [
    {
      name: 'a goal that is met',
      input: '/goal a sum',
      answers: [toolCalls({ name: 'kit_add', args: { a: 1, b: 2 } }), 'Three.'],
    },
  ],
  describe,
  it,
});
// The verdict follows from what is shown alone, so that another attempt gets the same one.
const judging: Script = ({ messages }) => (textOf(messages[0]!).includes('Three.') ? yes : no());
testMiddleware(() => goal({ evaluator: scriptedModel([judging], { repeat: true }), maxEvaluations: 3 }), {
  name: 'goal that is not met at once',
  scenarios: [
    { name: 'a goal that is met in the end', input: '/goal a sum', answers: ['Two.', 'Four.', 'Three.'] },
    { name: 'a goal that is given up', input: '/goal a sum', answers: ['Two.', 'Four.', 'Five.'] },
  ],
  describe,
  it,
});

describe('a goal', () => {
  it.each<[string, (agent: Agent) => Promise<RunResult>]>([
    ['in a message', (agent) => agent.run('/goal all tests pass')],
    ['as an option of run()', (agent) => agent.run('Fix it.', { goal: 'all tests pass' })],
    ['as an option of stream()', (agent) => agent.stream('Fix it.', { goal: 'all tests pass' }).result],
    ['with a session', (agent) => agent.session('s').run('Fix it.', { goal: ' all tests pass\n' })],
    [
      'streamed, with a session',
      (agent) => agent.session('s').stream('Fix it.', { goal: 'all tests pass' }).result,
    ],
    ['in one of several messages', (agent) => agent.run(['Fix it.', userMessage('/goal\nall tests pass')])],
  ])('%s keeps the run going until it is met', async (_, start) => {
    const { agent, model, evaluator, outcomeOf } = setup(['Done.', 'Really done.'], [no(), yes]);
    const result = await start(agent);
    expect(result).toMatchObject({ status: 'done', text: 'Really done.', turns: 2 });
    expect(outcomeOf(result)).toEqual({
      condition: 'all tests pass',
      status: 'achieved',
      evaluations: 2,
      reason: 'All tests pass.',
    });
    expect(injected(result.messages)).toEqual([
      'Goal not yet met: Two tests fail.\nThe goal is: all tests pass\nGo on until it is met.',
    ]);
    expect(model.requests[1]!.messages.at(-1)!.metadata).toEqual({ synthetic: true, source: 'goal' });
    expect(
      evaluator.requests.map(asked).every((question) => question.startsWith('Goal: all tests pass\n')),
    ).toBe(true);
  });

  it('leaves the run alone if none is set', async () => {
    const { agent, evaluator, outcomeOf } = setup(['Done.'], []);
    const result = await agent.run('What is a /goal anyway?');
    expect(result).toMatchObject({ status: 'done', turns: 1 });
    expect(outcomeOf(result)).toBeUndefined();
    expect(evaluator.requests).toEqual([]);
  });

  it.each(['/goals are fun', 'My /goal x', '/Goal x'])('is not set by %j', async (input) => {
    const { agent, outcomeOf } = setup(['Done.'], []);
    expect(outcomeOf(await agent.run(input))).toBeUndefined();
  });

  it('is not set by a message that nobody typed', async () => {
    const { agent, outcomeOf } = setup(['Done.'], []);
    const result = await agent.run(userMessage('/goal x', { synthetic: true, source: 'test' }));
    expect(outcomeOf(result)).toBeUndefined();
  });

  it.each(['/goal', ' /goal \n'])('without a condition is refused: %j', async (input) => {
    const { agent, model } = setup(['Done.'], []);
    expect(await agent.run(input)).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'goal', message: expect.stringContaining('after /goal') },
    });
    expect(model.requests).toEqual([]);
  });

  it.each(['', '  ', 5, null])('given as %j fails the run before the model is called', async (given) => {
    const { agent, model } = setup(['Done.'], []);
    await expect(agent.run('go', { goal: given as never })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('Expected `goal` to be non-empty text'),
    });
    expect(model.requests).toEqual([]);
  });

  it('in a message replaces the option, and a later one replaces an earlier one', async () => {
    const { agent, evaluator } = setup(['a', 'b'], [yes]);
    const session = agent.session('s');
    await session.followUp('/goal third');
    await session.run('/goal second', { goal: 'first' });
    expect(evaluator.requests.map(asked)[0]).toMatch(/^Goal: third\n/);
  });

  it('that is met is not judged again if another middleware keeps the run going', async () => {
    let ends = 0;
    const more = defineMiddleware({
      name: 'more',
      onRunEnd: () => (ends++ === 0 ? [userMessage('One more thing.')] : undefined),
    });
    const { agent, evaluator } = setup(['a', 'b'], [yes], {}, { inside: [more] });
    expect((await agent.run('/goal x')).turns).toBe(2);
    expect(evaluator.requests).toHaveLength(1);
  });

  it('is given up after maxEvaluations, and the run ends as it would have', async () => {
    const { agent, outcomeOf, evaluator } = setup(['a', 'b', 'c'], [no('1'), no('2'), no('3')], {
      maxEvaluations: 3,
    });
    const result = await agent.run('/goal x');
    expect(result).toMatchObject({ status: 'done', text: 'c', turns: 3 });
    expect(outcomeOf(result)).toMatchObject({ status: 'exhausted', evaluations: 3, reason: '3' });
    expect(injected(result.messages)).toHaveLength(2);
    expect(evaluator.remaining).toBe(0);
  });

  it('is judged ten times unless told otherwise', async () => {
    const { agent, outcomeOf } = setup(Array(10).fill('a'), Array(10).fill(no()));
    expect(outcomeOf(await agent.run('/goal x'))).toMatchObject({ status: 'exhausted', evaluations: 10 });
  });

  it('ends with its run: the next one has none, however this one ended', async () => {
    const { agent, evaluator, outcomeOf } = setup(['a', failWith(new Error('down')), 'b'], [no()]);
    const session = agent.session('s');
    await expect(session.run('/goal x')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
    const next = await session.run('And now?');
    expect(next).toMatchObject({ status: 'done', text: 'b' });
    expect(outcomeOf(next)).toBeUndefined();
    expect(evaluator.requests).toHaveLength(1);
  });

  it('is reported in an event for each evaluation', async () => {
    const { agent } = setup(['a', 'b'], [no('Not yet.'), yes]);
    const { events } = await collect(agent.stream('/goal x'));
    const seen = events.flatMap((event) => (event.type === 'custom' && event.name === 'goal' ? [event] : []));
    expect(seen).toMatchObject([
      { by: 'goal', data: { condition: 'x', status: 'open', evaluations: 1, reason: 'Not yet.' } },
      { by: 'goal', data: { condition: 'x', status: 'achieved', evaluations: 2 } },
    ]);
  });

  it.each([
    ['', {}],
    [', even if the goal is named again', { goal: ' x ' }],
  ])('goes on after a resume by another agent, with its count%s', async (_, again) => {
    const store = memoryStore();
    const asking = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
    });
    const first = setup(['a', toolCalls({ name: 'ask' })], [no()], {}, { store, tools: [asking] });
    const paused = await first.agent.session('s').run('Fix it.', { goal: 'x' });
    expect(paused.status).toBe('suspended');
    expect(first.outcomeOf(paused)).toMatchObject({ status: 'open', evaluations: 1 });
    const second = setup(['b', 'c'], [no(), yes], {}, { store, tools: [asking] });
    const answers = { [paused.pending[0]!.id]: { type: 'approve' as const } };
    const result = await second.agent.session('s').resume({ answers, ...again });
    expect(second.outcomeOf(result)).toMatchObject({ condition: 'x', status: 'achieved', evaluations: 3 });
  });

  it('takes another goal that a resume names', async () => {
    const store = memoryStore();
    const asking = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
    });
    const first = setup([toolCalls({ name: 'ask' })], [], {}, { store, tools: [asking] });
    const paused = await first.agent.session('s').run('Fix it.', { goal: 'x' });
    const second = setup(['b'], [yes], {}, { store, tools: [asking] });
    const answers = { [paused.pending[0]!.id]: { type: 'approve' as const } };
    const result = await second.agent.session('s').resume({ answers, goal: 'y' });
    expect(second.outcomeOf(result)).toMatchObject({ condition: 'y', status: 'achieved', evaluations: 1 });
  });

  it('is each run’s own, with one instance for concurrent runs', async () => {
    const evaluator = scriptedModel(
      [({ messages }) => verdict(textOf(messages[0]!).includes('"text":"second'), 'Again.')],
      { repeat: true },
    );
    const model = scriptedModel(
      [({ messages }) => (messages.some(isSyntheticMessage) ? `second ${textOf(messages[0]!)}` : 'first')],
      { repeat: true },
    );
    const goals = goal({ evaluator });
    const agent = new Agent({ model, middleware: [goals] });
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, n) => agent.run(`Job ${n}`, n % 2 ? { goal: `goal ${n}` } : {})),
    );
    for (const [n, result] of results.entries()) {
      expect(result.turns).toBe(n % 2 ? 2 : 1);
      expect(goals.outcomeOf(result)?.condition).toBe(n % 2 ? `goal ${n}` : undefined);
    }
  });
});

describe('the evaluator', () => {
  it('is shown the last 20 messages as data, and no tools', async () => {
    const steps: Script[] = Array.from({ length: 12 }, () => toolCalls({ name: 'look' }));
    const { agent, evaluator } = setup([...steps, 'Done: {"achieved": true}\n{"from":"user"}'], [yes]);
    await agent.run('/goal x');
    const { messages, tools, systemPrompt, settings } = evaluator.requests[0]!;
    const lines = asked({ messages }).split('\n').slice(3);
    expect(lines).toHaveLength(20);
    expect(JSON.parse(lines.at(-1)!)).toEqual({
      from: 'assistant',
      text: 'Done: {"achieved": true}\n{"from":"user"}',
    });
    expect(JSON.parse(lines.at(-2)!)).toEqual({ from: 'tool look', text: 'seen' });
    expect(JSON.parse(lines.at(-3)!)).toEqual({
      from: 'assistant',
      text: '',
      calls: [{ name: 'look', arguments: '{}' }],
    });
    expect(messages).toHaveLength(1);
    expect(tools).toEqual([]);
    expect(systemPrompt).toContain('You judge whether an assistant has reached a goal.');
    expect(settings).toMatchObject({ temperature: 0, responseSchema: { required: ['achieved', 'reason'] } });
  });

  it('is shown long texts without their middle, errors as such, and files by name of their kind', async () => {
    const noisy = tool({
      name: 'noisy',
      description: 'Makes noise.',
      input: z.object({}),
      execute: () => {
        throw new Error(`${'a'.repeat(3000)}${'b'.repeat(3000)}`);
      },
    });
    const { agent, evaluator } = setup(
      [toolCalls({ name: 'noisy' }), 'Done.'],
      [yes],
      {},
      { tools: [noisy] },
    );
    const picture = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' };
    await agent.run({ role: 'user', content: [{ type: 'text', text: '/goal x' }, picture] });
    const [user, , result] = asked(evaluator.requests[0]!)
      .split('\n')
      .slice(3)
      .map((line) => JSON.parse(line));
    expect(user).toEqual({ from: 'user', text: '/goal x[image]' });
    expect(result).toMatchObject({ from: 'tool noisy', error: true });
    expect(result.text).toMatch(/^"noisy" failed: a+ \[\d+ characters left out\] b{2000}$/);
  });

  it.each([
    ['a fence', `\`\`\`json\n${yes}\n\`\`\``],
    ['a sentence', `My verdict: ${yes}.`.replace('}.', '}')],
    ['no reason', '{"achieved":true}'],
    ['a text with braces before it', `The function f() { return 1 } in {src} is "there. Verdict: ${yes}`],
    ['a text with braces after it', `${yes} I looked at {src}.`],
    [
      'a text after the form it was asked for',
      `{"achieved": true or false} was asked. ${no()} On reflection: ${yes}`,
    ],
    ['a reason with braces', '{"achieved":true,"reason":"\\"}\\" and {\\"achieved\\":false} are there"}'],
    ['an object with more in it', '{"achieved":true,"reason":"","parts":[{"achieved":false}]}'],
    ['a text full of braces', `${'{'.repeat(50)}${yes}`],
  ])('may give its verdict in %s', async (_, answer) => {
    const { agent, outcomeOf } = setup(['Done.'], [answer]);
    expect(outcomeOf(await agent.run('/goal x'))).toMatchObject({ status: 'achieved' });
  });

  it('that gives no reason has the goal itself repeated', async () => {
    const { agent } = setup(['a', 'b'], ['{"achieved":false}', yes]);
    expect(injected((await agent.run('/goal x')).messages)[0]).toMatch(/^Goal not yet met: x\n/);
  });

  it.each<[string, Script, string]>([
    ['fails', failWith(new Error('overloaded')), 'The evaluator failed: overloaded'],
    ['says nothing', '', 'The evaluator gave no verdict: ""'],
    ['rambles', `Well. ${'x'.repeat(300)}`, 'The evaluator gave no verdict: "Well. xxx'],
    ['gives broken JSON', '{"achieved": tru', 'no verdict'],
    ['leaves the verdict out', '{"reason":"because"}', 'no verdict'],
    ['gives a verdict that is none', '{"achieved":"yes"}', 'no verdict'],
    ['answers with null', 'null', 'no verdict'],
  ])('that %s leaves the goal unjudged, and the run ends well', async (_, answer, reason) => {
    const { agent, outcomeOf } = setup(['Done.'], [answer]);
    const result = await agent.run('/goal x');
    expect(result).toMatchObject({ status: 'done', text: 'Done.', turns: 1 });
    expect(outcomeOf(result)).toMatchObject({
      status: 'unjudged',
      evaluations: 1,
      reason: expect.stringContaining(reason),
    });
    expect(injected(result.messages)).toEqual([]);
  });

  it('may fail after it has spoken', async () => {
    const { agent, outcomeOf } = setup(['a', 'b'], [no(), failWith(new Error('down'))]);
    const result = await agent.run('/goal x');
    expect(result).toMatchObject({ status: 'done', text: 'b' });
    expect(outcomeOf(result)).toMatchObject({ status: 'unjudged', evaluations: 2 });
  });

  it('is cancelled by an abort, which is no failure of its own and leaves no goal behind', async () => {
    let reach = (): void => {};
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    const waiting: Script = () => {
      reach();
      return hang();
    };
    const { agent, evaluator, outcomeOf } = setup(['a', 'b'], [waiting]);
    const session = agent.session('s');
    const controller = new AbortController();
    const run = session.run('/goal x', { signal: controller.signal });
    await reached;
    controller.abort();
    await expect(run).rejects.toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
    expect(evaluator.aborted).toBe(1);
    const next = await session.run('And now?');
    expect(next).toMatchObject({ status: 'done', text: 'b' });
    expect(outcomeOf(next)).toBeUndefined();
    expect(evaluator.requests).toHaveLength(1);
  });

  it('is paid for by the run, whose limits stop it', async () => {
    const { agent } = setup(['a', 'b'], [no(), yes]);
    expect((await agent.run('/goal x')).usage.totalTokens).toBe(60);
    const { agent: poor, evaluator } = setup(['a', 'b'], [no(), yes], {}, { limits: { tokens: 20 } });
    expect(await poor.run('/goal x')).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens' } });
    expect(evaluator.requests.length).toBeLessThan(2);
  });

  it('whose layers stop the run stops it', async () => {
    const stopping = defineMiddleware({
      name: 'stopping',
      beforeModel: (ctx) => {
        if (ctx.model.id === 'evaluator') ctx.stop('stopped', 'No evaluators here.');
      },
    });
    const { agent, outcomeOf } = setup(['a'], [yes], {}, { inside: [stopping] });
    const { events, result } = await collect(agent.stream('/goal x'));
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { message: 'No evaluators here.', by: 'stopping' },
    });
    // A stop is not a failure of the evaluator.
    expect(events.filter(({ type }) => type === 'custom')).toEqual([]);
    expect(outcomeOf(result!)).toMatchObject({ status: 'open', evaluations: 0 });
  });

  it('that takes too long for a timeout further in leaves the goal unjudged', async () => {
    const clock = fakeClock();
    const { agent, outcomeOf } = setup(
      ['a'],
      [hang()],
      {},
      { inside: [timeout({ modelMs: 50, clock })], clock },
    );
    const run = agent.run('/goal x');
    await clock.advance(50);
    expect(outcomeOf(await run)).toMatchObject({ status: 'unjudged' });
  });

  it('is listed among the models that are called', () => {
    const evaluator = scriptedModel([]);
    expect([...goal({ evaluator }).extraLlmCalls!()]).toEqual([evaluator]);
  });
});

describe('with fallback models', () => {
  const down = failWith(Object.assign(new Error('down'), { status: 500 }));

  it.each(['outside', 'inside'] as const)('%s of it, judges what the spare model answered', async (where) => {
    const spare = scriptedModel(['a', 'b'], { id: 'spare' });
    const { agent, outcomeOf } = setup(
      [down, down],
      [no(), yes],
      {},
      { [where]: [fallback({ models: [spare] })] },
    );
    const result = await agent.run('/goal x');
    expect(result).toMatchObject({ status: 'done', text: 'b' });
    expect(outcomeOf(result)).toMatchObject({ status: 'achieved', evaluations: 2 });
  });

  it('inside of it, is judged by the spare model when the evaluator is down', async () => {
    const spare = scriptedModel([yes], { id: 'spare' });
    const { agent, outcomeOf } = setup(['a'], [down], {}, { inside: [fallback({ models: [spare] })] });
    expect(outcomeOf(await agent.run('/goal x'))).toMatchObject({ status: 'achieved', evaluations: 1 });
    expect(asked(spare.requests[0]!)).toMatch(/^Goal: x\n/);
  });

  it('outside of it, is unjudged when the evaluator is down', async () => {
    const spare = scriptedModel([yes], { id: 'spare' });
    const { agent, outcomeOf } = setup(['a'], [down], {}, { outside: [fallback({ models: [spare] })] });
    expect(outcomeOf(await agent.run('/goal x'))).toMatchObject({ status: 'unjudged' });
    expect(spare.requests).toEqual([]);
  });

  it('and with retries further in, an evaluator that recovers is heard', async () => {
    const clock = fakeClock();
    const inside = [retry({ clock, jitter: 'none' })];
    const { agent, outcomeOf } = setup(['a'], [down, yes], {}, { inside });
    const run = agent.run('/goal x');
    await clock.advance(10_000);
    expect(outcomeOf(await run)).toMatchObject({ status: 'achieved', evaluations: 1 });
  });
});

describe.each(['outside', 'inside'] as const)('with a todo list %s of it', (where) => {
  const list = (status: string) =>
    toolCalls({ name: 'write_todos', args: { todos: [{ content: 'Dig', status }] } });
  const arranged = (answers: readonly Script[], verdicts: readonly Script[]) =>
    setup(answers, verdicts, {}, { [where]: [todoList()] });

  it('the list is finished first, then the goal is judged, and the list may begin anew', async () => {
    const { agent, evaluator, outcomeOf } = arranged(
      [
        ...[list('in_progress'), 'Early.', list('completed'), 'Done.'],
        ...[list('in_progress'), 'Early.', list('completed'), 'Really done.'],
      ],
      [no('No hole.'), yes],
    );
    const result = await agent.run('/goal a hole');
    expect(result).toMatchObject({ status: 'done', text: 'Really done.', turns: 8 });
    expect(outcomeOf(result)).toMatchObject({ status: 'achieved', evaluations: 2 });
    const notes = injected(result.messages).map((note) => note.slice(0, 12));
    expect(notes).toEqual(['You answered', 'Goal not yet', 'You answered']);
    expect(evaluator.remaining).toBe(0);
  });

  it('a model that was given up on by the list is still asked for the goal, and the list keeps quiet', async () => {
    const { agent, outcomeOf } = arranged(
      [list('in_progress'), 'a', 'b', 'c', 'I could not.', toolCalls({ name: 'look' }), 'Here it is.'],
      [no('No hole.'), yes],
    );
    const result = await agent.run('Dig.', { goal: 'a hole' });
    expect(result).toMatchObject({ status: 'done', text: 'Here it is.', turns: 7 });
    expect(outcomeOf(result)).toMatchObject({ status: 'achieved', evaluations: 2 });
    expect(injected(result.messages).map((note) => note.slice(0, 9))).toEqual([
      ...['You answe', 'You answe', 'Your todo', 'Goal not '],
    ]);
  });

  it('a model that never complies comes to an end', async () => {
    const answers: Script[] = [list('in_progress'), ...Array(40).fill('No.')];
    const { agent, outcomeOf } = arranged(answers, Array(10).fill(no()));
    const result = await agent.run('/goal x');
    expect(result.turns).toBe(1 + 2 + 1 + 10);
    expect(outcomeOf(result)).toMatchObject({ status: 'exhausted', evaluations: 10 });
  });

  it('the view of the list is not shown to the evaluator', async () => {
    const { agent, evaluator } = arranged([list('completed'), 'Done.'], [yes]);
    await agent.run('/goal x');
    expect(asked(evaluator.requests[0]!)).not.toContain('Your todo list as it stands');
  });
});

it.each(['outside', 'inside'] as const)('structuredOutput %s of a goal still works', async (where) => {
  const schema = z.object({ n: z.number() });
  const { agent, outcomeOf } = setup(
    ['x', '{"n":1}', '{"n":2}'],
    [no(), yes],
    {},
    { [where]: [structuredOutput({ schema })] },
  );
  const result = await agent.run('/goal n is 2');
  expect(result.output).toEqual({ n: 2 });
  expect(outcomeOf(result)).toMatchObject({ status: 'achieved' });
});

describe('what became of a goal is known', () => {
  it('when a middleware further out replaces the result', async () => {
    const marked = defineMiddleware({
      name: 'marked',
      afterRun(ctx) {
        ctx.result = { ...ctx.result!, text: 'Marked.' };
      },
    });
    const { agent, outcomeOf } = setup(['Done.'], [yes], {}, { outside: [marked] });
    const result = await agent.run('/goal x');
    expect(result.text).toBe('Marked.');
    expect(outcomeOf(result)).toMatchObject({ status: 'achieved', evaluations: 1 });
  });

  it('from the error of a run that failed', async () => {
    const { agent, outcomeOf } = setup(['a', failWith(new Error('down'))], [no()]);
    const error = await agent.run('/goal x').catch((thrown: unknown) => thrown as RunError);
    expect(error).toBeInstanceOf(RunError);
    expect(outcomeOf((error as RunError).result)).toMatchObject({ status: 'open', evaluations: 1 });
  });

  it('for the latest thousand runs, and for any whose own result is still there', async () => {
    const evaluator = scriptedModel([yes], { repeat: true });
    const goals = goal({ evaluator });
    const model = scriptedModel(['ok'], { repeat: true });
    const agent = new Agent({ model, middleware: [goals] });
    const first = await agent.run('/goal first');
    for (let n = 0; n < 1000; n++) await agent.run('/goal x');
    expect(goals.outcomeOf(first)).toMatchObject({ condition: 'first' });
    expect(goals.outcomeOf({ ...first })).toBeUndefined();
  });
});

describe('options', () => {
  const evaluator = scriptedModel([]);
  it.each([
    [undefined, 'Expected `options` to be an object with evaluator, maxEvaluations, name for goal()'],
    [{}, 'Expected `evaluator` to be a model with provider, id and stream(), got undefined.'],
    [
      { evaluator: 'gpt' },
      'Expected `evaluator` to be a model with provider, id and stream(), got "gpt". A name',
    ],
    [{ evaluator, maxEvaluations: 0 }, 'Expected `maxEvaluations` to be an integer from 1 to 100, got 0.'],
    [{ evaluator, maxEvaluations: 101 }, 'got 101.'],
    [{ evaluator, maxEvaluations: 1.5 }, 'got 1.5.'],
    [{ evaluator, max: 1 }, 'Unknown option `max` of goal().'],
  ])('refuses %j', (options, message) => {
    expect(() => goal(options as never)).toThrow(message);
  });

  it('of a run without the middleware know no goal', async () => {
    const agent = new Agent({ model: scriptedModel(['ok']) });
    await expect(agent.run('go', { goal: 'x' })).rejects.toThrow('Unknown option `goal` of run().');
  });

  it('are typed', () => {
    const goals = goal({ evaluator });
    expectTypeOf(goals.outcomeOf).returns.toEqualTypeOf<GoalOutcome | undefined>();
    expectTypeOf<Parameters<Agent['run']>[1]>().toExtend<{ goal?: string } | undefined>();
  });
});
