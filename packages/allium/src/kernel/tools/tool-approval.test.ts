/** Questions to people, what their answers do, and that nobody is asked or judged twice. */
import {
  Agent,
  type AgentOptions,
  type Decision,
  defineState,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Request,
  type Store,
  type Tool,
  type ToolContext,
  textOf,
  tool,
} from 'allium';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  breakingStore,
  deferred,
  settle,
  storeWith,
  transcript,
  type Watched,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
const results = ({ result }: Watched) => result.messages.filter(({ role }) => role === 'tool').map(textOf);
const asks = (request: Request = { title: 'May it?' }): Middleware => ({
  name: 'asks',
  beforeToolCall: (ctx) => (ctx.toolCall.name === 'free' ? undefined : { ask: request }),
});

/** One store, any number of agents that take turns with it, and what ran. */
function world(
  middleware: readonly Middleware[],
  options: { tools?: readonly Tool[]; clock?: ReturnType<typeof fakeClock>; store?: Store } = {},
) {
  const ran: string[] = [];
  const store = options.store ?? memoryStore();
  const make = (name: string): Tool =>
    tool({
      name,
      description: '',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => {
        ran.push(`${name} ${n}`);
        return `${name} ${n}`;
      },
    });
  const tools = options.tools ?? [make('a'), make('free')];
  const session = (...script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({
      model: scriptedModel(script),
      tools,
      middleware,
      store,
      ...(options.clock && { clock: options.clock }),
    }).session('s');
  return {
    ran,
    store,
    session,
    start: (...names: string[]) => watched(session(calls(...names)), 'go'),
    resume: (answers: Record<string, Decision>) => watch(session('end').resumeStream({ answers })),
  };
}
/** The process dies between what a tool did and its result. */
const withoutResults = (store: Store): Store =>
  storeWith(store, {
    append(id, seq, entries) {
      if (entries.some(({ type }) => type === 'tool_finished')) throw new Error('gone');
      return store.append(id, seq, entries);
    },
  });
const idOf = (pending: readonly PendingRequest[], callId: string) =>
  pending.find((request) => request.callId === callId)!.id;

describe('an ask', () => {
  it('suspends the run; nothing of the batch runs', async () => {
    const { start, ran } = world([asks()]);
    const { result, types } = await start('free', 'a');
    expect(result).toMatchObject({ status: 'suspended', stop: { reason: 'suspended' }, turns: 1 });
    expect(result.pending).toMatchObject([
      { kind: 'ask', title: 'May it?', toolName: 'a', arguments: '{"n":1}', callId: 'c1', by: 'asks' },
    ]);
    expect(ran).toEqual([]);
    expect(types.slice(-3)).toEqual(['turn_end', 'suspended', 'agent_end']);
  });

  const decisions: Record<string, { decision: Decision; ran: string[]; result: RegExp; isError?: boolean }> =
    {
      approve: { decision: { type: 'approve' }, ran: ['a 0'], result: /^a 0$/ },
      edit: { decision: { type: 'edit', args: { n: 9 } }, ran: ['a 9'], result: /^a 9$/ },
      reject: {
        decision: { type: 'reject', reason: 'Not on my watch.' },
        ran: [],
        result: /^Not on my watch\.$/,
        isError: true,
      },
      'reject without a reason': {
        decision: { type: 'reject' },
        ran: [],
        result: /^The call was rejected\.$/,
        isError: true,
      },
      respond: {
        decision: { type: 'respond', text: 'I did it myself.' },
        ran: [],
        result: /^I did it myself\.$/,
      },
    };
  for (const [name, { decision, ran, result: wanted, isError = false }] of Object.entries(decisions)) {
    it(`is answered by: ${name}, through another agent over the same store`, async () => {
      const it = world([asks()]);
      const first = await it.start('a');
      const second = await it.resume({ [first.result.pending[0]!.id]: decision });
      expect(it.ran).toEqual(ran);
      expect(results(second)[0]).toMatch(wanted);
      expect(second.result.messages[2]).toMatchObject({ isError });
      expect(second.result).toMatchObject({
        status: 'done',
        runId: first.result.runId,
        turns: 2,
        pending: [],
      });
    });
  }

  it('is answered by the same agent instance', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [asks()],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    const resumed = await watch(
      session.resumeStream({ answers: { [result.pending[0]!.id]: { type: 'approve' } } }),
    );
    expect(results(resumed)).toEqual(['ran']);
    expect(resumed.types.slice(0, 2)).toEqual(['agent_start', 'turn_start']);
  });

  it('waits on when nobody has answered yet', async () => {
    const it = world([asks()]);
    const first = await it.start('a');
    const again = await it.resume({});
    expect(again.result).toMatchObject({ status: 'suspended', pending: first.result.pending });
    expect(it.ran).toEqual([]);
  });

  it('lets part of the answers come first', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a', 'free', 'a');
    const [first, second] = [idOf(result.pending, 'c0'), idOf(result.pending, 'c2')];
    const partly = await it.resume({ [second]: { type: 'reject', reason: 'no' } });
    expect(partly.result.pending.map(({ id }) => id)).toEqual([first]);
    expect(it.ran).toEqual([]);
    const done = await it.resume({ [first]: { type: 'approve' } });
    expect(results(done)).toEqual(['a 0', 'free 1', 'no']);
  });

  it('is answered through the inbox as well', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    await it.session().answer(result.pending[0]!.id, { type: 'approve' });
    expect(results(await it.resume({}))).toEqual(['a 0']);
  });

  it('is answered in place by onRequest; undefined suspends after all', async () => {
    const seen: PendingRequest[] = [];
    const agent = (decision: Decision | undefined) =>
      new Agent({
        model: scriptedModel([calls('a'), 'end']),
        tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
        middleware: [asks()],
        onRequest: (request) => {
          seen.push(request);
          return decision;
        },
      });
    expect(results(await watched(agent({ type: 'approve' }), 'go'))).toEqual(['ran']);
    const { result } = await watched(agent(undefined), 'go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c0' }] });
    expect(seen).toHaveLength(2);
  });
});

