/** Laws about answers: what is in them, by capability. */

import { type AssistantContent, type ToolCall, textOf, toolCallsOf } from '../../index.js';
import { describeValue, messageOf } from '../../kit/index.js';
import {
  type Capability,
  contentOf,
  type ModelCheck,
  type ModelLawContext,
  read,
  responseOf,
} from './context.js';

export const text: ModelCheck<'text'> = {
  law: 'text',
  statement: 'Asked for text, the model answers with text.',
  check: (context) =>
    expectAnswer(context, context.text, (content) => {
      if (textOf({ content }) === '')
        throw new Error(`Expected an answer with text, got ${describeValue(content)}.`);
    }),
};

export const toolCall: ModelCheck<'tool-call'> = {
  law: 'tool-call',
  statement: 'Asked to use a tool, the model calls one of the tools it was offered.',
  check: (context) =>
    expectAnswer(context, context.toolCall, (content) => {
      const offered = context.toolCall.request().tools.map(({ name }) => name);
      const called = toolCallsOf({ content }).map(({ name }) => name);
      if (called.length === 0)
        throw new Error(`Expected an answer that calls a tool, got ${describeValue(content)}.`);
      const stranger = called.find((name) => !offered.includes(name));
      if (stranger !== undefined)
        throw new Error(
          `Expected calls only to ${offered.join(' or ')}, got one to ${describeValue(stranger)}.`,
        );
    }),
};

export const thinking: ModelCheck<'thinking'> = {
  law: 'thinking',
  statement: 'Asked to think aloud, the model does.',
  needs: (context) => (context.thinking ? undefined : 'It needs `thinking`.'),
  check: (context) =>
    expectAnswer(context, context.thinking!, (content) => {
      if (content.some(({ type }) => type === 'thinking')) return;
      throw new Error(`Expected an answer with thinking, got ${describeValue(content)}.`);
    }),
};

export const toolArguments: ModelCheck<'tool-arguments'> = {
  law: 'tool-arguments',
  statement: 'The arguments of a tool call are the text of one JSON object.',
  async check(context) {
    for (const { name, arguments: json } of await callsOf(context)) {
      const value = parsed(name, json);
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) continue;
      throw new Error(`Expected the arguments of "${name}" to be a JSON object, got ${describeValue(json)}.`);
    }
  },
};

export const callIds: ModelCheck<'call-ids'> = {
  law: 'call-ids',
  statement: 'Every tool call of an answer has an id of its own.',
  async check(context) {
    const ids = (await callsOf(context)).map(({ id }) => id);
    if (!ids.includes('') && new Set(ids).size === ids.length) return;
    throw new Error(
      `Expected every tool call of an answer to have an id of its own, got ${describeValue(ids)}.`,
    );
  },
};

/** Checks that the answer has what the capability is named for, and what the author expects. */
async function expectAnswer(
  context: ModelLawContext,
  { request, expect }: Capability,
  fits: (content: readonly AssistantContent[]) => void,
): Promise<void> {
  const parts = await read(context, request());
  fits(contentOf(parts));
  expect?.(responseOf(parts, context.open()));
}

async function callsOf(context: ModelLawContext): Promise<readonly ToolCall[]> {
  return toolCallsOf({ content: contentOf(await read(context, context.toolCall.request())) });
}

function parsed(name: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new Error(
      `Expected the arguments of "${name}" to be JSON text, got ${describeValue(json)}: ${messageOf(error)}`,
    );
  }
}
