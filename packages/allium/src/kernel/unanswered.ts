/** Calls that get no result of their own any more: what the history says of them instead. */
import { deepFreeze } from './messages.js';
import type { OpenRun } from './session-state.js';
import type { EntryBody } from './store.js';
import { errorResult, type Tool, type ToolResult } from './tool.js';

/** Of a call that had begun, and of whose effects nobody knows. */
export function inDoubt(name: string): ToolResult {
  return errorResult(
    `In doubt: "${name}" had started when the run broke off, and nobody knows whether it took effect. It was not run again.`,
  );
}

/** A result for every open call of a run, with the reason why it will get no other. */
export function unanswered(open: OpenRun, tools: readonly Tool[], why: string): EntryBody[] {
  const { runId, batch, count } = open;
  if (!batch) return [];
  // While somebody is asked whether a call may happen, nothing of its batch runs.
  const asked = [...open.requests.values()].some(({ kind, from }) => kind === 'ask' && !from);
  const resultOf = (id: string, name: string): ToolResult => {
    if (batch.started.includes(id)) return inDoubt(name);
    // That a tool begins which may be run again is not written down.
    const mayHaveBegun = !asked && tools.find((tool) => tool.name === name)?.onInDoubt === 'retry';
    return errorResult(`${mayHaveBegun ? 'Not finished' : 'Not run'}: ${why}`);
  };
  return [...batch.calls.entries()]
    .filter(([index]) => !batch.results[index])
    .map(([index, { id, name }]): EntryBody => {
      const { content, isError } = resultOf(id, name);
      const number = count + 1 + index;
      const message = { role: 'tool' as const, toolCallId: id, toolName: name, content, isError };
      return { type: 'tool_finished', runId, message: deepFreeze({ id: `${runId}.${number}`, ...message }) };
    });
}