describe('answers', () => {
  it('for other arguments, unknown requests and used ones are coded errors, and change nothing', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a', 'a');
    const [request] = result.pending;
    const session = it.session('end');
    await expect(session.resume({ answers: { nope: { type: 'approve' } } })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      message: expect.stringContaining(request!.id),
    });
    await expect(
      session.resume({ answers: { [request!.id]: { type: 'approve', hash: 'other' } } }),
    ).rejects.toMatchObject({ code: 'REQUEST_MISMATCH' });
    await expect(
      session.resume({ answers: { [request!.id]: { type: 'perhaps' } as never } }),
    ).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await it.resume({ [request!.id]: { type: 'approve', hash: request!.hash } });
    await expect(
      it.session('end').resume({ answers: { [request!.id]: { type: 'reject' } } }),
    ).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN' });
    expect(it.ran).toEqual([]);
  });

  it('that lack what they need are refused', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const { id } = result.pending[0]!;
    for (const decision of [{ type: 'respond' }, { type: 'edit' }] as never[]) {
      await expect(it.session('end').resume({ answers: { [id]: decision } })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      });
    }
    expect((await it.resume({ [id]: { type: 'approve' } })).result.status).toBe('done');
  });

  it.each([
    [{ type: 'approve', args: { n: 9 } }, 'no `args`'],
    [{ type: 'reject', message: 'because' }, 'type, hash, reason and no `message`'],
    [{ type: 'respond', text: 'x', reason: 'y' }, 'no `reason`'],
  ])('with what belongs to another decision are refused: %o', async (decision, message) => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const { id } = result.pending[0]!;
    const refused = { code: 'INVALID_OPTION', message: expect.stringContaining(message) };
    await expect(it.session().answer(id, decision as never)).rejects.toMatchObject(refused);
    await expect(it.session('end').resume({ answers: { [id]: decision as never } })).rejects.toMatchObject(
      refused,
    );
    expect(await it.session().pending()).toEqual(result.pending);
  });

  it('that are not JSON are not taken: the error says where, and the question stays open', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const { id } = result.pending[0]!;
    const flaws: [args: unknown, message: string][] = [
      [{ n: 10n }, 'got 10n at .args.n.'],
      [{ n: 1, when: new Date(0) }, 'got a Date at .args.when.'],
    ];
    for (const [args, message] of flaws) {
      const refused = {
        code: 'INVALID_OPTION',
        message: expect.stringContaining(message),
        data: { requestId: id },
      };
      const edit: Decision = { type: 'edit', args };
      await expect(it.session('end').resume({ answers: { [id]: edit } })).rejects.toMatchObject(refused);
      await expect(it.session().answer(id, edit)).rejects.toMatchObject(refused);
      await it.store.post('s', { type: 'answer', requestId: id, decision: edit });
    }
    expect(await it.session().pending()).toEqual(result.pending);
    const args = { n: 2 };
    const editing = it.resume({ [id]: { type: 'edit', args } });
    args.n = 3;
    expect(results(await editing)).toEqual(['a 2']);
  });

  it('that are arguments the tool cannot take are refused, and the question still waits', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a', 'a');
    const [one, two] = result.pending;
    const wrong: Decision = { type: 'edit', args: { n: 'x' } };
    const refused = {
      code: 'INVALID_OPTION',
      message: expect.stringMatching(
        /^The answer to ".*" is refused, and the question still waits\. Invalid arguments for "a":\nn: /,
      ),
      data: { requestId: one!.id },
    };
    await expect(it.session().answer(one!.id, wrong)).rejects.toMatchObject(refused);
    const answers = { [two!.id]: { type: 'approve' as const }, [one!.id]: wrong };
    await expect(it.session('end').resume({ answers })).rejects.toMatchObject(refused);
    expect(await it.session().pending()).toEqual(result.pending);
    await it.session().answer(one!.id, { type: 'edit', args: { n: 5 } });
    expect(results(await it.resume({ [two!.id]: { type: 'approve' } }))).toEqual(['a 5', 'a 1']);
  });

  it('that are arguments are read by the model where they are found wrong when the run goes on', async () => {
    const wrong: Decision = { type: 'edit', args: { n: 'x' } };
    const read = /^The edited arguments are invalid\.\nInvalid arguments for "a":\nn: /;
    const posted = world([asks()]);
    const first = await posted.start('a');
    await posted.store.post('s', { type: 'answer', requestId: first.result.pending[0]!.id, decision: wrong });
    expect(results(await posted.resume({}))[0]).toMatch(read);
    const inPlace = world([asks({ onRequest: () => wrong })]);
    const done = await watched(inPlace.session(calls('a'), 'end'), 'go');
    expect(results(done)[0]).toMatch(read);
    expect([...posted.ran, ...inPlace.ran]).toEqual([]);
  });

  it('that are arguments are left to the run where another tool may have been called', async () => {
    const strange = tool({
      name: 'a',
      description: '',
      input: z.object({ n: z.string() }),
      execute: ({ n }) => `strange ${n}`,
    });
    const edit: Decision = { type: 'edit', args: { n: 'x' } };
    const others: Middleware[] = [
      { name: 'brings', resolveToolCall: (toolCall) => ({ toolCall, tool: strange }) },
      {
        name: 'swaps',
        beforeModel(ctx) {
          ctx.tools = [strange];
        },
      },
    ];
    for (const other of others) {
      const it = world([asks(), other]);
      const call = toolCalls({ name: 'a', args: { n: '1' } });
      const { pending } = await it.session(call).run('go');
      await it.session().answer(pending[0]!.id, edit);
      const resumed = results(await it.resume({}));
      if (other.name === 'brings') expect(resumed).toEqual(['strange x']);
      else expect(resumed[0]).toContain('"a"');
    }
    // One that came with the run is not there for whoever answers.
    const middleware = [others[0]!];
    const it = world([asks()]);
    const { pending } = await it
      .session(toolCalls({ name: 'a', args: { n: '1' } }))
      .run('go', { middleware });
    await it.session().answer(pending[0]!.id, edit);
    const { messages } = await it.session('end').resume({ middleware });
    expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['strange x']);
  });

  it('are judged by acceptMessage once, and its writes count once, however many resumes follow', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    const seen: string[] = [];
    const accepts: Middleware = {
      name: 'accepts',
      state: [count],
      acceptMessage: (message, ctx) => {
        seen.push(textOf(message));
        ctx.state.update(count, (n) => n + 1);
        return { ...message, content: [{ type: 'text', text: `${textOf(message)}!` }] };
      },
    };
    const it = world([asks(), accepts]);
    const { result } = await it.start('a', 'a', 'a');
    const answer = (callId: string, decision: Decision) =>
      it.resume({ [idOf(result.pending, callId)]: decision });
    await answer('c0', { type: 'respond', text: 'zero' });
    await answer('c1', { type: 'reject', reason: 'one' });
    const done = await answer('c2', { type: 'respond', text: 'two' });
    expect(results(done)).toEqual(['zero!', 'one!', 'two!']);
    expect(seen).toEqual(['go', 'zero', 'one', 'two']);
    const cells = (await it.store.read('s', 1)).filter((entry) => entry.type === 'state');
    expect(cells.map(({ value }) => value)).toEqual([1, 2, 3, 4]);
  });

  it('count once with what acceptMessage wrote about them, wherever the runner dies', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    const accepts: Middleware = {
      name: 'accepts',
      state: [count],
      acceptMessage: (_, ctx) => ctx.state.update(count, (n) => n + 1),
    };
    for (let n = 1, died = true; died; n++) {
      const it = world([asks(), accepts]);
      const { result } = await it.start('a', 'a');
      const answers = Object.fromEntries(
        result.pending.map(({ id, callId }) => [id, { type: 'respond' as const, text: callId }]),
      );
      const dying = world([asks(), accepts], { store: breakingStore(it.store, n).store });
      died = await dying
        .session('end')
        .resume({ answers })
        .then(
          () => false,
          () => true,
        );
      // Before the first append there are no answers yet, and after the last there is nothing to go on with.
      if (died) await it.session('end').resume(n === 1 ? { answers } : {});
      expect((await it.session().messages()).slice(2, 4).map(textOf)).toEqual(['c0', 'c1']);
      const cells = (await it.store.read('s', 1)).filter((entry) => entry.type === 'state');
      expect(cells.at(-1)).toMatchObject({ value: 3 });
    }
  });

  it('that were taken before anything said whether they were judged are judged when they are read', async () => {
    const redacts: Middleware = {
      name: 'redacts',
      guard: {
        on: ['input'],
        find: (text) => [...text.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    };
    const it = world([asks(), redacts]);
    const { result } = await it.start('a');
    const decision: Decision = { type: 'respond', text: 'the secret' };
    const entry = { v: 1, at: 0, type: 'answer' as const, runId: result.runId };
    await it.store.append('s', await it.store.head('s'), [
      { ...entry, requestId: result.pending[0]!.id, decision },
    ]);
    expect(results(await it.resume({}))[0]).not.toContain('secret');
  });

  it('do not carry over to other arguments: a hook that rewrites an approved call is asked about it again', async () => {
    let secret = 'first';
    const it = world([
      {
        name: 'rewrites',
        beforeToolCall: (ctx) =>
          ctx.revision === 0 && ctx.args.n === 0 ? { args: { n: secret === 'first' ? 1 : 2 } } : undefined,
      },
      asks(),
    ]);
    const { result } = await it.start('a');
    expect(result.pending[0]!.arguments).toBe('{"n":1}');
    secret = 'second';
    // The verdict of the first time stands: what was approved is what runs.
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(results(done)).toEqual(['a 1']);
  });

  it('of an approval do not count for arguments a layer writes afterwards', async () => {
    const it = world([asks(), { name: 'layer', wrapTool: (_, next) => next({ args: { n: 99 } }) }]);
    const first = await it.start('a');
    const second = await it.resume({ [first.result.pending[0]!.id]: { type: 'approve' } });
    expect(second.result).toMatchObject({ status: 'suspended', pending: [{ arguments: '{"n":99}' }] });
    expect(it.ran).toEqual([]);
    const third = await it.resume({ [second.result.pending[0]!.id]: { type: 'approve' } });
    expect(results(third)).toEqual(['a 99']);
    expect(it.ran).toEqual(['a 99']);
  });

  it('that edit are judged again: a hook may block, or rewrite and be asked about', async () => {
    const blocks: Middleware = {
      name: 'blocks',
      beforeToolCall: ({ args }) => (args.n > 5 ? { block: true, reason: 'Too much.' } : undefined),
    };
    const blocked = world([blocks, asks()]);
    const first = await blocked.start('a');
    expect(
      results(await blocked.resume({ [first.result.pending[0]!.id]: { type: 'edit', args: { n: 6 } } })),
    ).toEqual(['Too much.']);

    const rounds: Middleware = {
      name: 'rounds',
      beforeToolCall: ({ args }) =>
        args.n % 10 === 0 ? undefined : { args: { n: Math.ceil(args.n / 10) * 10 } },
    };
    const rounded = world([rounds, asks()]);
    const one = await rounded.start('a');
    const two = await rounded.resume({ [one.result.pending[0]!.id]: { type: 'edit', args: { n: 13 } } });
    expect(two.result).toMatchObject({ status: 'suspended', pending: [{ arguments: '{"n":20}' }] });
    expect(results(await rounded.resume({ [two.result.pending[0]!.id]: { type: 'approve' } }))).toEqual([
      'a 20',
    ]);
  });

  it('that edit pass the guards', async () => {
    const guard: Middleware = {
      name: 'guard',
      guard: {
        on: ['tool-args'],
        judge: ({ args }) =>
          (args as { n: number }).n === 666 ? { type: 'deny', reason: 'Denied.' } : undefined,
      },
    };
    const it = world([guard, asks()]);
    const { result } = await it.start('a');
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'edit', args: { n: 666 } } }))).toEqual(
      ['Denied.'],
    );
  });

  it('that edit again and again end somewhere', async () => {
    let n = 0;
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [
        asks(),
        { beforeToolCall: (ctx) => (ctx.args.fixed ? undefined : { args: { ...ctx.args, fixed: true } }) },
      ],
      onRequest: () => ({ type: 'edit', args: { n: n++ } }),
    });
    expect(results(await watched(agent, 'go'))).toEqual([
      'Not run: its arguments were edited more than 8 times.',
    ]);
  });
});

