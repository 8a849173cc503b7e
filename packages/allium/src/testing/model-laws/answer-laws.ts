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

/** Asked for text it answers with text. */
export const text: ModelCheck<'text'> = {
  law: 'text',
  check: (context) =>
    expectAnswer(context, context.text, (content) => {
      if (textOf({ content }) === '')
        throw new Error(`Expected an answer with text, got ${describeValue(content)}.`);
    }),
};

/** Asked for a tool it calls one of those it was offered. */
export const toolCall: ModelCheck<'tool-call'> = {
  law: 'tool-call',
  check: (context) =>
    expectAnswer(context, context.toolCall, (content) => {
      const offered = context.toolCall.request().tools.map(({ name }) => name);
      const called = toolCallsOf({ content }).map(({ name }) => name);
      if (called.length === 0)
        throw new Error(`Expected an answer that calls a tool, got ${describeValue(content)}.`);
      const stranger = called.find((name) => !offered.includes(name));
      if (stranger !== undefined)
        throw new Error(
          `Expected calls of ${offered.join(' or ')} only, got one of ${describeValue(stranger)}.`,
        );
    }),
};

/** Asked to think aloud it does. */
export const thinking: ModelCheck<'thinking'> = {
  law: 'thinking',
  needs: (context) => (context.thinking ? undefined : 'It needs `thinking`.'),
  check: (context) =>
    expectAnswer(context, context.thinking!, (content) => {
      if (content.some(({ type }) => type === 'thinking')) return;
      throw new Error(`Expected an answer with thinking, got ${describeValue(content)}.`);
    }),
};

/** The arguments of a call are the text of one JSON object. */
export const toolArguments: ModelCheck<'tool-arguments'> = {
  law: 'tool-arguments',
  async check(context) {
    for (const { name, arguments: json } of await callsOf(context)) {
      const value = parsed(name, json);
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) continue;
      throw new Error(`Expected the arguments of "${name}" to be a JSON object, got ${describeValue(json)}.`);
    }
  },
};

/** The calls of one answer can be told apart. */
export const callIds: ModelCheck<'call-ids'> = {
  law: 'call-ids',
  async check(context) {
    const ids = (await callsOf(context)).map(({ id }) => id);
    if (!ids.includes('') && new Set(ids).size === ids.length) return;
    throw new Error(
      `Expected every tool call of an answer to have an id of its own, got ${describeValue(ids)}.`,
    );
  },
};

/** The answer has what the capability is named for, and is what the author expects. */
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
