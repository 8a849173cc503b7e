/**
 * Schemas of what routes answer with, for the OpenAPI document. The types of the client check them: a field that is missing
 * here, or is too much, doesn't compile.
 */
import type { RunAnswer } from './answer-run.js';
import type { AlliumClient } from './client/index.js';
import type {
  ClientAllowance,
  ClientContent,
  ClientDelta,
  ClientEvent,
  ClientMessage,
  ClientUsage,
  Question,
} from './events.js';
import type { UiMessage } from './ui-history.js';

export type Schema = Readonly<Record<string, unknown>>;

/** What a route answers with, if nothing goes wrong. */
export interface Answers {
  readonly json?: Schema;
  /** What the `data` of each event is. */
  readonly events?: Schema;
  /** Status 204. */
  readonly nothing?: true;
  readonly headers?: Readonly<Record<string, Schema>>;
}

/** A schema for each field. The names of those that may be absent end with a question mark. */
type Fields<T> = {
  readonly [Name in keyof T & string as Record<never, never> extends Pick<T, Name>
    ? `${Name}?`
    : Name]-?: Schema;
};

/** Fields by type, for objects that say theirs in `type`. */
type Kinds<T extends { readonly type: string }> = {
  readonly [Type in T['type']]: Fields<Omit<OfType<T, Type>, 'type'>>;
};
type OfType<T, Type> = T extends { readonly type: infer Own } ? (Type extends Own ? T : never) : never;

function shape<T>(fields: Fields<T>): Schema {
  const all = Object.entries<Schema>(fields);
  const required = all.flatMap(([name]) => (name.endsWith('?') ? [] : [name]));
  const properties = Object.fromEntries(all.map(([name, schema]) => [name.replace('?', ''), schema]));
  return { type: 'object', ...(required.length > 0 && { required }), properties };
}

function union<T extends { readonly type: string }>(kinds: Kinds<T>): Schema {
  const all = Object.entries<Record<string, Schema>>(kinds);
  return { oneOf: all.map(([type, fields]) => shape<unknown>({ type: { const: type }, ...fields })) };
}

/** What the AI SDK describes. */
function ofSdk(description: string): Schema {
  return { ...shape({ type: text }), description, additionalProperties: true };
}

