/**
 * The routes that `useChat` of the AI SDK calls. The history is the session's; only the end of what the client sends
 * counts.
 */
import { type Decision, type Message, type UserContent, userMessage } from '../../index.js';
import { events, isBusy, leaving, readerOf, startRun, stopRun } from '../answer-run.js';
import { HttpFailure, invalidBody } from '../failures.js';
import { type Found, newSession, openSession, sessionOf } from '../find-session.js';
import type { EventReader } from '../follow.js';
import { questionOf } from '../projection.js';
import type { Begin } from '../queued.js';
import { agentSchema, type Call, decisionSchema, detachedSchema, type Route } from '../route.js';
import type { BodySchema } from '../schema.js';
import type { TextSource } from '../sse.js';
import { type SdkVersion, UiChunks } from '../ui-chunks.js';
import { isTurn, uiIdOf, uiMessages, withClientId } from '../ui-history.js';

const body: BodySchema = {
  type: 'object',
  description: 'What the AI SDK sends, and fields of ours beside it.',
  required: ['id', 'messages'],
  properties: {
    id: { type: 'string', minLength: 1, maxLength: 200, description: 'Of the chat: the id of the session.' },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['role', 'parts'],
        properties: {
          id: { type: 'string', maxLength: 200 },
          role: { type: 'string' },
          parts: {
            type: 'array',
            items: { type: 'object', required: ['type'], properties: { type: { type: 'string' } } },
          },
        },
      },
    },
    trigger: { enum: ['submit-message', 'regenerate-message'] },
    messageId: { type: 'string' },
    agent: agentSchema,
    detached: detachedSchema,
    answers: { type: 'object', additionalProperties: decisionSchema },
  },
};

const query = { sdk: 'The major version of the AI SDK: 5, 6 or 7.' };

export const chatRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/chat',
    operation: 'chat',
    summary:
      'What `useChat` of the AI SDK posts: a message, an edited one, approvals, or a wish for another answer.',
    query,
    body,
    answers: ['chat'],
    async handle(call) {
      const found = (await openSession(call, call.body.id)) ?? newSession(call, call.body.id);
      const messages = await found.session.messages();
      const { chunks, begin } = await wish(call, found, messages);
      if (begin === undefined) return replay(call, found, messages);
      const run = await startRun(call, found, begin);
      const leave = leaving(call, run, call.handling.detached ?? true);
      return chatEvents(call, run.reader(), chunks, leave);
    },
  },
  {
    method: 'GET',
    path: '/chat/{sessionId}/stream',
    operation: 'resumeChat',
    summary: 'The answer that is being written, from its beginning; 204 if there is none.',
    query,
    answers: ['chat', 'nothing'],
    async handle(call) {
      const found = await openSession(call, call.parameters.sessionId!);
      if (found === undefined) return nothing();
      return replay(call, found, await found.session.messages());
    },
  },
  {
    method: 'GET',
    path: '/chat/{sessionId}',
    operation: 'chatHistory',
    summary: 'The history as UI messages, for `messages` of `useChat`.',
    query,
    answers: ['json'],
    async handle(call) {
      const found = await openSession(call, call.parameters.sessionId!);
      if (found === undefined) return Response.json({ messages: [] });
      const { session } = found;
      const [messages, pending] = await Promise.all([session.messages(), session.pending()]);
      return Response.json({
        messages: uiMessages(messages, pending, call.handling.projection, sdkOf(call)),
      });
    },
  },
  {
    method: 'POST',
    path: '/chat/{sessionId}/stop',
    operation: 'stopChat',
    summary: 'Ends the answer that is being written. `stop()` of `useChat` only stops reading.',
    body: { type: 'object' },
    answers: ['nothing'],
    async handle(call) {
      await stopRun(call, await sessionOf(call), 'The user stopped it.');
      return nothing();
    },
  },
];

interface Wish {
  readonly chunks: UiChunks;
  /** Absent if the message is in the history already. */
  readonly begin?: Begin;
}

/** What the client wants, by the end of what it sent. */
async function wish(call: Call, found: Found, messages: readonly Message[]): Promise<Wish> {
  const { session } = found;
  const sdk = sdkOf(call);
  const sent = call.body.messages as readonly SentMessage[];
  const last = sent.at(-1)!;
  const answers = answersOf(call, last);
  if (answers) {
    const pending = await session.pending();
    const open = Object.entries(answers).filter(([id]) => pending.some((one) => one.id === id));
    if (open.length === 0) throw new HttpFailure(409, 'REQUEST_UNKNOWN', 'Those questions are not open.');
    const chunks = new UiChunks(sdk, openAnswer(messages));
    chunks.know(pending.map(questionOf));
    return { chunks, begin: { type: 'resume', answers: Object.fromEntries(open) } };
  }
  const chunks = new UiChunks(sdk);
  if (last.role !== 'user')
    throw invalidBody('The last message must be a user message or answer open questions.');
  const known = messages.find(
    (one) => last.id !== undefined && one.role === 'user' && uiIdOf(one) === last.id,
  );
  if (call.body.trigger === 'regenerate-message') {
    if (!known) throw new HttpFailure(404, 'MESSAGE_UNKNOWN', 'There is no such message.');
    await session.rewind(known.id);
    return { chunks, begin: { type: 'continue' } };
  }
  const message = userMessage(contentOf(last), last.id === undefined ? undefined : withClientId(last.id));
  if (known) {
    // Sent again after the connection broke: it is being answered, or has been.
    if (call.body.messageId !== last.id) return { chunks };
    await session.rewind({ before: known.id });
  }
  return { chunks, begin: { type: 'run', input: message } };
}

