/** Spans and metrics of runs, model calls, tool calls and the middleware that acted, by OpenTelemetry's conventions. */

import {
  type Attributes,
  context,
  isSpanContextValid,
  type Link,
  type MeterProvider,
  metrics,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import {
  type Context,
  defineMiddleware,
  defineState,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  monotonic,
  type RunResult,
  type ToolContext,
  type ToolResult,
  type TraceRecord,
} from 'allium';
import {
  controlKind,
  errorKind,
  type Fields,
  guardedMessages,
  guardedPrompt,
  isTellable,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from 'allium/kit';
import { inputJson, outputJson, systemJson } from './content.js';
import {
  actAttributes,
  answerAttributes,
  guardAttributes,
  modelSubject,
  runSubject,
  type Subject,
  toolSubject,
  usageAttributes,
} from './conventions.js';
import { Instruments } from './instruments.js';

export const OPTIONS = {
  /**
   * Also record what was said, as events of the spans: messages, instructions, answers, arguments and results, after
   * the guards.
   * @default false
   */
  content: kinds.withDefault(kinds.flag, false),
  /** Where spans go. @default the global provider */
  tracerProvider: kinds.methods<TracerProvider>('getTracer'),
  /** Where metrics go. @default the global provider */
  meterProvider: kinds.methods<MeterProvider>('getMeter'),
  ...named('otel'),
} satisfies Fields;

export interface OtelOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Reports runs to OpenTelemetry. Put it last in the list: each attempt of a retry is then a span of its own, and so is
 * every model call that another middleware makes.
 *
 * @example
 * new Agent({ model, middleware: [retry(), otel()] });
 */
export function otel(options: OtelOptions = {}): Middleware {
  const { content, tracerProvider, meterProvider, name, madeWith } = readOptions('otel', OPTIONS, options);
  const tracer = (tracerProvider ?? trace.getTracerProvider()).getTracer('@allium/otel');
  const instruments = new Instruments(meterProvider ?? metrics.getMeterProvider());
  /** The run's own span, for the calls inside it. */
  const running = defineState<Span | undefined>({
    name: 'span',
    scope: 'run',
    initial: undefined,
    durable: false,
  });
  /** The span of the part of the run before a suspension or a crash. */
  const earlier = defineState<SpanContext | null>({
    name: 'earlier',
    scope: 'run',
    initial: null,
    hidden: true,
  });

  /** Calls `work` inside a span, which it ends however the work ends. */
  async function inSpan<T>(
    ctx: Context,
    [title, about]: Subject,
    kind: SpanKind,
    links: Link[],
    work: (span: Span) => Promise<T>,
    outcomeOf: (result: T) => Attributes,
  ): Promise<T> {
    const above = ctx.seam === 'run' ? undefined : ctx.state.get(running);
    const outside = above ? trace.setSpan(context.active(), above) : context.active();
    const span = tracer.startSpan(title, { kind, attributes: about, links }, outside);
    const started = monotonic(ctx.agent.clock);
    const ended = (outcome: Attributes): void => {
      span.setAttributes(outcome);
      const kind = outcome['error.type'];
      if (kind !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: String(kind) });
      instruments.took((monotonic(ctx.agent.clock) - started) / 1000, { ...about, ...outcome });
      span.end();
    };
    let result: T;
    try {
      result = await context.with(trace.setSpan(outside, span), work, undefined, span);
    } catch (error) {
      ended(failure(error));
      throw error;
    }
    ended(outcomeOf(result));
    return result;
  }

  return defineMiddleware({
    name,
    madeWith,
    // A trace that can't be written doesn't stop anybody's work.
    onFail: 'open',
    sink: content,
    traces: true,
    state: [running, earlier],
    wrapRun(ctx, next) {
      const before = ctx.state.get(earlier);
      const links = before ? [{ context: before }] : [];
      return inSpan(
        ctx,
        runSubject(ctx),
        SpanKind.INTERNAL,
        links,
        async (span) => {
          ctx.state.set(running, span);
          const { traceId, spanId, traceFlags } = span.spanContext();
          if (isSpanContextValid(span.spanContext())) ctx.state.set(earlier, { traceId, spanId, traceFlags });
          try {
            const result = await next();
            tellActs(result, span);
            return result;
          } catch (error) {
            tellActs(resultOf(error), span);
            throw error;
          }
        },
        runOutcome,
      );
    },
    wrapModel(ctx, next) {
      const subject = modelSubject(ctx);
      return inSpan(
        ctx,
        subject,
        SpanKind.CLIENT,
        [],
        async (span) => {
          const firstChunk = timeFirstChunk(ctx);
          const answer = await next();
          const about = { ...subject[1], ...answerAttributes(answer) };
          const seconds = firstChunk();
          if (seconds !== undefined) {
            span.setAttribute('gen_ai.response.time_to_first_chunk', seconds);
            instruments.firstChunkAfter(seconds, about);
          }
          if (answer.usage) instruments.used(answer.usage, about);
          if (content) await tellExchange(span, ctx, answer);
          return answer;
        },
        answerAttributes,
      );
    },
    wrapTool(ctx, next) {
      return inSpan(
        ctx,
        toolSubject(ctx),
        SpanKind.INTERNAL,
        [],
        async (span) => {
          const result = await next();
          if (content) tellCall(span, ctx, result);
          return result;
        },
        ({ isError }) => (isError ? { 'error.type': 'tool_error' } : {}),
      );
    },
    // A call that was refused reaches no layer.
    afterToolCall(ctx) {
      if (!ctx.blocked) return;
      const above = ctx.state.get(running);
      const outside = above ? trace.setSpan(context.active(), above) : context.active();
      const [title, attributes] = toolSubject(ctx);
      const blocked = { ...attributes, 'allium.outcome': 'blocked' };
      tracer.startSpan(title, { kind: SpanKind.INTERNAL, attributes: blocked }, outside).end();
    },
  });

  /** One span for each hook of a middleware that acted in a call, as long as its own time, with an event for each act. */
  function tellActs(result: Partial<RunResult> | undefined, above: Span): void {
    const outside = trace.setSpan(context.active(), above);
    for (const acts of byHook(result?.trace?.records ?? [])) {
      const [first] = acts as [TraceRecord];
      const span = tracer.startSpan(
        `middleware ${first.by}`,
        { kind: SpanKind.INTERNAL, attributes: actAttributes(first), startTime: timeOf(first.at) },
        outside,
      );
      let took = 0;
      for (const { did, what, verdict, at, ms } of acts) {
        // Text after a colon may quote an error or a reason.
        const action = what?.split(':', 1)[0] ?? did;
        span.addEvent(action, guardAttributes(verdict), timeOf(at));
        instruments.acted(first.by, action);
        took += ms;
      }
      span.end(timeOf(first.at + took));
    }
  }
}

/** The recorded result of a run that failed: its error carries the result so far. */
function resultOf(error: unknown): Partial<RunResult> | undefined {
  return (error as { readonly result?: Partial<RunResult> } | undefined)?.result;
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

/** Milliseconds since 1970, as OpenTelemetry takes them without guessing what they mean. */
function timeOf(ms: number): [seconds: number, nanos: number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
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

async function tellExchange(span: Span, ctx: ModelContext, answer: ModelResponse): Promise<void> {
  const [messages, prompt] = [await guardedMessages(ctx), await guardedPrompt(ctx)];
  span.addEvent('gen_ai.client.inference.operation.details', {
    'gen_ai.system_instructions': systemJson(prompt),
    'gen_ai.input.messages': inputJson(messages),
    'gen_ai.output.messages': outputJson(answer),
  });
}

function tellCall(span: Span, ctx: ToolContext, { content }: ToolResult): void {
  const told = (value: unknown): string => (isTellable(value, ctx) ? JSON.stringify(value) : '"[withheld]"');
  span.addEvent('gen_ai.execute_tool.details', {
    'gen_ai.tool.call.arguments': told(ctx.rawArgs),
    'gen_ai.tool.call.result': told(content),
  });
}

function runOutcome({ status, stop, turns, usage }: RunResult): Attributes {
  return {
    ...usageAttributes(usage),
    'allium.outcome': status,
    'allium.stop.reason': stop.reason,
    'allium.turns': turns,
  };
}

/** Control signals are not errors. For errors only the kind is reported: the message may quote anything. */
function failure(error: unknown): Attributes {
  const signal = controlKind(error);
  return signal ? { 'allium.outcome': OUTCOMES[signal] } : { 'error.type': errorKind(error) };
}

const OUTCOMES = {
  stop: 'stopped',
  suspend: 'suspended',
  abort: 'aborted',
  restart: 'restarted',
} as const;
