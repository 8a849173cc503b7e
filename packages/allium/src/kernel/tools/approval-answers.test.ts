// Answers to what a run asks: how they are taken, and when a question lapses.

import {
  Agent,
  type Decision,
  defineState,
  type Middleware,
  memoryStore,
  type Store,
  textOf,
  tool,
} from 'allium';
import { fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asks, calls, idOf, results, world } from '../../../../../test/approval-setup.js';
import { breakingStore, deferred, settle, storeWith, watched } from '../../../../../test/run-checks.js';

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

  it('that lack a field are refused', async () => {
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
  ])('with fields of another decision are refused: %o', async (decision, message) => {
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

  it('that are not JSON are refused: the error says where, and the question stays open', async () => {
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

  it('with arguments that the tool cannot take are refused, and the question stays open', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a', 'a');
    const [one, two] = result.pending;
    const wrong: Decision = { type: 'edit', args: { n: 'x' } };
    const refused = {
      code: 'INVALID_OPTION',
      message: expect.stringMatching(
        /^The answer to ".*" was not accepted, and the question is still open\. Invalid arguments for "a":\nn: /,
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

  it('with arguments that turn out wrong when the run goes on become an error the model can read', async () => {
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

  it('with arguments are checked by the run if another tool may have been called', async () => {
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

  it('written by an older version, without a note that they were judged, are judged when read', async () => {
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

  it('do not carry over to other arguments: if a hook rewrites an approved call, it is asked about again', async () => {
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

  it('that edit again and again come to an end', async () => {
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

  it('never, if the time is Infinity, even in stores that write JSON', async () => {
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
    'unless the store fails to say whether one came: then the run can be resumed (%s)',
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

  it('while a live handler thinks too, and its late answer is dropped', async () => {
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
