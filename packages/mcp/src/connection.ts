/** One connection to an MCP server: opened when first needed, and again after it was lost. */

import type {
  CallToolResult,
  Client,
  ClientOptions,
  Tool as ServerTool,
  StreamableHTTPClientTransport,
  Transport,
} from '@modelcontextprotocol/client';
import { AlliumError } from 'allium';
import { isRecord, messageOf } from 'allium/kit';
import { type Broken, type Listing, withReadableAnswers } from './answers.js';
import { checkUnchanged, fingerprintOf } from './fingerprint.js';
import type { Headers, Settings } from './options.js';
import { Questions } from './questions.js';
import { type Listener, type Way, wayTo } from './transport.js';
import { outputValidator } from './validator.js';

/** How questions of a server are answered while one of its tools is called. */
export interface CallHooks {
  /** The same for every attempt of this call. The server gets it as `_meta['allium/idempotencyKey']`. */
  readonly key: string;
  readonly signal: AbortSignal;
  progress(progress: { progress: number; total?: number | undefined; message?: string | undefined }): void;
  /** Answers `elicitation/create`. If it throws, the call ends. */
  elicit(params: Record<string, unknown>): Promise<object>;
  /** Answers `sampling/createMessage`. If it throws, the call ends. */
  sample(params: Record<string, unknown>): Promise<object>;
}

/** A call under way. `ended` is what a hook threw: it ends the call, whatever the server says after that. */
interface Call {
  readonly attempt: number;
  readonly hooks: CallHooks;
  readonly tool: ServerTool;
  readonly abort: AbortController;
  /** The id of its request that the server hasn't answered yet. */
  asked?: unknown;
  ended?: { readonly error: unknown };
}

interface Live {
  readonly client: Client;
  readonly transport: Transport;
  readonly questions: Questions<Call>;
  /** By their attempts. */
  readonly calls: Map<number, Call>;
  /** Its tools; undefined once the server has said that the list is outdated. */
  list: Promise<Listing> | undefined;
  /** The same, once it is there. */
  current: Listing | undefined;
  /** Tools of the latest list that can't be used. */
  broken(): readonly Broken[];
  /** How many calls and lists are under way. */
  users: number;
  /** Nothing begins on it any more: it is closed when the last user has ended. */
  retired: boolean;
}

const KEY = 'allium/idempotencyKey';
/** Tells attempts of one call apart that overlap: they have the same key. */
const ATTEMPT = 'allium/attempt';
/** Node's timers take no more; calls have the time limit of their tool. */
const NO_LIMIT = 2 ** 31 - 1;
/** How long a server may take to hear that we leave. */
const GOODBYE_MS = 1000;
/** What servers of the official library answer in a session they don't know. */
const SESSION_NOT_FOUND = -32001;
const UNREADABLE = -32603;
/** The call needs a person to visit an address before. */
const VISIT_FIRST = -32042;
const MAX_ROUNDS = 20;
const MAX_SAID = 2000;

export class Connection {
  private opening: Promise<Live> | undefined;
  private live: Live | undefined;
  /** Ends the connecting that is under way. */
  private giveUp = (): unknown => undefined;
  private lane: Promise<unknown> = Promise.resolve();
  private closed = false;
  private attempts = 0;

  constructor(
    private readonly settings: Settings,
    private readonly headers: Headers,
    /** Called before it connects. */
    private readonly onConnect: () => void,
    private readonly transport?: () => Transport,
  ) {}

  get isOpen(): boolean {
    return this.live !== undefined;
  }

  get isConnecting(): boolean {
    return this.opening !== undefined && this.live === undefined;
  }

  /** The tools, if they are known and the server has not said that the list is outdated. */
  get current(): Listing | undefined {
    return this.live?.current;
  }

  async tools(): Promise<Listing> {
    return this.withSession((live) => this.listed(live)).catch((error) => {
      throw error instanceof AlliumError
        ? error
        : this.failed(`does not list its tools: ${reasonOf(error)}`, error);
    });
  }

  call(tool: ServerTool, args: Record<string, unknown>, hooks: CallHooks): Promise<CallToolResult> {
    if (!this.settings.sequential) return this.callOnce(tool, args, hooks);
    const turn = this.lane.then(() => {
      hooks.signal.throwIfAborted();
      return this.callOnce(tool, args, hooks);
    });
    this.lane = turn.catch(() => {});
    return turn;
  }

  /** What is under way may end; what comes next connects again. */
  rest(): void {
    this.drop(this.live);
  }

  async close(): Promise<void> {
    this.closed = true;
    const { opening } = this;
    if (this.isConnecting) this.giveUp();
    this.opening = undefined;
    this.live = undefined;
    await opening?.then(leave).catch(() => {});
  }

