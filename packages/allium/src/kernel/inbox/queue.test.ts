/** Messages that wait: what becomes of those that are refused, who sees and removes them, and when they are taken in. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type QueueModes,
  StopRun,
  type Store,
  textOf,
  tool,
} from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { collect, failWith, hang, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

const find = (text: string) =>
  [...text.matchAll(/SECRET/g)].map((found) => ({ start: found.index, end: found.index + 6 }));

/** Each refuses a message with SECRET in it. */
const REFUSING: readonly [string, Middleware, string][] = [
  ['a guard that blocks', { name: 'no', guard: { on: ['input'], find, action: 'block' } }, 'done'],
  ['a guard that stops the run', { name: 'no', guard: { on: ['input'], find, action: 'stop' } }, 'stopped'],
  ['acceptMessage that blocks', accepting(() => ({ block: true, reason: 'No.' })), 'done'],
  [
    'a guard whose judge stops the run',
    {
      name: 'no',
      guard: {
        on: ['input'],
        judge({ text }) {
          if (text.includes('SECRET')) throw new StopRun('guardrail', 'No.');
        },
      },
    },
    'stopped',
  ],
  ['acceptMessage that stops the run', accepting((ctx) => ctx.stop('guardrail', 'No.')), 'stopped'],
  [
    'acceptMessage that throws',
    accepting(() => {
      throw new Error('SECRET is not allowed');
    }),
    'error',
  ],
];

function accepting(refuse: (ctx: { stop(reason: 'guardrail', why: string): never }) => unknown): Middleware {
  return {
    name: 'no',
    acceptMessage: (message, ctx) =>
      textOf(message).includes('SECRET') ? (refuse(ctx) as never) : undefined,
  };
}

const hides: Middleware = { name: 'hides', guard: { on: ['final'], find, replacement: '[x]' } };

describe.each(REFUSING)('a queued message that is refused by %s', (_, refusing, status) => {
  it.each(['steer', 'followUp'] as const)('%s: is removed, visibly, and stops no later run', async (kind) => {
    const store = memoryStore();
    const model = scriptedModel(['a', 'b', 'c', 'd', 'e']);
    const session = new Agent({ store, model, middleware: [refusing, hides] }).session('s');
    await session[kind]('fine');
    await session[kind]('SECRET');
    await session[kind]('after');
    const { events, result, error } = await collect(session.stream('go'));
    const ended = result ?? error!.result;
    expect(ended.status).toBe(status);
    expect(ended.changes.filter(({ what }) => what.startsWith('refused a message'))).toMatchObject([
      { by: 'no' },
    ]);
    expect(events.filter(({ type }) => type === 'custom')).toMatchObject([
      { name: 'message_refused', by: 'no' },
    ]);
    expect(JSON.stringify(ended.changes) + JSON.stringify(events)).not.toContain('SECRET');

    const journal = JSON.stringify(store.read('s', 1));
    expect(journal).not.toContain('SECRET');
    expect(journal).toContain('"refused":[{"n":2,');
    // What came after it waits, if the run ended with it.
    const waiting = (await session.queued()).map(({ message }) => textOf(message));
    expect(waiting).toEqual(status === 'done' ? [] : ['after']);

    const next = await session.run('again');
    expect(next).toMatchObject({ status: 'done', queued: [] });
    const said = (await session.messages()).filter(({ role }) => role === 'user').map(textOf);
    expect(said.toSorted()).toEqual(['after', 'again', 'fine', 'go']);
  });
});

