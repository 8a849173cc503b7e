/** The bare loop with its model call and its tool call each inside a koa-compose onion. */
import compose from 'koa-compose';
import { callingFunction } from '../work/models.mjs';
import { execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  'the bare loop with a koa-compose chain around the model call and another around the tool call';

const LAYERS = {
  plain: (_ctx, next) => next(),
  async: async (_ctx, next) => {
    await next();
  },
};

async function loop(answer, tools, onion, input) {
  const messages = [{ role: 'user', content: [{ type: 'text', text: input }] }];
  const callModel = async (ctx) => {
    ctx.response = await answer(ctx.request);
  };
  const callTool = async (ctx) => {
    const tool = tools.get(ctx.call.name);
    ctx.output = await tool.execute(tool.schema.parse(JSON.parse(ctx.call.arguments)));
  };
  while (true) {
    const turn = { request: { messages, systemPrompt: SYSTEM_PROMPT, tools: [] }, response: undefined };
    await onion(turn, callModel);
    const { content, usage, stopReason } = turn.response;
    messages.push({ role: 'assistant', content, usage, stopReason });
    let called = false;
    for (const call of content) {
      if (call.type !== 'tool-call') continue;
      called = true;
      const ctx = { call, output: undefined };
      await onion(ctx, callTool);
      messages.push({
        role: 'tool',
        toolCallId: call.id,
        toolName: call.name,
        content: [{ type: 'text', text: JSON.stringify(ctx.output) }],
        isError: false,
      });
    }
    if (!called) return messages;
  }
}

export function layers({ turns, layers, kind }) {
  const answer = callingFunction(turns);
  const tools = new Map([[NAME, { schema: SCHEMA, execute }]]);
  const onion = compose(Array.from({ length: layers }, () => LAYERS[kind]));
  return async () => {
    const before = executed.count;
    await loop(answer, tools, onion, 'go');
    return executed.count - before;
  };
}
