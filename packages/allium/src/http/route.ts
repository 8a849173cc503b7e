/** What a route is, and what all of them need. */
import type {
  Agent,
  Entry,
  Message,
  MessageInput,
  RunOptions,
  RunResult,
  RunStream,
  Session,
  Stop,
  Store,
} from '../index.js';
import { parentOf } from '../stores/kit/index.js';
import type { ClientEnd, ClientUsage, Question } from './events.js';
import { HttpFailure, invalidBody, unknownSession } from './failures.js';
import type { EventHub, EventReader } from './follow.js';
import { type Projection, questionOf, told } from './projection.js';
import { type Begin, enqueue, JobReader, type QueuedOutcome, type RunQueue } from './queued.js';
import { type BodySchema, object } from './schema.js';
import type { Authorize, Caller, ServeContext } from './serve.js';
import { sseLines, sseResponse, type TextSource } from './sse.js';

/** The options of `serve`, checked. */
export interface Handling {
  readonly agents: ReadonlyMap<string, Agent>;
  readonly names: ReadonlyMap<Agent, string>;
  readonly store: Store;
  /** Where runs are sent, if this process runs none. */
  readonly queue: RunQueue | undefined;
  readonly hub: EventHub;
  readonly projection: Projection;
  readonly showsUsage: boolean;
  readonly authorize: Authorize;
  readonly basePath: string;
  readonly detached: boolean | undefined;
  readonly sdk: 5 | 6 | 7;
  readonly maxBodyBytes: number;
  readonly heartbeatMs: number;
  readonly storeId: (sessionId: string, caller: Caller) => string;
  /** Ids in the store begin with the tenant. */
  readonly ownsPrefix: boolean;
  readonly onError: (error: unknown, request: Request) => void;
}

/** What stands behind the question mark of an address, read when it is asked for. */
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
  // biome-ignore lint/suspicious/noExplicitAny: its schema was checked.
  readonly body: Readonly<Record<string, any>>;
  readonly context: ServeContext | undefined;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Parameters in braces. */
  readonly path: string;
  /** Its name in the OpenAPI document. */
  readonly operation: string;
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: BodySchema;
  /** What it answers with, by media type. */
  readonly answers: readonly ('json' | 'events' | 'chat' | 'nothing')[];
  handle(call: Call): Response | Promise<Response>;
}

const text: BodySchema = { type: 'string' };

/** Base64, not an address: a server that fetches what a client names would be a way into its network. */
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
  description: 'Whether the run goes on when this request ends early.',
};

export const decisionSchema: BodySchema = {
  oneOf: [
    object({ type: { const: 'approve' }, remember: { enum: ['tool', 'arguments'] } }, ['type']),
    object({ type: { const: 'edit' }, args: {} }, ['type', 'args']),
    object({ type: { const: 'reject' }, reason: text }, ['type']),
    object({ type: { const: 'respond' }, text }, ['type', 'text']),
  ],
};

export function inputOf(given: unknown): MessageInput {
  if (Array.isArray(given))
    for (const part of given)
      if (part.type !== 'text' && !/^[\w+/=-]+$/.test(part.data))
        throw invalidBody('`data` of a file has to be base64.');
  return given as MessageInput;
}

/** The id of a session in the store. */
export function storeIdOf({ handling, caller }: Call, sessionId: string): string {
  // No slashes, which stand between a session and its sub-agents, and nothing that breaks lines.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused.
  if (!/^[^/\u0000-\u001f\u007f]{1,200}$/.test(sessionId)) throw unknownSession();
  const id = handling.storeId(sessionId, caller);
  if (parentOf(id) !== undefined) throw unknownSession();
  return id;
}

/** A session that exists and is the caller's. */
export interface Found {
  readonly sessionId: string;
  readonly storeId: string;
  readonly agent: Agent;
  readonly session: Session;
  /** Its id was made just now, so nobody else writes to it. */
  readonly isNew?: boolean;
}

/** The session of a path. Those that do not exist and those of others are told apart by nothing. */
export async function sessionOf(call: Call): Promise<Found> {
  const found = await openSession(call, call.parameters.sessionId!);
  if (found === undefined) throw unknownSession();
  return found;
}

