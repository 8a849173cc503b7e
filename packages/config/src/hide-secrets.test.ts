// What an agent writes and prints while it runs has no value of the environment in it.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { defineMiddleware, defineState, memoryStore, type ObserverProblem, StopRun, tool } from 'allium';
import { approval } from 'allium/middleware';
import { registerMiddleware, registerModel, registerTool } from 'allium/registry';
import { scriptedModel, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { project } from '../test/project.js';
import { type CreateAgentOverrides, createAgent, loadConfig } from './index.js';

const CANARY = 'hunter2-"very"/secret';
const FORMS = [CANARY, JSON.stringify(CANARY).slice(1, -1), encodeURIComponent(CANARY), 'hunter2'];

const undo: (() => void)[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const one of undo.splice(0)) one();
});

const OBSERVER = `
export default ({ key }) => () => { throw new Error('obs ' + key); };`;

async function make(toml: string, overrides: CreateAgentOverrides = {}, env: object = {}) {
  const lines: string[] = [];
  for (const method of ['log', 'info', 'debug', 'warn', 'error'] as const)
    vi.spyOn(console, method).mockImplementation((...args) => void lines.push(inspect(args)));
  const dir = project({ 'allium.toml': toml, 'observer.mjs': OBSERVER });
  const loaded = await loadConfig({ cwd: dir, env: { CANARY, ...env } });
  const created = await createAgent(loaded, overrides);
  return { ...created, lines, dir };
}

function onDisk(dir: string): string {
  const files = readdirSync(join(dir, '.allium'), { recursive: true, withFileTypes: true });
  return files
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), 'utf8'))
    .join('\n');
}

function expectHidden(text: string): void {
  for (const form of FORMS) expect(text).not.toContain(form);
  expect(text).toContain('***');
}

const failing = (key: string) =>
  Object.assign(new TypeError(`401 for to${key}`, { cause: new Error(key) }), {
    statusCode: 401,
    url: `https://x/?k=${encodeURIComponent(key)}`,
    body: { key },
  });

const SOURCES = {
  model: () => {
    undo.push(
      registerModel('leaky', ({ key }: { key: string }) => ({
        ...scriptedModel([]),
        // biome-ignore lint/correctness/useYield: it fails before it says anything
        async *stream() {
          throw failing(key);
        },
      })),
    );
    return 'model = { use = "leaky", key = "k ${CANARY}" }\nstore = "file"\n[allium.middleware]\nchain = ["console-logger"]';
  },
  'wrapping middleware': () => {
    undo.push(
      registerMiddleware('leaky', ({ key }: { key: string }) =>
        defineMiddleware({
          name: 'leaky',
          wrapModel() {
            throw failing(key);
          },
        }),
      ),
    );
    return 'model = "offline"\nstore = "file"\n[allium.middleware]\nchain = ["console-logger", { use = "leaky", key = "k ${CANARY}" }]';
  },
  'middleware of a class': () => {
    class Leaky {
      readonly name = 'leaky';
      readonly #key: string;
      constructor(key: string) {
        this.#key = key;
      }
      async afterModel() {
        throw failing(this.#key);
      }
    }
    undo.push(registerMiddleware('leaky', ({ key }: { key: string }) => new Leaky(key)));
    return 'model = "offline"\nstore = "file"\n[allium.middleware]\nchain = ["console-logger", { use = "leaky", key = "k ${CANARY}" }]';
  },
  'middleware that throws text': () => {
    undo.push(
      registerMiddleware('leaky', ({ key }: { key: string }) =>
        defineMiddleware({
          name: 'leaky',
          beforeModel() {
            throw `401 for to${key}`;
          },
        }),
      ),
    );
    return 'model = "offline"\nstore = "file"\n[allium.middleware]\nchain = [{ use = "leaky", key = "k ${CANARY}" }, "console-logger"]';
  },
};

describe.each(Object.entries(SOURCES))('an error of a %s', (_, toml) => {
  it('is written, thrown and logged without secrets', async () => {
    const { agent, store, close, lines, dir } = await make(`[allium]\n${toml()}`);
    const events: unknown[] = [];
    const stream = agent.session('s').stream('Hi');
    const error = await (async () => {
      for await (const event of stream) events.push(event);
    })().then(
      () =>
        stream.result.then(
          () => undefined,
          (thrown) => thrown,
        ),
      (thrown) => thrown,
    );
    await stream.result.catch(() => {});
    expect(error.message).not.toContain('of "hide-secrets"');
    expect(error.message).toContain('401 for tok ***');
    expectHidden([inspect(error, { depth: 20 }), error.stack, JSON.stringify(error.result)].join('\n'));
    const entries = await store.read('s', 1);
    expect(entries.at(-1)).toMatchObject({
      type: 'run_end',
      stop: { message: expect.stringContaining('401 for tok ***') },
    });
    await close();
    expectHidden(JSON.stringify([entries, events, lines]));
    expectHidden(onDisk(dir));
  });
});

const plain = (key: string) => new Error(`refused ${key}`);
const rejected = (key: string) => ({
  // biome-ignore lint/suspicious/noThenProperty: what is no promise and is awaited like one
  then: (_: unknown, no: (error: unknown) => void) => no(plain(key)),
});
class Judge {
  readonly on = ['output' as const];
  readonly #key: string;
  constructor(key: string) {
    this.#key = key;
  }
  judge(): never {
    throw plain(this.#key);
  }
}

it.each<[string, (key: string) => object]>([
  [
    'the find of a guard',
    (key) => ({
      guard: {
        on: ['output'],
        find() {
          throw plain(key);
        },
      },
    }),
  ],
  ['the judge of a guard', (key) => ({ guard: { on: ['output'], judge: () => Promise.reject(plain(key)) } })],
  ['a guard of a class', (key) => ({ guard: new Judge(key) })],
  [
    'a frozen guard',
    (key) => Object.freeze({ guard: Object.freeze({ on: ['output'], judge: () => rejected(key) }) }),
  ],
  ['a hook that returns what is no promise', (key) => ({ beforeModel: () => rejected(key) })],
])('secrets are hidden in what %s throws', async (_, hooks) => {
  undo.push(registerMiddleware('leaky', ({ key }: { key: string }) => ({ name: 'leaky', ...hooks(key) })));
  const { agent } = await make(
    '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [{ use = "leaky", key = "${CANARY}" }]',
  );
  const error = await agent.run('Hi').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ cause: { message: 'refused ***' } });
  expectHidden(inspect(error, { depth: 20 }));
});

