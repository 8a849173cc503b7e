/** The calls under way on one connection: each begins, is asked things, and ends. */

import type { CallToolResult, Client, Tool as ServerTool, Transport } from '@modelcontextprotocol/client';
import { AlliumError } from 'allium';
import { isRecord, messageOf } from 'allium/kit';
import type { Settings } from './options.js';
import { Questions } from './questions.js';

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

const KEY = 'allium/idempotencyKey';
/** Tells attempts of one call apart that overlap: they have the same key. */
const ATTEMPT = 'allium/attempt';
/** Node's timers take no more; calls have the time limit of their tool. */
const NO_LIMIT = 2 ** 31 - 1;
const UNREADABLE = -32603;
/** The call needs a person to visit an address before. */
const VISIT_FIRST = -32042;
const MAX_ROUNDS = 20;

export class Calls {
  /** By their attempts. */
  private readonly calls = new Map<number, Call>();
  private readonly questions = new Questions<Call>();
  private attempts = 0;

  constructor(private readonly settings: Settings) {}

  /** Calls, and calls again with the answers as long as the server replies with questions. */
  async make(
    client: Client,
    tool: ServerTool,
    args: Record<string, unknown>,
    hooks: CallHooks,
  ): Promise<CallToolResult> {
    const call: Call = { attempt: ++this.attempts, hooks, tool, abort: new AbortController() };
    this.calls.set(call.attempt, call);
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
    this.questions.begin(call);
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
      this.questions.end(call);
      this.calls.delete(call.attempt);
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

  /** The server asks something on the connection. */
  ask(id: unknown, method: string, params: Record<string, unknown>): Promise<object> {
    return this.questions.ask(id, (call) => this.answer(call, method, params));
  }

  /** This question came with the answer to this request. */
  heard(id: unknown, asked: RequestInit['body']): void {
    this.questions.heard(id, this.callAsked(asked));
  }

  /** Ends the call that made this request, if one did. */
  endAsked(asked: RequestInit['body'], error: unknown): void {
    const call = this.callAsked(asked);
    if (call) this.end(call, error);
  }

  endAll(error: unknown): void {
    for (const call of this.calls.values()) this.end(call, error);
  }

  /**
   * Over HTTP each request of a call has its own stream, and the library doesn't notice if it is cut off for good: the
   * call would wait for its time limit. A stream that ends after its answer says nothing: the call may be in its next round.
   */
  watch(transport: Transport): void {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      const call = this.callOf(message);
      if (!call) return send(message, options);
      const { id } = message as { id?: unknown };
      call.asked = id;
      const onRequestStreamEnd = (): void => {
        if (call.asked === id && this.calls.get(call.attempt) === call) this.end(call, this.lost(call.tool));
      };
      return send(message, { ...options, onRequestStreamEnd });
    };
    const receive = transport.onmessage!;
    transport.onmessage = (message, extra) => {
      if ('method' in message) return receive(message, extra);
      for (const call of this.calls.values()) if (call.asked === message.id) call.asked = undefined;
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

  private callAsked(asked: RequestInit['body']): Call | undefined {
    return typeof asked === 'string' ? this.callOf(JSON.parse(asked)) : undefined;
  }

  /** The call that a message to the server belongs to. */
  private callOf(message: object): Call | undefined {
    const { params } = message as { params?: { _meta?: Record<string, unknown> } };
    return this.calls.get(params?._meta?.[ATTEMPT] as number);
  }
}
