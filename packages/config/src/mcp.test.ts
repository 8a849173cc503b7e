import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { textOf } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { project } from '../test/project.js';
import { createAgent, loadConfig } from './index.js';

const server = fileURLToPath(new URL('../../mcp/test/fixtures/server.mjs', import.meta.url));
const node = JSON.stringify(process.execPath);

/** A server whose tool is described by the folder it runs in. */
const SAYS_ITS_FOLDER = `
  import { createInterface } from 'node:readline';
  const results = {
    initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }),
    'tools/list': () => ({ tools: [{ name: 'x', description: process.cwd(), inputSchema: { type: 'object' } }] }),
  };
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method](params) }));
  });
`;

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

it.each([
  ['', ''],
  ['cwd = "sub"', '/sub'],
])('a server starts in the folder of the file: %s', async (cwd, folder) => {
  const dir = project({
    'allium.toml': `[allium]\nmodel = "offline"\n[allium.mcp.fx]\ncommand = ${node}\nargs = ["server.mjs"]\n${cwd}`,
    'server.mjs': SAYS_ITS_FOLDER,
    'sub/server.mjs': SAYS_ITS_FOLDER,
  });
  const { mcp, close } = await createAgent(await loadConfig({ cwd: dir, env: {} }));
  try {
    expect((await mcp[0]!.connect()).tools[0]!.description).toBe(realpathSync(dir) + folder);
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
