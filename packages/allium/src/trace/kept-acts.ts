/** Acts as the recorder keeps them. Their records are made when they are read or stored: most traces are never read. */

import {
  ENTRY_VERSION,
  type HookTotal,
  type RunTrace,
  type Seam,
  type ToolCall,
  type ToolResult,
  type TraceAct,
  type TraceChanges,
  type TraceRecord,
} from '../index.js';
import type { Recorded, TracedRun } from '../kit/index.js';
import { TraceReader } from './read-trace.js';
import { TRACE_VERSION } from './records.js';
import { rounded, summed } from './totals.js';
import { plainChanges } from './value-changes.js';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A hook of the plan. */
export interface Slot {
  readonly index: number;
  readonly by: string;
  readonly hook: string;
  readonly seam?: Seam;
  /** Identifies it among the steps that make requests. */
  readonly step: string;
}

/** What a model or tool said, without usage and the like. */
export function contentOf(result: unknown): Partial<ToolResult> | undefined {
  const { content, details, isError } = Object(result) as Partial<ToolResult>;
  if (content === undefined) return undefined;
  const made: Writable<Partial<ToolResult>> = { content };
  if (details !== undefined) made.details = details;
  if (isError) made.isError = isError;
  return made;
}

/** Two results that can't change any more. Their difference is worked out when it is read. */
export class Difference {
  constructor(
    private readonly part: 'response' | 'result',
    private readonly before: unknown,
    private readonly after: unknown,
  ) {}

  get changes(): Partial<TraceRecord> {
    const list = plainChanges(contentOf(this.before), contentOf(this.after));
    return list.length > 0 ? { changes: { [this.part]: list } as TraceChanges } : {};
  }
}

/** Kept small, with numbers that are small integers: a run of thousands of turns has tens of thousands of these. */
export class Act {
  private words: string | undefined = undefined;

  constructor(
    private readonly n: number,
    /** When the run, or this part of it, began. */
    private readonly since: { readonly at: number },
    /** Milliseconds after that. */
    private readonly after: number,
    private readonly microseconds: number,
    readonly turn: number,
    private readonly slot: { readonly by: string; readonly hook: string; readonly seam?: Seam },
    readonly did: TraceAct,
    private readonly call: ToolCall | undefined,
    /** 0 outside of attempts. */
    private readonly attempt: number,
    private more: Partial<TraceRecord> | Difference | undefined,
  ) {}

  get by(): string {
    return this.slot.by;
  }

  get hook(): string {
    return this.slot.hook;
  }

  /** Adds to its description. */
  describe(what: string): void {
    this.words = this.words === undefined ? what : `${this.words}; ${what}`;
  }

  add(more: Partial<TraceRecord>): void {
    this.more = { ...this.more, ...more };
  }

  get record(): TraceRecord {
    const { n, turn, did, call, attempt, more, words } = this;
    const { by, hook, seam } = this.slot;
    const at = this.since.at + this.after;
    const record: Writable<TraceRecord> = { n, at, ms: this.microseconds / 1000, turn, by, hook, did };
    if (call) {
      record.callId = call.id;
      record.toolName = call.name;
    }
    if (attempt > 0) record.attempt = attempt;
    if (seam) record.seam = seam;
    Object.assign(record, more instanceof Difference ? more.changes : more);
    if (words !== undefined) record.what = record.what === undefined ? words : `${record.what}; ${words}`;
    return record;
  }
}

/** What is kept of a run after its end. It must not hold the run itself, which would stay in memory with it. */
export class Acts implements Recorded {
  readonly all: Act[] = [];
  private readonly calls: number[];
  private readonly times: number[];

  /** `before`, `earlier`: records and totals of the parts of the run before a resume. */
  constructor(
    readonly before: readonly TraceRecord[],
    private readonly earlier: readonly HookTotal[],
    private readonly slots: readonly Slot[],
  ) {
    this.calls = slots.map(() => 0);
    this.times = slots.map(() => 0);
  }

  trace(run: TracedRun): RunTrace {
    return new TraceReader(run, this);
  }

  get records(): readonly TraceRecord[] {
    return [...this.before, ...this.all.map(({ record }) => record)];
  }

  /** A hook was called, whatever the outcome. */
  spent(index: number, ms: number): void {
    this.calls[index]!++;
    this.times[index]! += ms;
  }

  get isIdle(): boolean {
    return this.calls.every((calls) => calls === 0);
  }

  get totals(): readonly HookTotal[] {
    return summed([...this.earlier, ...this.own]);
  }

  /** The totals of this part of the run. */
  get own(): readonly HookTotal[] {
    return this.slots.flatMap(({ index, by, hook, seam }) => {
      const [calls, ms] = [this.calls[index]!, this.times[index]!];
      return calls > 0 ? [{ by, hook, ...(seam && { seam }), calls, ms: rounded(ms) }] : [];
    });
  }
}

/** The entry of the journal with the acts from one place in a list up to another. */
export class TraceEntry {
  v = ENTRY_VERSION;
  at = 0;
  readonly type = 'trace';
  readonly runId: string;
  readonly version = TRACE_VERSION;
  declare readonly records: readonly TraceRecord[];
  declare readonly totals?: readonly HookTotal[];
  readonly #acts: readonly Act[];
  readonly #from: number;
  readonly #to: number;

  constructor(runId: string, acts: readonly Act[], from: number, totals: readonly HookTotal[]) {
    this.runId = runId;
    this.#acts = acts;
    this.#from = from;
    this.#to = acts.length;
    Object.defineProperty(this, 'records', RECORDS);
    if (totals.length > 0) this.totals = totals;
  }

  static recordsOf(entry: TraceEntry): readonly TraceRecord[] {
    return entry.#acts.slice(entry.#from, entry.#to).map(({ record }) => record);
  }
}

/** A property of the entry itself, so that copies and JSON have it; the same function for all, so that they share a shape. */
const RECORDS: PropertyDescriptor & ThisType<TraceEntry> = {
  get() {
    return TraceEntry.recordsOf(this);
  },
  enumerable: true,
};
