/** Writes a line for every run, model call and tool call, chained so that a missing or changed one is noticed. */
import { type Clock, systemClock } from '../../kernel/clock.js';
import type { Context, RunContext, ToolContext } from '../../kernel/context.js';
import { controlKind, invalidOption, messageOf } from '../../kernel/errors.js';
import {
  isSyntheticMessage,
  type Message,
  type ModelResponse,
  type ToolMessage,
  textOf,
  toolCallsOf,
} from '../../kernel/messages.js';
import { defineMiddleware, type Middleware } from '../../kernel/middleware.js';
import { modelName } from '../../kernel/model.js';
import { checkMethods, checkOptions } from '../../kernel/options.js';
import { defineState } from '../../kernel/state.js';
import type { Store } from '../../kernel/store.js';
import { type AuditHead, type AuditKey, type AuditLine, sealed } from './seal.js';
import { type AuditFile, type AuditFunction, sinkOf } from './sinks.js';

export type { AuditHead, AuditKey, AuditLine } from './seal.js';
export type { AuditFile, AuditFunction } from './sinks.js';
export { type AuditProblem, type AuditReport, verifyAudit } from './verify.js';

export interface AuditLogOptions {
  /** Takes the lines: a function, or a file. A line is written before the run goes on. */
  readonly sink: AuditFunction | AuditFile;
  /** Seals the lines (HMAC-SHA256). Without it they are hashed, which anyone who can write can do again. */
  readonly key?: AuditKey;
  /** Text of answers, arguments and results; `false` leaves it out. @default true */
  readonly content?: boolean;
  /** Needed when two of them stand in one list. @default 'audit-log' */
  readonly name?: string;
  readonly clock?: Clock;
}

/** The end of the chain, and which calls of the latest batch are in it. */
interface Anchor {
  readonly seq: number;
  readonly hash: string;
  readonly message: string;
  readonly calls: readonly string[];
}

const EMPTY: Anchor = { seq: 0, hash: '', message: '', calls: [] };

