/** Spans and metrics of runs, model calls, tool calls and the middleware that acted, for any backend. */

import {
  type Context,
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  monotonic,
  type RunContext,
  type RunResult,
  type ToolContext,
  type ToolResult,
  type TraceRecord,
} from '../../index.js';
import {
  type Fields,
  guardedMessages,
  guardedPrompt,
  isTellable,
  isThenable,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';
import { inputJson, outputJson, systemJson } from './content.js';
import {
  actAttributes,
  answerAttributes,
  guardAttributes,
  INSTRUMENTS,
  inputTokens,
  measured,
  modelSubject,
  runSubject,
  type Subject,
  toolSubject,
} from './conventions.js';
import { answered, failure, runOutcome, toolOutcome } from './outcomes.js';
import type { Attributes, Instrument, SpanHandle, SpanOutcome, SpanStart } from './port.js';

export type { Attributes, AttributeValue, Instrument, SpanHandle, SpanOutcome, SpanStart } from './port.js';

type Span = (
  name: string,
  attributes: Attributes,
  parent: SpanHandle | undefined,
  start: SpanStart,
) => SpanHandle | void;
type Measure = (name: string, value: number, attributes: Attributes, instrument: Instrument) => void;

export const OPTIONS = {
  /**
   * Starts a span. `parent` is the handle of the run's span, or for a sub-agent's run, that of the run that called
   * it. `start` has its kind, its links, and when it began.
   */
  span: kinds.withDefault(kinds.func<Span>(), () => NOTHING),
  /** Adds to a counter. `instrument` has its unit. */
  counter: kinds.withDefault(kinds.func<Measure>(), () => {}),
  /** Records a value: seconds or tokens. `instrument` has its unit and buckets. */
  histogram: kinds.withDefault(kinds.func<Measure>(), () => {}),
  /**
   * Also report what was said, as events of the spans: messages, instructions, answers, arguments and results, after
   * the guards.
   * @default false
   */
  content: kinds.withDefault(kinds.flag, false),
  ...named('observability'),
} satisfies Fields;

/**
 * Contract: all three are called synchronously. Promises are not awaited, and one that rejects is ignored. If one
 * throws, that is noted in `result.changes` (if the call itself failed: in a `custom` event) and changes nothing else
 * about the run.
 */
export interface ObservabilityOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

const NOTHING: SpanHandle = { end() {} };
const COUNTERS = {
  run: 'allium.runs',
  model: 'allium.model.calls',
  tool: 'allium.tool.calls',
} as const;

/**
 * Reports what happens, under the names of OpenTelemetry's conventions for generative AI. `otel()` of `@allium/otel`
 * is this with OpenTelemetry's spans and instruments.
 *
 * @example
 * new Agent({ model, middleware: [observability({ counter: (name, value) => totals.push([name, value]) })] });
 */
export function observability(options: ObservabilityOptions = {}): Middleware {
  const { span, counter, histogram, content, name, madeWith } = readOptions(
    'observability',
    OPTIONS,
    options,
  );
  /** The spans of runs in progress. Each is removed when its run has ended. */
  const runs = new Map<string, SpanHandle>();
  /** The span of the part of the run before a suspension or a crash. */
  const earlier = defineState<unknown>({ name: 'earlier', scope: 'run', initial: null, hidden: true });

  function start(ctx: Context, of: SpanStart['of'], [title, about]: Subject, more?: Partial<SpanStart>) {
    // The run of a sub-agent belongs to the run that called it.
    const above = of === 'run' ? ctx.parentRunId : ctx.runId;
    const parent = above === undefined ? undefined : runs.get(above);
    const kind = of === 'model' ? 'client' : 'internal';
    const handle = span(title, about, parent, { of, kind, links: [], ...more });
    unawaited(handle);
    return handle ?? NOTHING;
  }

  function count(name: keyof typeof INSTRUMENTS, attributes: Attributes): void {
    unawaited(counter(name, 1, attributes, INSTRUMENTS[name]));
  }

  function measure(name: keyof typeof INSTRUMENTS, value: number, attributes: Attributes): void {
    unawaited(histogram(name, value, attributes, INSTRUMENTS[name]));
  }

  /** Calls `work` inside a span and reports how long it took and how it ended. */
  async function around<T>(
    ctx: RunContext | ModelContext | ToolContext,
    subject: Subject,
    handle: SpanHandle,
    work: () => Promise<T>,
    outcomeOf: (result: T) => SpanOutcome,
    report: (result: T | undefined, error?: unknown) => unknown,
  ): Promise<T> {
    const { clock } = ctx.agent;
    const startedAt = monotonic(clock);
    let seconds = 0;
    const finish = (outcome: SpanOutcome): void => {
      unawaited(handle.end(outcome));
      const group = measured({ ...subject[1], ...outcome.attributes });
      measure('gen_ai.client.operation.duration', seconds, group);
      count(COUNTERS[ctx.seam], { ...measured(subject[1]), 'allium.status': outcome.status });
    };
    let result: T;
    try {
      result = await (handle.within ? handle.within(work) : work());
      seconds = (monotonic(clock) - startedAt) / 1000;
    } catch (error) {
      seconds = (monotonic(clock) - startedAt) / 1000;
      try {
        report(undefined, error);
        finish(failure(error));
      } catch (problem) {
        // An error that came through `next()` continues, whatever happens here.
        ctx.emit('observability_failed', { error: safeErrorMessage(problem, ctx) });
      }
      throw error;
    }
    try {
      await report(result);
    } finally {
      finish(outcomeOf(result));
    }
    return result;
  }

  return defineMiddleware({
    name,
    madeWith,
    // A trace that can't be written doesn't stop anybody's work.
    onFail: 'open',
    sink: content,
    traces: true,
    state: [earlier],
    async wrapRun(ctx, next) {
      const before = ctx.state.get(earlier);
      const subject = runSubject(ctx);
      const handle = start(ctx, 'run', subject, { links: before === null ? [] : [before] });
      runs.set(ctx.runId, handle);
      if (handle.link !== undefined) ctx.state.set(earlier, handle.link);
      try {
        return await around(
          ctx,
          subject,
          handle,
          () => next(),
          runOutcome,
          (result, error) =>
            // The error of a run that failed carries its result so far.
            reportActs(
              ctx,
              result ?? (error as { readonly result?: Partial<RunResult> } | undefined)?.result,
            ),
        );
      } finally {
        runs.delete(ctx.runId);
      }
    },
    wrapModel(ctx, next) {
      const subject = modelSubject(ctx);
      const handle = start(ctx, 'model', subject);
      const firstChunk = timeFirstChunk(ctx);
      return around(
        ctx,
        subject,
        handle,
        () => next(),
        answered(firstChunk),
        (answer) => {
          if (!answer) return;
          const { usage } = answer;
          const about = measured({ ...subject[1], ...answerAttributes(answer) });
          const seconds = firstChunk();
          if (seconds !== undefined) measure('gen_ai.client.operation.time_to_first_chunk', seconds, about);
          if (usage) {
            const tokens = (type: string, used: number): void =>
              measure('gen_ai.client.token.usage', used, { ...about, 'gen_ai.token.type': type });
            tokens('input', inputTokens(usage));
            tokens('output', usage.outputTokens);
          }
          return content ? reportExchange(handle, ctx, answer) : undefined;
        },
      );
    },
    wrapTool(ctx, next) {
      const subject = toolSubject(ctx);
      const handle = start(ctx, 'tool', subject);
      return around(
        ctx,
        subject,
        handle,
        () => next(),
        toolOutcome,
        (result) => {
          if (content && result) reportCall(handle, ctx, result);
        },
      );
    },
    // Calls that were refused never reach a layer.
    afterToolCall(ctx) {
      if (!ctx.blocked) return;
      const [title, about] = toolSubject(ctx);
      const handle = start(ctx, 'tool', [title, { ...about, 'allium.outcome': 'blocked' }]);
      unawaited(handle.end({ status: 'blocked', attributes: {} }));
      count('allium.tool.calls', { ...measured(about), 'allium.status': 'blocked' });
    },
  });

  /** One span for each hook of a middleware that acted in a call, as long as its own time, with an event for each act. */
  function reportActs(ctx: RunContext, result: Partial<RunResult> | undefined): void {
    for (const acts of byHook(result?.trace?.records ?? [])) {
      const [first] = acts as [TraceRecord];
      const { by, at: began } = first;
      const handle = start(ctx, 'middleware', [`middleware ${by}`, actAttributes(first)], { at: began });
      let took = 0;
      for (const { did, what, verdict, at, ms } of acts) {
        // Text after a colon may quote an error or a reason.
        const action = what?.split(':', 1)[0] ?? did;
        unawaited(handle.event?.(action, guardAttributes(verdict), at));
        count('allium.middleware.actions', {
          'allium.middleware.name': by,
          'allium.middleware.action': action,
        });
        took += ms;
      }
      unawaited(handle.end({ status: 'ok', attributes: {}, at: began + took }));
    }
  }
}

/** Functions of users may be async. Nobody awaits them, and one that fails must not end the process. */
function unawaited(work: unknown): void {
  if (isThenable(work)) Promise.resolve(work).catch(() => {});
}

/** These are not middleware. Models and tools have their own spans. */
const OTHERS = ['kernel', 'model', 'tool', 'agent', 'human'];

function byHook(records: readonly TraceRecord[]): Iterable<readonly TraceRecord[]> {
  const groups = new Map<string, TraceRecord[]>();
  for (const record of records) {
    if (OTHERS.includes(record.by)) continue;
    const key = [record.by, record.hook, record.turn, record.callId].join('\n');
    const group = groups.get(key);
    if (group) group.push(record);
    else groups.set(key, [record]);
  }
  return groups.values();
}

/** Notes when the first part of the answer comes. Returns how to ask for it, in seconds. */
function timeFirstChunk(ctx: ModelContext): () => number | undefined {
  const { clock } = ctx.agent;
  const started = monotonic(clock);
  let first: number | undefined;
  ctx.transform(() => ({
    part(part, emit) {
      first ??= monotonic(clock) - started;
      emit(part);
    },
  }));
  return () => first && first / 1000;
}

async function reportExchange(handle: SpanHandle, ctx: ModelContext, answer: ModelResponse): Promise<void> {
  const [messages, prompt] = [await guardedMessages(ctx), await guardedPrompt(ctx)];
  const said = handle.event?.('gen_ai.client.inference.operation.details', {
    'gen_ai.system_instructions': systemJson(prompt),
    'gen_ai.input.messages': inputJson(messages),
    'gen_ai.output.messages': outputJson(answer),
  });
  unawaited(said);
}

function reportCall(handle: SpanHandle, ctx: ToolContext, { content }: ToolResult): void {
  const told = (value: unknown): string => (isTellable(value, ctx) ? JSON.stringify(value) : '"[withheld]"');
  const said = handle.event?.('gen_ai.execute_tool.details', {
    'gen_ai.tool.call.arguments': told(ctx.rawArgs),
    'gen_ai.tool.call.result': told(content),
  });
  unawaited(said);
}
