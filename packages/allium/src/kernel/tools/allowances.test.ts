/** What was allowed for a session: listed, revoked; and which answers a question takes. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Agent,
  type Decision,
  type Guard,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Request,
  type RunOptions,
  type RunResult,
  type Session,
  type Store,
  textOf,
  tool,
} from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { fileStore } from 'allium/stores/file';
import { scriptedModel, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});
const stores: Readonly<Record<string, () => () => Store>> = {
  memory: () => {
    const store = memoryStore();
    return () => store;
  },
  // Opened anew each time, as in another process.
  file: () => {
    const directory = mkdtempSync(join(tmpdir(), 'allium-allowances-'));
    directories.push(directory);
    return () => fileStore({ dir: directory });
  },
};

const tools = ['pay', 'send'].map((name) =>
  tool({ name, description: '', input: z.object({ n: z.number() }), execute: ({ n }) => `${name} ${n}` }),
);
const call = (n: number, name = 'pay') => toolCalls({ name, args: { n } });
const hook = (request: Request = {}): Middleware => ({
  name: 'hook',
  beforeToolCall: () => ({ ask: request }),
});
const guard = (request: Request = {}): Middleware => ({
  name: 'guard',
  guard: { on: ['tool-args'], judge: () => ({ type: 'ask', request }) } satisfies Guard,
});
type Script = Parameters<typeof scriptedModel>[0];
const agentOf = (store: Store, script: Script, middleware: readonly Middleware[] = [hook()]) =>
  new Agent({ model: scriptedModel(script), tools, middleware, store });
const always: Decision = { type: 'approve', remember: 'tool' };
const same: Decision = { type: 'approve', remember: 'arguments' };
const saying = (decision: Decision, asked: PendingRequest[] = []): RunOptions => ({
  onRequest: (request) => {
    asked.push(request);
    return decision;
  },
});
const results = ({ messages }: RunResult) =>
  messages.flatMap((message) => (message.role === 'tool' ? textOf(message) : []));

const ways: Readonly<Record<string, (session: Session) => Promise<RunResult>>> = {
  run: (session) => session.run('go'),
  stream: (session) => session.stream('go').result,
};

describe.each(Object.keys(stores))('allowances in a %s store', (kind) => {
  it('are listed with tool, scope, arguments, asker and time', async () => {
    const store = stores[kind]!();
    const session = agentOf(store(), [call(1), call(2, 'send'), 'end']).session('s');
    expect(await session.allowances()).toEqual([]);
    await session.run('go', {
      onRequest: ({ toolName }) => (toolName === 'pay' ? always : same),
    });
    const listed = await agentOf(store(), []).session('s').allowances();
    expect(listed).toEqual([
      { id: expect.any(String), toolName: 'pay', scope: 'tool', by: 'hook', at: expect.any(Number) },
      {
        id: expect.any(String),
        toolName: 'send',
        scope: 'arguments',
        arguments: '{"n":2}',
        by: 'hook',
        at: expect.any(Number),
      },
    ]);
    expect(await session.allowances()).toEqual(listed);
  });

  it.each(Object.keys(ways))('lead to a question again once they are revoked (%s)', async (way) => {
    const store = stores[kind]!();
    await agentOf(store(), [call(1), call(1, 'send'), 'end'])
      .session('s')
      .run('go', saying(always));
    const elsewhere = agentOf(store(), []).session('s');
    const [{ id }, other] = (await elsewhere.allowances()) as [{ id: string }, unknown];
    expect(await elsewhere.revoke(id)).toBe(true);
    expect(await elsewhere.revoke(id)).toBe(false);
    expect(await elsewhere.revoke('nothing')).toBe(false);
    expect(await elsewhere.allowances()).toEqual([other]);
    const asked = await ways[way]!(agentOf(store(), [call(2, 'send'), call(2)]).session('s'));
    expect(asked).toMatchObject({ status: 'suspended', pending: [{ toolName: 'pay' }] });
    expect(await agentOf(store(), []).session('s').allowances()).toEqual([other]);
    // It can be allowed again.
    const resumed = agentOf(store(), [call(3), 'end']).session('s');
    const done = await resumed.resume({ answers: { [asked.pending[0]!.id]: always } });
    expect(results(done).slice(-2)).toEqual(['pay 2', 'pay 3']);
    expect(await resumed.allowances()).toHaveLength(2);
  });

  it('no longer hold for the next question of a run under way once revoked', async () => {
    const store = stores[kind]!();
    const asked: PendingRequest[] = [];
    const revokes: Middleware = {
      name: 'revokes',
      async afterTool(ctx) {
        if (ctx.args.n !== 2) return;
        const elsewhere = agentOf(store(), []).session('s');
        await elsewhere.revoke((await elsewhere.allowances())[0]!.id);
      },
    };
    const run = agentOf(store(), [call(1), call(2), call(3), call(4), 'end'], [hook(), revokes]).session('s');
    const done = await run.run('go', saying(always, asked));
    expect(done.status).toBe('done');
    expect(asked.map(({ arguments: args }) => args)).toEqual(['{"n":1}', '{"n":3}']);
    expect(await agentOf(store(), []).session('s').allowances()).toHaveLength(1);
  });

  it('can be revoked while the run is suspended, and another question keeps waiting', async () => {
    const store = stores[kind]!();
    await agentOf(store(), [call(1), 'end'])
      .session('s')
      .run('go', saying(always));
    const both = toolCalls({ name: 'pay', args: { n: 2 } }, { name: 'send', args: { n: 2 } });
    const { pending } = await agentOf(store(), [both]).session('s').run('go');
    expect(pending).toMatchObject([{ toolName: 'send' }]);
    const elsewhere = agentOf(store(), []).session('s');
    await elsewhere.revoke((await elsewhere.allowances())[0]!.id);
    const resumed = await agentOf(store(), [])
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(resumed).toMatchObject({ status: 'suspended', pending: [{ toolName: 'pay' }] });
  });

  it('that were revoked do not come back with a fork, from an earlier point either', async () => {
    const store = stores[kind]!();
    const session = agentOf(store(), [call(1), 'end']).session('s');
    const { messages } = await session.run('go', saying(always));
    expect(await (await session.fork()).allowances()).toHaveLength(1);
    await session.revoke((await session.allowances())[0]!.id);
    expect(await (await session.fork()).allowances()).toEqual([]);
    await agentOf(store(), ['end']).session('s').run('go');
    expect(await (await session.fork(messages.at(-1)!.id)).allowances()).toEqual([]);
  });
});

it('an allowance that a sub-agent asked for is listed with its name, and revoked for it too', async () => {
  const store = memoryStore();
  const asked: PendingRequest[] = [];
  const inner: { session?: Session } = {};
  const child = new Agent({
    name: 'child',
    model: scriptedModel([call(1), call(2), call(3), 'inner end']),
    tools,
    middleware: [
      hook(),
      {
        name: 'revokes',
        async afterTool(ctx) {
          if (ctx.args.n === 2) await inner.session!.revoke((await inner.session!.allowances())[0]!.id);
        },
      },
    ],
  });
  const parent = new Agent({
    model: scriptedModel([toolCalls({ name: 'child', args: { prompt: 'pay' } }), 'end']),
    tools: [child.asTool({ name: 'child', description: '' })],
    store,
  });
  inner.session = parent.session('s');
  const done = await parent.session('s').run('go', saying(always, asked));
  expect(done.status).toBe('done');
  expect(asked.map(({ arguments: args }) => args)).toEqual(['{"n":1}', '{"n":3}']);
  expect(await parent.session('s').allowances()).toMatchObject([{ toolName: 'pay', agent: 'child' }]);
});

describe('the answers that a question takes', () => {
  const askers: Readonly<Record<string, (request: Pick<Request, 'decisions' | 'remember'>) => Middleware>> = {
    hook,
    guard,
    approval: (request) => approval({ policy: () => ask(undefined, undefined, request) }),
  };
  const refused = { code: 'DECISION_NOT_ALLOWED' };

  it.each(Object.keys(askers))(
    'are limited by a %s: other answers are refused and the question stays open',
    async (kind) => {
      const store = memoryStore();
      const middleware = [askers[kind]!({ decisions: ['approve', 'reject'], remember: false })];
      const session = agentOf(store, [call(1), 'end'], middleware).session('s');
      const { pending } = await session.run('go');
      expect(pending).toMatchObject([{ decisions: ['approve', 'reject'], remember: false }]);
      const { id } = pending[0]!;
      const others: Decision[] = [{ type: 'edit', args: { n: 2 } }, { type: 'respond', text: 'No.' }, always];
      for (const decision of others) {
        await expect(session.answer(id, decision)).rejects.toMatchObject(refused);
        await expect(session.resume({ answers: { [id]: decision } })).rejects.toMatchObject(refused);
        await store.post('s', { type: 'answer', requestId: id, decision });
      }
      expect(await session.pending()).toEqual(pending);
      const done = await session.resume({ answers: { [id]: { type: 'approve' } } });
      expect(results(done)).toEqual(['pay 1']);
    },
  );

  it('hold for a handler too, and a wrong answer of it fails the run', async () => {
    const agent = agentOf(memoryStore(), [call(1)], [hook({ decisions: ['approve'] })]);
    await expect(agent.session('s').run('go', saying({ type: 'reject' }))).rejects.toMatchObject(refused);
  });

  it('may exclude rejection, but a question that lapses still counts as rejected', async () => {
    const middleware = [hook({ decisions: ['approve'], timeoutMs: 0 })];
    const agent = agentOf(memoryStore(), [call(1), 'end'], middleware);
    const done = await agent.session('s').run('go', { onRequest: () => new Promise(() => {}) });
    expect(results(done)).toEqual(['Nobody answered within 0 ms.']);
  });

  it.each([{ decisions: [] }, { decisions: ['maybe'] }, { decisions: 'approve' }, { remember: 'no' }])(
    'are checked: %j',
    async (request) => {
      const agent = agentOf(memoryStore(), [call(1), 'end'], [hook(request as never)]);
      expect(results(await agent.session('s').run('go'))).toEqual([
        expect.stringContaining('decisions?, remember?'),
      ]);
    },
  );

  it('with remember: false, the question is asked whatever was remembered before', async () => {
    const store = memoryStore();
    await agentOf(store, [call(1), 'end'])
      .session('s')
      .run('go', saying(always));
    for (const request of [{ remember: false }, { decisions: ['reject'] }] as const) {
      const strict = agentOf(store, [call(1)], [hook(request)]);
      expect(await strict.session('s').run('go')).toMatchObject({ status: 'suspended' });
    }
  });
});

describe.each(['guard first', 'approval first'])('a guard and approval that both ask (%s)', (order) => {
  const both = (request: Request = {}) => {
    const list = [
      guard(request),
      approval({ policy: () => ask(undefined, undefined, { decisions: ['approve', 'edit'] }) }),
    ];
    return order === 'guard first' ? list : list.reverse();
  };

  it('put one question, with the answers that both take', async () => {
    const decisions = ['reject', 'approve'] as const;
    const agent = agentOf(memoryStore(), [call(1)], both({ decisions, remember: false }));
    const { pending } = await agent.session('s').run('go');
    expect(pending).toMatchObject([{ by: 'approval', decisions: ['approve'], remember: false }]);
    const apart = agentOf(memoryStore(), [call(1)], both({ decisions: ['respond'] }));
    expect((await apart.session('s').run('go')).pending).toMatchObject([{ decisions: ['reject'] }]);
  });

  it.each(['live', 'resumed'])('are remembered separately (%s)', async (how) => {
    const store = memoryStore();
    const asked: (string | undefined)[] = [];
    const go = async (n: number) => {
      const session = agentOf(store, [call(n), 'end'], both()).session('s');
      if (how === 'live') {
        const onRequest = ({ by }: PendingRequest) => {
          asked.push(by);
          return always;
        };
        return session.run('go', { onRequest });
      }
      const { pending, ...done } = await session.run('go');
      if (pending.length === 0) return done;
      asked.push(...pending.map(({ by }) => by));
      return agentOf(store, ['end'], both())
        .session('s')
        .resume({ answers: { [pending[0]!.id]: always } });
    };
    for (const n of [1, 2, 3]) expect(await go(n)).toMatchObject({ status: 'done' });
    expect(asked).toEqual(['approval', 'guard']);
    const session = agentOf(store, []).session('s');
    const allowances = await session.allowances();
    expect(allowances.map(({ by }) => by)).toEqual(['approval', 'guard']);
    await session.revoke(allowances[1]!.id);
    await go(4);
    expect(asked).toEqual(['approval', 'guard', 'guard']);
  });
});
