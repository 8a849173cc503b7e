/** An agent as an MCP server, over standard input and output or HTTP: `@allium/mcp/server`. */

import { randomBytes, randomUUID } from 'node:crypto';
import {
  type AuthInfo,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  createMcpHandler,
  createRequestStateCodec,
  fromJsonSchema,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { type StdioServerHandle, serveStdio } from '@modelcontextprotocol/server/stdio';
import {
  Agent,
  type Decision,
  type PendingRequest,
  RunError,
  type RunResult,
  type RunStream,
  type Session,
} from 'allium';
import { checkFunction, checkInteger, checkOptions, invalidOption, isRecord } from 'allium/kit';
import { parentOf } from 'allium/stores/kit';
import { OldClients } from './old-clients.js';

export interface McpServerOptions {
  /** The agents, by the names of the tools they become, each with what its tool is for. */
  readonly agents: Readonly<Record<string, { readonly agent: Agent; readonly description: string }>>;
  /** Name of the server. @default 'allium' */
  readonly name?: string;
  /** Version of the server. @default '1.0.0' */
  readonly version?: string;
  /**
   * Says whose request this is, for `fetch`: a tenant, or false or a `Response` that refuses it. `'none'` lets everybody in,
   * as one tenant. Needed for `fetch`, ignored for `stdio`.
   */
  readonly authorize?: 'none' | ((request: Request) => Answer | Promise<Answer>);
  /**
   * Signs what a client keeps while a question is open: at least 32 bytes, the same in every process that serves the
   * same clients. @default random, so that only this process can continue its own questions
   */
  readonly key?: string | Uint8Array;
  /** How long a person may take to answer a question, in milliseconds. @default 600000 */
  readonly questionTimeoutMs?: number;
}

export interface Who {
  readonly tenant?: string;
}

type Answer = Who | Response | false | null | undefined;

export interface AgentServer {
  /** Serves this process's standard input and output, which nothing else may write to. */
  stdio(): StdioServerHandle;
  /** Serves one HTTP request: a handler for every server that speaks `Request` and `Response`. */
  fetch(request: Request): Promise<Response>;
  /** Ends the requests that are being served. */
  close(): Promise<void>;
}

/** What a client sends back with its answers. */
interface Waiting {
  readonly session: string;
  readonly tool: string;
  readonly requests: readonly string[];
  /** Progress that was reported, which may only grow. */
  readonly progress: number;
}

/**
 * Makes each agent a tool of an MCP server. Progress is reported, cancelling the call aborts the run, and the questions of
 * a suspended run are put to the client's user.
 *
 * @example
 * const server = mcpServer({ agents: { research: { agent, description: 'Finds things out.' } } });
 * server.stdio();
 */
export function mcpServer(options: McpServerOptions): AgentServer {
  checkServerOptions(options);
  const { agents, name = 'allium', version = '1.0.0', authorize, questionTimeoutMs = 600_000 } = options;
  const isShared = authorize !== undefined && authorize !== 'none';
  const codec = createRequestStateCodec<Waiting>({
    key: options.key ?? randomBytes(32),
    ttlSeconds: Math.ceil(questionTimeoutMs / 1000),
    bind: (ctx) => tenantOf(ctx) ?? '',
  });

  const newServer = (): McpServer => {
    const server = new McpServer(
      { name, version },
      {
        capabilities: { tools: {} },
        requestState: { verify: codec.verify },
        inputRequired: { maxRounds: 100, roundTimeoutMs: questionTimeoutMs },
      },
    );
    for (const [tool, { agent, description }] of Object.entries(agents))
      server.registerTool(tool, { description, inputSchema: INPUT }, (args, ctx) =>
        serve(server, tool, agent, args as Input, ctx),
      );
    return server;
  };

  async function serve(
    server: McpServer,
    tool: string,
    agent: Agent,
    args: Input,
    ctx: ServerContext,
  ): Promise<CallToolResult | InputRequiredResult> {
    const waiting = ctx.mcpReq.requestState<Waiting>();
    const tenant = tenantOf(ctx);
    const id = waiting?.session ?? sessionIdOf(args.session ?? randomUUID(), tenant, isShared);
    const { signal } = ctx.mcpReq;
    try {
      // As for `allium/http`: the sessions of sub-agents are no clients' business.
      if (parentOf(id) !== undefined) return failed('No session can have this name.');
      const session = agent.session(id, tenant === undefined ? {} : { tenant });
      const progress = { value: waiting?.progress ?? 0 };
      const result =
        waiting && waiting.tool === tool
          ? await answered(session, answersIn(ctx, waiting), ctx, progress)
          : await withProgress(session.stream(args.message, { signal }), ctx, progress);
      if (result.status !== 'suspended') return told(result);
      if (!canAsk(server, ctx))
        return failed(`${questionsOf(result)}\nThis client cannot ask its user, so the run waits.`);
      const requests = result.pending.map((pending) => pending.id);
      return inputRequired({
        inputRequests: Object.fromEntries(result.pending.map((pending) => [pending.id, questionOf(pending)])),
        requestState: await codec.mint({ session: id, tool, requests, progress: progress.value }, ctx),
      });
    } catch (error) {
      // What went wrong inside stays inside, except for its code.
      return failed(
        `The agent could not answer (${error instanceof RunError ? error.code : codeOf(error)}).`,
      );
    }
  }

  const handler = createMcpHandler(newServer);
  const oldClients = new OldClients(newServer, 1000);
  return {
    stdio: () => serveStdio(newServer),
    async fetch(request) {
      if (authorize === undefined)
        throw invalidOption('authorize', "a function that says whose request it is, or 'none'", authorize);
      const who = authorize === 'none' ? {} : await authorize(request);
      if (who instanceof Response) return who;
      if (!isRecord(who)) return new Response('Say who you are.', { status: 401 });
      const authInfo = authInfoOf(who);
      return (await oldClients.fetch(request, authInfo)) ?? handler.fetch(request, { authInfo });
    },
    async close() {
      await Promise.all([oldClients.close(), handler.close()]);
    },
  };
}

interface Input {
  readonly message: string;
  readonly session?: string;
}

const INPUT = fromJsonSchema<Input>({
  type: 'object',
  properties: {
    message: { type: 'string', description: 'What the agent is asked.' },
    session: {
      type: 'string',
      description: 'Any name for a conversation: calls with the same name continue it.',
      minLength: 1,
      maxLength: 200,
    },
  },
  required: ['message'],
  additionalProperties: false,
});

function checkServerOptions(options: McpServerOptions): void {
  checkOptions('mcpServer', options, ['agents', 'name', 'version', 'authorize', 'key', 'questionTimeoutMs']);
  const { agents, authorize, questionTimeoutMs = 1 } = options;
  if (!isRecord(agents) || Object.keys(agents).length === 0)
    throw invalidOption('agents', 'an object with at least one agent', agents);
  for (const [tool, one] of Object.entries(agents)) {
    if (!/^[\w.-]{1,64}$/.test(tool))
      throw invalidOption('agents', 'named with letters, digits, "_", "-" and "."', tool);
    if (!isRecord(one) || !(one.agent instanceof Agent) || typeof one.description !== 'string')
      throw invalidOption(
        `agents.${tool}`,
        '{ agent, description }, an Agent and a text that says what it is for',
        one,
      );
  }
  if (authorize !== undefined && authorize !== 'none') checkFunction('authorize', authorize);
  checkInteger('questionTimeoutMs', questionTimeoutMs, 1);
}

function authInfoOf(who: Who): AuthInfo {
  const { tenant } = who;
  // A tenant that is missing by mistake would put everybody's sessions together.
  if ('tenant' in who && typeof tenant !== 'string')
    throw invalidOption(
      'tenant',
      'text from `authorize`, or to be left out where there are no tenants',
      tenant,
    );
  const extra = tenant === undefined ? {} : { tenant };
  return { token: '', clientId: tenant ?? '', scopes: [], extra };
}

function tenantOf(ctx: ServerContext): string | undefined {
  return ctx.http?.authInfo?.extra?.tenant as string | undefined;
}

/**
 * The id of a session in the store, like that of `allium/http`: tenants can use the same names, and can't tell what names
 * others use. Without a tenant a name can't have a slash, or it could be that of a tenant's session.
 */
function sessionIdOf(name: string, tenant: string | undefined, isShared: boolean): string {
  if (tenant !== undefined) return `${encodeURIComponent(tenant)}/${name}`;
  return isShared ? name.replace(/[%/]/g, encodeURIComponent) : name;
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && code !== 'TENANT_MISMATCH' ? code : 'INVALID_REQUEST';
}

/** Reports which tools are working, then returns the result. */
async function withProgress(
  stream: RunStream,
  ctx: ServerContext,
  progress: { value: number },
): Promise<RunResult> {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return stream.result;
  try {
    for await (const event of stream) {
      if (event.type !== 'tool_execution_start' && event.type !== 'turn_start') continue;
      const message = event.type === 'turn_start' ? `turn ${event.turn}` : `calls ${event.toolCall.name}`;
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress: ++progress.value, message },
      });
    }
  } catch {
    // The result says why.
  }
  return stream.result;
}

