/** Spans and metrics of runs, model calls, tool calls and middleware actions, for any backend. */

import {
  type Context,
  defineMiddleware,
  type Middleware,
  type ModelContext,
  monotonic,
  type RunContext,
  systemClock,
  type ToolContext,
  type ToolResult,
} from '../../index.js';
import {
  controlKind,
  errorKind,
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** How the work of a span ended. */
export interface SpanOutcome {
  readonly status: 'ok' | 'error' | 'stopped' | 'suspended' | 'aborted' | 'blocked';
  /** What is known only at the end: usage, reason, kind of error. */
  readonly attributes: Attributes;
}

/** A span that has not ended yet. */
export interface SpanHandle {
  /** Called once. */
  end(outcome: SpanOutcome): void;
  /** Calls `work` so that what it starts finds this span as the active one, and returns what it returns. */
  within?<T>(work: () => T): T;
}

export const OPTIONS = {
  /**
   * Starts a span. `parent` is the handle of the run's span, or for a sub-agent's run, that of the run that called
   * it.
   */
  span: kinds.withDefault(
    kinds.func<(name: string, attributes: Attributes, parent: SpanHandle | undefined) => SpanHandle | void>(),
    () => NOTHING,
  ),
  /** Adds to a counter. */
  counter: kinds.withDefault(
    kinds.func<(name: string, value: number, attributes: Attributes) => void>(),
    () => {},
  ),
  /** Records a value: seconds or tokens. */
  histogram: kinds.withDefault(
    kinds.func<(name: string, value: number, attributes: Attributes) => void>(),
    () => {},
  ),
  /** Where the time comes from. @default the system's */
  clock: kinds.withDefault(kinds.clock('now'), systemClock),
  ...named('observability'),
} satisfies Fields;

/**
 * Contract: all three are called synchronously and not awaited. If one throws, that is noted in `result.changes` (if
 * the call itself failed: in a `custom` event) and changes nothing else about the run.
 */
export interface ObservabilityOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const NOTHING: SpanHandle = { end() {} };

/**
 * Reports what happens, under the names of OpenTelemetry's conventions for generative AI. It never reports the text
 * of messages, arguments, results or errors.
 *
 * @example
 * new Agent({ model, middleware: [observability({ counter: (name, value) => totals.push([name, value]) })] });
 */
export function observability(options: ObservabilityOptions = {}): Middleware {
  const { span, counter, histogram, clock, name, madeWith } = readOptions('observability', OPTIONS, options);
  /** The spans of runs in progress. Each is removed when its run has ended. */
  const runs = new Map<string, SpanHandle>();

  /** Calls `work` inside a span and reports how long it took and how it ended. */
  async function around<T>(
    ctx: Context,
    [name, attributes]: Subject,
    work: () => Promise<T>,
    outcomeOf: (result: T) => SpanOutcome,
    ended: (outcome: SpanOutcome) => void,
    report?: (result: T) => void,
  ): Promise<T> {
    // The run of a sub-agent belongs to the run that called it.
    const above = ctx.seam === 'run' ? ctx.parentRunId : ctx.runId;
    const handle = span(name, attributes, above === undefined ? undefined : runs.get(above)) ?? NOTHING;
    if (ctx.seam === 'run') runs.set(ctx.runId, handle);
    const startedAt = monotonic(clock);
    const finish = (outcome: SpanOutcome): void => {
      handle.end(outcome);
      const kind = outcome.attributes['error.type'];
      const failed: Attributes = kind === undefined ? {} : { 'error.type': kind };
      histogram('gen_ai.client.operation.duration', (monotonic(clock) - startedAt) / 1000, {
        ...measured(attributes),
        ...failed,
      });
      ended(outcome);
    };
    let result: T;
    try {
      result = await (handle.within ? handle.within(work) : work());
    } catch (error) {
      try {
        finish(failure(error));
      } catch (problem) {
        // An error that came through `next()` continues, whatever happens here.
        ctx.emit('observability_failed', { error: safeErrorMessage(problem, ctx) });
      }
      throw error;
    }
    try {
      report?.(result);
    } finally {
      finish(outcomeOf(result));
    }
    return result;
  }

  return defineMiddleware({
    name,
    madeWith,
    onFail: 'open',
    async wrapRun(ctx, next) {
      try {
        return await around(
          ctx,
          runSubject(ctx),
          () => next(),
          ({ status, stop, turns }) => ({
            status: status === 'done' ? 'ok' : (status as SpanOutcome['status']),
            attributes: { 'allium.stop.reason': stop.reason, 'allium.turns': turns },
          }),
          ({ status }) => counter('allium.runs', 1, { 'gen_ai.agent.name': ctx.agent.name, status }),
          ({ changes }) => {
            // Failed tools have their own span.
            for (const { by, what, turn } of changes) if (by !== 'kernel') acted(ctx, by, what, turn);
          },
        );
      } finally {
        runs.delete(ctx.runId);
      }
    },
    wrapModel(ctx, next) {
      const subject = modelSubject(ctx);
      const about = measured(subject[1]);
      return around(
        ctx,
        subject,
        () => next(),
        ({ stopReason, usage, model }) => ({
          status: 'ok',
          attributes: {
            'gen_ai.response.finish_reasons': stopReason,
            ...(model !== undefined && { 'gen_ai.response.model': model }),
            ...(usage && {
              'gen_ai.usage.input_tokens': usage.inputTokens,
              'gen_ai.usage.output_tokens': usage.outputTokens,
            }),
          },
        }),
        ({ status }) => counter('allium.model.calls', 1, { ...about, status }),
        ({ usage }) => {
          if (!usage) return;
          const { inputTokens, outputTokens } = usage;
          histogram('gen_ai.client.token.usage', inputTokens, { ...about, 'gen_ai.token.type': 'input' });
          histogram('gen_ai.client.token.usage', outputTokens, { ...about, 'gen_ai.token.type': 'output' });
        },
      );
    },
    wrapTool(ctx, next) {
      return around(
        ctx,
        toolSubject(ctx),
        () => next(),
        toolOutcome,
        ({ status }) => counter('allium.tool.calls', 1, { 'gen_ai.tool.name': ctx.toolCall.name, status }),
      );
    },
    // Calls that were refused never reach a layer.
    afterToolCall(ctx) {
      if (!ctx.blocked) return;
      const outcome: SpanOutcome = { status: 'blocked', attributes: {} };
      span(...toolSubject(ctx), runs.get(ctx.runId))?.end(outcome);
      counter('allium.tool.calls', 1, { 'gen_ai.tool.name': ctx.toolCall.name, status: 'blocked' });
    },
  });

  function acted(ctx: RunContext, by: string, what: string, turn: number): void {
    // Text after a colon may quote an error or a reason.
    const action = what.split(':', 1)[0]!;
    const attributes = { 'allium.middleware.name': by, 'allium.middleware.action': action };
    const subject = { ...attributes, 'allium.turn': turn };
    span(`middleware ${by}`, subject, runs.get(ctx.runId))?.end({ status: 'ok', attributes: {} });
    counter('allium.middleware.actions', 1, attributes);
  }
}

/** The name of a span and its attributes at the start. */
type Subject = readonly [name: string, attributes: Attributes];

function runSubject(ctx: RunContext): Subject {
  const { agent, runId, sessionId, tenant, depth } = ctx;
  return [
    `invoke_agent ${agent.name}`,
    {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': agent.name,
      'gen_ai.conversation.id': sessionId,
      'allium.run.id': runId,
      'allium.depth': depth,
      ...(tenant !== undefined && { 'allium.tenant': tenant }),
    },
  ];
}

function modelSubject({ model, runId, turn, attempt }: ModelContext): Subject {
  return [
    `chat ${model.id}`,
    {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': model.provider,
      'gen_ai.request.model': model.id,
      'allium.run.id': runId,
      'allium.turn': turn,
      'allium.attempt': attempt,
    },
  ];
}

function toolSubject({ toolCall, runId, turn, attempt }: ToolContext): Subject {
  return [
    `execute_tool ${toolCall.name}`,
    {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': toolCall.name,
      'gen_ai.tool.call.id': toolCall.id,
      'allium.run.id': runId,
      'allium.turn': turn,
      'allium.attempt': attempt,
    },
  ];
}

/** The only attributes of metrics: with an id, every call would be its own series. */
const MEASURED = [
  'gen_ai.operation.name',
  'gen_ai.agent.name',
  'gen_ai.provider.name',
  'gen_ai.request.model',
  'gen_ai.tool.name',
];

function measured(attributes: Attributes): Attributes {
  return Object.fromEntries(MEASURED.flatMap((key) => (key in attributes ? [[key, attributes[key]!]] : [])));
}

function toolOutcome({ isError }: ToolResult): SpanOutcome {
  return isError
    ? { status: 'error', attributes: { 'error.type': 'tool_error' } }
    : { status: 'ok', attributes: {} };
}

const SIGNALS = { stop: 'stopped', suspend: 'suspended', abort: 'aborted', restart: 'stopped' } as const;

/** Control signals are not errors. For errors only the kind is reported: the message may quote anything. */
function failure(error: unknown): SpanOutcome {
  const signal = controlKind(error);
  if (signal) return { status: SIGNALS[signal], attributes: {} };
  return { status: 'error', attributes: { 'error.type': errorKind(error) } };
}
