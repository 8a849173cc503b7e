/**
 * The routes that `useChat` of the AI SDK calls. The history is the session's; only the end of what the client sends
 * counts.
 */
import { type Decision, type Message, type UserContent, userMessage } from '../../index.js';
import { endRun, events, type FollowedRun, leaving, startRun, stopRun } from '../answer-run.js';
import { pages, ref } from '../answer-schemas.js';
import { type Answers, answerAndFollow, joined } from '../answering.js';
import { HttpFailure, invalidRequest } from '../failures.js';
import { type Found, newSession, openSession, ownSession, sessionOf } from '../find-session.js';
import type { EventReader } from '../follow.js';
import { type LastAnswer, lastAnswer } from '../last-answer.js';
import { questionOf } from '../projection.js';
import type { Begin } from '../queued.js';
import { agentSchema, answersSchema, type Call, detachedSchema, type Route } from '../route.js';
import type { BodySchema } from '../schema.js';
import type { TextSource } from '../sse.js';
import { type SdkVersion, UiChunks } from '../ui-chunks.js';
import {
  approvals,
  isTurn,
  latestResults,
  type UiMessage,
  uiIdOf,
  uiMessages,
  withClientId,
} from '../ui-history.js';

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
    answers: answersSchema,
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
    answers: { events: ref('UiChunk') },
    async handle(call) {
      const found = (await openSession(call, call.body.id)) ?? newSession(call, call.body.id);
      const messages = await found.session.messages();
      const last = (call.body.messages as readonly SentMessage[]).at(-1)!;
      const answers = answersOf(call, last);
      if (answers) return answer(call, found, messages, answers, last.id);
      if (last.role !== 'user')
        throw invalidRequest('The last message must be a user message or answer open questions.');
      const known = messages.findIndex(
        (one) => last.id !== undefined && one.role === 'user' && uiIdOf(one) === last.id,
      );
      const { trigger, messageId } = call.body;
      const isAgain = trigger === 'regenerate-message' || messageId === last.id;
      // Sent again after the connection broke: it is being answered, or has been.
      if (known >= 0 && !isAgain) {
        const next = messages.findIndex((one, at) => at > known && isTurn(one));
        const upTo = next < 0 ? messages : messages.slice(0, next);
        return replay(call, (await lastAnswer(call, found, upTo))!, upTo);
      }
      const run = await startAnswer(call, found, messages[known], last);
      return chatEvents(call, run, new UiChunks(sdkOf(call)));
    },
  },
  {
    method: 'GET',
    path: '/chat/{sessionId}/stream',
    operation: 'resumeChat',
    summary: 'The answer that is being written, from its beginning; 204 if there is none.',
    query: {
      ...query,
      ended:
        '`true`: the last answer also if it has ended or waits, for a page that was told that it is being written.',
    },
    answers: { events: ref('UiChunk'), nothing: true },
    async handle(call) {
      const found = await ownSession(call);
      if (found === undefined) return nothing();
      const messages = await found.session.messages();
      const last = await lastAnswer(call, found, messages);
      const isWanted = last?.isOpen || call.query.get('ended') === 'true';
      return last && isWanted ? replay(call, last, messages, true) : nothing();
    },
  },
  {
    method: 'GET',
    path: '/chat/{sessionId}',
    operation: 'chatHistory',
    summary:
      'The history as UI messages, for `messages` of `useChat`. `running`: an answer is being written, for `resume`.',
    query,
    answers: { json: pages.chat },
    async handle(call) {
      const found = await ownSession(call);
      if (found === undefined) return Response.json({ messages: [], running: false });
      for (;;) {
        const head = await call.handling.store.head(found.storeId);
        const history = await historyOf(call, found);
        await call.handling.hub.begun(found.storeId);
        // Otherwise an answer has begun meanwhile, and only part of it may be there.
        if (history.running || (await call.handling.store.head(found.storeId)) === head)
          return Response.json(history);
      }
    },
  },
  {
    method: 'POST',
    path: '/chat/{sessionId}/stop',
    operation: 'stopChat',
    summary: 'Ends the answer that is being written. `stop()` of `useChat` only stops reading.',
    body: { type: 'object' },
    answers: { nothing: true },
    async handle(call) {
      await stopRun(call, await sessionOf(call), 'The user stopped it.');
      return nothing();
    },
  },
];

async function historyOf(
  call: Call,
  found: Found,
): Promise<{ readonly messages: readonly UiMessage[]; readonly running: boolean }> {
  const { session, storeId } = found;
  const { store, projection } = call.handling;
  const last = await lastAnswer(call, found, await session.messages());
  last?.reader.leave();
  // Read after that: an answer that has ended by then is all there.
  const [messages, pending, entries] = await Promise.all([
    session.messages(),
    session.pending(),
    store.read(storeId, 1),
  ]);
  const asked = { pending, answered: approvals(entries), results: latestResults(entries) };
  return {
    messages: uiMessages(messages, asked, projection, sdkOf(call)),
    running: last?.isOpen ?? false,
  };
}

