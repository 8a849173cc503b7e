/** Finds what is in the history of a run but passed no hook. */

import {
  isSyntheticMessage,
  type Message,
  type RunContext,
  type ToolMessage,
  toolCallsOf,
} from '../../index.js';
import { type Anchor, NO_CALLS } from './anchor.js';

/** What people said in the run, oldest first. Doesn't search a whole long session. */
export function saidIn({ history, runId }: RunContext): readonly Message[] {
  const mine = `${runId}.`;
  const said: Message[] = [];
  for (let i = history.length - 1; i >= 0; i--) {
    const message = history[i]!;
    // Most messages are from the model and its tools, so check the role first.
    if (message.role !== 'user') continue;
    if (!message.id.startsWith(mine)) break;
    if (!isSyntheticMessage(message)) said.push(message);
  }
  return said.reverse();
}

export interface Unlogged {
  readonly message: ToolMessage;
  readonly call: string;
  readonly args: string;
  /** Id of the message that made the call. */
  readonly of: string;
}

/** Results of the last batch that passed no hook: a stop or an abort made them. */
export function unlogged(ctx: RunContext, { message: latest, calls }: Anchor): readonly Unlogged[] {
  const { history } = ctx;
  const at = history.findLastIndex(
    (message) => message.role === 'assistant' && message.content.some(isToolCall),
  );
  const batch = history[at];
  // Batches of earlier runs don't belong to this one.
  if (batch?.role !== 'assistant' || !batch.id.startsWith(`${ctx.runId}.`)) return [];
  const all = toolCallsOf(batch);
  const done = batch.id === latest ? calls : NO_CALLS;
  if (all.every(({ id }) => done.includes(id))) return [];
  const made = new Map(all.map(({ id, arguments: args }) => [id, args]));
  return history.slice(at + 1).flatMap((message): Unlogged[] => {
    if (message.role !== 'tool' || !made.has(message.toolCallId) || done.includes(message.toolCallId))
      return [];
    return [{ message, call: message.toolCallId, args: made.get(message.toolCallId)!, of: batch.id }];
  });
}

function isToolCall({ type }: { readonly type: string }): boolean {
  return type === 'tool-call';
}
