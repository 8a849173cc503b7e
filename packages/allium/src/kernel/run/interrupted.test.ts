/** What counts, and what does not, where a run is left, limited, stopped or broken off half-way. */
import {
  Agent,
  defineState,
  type Middleware,
  memoryStore,
  type Store,
  type Tool,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { collect, failWith, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { breakingStore, settle, storeWith } from '../../../../../test/run-checks.js';

const count = defineState({ name: 'count', scope: 'session', initial: 0 });
const increment = (n: number) => n + 1;
const make = (name: string, execute: Tool['execute']): Tool =>
  tool({ name, description: name, input: z.any(), execute }) as Tool;
const asks = make('asks', async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type);

async function states(store: Store): Promise<unknown[]> {
  return (await store.read('s', 1)).flatMap((entry) => (entry.type === 'state' ? [entry.value] : []));
}

describe('the time of a run', () => {
  const silent = () => new Promise<never>(() => {});
  const patient = make('patient', async (_, ctx) => {
    const { type } = await ctx.suspend({ title: 'Anybody?', timeoutMs: 50, onRequest: silent });
    return type;
  });
  const unanswered = make('unanswered', async (_, ctx) => {
    await ctx.suspend({ title: 'Anybody?', onRequest: silent });
    return 'answered';
  });
  const impatient = (clock: ReturnType<typeof fakeClock>): Middleware => ({
    name: 'impatient',
    wrapTool: (_, next) =>
      Promise.race([
        next(),
        new Promise<never>((_resolve, reject) => clock.setTimer(() => reject(new Error('late')), 50)),
      ]),
  });

  it.each([
    ['lapses', patient],
    ['is given up', unanswered],
  ])('goes on when a question to a handler %s', async (_, given) => {
    const clock = fakeClock();
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: given.name }), hang()]),
      tools: [given],
      clock,
      limits: { timeoutMs: 300 },
      middleware: given === unanswered ? [impatient(clock)] : [],
    });
    const running = agent.run('go');
    for (let at = 0; at < 500; at += 50) await clock.advance(50);
    expect((await running).stop).toMatchObject({ reason: 'timeout', by: 'kernel' });
  });

  it('survives a crash, except for at most a hundredth of its limit', async () => {
    const store = memoryStore();
    const start = (clock: ReturnType<typeof fakeClock>, ...script: Parameters<typeof scriptedModel>[0]) => {
      const slow = make('slow', async () => {
        await new Promise<void>((resolve) => clock.setTimer(resolve, 800));
        return 'worked';
      });
      const limits = { timeoutMs: 1000 };
      return new Agent({ store, clock, model: scriptedModel(script), tools: [slow], limits }).session('s');
    };
    // This process is never heard of again: its clock stands still.
    const dead = fakeClock();
    void start(dead, toolCalls({ name: 'slow' }), hang()).run('go');
    for (let at = 0; at < 900; at += 100) await dead.advance(100);
    const clock = fakeClock();
    const running = start(clock, hang()).resume();
    await clock.advance(190);
    expect((await store.read('s', 1)).at(-1)!.type).not.toBe('run_end');
    await clock.advance(20);
    expect((await running).stop).toMatchObject({ reason: 'timeout' });
  });
});

describe('leaving a stream', () => {
  it('that has ended does not end the run that came after it', async () => {
    const session = new Agent({ model: scriptedModel(['one', 'two']) }).session('s');
    const first = session.stream('go');
    await first.result;
    const reader = first[Symbol.asyncIterator]();
    const second = session.run('on');
    await reader.return!();
    expect((await second).text).toBe('two');
  });

  it('that was refused does not end the run that was in its way', async () => {
    const session = new Agent({ model: scriptedModel(['one']) }).session('s');
    const running = session.run('go');
    const refused = session.stream('on');
    await refused[Symbol.asyncIterator]().return!();
    await expect(refused.result).rejects.toMatchObject({ code: 'SESSION_BUSY' });
    expect((await running).text).toBe('one');
  });

  it('ends its own run', async () => {
    const stream = new Agent({ model: scriptedModel([hang()]) }).stream('go');
    const reader = stream[Symbol.asyncIterator]();
    await reader.next();
    await reader.return!();
    await expect(stream.result).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

it('a limit of tool calls leaves the calls that fit waiting for their answers', async () => {
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'asks' }, { name: 'asks' }), 'never']),
    tools: [asks],
    limits: { toolCalls: 1 },
    store: memoryStore(),
  });
  const session = agent.session('s');
  const first = await session.run('go');
  expect(first).toMatchObject({ status: 'suspended', pending: [{ title: 'May I?' }] });
  const second = await session.resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
  expect(second.stop).toMatchObject({ reason: 'max_tool_calls', by: 'kernel' });
  expect(second.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual([
    'approve',
    'Not run: The limit on tool calls is used up.',
  ]);
});

