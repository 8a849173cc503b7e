/** `allium/http/client`: talks to `serve` of `allium/http`, from a browser or anywhere else. It imports nothing. */
import type {
  ClientAllowance,
  ClientContent,
  ClientEnd,
  ClientMessage,
  Question,
  SentEvent,
} from '../events.js';
import { problemWith } from './options.js';
import { sseEvents } from './sse.js';

export type {
  ClientAllowance,
  ClientContent,
  ClientDelta,
  ClientEnd,
  ClientEvent,
  ClientMessage,
  Question,
  SentEvent,
} from '../events.js';
export { questionsAnswered } from './questions-answered.js';
export { applyEvent, EMPTY_VIEW, messageText, type ToolView, type View } from './view.js';
export { visibleParts } from './visible-parts.js';

export interface ClientOptions {
  /** Where `serve` answers, such as `https://example.com/api/agent`; a path is enough in a browser. */
  readonly baseUrl: string;
  /** Sent with every request; a function is called for each. */
  readonly headers?: HeadersGiven | (() => HeadersGiven | Promise<HeadersGiven>);
  /** @default the global one */
  readonly fetch?: typeof fetch;
  /** How long to wait before rejoining a broken stream, in milliseconds: the first pause, doubled up to the last. @default [250, 10000] */
  readonly backoffMs?: readonly [number, number];
  /** How often in a row to try before giving up. @default 10 */
  readonly attempts?: number;
}

type HeadersGiven = Readonly<Record<string, string>>;

/** What a user says: text, or parts. `data` of files is base64. */
export type ClientInput = string | readonly Exclude<ClientContent, { type: 'tool-call' | 'thinking' }>[];

export type ClientDecision =
  | { readonly type: 'approve'; readonly remember?: 'tool' | 'arguments' }
  | { readonly type: 'edit'; readonly args: unknown }
  | { readonly type: 'reject'; readonly reason?: string }
  | { readonly type: 'respond'; readonly text: string };

export interface ClientRunOptions {
  /** Continues this session, which must exist. Without it a new one is started; `ClientRun.sessionId` is its id. */
  readonly sessionId?: string;
  /** Starts the session of that id, which must not exist (`SESSION_EXISTS`). @default false */
  readonly create?: boolean;
  readonly agent?: string;
  /** Whether the run continues when this client leaves for good. @default true */
  readonly detached?: boolean;
  /** Stops reading. The run continues unless `detached` is false. */
  readonly signal?: AbortSignal;
}

/** The result of a run, as clients see it. */
export interface ClientResult extends ClientEnd {
  readonly sessionId: string;
  readonly text: string;
  readonly questions: readonly Question[];
}

/** The events of a run, for one reader. */
export interface ClientRun extends AsyncIterable<SentEvent> {
  /** Known as soon as the server has answered. */
  readonly sessionId: Promise<string>;
  /** Reads to the end, if nobody else does. */
  readonly result: Promise<ClientResult>;
}

/**
 * An answer that is not a success, with its HTTP `status` and the server's code. 0: the server did not say so itself.
 */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export interface AlliumClient {
  /** Sends a message and returns the events. A connection that breaks is joined again. */
  run(input: ClientInput, options?: ClientRunOptions): ClientRun;
  /** Answers questions and returns the events that follow. */
  answer(
    sessionId: string,
    answers: Readonly<Record<string, ClientDecision>>,
    options?: Omit<ClientRunOptions, 'sessionId' | 'create'>,
  ): ClientRun;
  /** Continues a run that was suspended, or broke off with its process. */
  resume(sessionId: string, options?: Omit<ClientRunOptions, 'sessionId' | 'create'>): ClientRun;
  /**
   * Gets another answer, to the last question unless you name a message: in a copy of the session, or in the session
   * itself with `fork: false`.
   */
  regenerate(sessionId: string, messageId?: string, options?: ClientBranchOptions): ClientRun;
  /** Replaces a user's message. */
  edit(sessionId: string, messageId: string, input: ClientInput, options?: ClientBranchOptions): ClientRun;
  /** The events of a session, wherever it runs: past ones, then new ones, each once. Ends with its run. */
  join(
    sessionId: string,
    options?: { readonly after?: string | undefined; readonly signal?: AbortSignal },
  ): AsyncIterableIterator<SentEvent>;
  steer(sessionId: string, input: ClientInput): Promise<void>;
  followUp(sessionId: string, input: ClientInput): Promise<void>;
  cancel(sessionId: string, reason?: string): Promise<void>;
  messages(
    sessionId: string,
    page?: { readonly limit?: number; readonly before?: string | undefined },
  ): Promise<{ readonly messages: readonly ClientMessage[]; readonly previous?: string }>;
  /** Whether a run of it is under way in the process that answers (or in the queue), and what waits. */
  session(sessionId: string): Promise<{
    readonly sessionId: string;
    readonly running: boolean;
    readonly questions: readonly Question[];
    readonly queued: readonly { readonly id: string; readonly kind: 'steer' | 'follow_up' }[];
  }>;
  questions(sessionId: string): Promise<readonly Question[]>;
  /** What was approved with `remember` and is not asked again. */
  allowances(sessionId: string): Promise<readonly ClientAllowance[]>;
  /** Revokes an allowance by its id. Fails with `ALLOWANCE_UNKNOWN` if there is no such allowance any more. */
  revoke(sessionId: string, allowanceId: string): Promise<void>;
  sessions(page?: { readonly limit?: number; readonly cursor?: string | undefined }): Promise<{
    readonly sessions: readonly {
      readonly sessionId: string;
      readonly createdAt: number;
      readonly updatedAt: number;
    }[];
    readonly next?: string;
  }>;
  delete(sessionId: string): Promise<void>;
  agents(): Promise<
    readonly {
      readonly name: string;
      readonly tools: readonly { readonly name: string; readonly description: string }[];
    }[]
  >;
}

