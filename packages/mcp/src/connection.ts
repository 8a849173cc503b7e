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
import { type Broken, type Listing, withReadableAnswers } from './answers.js';
import { type CallHooks, Calls } from './calls.js';
import { forgotSession, reasonOf, statusOf } from './failures.js';
import { checkUnchanged, fingerprintOf } from './fingerprint.js';
import type { Headers, Settings } from './options.js';
import { type Listener, type Way, wayTo } from './transport.js';
import { outputValidator } from './validator.js';

interface Live {
  readonly client: Client;
  readonly transport: Transport;
  readonly calls: Calls;
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

/** How long a server may take to hear that we leave. */
const GOODBYE_MS = 1000;

export class Connection {
  private opening: Promise<Live> | undefined;
  private live: Live | undefined;
  /** Ends the connecting that is under way. */
  private giveUp = (): unknown => undefined;
  private lane: Promise<unknown> = Promise.resolve();
  private closed = false;

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
      return await live.calls.make(live.client, tool, args, hooks);
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
    const calls = new Calls(this.settings);
    const { transport, said } = await this.way({
      answerTooLarge: (error, asked) => calls.endAsked(asked, error),
      tooLarge: (error) => {
        calls.endAll(error);
        // The library says that it is closed when the program has ended, which may take seconds.
        this.drop(live);
      },
      question: (id, asked) => calls.heard(id, asked),
    });
    const live: Live = {
      client,
      transport,
      calls,
      list: undefined,
      current: undefined,
      broken: withReadableAnswers(transport, specTypeSchemas),
      users: 0,
      retired: false,
    };
    for (const method of ['elicitation/create', 'sampling/createMessage'] as const)
      if (method === 'elicitation/create' ? elicitation : sampling)
        client.setRequestHandler(
          method,
          ({ params }, { mcpReq }) =>
            calls.ask(mcpReq.id, method, params as Record<string, unknown>) as never,
        );
    // An error here belongs to no call: the next call finds out.
    client.onerror = () => {};
    client.onclose = () => this.drop(live);
    this.giveUp = () => transport.close().catch(() => {});
    try {
      if (this.closed) throw new Error('it was closed.');
      await client.connect(transport, this.limits);
      calls.watch(transport);
      await this.listed(live);
    } catch (error) {
      await leave(live);
      throw this.failed(`cannot be reached: ${reasonOf(error)}${said()}`, error);
    }
    this.live = live;
    return live;
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
