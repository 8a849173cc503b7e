/** `observability` with OpenTelemetry's spans and instruments. */

import {
  context,
  isSpanContextValid,
  type MeterProvider,
  metrics,
  type Attributes as OtelAttributes,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { defineMiddleware, type Middleware } from 'allium';
import { type Fields, kinds, type NamedOptions, named, type OptionsOf, readOptions } from 'allium/kit';
import {
  type Attributes,
  type Instrument,
  observability,
  type SpanHandle,
  type SpanStart,
} from 'allium/middleware/observability';

const OPTIONS = {
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

const KINDS = { internal: SpanKind.INTERNAL, client: SpanKind.CLIENT };

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
  const meter = (meterProvider ?? metrics.getMeterProvider()).getMeter('@allium/otel');
  const spans = new WeakMap<SpanHandle, Span>();

  function start(
    title: string,
    attributes: Attributes,
    parent: SpanHandle | undefined,
    { of, kind, links, at }: SpanStart,
  ): SpanHandle {
    const active = context.active();
    const caller = parent && spans.get(parent);
    // A run belongs to the span it is started in: for a sub-agent, that of the tool call, unless no context manager
    // carried it here.
    const isInside = of === 'run' && (!caller || traceOf(trace.getSpan(active)) === traceOf(caller));
    const outside = caller && !isInside ? trace.setSpan(active, caller) : active;
    const span = tracer.startSpan(
      title,
      {
        kind: KINDS[kind],
        attributes: attributes as OtelAttributes,
        links: links.map((link) => ({ context: link as SpanContext })),
        ...(at !== undefined && { startTime: timeOf(at) }),
      },
      outside,
    );
    const { traceId, spanId, traceFlags } = span.spanContext();
    const isRecorded = of === 'run' && isSpanContextValid(span.spanContext());
    const handle: SpanHandle = {
      end({ attributes: more, at: end }) {
        span.setAttributes(more as OtelAttributes);
        const kind = more['error.type'];
        if (kind !== undefined) span.setStatus({ code: SpanStatusCode.ERROR, message: String(kind) });
        span.end(end === undefined ? undefined : timeOf(end));
      },
      event: (what, more, when) =>
        void span.addEvent(what, more as OtelAttributes, when === undefined ? undefined : timeOf(when)),
      within: (work) => context.with(trace.setSpan(outside, span), work),
      ...(isRecorded && { link: { traceId, spanId, traceFlags } }),
    };
    spans.set(handle, span);
    return handle;
  }

  const counters = byName((title, { unit, description }) =>
    meter.createCounter(title, { unit, description }),
  );
  const histograms = byName((title, { unit, description, buckets = [] }) =>
    meter.createHistogram(title, {
      unit,
      description,
      advice: { explicitBucketBoundaries: [...buckets] },
    }),
  );
  const made = observability({
    name,
    content,
    span: start,
    counter: (title, value, about, instrument) =>
      counters(title, instrument).add(value, about as OtelAttributes),
    histogram: (title, value, about, instrument) =>
      histograms(title, instrument).record(value, about as OtelAttributes),
  });
  return defineMiddleware({ ...made, madeWith });
}

function traceOf(span: Span | undefined): string | undefined {
  return span?.spanContext().traceId;
}

/** Makes each instrument when it is first used. */
function byName<T>(make: (name: string, instrument: Instrument) => T) {
  const made = new Map<string, T>();
  return (name: string, instrument: Instrument): T => {
    const known = made.get(name) ?? make(name, instrument);
    made.set(name, known);
    return known;
  };
}

/** Milliseconds since 1970, as OpenTelemetry takes them without guessing what they mean. */
function timeOf(ms: number): [seconds: number, nanos: number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