/**
 * Answers to questions. The AI SDK can send the same ones twice, as when a reply to `resume` crosses a click: both requests
 * are told what comes of them.
 */
async function answer(
  call: Call,
  found: Found,
  messages: readonly Message[],
  answers: Answers,
  messageId: string | undefined,
): Promise<Response> {
  const entries = await call.handling.store.read(found.storeId, 1);
  const begun = entries.findLastIndex((entry) => entry.type === 'message' && isTurn(entry.message));
  const open = openAnswer(messages);
  // The client's message goes on. A repeated run may have begun it anew, under another id.
  const chunks = new UiChunks(sdkOf(call), open && { ...open, id: messageId ?? open.id });
  chunks.know(
    entries.slice(begun + 1).flatMap((one) => (one.type === 'request' ? [questionOf(one.request)] : [])),
  );
  return chatEvents(call, await answerAndFollow(call, found, answers, entries[begun]?.seq ?? 0), chunks);
}

/** Answers a new message, or one that is `known`: then it takes the place of what came after it. */
async function startAnswer(
  call: Call,
  found: Found,
  known: Message | undefined,
  last: SentMessage,
): Promise<FollowedRun> {
  const isSame = known !== undefined && call.body.trigger === 'regenerate-message';
  const begin: Begin = isSame ? { type: 'continue' } : { type: 'run', input: inputOf(last) };
  if (known === undefined) return startRun(call, found, begin);
  await endRun(call, found, 'The user asked again.');
  return call.handling.hub.begin(found.storeId, async () => {
    await found.session.rewind(isSame ? known.id : { before: known.id });
    return startRun(call, found, begin);
  });
}

function inputOf(message: SentMessage): Message {
  return userMessage(contentOf(message), message.id === undefined ? undefined : withClientId(message.id));
}

interface SentMessage {
  readonly id?: string;
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly [field: string]: unknown }[];
}

/** Answers to questions, by `answers` or by approvals in the last message. */
function answersOf({ body }: Call, last: SentMessage): Answers | undefined {
  if (body.answers) return body.answers;
  if (last.role !== 'assistant') return undefined;
  const answers: Record<string, Decision> = {};
  for (const part of last.parts) {
    const { state, approval } = part as { state?: string; approval?: Approval };
    if (state !== 'approval-responded' || typeof approval?.id !== 'string') continue;
    const { approved, reason, isAutomatic } = approval;
    if (isAutomatic === true) continue;
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
  /** Nobody was asked. */
  readonly isAutomatic?: unknown;
}

function contentOf({ parts }: SentMessage): readonly UserContent[] {
  const content = parts.flatMap((part): UserContent[] => {
    if (part.type === 'text' && typeof part.text === 'string') return [{ type: 'text', text: part.text }];
    if (part.type !== 'file') return [];
    const { url, filename } = part as { url?: unknown; filename?: unknown };
    const [, mimeType, data] = (typeof url === 'string' && DATA_URL.exec(url)) || [];
    if (mimeType === undefined || data === undefined)
      throw invalidRequest('Send files as base64 `data:` URLs.');
    if (mimeType.startsWith('image/')) return [{ type: 'image', data, mimeType }];
    return [{ type: 'file', data, mimeType, ...(typeof filename === 'string' && { name: filename }) }];
  });
  if (content.length === 0) throw invalidRequest('The message has neither text nor files.');
  return content;
}

/** The type may have parameters: recordings of browsers are `audio/webm;codecs=opus`. */
const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+(?:;[\w.+-]+=[^;,\s]+)*);base64,([\w+/=-]+)$/;

function replay(call: Call, { reader }: LastAnswer, messages: readonly Message[], isAgain = false): Response {
  return chatEvents(call, joined(reader), new UiChunks(sdkOf(call), openAnswer(messages), isAgain));
}

/** The answer that the history ends with: its id as a UI message, and the calls in it. */
function openAnswer(messages: readonly Message[]): { id: string; calls: readonly string[] } | undefined {
  const said = messages.slice(messages.findLastIndex(isTurn) + 1).filter(({ role }) => role === 'assistant');
  const calls = said.flatMap(({ content }) =>
    content.flatMap((part) => (part.type === 'tool-call' ? [part.id] : [])),
  );
  return said[0] && { id: said[0].id, calls };
}

function chatEvents(call: Call, run: FollowedRun, chunks: UiChunks): Response {
  const leave = leaving(call, run, call.handling.detached ?? true);
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
  return events(call, run.reader(), lines, leave, { 'x-vercel-ai-ui-message-stream': 'v1' });
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