describe('questions lapse', () => {
  it('after their time, judged when read: the call counts as rejected', async () => {
    const clock = fakeClock(1000);
    const it = world([asks({ timeoutMs: 50 })], { clock });
    const { result } = await it.start('a');
    await clock.advance(50);
    expect((await it.resume({})).result.status).toBe('suspended');
    await clock.advance(1);
    const late = await it
      .session('end')
      .resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } })
      .catch((error) => error);
    expect(late).toMatchObject({ code: 'REQUEST_UNKNOWN', message: expect.stringContaining('lapsed') });
    const done = await it.resume({});
    expect(results(done)).toEqual(['Nobody answered within 50 ms.']);
    expect(done.result).toMatchObject({ status: 'done', pending: [] });
    expect(it.ran).toEqual([]);
  });

  it('never, where infinity was asked for, in stores that write JSON too', async () => {
    const inner = memoryStore();
    const json = <T>(value: T): T => JSON.parse(JSON.stringify(value));
    const store = storeWith(inner, { append: (id, seq, entries) => inner.append(id, seq, json(entries)) });
    const clock = fakeClock();
    const it = world([asks({ timeoutMs: Number.POSITIVE_INFINITY })], { store, clock });
    const { result } = await it.start('a');
    await clock.advance(1);
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(done.result).toMatchObject({ status: 'done', text: 'end' });
    expect(it.ran).toEqual(['a 0']);
  });

  it('but an answer that was posted in time counts, whenever the run goes on', async () => {
    const clock = fakeClock(1000);
    const it = world([asks({ timeoutMs: 50 })], { clock });
    const { result } = await it.start('a', 'a');
    const [first, second] = result.pending.map(({ id }) => id);
    await clock.advance(50);
    await it.session().answer(first!, { type: 'approve' });
    await clock.advance(1);
    const late = it.session().answer(second!, { type: 'approve' });
    await expect(late).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN' });
    // Somebody who does not say when is judged by when it is taken.
    await it.store.post('s', { type: 'answer', requestId: second!, decision: { type: 'approve' } });
    expect(results(await it.resume({}))).toEqual(['a 0', 'Nobody answered within 50 ms.']);
  });

  it.each(['ask', 'suspend'])(
    'unless the store cannot say whether one came: the run can be gone on with (%s)',
    async (kind) => {
      const clock = fakeClock();
      const store = memoryStore();
      let down = false;
      const broken = storeWith(store, {
        take: (id, after) => (down ? Promise.reject(new Error('no server')) : store.take(id, after)),
      });
      const silent = { title: '?', timeoutMs: 10, onRequest: () => new Promise<never>(() => {}) };
      const agentOf = (own: Store) =>
        new Agent({
          model: scriptedModel([({ messages }) => (messages.length === 1 ? calls('a') : 'end')], {
            repeat: true,
          }),
          tools: [
            tool({
              name: 'a',
              description: '',
              input: z.any(),
              execute: async (_, ctx) => (kind === 'ask' ? 'ran' : (await ctx.suspend(silent)).type),
            }),
          ],
          middleware: [{ beforeToolCall: () => (kind === 'ask' ? { ask: silent } : undefined) }],
          store: own,
          clock,
        });
      const running = agentOf(broken)
        .session('s')
        .run('go')
        .catch((error) => error);
      await settle();
      down = true;
      await clock.advance(11);
      expect(await running).toMatchObject({ code: 'STORE_FAILED', cause: { message: 'no server' } });
      const resumed = agentOf(store).session('s').resume();
      await settle();
      await clock.advance(11);
      const { messages } = await resumed;

      expect(textOf(messages[2]!)).toBe(kind === 'ask' ? 'Nobody answered within 10 ms.' : 'reject');
    },
  );

  it('while a live handler thinks, too, and its late answer is dropped', async () => {
    const clock = fakeClock();
    const late = deferred<Decision>();
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [asks({ timeoutMs: 10 })],
      onRequest: () => late.promise,
      clock,
    });
    const running = watched(agent, 'go');
    await clock.advance(10);
    const done = await running;
    late.resolve({ type: 'approve' });
    expect(results(done)).toEqual(['Nobody answered within 10 ms.']);
    expect(clock.pending).toBe(0);
  });
});

