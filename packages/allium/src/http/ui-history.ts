/** The history as UI messages of the AI SDK: what `useChat` begins with. */
import type { Entry, Message, PendingRequest } from '../index.js';
import { isSyntheticMessage } from '../index.js';
import type { ClientMessage } from './events.js';
import { type Projection, questionOf } from './projection.js';
import { outputOf, parsed, type SdkVersion, uiParts } from './ui-chunks.js';

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

/** Calls that nobody allowed, with the id of the question: somebody said no, or it was taken back. */
export function deniedCalls(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const asked = new Map<string, string>();
  const denied = new Map<string, string>();
  for (const entry of entries) {
    if (entry.type === 'request') {
      const { id, callId, kind } = entry.request;
      asked.set(id, callId);
      if (kind === 'ask') denied.set(callId, id);
    }
    const callId = entry.type === 'answer' ? asked.get(entry.requestId) : undefined;
    if (entry.type !== 'answer' || callId === undefined) continue;
    // The last answer counts: guards may have changed the one that was given.
    if (entry.decision.type === 'reject') denied.set(callId, entry.requestId);
    else denied.delete(callId);
  }
  return denied;
}

/** All answers and tool results up to the next user message are one message, under the id of the first. */
export function uiMessages(
  messages: readonly Message[],
  asked: { readonly pending: readonly PendingRequest[]; readonly denied: ReadonlyMap<string, string> },
  projection: Projection,
  sdk: SdkVersion,
): readonly UiMessage[] {
  const all: UiMessage[] = [];
  const calls = new Map<string, Record<string, unknown>>();
  for (const message of messages) {
    const shown = projection.message(message);
    if (shown === undefined) continue;
    if (shown.role === 'user') {
      all.push({ id: uiIdOf(message), role: 'user', parts: [...uiParts(shown.content)] });
      continue;
    }
    let last = all.at(-1);
    if (last?.role !== 'assistant') {
      last = { id: shown.id, role: 'assistant', parts: [] };
      all.push(last);
    }
    if (shown.role !== 'tool') {
      say(last.parts, shown, calls);
      continue;
    }
    const call = calls.get(shown.toolCallId ?? '');
    const question = asked.denied.get(shown.toolCallId ?? '');
    if (call && question !== undefined && shown.isError && sdk > 5)
      Object.assign(call, { state: 'output-denied', approval: { id: question, approved: false } });
    else answer(call, shown);
  }
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
    if (part.type === 'thinking') parts.push({ type: 'reasoning', text: part.text, state: 'done' });
    else if (part.type === 'text') parts.push({ type: 'text', text: part.text, state: 'done' });
    else if (part.type !== 'tool-call') parts.push(...uiParts([part]));
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

function answer(call: Record<string, unknown> | undefined, { isError, content }: ClientMessage): void {
  if (call === undefined) return;
  const output = content.length > 0 ? outputOf(content) : null;
  if (!isError) Object.assign(call, { state: 'output-available', output });
  else
    Object.assign(call, {
      state: 'output-error',
      errorText: typeof output === 'string' ? output : 'The tool failed.',
    });
}
