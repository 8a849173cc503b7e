/** The history as UI messages of the AI SDK: what `useChat` begins with. */
import type { Entry, Message, PendingRequest } from '../index.js';
import { isSyntheticMessage } from '../index.js';
import type { ClientMessage } from './events.js';
import { type Projection, questionOf } from './projection.js';
import { automatic, outputOf, parsed, type SdkVersion, uiParts } from './ui-chunks.js';

export interface UiMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: Record<string, unknown>[];
}

/** Where the client's own id of a user message is kept, so that it finds the message again. */
const CLIENT_ID = 'uiMessageId';

export function withClientId(id: string): Readonly<Record<string, unknown>> {
  return { [CLIENT_ID]: id };
}

/** The id a client knows a message by. */
export function uiIdOf({ id, metadata }: Message): string {
  const known = metadata?.[CLIENT_ID];
  return typeof known === 'string' ? known : id;
}

/** Does it begin an answer of its own? */
export function isTurn(message: Message): boolean {
  return message.role === 'user' && !isSyntheticMessage(message);
}

/** What became of the last question about a call. */
export interface Approval {
  readonly id: string;
  readonly approved: boolean;
  readonly reason?: string;
}

/** By call. A question that was taken back counts as a no. */
export function approvals(entries: readonly Entry[]): ReadonlyMap<string, Approval> {
  const asked = new Map<string, string>();
  const all = new Map<string, Approval>();
  for (const entry of entries) {
    if (entry.type === 'request') {
      const { id, callId, kind } = entry.request;
      asked.set(id, callId);
      if (kind === 'ask') all.set(callId, { id, approved: false });
    }
    const callId = entry.type === 'answer' ? asked.get(entry.requestId) : undefined;
    if (entry.type !== 'answer' || callId === undefined) continue;
    // The last answer counts: guards may have changed the one that was given.
    const { decision, requestId: id } = entry;
    const reason = decision.type === 'reject' ? decision.reason : undefined;
    all.set(callId, { id, approved: decision.type !== 'reject', ...(reason !== undefined && { reason }) });
  }
  return all;
}

/** Results of the last answer's calls: the history has them when all calls are done. */
export function latestResults(entries: readonly Entry[]): readonly Message[] {
  const answered = entries.findLastIndex((one) => one.type === 'message' && one.message.role === 'assistant');
  return entries.slice(answered + 1).flatMap((one) => (one.type === 'tool_finished' ? [one.message] : []));
}

/** What a history alone doesn't say. */
export interface Asked {
  readonly pending: readonly PendingRequest[];
  readonly answered: ReadonlyMap<string, Approval>;
  readonly results: readonly Message[];
}

/** All answers and tool results up to the next user message are one message, under the id of the first. */
export function uiMessages(
  messages: readonly Message[],
  asked: Asked,
  projection: Projection,
  sdk: SdkVersion,
): readonly UiMessage[] {
  const all: UiMessage[] = [];
  const calls = new Map<string, Record<string, unknown>>();
  for (const message of [...messages, ...asked.results]) {
    const shown = projection.message(message);
    if (shown === undefined) continue;
    if (shown.role === 'user')
      all.push({ id: uiIdOf(message), role: 'user', parts: [...uiParts(shown.content)] });
    else if (shown.role === 'tool') {
      const call = calls.get(shown.toolCallId ?? '');
      const approval = sdk > 5 ? asked.answered.get(shown.toolCallId ?? '') : undefined;
      if (call?.state === 'input-available') answer(call, shown, approval);
    } else {
      let last = all.at(-1);
      if (last?.role !== 'assistant') {
        last = { id: shown.id, role: 'assistant', parts: [] };
        all.push(last);
      }
      say(last.parts, shown, calls);
    }
  }
  // The calls beside them wait, too.
  if (asked.pending.length > 0 && sdk >= 7)
    for (const part of calls.values())
      if (part.state === 'input-available')
        Object.assign(part, { state: 'approval-responded', approval: automatic(String(part.toolCallId)) });
  for (const request of asked.pending) {
    const question = questionOf(request);
    const part = calls.get(question.toolCallId);
    if (part && sdk > 5) Object.assign(part, { state: 'approval-requested', approval: { id: question.id } });
    all.at(-1)?.parts.push({ type: 'data-question', id: question.id, data: question });
  }
  return all;
}

function say(
  parts: Record<string, unknown>[],
  { content }: ClientMessage,
  calls: Map<string, Record<string, unknown>>,
): void {
  parts.push({ type: 'step-start' });
  for (const part of content) {
    if (part.type === 'thinking' || part.type === 'text') {
      const type = part.type === 'text' ? 'text' : 'reasoning';
      if (part.text !== '') parts.push({ type, text: part.text, state: 'done' });
    } else if (part.type !== 'tool-call') parts.push(...uiParts([part]));
    else {
      const call = {
        type: `tool-${part.name}`,
        toolCallId: part.id,
        state: 'input-available',
        input: parsed(part.arguments),
      };
      calls.set(part.id, call);
      parts.push(call);
    }
  }
}

function answer(
  call: Record<string, unknown>,
  { isError, content }: ClientMessage,
  approval: Approval | undefined,
): void {
  if (isError && approval?.approved === false) {
    // The reason is what the model reads as the result, so it is shown where results are.
    const { id, approved, reason } = approval;
    const shown = content.length > 0 && reason !== undefined ? { id, approved, reason } : { id, approved };
    Object.assign(call, { state: 'output-denied', approval: shown });
    return;
  }
  if (approval?.approved) Object.assign(call, { approval });
  const output = content.length > 0 ? outputOf(content) : null;
  if (!isError) Object.assign(call, { state: 'output-available', output });
  else
    Object.assign(call, {
      state: 'output-error',
      errorText: typeof output === 'string' ? output : 'The tool failed.',
    });
}