it('onRunEnd continues a run at most 100 times, including resumes', async () => {
  let turns = 0;
  const agent = new Agent({
    model: scriptedModel([() => (++turns % 40 === 0 ? toolCalls({ name: 'asks' }) : text('more?'))], {
      repeat: true,
    }),
    tools: [asks],
    limits: { turns: 1000 },
    store: memoryStore(),
    middleware: [{ name: 'more', onRunEnd: () => [userMessage('more')] }],
  });
  const session = agent.session('s');
  let result = await session.run('go');
  let resumes = 0;
  for (; result.status === 'suspended' && resumes < 10; resumes++)
    result = await session.resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
  expect(result.stop).toMatchObject({ reason: 'loop' });
  expect(resumes).toBe(2);
  expect((await session.messages()).filter((message) => textOf(message) === 'more')).toHaveLength(100);
});

it('every started call ends, even if its result cannot be written', async () => {
  const whole = memoryStore();
  let down = false;
  const store = storeWith(whole, {
    append(id, seq, entries) {
      if (down) throw new Error('disk full');
      return whole.append(id, seq, entries);
    },
  });
  const waits = make(
    'waits',
    (_, ctx) =>
      new Promise((_resolve, reject) =>
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
      ),
  );
  const call = { name: 'waits' };
  const agent = new Agent({ store, model: scriptedModel([toolCalls(call, call, call)]), tools: [waits] });
  const session = agent.session('s');
  const reading = collect(session.stream('go'));
  await settle();
  down = true;
  await session.abort();
  const { events } = await reading;
  const of = (type: string) => events.filter((event) => event.type === type);
  expect(of('tool_execution_start')).toHaveLength(3);
  expect(of('tool_execution_end')).toHaveLength(3);
});

it('messages left in the inbox beside unjudged answers are in result.queued', async () => {
  let live: (() => Promise<void>) | undefined;
  const two = make('two', async (args, ctx) => {
    const onRequest = async () => void (await live?.());
    const { n } = args as { n: number };
    const answer = await ctx.suspend({ title: `${n}?`, ...(n === 1 && live && { onRequest }) });
    return answer.type;
  });
  const agent = new Agent({
    model: scriptedModel([
      toolCalls({ name: 'two', args: { n: 0 } }, { name: 'two', args: { n: 1 } }),
      'end',
    ]),
    tools: [two],
    store: memoryStore(),
    middleware: [{ name: 'judges', acceptMessage() {} }],
  });
  const session = agent.session('s');
  const [first, second] = (await session.run('go')).pending;
  live = async () => {
    await session.answer(first!.id, { type: 'respond', text: 'words' });
    await session.steer('hear me');
  };
  const waiting = await session.resume();
  expect(waiting.status).toBe('suspended');
  expect(waiting.queued.map(textOf)).toEqual(['hear me']);
  live = undefined;
  const last = await session.resume({ answers: { [second!.id]: { type: 'approve' } } });
  expect(last.queued).toEqual([]);
  expect(last.messages.map(textOf)).toContain('hear me');
});

