/** Writes a line for every run, model call and tool call, chained so that a missing or changed one is noticed. */

import {
  type Awaitable,
  type Context,
  defineMiddleware,
  defineState,
  isSyntheticMessage,
  type Message,
  type Middleware,
  modelName,
  type RunContext,
  type Store,
  systemClock,
  type ToolContext,
  type ToolMessage,
  textOf,
  toolCallsOf,
} from '../../index.js';
import {
  checkMethods,
  checkText,
  controlKind,
  errorKind,
  type Fields,
  isThenable,
  kinds,
  mayHaveRun,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { answered, ended, finished, lately, textOfFields } from './lines.js';
import { type AuditHead, type AuditKey, type AuditLine, sealed, sealWith } from './seal.js';
import { SINK, sinkOf } from './sinks.js';

export type { AuditHead, AuditKey, AuditLine } from './seal.js';
export type { AuditFile, AuditFunction } from './sinks.js';
export { type AuditProblem, type AuditReport, verifyAudit } from './verify.js';

const KEY = kinds.secret(
  kinds.kind<AuditKey>(
    'non-empty text or bytes',
    (key) => (typeof key === 'string' || key instanceof Uint8Array) && key.length > 0,
    { schema: kinds.nonEmptyText.schema! },
  ),
);

export const OPTIONS = {
  /** Takes the lines: a function, or a file. The run waits for each line to be written. */
  sink: kinds.required(SINK),
  /**
   * Seals the lines (HMAC-SHA256). Without it they are only hashed, and anybody who can write the log can redo the
   * hashes.
   */
  key: KEY,
  /** Log the text of answers, arguments and results; `false` leaves it out. @default true */
  content: kinds.withDefault(kinds.flag, true),
  /** Where the time comes from. @default the system's */
  clock: kinds.withDefault(kinds.clock('now'), systemClock),
  ...named('audit-log'),
} satisfies Fields;

export interface AuditLogOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** The end of the chain, and which calls of the latest batch are in it. */
interface Anchor {
  /** Whose chain it is: a fork begins with the cells of its source. */
  readonly session: string;
  readonly seq: number;
  readonly hash: string;
  readonly message: string;
  readonly calls: readonly string[];
}

const EMPTY: Anchor = { session: '', seq: 0, hash: '', message: '', calls: [] };

/** The chain of a session as a run of it goes on with it. */
interface Chain {
  readonly run: string;
  readonly session: string;
  anchor: Anchor;
  /** Two that resume one run at once share its chain, until the journal refuses one of them. */
  runners: number;
  /** How its lines begin, up to their number. */
  readonly head: string;
  /** Lines of a session are written one after the other: the end of the last one, while it is under way. */
  last: Promise<void> | undefined;
  /** Calls of the latest batch that have begun, and the id of its message. */
  batch: string;
  begun: string[];
}

type Said = Readonly<Record<string, unknown>>;

/**
 * Logs what happens, without what guards removed. Every line is sealed and names the one before it. The end of the
 * chain is stored with the session, so `verifyAudit` notices lines that are missing, edited or cut off.
 *
 * @example
 * const audit = auditLog({ sink: (line) => void lines.push(line), key: 'a secret' });
 */
export function auditLog(options: AuditLogOptions): Middleware {
  const settings = readOptions('auditLog', OPTIONS, options);
  const { key, content, clock, name, madeWith } = settings;
  const sink = sinkOf(settings.sink);
  const anchor = defineState<Anchor>({ name: 'head', scope: 'session', initial: EMPTY });
  /**
   * Chains by run and session: the agents that share this may have sessions of one name, and a fork goes on with the
   * run of its source. Parallel calls do not see each other's cells, so the end of a chain is kept here, too.
   */
  const chains = new Map<string, Map<string, Chain>>();
  /** The one that was asked for last: mostly a run asks several times before another one does. */
  let recent: Chain | undefined;
  const chainOf = ({ runId, sessionId }: Context): Chain | undefined => {
    if (recent?.run !== runId || recent.session !== sessionId) recent = chains.get(runId)?.get(sessionId);
    return recent;
  };
  const text = (value: () => unknown): unknown => (content ? value() : undefined);
  const seal = sealWith(key);
  const timeOf = lately((ms: number) => new Date(ms).toISOString());
  const nameOf = lately(modelName);

  /** Numbers and seals a line at once, so that lines are chained in the order they are made. */
  function log(ctx: Context, type: AuditLine['type'], said: string, call?: ToolCallId): Awaitable<void> {
    const chain = chainOf(ctx)!;
    const { seq, hash: prev } = chain.anchor;
    const body = `${chain.head}${seq + 1},"time":"${timeOf(clock.now())}","type":"${type}",${said},"prev":"${prev}"}`;
    const line = sealed(body, seal);
    const next = nextAnchor(chain.anchor, line.hash, call);
    chain.anchor = next;
    // Writes of calls side by side are committed in any order: the end that is furthest stands.
    ctx.state.update(anchor, (stored) =>
      stored.session === next.session && stored.seq > next.seq ? stored : next,
    );
    return write(chain, line.text);
  }

  /** Waits for the lines before, and for the sink: only where there is something to wait for. */
  function write(chain: Chain, line: string): Awaitable<void> {
    const { last } = chain;
    const done = last === undefined ? sink.write(line) : last.then(() => sink.write(line));
    if (!isThenable(done)) return;
    const written = Promise.resolve(done);
    const end = written.then(ignore, ignore).then(() => {
      if (chain.last === end) chain.last = undefined;
    });
    chain.last = end;
    return written;
  }

  /** Logs beside a failure, which goes on whatever happens here. */
  async function logFailure(ctx: Context, type: AuditLine['type'], fields: Said): Promise<void> {
    try {
      await log(ctx, type, textOfFields(fields));
    } catch (problem) {
      ctx.emit('audit_failed', { error: safeErrorMessage(problem, ctx) });
    }
  }

  function logRun(ctx: RunContext): Awaitable<void> {
    return log(ctx, 'run', ended(ctx, saidIn(ctx), content, outcomeOf));
  }

  /** The line of the run, and what comes before and after it in some. */
  async function logEnd(ctx: RunContext, missed: readonly Unlogged[]): Promise<void> {
    const { begun } = chainOf(ctx)!;
    for (const { call, args, message, of } of missed) {
      const result = text(() => textOf(message));
      const fields = { turn: ctx.turn, tool: message.toolName, call, args: text(() => args) };
      // One that was cut off may have had its effects: it was not blocked.
      const blocked = !begun.includes(call) && !mayHaveRun(message);
      const said = textOfFields({ ...fields, blocked, isError: message.isError, result });
      await log(ctx, 'tool', said, { message: of, call });
    }
    await logRun(ctx);
    await sink.flush?.();
  }

  return defineMiddleware({
    name,
    madeWith,
    sink: true,
    traits: ['exports'],
    state: [anchor],
    beforeRun(ctx) {
      const { sessionId: session, runId: run } = ctx;
      const shared = chainOf(ctx);
      if (shared) shared.runners++;
      else {
        if (!chains.has(run)) chains.set(run, new Map());
        chains.get(run)!.set(session, {
          run,
          session,
          anchor: ownAnchor(ctx.state.get(anchor), session),
          runners: 1,
          head: `{${textOfFields({ v: 1, session, run })},"seq":`,
          last: undefined,
          batch: '',
          begun: [],
        });
      }
    },
    wrapModel(ctx, next) {
      // A call that a middleware further out makes before or after the run belongs to no chain.
      if (!chainOf(ctx)) return next();
      const { turn, model } = ctx;
      const messages = ctx.messages.length;
      return next().then(
        (response) => {
          const wait = log(ctx, 'model', answered(turn, nameOf(model), messages, response, content));
          return wait === undefined ? response : wait.then(() => response);
        },
        async (error) => {
          await logFailure(ctx, 'model', { turn, model: modelName(model), messages, ...outcomeOf(error) });
          throw error;
        },
      );
    },
    beforeTool(ctx) {
      const chain = chainOf(ctx)!;
      const { id } = ctx.assistantMessage;
      if (chain.batch === id) chain.begun.push(ctx.toolCall.id);
      else {
        chain.batch = id;
        chain.begun = [ctx.toolCall.id];
      }
    },
    // Fires for calls that were refused, skipped or failed, too, and sees what the guards left.
    afterToolCall(ctx) {
      return log(ctx, 'tool', finished(ctx, content), callOf(ctx));
    },
    afterRun(ctx) {
      const chain = chainOf(ctx)!;
      const over = (): void => {
        if (--chain.runners > 0) return;
        const ofRun = chains.get(ctx.runId)!;
        ofRun.delete(ctx.sessionId);
        if (ofRun.size === 0) chains.delete(ctx.runId);
        recent = undefined;
      };
      try {
        const missed = unlogged(ctx, chain.anchor);
        const wait = missed.length > 0 || sink.flush ? logEnd(ctx, missed) : logRun(ctx);
        if (wait !== undefined) return wait.finally(over);
      } catch (error) {
        over();
        throw error;
      }
      over();
    },
  });
}

/**
 * The end of the chain of a session, from its journal. Keep a copy elsewhere now and then: it also tells when
 * somebody put back an old journal together with an old log.
 */
export async function auditHead(store: Store, session: string, name = 'audit-log'): Promise<AuditHead> {
  checkMethods('store', store, ['read']);
  checkText('session', session);
  let found: Anchor = EMPTY;
  for (const entry of await store.read(session, 1))
    if (entry.type === 'state' && entry.cell === `${name}:head`) found = entry.value as Anchor;
  const { seq, hash } = ownAnchor(found, session);
  return { session, seq, hash };
}

function ignore(): void {}

/** A call of a batch: the id of its message, and its own. */
interface ToolCallId {
  readonly message: string;
  readonly call: string;
}

function callOf({ assistantMessage, toolCall }: ToolContext): ToolCallId {
  return { message: assistantMessage.id, call: toolCall.id };
}

/** A fork begins a chain of its own. The calls that were logged in its source are not logged again. */
function ownAnchor(stored: Anchor, session: string): Anchor {
  return stored.session === session ? stored : { ...stored, session, seq: 0, hash: '' };
}

function nextAnchor(anchor: Anchor, hash: string, added: ToolCallId | undefined): Anchor {
  const { session, message, calls } = anchor;
  const seq = anchor.seq + 1;
  if (!added) return { session, seq, hash, message, calls };
  const before = message === added.message ? calls : NO_CALLS;
  const all = before.length === 0 ? [added.call] : [...before, added.call];
  return { session, seq, hash, message: added.message, calls: all };
}

const NO_CALLS: readonly string[] = [];

const SIGNALS = { stop: 'stopped', suspend: 'suspended', abort: 'aborted', restart: 'restarted' } as const;

/** Of an error only its kind: its message may quote what a guard has taken out elsewhere. */
function outcomeOf(error: unknown): Said {
  const signal = controlKind(error);
  if (signal) return { outcome: SIGNALS[signal] };
  return { outcome: 'error', error: errorKind(error) };
}

/** What people said in the run, oldest first. A long session is not looked through for it. */
function saidIn({ history, runId }: RunContext): readonly Message[] {
  const mine = `${runId}.`;
  const said: Message[] = [];
  for (let i = history.length - 1; i >= 0; i--) {
    const message = history[i]!;
    // Most messages are the model's and its tools'; of those nobody wants to know whose they are.
    if (message.role !== 'user') continue;
    if (!message.id.startsWith(mine)) break;
    if (!isSyntheticMessage(message)) said.push(message);
  }
  return said.reverse();
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
  const { history } = ctx;
  const at = history.findLastIndex(
    (message) => message.role === 'assistant' && message.content.some(isToolCall),
  );
  const batch = history[at];
  // Batches of earlier runs are none of this one's business.
  if (batch?.role !== 'assistant' || !batch.id.startsWith(`${ctx.runId}.`)) return [];
  const all = toolCallsOf(batch);
  const done = batch.id === latest ? calls : NO_CALLS;
  if (all.every(({ id }) => done.includes(id))) return [];
  const made = new Map(all.map(({ id, arguments: args }) => [id, args]));
  return history.slice(at + 1).flatMap((message): Unlogged[] => {
    if (message.role !== 'tool' || !made.has(message.toolCallId) || done.includes(message.toolCallId))
      return [];
    return [{ message, call: message.toolCallId, args: made.get(message.toolCallId)!, of: batch.id }];
  });
}

function isToolCall({ type }: { readonly type: string }): boolean {
  return type === 'tool-call';
}
