/** One entry and one inbox item of every kind, with every field: a store with a column per field forgets some. */
import {
  type AssistantMessage,
  type Decision,
  ENTRY_VERSION,
  type EntryBody,
  type InboxItem,
  type NewEntry,
  type ToolMessage,
  type TracedMessages,
  type TraceRecord,
  type UserMessage,
} from '../../index.js';
import { NOW } from './samples.js';

/** Nothing in it is optional: a field that is added to the port has to be added here. */
type Whole<T> = T extends object ? { readonly [Key in keyof T]-?: Whole<T[Key]> } : T;

const metadata = { by: 'kit', nested: { list: [1, null] } };
const stop = { reason: 'stopped', message: 'Enough.', by: 'kit' } as const;
const usage = { inputTokens: 11, outputTokens: 7, cacheRead: 5, cacheWrite: 3, totalTokens: 18 };
const runId = 'r';
const hash = 'h';
const words = { type: 'text', text: 'Hello.', metadata } as const;
const image = { type: 'image', data: 'iVBORw0=', mimeType: 'image/png', metadata } as const;
const file = {
  type: 'file',
  data: 'JVBERi0=',
  mimeType: 'application/pdf',
  name: 'a.pdf',
  metadata,
} as const;

const asked: Whole<UserMessage> = { id: 'm1', role: 'user', content: [words, image, file], metadata };
const answered: Whole<AssistantMessage> = {
  id: 'm2',
  role: 'assistant',
  content: [
    { type: 'thinking', text: 'Hm.', signature: 'seal', redacted: false, metadata },
    words,
    { type: 'tool-call', id: 'c', name: 'add', arguments: '{ "a": 1 }', metadata },
    file,
    { type: 'provider', kind: 'source', value: { url: 'https://example.com' }, metadata },
  ],
  usage,
  stopReason: 'tool-calls',
  model: 'test/model',
  metadata,
};
const done: Whole<ToolMessage> = {
  id: 'm3',
  role: 'tool',
  toolCallId: 'c',
  toolName: 'add',
  content: [words, image, file],
  isError: true,
  details: { rows: [1, 2] },
  metadata,
};

const list: Whole<TracedMessages> = {
  of: 0,
  given: 0,
  parts: [{ history: [0, 2] }, { of: [2, 3] }, { key: 'm1' }],
  added: { m1: asked },
  kernel: ['m1'],
};
const changed = [{ path: ['a', 0], at: 2, from: 1, to: null }];
const prompt = { of: 0, given: 0, start: 1, end: 2, text: 'Be kind.' };
const acted: Whole<TraceRecord> = {
  n: 1,
  at: NOW,
  ms: 0.125,
  turn: 1,
  by: 'kit',
  hook: 'wrapModel',
  seam: 'model',
  did: 'rewrote',
  what: 'rewrote the messages of the request',
  attempt: 1,
  callId: 'c',
  toolName: 'add',
  messageId: 'm2',
  changes: {
    messages: list,
    systemPrompt: prompt,
    tools: { added: ['add'], removed: [] },
    model: { from: 'test/model', to: 'test/other' },
    settings: changed,
    toolCall: changed,
    args: changed,
    result: changed,
    response: changed,
    message: changed,
    inject: ['Go on.'],
    decision: { type: 'stop', why: 'Enough.' },
  },
  verdict: {
    guard: 'kit',
    point: 'request',
    action: 'redact',
    kind: 'email',
    severity: 'low',
    start: 0,
    end: 1,
  },
  error: { name: 'Error', message: 'Broken.', code: 'E', stack: '    at here' },
  sent: {
    history: 2,
    messages: list,
    systemPrompt: prompt,
    tools: {
      names: ['add'],
      specs: [{ name: 'add', description: 'Adds.', inputSchema: {}, outputSchema: {} }],
    },
    model: 'test/model',
    settings: {
      maxOutputTokens: 9,
      temperature: 0.5,
      topP: 0.5,
      stopSequences: ['.'],
      seed: 1,
      toolChoice: { tool: 'add' },
      responseSchema: {},
      provider: {},
      systemMetadata: metadata,
      systemBlocks: [{ chars: 1, hash, metadata }],
    },
  },
  caller: 'kit',
  agentId: 's/1',
};

