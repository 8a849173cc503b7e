import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { registered } from 'allium/registry';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { schemaPath } from '../../../scripts/config-schema.mjs';
import { optionDescriptions } from '../../../scripts/option-docs.mjs';
import { OPTIONS } from '../../mcp/src/options.js';
import { editorSchema } from './editor-schema.js';
import { configJsonSchema } from './index.js';

const validate = new Ajv2020({ strict: false }).compile(configJsonSchema());
const problems = (toml: string) => (validate(parse(toml)) ? [] : (validate.errors ?? []));

describe('the JSON Schema of the config', () => {
  it('is the file that is shipped: npm run build && node scripts/config-schema.mjs', async () => {
    expect(configJsonSchema()).toEqual(await editorSchema(optionDescriptions(), OPTIONS));
    expect(JSON.parse(readFileSync(schemaPath, 'utf8'))).toEqual(configJsonSchema());
  });

  it('accepts the config of the guide', () => {
    const toml = `
      [allium]
      model = { use = "openai/gpt-5", apiKey = "\${KEY}", acceptUnfinished = "\${LAX:-false}", fetch = { import = "./fetch.mjs" } }
      systemPrompt = "Be kind."
      store = { use = "sqlite", path = "x.db" }
      tools = ["./tools.mjs"]
      [allium.limits]
      turns = 20
      costUsd = "\${MOST:-1}"
      [allium.middleware]
      chain = ["rate-limit", "cache", "retry", { use = "retry", on = "tool", attempts = 2 }, { use = "my-plugin", x = 1 }]
      [allium.plugins.cache]
      ttlMs = 60000`;
    expect(problems(toml)).toEqual([]);
  });

  it('knows the options of MCP servers', () => {
    const server =
      '[allium.mcp.files]\ncommand = "npx"\nargs = ["-y", "x"]\nonly = ["read"]\nonChange = "allow"';
    expect(problems(server)).toEqual([]);
    expect(problems('[allium.mcp.x]\nurl = "${URL}"\ntimeoutMs = "${MS:-5}"')).toEqual([]);
  });

  it.each([
    '[allium.mcp.x]\ncomand = "npx"',
    '[allium.mcp.x]\ncommand = "npx"\ntimeoutMs = 0',
    '[allium.mcp.x]\nurl = "ftp://x"',
    '[allium]\nmodle = "x"',
    '[allium.limits]\nturns = -1',
    '[allium]\nmodel = { use = "openai/x", acceptUnfinished = "no" }',
    '[allium]\nmodel = { use = "openai/x", apikey = "x" }',
    '[allium.middleware]\nchain = [{ use = "retry", atempts = 2 }]',
    '[allium.middleware]\nchain = [{ use = "retry", on = "run" }]',
    '[allium.plugins.cache]\nttlMs = "soon"',
    '[allium.middleware]\nchain = [{ attempts = 2 }]',
    'model = "x"',
  ])('refuses %j', (toml) => {
    expect(problems(toml)).not.toEqual([]);
  });

  it('knows the options of every middleware, model and store that comes along', () => {
    const { $defs } = configJsonSchema() as { $defs: object };
    for (const kind of ['middleware', 'model', 'store'] as const)
      for (const { name } of registered(kind)) expect($defs).toHaveProperty(`${kind}-${name}`);
    expect($defs).toHaveProperty(
      'middleware-retry.properties.attempts.description',
      expect.stringContaining('Default: 3'),
    );
  });
});
