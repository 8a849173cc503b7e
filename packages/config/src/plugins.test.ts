import { memoryStore } from 'allium';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { project } from '../test/project.js';
import { createAgent, installedPlugins, loadConfig } from './index.js';

afterEach(() => vi.unstubAllGlobals());

const plugin = (name: string, type: string, own: string, more: object = {}) => ({
  name,
  version: '1.2.3',
  type: 'module',
  exports: { '.': { types: './x.d.ts', import: './index.js' } },
  allium: { type, name: own },
  ...more,
});
const model =
  'export default ({ say }, { id }) => ({ provider: "parrot", id, async *stream() { yield { type: "text", text: say }; yield { type: "finish", reason: "stop" }; } });';
const empty = (name: string) => `export default () => ({ name: ${JSON.stringify(name)}, beforeRun() {} });`;

const files = {
  'node_modules/allium-model-parrot/package.json': plugin('allium-model-parrot', 'model', 'parrot'),
  'node_modules/allium-model-parrot/index.js': model,
  'node_modules/allium-store-tin/package.json': plugin('allium-store-tin', 'store', 'tin', {
    allium: { type: 'store', name: 'tin', entry: 'deep/entry.js' },
  }),
  'node_modules/allium-store-tin/deep/entry.js': 'export default () => globalThis.openTin();',
  'node_modules/@acme/allium-mw-audit/package.json': plugin(
    '@acme/allium-mw-audit',
    'middleware',
    'acme-audit',
  ),
  'node_modules/@acme/allium-mw-audit/index.js': empty('acme-audit'),
  'node_modules/allium-mw-plain/package.json': { name: 'allium-mw-plain', version: '0.0.1' },
  'node_modules/allium-mw-odd/package.json': plugin('allium-mw-odd', 'middleware', 'odd'),
  'node_modules/allium-mw-odd/index.js': 'export const nothing = 1;',
  'app/node_modules/allium-mw-near/package.json': plugin('allium-mw-near', 'middleware', 'near'),
  'app/node_modules/allium-mw-near/index.js': empty('near'),
  'app/node_modules/left-pad/package.json': '{ not even JSON',
  'app/node_modules/allium-model-parrot/package.json': plugin('allium-model-parrot', 'model', 'parrot', {
    version: '9.0.0',
  }),
  'app/node_modules/allium-model-parrot/index.js': model,
};

const make = async (toml: string) =>
  createAgent(
    await loadConfig({ cwd: `${project({ ...files, 'app/allium.toml': `[allium]\n${toml}` })}/app` }),
  );

describe('installedPlugins', () => {
  it('lists those of this folder and the ones above, the nearest of each, scoped ones too', async () => {
    const dir = project(files);
    expect(
      (await installedPlugins(`${dir}/app`)).map((one) => [one.package, one.type, one.name, one.version]),
    ).toEqual([
      ['@acme/allium-mw-audit', 'middleware', 'acme-audit', '1.2.3'],
      ['allium-model-parrot', 'model', 'parrot', '9.0.0'],
      ['allium-mw-near', 'middleware', 'near', '1.2.3'],
      ['allium-mw-odd', 'middleware', 'odd', '1.2.3'],
      ['allium-store-tin', 'store', 'tin', '1.2.3'],
    ]);
    expect(await installedPlugins(project({}))).toEqual([]);
  });
});

describe('a plugin in a config', () => {
  it('is found from the folder of the file: middleware, a model with an id, a store', async () => {
    vi.stubGlobal('openTin', memoryStore);
    const { agent, names, store, close } = await make(
      'model = { use = "parrot/polly", say = "Hello!" }\nstore = "tin"\n[allium.middleware]\nchain = ["near", "acme_audit", "@acme/allium-mw-audit"]',
    );
    expect(names).toEqual(['near', 'acme-audit', 'acme-audit#2']);
    expect(agent.model.id).toBe('polly');
    expect((await agent.session('a').run('Hi')).text).toBe('Hello!');
    expect(await store.head('a')).toBeGreaterThan(0);
    await close();
  });

  it.each([
    [
      '"plain"',
      'PLUGIN_INVALID',
      'The plugin allium-mw-plain cannot be used. Its package.json has no table "allium"',
    ],
    [
      '"odd"',
      'PLUGIN_INVALID',
      'Its default export must be a function that makes a middleware. It exports: nothing.',
    ],
    ['"allium-store-tin"', 'PLUGIN_INVALID', 'It is a store, but a middleware is needed here.'],
    ['"nearr"', 'UNKNOWN_NAME', 'Did you mean "near"?'],
    ['"far"', 'UNKNOWN_NAME', 'A plugin would be allium-mw-far, installed beside the config file'],
  ])('is refused: %s', async (item, code, message) => {
    await expect(make(`model = "offline"\n[allium.middleware]\nchain = [${item}]`)).rejects.toMatchObject({
      ...{ code, line: 4, key: 'allium.middleware.chain[0]' },
      message: expect.stringContaining(message),
    });
  });
});