describe('verdicts', () => {
  it('are journaled and not taken again', async () => {
    const judged: string[] = [];
    const counts: Middleware = {
      name: 'counts',
      beforeToolCall: ({ toolCall }) => void judged.push(toolCall.id),
    };
    const it = world([counts, asks()]);
    const { result } = await it.start('free', 'a', 'a');
    await it.resume({});
    await it.resume({ [idOf(result.pending, 'c1')]: { type: 'edit', args: { n: 5 } } });
    await it.resume({ [idOf(result.pending, 'c2')]: { type: 'approve' } });
    // Once for each call, and once for the edited arguments.
    expect(judged).toEqual(['c0', 'c1', 'c2', 'c1']);
    expect(it.ran).toEqual(['free 0', 'a 5', 'a 2']);
  });

  it('of a hook that failed stand as a refusal', async () => {
    let broken = true;
    const fragile: Middleware = {
      name: 'fragile',
      beforeToolCall: ({ toolCall }) => {
        if (broken && toolCall.name === 'free') throw new Error('broken');
      },
    };
    const it = world([fragile, asks()]);
    const { result } = await it.start('free', 'a');
    broken = false;
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(results(done)).toEqual(['"free" was not completed: middleware "fragile" failed: broken', 'a 1']);
    expect(it.ran).toEqual(['a 1']);
  });

  it('carry the state their hooks wrote, once', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    const counter: Middleware = {
      name: 'counter',
      state: [count],
      beforeToolCall: (ctx) => ctx.state.update(count, (n) => n + 1),
    };
    const seen: number[] = [];
    const reader: Middleware = { name: 'reader', onRunEnd: (ctx) => void seen.push(ctx.state.get(count)) };
    const it = world([counter, asks(), reader]);
    const { result } = await it.start('free', 'a');
    await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(seen).toEqual([2]);
  });

  it('of guards hold after a crash between the message and the result', async () => {
    const guard: Middleware = {
      name: 'guard',
      guard: { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'Denied.' }) },
    };
    const store = memoryStore();
    const crashed = world([guard], { store: breakingStore(store, 3).store });
    // Watched, so that the result is written at once.
    await expect(crashed.session(calls('a')).stream('go').result).rejects.toThrow('disk full');
    const it = world([guard], { store });
    expect(results(await it.resume({}))).toEqual(['Denied.']);
    expect(it.ran).toEqual([]);
  });
});

