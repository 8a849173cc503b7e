/** Tools of an MCP server, called by an agent. */
import { mcp } from '@allium/mcp';
import { Agent } from 'allium';
import { listening, program } from '../work/mcp-server.mjs';

export const what = 'an agent with `mcp()`: a turn per call, in which the model answers at once';

function calls(reach, count) {
  const agent = new Agent({
    model: callingEcho(count),
    middleware: [mcp({ name: 'x', ...reach })],
    limits: { turns: count + 1 },
  });
  return async () => {
    const { messages } = await agent.run('go');
    const results = messages.filter(({ role }) => role === 'tool');
    return results.filter(({ content }, i) => content[0].text === `Echo: m${i}`).length;
  };
}

function callingEcho(count) {
  const usage = { inputTokens: 10, outputTokens: 5 };
  return {
    provider: 'bench',
    id: 'echoing',
    async *stream({ messages }) {
      const i = (messages.length - 1) / 2;
      if (i < count) {
        yield { type: 'tool-call', id: `c${i}`, name: 'x_echo', arguments: `{"message":"m${i}"}` };
        yield { type: 'finish', reason: 'tool-calls', usage };
      } else {
        yield { type: 'text', text: 'done' };
        yield { type: 'finish', reason: 'stop', usage };
      }
    },
  };
}

export const stdio = async ({ count }) => calls(program, count);
export const http = async ({ count }) => calls({ url: await listening() }, count);