it('an error keeps its class, its fields and its identity', async () => {
  const thrown: unknown[] = [];
  const watch = defineMiddleware({
    name: 'watch',
    async wrapModel(_ctx, next) {
      return next().catch((error: unknown) => {
        thrown.push(error);
        throw error;
      });
    },
  });
  const { agent } = await make(`[allium]\n${SOURCES.model()}`, { middleware: [watch] });
  const error = await agent.run('Hi').catch((one) => one);
  expect(thrown[0]).toBeInstanceOf(TypeError);
  expect(thrown[0]).toMatchObject({ statusCode: 401, body: { key: 'k ***' } });
  expect(error.cause).toBe(thrown[0]);
});

describe('a tool', () => {
  const leaky = (work: (key: string) => unknown) =>
    undo.push(
      registerTool('leaky', ({ key }: { key: string }) =>
        tool({
          name: 'leak',
          description: 'Leaks.',
          input: z.object({}),
          execute: () => work(key) as string,
        }),
      ),
    );
  const TOML =
    '[allium]\nstore = "file"\ntools = [{ use = "leaky", key = "k ${CANARY}" }]\n[allium.middleware]\nchain = ["console-logger"]';

  it.each([
    ['that throws', (key: string) => Promise.reject(failing(key)), '401 for tok ***'],
    ['that returns it', (key: string) => `key=${key}!`, 'key=k ***!'],
    ['that returns it in JSON', (key: string) => ({ deep: [{ key }] }), '***'],
  ])('%s reveals secrets neither to the model nor to anyone else', async (_, work, says) => {
    leaky(work);
    const model = scriptedModel([toolCalls({ name: 'leak' }), 'done']);
    const { agent, store, close, lines, dir } = await make(TOML, { model });
    await agent.session('s').run('Hi');
    const entries = JSON.stringify(await store.read('s', 1));
    expect(entries).toContain(says);
    expect(JSON.stringify(model.requests.at(-1))).toContain(says);
    await close();
    expectHidden(entries);
    expectHidden(JSON.stringify([model.requests, lines]));
    expectHidden(onDisk(dir));
  });
});