describe('ctx.suspend() in a tool', () => {
  const booking = (ran: string[], execute?: (ctx: ToolContext) => unknown) =>
    tool({
      name: 'book',
      description: '',
      input: z.object({ n: z.number() }),
      execute: async ({ n }, ctx) => {
        ran.push(`begin ${n}`);
        const answer = await ctx.suspend({ title: `Book ${n}?` });
        if (execute) return execute(ctx);
        return answer.type === 'respond' ? answer.text : answer.type;
      },
    });

  it('suspends the run; siblings that run finish and are journaled; on resume it runs from its start and gets the answer', async () => {
    const ran: string[] = [];
    const free = tool({
      name: 'free',
      description: '',
      input: z.any(),
      execute: () => {
        ran.push('free');
        return 'free';
      },
    });
    const it = world([], { tools: [booking(ran), free] });
    const { result, events } = await it.start('book', 'free');
    expect(result).toMatchObject({
      status: 'suspended',
      pending: [{ kind: 'suspend', title: 'Book 0?', callId: 'c0' }],
    });
    const waits = { type: 'tool_execution_waiting', toolCall: { id: 'c0' }, pending: result.pending };
    const last = events.filter(({ type }) => /^tool_execution_(end|waiting)$/.test(type));
    expect(last).toMatchObject([{ type: 'tool_execution_end', toolCall: { id: 'c1' } }, waits]);
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'respond', text: 'window seat' } });
    expect(results(done)).toEqual(['window seat', 'free']);
    expect(ran).toEqual(['begin 0', 'free', 'begin 0']);
  });

  it('lets part of the answers come first: the other call keeps waiting', async () => {
    const ran: string[] = [];
    const it = world([], { tools: [booking(ran)] });
    const { result } = await it.start('book', 'book');
    const partly = await it.resume({ [idOf(result.pending, 'c0')]: { type: 'approve' } });
    expect(partly.result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c1' }] });
    const done = await it.resume({ [idOf(result.pending, 'c1')]: { type: 'reject' } });
    expect(results(done)).toEqual(['approve', 'reject']);
    expect(ran).toEqual(['begin 0', 'begin 1', 'begin 0', 'begin 1', 'begin 1']);
  });

  it('may ask several times; each answer is found again', async () => {
    const twice = tool({
      name: 'twice',
      description: '',
      input: z.any(),
      execute: async (_, ctx) =>
        `${(await ctx.suspend({ title: '1' })).type} ${(await ctx.suspend({ title: '2' })).type}`,
    });
    const it = world([], { tools: [twice] });
    const one = await it.start('twice');
    const two = await it.resume({ [one.result.pending[0]!.id]: { type: 'approve' } });
    expect(two.result.pending).toMatchObject([{ title: '2' }]);
    expect(results(await it.resume({ [two.result.pending[0]!.id]: { type: 'reject' } }))).toEqual([
      'approve reject',
    ]);
  });

  it('does not begin later calls of a sequential batch', async () => {
    const ran: string[] = [];
    const after = tool({
      name: 'after',
      description: '',
      input: z.any(),
      sequential: true,
      execute: () => ran.push('after'),
    });
    const it = world([], { tools: [booking(ran), after] });
    const { result } = await it.start('book', 'after');
    expect(ran).toEqual(['begin 0']);
    await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(ran).toEqual(['begin 0', 'begin 0', 'after']);
  });

  it('cannot be swallowed', async () => {
    const swallows = tool({
      name: 'swallows',
      description: '',
      input: z.any(),
      execute: async (_, ctx) => {
        await ctx.suspend({}).catch(() => {});
        return 'went on';
      },
    });
    const it = world([], { tools: [swallows] });
    expect((await it.start('swallows')).result).toMatchObject({
      status: 'suspended',
      pending: [{ callId: 'c0' }],
    });
  });

  it('finds its answers again in another attempt', async () => {
    const asked: string[] = [];
    let failures = 0;
    const it = world(
      [
        {
          name: 'retry',
          wrapTool: async (_, next) => {
            try {
              return await next();
            } catch (error) {
              if (failures > 1) throw error;
              return next();
            }
          },
        },
      ],
      {
        tools: [
          booking(asked, () => {
            if (failures++ === 0) throw new Error('flaky');
            return 'booked';
          }),
        ],
      },
    );
    const { result } = await it.start('book');
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['booked']);
  });

  it('is in doubt only when it broke off after it was answered', async () => {
    const ran: string[] = [];
    const store = memoryStore();
    const it = world([], { tools: [booking(ran)], store });
    const { result } = await it.start('book');
    // run_start and tool results: the resume writes the answer, the start of the call, and then breaks.
    const breaking = world([], { tools: [booking(ran)], store: breakingStore(store, 3).store });
    await expect(
      breaking.session('end').resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } }),
    ).rejects.toThrow('disk full');
    const done = await it.resume({});
    expect(results(done)[0]).toContain('In doubt');
    expect(ran).toEqual(['begin 0', 'begin 0']);
  });

  it.each([
    [
      'wrapTool, before the tool',
      (ask): Middleware => ({ wrapTool: async (ctx, next) => [await ask(ctx), await next()][1] }),
    ],
    [
      'wrapTool, after it',
      (ask): Middleware => ({ wrapTool: async (ctx, next) => [await next(), await ask(ctx)][0] }),
    ],
    ['beforeTool', (ask): Middleware => ({ beforeTool: ask })],
  ] satisfies [string, (ask: (ctx: ToolContext) => Promise<void>) => Middleware][])(
    'is a question of its own beside one of a layer around it (%s)',
    async (_, layer) => {
      const heard: string[] = [];
      const ask = (who: string) => async (ctx: ToolContext) => {
        heard.push(`${who}: ${((await ctx.suspend({ title: who })) as { text: string }).text}`);
      };
      for (const timeoutMs of [undefined, 1000]) {
        const asking = tool({
          name: 'asking',
          description: '',
          input: z.object({}),
          execute: async (_args, ctx) => void (await ask('tool')(ctx)),
          ...(timeoutMs && { timeoutMs }),
        });
        const agent = new Agent({
          model: scriptedModel([toolCalls({ name: 'asking' }), 'end']),
          tools: [asking],
          middleware: [{ name: 'layer', ...layer(ask('layer')) }],
          onRequest: ({ title }) => ({ type: 'respond', text: `to the ${title}` }),
        });
        await agent.run('go');
        expect(heard.splice(0).sort()).toEqual(['layer: to the layer', 'tool: to the tool']);
      }
    },
  );

  const silent = () => new Promise<Decision>(() => {});
  const looks: Middleware = { name: 'looks', beforeToolCall: () => undefined };
  it.each<[how: string, middleware: readonly Middleware[], onRequest: () => Decision | Promise<Decision>]>([
    ['is answered', [], () => ({ type: 'approve' })],
    ['is answered, and a hook decides about calls', [looks], () => ({ type: 'approve' })],
    ['lapses', [], silent],
    [
      'fails, and the tool goes on',
      [],
      () => {
        throw new Error('no line');
      },
    ],
  ])(
    'asked in place, a question that %s leaves the call in doubt after a crash: it is not run again',
    async (how, middleware, onRequest) => {
      const ran: string[] = [];
      const pays = tool({
        name: 'pays',
        description: '',
        input: z.any(),
        execute: async (_, ctx) => {
          const asking = ctx.suspend({ title: 'Pay?', ...(how === 'lapses' && { timeoutMs: 10 }) });
          await asking.catch(() => {});
          ran.push('paid');
          return 'paid';
        },
      });
      const store = memoryStore();
      const clock = fakeClock();
      const options = { tools: [pays], clock };
      const dying = world(middleware, { ...options, store: withoutResults(store) });
      const running = dying.session(calls('pays'), 'end').run('go', { onRequest });
      const died = running.catch((error) => error);
      await settle();
      await clock.advance(10);
      expect(await died).toMatchObject({ cause: { message: 'gone' } });
      const done = await world(middleware, { ...options, store }).resume({});
      expect(results(done)[0]).toContain('In doubt');
      expect(ran).toEqual(['paid']);
    },
  );

  it('is asked again when the process died while somebody thought, also when it was not asked for the first time', async () => {
    const ran: string[] = [];
    const it = world([], { tools: [booking(ran)] });
    const { result } = await it.start('book');
    // For everybody else this one is dead. Whoever goes on in its place takes the journal from it.
    it.session('end')
      .resume({ onRequest: silent })
      .catch(() => {});
    await settle();
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['approve']);
  });

  it('is answered in place by onRequest, and waiting for it is not active time', async () => {
    const clock = fakeClock();
    const answer = deferred<Decision>();
    const agent = new Agent({
      model: scriptedModel([calls('book'), 'end']),
      tools: [booking([])],
      clock,
      limits: { timeoutMs: 100 },
      onRequest: () => answer.promise,
    });
    const running = watched(agent, 'go');
    await clock.advance(1000);
    answer.resolve({ type: 'approve' });
    expect((await running).result).toMatchObject({ status: 'done' });
  });

  const asking = (hears: (answer: string) => void = () => {}) =>
    tool({
      name: 'asks',
      description: '',
      input: z.any(),
      async execute(_, ctx) {
        const { type } = await ctx.suspend({ title: 'May I?' });
        hears(type);
        return type;
      },
    });

  it.each<[string, Middleware[]]>([
    ['overlap', [{ name: 'both', wrapTool: async (_, next) => (await Promise.all([next(), next()]))[0] }]],
    [
      'follow one that was given up',
      [
        { name: 'again', wrapTool: (_, next) => next().catch(() => next()) },
        {
          name: 'impatient',
          async wrapTool(ctx, next) {
            const answered = next();
            if (ctx.attempt > 1) return answered;
            await settle();
            throw new Error('Nobody answers.');
          },
        },
      ],
    ],
  ])('is asked once by attempts that %s', async (_, middleware) => {
    const asked: string[] = [];
    const answer = deferred<Decision>();
    const store = memoryStore();
    const given: string[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asking((type) => given.push(type))],
      store,
      middleware,
      onRequest: ({ id }) => {
        asked.push(id);
        return answer.promise;
      },
    });
    const running = agent.session('s').run('go');
    await settle();
    await settle();
    answer.resolve({ type: 'approve' });
    expect((await running).status).toBe('done');
    expect(asked).toHaveLength(1);
    expect(given).toContain('approve');
    const entries = await store.read('s', 1);
    expect(entries.filter(({ type }) => type === 'answer')).toHaveLength(1);
    // Whoever waits has not begun, by the journal: should the process die now, the question is still there.
    const answered = entries.findIndex(({ type }) => type === 'answer');
    expect(entries[answered - 1]!.type).toBe('request');
  });

  it('is asked again after an answer that was none', async () => {
    const answers = [{ type: 'maybe' }, { type: 'approve' }] as Decision[];
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asking()],
      middleware: [{ name: 'twice', wrapTool: (_, next) => next().catch(() => next()) }],
      onRequest: () => answers.shift(),
    });
    expect(results(await watched(agent, 'go'))).toEqual(['approve']);
    expect(answers).toEqual([]);
  });

  it('works in beforeToolCall too, and is refused once the tool has run', async () => {
    const hook: Middleware = {
      name: 'hook',
      beforeToolCall: async (ctx) =>
        (await ctx.suspend({ title: 'From a hook' })).type === 'approve'
          ? undefined
          : { block: true, reason: 'No.' },
    };
    const it = world([hook]);
    const { result } = await it.start('a');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'From a hook', by: 'hook' }] });
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['a 0']);

    const hasty = world([
      { name: 'hasty', beforeToolCall: (ctx) => void ctx.suspend({ title: 'Not awaited' }) },
    ]);
    expect((await hasty.start('a')).result).toMatchObject({
      status: 'suspended',
      pending: [{ title: 'Not awaited' }],
    });
    expect(hasty.ran).toEqual([]);

    const late = world([{ name: 'late', afterToolCall: async (ctx) => void (await ctx.suspend({})) }]);
    const done = await watched(late.session(calls('a'), 'end'), 'go');
    expect(results(done)[0]).toContain('after the tool had run');
  });

  it.each([
    ['please'],
    [{ titel: 'May it?' }],
    [{ title: 5 }],
    [{ timeoutMs: '5' }],
    [{ timeoutMs: -1 }],
    [{ details: () => {} }],
    [{ onRequest: true }],
  ])('takes a request, and not %o', async (request) => {
    const bad = tool({
      name: 'bad',
      description: '',
      input: z.any(),
      execute: (_, ctx) => ctx.suspend(request as never),
    });
    const agent = new Agent({ model: scriptedModel([calls('bad'), 'end']), tools: [bad] });
    expect(results(await watched(agent, 'go'))[0]).toContain(
      'ctx.suspend() takes a request { title?, details?, timeoutMs?, onRequest? }, got',
    );
    const asking = new Agent({
      model: scriptedModel([calls('bad'), 'end']),
      tools: [bad],
      middleware: [asks(request as never)],
    });
    expect(results(await watched(asking, 'go'))[0]).toContain('{ ask: { title?, details?');
  });

  it.each([
    ['at once', (_: unknown, ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' })],
    ['later', async (_: unknown, ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' })],
  ])('counts also where a tool that ends %s does not wait for the answer', async (_, execute) => {
    const wipe = tool({ name: 'wipe', description: '', input: z.any(), execute });
    const session = new Agent({ model: scriptedModel([calls('wipe'), 'end']), tools: [wipe] }).session('s');
    const result = await session.run('go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?' }] });
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    expect((await session.resume({ answers })).text).toBe('end');
  });
});