/** Undefined where there is no such session. */
export async function openSession(call: Call, sessionId: string): Promise<Found | undefined> {
  const { handling, caller } = call;
  const storeId = storeIdOf(call, sessionId);
  if ((await handling.store.head(storeId)) === 0) return undefined;
  const agent = await agentOf(call, storeId);
  const session = agent.session(storeId, tenantOf(caller));
  // It tells whose it is: `TENANT_MISMATCH` is answered as an unknown session.
  await session.pending();
  return { sessionId, storeId, agent, session };
}

export function newSession(call: Call, sessionId: string): Found {
  const storeId = storeIdOf(call, sessionId);
  const agent = agentNamed(call) ?? call.handling.agents.values().next().value!;
  return { sessionId, storeId, agent, session: agent.session(storeId, tenantOf(call.caller)) };
}

function tenantOf({ tenant }: Caller): { readonly tenant?: string } {
  return tenant === undefined ? {} : { tenant };
}

/** The agent a request names. */
function agentNamed({ handling, body, query }: Call): Agent | undefined {
  const name: string | undefined = body?.agent ?? query.get('agent');
  if (name === undefined) return undefined;
  const agent = handling.agents.get(name);
  if (!agent) throw new HttpFailure(404, 'AGENT_UNKNOWN', 'There is no such agent.');
  return agent;
}

/** The agent that is named, or the one the session was last run with. */
async function agentOf(call: Call, storeId: string): Promise<Agent> {
  const named = agentNamed(call);
  const { agents, store } = call.handling;
  const first = agents.values().next().value!;
  if (named || agents.size === 1) return named ?? first;
  const entries = await store.read(storeId, 1);
  const start = entries.findLast(
    (entry): entry is Entry & { type: 'run_start' } => entry.type === 'run_start',
  );
  const { agent } = (start?.metadata ?? {}) as { agent?: string };
  return agents.get(agent ?? '') ?? first;
}

/** What hooks and tools are told of the request. */
export function runOptions({ handling, caller }: Call, agent: Agent): RunOptions {
  const { user, metadata } = caller;
  const name = handling.names.get(agent);
  return { metadata: { ...metadata, ...(user !== undefined && { user }), agent: name } };
}

/** Starts a run, and answers with its events or, at its end, with JSON. */
export async function runAnswer(call: Call, found: Found, begin: Begin): Promise<Response> {
  const { request, handling } = call;
  const run = await startRun(call, found, begin);
  const leave = leaving(call, found, handling.detached ?? false);
  const headers = { 'x-session-id': encodeURIComponent(found.sessionId) };
  if (wantsEvents(request)) return events(call, run.reader(), sseLines, leave, headers);
  request.signal.addEventListener('abort', leave, { once: true });
  const result = await run.result();
  request.signal.removeEventListener('abort', leave);
  return Response.json(answerOf(handling, found.sessionId, result), { headers });
}

/** A run that has begun, here or elsewhere. */
interface StartedRun {
  reader(): EventReader;
  /** Waits for its end. */
  result(): Promise<ShownResult>;
}

/** What an answer tells of a result. */
type ShownResult = Pick<RunResult, 'runId' | 'status' | 'stop' | 'text' | 'pending' | 'usage'>;

export async function startRun(call: Call, found: Found, begin: Begin): Promise<StartedRun> {
  const { queue, hub } = call.handling;
  if (queue) return startQueued(call, queue, found, begin);
  const { storeId, isNew, session } = found;
  const options = runOptions(call, found.agent);
  const start = (): RunStream => {
    if (begin.type === 'run') return session.stream(begin.input, options);
    if (begin.type === 'continue') return session.continueStream(options);
    return session.resumeStream(begin.answers ? { ...options, answers: begin.answers } : options);
  };
  const run = await hub.publish(storeId, start, { isNew });
  call.context?.waitUntil?.(run.ended);
  run.stream.result
    .catch((error: { result?: RunResult }) => {
      // An aborted run did not fail, and an error without a result is thrown to the handler of the request.
      if (error?.result?.status === 'error') call.handling.onError(error, call.request);
    })
    // Nobody waits for this: an `onError` that throws must not end the process.
    .catch(() => undefined);
  return {
    reader: run.reader,
    async result() {
      const result = await run.stream.result.catch((error: { result?: RunResult }) => {
        if (error?.result === undefined) throw error;
        return error.result;
      });
      await run.ended;
      return result;
    },
  };
}

