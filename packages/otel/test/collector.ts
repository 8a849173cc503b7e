/** An OTLP/HTTP receiver on loopback, and the SDK that sends to it. */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

type Value = {
  stringValue?: string;
  intValue?: number | string;
  doubleValue?: number;
  boolValue?: boolean;
  arrayValue?: { values: Value[] };
};
type Pairs = { key: string; value: Value }[];

/** What of OTLP's JSON is looked at. */
interface WireSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes?: Pairs;
  readonly events?: readonly { readonly name: string; readonly attributes?: Pairs }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
}
interface WireMetric {
  readonly name: string;
  readonly unit: string;
  readonly histogram?: { readonly dataPoints: readonly WirePoint[] };
  readonly sum?: { readonly dataPoints: readonly WirePoint[] };
}
interface WirePoint {
  readonly attributes?: Pairs;
  readonly explicitBounds?: readonly number[];
  readonly sum?: number;
  readonly asDouble?: number;
  readonly asInt?: number;
  readonly count?: number;
}
interface WireBody {
  readonly resourceSpans?: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly scopeMetrics: readonly { readonly metrics: readonly WireMetric[] }[];
  }[];
}

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
  readonly ended: boolean;
  /** In milliseconds. */
  readonly took: number;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly {
    readonly attributes: Readonly<Record<string, unknown>>;
    readonly bounds: readonly number[];
    readonly sum: number;
    readonly count: number;
  }[];
}

export async function startCollector() {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece) => {
      text += piece;
    });
    request.on('end', () => {
      bodies.push(text);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const tracerProvider = new NodeTracerProvider({
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${url}/v1/traces` }))],
  });
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter({ url: `${url}/v1/metrics` }),
    exportIntervalMillis: 3_600_000,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

  const received = (): WireBody[] => bodies.map((text) => JSON.parse(text) as WireBody);
  return {
    tracerProvider,
    meterProvider,
    /** Everything that came over the wire, as text. */
    text: () => bodies.join('\n'),
    async spans(): Promise<ReceivedSpan[]> {
      await tracerProvider.forceFlush();
      return received().flatMap(({ resourceSpans = [] }) =>
        resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(spanOf))),
      );
    },
    async metrics(): Promise<ReceivedMetric[]> {
      await meterProvider.forceFlush();
      return received().flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) =>
          scopeMetrics.flatMap(({ metrics }) => metrics.map(metricOf)),
        ),
      );
    },
    async close(): Promise<void> {
      await tracerProvider.shutdown();
      await meterProvider.shutdown();
      context.disable();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function spanOf(span: WireSpan): ReceivedSpan {
  return {
    ...span,
    parentSpanId: span.parentSpanId || undefined,
    attributes: plain(span.attributes),
    events: (span.events ?? []).map((event) => ({
      name: event.name,
      attributes: plain(event.attributes),
    })),
    links: span.links ?? [],
    status: span.status ?? {},
    ended: Number(span.endTimeUnixNano) > 0,
    took: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
  };
}

function metricOf({ name, unit, histogram, sum }: WireMetric): ReceivedMetric {
  const points = (histogram ?? sum)!.dataPoints.map((point) => ({
    attributes: plain(point.attributes),
    bounds: point.explicitBounds ?? [],
    sum: point.sum ?? point.asDouble ?? point.asInt ?? 0,
    count: point.count ?? 1,
  }));
  return { name, unit, points };
}

function plain(pairs: Pairs = []): Record<string, unknown> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plainValue(value)]));
}

function plainValue(value: Value): unknown {
  if (value.arrayValue) return value.arrayValue.values.map(plainValue);
  if (value.intValue !== undefined) return Number(value.intValue);
  return value.stringValue ?? value.doubleValue ?? value.boolValue;
}