describe('ctx.suspend() in a layer that does not wait for the answer', () => {
  const ask = (ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' });
  const inner: Middleware = { name: 'inner', wrapTool: async (_, next) => await next() };
  const layers: [string, Middleware][] = [
    [
      'wrapTool that returns next()',
      {
        wrapTool(ctx, next) {
          ask(ctx);
          return next();
        },
      },
    ],
    [
      'wrapTool that awaits next()',
      {
        async wrapTool(ctx, next) {
          ask(ctx);
          await next();
        },
      },
    ],
    ['beforeTool', { beforeTool: ask }],
    ['async beforeTool', { beforeTool: async (ctx) => ask(ctx) }],
  ];
  const world = (asking: Middleware, onRequest?: AgentOptions['onRequest']) => {
    const order: string[] = [];
    const wipe = tool({
      name: 'wipe',
      description: '',
      input: z.any(),
      execute: () => String(order.push('wiped')),
    });
    const agent = new Agent({
      model: scriptedModel([calls('wipe'), 'end']),
      tools: [wipe],
      middleware: [{ ...asking, name: 'asking' }, inner],
      ...(onRequest && { onRequest }),
    });
    return { session: agent.session('s'), order };
  };

  it.each(layers)('suspends before the tool runs: %s', async (_, asking) => {
    const { session, order } = world(asking);
    const result = await session.run('go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?', by: 'asking' }] });
    expect(order).toEqual([]);
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    expect((await session.resume({ answers })).text).toBe('end');
    expect(order).toEqual(['wiped']);
  });

  it.each(layers)('has a handler answer before the tool runs: %s', async (_, asking) => {
    const { session, order } = world(asking, async () => {
      await settle();
      order.push('answered');
      return { type: 'approve' };
    });
    expect((await session.run('go')).text).toBe('end');
    expect(order).toEqual(['answered', 'wiped']);
  });

  it.each<[string, Middleware]>([
    ['a result of its own', { wrapTool: async (ctx) => ask(ctx) ?? ('kept' as never) }],
    ['the result of the tool', { wrapTool: (ctx, next) => next().finally(() => ask(ctx)) }],
    ['afterTool', { afterTool: ask }],
  ])('has no result before the answer, with %s', async (_, asking) => {
    const { session } = world(asking);
    expect(await session.run('go')).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?' }] });
    const failing = world(asking, () => Promise.reject(new Error('nobody there')));
    const { messages } = await failing.session.run('go');
    expect(transcript(messages)[2]).toContain('nobody there');
  });
});