it('a message that was being judged when the run was aborted or reached a limit still waits', async () => {
  const controller = new AbortController();
  const aborts = accepting(() => {
    controller.abort('no more');
    throw new Error('after the abort');
  });
  const agent = new Agent({ store: memoryStore(), model: scriptedModel(['a', 'b']), middleware: [aborts] });
  const session = agent.session('s');
  await session.steer('SECRET');
  await expect(session.run('go', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  expect(await session.queued()).toMatchObject([{ kind: 'steer' }]);
});

const STORES: readonly [string, () => Store, (() => Store) | undefined][] = [
  ['memory', memoryStore, undefined],
  ...(['file', 'sqlite'] as const).map((name): [string, () => Store, () => Store] => {
    let path = '';
    const open = (): Store => (name === 'file' ? fileStore({ dir: path }) : sqliteStore({ path }));
    const make = (): Store => {
      path = join(mkdtempSync(join(tmpdir(), 'allium-queue-')), name === 'file' ? 'sessions' : 'sessions.db');
      return open();
    };
    return [name, make, open];
  }),
];

describe.each(STORES)('the queue of a session in the %s store', (_, make, again) => {
  it('is listed, and a removed message is never heard, whoever removes it', async () => {
    const store = make();
    const agent = new Agent({ store, model: scriptedModel(['a', 'b']) });
    const session = agent.session('s');
    await session.steer('one');
    await session.followUp('two');
    await session.followUp('three');
    // Somebody else, in another process perhaps.
    const other = new Agent({ store: again?.() ?? store, model: scriptedModel([]) }).session('s');
    const queued = await other.queued();
    expect(queued.map(({ kind, message }) => [kind, textOf(message)])).toEqual([
      ['steer', 'one'],
      ['follow_up', 'two'],
      ['follow_up', 'three'],
    ]);
    expect(await other.removeQueued(queued[1]!.id)).toBe(true);
    expect(await other.removeQueued(queued[1]!.id)).toBe(false);
    expect(await other.removeQueued('nothing')).toBe(false);
    expect((await session.queued()).map(({ id }) => id)).toEqual([queued[0]!.id, queued[2]!.id]);
    const { messages } = await session.run('go');
    expect(messages.map(textOf)).toEqual(['go', 'one', 'a', 'three', 'b']);
    expect(await session.queued()).toEqual([]);
    expect(await session.removeQueued(queued[0]!.id)).toBe(false);
  });

  it('may be removed from while a run waits with it', async () => {
    const store = make();
    const agent = new Agent({ store, model: scriptedModel(['a', 'b', 'c']), limits: { turns: 1 } });
    const session = agent.session('s');
    await session.followUp('one');
    await session.followUp('two');
    expect((await session.run('go')).queued.map(textOf)).toEqual(['one', 'two']);
    const [first] = await session.queued();
    await session.removeQueued(first!.id);
    const next = await session.run('on', { limits: { turns: 9 } });
    expect(next.messages.map(textOf)).toEqual(['on', 'b', 'two', 'c']);
  });
});

it('a session of another tenant shows and removes nothing', async () => {
  const store = memoryStore();
  const agent = new Agent({ store, model: scriptedModel(['a']) });
  await agent.session('s', { tenant: 'acme' }).run('hi');
  const other = agent.session('s', { tenant: 'other' });
  await expect(other.queued()).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
  await expect(other.removeQueued('1')).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
  await expect(other.continue()).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
});

describe('steering that waits when a run begins', () => {
  const hears: [string, (agent: Agent) => Promise<unknown>][] = [
    ['run', (agent) => agent.session('s').run('go')],
    ['stream', (agent) => collect(agent.session('s').stream('go'))],
  ];

  it.each(hears)('is heard in the first turn: %s', async (_, begin) => {
    const model = scriptedModel(['a']);
    const agent = new Agent({ store: memoryStore(), model });
    await agent.session('s').steer('be brief');
    await begin(agent);
    expect(model.requests.map(({ messages }) => messages.map(textOf))).toEqual([['go', 'be brief']]);
  });

  it.each<[string, Middleware]>([
    ['beforeRun', { name: 'says', beforeRun: (ctx) => ctx.agent.session('s').steer('be brief') }],
    ['acceptMessage', { name: 'says', acceptMessage: saysOnce() }],
  ])('also if it was sent in %s', async (_, middleware) => {
    const model = scriptedModel(['a', 'b']);
    await new Agent({ store: memoryStore(), model, middleware: [middleware] }).session('s').run('go');
    expect(model.requests.map(({ messages }) => messages.map(textOf))).toEqual([['go', 'be brief']]);
  });

  function saysOnce(): NonNullable<Middleware['acceptMessage']> {
    let said = false;
    return async (_, ctx) => {
      if (said) return;
      said = true;
      await ctx.agent.session('s').steer('be brief');
    };
  }

  it('also in a run that is resumed before its first turn', async () => {
    const store = memoryStore();
    const broken = scriptedModel([failWith(new Error('down'))]);
    const breaks: Middleware = {
      name: 'breaks',
      beforeModel: () => {
        store.append = () => {
          throw new Error('disk');
        };
      },
    };
    const append = store.append.bind(store);
    const first = new Agent({ store, model: broken, middleware: [breaks] }).session('s');
    await expect(first.run('go')).rejects.toThrow();
    store.append = append;
    const model = scriptedModel(['a']);
    const second = new Agent({ store, model }).session('s');
    await second.steer('be brief');
    const { messages } = await second.resume({ allowPlanChange: true });
    expect(messages.map(textOf)).toEqual(['go', 'be brief', 'a']);
  });
});

describe('queue modes', () => {
  const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
  const script = [toolCalls({ name: 'look' }), toolCalls({ name: 'look' }), 'c', 'd', 'e', 'f'];

  async function heard(queue: QueueModes | undefined, own: QueueModes | undefined): Promise<string[]> {
    const model = scriptedModel(script);
    const agent = new Agent({ store: memoryStore(), model, tools: [look], ...(queue && { queue }) });
    const session = agent.session('s');
    for (const said of ['s1', 's2']) await session.steer(said);
    for (const said of ['f1', 'f2']) await session.followUp(said);
    const { messages } = await session.run('go', own && { queue: own });
    return messages.map((message) => textOf(message) || 'call');
  }

  it.each<[QueueModes | undefined, QueueModes | undefined, string]>([
    [undefined, undefined, 'go s1 s2 call seen call seen c f1 f2 d'],
    [{ steering: 'one' }, undefined, 'go s1 call seen s2 call seen c f1 f2 d'],
    [{ followUps: 'one' }, undefined, 'go s1 s2 call seen call seen c f1 d f2 e'],
    [{ steering: 'one' }, { steering: 'all', followUps: 'one' }, 'go s1 s2 call seen call seen c f1 d f2 e'],
  ])('of the agent %o and of the run %o', async (queue, own, said) => {
    expect((await heard(queue, own)).join(' ')).toBe(said);
  });

  it('are checked', async () => {
    const model = scriptedModel([]);
    expect(() => new Agent({ model, queue: { steering: 'two' as 'one' } })).toThrow(
      /`queue\.steering`.*got "two"/,
    );
    expect(() => new Agent({ model, queue: { steer: 'one' } as never })).toThrow(/Unknown option `steer`/);
    const run = new Agent({ model }).run('x', { queue: { followUps: 1 as never } });
    await expect(run).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
});

describe('continue()', () => {
  it.each(['continue', 'continueStream'] as const)('%s runs what was left over', async (method) => {
    const model = scriptedModel(['a', 'b']);
    const agent = new Agent({ store: memoryStore(), model, limits: { turns: 1 } });
    const session = agent.session('s');
    await session.followUp('later');
    expect((await session.run('go')).queued).toHaveLength(1);
    const going = session[method]();
    const result = await ('result' in going ? going.result : going);
    expect(result).toMatchObject({ status: 'done', text: 'b', queued: [] });
    expect(result.messages.map(textOf)).toEqual(['later', 'b']);
  });

  it('takes steering before follow-ups, and begins a session that has only been posted to', async () => {
    const session = new Agent({ store: memoryStore(), model: scriptedModel(['a', 'b']) }).session('s');
    await session.followUp('later');
    await session.steer('now');
    const { messages } = await session.continue();
    expect(messages.map(textOf)).toEqual(['now', 'a', 'later', 'b']);
  });

  it('asks the model about a history that ends with something to answer', async () => {
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([toolCalls({ name: 'look' }), 'a']);
    const agent = new Agent({ store: memoryStore(), model, tools: [look] });
    const session = agent.session('s');
    await session.run('go', { limits: { turns: 1 } });
    await session.steer('quick');
    const { messages } = await session.continue();
    expect(messages.map(textOf)).toEqual(['quick', 'a']);
    expect(model.requests[1]!.messages.map(textOf)).toEqual(['go', '', 'seen', 'quick']);
  });

  it('is in the journal from its start, so that others see it, and it can be resumed after a crash', async () => {
    const store = memoryStore();
    const said = new Agent({ store, model: scriptedModel([failWith(new Error('down'))]) }).session('s');
    await expect(said.run('go')).rejects.toThrow('down');
    const crashed = new Agent({ store, model: scriptedModel([hang('Half')]) }).session('s');
    const events = crashed.continueStream()[Symbol.asyncIterator]();
    const { runId } = (await events.next()).value as { runId: string };
    expect(store.read('s', 1).at(-1)).toMatchObject({ type: 'run_start', runId });
    const other = new Agent({ store, model: scriptedModel(['a']) }).session('s');
    await expect(other.continue()).rejects.toMatchObject({ code: 'RUN_OPEN' });
    expect(await other.resume()).toMatchObject({ status: 'done', runId, text: 'a' });
    expect((await other.messages()).map(textOf)).toEqual(['go', 'a']);
    await events.return?.(undefined as never).catch(() => undefined);
  });

  it('writes nothing if it was aborted before it began, and can be tried again if its start was not written', async () => {
    const store = memoryStore();
    const session = new Agent({
      store,
      model: scriptedModel([failWith(new Error('down')), 'a']),
    }).session('s');
    await expect(session.run('go')).rejects.toThrow('down');
    const head = store.head('s');
    await expect(session.continue({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    vi.spyOn(store, 'append').mockImplementationOnce(() => {
      throw new Error('full');
    });
    await expect(session.continue()).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(store.head('s')).toBe(head);
    expect(await session.continue()).toMatchObject({ status: 'done', text: 'a' });
  });

  it('says so if there is nothing to continue, and writes nothing', async () => {
    const store = memoryStore();
    const session = new Agent({ store, model: scriptedModel(['a']) }).session('s');
    await expect(session.continue()).rejects.toMatchObject({ code: 'NOTHING_TO_CONTINUE' });
    expect(store.head('s')).toBe(0);
    await session.run('go');
    const head = store.head('s');
    await expect(session.continue()).rejects.toThrow(/ends with an answer.*run\(\)/);
    await expect(session.continueStream().result).rejects.toMatchObject({ code: 'NOTHING_TO_CONTINUE' });
    expect(store.head('s')).toBe(head);
  });

  it('points to resume() if a run is open', async () => {
    const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'May I?' } }) });
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([toolCalls({ name: 'look' })]);
    const session = new Agent({ store: memoryStore(), model, tools: [look], middleware: [asks] }).session(
      's',
    );
    await session.run('go');
    await expect(session.continue()).rejects.toThrow(/resume\(\)/);
    expect(await session.pending()).toHaveLength(1);
  });

  it('stops if every waiting message is refused', async () => {
    const model = scriptedModel(['a']);
    const agent = new Agent({
      store: memoryStore(),
      model,
      middleware: [accepting(() => ({ block: true }))],
    });
    const session = agent.session('s');
    await session.followUp('SECRET');
    const result = await session.continue();
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', by: 'kernel' },
      turns: 0,
    });
    expect(model.requests).toEqual([]);
    expect(await session.queued()).toEqual([]);
  });
});
