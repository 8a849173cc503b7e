import { expect, it } from 'vitest';
import { failing } from '../test/agents.js';

it.each([
  ['model = "./throws.mjs"', 'allium.model', /throws\.mjs:3: no such luck/],
  ['store = "./text.mjs"', 'allium.store', /text\.mjs: just text/],
  ['store = "./nothing.mjs"', 'allium.store', /nothing\.mjs: null/],
  ['tools = ["./lacks.mjs"]', 'allium.tools[0]', /lacks\.mjs(:1)?: Cannot find package 'allium-nowhere'/],
  ['observers = ["./throws.mjs"]', 'allium.observers[0]', /throws\.mjs:3: no such luck/],
  ['middleware.chain = ["broken"]', 'allium.middleware.chain[0]', /index\.js:2: Unexpected token '='/],
])('names the module that cannot be loaded, and the line: %s', async (toml, key, message) => {
  const model = toml.startsWith('model') ? '' : 'model = "offline"\n';
  const error = await failing(`[allium]\n${model}${toml}`, {
    'throws.mjs': '// A comment.\n\nthrow new TypeError("no such luck");\n',
    'text.mjs': 'throw "just text";\n',
    'nothing.mjs': 'throw null;\n',
    'lacks.mjs': "import 'allium-nowhere';\n",
    'node_modules/allium-mw-broken/package.json': {
      ...{ name: 'allium-mw-broken', version: '1.0.0', type: 'module', main: 'index.js' },
      allium: { type: 'middleware', name: 'broken' },
    },
    'node_modules/allium-mw-broken/index.js': '\nexport default = 1;\n',
  });
  expect(error).toMatchObject({ key, line: model ? 3 : 2, code: 'CONFIG_INVALID' });
  expect(error.message).toMatch(message);
});
