/** Messages as the conventions write them down: the JSON of `gen_ai.input.messages` and its siblings. */

import type { Message, ModelResponse, ToolContent, UserContent } from '../../index.js';
import { finishReasonOf } from './conventions.js';

type Part = Readonly<Record<string, unknown>>;

export function systemJson(prompt: string): string {
  return JSON.stringify(prompt === '' ? [] : [{ type: 'text', content: prompt }]);
}

export function inputJson(messages: readonly Message[]): string {
  return JSON.stringify(messages.map((message) => ({ role: message.role, parts: partsOf(message) })));
}

export function outputJson(answer: ModelResponse): string {
  const message = { role: 'assistant', parts: partsOf(answer), finish_reason: finishReasonOf(answer) };
  return JSON.stringify([message]);
}

function partsOf(message: Message | ModelResponse): readonly Part[] {
  if (message.role === 'tool') {
    const response = message.content.length === 1 && message.content[0]!.type === 'text';
    const result = response ? (message.content[0] as { text: string }).text : message.content.map(partOf);
    return [{ type: 'tool_call_response', id: message.toolCallId, response: result }];
  }
  return message.content.map(partOf);
}

function partOf(part: Message['content'][number] | UserContent | ToolContent): Part {
  switch (part.type) {
    case 'text':
      return { type: 'text', content: part.text };
    case 'thinking':
      return { type: 'reasoning', content: part.text };
    case 'tool-call':
      return { type: 'tool_call', id: part.id, name: part.name, arguments: parsed(part.arguments) };
    default:
      // Bytes don't belong in a trace: it is enough that there was something.
      return { type: part.type };
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}
