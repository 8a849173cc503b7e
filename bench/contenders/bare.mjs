/** The floor: a hand-written loop around an async function that answers, with nothing around it. */

import { weighCrowd } from '../work/crowd.mjs';
import { callingFunction, talkingModel } from '../work/models.mjs';
import { readSlowly } from '../work/slow-reader.mjs';
import { execute, executed, NAME, SCHEMA, SYSTEM_PROMPT } from '../work/tool.mjs';

export const what =
  'a `while` loop: awaits an answer, parses JSON, validates with zod, awaits the tool, pushes messages';

const options = { signal: new AbortController().signal };

async function loop(answer, tools, input) {
  const messages = [{ role: 'user', content: [{ type: 'text', text: input }] }];
  while (true) {
    const { content, usage, stopReason } = await answer({ messages, systemPrompt: SYSTEM_PROMPT, tools: [] });
    messages.push({ role: 'assistant', content, usage, stopReason });
    const calls = content.filter(({ type }) => type === 'tool-call');
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
  const answer = callingFunction(turns);
  const map = toolMap(tools);
  return async () => {
    const before = executed.count;
    await loop(answer, map, 'go');
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
  const answer = callingFunction(turns);
  const map = toolMap();
  return async () => {
    const before = executed.count;
    await Promise.all(Array.from({ length: runs }, () => loop(answer, map, 'go')));
    return executed.count - before;
  };
}

export function crowd(params) {
  const map = toolMap();
  return weighCrowd((pause) => {
    const answer = callingFunction(params.turns, pause);
    return () => loop(answer, map, 'go');
  }, params);
}

export function slowConsumer({ count, bytes, ...pace }) {
  return readSlowly(
    talkingModel(count, (i) => String(i).padEnd(bytes)).stream({ messages: [] }, options),
    pace,
  );
}
