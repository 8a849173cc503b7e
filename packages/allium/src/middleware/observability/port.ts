/** What `observability` needs of a tracing library: spans, counters and histograms. */

export type AttributeValue = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** What a span stands for, and when it began. */
export interface SpanStart {
  readonly of: 'run' | 'model' | 'tool' | 'middleware';
  /** `client`: it calls another service. */
  readonly kind: 'internal' | 'client';
  /** Links of spans of the same run before a suspension or a crash. */
  readonly links: readonly unknown[];
  /** Milliseconds since 1970, if it began earlier than now. */
  readonly at?: number;
}

/** How the work of a span ended. */
export interface SpanOutcome {
  readonly status: 'ok' | 'error' | 'stopped' | 'suspended' | 'aborted' | 'blocked';
  /** What is known only at the end: usage, reason, kind of error. */
  readonly attributes: Attributes;
  /** Milliseconds since 1970, if it ended earlier than now. */
  readonly at?: number;
}

/** A span that has not ended yet. */
export interface SpanHandle {
  /** Called once. */
  end(outcome: SpanOutcome): void;
  /** Something happened in it. `at`: milliseconds since 1970, if it was earlier than now. */
  event?(name: string, attributes: Attributes, at?: number): void;
  /** Calls `work` so that what it starts finds this span as the active one, and returns what it returns. */
  within?<T>(work: () => T): T;
  /** JSON that identifies the span of a run. It is journaled, and is a link of the run's next span after a resume. */
  readonly link?: unknown;
}

/** What a metric measures. */
export interface Instrument {
  readonly unit: string;
  readonly description: string;
  /** Of a histogram: the upper bounds of its buckets. */
  readonly buckets?: readonly number[];
}