  private callOnce(
    tool: ServerTool,
    args: Record<string, unknown>,
    hooks: CallHooks,
  ): Promise<CallToolResult> {
    return this.withSession(async (live) => {
      if (!live.current?.tools.includes(tool)) await this.checkStill(live, tool);
      return await this.rounds(live, tool, args, hooks);
    }).catch((error) => {
      throw this.explained(tool, error);
    });
  }

  /** Does it again if the server doesn't know the session any more, perhaps because it was restarted: then it did nothing. */
  private async withSession<T>(work: (live: Live) => Promise<T>): Promise<T> {
    const live = this.live ?? (await this.open());
    try {
      return await using(live, work);
    } catch (error) {
      if (!forgotSession(error)) throw error;
      this.drop(live);
      return await using(await this.open(), work);
    }
  }

  private explained({ name: tool }: ServerTool, error: unknown): unknown {
    const status = statusOf(error);
    if (status === undefined) return error;
    const { name: server } = this.settings;
    const message = `MCP server "${server}" answered the call of "${tool}" with ${reasonOf(error)}`;
    return new AlliumError('MCP_FAILED', message, { cause: error, data: { server, tool, status } });
  }

  /** The list may have changed since the model saw it, or since a person approved this call. */
  private async checkStill(live: Live, tool: ServerTool): Promise<void> {
    const now = (await this.listed(live)).tools.find(({ name }) => name === tool.name);
    if (now && now !== tool)
      checkUnchanged(this.settings, tool.name, fingerprintOf(now), fingerprintOf(tool));
  }

  /** Calls, and calls again with the answers as long as the server replies with questions. */
  private async rounds(
    live: Live,
    tool: ServerTool,
    args: Record<string, unknown>,
    hooks: CallHooks,
  ): Promise<CallToolResult> {
    const { client, questions } = live;
    const call: Call = { attempt: ++this.attempts, hooks, tool, abort: new AbortController() };
    live.calls.set(call.attempt, call);
    // A listener of ours costs a fifth of `AbortSignal.any`.
    const abort = (): void => call.abort.abort(hooks.signal.reason);
    if (hooks.signal.aborted) abort();
    else hooks.signal.addEventListener('abort', abort);
    const options = {
      signal: call.abort.signal,
      timeout: NO_LIMIT,
      onprogress: (progress: Parameters<CallHooks['progress']>[0]) => hooks.progress(progress),
      allowInputRequired: true,
      toolDefinition: tool,
    };
    questions.begin(call);
    try {
      const asked = {
        name: tool.name,
        arguments: args,
        _meta: { [KEY]: hooks.key, [ATTEMPT]: call.attempt },
      };
      let params: Record<string, unknown> = asked;
      for (let round = 1; ; round++) {
        const result: CallToolResult & InputRequired = await client
          .callTool(params as never, options)
          .catch((error) => this.asQuestions(error));
        if (result.resultType !== 'input_required') return result;
        if (round > MAX_ROUNDS)
          throw new AlliumError(
            'MCP_FAILED',
            `Tool "${tool.name}" still asked for input after ${MAX_ROUNDS} answers.`,
          );
        params = { ...asked, ...(await this.respond(result, call)) };
      }
    } catch (error) {
      if (call.ended) throw call.ended.error;
      hooks.signal.throwIfAborted();
      // `fetch` throws a TypeError if there is no answer.
      const isLost = error instanceof TypeError || (error as { code?: unknown }).code === 'CONNECTION_CLOSED';
      throw isLost ? this.lost(tool, error) : error;
    } finally {
      hooks.signal.removeEventListener('abort', abort);
      questions.end(call);
      live.calls.delete(call.attempt);
    }
  }

  private async respond(
    { inputRequests = {}, requestState, refusal }: InputRequired,
    call: Call,
  ): Promise<object> {
    const inputResponses: Record<string, unknown> = {};
    for (const [key, { method, params = {} }] of Object.entries(inputRequests)) {
      const response = await this.answer(call, method, params);
      inputResponses[key] = response;
      if (refusal && (response as { action?: unknown }).action !== 'accept')
        throw new AlliumError('MCP_FAILED', `${messageOf(refusal)} A person declined.`, { cause: refusal });
    }
    if (refusal) return {};
    return { inputResponses, ...(requestState !== undefined && { requestState }) };
  }

  /** Servers of 2025 refuse a call until a person has visited some addresses: then the same call is made again. */
  private asQuestions(error: unknown): CallToolResult & InputRequired {
    const { code, data } = error as { code?: unknown; data?: { elicitations?: unknown } };
    if (code !== VISIT_FIRST || !this.settings.elicitation || !Array.isArray(data?.elicitations)) throw error;
    const asked = data.elicitations
      .filter(isRecord)
      .map((params) => ({ method: 'elicitation/create', params }));
    return {
      content: [],
      resultType: 'input_required',
      inputRequests: Object.fromEntries(asked.entries()),
      refusal: error,
    };
  }