describe('cells', () => {
  it('of acceptMessage count with the message, once', async () => {
    const store = memoryStore();
    const seen: number[] = [];
    const counts: Middleware = {
      name: 'counts',
      state: [count],
      acceptMessage(message, ctx) {
        seen.push(ctx.state.get(count));
        if (textOf(message) === 'halt') ctx.stop();
        ctx.state.update(count, increment);
      },
    };
    const agent = new Agent({ store, model: scriptedModel(['a', 'b']), middleware: [counts] });
    const session = agent.session('s');
    await session.steer('one');
    await session.steer('halt');
    await session.steer('two');
    expect((await session.run('go')).queued.map(textOf)).toEqual(['two']);
    // The second sees what was written about the first.
    expect(seen).toEqual([0, 1, 2]);
    expect(await states(store)).toEqual([1, 2]);
    await session.run('go on');
    expect(seen).toEqual([0, 1, 2, 2, 3]);
    expect(await states(store)).toEqual([1, 2, 3, 4]);
  });

  it.each<[string, Middleware]>([
    ['onRunEnd', { onRunEnd: (ctx) => ctx.state.update(count, increment) }],
    ['shouldStopAfterTurn', { shouldStopAfterTurn: (ctx) => void ctx.state.update(count, increment) }],
  ])('of %s are kept if another such hook ends the run', async (hook, writes) => {
    for (const ends of [(ctx: { stop(): never }) => ctx.stop(), () => Promise.reject(new Error('no'))]) {
      const store = memoryStore();
      const middleware = [
        { name: 'writes', state: [count], ...writes },
        { name: 'ends', [hook]: ends },
      ];
      const agent = new Agent({ store, model: scriptedModel(['hi']), middleware });
      await agent
        .session('s')
        .run('go')
        .catch(() => {});
      expect(await states(store)).toEqual([1]);
    }
  });

  it('of a model call are dropped if afterModelResponse stops: there is no message to write them with', async () => {
    const store = memoryStore();
    const seen: number[] = [];
    const middleware: Middleware[] = [
      { name: 'writes', state: [count], afterModel: (ctx) => ctx.state.update(count, increment) },
      {
        name: 'stops',
        afterModelResponse(_response, ctx) {
          seen.push(ctx.state.get(count));
          ctx.stop();
        },
      },
    ];
    await new Agent({ store, model: scriptedModel(['hi']), middleware }).session('s').run('go');
    expect(seen).toEqual([1]);
    expect(await states(store)).toEqual([]);
  });

  it('of the judge of a message are kept, and those of the model calls it makes', async () => {
    const store = memoryStore();
    const middleware: Middleware[] = [
      {
        name: 'judges',
        state: [count],
        guard: {
          on: ['input'],
          async judge(_subject, { context }) {
            context.state.update(count, increment);
            await context.generate(scriptedModel(['fine']), { messages: '?' });
          },
        },
      },
      { name: 'counts', beforeModel: (ctx) => ctx.state.update(count, (n) => n + 10) },
    ];
    await new Agent({ store, model: scriptedModel(['hi']), middleware }).session('s').run('go');
    expect(await states(store)).toEqual([11, 21]);
  });

  describe.each([
    ['the next answer fails', false],
    ['a follow-up waits', true],
  ])('of shouldStopAfterTurn, when %s,', (_, follows) => {
    const counting: Middleware = {
      name: 'counting',
      state: [count],
      shouldStopAfterTurn: (ctx) => ctx.state.update(count, increment) as undefined,
    };
    const sessionOf = (store: Store, second: ReturnType<typeof text>) => {
      const model = scriptedModel(
        [
          ({ messages }) =>
            messages.some(({ role }) => role === 'assistant') ? second : toolCalls({ name: 'act' }),
        ],
        { repeat: true },
      );
      const act = make('act', async () => {
        if (follows) await session.followUp('And now?');
        return 'acted';
      });
      const session = new Agent({ model, tools: [act], middleware: [counting], store }).session('s');
      return session;
    };

    it.each([2, 3, 4, 5, 6, 7])('count once for each turn, if the store fails at append %s', async (at) => {
      const store = memoryStore();
      const broken = breakingStore(store, at);
      const fails = !follows && failWith(new Error('No.'));
      await sessionOf(broken.store, fails || text('done'))
        .run('go')
        .catch(() => {});
      if (broken.appends() < at) return;
      const { state, turns } = await sessionOf(store, text('done')).resume();
      expect(state.get(count)).toBe(turns);
    });
  });

  it('of resolveToolCall count once, even if the run waits in between', async () => {
    const store = memoryStore();
    const counts: Middleware = {
      name: 'counts',
      state: [count],
      resolveToolCall: (_call, ctx) => void ctx.state.update(count, increment),
      beforeToolCall(ctx) {
        ctx.state.update(count, (n) => n + 10);
        return { ask: { title: 'May it?' } };
      },
    };
    const free = make('free', () => 'done');
    const agent = new Agent({
      store,
      model: scriptedModel([toolCalls({ name: 'free' }), 'end']),
      tools: [free],
      middleware: [counts],
    });
    const session = agent.session('s');
    const { pending } = await session.run('go');
    expect(await states(store)).toEqual([10]);
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(await states(store)).toEqual([10, 11]);
  });
});

it.each([3, 4, 5, 6, 7, 8])(
  'a batch that runs in turn does so after a crash at append %s, too',
  async (at) => {
    const store = memoryStore();
    const ran: string[] = [];
    const quit: Tool['execute'] = async (_, ctx) => {
      await settle();
      ctx.stop('stopped', 'Enough.');
    };
    const tools = [
      { ...make('first', () => 'first'), sequential: true },
      { ...make('quit', quit), idempotent: true },
      make('act', () => void ran.push('act')),
    ];
    const sessionOf = (on: Store) => {
      const model = scriptedModel([toolCalls({ name: 'first' }, { name: 'quit' }, { name: 'act' })]);
      return new Agent({ model, tools, store: on }).session('s');
    };
    await sessionOf(breakingStore(store, at).store)
      .run('go')
      .catch(() => {});
    const { open } = (await store.read('s', 1)).reduce(
      (state, { type }) => ({ open: type === 'run_start' || (state.open && type !== 'run_end') }),
      { open: false },
    );
    if (open) await sessionOf(store).resume();
    expect(ran).toEqual([]);
  },
);

it('an unknown tool is answered with the tools the model was offered, after a crash too', async () => {
  const store = memoryStore();
  const own = make('own', () => 'own');
  const adding: Middleware = {
    name: 'adding',
    beforeModel(ctx) {
      ctx.tools = [...ctx.tools, own];
    },
  };
  const sessionOf = (on: Store, ...script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ model: scriptedModel(script), middleware: [adding], store: on }).session('s');
  await sessionOf(breakingStore(store, 3).store, toolCalls({ name: 'nosuch' }), text('done'))
    .run('go')
    .catch(() => {});
  const { messages } = await sessionOf(store, text('done')).resume();
  expect(textOf(messages[2]!)).toBe('There is no tool "nosuch". Available: own.');
});