export interface ClientBranchOptions extends Omit<ClientRunOptions, 'sessionId' | 'create'> {
  /** @default true */
  readonly fork?: boolean;
}

/**
 * A client of `serve`.
 *
 * @example
 * const client = alliumClient({ baseUrl: '/api/agent' });
 * for await (const { event } of client.run('Hello'))
 *   if (event.type === 'message_update' && event.delta.type === 'text') process.stdout.write(event.delta.text);
 */
export function alliumClient(options: ClientOptions): AlliumClient {
  const problem = problemWith(options);
  if (problem !== undefined) throw new HttpError(0, 'INVALID_OPTION', problem);
  const { baseUrl, headers = {}, fetch: send = fetch, backoffMs = [250, 10_000], attempts = 10 } = options;
  const base = baseUrl.replace(/\/$/, '');

  async function request(method: string, path: string, more: RequestInit = {}): Promise<Response> {
    const given = typeof headers === 'function' ? await headers() : headers;
    const all = { ...given, ...(more.headers as HeadersGiven | undefined) };
    const response = await send(`${base}${path}`, { ...more, method, headers: all }).catch((cause) => {
      if (more.signal?.aborted) throw cause;
      const message = `${base}${path} could not be reached. Is the server running, and may this page ask it (CORS)?`;
      throw new HttpError(0, 'UNREACHABLE', message, { cause });
    });
    if (response.ok) return response;
    const body = (await response.json().catch(() => ({}))) as { error?: { code?: string; message?: string } };
    const { code = 'HTTP_ERROR', message = `The server answered with ${response.status}.` } =
      body.error ?? {};
    throw new HttpError(response.status, code, message);
  }
  // biome-ignore lint/suspicious/noExplicitAny: the server is trusted to answer as its types say.
  const get = async (path: string): Promise<any> => (await request('GET', path)).json();
  const post = (path: string, body: unknown, more: RequestInit = {}): Promise<Response> =>
    request('POST', path, {
      ...more,
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', ...(more.headers as HeadersGiven | undefined) },
    });

  /** Reads a stream. If it breaks, joins the session again after the last id. */
  async function* reading(
    sessionId: () => string,
    first: Response | undefined,
    after: string | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<SentEvent, undefined> {
    let last = after;
    let ended = false;
    let failures = 0;
    let response = first;
    for (;;) {
      let problem: unknown = new HttpError(0, 'STREAM_ENDED', 'The stream ended before the run did.');
      try {
        response ??= await request('GET', `/sessions/${encodeURIComponent(sessionId())}/events`, {
          headers: { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) },
          ...(signal && { signal }),
        });
        if (response.status === 204 || response.body === null) return;
        const heard = (): void => {
          failures = 0;
        };
        for await (const { id, data } of sseEvents(response.body, heard)) {
          heard();
          last = id ?? last;
          const event = JSON.parse(data);
          ended = event.type === 'agent_end' || event.type === 'stalled';
          yield { id: id ?? '', event };
        }
        if (ended) return;
      } catch (error) {
        const { status = 0 } = error instanceof HttpError ? error : {};
        const refused = status >= 400 && status < 500 && status !== 429;
        if (refused || signal?.aborted) throw error;
        problem = error;
      }
      if (failures >= attempts) throw problem;
      response = undefined;
      await pause(Math.min(backoffMs[0] * 2 ** failures, backoffMs[1]), signal);
      failures++;
    }
  }

  function starting(path: string, body: unknown, known: string | undefined, signal?: AbortSignal): ClientRun {
    const opened = post(path, body, { headers: { accept: 'text/event-stream' }, ...(signal && { signal }) });
    const sessionId = opened.then((response) =>
      decodeURIComponent(response.headers.get('x-session-id') ?? known ?? ''),
    );
    sessionId.catch(() => undefined);
    return new RunOfClient(sessionId, async function* () {
      const response = await opened;
      const id = await sessionId;
      // If it breaks before the first event, start with this run.
      return yield* reading(() => id, response, 'run', signal);
    });
  }

  const at = (sessionId: string): string => `/sessions/${encodeURIComponent(sessionId)}`;
  return {
    run(input, { sessionId, create = false, agent, detached = true, signal } = {}) {
      if (create || sessionId === undefined)
        return starting('/sessions', { input, sessionId, agent, detached }, sessionId, signal);
      return starting(`${at(sessionId)}/runs`, { input, agent, detached }, sessionId, signal);
    },
    answer(sessionId, answers, { agent, detached = true, signal } = {}) {
      return starting(`${at(sessionId)}/answers`, { answers, agent, detached }, sessionId, signal);
    },
    resume(sessionId, { agent, detached = true, signal } = {}) {
      return starting(`${at(sessionId)}/resume`, { agent, detached }, sessionId, signal);
    },
    regenerate(sessionId, messageId, { agent, detached = true, fork, signal } = {}) {
      return starting(`${at(sessionId)}/regenerate`, { messageId, agent, detached, fork }, undefined, signal);
    },
    edit(sessionId, messageId, input, { agent, detached = true, fork, signal } = {}) {
      return starting(
        `${at(sessionId)}/edit`,
        { messageId, input, agent, detached, fork },
        undefined,
        signal,
      );
    },
    join: (sessionId, { after, signal } = {}) => reading(() => sessionId, undefined, after, signal),
    async steer(sessionId, input) {
      await post(`${at(sessionId)}/steer`, { input });
    },
    async followUp(sessionId, input) {
      await post(`${at(sessionId)}/follow-up`, { input });
    },
    async cancel(sessionId, reason) {
      await post(`${at(sessionId)}/cancel`, { reason });
    },
    messages: (sessionId, page) => get(`${at(sessionId)}/messages${queryOf(page)}`),
    session: (sessionId) => get(at(sessionId)),
    questions: async (sessionId) => (await get(`${at(sessionId)}/questions`)).questions,
    allowances: async (sessionId) => (await get(`${at(sessionId)}/allowances`)).allowances,
    async revoke(sessionId, allowanceId) {
      await request('DELETE', `${at(sessionId)}/allowances/${encodeURIComponent(allowanceId)}`);
    },
    sessions: (page) => get(`/sessions${queryOf(page)}`),
    async delete(sessionId) {
      await request('DELETE', at(sessionId));
    },
    agents: async () => (await get('/agents')).agents,
  };
}