  private async answer(call: Call, method: string, params: Record<string, unknown>): Promise<object> {
    try {
      if (method === 'elicitation/create' && this.settings.elicitation)
        return await call.hooks.elicit(params);
      if (method === 'sampling/createMessage' && this.settings.sampling)
        return await call.hooks.sample(params);
      if (method === 'roots/list') return { roots: [] };
      throw new AlliumError('MCP_FAILED', `The server asked for "${method}", which it may not do.`);
    } catch (error) {
      this.end(call, error);
      throw error;
    }
  }

  private end(call: Call, error: unknown): void {
    call.ended ??= { error };
    call.abort.abort(error);
  }

  private lost({ name: tool }: ServerTool, cause?: unknown): AlliumError {
    const { name: server } = this.settings;
    const message = `MCP server "${server}" went away during the call of "${tool}". Nobody knows whether it ran.`;
    return new AlliumError('MCP_CONNECTION_LOST', message, { cause, data: { server, tool } });
  }

  private open(): Promise<Live> {
    if (this.closed) throw this.failed('was closed');
    this.opening ??= this.connect().catch((error) => {
      this.opening = undefined;
      throw error;
    });
    return this.opening;
  }

  private async connect(): Promise<Live> {
    this.onConnect();
    const { elicitation, sampling, protocol } = this.settings;
    const { Client, specTypeSchemas } = await import('@modelcontextprotocol/client');
    const { AjvJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/ajv');
    const onChanged = () => {
      live.list = undefined;
      live.current = undefined;
    };
    const options: ClientOptions = {
      capabilities: {
        ...(elicitation && { elicitation: { form: {}, url: {} } }),
        ...(sampling && { sampling: {} }),
      },
      versionNegotiation: { mode: protocol },
      jsonSchemaValidator: outputValidator(AjvJsonSchemaValidator),
      inputRequired: { autoFulfill: false },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged } },
    };
    const client = new Client({ name: 'allium', version: '0.1.0' }, options);
    const asking = (asked: RequestInit['body']) =>
      typeof asked === 'string' ? callOf(live, JSON.parse(asked)) : undefined;
    const { transport, said } = await this.way({
      answerTooLarge: (error, asked) => {
        const call = asking(asked);
        if (call) this.end(call, error);
      },
      tooLarge: (error) => {
        for (const call of live.calls.values()) this.end(call, error);
        // The library says that it is closed when the program has ended, which may take seconds.
        this.drop(live);
      },
      question: (id, asked) => live.questions.heard(id, asking(asked)),
    });
    const live: Live = {
      client,
      transport,
      questions: new Questions(),
      calls: new Map(),
      list: undefined,
      current: undefined,
      broken: withReadableAnswers(transport, specTypeSchemas),
      users: 0,
      retired: false,
    };
    for (const method of ['elicitation/create', 'sampling/createMessage'] as const) {
      const allowed = method === 'elicitation/create' ? elicitation : sampling;
      if (allowed)
        client.setRequestHandler(
          method,
          (request, { mcpReq }) =>
            live.questions.ask(mcpReq.id, (call) =>
              this.answer(call, method, request.params as Record<string, unknown>),
            ) as never,
        );
    }
    // An error here belongs to no call: the next call finds out.
    client.onerror = () => {};
    client.onclose = () => this.drop(live);
    this.giveUp = () => transport.close().catch(() => {});
    try {
      if (this.closed) throw new Error('it was closed.');
      await client.connect(transport, this.limits);
      this.watch(live);
      await this.listed(live);
    } catch (error) {
      await leave(live);
      throw this.failed(`cannot be reached: ${reasonOf(error)}${said()}`, error);
    }
    this.live = live;
    return live;
  }

  /**
   * Over HTTP each request of a call has its own stream, and the library doesn't notice if it is cut off for good: the
   * call would wait for its time limit. A stream that ends after its answer says nothing: the call may be in its next round.
   */
  private watch(live: Live): void {
    const { transport } = live;
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      const call = callOf(live, message);
      if (!call) return send(message, options);
      const { id } = message as { id?: unknown };
      call.asked = id;
      const onRequestStreamEnd = (): void => {
        if (call.asked === id && live.calls.get(call.attempt) === call) this.end(call, this.lost(call.tool));
      };
      return send(message, { ...options, onRequestStreamEnd });
    };
    const receive = transport.onmessage!;
    transport.onmessage = (message, extra) => {
      if ('method' in message) return receive(message, extra);
      for (const call of live.calls.values()) if (call.asked === message.id) call.asked = undefined;
      // The library tells of progress a moment later, unless it has the answer by then.
      queueMicrotask(() => {
        try {
          receive(message, extra);
        } catch (error) {
          // Nobody else would catch it, for example if the answer is nested too deep to be checked.
          const unreadable = { code: UNREADABLE, message: `The answer can't be read: ${messageOf(error)}` };
          receive({ jsonrpc: '2.0', id: message.id!, error: unreadable }, extra);
        }
      });
    };
  }

  /** The tools the server offers. A list that it called outdated is fetched again. */
  private listed(live: Live): Promise<Listing> {
    if (live.list) return live.list;
    const list: Promise<Listing> = this.fetched(live).then(
      (listing) => {
        // It may have become outdated while it was on its way.
        if (live.list === list) live.current = listing;
        return listing;
      },
      (error) => {
        if (live.list === list) live.list = undefined;
        throw error;
      },
    );
    live.list = list;
    return list;
  }

  private async fetched({ client, broken }: Live): Promise<Listing> {
    // The library would write to our console that there are none.
    if (!client.getServerCapabilities()?.tools) return { tools: [], broken: [] };
    const { tools } = await client.listTools(undefined, { ...this.limits, cacheMode: 'refresh' });
    return { tools, broken: broken() };
  }

  private get limits() {
    return { timeout: this.settings.connectTimeoutMs };
  }

  private async way(listener: Listener): Promise<Way> {
    if (this.transport) return { transport: this.transport(), said: () => '' };
    return wayTo(this.settings, this.headers, listener);
  }

  /** The next call connects again. */
  private drop(live: Live | undefined): void {
    if (live === undefined || this.live !== live) return;
    this.live = undefined;
    this.opening = undefined;
    live.retired = true;
    if (live.users === 0) void leave(live);
  }

  private failed(what: string, cause?: unknown): AlliumError {
    const { name } = this.settings;
    const status = statusOf(cause);
    return new AlliumError('MCP_UNAVAILABLE', `MCP server "${name}" ${what}`, {
      cause,
      data: { server: name, ...(status !== undefined && { status }) },
    });
  }
}

