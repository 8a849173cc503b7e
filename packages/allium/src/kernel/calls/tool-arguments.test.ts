/** What a question shows is what runs: the arguments as the schema leaves them. */
import {
  Agent,
  type Decision,
  type Middleware,
  memoryStore,
  type StandardSchema,
  type Store,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const asks: Middleware = { name: 'asks', beforeToolCall: () => ({ ask: { title: 'Pay?' } }) };

/** One store, and processes that come one after the other, each with a schema of its own. */
function world(args: unknown, middleware: readonly Middleware[] = [asks], store: Store = memoryStore()) {
  const ran: unknown[] = [];
  const session = (input: StandardSchema<any, any>, ...script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({
      model: scriptedModel(script),
      tools: [
        tool({
          name: 'pay',
          description: '',
          input,
          execute: (given) => {
            ran.push(given);
            return 'paid';
          },
        }),
      ],
      middleware,
      store,
    }).session('s');
  return {
    ran,
    store,
    session,
    start: (input: StandardSchema<any, any>) =>
      session(input, toolCalls({ name: 'pay', args, id: 'c0' })).run('go'),
    resume: (input: StandardSchema<any, any>, answers: Record<string, Decision> = {}) =>
      session(input, 'end').resume({ answers }),
  };
}

const plain = z.object({ amount: z.number() });
const times = (factor: number) => z.object({ amount: z.number().transform((amount) => amount * factor) });
const approve: Decision = { type: 'approve' };

describe('a question', () => {
  it('shows the arguments as the model wrote them, and as the tool gets them', async () => {
    const input = z.object({
      amount: z.number().transform((amount) => amount * 100),
      currency: z.string().default('EUR'),
      at: z.string().transform((at) => new Date(at)),
      big: z.number().transform((n) => BigInt(n)),
      tags: z.array(z.string()).transform((tags) => new Set(tags)),
    });
    const it = world({ amount: 5, at: '2026-01-02', big: 7, tags: ['a'] });
    const { pending } = await it.start(input);
    expect(JSON.parse(pending[0]!.arguments)).toEqual({ amount: 5, at: '2026-01-02', big: 7, tags: ['a'] });
    expect(JSON.parse(pending[0]!.effectiveArguments!)).toEqual({
      amount: 500,
      currency: 'EUR',
      at: '2026-01-02T00:00:00.000Z',
      big: '7n',
      tags: { set: ['a'] },
    });
  });

  it('asked by a tool in the middle of its work shows them too, and so does one of a sub-agent', async () => {
    const child = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay', args: { amount: 5 }, id: 'c0' })]),
      tools: [
        tool({
          name: 'pay',
          description: '',
          input: times(100),
          execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
        }),
      ],
    });
    const parent = new Agent({
      model: scriptedModel([toolCalls({ name: 'child', args: { prompt: 'pay' } })]),
      tools: [child.asTool({ name: 'child', description: '' })],
    });
    const { pending } = await parent.session('s').run('go');
    expect(pending).toMatchObject([{ arguments: '{"amount":5}', effectiveArguments: '{"amount":500}' }]);
  });

  it('shows only what the guards of arguments leave of them', async () => {
    const guard: Middleware = {
      name: 'redacts',
      guard: {
        on: ['tool-args'],
        find: (text) => [...text.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    };
    const decoded = z.object({ code: z.string().transform((code) => atob(code)) });
    const it = world({ code: btoa('a secret') }, [asks, guard]);
    const { pending } = await it.start(decoded);
    expect(pending[0]!.effectiveArguments).toBe('{"code":"a [redacted]"}');
    expect(JSON.stringify(await it.store.read('s', 1))).not.toContain('a secret');
  });

  it('keeps its id and hash where the schema changes nothing', async () => {
    const same = await world({ amount: 5 }).start(plain);
    const also = await world({ amount: 5 }).start(z.object({ amount: z.number().min(1) }));
    expect(same.pending[0]!.hash).toBe(also.pending[0]!.hash);
    const other = await world({ amount: 5 }).start(times(2));
    expect(other.pending[0]!.hash).not.toBe(same.pending[0]!.hash);
  });
});

describe('an approval', () => {
  it('counts after a restart with the same schema', async () => {
    const it = world({ amount: 5 });
    const { pending } = await it.start(times(100));
    expect(await it.resume(times(100), { [pending[0]!.id]: approve })).toMatchObject({ status: 'done' });
    expect(it.ran).toEqual([{ amount: 500 }]);
  });

  it('does not count if another transform changes the arguments: the question is asked again', async () => {
    const it = world({ amount: 5 });
    const { pending } = await it.start(times(100));
    const again = await it.resume(times(1000), { [pending[0]!.id]: approve });
    expect(it.ran).toEqual([]);
    expect(again).toMatchObject({
      status: 'suspended',
      pending: [{ effectiveArguments: '{"amount":5000}' }],
    });
    expect(await it.resume(times(1000), { [again.pending[0]!.id]: approve })).toMatchObject({
      status: 'done',
    });
    expect(it.ran).toEqual([{ amount: 5000 }]);
  });

  it('is asked for again, in place of the old question, if nobody had answered yet', async () => {
    const it = world({ amount: 5 });
    const { pending } = await it.start(times(100));
    const again = await it.resume(times(1000));
    expect(again.pending).toMatchObject([{ effectiveArguments: '{"amount":5000}' }]);
    expect(await it.session(times(1000)).pending()).toHaveLength(1);
    await expect(it.session(times(1000)).answer(pending[0]!.id, approve)).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    // Back to what was asked first.
    const back = await it.resume(times(100));
    expect(back.pending).toMatchObject([{ id: pending[0]!.id }]);
    await it.resume(times(100), { [pending[0]!.id]: approve });
    expect(it.ran).toEqual([{ amount: 500 }]);
  });

  it('given in place counts for what the handler was shown', async () => {
    const it = world({ amount: 5 });
    const shown: unknown[] = [];
    await it.session(times(100), toolCalls({ name: 'pay', args: { amount: 5 }, id: 'c0' }), 'end').run('go', {
      onRequest: ({ effectiveArguments }) => {
        shown.push(JSON.parse(effectiveArguments!));
        return approve;
      },
    });
    expect(it.ran).toEqual(shown);
  });
});

describe('an edit of a person', () => {
  const strict = z.object({ amount: z.number().max(100) });
  const edit: Decision = { type: 'edit', args: { amount: 50 } };

  it('is used although the original arguments no longer fit the schema', async () => {
    const it = world({ amount: 500 });
    const { pending } = await it.start(plain);
    const done = await it.resume(strict, { [pending[0]!.id]: edit });
    expect(done.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(['paid']);
    expect(it.ran).toEqual([{ amount: 50 }]);
  });

  it('that was posted before is used too, and the model reads why one does not fit', async () => {
    const it = world({ amount: 500 });
    const { pending } = await it.start(plain);
    await it.session(plain).answer(pending[0]!.id, { type: 'edit', args: { amount: 400 } });
    const done = await it.resume(strict);
    expect(done.messages.filter(({ role }) => role === 'tool').map(textOf)[0]).toContain(
      'The edited arguments are invalid.',
    );
    expect(it.ran).toEqual([]);
  });

  it('is shown again if the schema now makes something else of it', async () => {
    const it = world({ amount: 5 });
    const { pending } = await it.start(times(100));
    const again = await it.resume(times(1000), { [pending[0]!.id]: edit });
    expect(again.pending).toMatchObject([{ effectiveArguments: '{"amount":50000}' }]);
    expect(it.ran).toEqual([]);
    expect(await it.resume(times(1000), { [again.pending[0]!.id]: approve })).toMatchObject({
      status: 'done',
    });
    expect(it.ran).toEqual([{ amount: 50_000 }]);
  });

  it('is used as it was written, even if the original arguments mean something else by now', async () => {
    const it = world({ amount: 5 });
    const { pending } = await it.start(times(100));
    const done = await it.resume(plain, { [pending[0]!.id]: edit });
    expect(done).toMatchObject({ status: 'done', pending: [] });
    expect(it.ran).toEqual([{ amount: 50 }]);
  });

  it('is not used twice: if a hook changes it, somebody is asked again', async () => {
    const rewrites: Middleware = {
      name: 'rewrites',
      beforeToolCall: (ctx) => (ctx.args.amount === 50 ? { args: { amount: 51 } } : undefined),
    };
    const it = world({ amount: 5 }, [asks, rewrites]);
    const { pending } = await it.start(plain);
    const again = await it.resume(plain, { [pending[0]!.id]: edit });
    expect(again).toMatchObject({ status: 'suspended', pending: [{ arguments: '{"amount":51}' }] });
    await it.resume(plain, { [again.pending[0]!.id]: approve });
    expect(it.ran).toEqual([{ amount: 51 }]);
  });
});