interface SentMessage {
  readonly id?: string;
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly [field: string]: unknown }[];
}

/** Answers to questions, by `answers` or by approvals in the last message. */
function answersOf({ body }: Call, last: SentMessage): Readonly<Record<string, Decision>> | undefined {
  if (body.answers) return body.answers;
  if (last.role !== 'assistant') return undefined;
  const answers: Record<string, Decision> = {};
  for (const part of last.parts) {
    const { state, approval } = part as { state?: string; approval?: Approval };
    if (state !== 'approval-responded' || typeof approval?.id !== 'string') continue;
    const { approved, reason } = approval;
    answers[approval.id] =
      approved === true
        ? { type: 'approve' }
        : { type: 'reject', ...(typeof reason === 'string' && { reason }) };
  }
  return Object.keys(answers).length > 0 ? answers : undefined;
}

interface Approval {
  readonly id?: unknown;
  readonly approved?: unknown;
  readonly reason?: unknown;
}

function contentOf({ parts }: SentMessage): readonly UserContent[] {
  const content = parts.flatMap((part): UserContent[] => {
    if (part.type === 'text' && typeof part.text === 'string') return [{ type: 'text', text: part.text }];
    if (part.type !== 'file') return [];
    const { url, filename } = part as { url?: unknown; filename?: unknown };
    const [, mimeType, data] =
      (typeof url === 'string' && /^data:([\w.+/-]+);base64,([\w+/=-]+)$/.exec(url)) || [];
    if (mimeType === undefined || data === undefined) throw invalidBody('Send files as base64 `data:` URLs.');
    if (mimeType.startsWith('image/')) return [{ type: 'image', data, mimeType }];
    return [{ type: 'file', data, mimeType, ...(typeof filename === 'string' && { name: filename }) }];
  });
  if (content.length === 0) throw invalidBody('The message has neither text nor files.');
  return content;
}

/** The answer that is being written, from its beginning. */
async function replay(call: Call, { storeId }: Found, messages: readonly Message[]): Promise<Response> {
  const { store } = call.handling;
  const begun = messages.findLast(isTurn)?.id;
  const entries = await store.read(storeId, 1);
  const entry = entries.findLast((one) => one.type === 'message' && one.message.id === begun);
  if (entry === undefined || entry.type !== 'message') return nothing();
  const index = call.handling.projection.entry(entry).length - 1;
  const reader = readerOf(call, storeId, `${entry.seq}.${index}`);
  const ended = entries.some(({ type, seq }) => type === 'run_end' && seq > entry.seq);
  if (ended || !(await reader.hasMore()) || (isWaiting(entries) && !(await isBusy(call, storeId))))
    return nothing();
  return chatEvents(call, reader, new UiChunks(sdkOf(call), openAnswer(messages)));
}

/** The id of the answer that the history ends with, as a UI message. */
function openAnswer(messages: readonly Message[]): string | undefined {
  const begun = messages.findLastIndex(isTurn);
  return messages.slice(begun + 1).find(({ role }) => role === 'assistant')?.id;
}

/** Does the last run wait for answers? Then its questions are in the history. */
function isWaiting(entries: readonly { readonly type: string }[]): boolean {
  const last = (type: string): number => entries.findLastIndex((one) => one.type === type);
  return last('request') > Math.max(last('answer'), last('run_start'), last('tool_finished'));
}

function chatEvents(call: Call, reader: EventReader, chunks: UiChunks, leave?: () => void): Response {
  const lines = (from: EventReader): TextSource => {
    let ended = false;
    return async () => {
      if (ended) return undefined;
      const batch = await from.next();
      ended = batch === undefined;
      let text = '';
      for (const { event } of batch ?? [])
        for (const chunk of chunks.of(event)) text += `data: ${JSON.stringify(chunk)}\n\n`;
      return ended ? 'data: [DONE]\n\n' : text;
    };
  };
  return events(call, reader, lines, leave, { 'x-vercel-ai-ui-message-stream': 'v1' });
}

function sdkOf({ handling, query }: Call): SdkVersion {
  const given = query.get('sdk');
  if (given === undefined) return handling.sdk;
  if (!['5', '6', '7'].includes(given))
    throw new HttpFailure(400, 'INVALID_REQUEST', '`sdk` has to be 5, 6 or 7.');
  return Number(given) as SdkVersion;
}

function nothing(): Response {
  return new Response(undefined, { status: 204 });
}