async function startQueued(
  call: Call,
  queue: RunQueue,
  { storeId, agent, isNew }: Found,
  begin: Begin,
): Promise<StartedRun> {
  const { handling, caller, request } = call;
  const head = isNew ? 0 : await handling.store.head(storeId);
  const { metadata } = runOptions(call, agent);
  const options = { sessionId: storeId, ...tenantOf(caller), ...(metadata && { metadata }) };
  const runId = await enqueue(queue, handling.names.get(agent)!, begin, options);
  return {
    // After everything that was there before.
    reader: () => new JobReader(queue.reader(storeId, head === 0 ? {} : { after: `${head}.999999999` })),
    async result() {
      const { status, ...outcome } = await queue.finished(runId, { signal: request.signal });
      return {
        stop: STOP[status],
        usage: NO_USAGE,
        pending: [],
        ...outcome,
        status: status === 'failed' ? 'error' : status,
      };
    },
  };
}

/** Of runs that were over before they began. */
const STOP: Readonly<Record<QueuedOutcome['status'], Stop>> = {
  done: { reason: 'final' },
  stopped: { reason: 'stopped' },
  suspended: { reason: 'suspended' },
  aborted: { reason: 'aborted' },
  failed: { reason: 'error' },
};
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 } as const;

/** What happens when the client leaves: nothing to a detached run. */
export function leaving(call: Call, found: Found, otherwise: boolean): () => void {
  const detached = (call.body?.detached as boolean | undefined) ?? otherwise;
  return () => {
    // It may have ended just now.
    if (!detached) stopRun(call, found, 'The client left.').catch(() => undefined);
  };
}

/** Ends the run under way, wherever it is. */
export async function stopRun(
  { handling: { queue } }: Call,
  { session, storeId }: Found,
  reason: string | undefined,
): Promise<void> {
  if (!(await queue?.stop(storeId, reason))) await session.abort(reason);
}

/** Is there a run under way, as far as this process knows? */
export async function isBusy({ handling: { queue, hub } }: Call, storeId: string): Promise<boolean> {
  return queue ? queue.isBusy(storeId) : hub.isLive(storeId);
}

/** A reader of what was and what comes. */
export function readerOf({ handling: { queue, hub } }: Call, storeId: string, after?: string): EventReader {
  const options = after === undefined ? {} : { after };
  return queue ? queue.reader(storeId, options) : hub.reader(storeId, options);
}

/** A response of lines that ends with its reader. */
export function events(
  { handling, request }: Call,
  reader: EventReader,
  lines: (reader: EventReader) => TextSource,
  onLeave: () => void = () => {},
  headers: Readonly<Record<string, string>> = {},
): Response {
  let over = false;
  const leave = (): void => {
    if (over) return;
    over = true;
    reader.leave();
    onLeave();
  };
  const next = lines(reader);
  const ending: TextSource = async () => {
    const text = await next();
    if (text === undefined) over = true;
    return text;
  };
  // Platforms cancel the body or abort the signal when a client leaves, or both.
  const onBegin = (): void => {
    if (request.signal.aborted) leave();
    else request.signal.addEventListener('abort', leave, { once: true });
  };
  return sseResponse(ending, { heartbeatMs: handling.heartbeatMs, onBegin, onLeave: leave, headers });
}

export function wantsEvents(request: Request): boolean {
  return request.headers.get('accept')?.includes('text/event-stream') ?? false;
}

/** The JSON answer of a run. */
export interface RunAnswer extends ClientEnd {
  readonly sessionId: string;
  readonly text: string;
  readonly questions: readonly Question[];
  readonly usage?: ClientUsage;
}

function answerOf({ showsUsage }: Handling, sessionId: string, result: ShownResult): RunAnswer {
  const { runId, status, stop, text, pending, usage } = result;
  return {
    sessionId,
    runId,
    status,
    stop: told(status, stop),
    text,
    questions: pending.map(questionOf),
    ...(showsUsage && { usage }),
  };
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