const decisions: { readonly [Kind in Decision['type']]: Whole<Extract<Decision, { type: Kind }>> } = {
  approve: { type: 'approve', hash, remember: 'tool' },
  edit: { type: 'edit', args: { a: [2] }, hash },
  reject: { type: 'reject', reason: 'No.', hash },
  respond: { type: 'respond', text: 'Three.', hash },
};

const bodies: { readonly [Kind in EntryBody['type']]: Whole<Extract<EntryBody, { type: Kind }>> } = {
  run_start: {
    type: 'run_start',
    runId,
    tenant: 't',
    plan: ['a', 'b'],
    twins: { a: 'x' },
    parent: 'p',
    metadata,
    limits: { turns: 3, tokens: null },
  },
  message: {
    type: 'message',
    runId,
    message: answered,
    seeded: false,
    cycle: true,
    feedback: true,
    started: true,
    costUsd: 0.000_123,
    inject: [asked],
    offered: ['add'],
    follows: { decision: 'loop_to_model', by: 'kit', why: 'enough', forceContinue: true },
  },
  state: { type: 'state', cell: 'c', version: 2, runId, value: { n: 1 }, stays: true },
  tool_started: { type: 'tool_started', runId, messageId: 'm2', callId: 'c' },
  tool_finished: { type: 'tool_finished', runId, message: done, terminate: false, stop },
  request: {
    type: 'request',
    runId,
    request: {
      id: 'q',
      runId,
      callId: 'c',
      toolName: 'add',
      arguments: '{ "a": 1 }',
      effectiveArguments: '{ "a": 1 }',
      kind: 'ask',
      hash,
      by: 'kit',
      createdAt: NOW,
      title: 'May I?',
      details: { risk: 'low' },
      timeoutMs: 60_000,
      decisions: ['approve', 'reject'],
      key: 'k',
      remember: false,
      from: { agent: 'sub', sessionId: 's', runId: 'r2', callId: 'c2' },
    },
    notBegun: ['d'],
    waits: true,
    replaces: ['p'],
  },
  answer: { type: 'answer', runId, requestId: 'q', decision: decisions.edit, admitted: true, postId: 'p' },
  verdict: { type: 'verdict', runId, callId: 'c', hash, verdict: { block: true, reason: 'No.' } },
  usage: { type: 'usage', runId, usage, costUsd: 0.5, from: 'sub' },
  active: { type: 'active', runId, ms: 12.5 },
  trace: {
    type: 'trace',
    runId,
    version: 1,
    records: [acted],
    totals: [{ by: 'kit', hook: 'wrapModel', seam: 'model', calls: 1, ms: 0.125 }],
  },
  inbox: {
    type: 'inbox',
    cursor: 3,
    waits: [1, 2],
    refused: [{ n: 3, by: 'guard', reason: 'No.' }],
    revoked: ['q'],
  },
  rewind: { type: 'rewind', to: 'm1' },
  run_end: { type: 'run_end', runId, status: 'stopped', stop, turns: 3 },
};

type Posted = { readonly [Kind in InboxItem['type']]: Whole<Extract<InboxItem, { type: Kind }>> };

const posted: Posted = {
  steer: { type: 'steer', message: asked },
  follow_up: { type: 'follow_up', message: asked },
  answer: {
    type: 'answer',
    requestId: 'q',
    decision: decisions.approve,
    at: NOW,
    postId: 'p',
    relayed: true,
  },
  claim: { type: 'claim', requestId: 'q' },
  cancel: { type: 'cancel', reason: 'Enough.' },
  unqueue: { type: 'unqueue', n: 1 },
  revoke: { type: 'revoke', id: 'q' },
};

/** New objects each time, as a store may keep them. Their version is newer than ours: a store keeps entries of any version. */
export function wholeEntries(): NewEntry[] {
  const answers = Object.values(decisions).map((decision) => ({ ...bodies.answer, decision }));
  return [...Object.values(bodies), ...answers].map((body) =>
    structuredClone({ ...body, v: ENTRY_VERSION + 1, at: NOW }),
  );
}

export function wholeItems(): InboxItem[] {
  const answers = Object.values(decisions).map((decision) => ({ ...posted.answer, decision }));
  return structuredClone([...Object.values(posted), ...answers]);
}
