/** What the model received in each call, beside the history it was made of. */
import {
  type Entry,
  type Message,
  type RunTrace,
  readTrace,
  type TraceRecord,
  textOf,
  toolCallsOf,
} from 'allium';
import { cutText } from './cut.js';
import type { ActRow, CallRow, ReceivedMessage, ReceivedView } from './wire.js';

/** The model calls of a run. Those of middleware have no answer in the conversation. */
export function callsOf(trace: RunTrace | undefined, untraced: readonly CallRow[]): readonly CallRow[] {
  const sent = trace?.records.filter((record) => record.sent !== undefined) ?? [];
  if (!trace || sent.length === 0) return untraced;
  return sent.map((record) => ({
    n: record.n,
    turn: record.turn,
    attempt: record.attempt ?? 1,
    ...modelIn(trace, record),
    ...(record.messageId !== undefined && { messageId: record.messageId }),
    ...(record.error && { failed: record.error.message ?? record.error.name }),
    ...(record.caller !== undefined && { by: record.caller }),
  }));
}

function modelIn(trace: RunTrace, { n }: TraceRecord): { model?: string } {
  try {
    return { model: trace.requestAt(n).model };
  } catch {
    return {};
  }
}

/** What middleware did, without the calls of models and tools themselves. */
export function actsOf(records: readonly TraceRecord[]): readonly ActRow[] {
  return records
    .filter(({ did, by }) => did !== 'called' && did !== 'allowed' && by !== 'model' && by !== 'tool')
    .map(({ n, turn, by, hook, did, what, ms }) => ({ n, turn, by, hook, did, what: what ?? '', ms }));
}

export function receivedIn(
  sessionId: string,
  entries: readonly Entry[],
  runId: string,
  call: CallRow,
): ReceivedView {
  const trace = readTrace(sessionId, entries, runId);
  if (!trace?.records.some(({ n, sent }) => n === call.n && sent !== undefined))
    return fromHistory(entries, call);
  const { systemPrompt, ownSystemPrompt, systemPromptBy, tools, messages, leftOut, steps } = trace.requestAt(
    call.n,
  );
  // Texts that guards have not judged are withheld, and their writers with them: the turn's own records name those.
  const writers = trace.records.filter(
    (one) => one.turn === call.turn && one.n < call.n && one.by !== 'agent' && one.changes?.systemPrompt,
  );
  const promptBy = systemPromptBy.length > 0 ? systemPromptBy : [...new Set(writers.map(({ by }) => by))];
  const taken = [...new Set([...steps, ...writers])].sort((a, b) => a.n - b.n);
  const sent = messages.map(({ message, original, by }): ReceivedMessage => {
    const shown = {
      role: message.role,
      ...cutText(wordsOf(message)),
      ...(message.id !== '' && { id: message.id }),
    };
    if (by === undefined) return { ...shown, change: 'same' };
    if (!original) return { ...shown, change: 'added', by: [by] };
    return { ...shown, change: 'changed', by: [by], was: cutText(wordsOf(original)).text };
  });
  const removed = leftOut.map(
    ({ message, by }): ReceivedMessage => ({
      ...{ role: message.role, ...cutText(wordsOf(message)), id: message.id },
      ...{ change: 'removed' as const, by: [by] },
    }),
  );
  return {
    call,
    basis: 'exact',
    systemPrompt: {
      text: systemPrompt,
      ...(promptBy.length > 0 && { by: promptBy }),
      ...(ownSystemPrompt !== undefined && { was: ownSystemPrompt }),
    },
    tools: tools.map(({ name }) => name),
    messages: [...removed, ...sent],
    acts: actsOf(taken),
  };
}

/** The history before an answer: what the model would have received without middleware. */
function fromHistory(entries: readonly Entry[], call: CallRow): ReceivedView {
  const messages: Message[] = [];
  for (const entry of entries) {
    if (entry.type !== 'message' && entry.type !== 'tool_finished') continue;
    if (entry.message.id === call.messageId) break;
    messages.push(entry.message);
  }
  return {
    call,
    basis: 'history',
    messages: messages.map((message) => ({
      ...{ role: message.role, ...cutText(wordsOf(message)), id: message.id, change: 'same' },
    })),
    acts: [],
  };
}

/** The request as it was sent, or as far as it is known. */
export function rawRequest(
  sessionId: string,
  entries: readonly Entry[],
  runId: string,
  call: CallRow,
): unknown {
  const trace = readTrace(sessionId, entries, runId);
  if (trace?.records.some(({ n, sent }) => n === call.n && sent !== undefined)) {
    const { model, systemPrompt, tools, settings, messages } = trace.requestAt(call.n);
    return { model, systemPrompt, settings, tools, messages: messages.map(({ message }) => message) };
  }
  const history: Message[] = [];
  for (const entry of entries) {
    if (entry.type !== 'message' && entry.type !== 'tool_finished') continue;
    if (entry.message.id === call.messageId) break;
    history.push(entry.message);
  }
  return { model: call.model, messages: history };
}

/** A message as text: what it says, and what it calls. */
function wordsOf(message: Message): string {
  const calls = message.role === 'assistant' ? toolCallsOf(message) : [];
  return [textOf(message), ...calls.map((one) => `${one.name} ${one.arguments}`)].filter(Boolean).join('\n');
}
