import {
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelSettings,
  memoryStore,
  tool,
} from 'allium';
import { registerMiddleware, registerTool } from 'allium/registry';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { project } from '../test/project.js';
import {
  ConfigError,
  type CreateAgentOverrides,
  createAgent,
  defineConfig,
  loadConfig,
  resolveConfigModel,
  resolveConfigStore,
  Secret,
} from './index.js';

type Files = Record<string, string | object>;

const make = async (toml: string, files: Files = {}, overrides: CreateAgentOverrides = {}, env = {}) =>
  createAgent(await loadConfig({ cwd: project({ 'allium.toml': toml, ...files }), env }), overrides);
const failing = (...args: Parameters<typeof make>): Promise<ConfigError> =>
  make(...args).then(
    () => Promise.reject(new Error('It was made.')),
    (error) => (error instanceof ConfigError ? error : Promise.reject(error)),
  );

describe('createAgent', () => {
  it.each([undefined, 'allium.toml', { model: 'offline' }, loadConfig.bind(undefined, {})])(
    'refuses what loadConfig() did not return: %s',
    async (loaded) => {
      const wrong = {
        code: 'INVALID_OPTION',
        message: expect.stringContaining('`loaded` to be what loadConfig() returns'),
      };
      await expect(createAgent(loaded as never)).rejects.toMatchObject(wrong);
      await expect(resolveConfigStore(loaded as never)).rejects.toMatchObject(wrong);
      await expect(resolveConfigModel(loaded as never)).rejects.toMatchObject(wrong);
    },
  );

  it('makes the agent of a file: the example of the guide', async () => {
    const { agent, names, model, store, close } = await make(
      `
      [allium]
      model = "offline"
      name = "helper"
      systemPrompt = "Be \${MOOD}."
      store = "sqlite"
      tenant = "acme"
      toolExecution = "sequential"
      [allium.limits]
      turns = "\${TURNS}"
      [allium.sessionLimits]
      tokens = 5000
      [allium.settings]
      temperature = 0.5
      [allium.middleware]
      chain = ["rate-limit", "cache", "retry", { use = "Retry", on = "tool", attempts = 2 }, "stopwatch"]
      [allium.plugins.cache]
      ttlMs = 60000
      [allium.plugins.rate_limit]
      limit = 5
      perMs = 1000
      [allium.plugins.stopwatch]
      log = { import = "./quiet.mjs", name = "log" }`,
      { 'quiet.mjs': 'export const log = () => {};' },
      {},
      { MOOD: 'kind', TURNS: '7' },
    );
    expect(names).toEqual(['rate-limit', 'cache', 'retry', 'retry#2', 'stopwatch']);
    expect(agent).toMatchObject({
      ...{ name: 'helper', systemPrompt: 'Be kind.', tenant: 'acme', toolExecution: 'sequential' },
      ...{
        limits: { turns: 7 },
        sessionLimits: { tokens: 5000 },
        settings: { temperature: 0.5 },
        model,
        store,
      },
    });
    expect((await agent.session('a').run('Hi')).status).toBe('done');
    expect(await store.head('a')).toBeGreaterThan(0);
    await close();
    await close();
    await expect(async () => store.list()).rejects.toThrow();
  });

  it('takes overrides, and closes only what it opened itself', async () => {
    let closed = 0;
    const store = Object.assign(memoryStore(), { close: () => void closed++ });
    const seen: string[] = [];
    const { agent, names, close } = await make(
      '[allium]\nmodel = "nonsense"\nstore = "nonsense"\n[allium.limits]\nturns = 9\ntoolCalls = 3',
      {},
      {
        model: scriptedModel(['Mine.']),
        store,
        middleware: [defineMiddleware({ name: 'mine', beforeRun() {} })],
        observers: [(event) => void seen.push(event.type)],
        limits: { turns: 2 },
      },
    );
    expect((await agent.run('Hi')).text).toBe('Mine.');
    expect([names, agent.limits, agent.store]).toEqual([['mine'], { turns: 2, toolCalls: 3 }, store]);
    await close();
    expect(seen).toContain('agent_end');
    expect(closed).toBe(0);
    expect((await make('', {}, { model: 'offline' })).model.id).toBe('offline');
    await expect(make('', {}, { modle: 1 } as object)).rejects.toThrow('Did you mean `model`?');
  });

  it('blames no key of the file for a mistake in an override', async () => {
    const toml = '\n[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["retry"]';
    expect(await failing(toml, {}, { clock: 5 as never })).toMatchObject({ line: 2, key: 'allium' });
  });

  it('takes all settings of a model', async () => {
    // Where the blocks of a prompt end is what the agent finds out.
    const settings: Required<Omit<ModelSettings, 'systemBlocks'>> = {
      ...{
        maxOutputTokens: 9,
        temperature: 0.5,
        topP: 0.9,
        stopSequences: ['.'],
        seed: 1,
        toolChoice: 'none',
      },
      responseSchema: { type: 'object' },
      provider: { anthropic: { effort: 'low' } },
      systemMetadata: { provider: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    };
    const dir = project({ 'allium.json': { allium: { model: 'offline', settings } } });
    expect((await createAgent(await loadConfig({ cwd: dir }))).agent.settings).toEqual(settings);
  });

  it('asks for a model', async () => {
    expect(await failing('[allium]')).toMatchObject({
      key: 'allium.model',
      message: expect.stringContaining('model = "offline"'),
    });
  });

  it('opens the store alone', async () => {
    const loaded = await loadConfig({
      cwd: project({ 'allium.toml': '[allium]\nmodel = "nonsense"\nstore = { use = "file", dir = "s" }' }),
    });
    const { store, close } = await resolveConfigStore(loaded);
    expect((await store.list()).sessions).toEqual([]);
    await close();
    expect((await (await resolveConfigStore({ ...loaded, config: {} })).store.list()).sessions).toEqual([]);
  });
});

describe('the chain', () => {
  const noted = (name: string, scope: 'run' | 'session'): Middleware =>
    defineMiddleware({ name, state: [defineState({ name: 'n', scope, initial: 0 })], beforeRun() {} });

  it('may have the same middleware twice, with session state as well', async () => {
    const undo = [
      registerMiddleware('keeps', () => noted('keeps', 'session')),
      registerMiddleware('passes', () => noted('passes', 'run')),
      registerMiddleware('frozen', () => Object.freeze(noted('frozen', 'session'))),
    ];
    const chain =
      '["keeps", "passes", "keeps", { use = "keeps", as = "third" }, "passes", "keeps", "frozen", "frozen"]';
    const { names, agent } = await make(`[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ${chain}`);
    expect(names).toEqual([
      'keeps',
      'passes',
      'keeps#2',
      'third',
      'passes#2',
      'keeps#3',
      'frozen',
      'frozen#2',
    ]);
    expect([...agent.plan.cells.values()]).toContain('keeps#2:n');
    for (const one of undo) one();
  });

  it('takes modules: a factory, a middleware, a list, an export by name', async () => {
    const files = {
      'a.mjs': 'export default ({ name = "a" } = {}) => ({ name, beforeRun() {} });',
      'b.mjs': 'export default { name: "b", beforeRun() {} };',
      'c.mjs': 'export const one = () => [{ name: "c1", beforeRun() {} }, [{ name: "c2", beforeRun() {} }]];',
    };
    const chain = '["./a.mjs", { use = "./a.mjs", name = "again" }, "./b.mjs", "./c.mjs#one"]';
    const { names } = await make(`[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ${chain}`, files);
    expect(names).toEqual(['a', 'again', 'b', 'c1', 'c2']);
  });

  it('holds middleware itself in a config module', async () => {
    const mine = Object.freeze(defineMiddleware({ name: 'mine', beforeRun() {} }));
    const config = defineConfig({
      model: scriptedModel(['Hi.']),
      store: memoryStore(),
      middleware: { chain: [mine, 'retry', mine] },
    });
    const loaded = await loadConfig({ cwd: project({ 'allium.config.mjs': 'export default {};' }) });
    const { names, agent } = await createAgent({ ...loaded, config });
    expect(names).toEqual(['mine', 'retry', 'mine#2']);
    expect((await agent.run('Hi')).text).toBe('Hi.');
  });
});

describe('every mistake has a place', () => {
  const chain = (item: string, more = '') =>
    `[allium]\nmodel = "offline"\n[allium.middleware]\nchain = [\n  "cache",\n  ${item},\n]\n${more}`;

  it.each([
    [
      'a name nobody knows',
      chain('"rety"'),
      6,
      'allium.middleware.chain[1]',
      'UNKNOWN_NAME',
      'Did you mean "retry"? There are: approval,',
    ],
    [
      'an option out of range',
      chain('{ use = "retry",\n    attempts = 0 }'),
      7,
      'allium.middleware.chain[1].attempts',
      'INVALID_OPTION',
      'got 0',
    ],
    [
      'an option nobody knows',
      chain('{ use = "retry",\n    atempts = 2 }'),
      7,
      'allium.middleware.chain[1].atempts',
      'INVALID_OPTION',
      'Did you mean `attempts`?',
    ],
    [
      'an option under plugins',
      chain('"retry"', '[allium.plugins.Retry]\nfactor = 0.5'),
      9,
      'allium.plugins.Retry.factor',
      'INVALID_OPTION',
      'got 0.5',
    ],
    ['options that lack one', chain('"budget"'), 6, 'allium.middleware.chain[1]', 'INVALID_OPTION', ''],
    [
      'a file that is not there',
      chain('"./nope.mjs"'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      'There is no file',
    ],
    [
      'a file that throws',
      chain('"./throws.mjs"'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      'thrown on load',
    ],
    [
      'an export that is not there',
      chain('"./empty.mjs#x"'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      'It has: y.',
    ],
    [
      'no default export',
      chain('"./empty.mjs"'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      'Name one of them with ./empty.mjs#<export>',
    ],
    [
      'code without a default export',
      chain('{ use = "retry", retryOn = { import = "./empty.mjs" } }'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      './empty.mjs has no export `default`. It exports: y. Choose one with `name`.',
    ],
    [
      'options for an object',
      chain('{ use = "./object.mjs", x = 1 }'),
      6,
      'allium.middleware.chain[1]',
      'CONFIG_INVALID',
      'it takes no options',
    ],
    [
      'something else than a middleware',
      chain('"./number.mjs"'),
      4,
      'allium.middleware.chain',
      'INVALID_MIDDLEWARE',
      'is 5, not a middleware',
    ],
    [
      'options a schema refuses',
      chain('{ use = "./schema.mjs",\n    deep = { n = "x" } }'),
      7,
      'allium.middleware.chain[1].deep.n',
      'INVALID_OPTION',
      'Expected `deep.n` to be a number, got "x". This is an option of "./schema.mjs".',
    ],
    [
      'an impossible order',
      chain('{ use = "./order.mjs" }'),
      4,
      'allium.middleware.chain',
      'ORDER_IMPOSSIBLE',
      '',
    ],
    [
      'a model nobody knows',
      '[allium]\n\nmodel = "offlin"',
      3,
      'allium.model',
      'UNKNOWN_NAME',
      'Did you mean "offline"?',
    ],
    [
      'a model without a key',
      '[allium]\nmodel = "openai/gpt-5"',
      2,
      'allium.model',
      'MISSING_API_KEY',
      'OPENAI_API_KEY',
    ],
    [
      'an option of a model',
      '[allium]\n[allium.model]\nuse = "openai/gpt-5"\napiKey = "k"\nprice = { input = 1 }',
      5,
      'allium.model.price.output',
      'INVALID_OPTION',
      'Expected `price.output` to be a number ≥ 0',
    ],
    [
      'a store nobody knows',
      '[allium]\nmodel = "offline"\nstore = { use = "sqlit" }',
      3,
      'allium.store',
      'UNKNOWN_NAME',
      'Did you mean "sqlite"?',
    ],
    [
      'a store option',
      '[allium]\nmodel = "offline"\n[allium.store]\nuse = "sqlite"\nfsync = "x"',
      5,
      'allium.store.fsync',
      'INVALID_OPTION',
      '"x"',
    ],
    [
      'something else than a store',
      `${chain('"retry"')}\n[allium.store]\nuse = "./number.mjs"`,
      9,
      'allium.store',
      'CONFIG_INVALID',
      'Expected a store, got 5.',
    ],
    [
      'half a store',
      '[allium]\nmodel = "offline"\nstore = "./half.mjs"',
      3,
      'allium.store',
      'INVALID_OPTION',
      'without read, head,',
    ],
    [
      'two tools of one name in two files',
      '[allium]\nmodel = "offline"\ntools = [\n  "./tool.mjs",\n  "./tool.mjs#again",\n]',
      5,
      'allium.tools[1]',
      'DUPLICATE_TOOL',
      'Two tools are called "same".',
    ],
    [
      'two tools of one name in one file',
      chain('"retry"').replace('[allium]\n', '[allium]\ntools = ["./tool.mjs#list"]\n'),
      2,
      'allium.tools[0]',
      'DUPLICATE_TOOL',
      'Two tools are called "same".',
    ],
    [
      'a module without tools',
      '[allium]\nmodel = "offline"\ntools = ["./empty.mjs"]',
      3,
      'allium.tools[0]',
      'CONFIG_INVALID',
      'has no tools',
    ],
    [
      'a tool nobody registered',
      '[allium]\nmodel = "offline"\ntools = ["hammer"]',
      3,
      'allium.tools[0]',
      'UNKNOWN_NAME',
      'No tool is called "hammer"',
    ],
    [
      'a model without its provider',
      '[allium]\nmodel = "gpt-5"',
      2,
      'allium.model',
      'UNKNOWN_NAME',
      'A model of a provider is written like "openai/gpt-5".',
    ],
    [
      'an observer by name',
      '[allium]\nmodel = "offline"\nobservers = ["log"]',
      3,
      'allium.observers[0]',
      'CONFIG_INVALID',
      'Observers must be files of your own',
    ],
    [
      'an observer without default',
      '[allium]\nmodel = "offline"\nobservers = ["./empty.mjs"]',
      3,
      'allium.observers[0]',
      'CONFIG_INVALID',
      'It exports: y',
    ],
  ])('%s', async (_, toml, line, key, code, message) => {
    const files = {
      'throws.mjs': 'throw new Error("thrown on load");',
      'empty.mjs': 'export const y = 1;',
      'object.mjs': 'export default { name: "o", beforeRun() {} };',
      'number.mjs': 'export default () => 5;',
      'half.mjs': 'export default () => ({ append() {} });',
      'tool.mjs':
        'const same = { name: "same", input: {}, execute() {} }; export { same as default, same as again }; export const list = [same, same];',
      'schema.mjs':
        'export const optionsSchema = { type: "object", properties: { deep: { type: "object", properties: { n: { type: "number" } } } } }; export default () => 1;',
      'order.mjs': 'export default () => ({ name: "o", order: { outside: ["cache"] }, beforeRun() {} });',
    };
    const error = await failing(toml, files);
    expect(error).toMatchObject({ code, key, line });
    expect(error.message).toContain(`allium.toml:${line}: \`${key}\`: `);
    expect(error.message).toContain(message);
  });

  it.each([
    ['model', '[allium]\nmodel = "own.mjs"'],
    ['store', '[allium]\nmodel = "offline"\nstore = "own.mjs"'],
    ['tools[0]', '[allium]\nmodel = "offline"\ntools = ["own.mjs"]'],
    ['middleware.chain[1]', chain('"own.mjs"')],
    ['observers[0]', '[allium]\nmodel = "offline"\nobservers = ["own.mjs"]'],
  ])('a file without ./ as %s: it says what is missing', async (key, toml) => {
    const { message } = await failing(toml, { 'own.mjs': 'export default {};' });
    expect(message).toContain(`\`allium.${key}\`: `);
    expect(message).toContain('"own.mjs".');
    expect(message).toMatch(/\. A file of yours begins with \.\/$/);
  });
});

describe('tools and observers', () => {
  it('come from modules, as default, list, by name or from a function, and from the registry', async () => {
    const hammer = tool({ name: 'hammer', description: '', input: z.object({}), execute: () => 'bang' });
    const undo = registerTool('hammer', hammer);
    const def = (name: string) =>
      `tool({ name: '${name}', description: '', input: { '~standard': { version: 1, vendor: 'x', validate: (value) => ({ value }), jsonSchema: { input: () => ({}) } } }, execute: () => '' })`;
    const head = "import { tool } from 'allium';\n";
    const { agent, close } = await make(
      '[allium]\nmodel = "offline"\ntools = ["./list.mjs", "./named.mjs", { use = "./made.mjs", name = "made" }, "hammer", "./named.mjs#c"]\nobservers = ["./log.mjs", { use = "./log.mjs#to", list = "second" }]',
      {
        'list.mjs': `${head}export default [${def('a')}];`,
        'named.mjs': `${head}export const b = ${def('b')}; export const other = 1; export const c = () => ${def('c')};`,
        'made.mjs': `${head}export default ({ name }) => { const made = ${def('x')}; return { ...made, name }; };`,
        'log.mjs':
          'globalThis.seen = {}; export default (event) => { (globalThis.seen.first ??= []).push(event.type); }; export const to = ({ list }) => ({ onEvent: (event) => { (globalThis.seen[list] ??= []).push(event.type); } });',
      },
    );
    expect(agent.plan.tools.map(({ name }) => name)).toEqual(['a', 'b', 'made', 'hammer', 'c']);
    await agent.run('Hi');
    await close();
    const { seen } = globalThis as unknown as { seen: Record<string, string[]> };
    expect(seen.first).toEqual(seen.second);
    expect(seen.first).toContain('agent_end');
    undo();
  });
});

it('secrets are revealed to the receiver, at any depth', async () => {
  const seen: unknown[] = [];
  const undo = registerMiddleware(
    'takes',
    (options) => {
      seen.push(options);
      return defineMiddleware({ name: 'takes', beforeRun() {} });
    },
    {
      optionsSchema: {
        type: 'object',
        properties: {
          n: { type: 'number' },
          on: { type: 'boolean' },
          tell: { type: ['boolean', 'string'] },
          to: { type: ['boolean', 'string'] },
        },
      },
    },
  );
  const toml =
    '[allium]\nmodel = "${MODEL}"\n[allium.middleware]\nchain = [{ use = "takes", key = "Bearer ${KEY}", n = "${N}", on = "${ON}", tell = "${ON}", to = "${KEY}", list = [{ x = "${KEY}" }] }]';
  const { agent } = await make(toml, {}, {}, { MODEL: 'offline', KEY: 'k', N: '3', ON: 'false' });
  expect(seen).toEqual([{ key: 'Bearer k', n: 3, on: false, tell: false, to: 'k', list: [{ x: 'k' }] }]);
  expect(agent.model.id).toBe('offline');
  expect(new Secret('x').reveal()).toBe('x');
  undo();
});

it('models get numbers and booleans from the environment', async () => {
  const toml = (option: string) =>
    `[allium]\nmodel = { use = "openai-compatible/x@http://localhost:1/v1", ${option} }`;
  const price = 'price = { input = "${P}", output = 2 }';
  const { model } = await make(
    toml(`acceptUnfinished = "\${F}", ${price}`),
    {},
    {},
    { F: 'false', P: '1.5' },
  );
  expect(model.price).toEqual({ input: 1.5, output: 2 });
  expect(await failing(toml('acceptUnfinished = "${F}"'), {}, {}, { F: 'no' })).toMatchObject({
    ...{ code: 'INVALID_OPTION', line: 2, key: 'allium.model.acceptUnfinished' },
    message: expect.stringContaining('Expected `acceptUnfinished` to be true or false'),
  });
});