async function using<T>(live: Live, work: (live: Live) => Promise<T>): Promise<T> {
  live.users++;
  try {
    return await work(live);
  } finally {
    live.users--;
    if (live.retired && live.users === 0) void leave(live);
  }
}

/** Ends the session at the server, too, which would keep it otherwise. */
async function leave({ client, transport }: Live): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  if (isHttp(transport))
    await Promise.race([
      transport.terminateSession().catch(() => {}),
      new Promise((resolve) => {
        timer = setTimeout(resolve, GOODBYE_MS);
      }),
    ]);
  clearTimeout(timer);
  await client.close().catch(() => {});
}

function isHttp(transport: Transport): transport is StreamableHTTPClientTransport {
  return 'terminateSession' in transport;
}

interface InputRequired {
  readonly resultType?: string;
  readonly inputRequests?: Record<
    string,
    { readonly method: string; readonly params?: Record<string, unknown> }
  >;
  readonly requestState?: string;
  /** The error that asked, if it was one: the server keeps nothing of this call. */
  readonly refusal?: unknown;
}

/** The call that a message to the server belongs to. */
function callOf(live: Live, message: object): Call | undefined {
  const { params } = message as { params?: { _meta?: Record<string, unknown> } };
  return live.calls.get(params?._meta?.[ATTEMPT] as number);
}

/**
 * The server does not know the session any more. The protocol says 404; other servers say 400 or 401 and name the session, or
 * answer with an error of the protocol.
 */
function forgotSession(error: unknown): boolean {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string };
  const status = statusOf(error);
  if (status === 404) return true;
  return (
    (status === 400 || status === 401 || code === SESSION_NOT_FOUND) &&
    /session|not initialized/i.test(message)
  );
}

/** The HTTP status that an error of the library is about. */
function statusOf(error: unknown): number | undefined {
  const { data } = (error ?? {}) as { data?: unknown };
  const { status } = (isRecord(data) ? data : {}) as { status?: unknown };
  return typeof status === 'number' ? status : undefined;
}

/** The library only passes on what the server wrote, which may be nothing or a whole page. */
function reasonOf(error: unknown): string {
  const said = messageOf(error).slice(0, MAX_SAID).trim();
  const status = statusOf(error);
  if (status === undefined) return said;
  const advice = status === 401 || status === 403 ? ' It did not accept the `headers`.' : '';
  return `HTTP status ${status}.${advice} ${said}`;
}
