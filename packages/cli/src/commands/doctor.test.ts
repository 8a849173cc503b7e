// `allium doctor`: what is missing.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';
import { checkNode } from './doctor.js';

const here = useProject();

describe('allium doctor', () => {
  it('finds nothing if all is well', async () => {
    const { code, stdout } = await here().allium(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/✓ node/);
    expect(stdout).toContain('✓ model     allium/offline');
    expect(stdout).toContain('✓ chain     approval; 4 tools');
  });

  it('says what to do without a config', async () => {
    const { code, stdout } = await here().allium(['doctor', '--config', 'nowhere.toml']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ config .*nowhere\.toml/);
    expect(stdout).toContain('Write one with: allium init');
  });

  it('finds a key that is missing and goes on looking', async () => {
    here().write(
      'allium.toml',
      here().read('allium.toml').replace('"offline"', '"anthropic/claude-sonnet-4-5"'),
    );
    const { code, stdout } = await here().allium(['doctor'], { env: { ANTHROPIC_API_KEY: '' } });
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ model .*ANTHROPIC_API_KEY/);
    expect(stdout).toMatch(/✓ store/);
    expect(stdout).toMatch(/✓ chain/);
  });

  it('finds a key wherever the config gives it', async () => {
    const config = here().read('allium.toml').replace('"offline"', '"openai/gpt-5"');
    here().write('allium.toml', `${config}\n[allium.plugins.openai]\napiKey = "\${MY_KEY}"\n`);
    const env = { MY_KEY: 'sk-of-the-tests', OPENAI_API_KEY: '' };
    const { stdout } = await here().allium(['doctor'], { env });
    expect(stdout).toContain('✓ keys      MY_KEY is set');
    expect(stdout).not.toContain('OPENAI_API_KEY');
  });

  it('connects to MCP servers, and lists their tools', async () => {
    const server = fileURLToPath(new URL('../../../mcp/test/fixtures/server.mjs', import.meta.url));
    const found = `[allium.mcp.fx]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(server)}]\nonly = ["echo"]`;
    const gone = '[allium.mcp.gone]\ncommand = "no-such-program"';
    here().write('allium.toml', `${here().read('allium.toml')}\n${found}\n${gone}\n`);
    const { code, stdout } = await here().allium(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /! mcp {7}fx: 1 tool\n {14}fx_echo {2}[\w-]{22} {2}Says it again\.\n {12}Read them/,
    );
    expect(stdout).toMatch(/✗ mcp .*MCP server "gone" cannot be reached/);
    expect(stdout.split('fx_echo')).toHaveLength(2);
    // It doesn't send people to the command they have just used.
    expect(stdout).not.toContain('allium doctor');
    const explained = await here().allium(['explain']);
    expect(explained.stdout).toContain('Says it again.');
  });

  it('only warns of an MCP server that is away if runs go on without it', async () => {
    const away = '[allium.mcp.away]\ncommand = "no-such-program"\noptional = true';
    here().write('allium.toml', `${here().read('allium.toml')}\n${away}\n`);
    const { code, stdout } = await here().allium(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/! mcp .*MCP server "away" cannot be reached/);
    expect(stdout).toContain('It is optional');
  });

  it('looks for the variables that the config asks for, and no others', async () => {
    const config = here().read('allium.toml');
    const prompt = `"Say $\${ESCAPED}, \${SET} and \${UNSET:-nothing}." # not \${COMMENT}`;
    here().write(
      'allium.toml',
      config.replace('"Be brief."', () => prompt),
    );
    const { code, stdout } = await here().allium(['doctor'], { env: { SET: 'all', UNSET: '' } });
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => line.includes(' keys '))).toEqual([
      '✓ keys      SET is set',
      '! keys      UNSET is not set, its default is used',
    ]);
  });

  it('never prints a value that came from the environment', async () => {
    const canary = 'canary-5f1e';
    here().write('allium.toml', here().read('allium.toml').replace('"Be brief."', `"\${CANARY}"`));
    for (const args of [
      ['doctor'],
      ['doctor', '--json'],
      ['explain'],
      ['explain', '--json'],
      ['run', 'hi'],
    ]) {
      const { stdout, stderr } = await here().allium(args, { env: { CANARY: canary } });
      expect(stdout + stderr).not.toContain(canary);
    }
  });

  it('keeps such a value out of the errors of others, wherever a run is shown', async () => {
    const env = { CANARY: 'canary-5f1e' };
    const chain = `chain = [\n  { use = "./leaky.mjs", key = "\${CANARY}" },`;
    here().write(
      'allium.toml',
      here()
        .read('allium.toml')
        .replace('chain = [', () => chain),
    );
    here().write(
      'leaky.mjs',
      `export default ({ key }) => ({
        name: 'leaky',
        beforeModel(ctx) {
          ctx.emit('trying', { key });
          throw new Error('the key ' + key + ' is wrong');
        },
      });`,
    );
    for (const args of [['run', 'hi'], ['run', '--json', 'hi'], ['chat']]) {
      const { stdout, stderr, code } = await here().allium(args, { env, input: 'hi\n' });
      expect(code).toBe(1);
      expect(stdout + stderr).toContain('the key *** is wrong');
      expect(stdout + stderr).not.toContain(env.CANARY);
    }
    const chat = here().terminal(['chat'], { env });
    await chat.until('Session chat-');
    chat.type(`hi${KEYS.enter}`);
    await chat.until('the key *** is wrong');
    expect(chat.screen()).not.toContain(env.CANARY);
  });

  it('finds a store that cannot be reached', async () => {
    here().write('file', '');
    here().write('allium.toml', here().read('allium.toml').replace('.allium/sessions', 'file/sessions'));
    const { code, stdout } = await here().allium(['doctor', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ check: 'store', status: 'problem' }));
  });

  it('finds sessions that are damaged, wherever and however many', async () => {
    await here().allium(['run', '--session', 'ann', 'hello']);
    const [file] = readdirSync(join(here().folder, '.allium/sessions'));
    const path = `.allium/sessions/${file}`;
    here().write(path, `${here().read(path)}\nnot a line of a journal\n`);
    here().write('.allium/sessions/ben.jsonl', 'not a line of a journal\n');
    const { code, stdout } = await here().allium(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toMatch(/✗ store .*ann/);
    expect(stdout).toMatch(/✗ store .*ben/);
  });

  it('reports an impossible order of middleware, and warns of a dangerous one', async () => {
    const config = here().read('allium.toml');
    here().write('allium.toml', config.replace('chain = [', 'chain = [\n  "aproval",'));
    expect((await here().allium(['doctor'])).stdout).toMatch(/✗ chain .*aproval/);
    here().write('allium.toml', config.replace('chain = [', 'chain = [\n  { use = "retry", on = "tool" },'));
    const { code, stdout } = await here().allium(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/! chain .*may run .*"pay" twice/);
  });
});

it.each([
  ['20.19.0', 'ok'],
  ['24.0.0', 'ok'],
  ['20.18.3', 'problem'],
  ['18.20.0', 'problem'],
])('Node %s is %s', (version, status) => {
  expect(checkNode(version)).toMatchObject({ status });
});