/** One of the schemas by its name. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

const listOf = (items: Schema): Schema => ({ type: 'array', items });
const oneOf = (...values: readonly string[]): Schema => ({ enum: values });
const text: Schema = { type: 'string' };
const json: Schema = { type: 'string', description: 'JSON.' };
const flag: Schema = { type: 'boolean' };
const count: Schema = { type: 'integer' };
const time: Schema = { type: 'number', description: 'Milliseconds since the epoch.' };
const end = {
  runId: text,
  status: oneOf('done', 'stopped', 'suspended', 'error', 'aborted'),
  stop: shape<RunAnswer['stop']>({ reason: text, 'message?': text }),
};
const file = { data: { type: 'string', description: 'Base64, or a URL.' }, mimeType: text, 'name?': text };
const call = { toolCallId: text, toolName: text };

/** The ones that have a name. */
export const schemas: Readonly<Record<string, Schema>> = {
  Failure: shape<{ error: unknown }>({
    error: shape<{ code: string; message: string }>({ code: text, message: text }),
  }),
  RunResult: shape<RunAnswer>({
    sessionId: text,
    ...end,
    text,
    questions: listOf(ref('Question')),
    'usage?': ref('Usage'),
  }),
  Usage: shape<ClientUsage>({
    inputTokens: count,
    outputTokens: count,
    cacheRead: count,
    cacheWrite: count,
    totalTokens: count,
  }),
  Session: shape<Answer<'session'>>({
    sessionId: text,
    running: flag,
    questions: listOf(ref('Question')),
    queued: listOf(shape({ id: text, kind: oneOf('steer', 'follow_up') })),
  }),
  Question: shape<Question>({
    id: text,
    ...call,
    kind: oneOf('ask', 'suspend'),
    'title?': text,
    'details?': {},
    'decisions?': listOf(oneOf('approve', 'edit', 'reject', 'respond')),
    'remember?': flag,
    arguments: json,
    'rawArguments?': json,
    createdAt: time,
    'expiresAt?': time,
    'from?': text,
  }),
  Allowance: shape<ClientAllowance>({
    id: text,
    toolName: text,
    scope: oneOf('tool', 'arguments'),
    'arguments?': json,
    'from?': text,
    at: time,
  }),
  Message: shape<ClientMessage>({
    id: text,
    role: oneOf('user', 'assistant', 'tool'),
    content: listOf(ref('Content')),
    'toolCallId?': text,
    'toolName?': text,
    'isError?': flag,
  }),
  Content: union<ClientContent>({
    text: { text },
    thinking: { text },
    image: file,
    file,
    'tool-call': { id: text, name: text, 'arguments?': json },
  }),
  Event: union<ClientEvent>({
    agent_start: { runId: text, 'resumed?': { const: true } },
    message_start: { messageId: text, role: oneOf('user', 'assistant') },
    message_update: { messageId: text, delta: ref('Delta') },
    message_reset: { messageId: text },
    message_end: { messageId: text, 'message?': ref('Message'), 'discarded?': { const: true } },
    tool_execution_start: { ...call, 'arguments?': json },
    tool_execution_update: { ...call, content: listOf(ref('Content')) },
    tool_execution_waiting: { ...call, question: ref('Question') },
    answered: { questionId: text, decision: text },
    tool_execution_end: { ...call, isError: flag, 'content?': listOf(ref('Content')) },
    rewound: { to: { type: ['string', 'null'] } },
    notice: { name: text, 'data?': {} },
    stalled: { runId: text, since: time },
    suspended: { questions: listOf(ref('Question')) },
    agent_end: end,
  }),
  Delta: union<ClientDelta>({
    text: { block: count, text },
    thinking: { block: count, text },
    'tool-call': { block: count, id: text, name: text, arguments: text },
  }),
  UiMessage: shape<UiMessage>({
    id: text,
    role: oneOf('user', 'assistant'),
    parts: listOf(ref('UiPart')),
  }),
  UiPart: ofSdk('A part of a `UIMessage` of the AI SDK.'),
  UiChunk: ofSdk('A `UIMessageChunk` of the AI SDK.'),
};

type Answer<Method extends keyof AlliumClient> = Awaited<ReturnType<AlliumClient[Method]>>;
type Item<List> = List extends readonly (infer One)[] ? One : never;

/** What routes that run an agent answer with. */
export const runAnswers: Answers = {
  json: ref('RunResult'),
  events: ref('Event'),
  headers: { 'x-session-id': { type: 'string', description: 'The id of the session, percent-encoded.' } },
};

export const nothing: Answers = { nothing: true };

/** Answers with JSON that only one route has. */
export const pages = {
  agents: shape<{ agents: unknown }>({
    agents: listOf(
      shape<Item<Answer<'agents'>>>({
        name: text,
        tools: listOf(shape<Item<Item<Answer<'agents'>>['tools']>>({ name: text, description: text })),
      }),
    ),
  }),
  sessions: shape<Answer<'sessions'>>({
    sessions: listOf(
      shape<Item<Answer<'sessions'>['sessions']>>({ sessionId: text, createdAt: time, updatedAt: time }),
    ),
    'next?': text,
  }),
  messages: shape<Answer<'messages'>>({ messages: listOf(ref('Message')), 'previous?': text }),
  questions: shape<{ questions: unknown }>({ questions: listOf(ref('Question')) }),
  allowances: shape<{ allowances: unknown }>({ allowances: listOf(ref('Allowance')) }),
  chat: shape<{ messages: unknown; running: unknown }>({ messages: listOf(ref('UiMessage')), running: flag }),
} as const;