class RunOfClient implements ClientRun {
  private taken = false;
  private resolve!: (result: ClientResult) => void;
  private reject!: (error: unknown) => void;
  private readonly settled = new Promise<ClientResult>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });

  constructor(
    readonly sessionId: Promise<string>,
    private readonly read: () => AsyncGenerator<SentEvent, undefined>,
  ) {
    this.settled.catch(() => undefined);
  }

  get result(): Promise<ClientResult> {
    if (!this.taken) void this.drain();
    return this.settled;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SentEvent, undefined> {
    if (this.taken)
      throw new Error('These events already have a reader. Read them in one loop and pass them on.');
    this.taken = true;
    let text = '';
    let questions: readonly Question[] = [];
    let end: ClientEnd | undefined;
    let stalled = false;
    try {
      for await (const sent of this.read()) {
        const { event } = sent;
        if (event.type === 'message_end' && event.message?.role === 'assistant')
          text = event.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
        if (event.type === 'suspended') questions = event.questions;
        if (event.type === 'agent_end') end = event;
        stalled = event.type === 'stalled';
        yield sent;
      }
      if (stalled)
        throw new HttpError(
          0,
          'RUN_STALLED',
          'The process that ran the agent has probably died. Resume the run.',
        );
      if (!end) throw new HttpError(0, 'STREAM_ENDED', 'The stream ended before the run did.');
      const { runId, status, stop } = end;
      this.resolve({ sessionId: await this.sessionId, runId, status, stop, text, questions });
    } catch (error) {
      this.reject(error);
      throw error;
    } finally {
      // A reader that left early gets no result.
      this.reject(new Error('The reader left before the run ended.'));
    }
  }

  private async drain(): Promise<void> {
    try {
      for await (const _ of this);
    } catch {
      // `result` has it.
    }
  }
}

function queryOf(page: object | undefined): string {
  const entries = Object.entries(page ?? {}).filter(([, value]) => value !== undefined);
  return entries.length === 0
    ? ''
    : `?${new URLSearchParams(entries.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}
