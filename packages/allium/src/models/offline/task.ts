/** What was asked and what was done about it so far: the last user message, and the results after it. */

import { isSyntheticMessage, type Message, type ToolCall, textOf, toolCallsOf } from '../../index.js';

interface TaskResult {
  readonly tool: string;
  readonly text: string;
  readonly isError: boolean;
}

export interface Task {
  /** Text of the last message a person wrote. */
  readonly text: string;
  /** Names of the tools that were called since. */
  readonly called: ReadonlySet<string>;
  /** Calls of tools that failed and were made once so far, without those that were refused. */
  readonly failed: readonly ToolCall[];
  /** In order; without errors that a second call made good. */
  readonly results: readonly TaskResult[];
}

/** What Allium writes before a result if a person changed the arguments of the call. */
const EDITED = /^Note: a person changed the arguments of this call [^\n]*\n\n/;

export function taskOf(messages: readonly Message[]): Task {
  const at = messages.findLastIndex((message) => message.role === 'user' && !isSyntheticMessage(message));
  const asked = messages[at];
  const since = messages.slice(at + 1);
  const calls = since.flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []));
  const byId = new Map(calls.map((call) => [call.id, call]));
  const answered = new Map<string, { count: number; call: ToolCall | undefined; result: TaskResult }>();
  for (const message of since) {
    if (message.role !== 'tool') continue;
    const call = byId.get(message.toolCallId);
    const same = call ? `${call.name} ${call.arguments}` : message.toolCallId;
    const { count } = answered.get(same) ?? { count: 0 };
    const result = {
      tool: call?.name ?? message.toolName,
      text: textOf(message).replace(EDITED, ''),
      isError: message.isError ?? false,
    };
    answered.set(same, { count: count + 1, call, result });
  }
  const outcomes = [...answered.values()];
  return {
    text: asked ? textOf(asked) : '',
    called: new Set(calls.map(({ name }) => name)),
    failed: outcomes.flatMap(({ count, call, result }) =>
      call && count === 1 && threw(result) ? [call] : [],
    ),
    results: outcomes.map(({ result }) => result),
  };
}

/** Allium writes this for a tool that threw. A refused call would only be refused, or asked about, again. */
function threw({ tool, text, isError }: TaskResult): boolean {
  return isError && text.startsWith(`"${tool}" failed: `);
}
