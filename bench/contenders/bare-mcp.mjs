/** The floor of `mcp`: the official client alone. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { listening, program } from '../work/mcp-server.mjs';

export const what = '`client.callTool()` of `@modelcontextprotocol/client`, one call after the other';

async function calls(transport, count) {
  const client = new Client({ name: 'bench', version: '1.0.0' });
  await client.connect(transport);
  await client.listTools();
  return async () => {
    let done = 0;
    for (let i = 0; i < count; i++) {
      const { content } = await client.callTool({ name: 'echo', arguments: { message: `m${i}` } });
      if (content[0].text === `Echo: m${i}`) done += 1;
    }
    return done;
  };
}

export const stdio = ({ count }) => calls(new StdioClientTransport({ ...program, stderr: 'ignore' }), count);
export const http = async ({ count }) =>
  calls(new StreamableHTTPClientTransport(new URL(await listening())), count);
