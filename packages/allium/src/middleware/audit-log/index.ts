/** Writes a line for every run, model call and tool call, chained so that a missing or changed one is noticed. */

import {
  type Awaitable,
  type Context,
  defineMiddleware,
  defineState,
  type Middleware,
  modelName,
  type RunContext,
  systemClock,
  type ToolContext,
  textOf,
} from '../../index.js';
import {
  controlKind,
  errorKind,
  type Fields,
  kinds,
  mayHaveRun,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { type Anchor, EMPTY, nextAnchor, ownAnchor, type ToolCallId } from './anchor.js';
import { Chains, writeIn } from './chains.js';
import { answered, ended, finished, lately, textOfFields } from './lines.js';
import { type AuditKey, type AuditLine, sealed, sealWith } from './seal.js';
import { SINK, sinkOf } from './sinks.js';
import { saidIn, type Unlogged, unlogged } from './unlogged.js';

export { auditHead } from './anchor.js';
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
  const anchor = defineState<Anchor>({ name: 'head', scope: 'session', initial: EMPTY, rewinds: false });
  const chains = new Chains();
  const text = (value: () => unknown): unknown => (content ? value() : undefined);
  const seal = sealWith(key);
  const timeOf = lately((ms: number) => new Date(ms).toISOString());
  const nameOf = lately(modelName);

  /** Numbers and seals a line at once, so that lines are chained in the order they are made. */
  function log(ctx: Context, type: AuditLine['type'], said: string, call?: ToolCallId): Awaitable<void> {
    const chain = chains.of(ctx)!;
    const { seq, hash: prev } = chain.anchor;
    const body = `${chain.head}${seq + 1},"time":"${timeOf(clock.now())}","type":"${type}",${said},"prev":"${prev}"}`;
    const line = sealed(body, seal);
    const next = nextAnchor(chain.anchor, line.hash, call);
    chain.anchor = next;
    // Parallel calls commit in any order, so the furthest end counts.
    ctx.state.update(anchor, (stored) =>
      stored.session === next.session && stored.seq > next.seq ? stored : next,
    );
    return writeIn(chain, sink, line.text);
  }

  /** Logs a failure. That error continues, whatever happens here. */
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
    const { begun } = chains.of(ctx)!;
    for (const { call, args, message, of } of missed) {
      const result = text(() => textOf(message));
      const fields = { turn: ctx.turn, tool: message.toolName, call, args: text(() => args) };
      // A call that was cut off may have had effects, so it was not blocked.
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
    looksBack: 0,
    sink: true,
    traits: ['exports'],
    state: [anchor],
    beforeRun(ctx) {
      chains.begin(ctx, ownAnchor(ctx.state.get(anchor), ctx.sessionId));
    },
    wrapModel(ctx, next) {
      // A model call that an outer middleware makes before or after the run belongs to no chain.
      if (!chains.of(ctx)) return next();
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
      const chain = chains.of(ctx)!;
      const { id } = ctx.assistantMessage;
      if (chain.batch === id) chain.begun.push(ctx.toolCall.id);
      else {
        chain.batch = id;
        chain.begun = [ctx.toolCall.id];
      }
    },
    // Also runs for calls that were refused, skipped or failed, and sees what the guards left.
    afterToolCall(ctx) {
      return log(ctx, 'tool', finished(ctx, content), callOf(ctx));
    },
    afterRun(ctx) {
      const chain = chains.of(ctx)!;
      const over = (): void => chains.end(chain);
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

function callOf({ assistantMessage, toolCall }: ToolContext): ToolCallId {
  return { message: assistantMessage.id, call: toolCall.id };
}

const SIGNALS = { stop: 'stopped', suspend: 'suspended', abort: 'aborted', restart: 'restarted' } as const;

/** Only the kind of an error: its message may quote what a guard has removed elsewhere. */
function outcomeOf(error: unknown): Said {
  const signal = controlKind(error);
  if (signal) return { outcome: SIGNALS[signal] };
  return { outcome: 'error', error: errorKind(error) };
}