describe('the journal', () => {
  it('has no secret of an answer, a message, metadata, state or the inbox', async () => {
    const cell = defineState({ name: 'c', initial: {} as Record<string, string>, scope: 'session' });
    const keeps = defineMiddleware({
      name: 'keeps',
      state: [cell],
      beforeModel(ctx) {
        ctx.state.set(cell, { [CANARY]: CANARY });
      },
    });
    undo.push(registerMiddleware('box', () => defineMiddleware({ name: 'box' })));
    const model = scriptedModel([`It is ${CANARY}.`, 'I see.']);
    const { agent, store, close, dir } = await make(
      '[allium]\nstore = "file"\n[allium.middleware]\nchain = [{ use = "box", key = "${CANARY}" }]',
      { model, middleware: [keeps] },
    );
    const session = agent.session('s');
    await session.steer(`No, ${CANARY}`);
    await session.run(`Is it ${CANARY}?`, { metadata: { key: CANARY } });
    await close();
    const written = onDisk(dir);
    expectHidden(written);
    for (const text of ['It is ***.', 'Is it ***?', 'No, ***', '"***":"***"'])
      expect(written).toContain(text);
    expect(JSON.stringify(model.requests[0])).toContain('Is it hunter2');
    expect(await store.head('s')).toBeGreaterThan(3);
  });

  it('goes on if the secrets are gone', async () => {
    undo.push(registerMiddleware('box', () => approval()));
    const ping = tool({ name: 'ping', description: 'Pings.', input: z.object({}), execute: () => 'pong' });
    const store = memoryStore();
    const toml = '[allium]\n[allium.middleware]\nchain = [{ use = "box", key = "${CANARY:-}" }]';
    const first = await make(toml, {
      ...{ store, tools: [ping] },
      model: scriptedModel([toolCalls({ name: 'ping' })]),
    });
    expect(first.names).toEqual(['approval', 'hide-secrets']);
    const { pending } = await first.agent.session('s').run('Hi');
    const second = await make(toml, { store, tools: [ping], model: scriptedModel(['done']) }, { CANARY: '' });
    expect(second.names).toEqual(['approval']);
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    expect((await second.agent.session('s').resume({ answers })).text).toBe('done');
  });

  it('runs no approved call with stars in place of the approved values', async () => {
    undo.push(registerMiddleware('box', () => approval()));
    const ran: unknown[] = [];
    const send = tool({
      ...{ name: 'send', description: 'Sends.', input: z.object({ to: z.string() }) },
      execute: ({ to }) => {
        ran.push(to);
        return 'sent';
      },
    });
    const store = memoryStore();
    const toml = '[allium]\n[allium.middleware]\nchain = [{ use = "box", key = "${CANARY}" }]';
    const begin = (...script: Parameters<typeof scriptedModel>[0]) =>
      make(toml, { store, tools: [send], model: scriptedModel(script) });
    const first = await begin(toolCalls({ name: 'send', args: { to: CANARY } }));
    const { pending } = await first.agent.session('s').run('Hi');
    const second = await begin('done', 'done');
    const answers = { [pending[0]!.id]: { type: 'approve' as const, hash: pending[0]!.hash } };
    const again = await second.agent.session('s').resume({ answers });
    expect(ran).toEqual([]);
    expect(again).toMatchObject({ status: 'suspended', pending: [{ arguments: '{"to":"***"}' }] });
    expect(again.pending[0]!.hash).not.toBe(pending[0]!.hash);
  });

  it('is left alone if nothing is secret, or only what is written anyway', async () => {
    const store = memoryStore();
    const model = scriptedModel(['German for acme-tenant-1']);
    const { agent, names } = await make(
      '[allium]\nsystemPrompt = "Speak ${L}."\ntenant = "${T}"\n[allium.limits]\nturns = "${N}"\n[allium.settings]\nstopSequences = ["${P:plain}"]',
      { store, model },
      { L: 'German', T: 'acme-tenant-1', N: '12', P: 'ENDMARK' },
    );
    expect(agent.store).toBe(store);
    expect(names).toEqual([]);
    await agent.session('s').run('German 12 ENDMARK');
    const text = JSON.stringify(await store.read('s', 1));
    expect(text).toContain('"tenant":"acme-tenant-1"');
    expect(text).toContain('German 12 ENDMARK');
  });

  it('keeps the tenant, and stops stay stops', async () => {
    undo.push(
      registerMiddleware('stops', ({ key }: { key: string }) =>
        defineMiddleware({
          name: 'stops',
          beforeModel() {
            throw new StopRun('stopped', `because of ${key}`);
          },
        }),
      ),
    );
    const store = memoryStore();
    const { agent } = await make(
      '[allium]\nmodel = "offline"\ntenant = "${CANARY}"\n[allium.middleware]\nchain = [{ use = "stops", key = "${CANARY}" }]',
      { store },
    );
    expect((await agent.session('s').run('Hi')).status).toBe('stopped');
    const entries = await store.read('s', 1);
    expect(entries[0]).toMatchObject({ type: 'run_start', tenant: CANARY, plan: ['stops'] });
    expect(entries.at(-1)).toMatchObject({ stop: { message: 'because of ***' } });
    expect((await store.list({ tenant: CANARY })).sessions).toHaveLength(1);
  });
});

describe('an observer that throws', () => {
  const TOML = '[allium]\nmodel = "offline"\nobservers = [{ use = "./observer.mjs", key = "${CANARY}" }]';

  it('is reported once for the same error, without secrets', async () => {
    const { agent, close, lines } = await make(TOML);
    await agent.run('Hi');
    await agent.run('Hi again');
    await close();
    expect(lines).toEqual([inspect(['[allium] observer "observer 1" threw: "obs ***"'])]);
  });

  it('is not called slow if it rejects with nothing', async () => {
    const { agent, close, lines } = await make('[allium]\nmodel = "offline"', {
      observers: [() => Promise.reject()],
    });
    await agent.run('Hi');
    await close();
    expect(lines).toEqual([inspect(['[allium] observer "observer 1" threw: undefined'])]);
  });

  it('is reported to onObserverError every time, without secrets', async () => {
    const problems: ObserverProblem[] = [];
    const { agent, close, lines } = await make(TOML, { onObserverError: (one) => void problems.push(one) });
    await agent.run('Hi');
    await close();
    expect(lines).toEqual([]);
    expect(problems.length).toBeGreaterThan(3);
    expectHidden(inspect(problems, { depth: 9 }));
  });
});
