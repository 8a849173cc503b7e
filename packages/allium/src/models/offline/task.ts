/** What is asked and what was done about it so far: the last user message, and the results after it. */
import { isSyntheticMessage, type Message, textOf, toolCallsOf } from '../../kernel/messages.js';

export interface Task {
  /** Text of the last message a person wrote. */
  readonly text: string;
  /** Names of the tools that were called since. */
  readonly called: ReadonlySet<string>;
  readonly results: readonly { readonly tool: string; readonly text: string; readonly isError: boolean }[];
}

export function taskOf(messages: readonly Message[]): Task {
  const at = messages.findLastIndex((message) => message.role === 'user' && !isSyntheticMessage(message));
  const asked = messages[at];
  const since = messages.slice(at + 1);
  const calls = since.flatMap((message) => (message.role === 'assistant' ? toolCallsOf(message) : []));
  const names = new Map(calls.map(({ id, name }) => [id, name]));
  return {
    text: asked ? textOf(asked) : '',
    called: new Set(names.values()),
    results: since.flatMap((message) =>
      message.role === 'tool'
        ? [
            {
              tool: names.get(message.toolCallId) ?? message.toolName,
              text: textOf(message),
              isError: message.isError ?? false,
            },
          ]
        : [],
    ),
  };
}