/** Goes on with the answers. If they came too late, it goes on without them: the run knows what has become of its questions. */
async function answered(
  session: Session,
  answers: Record<string, Decision>,
  ctx: ServerContext,
  progress: { value: number },
): Promise<RunResult> {
  const { signal } = ctx.mcpReq;
  try {
    return await withProgress(session.resumeStream({ answers, signal }), ctx, progress);
  } catch (error) {
    if (codeOf(error) !== 'REQUEST_UNKNOWN') throw error;
    return withProgress(session.resumeStream({ signal }), ctx, progress);
  }
}

function told({ status, text, stop }: RunResult): CallToolResult {
  if (status === 'done') return { content: [{ type: 'text', text }] };
  return failed(`${text === '' ? '' : `${text}\n`}The agent stopped early (${stop?.reason ?? status}).`);
}

function failed(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}

// ── Questions ────────────────────────────────────────────────────────────────────────────────────────────────

/** Clients say what they can do with every request, or once, when they connect; those of 2025 do the latter. */
function canAsk({ server }: McpServer, ctx: ServerContext): boolean {
  const { [CLIENT_CAPABILITIES_META_KEY]: said = server.getClientCapabilities() } = (ctx.mcpReq.envelope ??
    {}) as { readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities };
  const { elicitation } = said ?? {};
  // One that names no kind of question means forms.
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

function questionsOf({ pending }: RunResult): string {
  return pending.map(wordsOf).join('\n');
}

function wordsOf({ title, toolName, effectiveArguments, arguments: raw, kind }: PendingRequest): string {
  const about = kind === 'ask' ? `May "${toolName}" be called with ${effectiveArguments ?? raw}?` : '';
  return [title, about].filter(Boolean).join('\n');
}

function questionOf(pending: PendingRequest) {
  const message = wordsOf(pending);
  const { kind, decisions } = pending;
  if (kind === 'suspend' && (decisions?.includes('respond') ?? true))
    return inputRequired.elicit({
      message,
      requestedSchema: { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] },
    });
  return inputRequired.elicit({
    message,
    requestedSchema: {
      type: 'object',
      properties: {
        decision: { type: 'string', enum: ['approve', 'reject'] },
        reason: { type: 'string', description: 'Why not, for the agent.' },
      },
      required: ['decision'],
    },
  });
}

/** Anything but a clear yes is a no. */
function answersIn(ctx: ServerContext, { requests }: Waiting): Record<string, Decision> {
  return Object.fromEntries(
    requests.map((id): [string, Decision] => {
      const given = inputResponse(ctx.mcpReq.inputResponses, id);
      if (given.kind !== 'elicit' || given.action !== 'accept')
        return [id, { type: 'reject', reason: 'The user declined.' }];
      const { decision, reason, answer } = given.content ?? {};
      if (typeof answer === 'string') return [id, { type: 'respond', text: answer }];
      if (decision === 'approve') return [id, { type: 'approve' }];
      return [id, { type: 'reject', ...(typeof reason === 'string' && { reason }) }];
    }),
  );
}
