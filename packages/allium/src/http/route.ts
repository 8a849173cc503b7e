/** What a route is, and what all routes share. */
import type { Agent, Message, MessageInput, Store } from '../index.js';
import type { Answers } from './answer-schemas.js';
import { HttpFailure, invalidRequest } from './failures.js';
import type { EventHub } from './follow.js';
import type { Projection, Show } from './projection.js';
import type { RunQueue } from './queued.js';
import { type BodySchema, object } from './schema.js';
import type { Authorize, Caller, ServeContext } from './serve.js';
import type { SessionIds } from './session-ids.js';

/** The options of `serve`, checked. */
export interface Handling {
  readonly agents: ReadonlyMap<string, Agent>;
  readonly names: ReadonlyMap<Agent, string>;
  readonly store: Store;
  /** Where runs are sent, if this process runs none itself. */
  readonly queue: RunQueue | undefined;
  readonly hub: EventHub;
  readonly show: Show;
  readonly projection: Projection;
  readonly showsUsage: boolean;
  readonly authorize: Authorize;
  readonly basePath: string;
  readonly detached: boolean | undefined;
  readonly sdk: 5 | 6 | 7;
  readonly maxBodyBytes: number;
  readonly heartbeatMs: number;
  readonly ids: SessionIds;
  readonly onError: (error: unknown, request: Request) => void;
}

/** The query of an address, parsed on demand. */
export class Query {
  private values: URLSearchParams | undefined;

  constructor(private readonly url: string) {}

  get(name: string): string | undefined {
    if (!this.url.includes('?')) return undefined;
    this.values ??= new URL(this.url).searchParams;
    return this.values.get(name) ?? undefined;
  }
}

/** One request. */
export interface Call {
  readonly handling: Handling;
  readonly request: Request;
  readonly query: Query;
  readonly caller: Caller;
  readonly parameters: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: it was checked against its schema.
  readonly body: Readonly<Record<string, any>>;
  readonly context: ServeContext | undefined;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With parameters in braces. */
  readonly path: string;
  /** Its name in the OpenAPI document. */
  readonly operation: string;
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: BodySchema;
  readonly answers: Answers;
  handle(call: Call): Response | Promise<Response>;
}

const text: BodySchema = { type: 'string' };

/** Base64 and not an address: a server that fetches what a client names would give access to its network. */
const data: BodySchema = { type: 'string', description: 'Base64.', minLength: 1 };

export const inputSchema: BodySchema = {
  description: 'What the user says: text, or a list of parts.',
  oneOf: [
    { type: 'string', minLength: 1 },
    {
      type: 'array',
      minItems: 1,
      maxItems: 100,
      items: {
        oneOf: [
          object({ type: { const: 'text' }, text }, ['type', 'text']),
          object({ type: { const: 'image' }, data, mimeType: text }, ['type', 'data', 'mimeType']),
          object({ type: { const: 'file' }, data, mimeType: text, name: text }, ['type', 'data', 'mimeType']),
        ],
      },
    },
  ],
};

export const agentSchema: BodySchema = {
  type: 'string',
  description: 'Which agent; the one the session had, or the first.',
};
export const detachedSchema: BodySchema = {
  type: 'boolean',
  description: 'Whether the run continues when this request ends early.',
};

const decisionSchema: BodySchema = {
  oneOf: [
    object({ type: { const: 'approve' }, remember: { enum: ['tool', 'arguments'] } }, ['type']),
    object({ type: { const: 'edit' }, args: {} }, ['type', 'args']),
    object({ type: { const: 'reject' }, reason: text }, ['type']),
    object({ type: { const: 'respond' }, text }, ['type', 'text']),
  ],
};

/** By the ids of questions. */
export const answersSchema: BodySchema = {
  type: 'object',
  minProperties: 1,
  additionalProperties: decisionSchema,
};

export function inputOf(given: unknown): MessageInput {
  if (Array.isArray(given))
    for (const part of given)
      if (part.type !== 'text' && !/^[\w+/=-]+$/.test(part.data))
        throw invalidRequest('The `data` of a file must be base64.');
  return given as MessageInput;
}

/** A whole number in the query. */
export function limitOf({ query }: Call, otherwise: number, most: number): number {
  const given = query.get('limit');
  if (given === undefined) return otherwise;
  const limit = Number(given);
  if (!Number.isInteger(limit) || limit < 1 || limit > most)
    throw new HttpFailure(400, 'INVALID_REQUEST', `\`limit\` has to be a whole number from 1 to ${most}.`);
  return limit;
}

/** The message a request is about. */
export function messageNamed(messages: readonly Message[], id: string): Message {
  const message = messages.find((one) => one.id === id);
  if (!message) throw new HttpFailure(404, 'MESSAGE_UNKNOWN', 'There is no such message.');
  return message;
}
