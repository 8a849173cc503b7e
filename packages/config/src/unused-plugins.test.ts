import { memoryStore } from 'allium';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { failing, make } from '../test/agents.js';

describe('options under plugins', () => {
  const START = '[allium]\nmodel = "offline"\nmiddleware.chain = ["retry"]\n';
  const plugin = {
    'node_modules/allium-mw-foo/package.json': {
      ...{ name: 'allium-mw-foo', version: '1.0.0', type: 'module', main: 'index.js' },
      allium: { type: 'middleware', name: 'foo' },
    },
  };

  it.each([
    ['cahce', 'cache'],
    ['retri', 'retry'],
    ['sqlit', 'sqlite'],
    ['fooo', 'foo'],
  ])('for a name that nobody knows are an error: %s', async (name, near) => {
    const error = await failing(`${START}[allium.plugins.${name}]\nx = 1`, plugin);
    expect(error).toMatchObject({ code: 'UNKNOWN_NAME', line: 4, key: `allium.plugins.${name}` });
    expect(error.message).toContain(`called "${name}". Did you mean "${near}"?`);
  });

  it.each(['cache', 'Rate_Limit', 'sqlite', 'foo', 'allium-mw-foo', '"./other.mjs"'])(
    'for something known but not used are a warning: %s',
    async (name) => {
      const { warnings, agent } = await make(`${START}[allium.plugins.${name}]\nx = 1`, plugin);
      const bare = name.replaceAll('"', '');
      expect(warnings).toEqual([
        expect.stringMatching(/allium\.toml:4: .*Nothing in the file uses .* have no effect\./),
      ]);
      expect(warnings[0]).toContain(`\`allium.plugins.${bare}\``);
      expect((await agent.run('Hi')).status).toBe('done');
    },
  );

  it.each([
    ['a model', '[allium]\nmodel = "offline"\n[allium.plugins.offline]'],
    ['a store', '[allium]\nmodel = "offline"\nstore = "file"\n[allium.plugins.file]\nfsync = "never"'],
    ['middleware', `${START}[allium.plugins.RETRY]\nattempts = 2`],
  ])('for %s that is used are neither', async (_, toml) => {
    const { warnings, close } = await make(toml);
    expect(warnings).toEqual([]);
    await close();
  });

  it('for something overridden are not a mistake', async () => {
    const { warnings } = await make(
      '[allium]\nmodel = "offline"\nstore = "file"\n[allium.plugins.file]\nfsync = "never"',
      {},
      { store: memoryStore(), model: scriptedModel(['x']) },
    );
    expect(warnings).toEqual([]);
  });
});
