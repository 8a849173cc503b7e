/** The middleware that offers the tools of one MCP server. */

import type { Transport } from '@modelcontextprotocol/client';
import {
  AlliumError,
  type Context,
  defineState,
  isControl,
  type Middleware,
  type ModelContext,
  type Tool,
  type ToolCall,
  type ToolContext,
} from 'allium';
import { safeErrorMessage, wasToolOffered } from 'allium/kit';
import type { Listing } from './answers.js';
import { Connection } from './connection.js';
import { checkUnchanged } from './fingerprint.js';
import {
  checkHeaders,
  checkMcpOptions,
  type Headers,
  isTextRecord,
  type McpOptions,
  type Settings,
} from './options.js';
import { type McpTool, type Offer, type OfferedTool, offerOf, type Schemas } from './tools.js';
import { inputValidator, outputValidator } from './validator.js';

/** The state of a server, to be shown. */
export interface McpState {
  readonly server: string;
  readonly connected: boolean;
  readonly tools: readonly McpTool[];
  /** Tools of the server that are not offered, and why. */
  readonly leftOut: readonly { readonly name: string; readonly why: string }[];
}

export interface Mcp extends Middleware {
  /**
   * Connects now instead of when a run first needs it, so that `explain()` shows the tools. Rejects with
   * `MCP_UNAVAILABLE`.
   */
  connect(): Promise<McpState>;
  /** What is known about the server without asking it. */
  readonly status: McpState;
  /** Ends all connections, and the program that `command` started. */
  close(): Promise<void>;
}

/** The fingerprint of each tool when it was first offered in a session, by the server's name for it. */
type Seen = Readonly<Record<string, string>>;

/**
 * Offers the tools of an MCP server to the model. It connects when a run first needs it, and again after the connection
 * was lost.
 *
 * @example
 * const files = mcp({ name: 'files', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] });
 */
export function mcp(options: McpOptions): Mcp {
  return mcpOver(options);
}

/** The same over a given transport, for tests. */
export function mcpOver(options: McpOptions, transport?: () => Transport): Mcp {
  const settings = checkMcpOptions(options);
  const { name, elicitation, sampling } = settings;
  const seen = defineState<Seen>({ name: 'seen', scope: 'session', initial: {}, rewinds: false });
  const servers = new Servers(settings, transport);
  /**
   * The offer that was last compared with what a session remembers: cells are frozen, so it needs no second check.
   */
  const compared = new WeakMap<Seen, Offer>();
  return {
    name: `mcp-${name}`,
    state: [seen],
    suspends: elicitation,
    runOptions: ['mcp'],
    ...(sampling && { extraLlmCalls: () => [sampling] }),
    get brings() {
      return servers.status.tools.map((tool) => tool.name);
    },
    hazards: () => servers.hazards(),

    // A rule and not a layer: calls that other middleware make for themselves don't get these tools.
    async transformSystemPrompt(prompt: string, ctx: ModelContext) {
      const tools = await offeredIn(ctx);
      if (tools.length > 0) ctx.tools = joined(ctx.tools, tools);
      return prompt;
    },
    resolveToolCall: (call: ToolCall, ctx: ToolContext) => reopened(call, ctx),

    async connect() {
      await servers.offer(await servers.plain());
      return servers.status;
    },
    get status() {
      return servers.status;
    },
    close: () => servers.close(),
  };

  /** The tools for this run. The session remembers how each was described when it was first offered. */
  async function offeredIn(ctx: Context): Promise<readonly OfferedTool[]> {
    const offer = await servers.offerTo(ctx);
    if (!offer) return [];
    const { tools, leftOut } = offer;
    const known = ctx.state.get(seen);
    if (compared.get(known) === offer) return tools;
    for (const { serverName, fingerprint } of tools)
      checkUnchanged(
        settings,
        serverName,
        fingerprint,
        Object.hasOwn(known, serverName) ? known[serverName] : undefined,
      );
    if (tools.every(({ serverName, fingerprint }) => known[serverName] === fingerprint)) {
      compared.set(known, offer);
      return tools;
    }
    for (const { name: left, why } of leftOut) ctx.note(`left out tool "${left}": ${why}`);
    const now = Object.fromEntries(tools.map(({ serverName, fingerprint }) => [serverName, fingerprint]));
    ctx.state.update(seen, (before) => ({ ...before, ...now }));
    return tools;
  }

  /**
   * For calls that are still open after a resume: the kernel doesn't know tools that were added to a request before
   * it. A tool that was not offered then was removed from the request on purpose.
   */
  async function reopened(
    call: ToolCall,
    ctx: ToolContext,
  ): Promise<{ toolCall: ToolCall; tool: Tool } | undefined> {
    if (ctx.tool || !call.name.startsWith(settings.prefix) || !wasToolOffered(ctx, call.name))
      return undefined;
    const offer = await offeredIn(ctx);
    const found = offer.find((one) => one.name === call.name);
    return found && { toolCall: call, tool: found.tool };
  }
}

/** Lists of tools are joined once, so that requests with the same tools have the same list. */
const joins = new WeakMap<readonly Tool[], WeakMap<readonly OfferedTool[], readonly Tool[]>>();

