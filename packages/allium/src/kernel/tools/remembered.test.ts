/** "Allow for this session" among the answers to a question. */
import {
  Agent,
  type Decision,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Store,
  textOf,
  tool,
} from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const asks = (name = 'asks'): Middleware => ({
  name,
  beforeToolCall: (ctx) => (ctx.args.n < 0 ? { block: true, reason: 'Never.' } : { ask: { title: name } }),
});
const make = (name: string) =>
  tool({ name, description: '', input: z.object({ n: z.number() }), execute: ({ n }) => `${name} ${n}` });
const call = (n: number, name = 'pay') => toolCalls({ name, args: { n } });

function world(middleware: readonly Middleware[] = [asks()], store: Store = memoryStore()) {
  const asked: string[] = [];
  const agent = (script: Parameters<typeof scriptedModel>[0], own = middleware) =>
    new Agent({ model: scriptedModel(script), tools: [make('pay'), make('send')], middleware: own, store });
  const answering = (decision: Decision) => ({
    onRequest: ({ toolName, arguments: args }: PendingRequest) => {
      asked.push(`${toolName} ${args}`);
      return decision;
    },
  });
  return { asked, store, agent, answering };
}
const always: Decision = { type: 'approve', remember: 'tool' };
const results = ({ messages }: { messages: readonly { role: string }[] }) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

describe('an approval that is remembered', () => {
  it('for the tool: nobody is asked about it again, in later runs and in other processes too', async () => {
    const it = world();
    const script = [call(1), call(2), call(3, 'send'), 'end'];
    await it.agent(script).session('s').run('go', it.answering(always));
    expect(it.asked).toEqual(['pay {"n":1}', 'send {"n":3}']);
    const later = await it
      .agent([call(9), 'end'])
      .session('s')
      .run('go');
    expect(later).toMatchObject({ status: 'done' });
    expect(results(later)).toEqual(['pay 9']);
    expect(later.changes).toContainEqual(
      expect.objectContaining({ by: 'asks', what: expect.stringContaining('allowed for this session') }),
    );
  });

  it('for the arguments: other arguments are asked about', async () => {
    const it = world();
    const decision: Decision = { type: 'approve', remember: 'arguments' };
    await it
      .agent([call(1), call(1), call(2), 'end'])
      .session('s')
      .run('go', it.answering(decision));
    expect(it.asked).toEqual(['pay {"n":1}', 'pay {"n":2}']);
  });

  it('does not hold for other sessions, other askers, or refused calls', async () => {
    const it = world();
    await it
      .agent([call(1), 'end'])
      .session('s')
      .run('go', it.answering(always));
    expect(
      await it
        .agent([call(1)])
        .session('t')
        .run('go'),
    ).toMatchObject({ status: 'suspended' });
    const refused = await it
      .agent([call(-1), 'end'])
      .session('s')
      .run('go');
    expect(results(refused)).toEqual(['Never.']);
    const other = it.agent([call(1)], [asks('other')]);
    expect(await other.session('s').run('go')).toMatchObject({ status: 'suspended' });
  });

  it('also answers the other open questions it covers', async () => {
    const it = world();
    const both = toolCalls({ name: 'pay', args: { n: 1 } }, { name: 'pay', args: { n: 2 } });
    const { pending } = await it.agent([both]).session('s').run('go');
    expect(pending).toHaveLength(2);
    await it.agent([]).session('s').answer(pending[0]!.id, always);
    const done = await it.agent(['end']).session('s').resume();
    expect(results(done)).toEqual(['pay 1', 'pay 2']);
  });

  it('does not undo a rejection that was given beside it', async () => {
    const it = world();
    const both = toolCalls({ name: 'pay', args: { n: 1 } }, { name: 'pay', args: { n: 2 } });
    const { pending } = await it.agent([both]).session('s').run('go');
    const answers = {
      [pending[0]!.id]: always,
      [pending[1]!.id]: { type: 'reject', reason: 'No.' } as const,
    };
    expect(results(await it.agent(['end']).session('s').resume({ answers }))).toEqual(['pay 1', 'No.']);
  });

  it('is part of a fork made after it, but not of one from before it', async () => {
    const it = world();
    const { store } = it;
    await it
      .agent([call(1), 'end'])
      .session('s')
      .run('go', it.answering(always));
    await store.fork('s', await store.head('s'), 'copy');
    expect(
      await it
        .agent([call(1), 'end'])
        .session('copy')
        .run('go'),
    ).toMatchObject({ status: 'done' });
  });

  it.each(['live', 'suspended'])('of a sub-agent holds for the next one (%s)', async (how) => {
    const it = world();
    const ran: string[] = [];
    const family = (
      script: Parameters<typeof scriptedModel>[0],
      inner: Parameters<typeof scriptedModel>[0],
    ) => {
      const child = new Agent({
        name: 'child',
        model: scriptedModel(inner),
        tools: [
          tool({
            name: 'pay',
            description: '',
            input: z.object({ n: z.number() }),
            execute: ({ n }) => {
              ran.push(`pay ${n}`);
              return 'paid';
            },
          }),
        ],
        middleware: [asks()],
      });
      return new Agent({
        model: scriptedModel(script),
        tools: [child.asTool({ name: 'child', description: '' }), make('pay')],
        middleware: [
          { name: 'asks', beforeToolCall: (ctx) => (ctx.tool?.name === 'pay' ? { ask: {} } : undefined) },
        ],
        store: it.store,
      }).session('s');
    };
    const hire = toolCalls({ name: 'child', args: { prompt: 'pay' } });
    if (how === 'live') await family([hire, 'end'], [call(1), 'inner end']).run('go', it.answering(always));
    else {
      const { pending } = await family([hire], [call(1)]).run('go');
      await family(['end'], ['inner end']).resume({ answers: { [pending[0]!.id]: always } });
    }
    expect(ran).toEqual(['pay 1']);
    const later = await family([hire, 'end'], [call(2), 'inner end']).run('go');
    expect(later.status).toBe('done');
    expect(ran).toEqual(['pay 1', 'pay 2']);
    // The tool of that name that the caller has itself is another one.
    expect(await family([call(3)], []).run('go')).toMatchObject({ status: 'suspended' });
  });

  it('is refused if nothing can be remembered, or for an unknown word', async () => {
    const wipe = tool({
      name: 'wipe',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
    });
    const session = new Agent({ model: scriptedModel([toolCalls({ name: 'wipe' })]), tools: [wipe] }).session(
      's',
    );
    const { pending } = await session.run('go');
    const invalid = { code: 'INVALID_OPTION' };
    await expect(session.answer(pending[0]!.id, always)).rejects.toMatchObject(invalid);
    const forever = { type: 'approve', remember: 'forever' } as never;
    await expect(session.answer(pending[0]!.id, forever)).rejects.toMatchObject(invalid);
    expect(await session.pending()).toHaveLength(1);
  });
});
