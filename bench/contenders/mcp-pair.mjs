/** Calls of a tool on an MCP server, in turns: by the official client alone, and by an agent. */
import { mcp } from '@allium/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Agent } from 'allium';
import { median } from '../lib/stats.mjs';
import { listening, program } from '../work/mcp-server.mjs';

export const what =
  'one process: before each turn of an agent with `mcp()`, whose model answers at once, `client.callTool()` of `@modelcontextprotocol/client` calls the same tool';

const TURNS = 100;

async function pairs(transport, reach, { calls }) {
  const client = new Client({ name: 'bench', version: '1.0.0' });
  await client.connect(transport);
  await client.listTools();
  const bare = async (i) => {
    const { content } = await client.callTool({ name: 'echo', arguments: { message: `b${i}` } });
    if (content[0].text !== `Echo: b${i}`) throw new Error(`The client got ${content[0].text}`);
  };
  const middleware = [mcp({ name: 'x', ...reach })];
  const taken = [];
  while (taken.length < 2 * calls) {
    const model = alternating(bare, taken);
    const agent = new Agent({ model, middleware, limits: { turns: TURNS + 1 } });
    const { messages } = await agent.run('go');
    const results = messages.filter(({ role }) => role === 'tool');
    if (!results.every(({ content }, i) => content[0].text === `Echo: m${i}`))
      throw new Error('The agent got a wrong answer.');
  }
  // The first half warms up.
  const measured = taken.slice(-calls);
  return {
    bareUs: median(measured.map(([alone]) => alone)),
    ownUs: median(measured.map(([, own]) => own)),
    addedMs: median(measured.map(([alone, own]) => own - alone)) / 1000,
  };
}

/** What a call leaves to be done, such as closing its stream, belongs to it and not to the next one. */
const isOver = () => new Promise(setImmediate);

/** A model that calls `echo` in every turn. Before it, it waits for a call of the client alone. */
function alternating(bare, taken) {
  const usage = { inputTokens: 10, outputTokens: 5 };
  let alone;
  let begun;
  return {
    provider: 'bench',
    id: 'alternating',
    async *stream({ messages }) {
      await isOver();
      if (begun !== undefined) taken.push([alone, (performance.now() - begun) * 1000]);
      const i = (messages.length - 1) / 2;
      if (i === TURNS) {
        yield { type: 'text', text: 'done' };
        yield { type: 'finish', reason: 'stop', usage };
        return;
      }
      const before = performance.now();
      await bare(i);
      await isOver();
      begun = performance.now();
      alone = (begun - before) * 1000;
      yield { type: 'tool-call', id: `c${i}`, name: 'x_echo', arguments: `{"message":"m${i}"}` };
      yield { type: 'finish', reason: 'tool-calls', usage };
    },
  };
}

export const stdio = (task) =>
  pairs(new StdioClientTransport({ ...program, stderr: 'ignore' }), program, task);

export async function http(task) {
  const url = await listening();
  return pairs(new StreamableHTTPClientTransport(new URL(url)), { url }, task);
}
