/** The law `calls-answered`. */

import { type Message, type RunResult, toolCallsOf } from '../../index.js';
import { messageOf } from '../../kit/index.js';
import { toolCalls } from '../scripted-model.js';
import { eachInterruption, eachRun } from './aftermath.js';
import { during, fresh, type MiddlewareCheck, runApproved } from './context.js';
import type { KitScenario } from './scenarios.js';

const add = { name: 'kit_add', args: { a: 1, b: 2 } };
const ENDED_BY_A_CALL: readonly KitScenario[] = [
  {
    name: 'one call of three stops the run',
    answers: [toolCalls({ ...add, id: 'a' }, { name: 'kit_stop', id: 'b' }, { name: 'kit_slow', id: 'c' })],
  },
  {
    name: 'one call of three aborts the run',
    answers: [toolCalls({ ...add, id: 'a' }, { name: 'kit_abort', id: 'b' }, { name: 'kit_slow', id: 'c' })],
  },
];

export const callsAnswered: MiddlewareCheck<'calls-answered'> = {
  law: 'calls-answered',
  statement:
    'Every tool call has exactly one result, in the history and in every request, however the call ended.',
  async check(context) {
    // A call that waits for an approval has no result yet.
    await eachRun(context, ({ parts }) => parts.forEach(expectAnswered));
    for (const scenario of ENDED_BY_A_CALL)
      await during(scenario.name, async () =>
        (await runApproved(fresh(context), scenario)).forEach(expectAnswered),
      );
    await eachInterruption(context, ({ parts }) => parts.forEach(expectAnswered));
  },
};

interface Answered {
  readonly result: Pick<RunResult, 'status' | 'messages'>;
  readonly requests: readonly { readonly messages: readonly Message[] }[];
}

function expectAnswered({ result, requests }: Answered): void {
  if (result.status !== 'suspended') pair(result.messages, 'the history');
  for (const [i, { messages }] of requests.entries()) pair(messages, `request ${i + 1} to the model`);
}

/** The results of a message stand right after it: one for each of its calls, and no others. */
function pair(messages: readonly Message[], where: string): void {
  let open: string[] = [];
  for (const message of [...messages, undefined]) {
    if (message?.role === 'tool') {
      if (!open.includes(message.toolCallId))
        throw new Error(
          `Expected no result without its call in ${where}, got one for ${messageOf(message.toolCallId)}.`,
        );
      open = open.filter((id) => id !== message.toolCallId);
      continue;
    }
    if (open.length > 0)
      throw new Error(
        `Expected a result for every tool call in ${where}, but there is none for ${open.join(', ')}.`,
      );
    open = message?.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [];
  }
}
