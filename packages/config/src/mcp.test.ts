import { fileURLToPath } from 'node:url';
import { textOf } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { project } from '../test/project.js';
import { createAgent, loadConfig } from './index.js';

const server = fileURLToPath(new URL('../../mcp/test/fixtures/server.mjs', import.meta.url));
const node = JSON.stringify(process.execPath);

const load = (toml: string, env = {}) => loadConfig({ cwd: project({ 'allium.toml': toml }), env });

it('an agent gets the tools of the MCP servers in its file', async () => {
  const loaded = await load(
    `[allium]
     model = "offline"
     [allium.mcp.fx]
     command = ${node}
     args = [${JSON.stringify(server)}]
     only = ["echo"]
     env = { WORD = "\${WORD}" }`,
    { WORD: 'secret-of-the-file' },
  );
  const model = scriptedModel([
    toolCalls({ name: 'fx_echo', args: { text: 'secret-of-the-file' } }),
    text('done'),
  ]);
  const { agent, names, mcp, close } = await createAgent(loaded, { model });
  try {
    expect(names).toContain('mcp-fx');
    const { messages } = await agent.run('go');
    // What came from the environment is hidden wherever it turns up.
    expect(textOf(messages[2]!)).toBe('echo: ***');
    expect((await mcp[0]!.connect()).tools).toMatchObject([{ name: 'fx_echo' }]);
  } finally {
    await close();
  }
});

it('a wrong option of a server is reported with its place', async () => {
  const loaded = await load('[allium]\nmodel = "offline"\n[allium.mcp.fx]\ncommand = "x"\ntimeoutMs = 0');
  await expect(createAgent(loaded)).rejects.toMatchObject({
    key: 'allium.mcp.fx.timeoutMs',
    line: 5,
    message: expect.stringContaining('Expected `timeoutMs` to be an integer ≥ 1, got 0.'),
  });
});

it('a wrong name of a server is refused', async () => {
  const loaded = await load('[allium]\nmodel = "offline"\n[allium.mcp."a b"]\ncommand = "x"');
  await expect(createAgent(loaded)).rejects.toThrow('Expected `name` to be 1 to 32 letters');
});
