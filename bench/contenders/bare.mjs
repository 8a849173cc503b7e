/** The floor: a hand-written loop over the same model port, with nothing around it. */

import { weighCrowd } from '../work/crowd.mjs';
import { callingModel, talkingModel } from '../work/models.mjs';
import { readSlowly } from '../work/slow-reader.mjs';
import { execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  'a `while` loop: reads the stream, parses JSON, validates with zod, executes, pushes messages';

const options = { signal: new AbortController().signal };

async function loop(model, tools, input) {
  const messages = [{ role: 'user', content: [{ type: 'text', text: input }] }];
  while (true) {
    const content = [];
    const calls = [];
    let finish;
    for await (const part of model.stream(
      { messages, systemPrompt: SYSTEM_PROMPT, tools: [], settings: {} },
      options,
    )) {
      if (part.type === 'text') content.push({ type: 'text', text: part.text });
      else if (part.type === 'tool-call') {
        content.push(part);
        calls.push(part);
      } else finish = part;
    }
    messages.push({ role: 'assistant', content, usage: finish.usage, stopReason: finish.reason });
    if (calls.length === 0) return messages;
    for (const call of calls) {
      const tool = tools.get(call.name);
      const output = await tool.execute(tool.schema.parse(JSON.parse(call.arguments)));
      messages.push({
        role: 'tool',
        toolCallId: call.id,
        toolName: call.name,
        content: [{ type: 'text', text: JSON.stringify(output) }],
        isError: false,
      });
    }
  }
}

function toolMap(count = 1) {
  const tools = new Map([[NAME, { schema: SCHEMA, execute }]]);
  for (let i = 1; i < count; i++) tools.set(`${NAME}-${i}`, { schema: SCHEMA, execute });
  return tools;
}

export function turns({ turns, tools }) {
  const model = callingModel(turns);
  const map = toolMap(tools);
  return async () => {
    const before = executed.count;
    await loop(model, map, 'go');
    return executed.count - before;
  };
}

export function deltas({ count }) {
  const model = talkingModel(count);
  return async () => {
    let seen = 0;
    let text = '';
    for await (const part of model.stream({ messages: [] }, options)) {
      if (part.type !== 'text') continue;
      text += part.text;
      seen += 1;
    }
    return text === '' ? 0 : seen;
  };
}

export function concurrent({ runs, turns }) {
  const model = callingModel(turns);
  const map = toolMap();
  return async () => {
    const before = executed.count;
    await Promise.all(Array.from({ length: runs }, () => loop(model, map, 'go')));
    return executed.count - before;
  };
}

export function crowd(params) {
  const map = toolMap();
  return weighCrowd((model) => () => loop(model, map, 'go'), params);
}

export function slowConsumer({ count, bytes, ...pace }) {
  return readSlowly(
    talkingModel(count, (i) => String(i).padEnd(bytes)).stream({ messages: [] }, options),
    pace,
  );
}