function joined(base: readonly Tool[], offered: readonly OfferedTool[]): readonly Tool[] {
  const known = joins.get(base) ?? new WeakMap<readonly OfferedTool[], readonly Tool[]>();
  joins.set(base, known);
  const list = known.get(offered) ?? Object.freeze([...base, ...offered.map(({ tool }) => tool)]);
  known.set(offered, list);
  return list;
}

const NO_HEADERS: Headers = {};

/** The connections to one server: one for each set of headers. */
class Servers {
  private readonly connections = new Map<string, Connection>();
  private readonly offers = new WeakMap<Listing, Offer>();
  /** What was offered last. */
  private known: Offer | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly transport: (() => Transport) | undefined,
  ) {}

  /** Undefined if the server can't be reached and is optional. */
  async offerTo(ctx: Context): Promise<Offer | undefined> {
    const connection = this.connection(await this.headersFor(ctx));
    const known = connection.current && this.offers.get(connection.current);
    if (known) {
      this.known = known;
      return known;
    }
    try {
      return await untilAborted(this.offer(connection), ctx.signal);
    } catch (error) {
      if (!this.settings.optional || isControl(error) || ctx.signal.aborted) throw error;
      ctx.note(`goes on without its tools: ${safeErrorMessage(error, ctx)}`);
      return undefined;
    }
  }

  async offer(connection: Connection): Promise<Offer> {
    const listed = await connection.tools();
    const [{ fromJsonSchema }, { AjvJsonSchemaValidator }] = await Promise.all([
      import('@modelcontextprotocol/client'),
      import('@modelcontextprotocol/client/validators/ajv'),
    ]);
    const schemas = {
      fromJsonSchema,
      validator: inputValidator(AjvJsonSchemaValidator),
      forms: outputValidator(AjvJsonSchemaValidator),
    };
    const offer = this.offers.get(listed) ?? this.make(listed, connection, schemas);
    this.known = offer;
    return offer;
  }

  private make(listed: Listing, connection: Connection, schemas: Schemas): Offer {
    const offer = offerOf(listed, connection, this.settings, schemas);
    this.offers.set(listed, offer);
    return offer;
  }

  /** The connection for no run in particular. */
  async plain(): Promise<Connection> {
    const { headers, name } = this.settings;
    if (typeof headers === 'function')
      throw new AlliumError(
        'INVALID_OPTION',
        `\`headers\` of MCP server "${name}" are made for each run, so it cannot be connected without one.`,
      );
    return this.connection(headers ?? NO_HEADERS);
  }

  private async headersFor(ctx: Context): Promise<Headers> {
    const { headers = NO_HEADERS, name } = this.settings;
    if (typeof headers !== 'function') return headers;
    const made = await headers(ctx);
    if (!isTextRecord(made))
      throw new AlliumError(
        'INVALID_OPTION',
        `\`headers\` of MCP server "${name}" must return an object of texts.`,
      );
    return made;
  }

  private connection(headers: Headers): Connection {
    const key = headers === NO_HEADERS ? '[]' : JSON.stringify(Object.entries(headers).sort());
    const found = this.connections.get(key) ?? this.newConnection(headers, () => this.used(key, found));
    this.used(key, found);
    return found;
  }

  private newConnection(headers: Headers, onConnect: () => void): Connection {
    checkHeaders(headers, this.settings);
    return new Connection(this.settings, headers, onConnect, this.transport);
  }

  /**
   * If there are too many, those that were used longest ago rest. A run that still has their tools wakes them up. One that is
   * just connecting stays listed, so that it can be closed.
   */
  private used(key: string, connection: Connection): void {
    this.connections.delete(key);
    this.connections.set(key, connection);
    for (const [oldest, one] of this.connections) {
      if (this.connections.size <= this.settings.maxConnections) return;
      if (one === connection || one.isConnecting) continue;
      this.connections.delete(oldest);
      one.rest();
    }
  }

  get status(): McpState {
    const { tools, leftOut } = this.known ?? { tools: [], leftOut: [] };
    return {
      server: this.settings.name,
      connected: [...this.connections.values()].some(({ isOpen }) => isOpen),
      tools: tools.map(({ tool: _, ...told }) => told),
      leftOut,
    };
  }

  *hazards() {
    const { name, pins } = this.settings;
    if (pins || this.known?.tools.length === 0) return;
    const lines = this.known?.tools.map(
      (tool) => `\n      ${tool.name} (${tool.fingerprint}): ${shortened(tool.description)}`,
    );
    yield {
      id: 'untrusted-tools',
      message: lines
        ? `MCP server "${name}" describes its tools itself:${lines.join('')}`
        : `MCP server "${name}" describes its tools itself, and is not connected yet.`,
      fix: lines
        ? 'Read them, because the model will. With the fingerprints in `pins`, a changed description is an error.'
        : '`allium doctor` lists them; here they are shown after its connect().',
    };
  }

  async close(): Promise<void> {
    const all = [...this.connections.values()];
    this.connections.clear();
    await Promise.all(all.map((connection) => connection.close()));
  }
}

function shortened(description: string): string {
  const line = description.replace(/\s+/g, ' ').trim();
  return line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

/** Connecting continues for others when one run is aborted. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