describe('an abort while a human is asked', () => {
  it('ends the wait at once and leaves a valid history', async () => {
    const controller = new AbortController();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a')]),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [asks()],
      onRequest: () => new Promise(() => {}),
    });
    const running = watched(agent, 'go', { signal: controller.signal });
    await settle();
    controller.abort(new Error('gone home'));
    const { result, error } = await running;
    expect(error).toMatchObject({ code: 'ABORTED', cause: { message: 'gone home' } });
    expect(transcript(result.messages).slice(2)).toEqual([
      'tool: Aborted: gone home',
      'tool: Aborted: gone home',
    ]);
  });
});

describe('a call in doubt', () => {
  it('is not run again after arguments a layer wrote were approved in place', async () => {
    const store = memoryStore();
    const limit: Middleware = {
      name: 'limit',
      beforeToolCall: ({ args }) => (args.n > 100 ? { ask: { title: 'So much?' } } : undefined),
    };
    const middleware = [
      limit,
      { name: 'tax', wrapTool: (_, next) => next({ args: { n: 120 } }) } as Middleware,
    ];
    const dying = world(middleware, { store: withoutResults(store) });
    const running = dying.session(calls('a'), 'end').run('go', { onRequest: () => ({ type: 'approve' }) });
    await expect(running).rejects.toThrow('gone');
    expect(dying.ran).toEqual(['a 120']);
    const it = world(middleware, { store });
    expect(results(await it.resume({}))[0]).toContain('In doubt');
    expect(it.ran).toEqual([]);
  });

  it('is not asked about, and so not run again, by a middleware that a resume adds', async () => {
    const store = memoryStore();
    const dying = world([], { store: withoutResults(store) });
    await expect(dying.session(calls('a'), 'end').run('go')).rejects.toThrow('gone');
    const it = world([asks()], { store });
    expect(results(await it.resume({}))[0]).toContain('In doubt');
    expect(it.ran).toEqual([]);
  });
});