/** The chain of a session while a run of it is under way. */
interface Chain {
  anchor: Anchor;
  /** Lines of a session are written one after the other. */
  last: Promise<void>;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Logs what happens as the guards let it pass. Every line is sealed and names the one before it; the end of the
 * chain is stored with the session, so that `verifyAudit` notices lines that are missing, edited or cut off.
 *
 * @example
 * const audit = auditLog({ sink: (line) => void lines.push(line), key: 'a secret' });
 */
export function auditLog(options: AuditLogOptions): Middleware {
  checkOptions('auditLog', options, ['sink', 'key', 'content', 'name', 'clock']);
  const { key, content = true, name = 'audit-log', clock = systemClock } = options;
  const sink = sinkOf(options.sink);
  checkKey(key);
  if (typeof content !== 'boolean') throw invalidOption('content', 'true or false', content);
  if (typeof name !== 'string' || name === '') throw invalidOption('name', 'non-empty text', name);
  checkMethods('clock', clock, ['now']);
  const anchor = defineState<Anchor>({ name: 'head', scope: 'session', initial: EMPTY });
  /** Chains of runs under way. Parallel calls do not see each other's cells, so the end of a chain is kept here, too. */
  const chains = new Map<string, Chain>();
  const text = (value: () => unknown): unknown => (content ? value() : undefined);

  /** Numbers and seals a line at once, so that lines are chained in the order they are made. */
  async function log(
    ctx: Context,
    type: AuditLine['type'],
    fields: Fields,
    call?: ToolCallId,
  ): Promise<void> {
    const chain = chains.get(ctx.sessionId)!;
    const { seq, hash: prev } = chain.anchor;
    const time = new Date(clock.now()).toISOString();
    const common = { v: 1, session: ctx.sessionId, run: ctx.runId, seq: seq + 1, time, type } as const;
    const line = sealed({ ...common, ...fields, prev }, key);
    const next: Anchor = { seq: seq + 1, hash: line.hash, ...callsWith(chain.anchor, call) };
    chain.anchor = next;
    // Writes of calls side by side are committed in any order: the end that is furthest stands.
    ctx.state.update(anchor, (stored) => (stored.seq > next.seq ? stored : next));
    const written = chain.last.then(() => sink.write(line.text));
    chain.last = written.catch(() => {});
    await written;
  }

  /** Logs beside a failure, which goes on whatever happens here. */
  async function logFailure(ctx: Context, type: AuditLine['type'], fields: Fields): Promise<void> {
    try {
      await log(ctx, type, fields);
    } catch (problem) {
      ctx.emit('audit_failed', { error: messageOf(problem) });
    }
  }

  return defineMiddleware({
    name,
    sink: true,
    traits: ['exports'],
    state: [anchor],
    beforeRun(ctx) {
      chains.set(ctx.sessionId, { anchor: ctx.state.get(anchor), last: Promise.resolve() });
    },
    async wrapModel(ctx, next) {
      // A call that a middleware further out makes before or after the run belongs to no chain.
      if (!chains.has(ctx.sessionId)) return next();
      const fields = { turn: ctx.turn, model: modelName(ctx.model), messages: ctx.messages.length };
      let response: ModelResponse;
      try {
        response = await next();
      } catch (error) {
        await logFailure(ctx, 'model', { ...fields, ...outcomeOf(error) });
        throw error;
      }
      await log(ctx, 'model', { ...fields, ...answered(response, text) });
      return response;
    },
    // Fires for calls that were refused, skipped or failed, too, and sees what the guards left.
    async afterToolCall(ctx) {
      const { id, name: tool, arguments: given } = ctx.toolCall;
      const args = text(() => (ctx.rawArgs === undefined ? given : JSON.stringify(ctx.rawArgs)));
      const { content: parts, isError } = ctx.result!;
      const result = text(() => textOf({ content: parts }));
      const fields = { turn: ctx.turn, tool, call: id, args, blocked: ctx.blocked, isError, result };
      await log(ctx, 'tool', fields, callOf(ctx));
    },
    async afterRun(ctx) {
      try {
        for (const missed of unlogged(ctx, chains.get(ctx.sessionId)!.anchor)) {
          const { call, args, message, of } = missed;
          const result = text(() => textOf(message));
          const fields = { turn: ctx.turn, tool: message.toolName, call, args: text(() => args) };
          await log(
            ctx,
            'tool',
            { ...fields, blocked: true, isError: message.isError, result },
            { message: of, call },
          );
        }
        await log(ctx, 'run', ended(ctx, text));
        await sink.flush?.();
      } finally {
        chains.delete(ctx.sessionId);
      }
    },
  });
}

/**
 * The end of the chain of a session, from its journal. Keep a copy elsewhere now and then: it also tells when
 * somebody put back an old journal together with an old log.
 */
export async function auditHead(store: Store, session: string, name = 'audit-log'): Promise<AuditHead> {
  let found: Anchor = EMPTY;
  for (const entry of await store.read(session, 1))
    if (entry.type === 'state' && entry.cell === `${name}:head`) found = entry.value as Anchor;
  return { session, seq: found.seq, hash: found.hash };
}

function checkKey(key: unknown): void {
  const fine =
    key === undefined || ((typeof key === 'string' || key instanceof Uint8Array) && key.length > 0);
  // The value is a secret: it is not shown.
  if (!fine) throw invalidOption('key', 'non-empty text or bytes', typeof key);
}

/** A call of a batch: the id of its message, and its own. */
interface ToolCallId {
  readonly message: string;
  readonly call: string;
}

function callOf({ assistantMessage, toolCall }: ToolContext): ToolCallId {
  return { message: assistantMessage.id, call: toolCall.id };
}

function callsWith(
  { message, calls }: Anchor,
  added: ToolCallId | undefined,
): Pick<Anchor, 'message' | 'calls'> {
  if (!added) return { message, calls };
  return { message: added.message, calls: message === added.message ? [...calls, added.call] : [added.call] };
}

function answered(response: ModelResponse, text: (value: () => unknown) => unknown): Fields {
  const { stopReason, usage, model } = response;
  return {
    outcome: 'ok',
    ...(model !== undefined && { answeredBy: model }),
    stopReason,
    usage,
    text: text(() => textOf(response)),
    calls: toolCallsOf(response).map((call) => ({ name: call.name, args: text(() => call.arguments) })),
  };
}

const SIGNALS = { stop: 'stopped', suspend: 'suspended', abort: 'aborted', restart: 'restarted' } as const;

/** Of an error only its kind: its message may quote what a guard has taken out elsewhere. */
function outcomeOf(error: unknown): Fields {
  const signal = controlKind(error);
  if (signal) return { outcome: SIGNALS[signal] };
  const { code, name } = (typeof error === 'object' && error !== null ? error : {}) as Record<
    string,
    unknown
  >;
  return {
    outcome: 'error',
    error: typeof code === 'string' ? code : typeof name === 'string' ? name : typeof error,
  };
}

function ended(ctx: RunContext, text: (value: () => unknown) => unknown): Fields {
  const { result, error, tenant, usage } = ctx;
  const said = ofRun(ctx).filter((message) => message.role === 'user' && !isSyntheticMessage(message));
  const common = {
    agent: ctx.agent.name,
    ...(tenant !== undefined && { tenant }),
    input: text(() => said.map(textOf)),
    usage,
  };
  if (!result) return { ...common, ...outcomeOf(error) };
  const { status, stop, turns } = result;
  return {
    ...common,
    outcome: status,
    reason: stop.reason,
    by: stop.by,
    turns,
    text: text(() => result.text),
  };
}

function ofRun({ history, runId }: RunContext): readonly Message[] {
  return history.filter(({ id }) => id.startsWith(`${runId}.`));
}

interface Unlogged {
  readonly message: ToolMessage;
  readonly call: string;
  readonly args: string;
  /** Id of the message that made the call. */
  readonly of: string;
}

/** Results of the last batch that no hook was asked about: a stop or an abort answered them. */
function unlogged(ctx: RunContext, { message: latest, calls }: Anchor): readonly Unlogged[] {
  const messages = ofRun(ctx);
  const batch = messages.findLast(
    (message) => message.role === 'assistant' && toolCallsOf(message).length > 0,
  );
  if (!batch) return [];
  const done = new Set(batch.id === latest ? calls : []);
  const made = new Map(toolCallsOf(batch).map(({ id, arguments: args }) => [id, args]));
  return messages.flatMap((message): Unlogged[] => {
    if (message.role !== 'tool' || !made.has(message.toolCallId) || done.has(message.toolCallId)) return [];
    return [{ message, call: message.toolCallId, args: made.get(message.toolCallId)!, of: batch.id }];
  });
}