describe('plans', () => {
  it('without a middleware of the suspended run are refused, unless allowed', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    const other = world([], { store: it.store });
    await expect(other.session('end').resume({ answers })).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
    expect((await other.session(text('end')).resume({ answers, allowPlanChange: true })).status).toBe('done');
  });

  it.each<[string, Decision | undefined, string[], string[]]>([
    ['no', { type: 'reject', reason: 'No!' }, ['No!'], []],
    ['other arguments', { type: 'edit', args: { n: 5 } }, ['a 5'], ['a 5']],
    ['words', { type: 'respond', text: 'Done by hand.' }, ['Done by hand.'], []],
    ['nothing yet', undefined, [], []],
  ])('without the middleware that asked hold to what was said: %s', async (_, decision, said, ran) => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const answers = decision && { [result.pending[0]!.id]: decision };
    const other = world([], { store: it.store });
    const { messages, pending } = await other
      .session('end')
      .resume({ ...(answers && { answers }), allowPlanChange: true });
    expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(said);
    expect(other.ran).toEqual(ran);
    expect(pending).toHaveLength(decision ? 0 : 1);
  });
});

describe('after a resume', () => {
  it('a call of a tool that was not offered does not run, as it would not have before', async () => {
    const hides: Middleware = {
      name: 'hides',
      beforeModel(ctx) {
        ctx.tools = ctx.tools.filter(({ name }) => name !== 'free');
      },
    };
    const one = world([hides, asks()]);
    const first = await one.start('a', 'free');
    expect(first.result.status).toBe('suspended');
    const second = await one.resume({ [idOf(first.result.pending, 'c0')]: { type: 'approve' } });
    expect(one.ran).toEqual(['a 0']);
    expect(results(second)[1]).toContain('There is no tool "free"');
  });
});

it('an answer that was posted in time counts, also when a handler here lets the question lapse', async () => {
  const clock = fakeClock();
  const { session, ran } = world([asks({ title: 'May it?', timeoutMs: 100 })], { clock });
  const asked = deferred();
  const running = session(calls('a'), text('end')).run('go', {
    onRequest: () => {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  await asked.promise;
  const other = session();
  const [request] = await other.pending();
  await other.answer(request!.id, { type: 'approve' });
  await clock.advance(100);
  expect(await running).toMatchObject({ status: 'done', text: 'end' });
  expect(ran).toEqual(['a 0']);
});

describe('events of calls that somebody is asked about', () => {
  const about = (...streams: readonly Watched[]) =>
    streams
      .flatMap(({ events }) => events)
      .flatMap((event) => ('toolCall' in event ? [`${event.type.slice(15)} ${event.toolCall.id}`] : []));
  const asking = tool({
    name: 'a',
    description: '',
    input: z.any(),
    execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
  });
  const approve = { type: 'approve' } as const;

  it('start, wait and end, where a handler answers in place', async () => {
    const it = world([asks()]);
    const session = it.session(calls('a', 'free'), 'end');
    const done = await watch(session.stream('go', { onRequest: () => approve }));
    expect(about(done).sort()).toEqual(['end c0', 'end c1', 'start c0', 'start c1', 'waiting c0']);
    expect(about(done).slice(0, 2)).toEqual(['start c0', 'waiting c0']);
  });

  it.each<[string, readonly Middleware[], { tools?: readonly Tool[] }]>([
    ['by beforeToolCall', [asks()], {}],
    ['by the tool', [], { tools: [asking] }],
    [
      'by a guard',
      [{ name: 'g', guard: { on: ['tool-args'], judge: () => ({ type: 'ask', request: { title: '?' } }) } }],
      {},
    ],
  ])('start once and end once over a resume: asked %s', async (_, middleware, options) => {
    const it = world(middleware, options);
    const first = await it.start('a');
    expect(about(first)).toEqual(['start c0', 'waiting c0']);
    const waiting = first.events.find(({ type }) => type === 'tool_execution_waiting');
    expect(waiting).toMatchObject({ pending: first.result.pending });
    const done = await it.resume({ [first.result.pending[0]!.id]: approve });
    expect(about(done)).toEqual(['end c0']);
  });

  it('wait again when a resume brings part of the answers', async () => {
    const it = world([asks()]);
    const first = await it.start('a', 'a', 'free');
    const partly = await it.resume({ [idOf(first.result.pending, 'c1')]: approve });
    const done = await it.resume({ [idOf(first.result.pending, 'c0')]: approve });
    expect(about(first)).toEqual(['start c0', 'waiting c0', 'start c1', 'waiting c1']);
    expect(about(partly)).toEqual(['waiting c0']);
    expect(about(done).sort()).toEqual(['end c0', 'end c1', 'end c2', 'start c2']);
  });

  it('end when they are rejected, and when the run is aborted while they wait', async () => {
    const it = world([asks()]);
    const first = await it.start('a');
    const done = await it.resume({ [first.result.pending[0]!.id]: { type: 'reject' } });
    expect(about(first, done)).toEqual(['start c0', 'waiting c0', 'end c0']);
    const stop = new AbortController();
    const aborted = await watch(
      world([asks()])
        .session(calls('a'))
        .stream('go', { signal: stop.signal, onRequest: () => stop.abort() as undefined }),
    );
    expect(about(aborted)).toEqual(['start c0', 'waiting c0', 'end c0']);
  });

  it('of a sub-agent: the call that started it waits', async () => {
    const store = memoryStore();
    const make = (
      script: Parameters<typeof scriptedModel>[0],
      inner: Parameters<typeof scriptedModel>[0],
    ) => {
      const child = new Agent({ model: scriptedModel(inner), tools: [asking] });
      return new Agent({
        model: scriptedModel(script),
        tools: [child.asTool({ name: 'child', description: '' })],
        store,
      }).session('s');
    };
    const call = toolCalls({ name: 'child', args: { prompt: 'go' }, id: 'p' });
    const first = await watch(make([call], [calls('a')]).stream('go'));
    const answers = { [first.result.pending[0]!.id]: approve };
    const done = await watch(make(['end'], ['inner end']).resumeStream({ answers }));
    expect(done.result.status).toBe('done');
    expect(about(first, done)).toEqual(['start p', 'waiting p', 'end p']);
  });
});
