/** Ends model calls that stall or never end, without a cost per part. */
import type { ModelTime } from '../context/seam-call.js';
import { type Clock, monotonic, soon } from '../lib/clock.js';
import { AlliumError } from '../lib/errors.js';
import { type Model, modelName } from '../messages/model.js';
import type { Limits } from '../protocol/limits.js';

/** By default, how long a model may send nothing, and how long one call may take. */
const IDLE_MS = 120_000;
const TOTAL_MS = 600_000;

/** How often a stream is checked per idle limit. A stall is found at most an eighth too late. */
const LOOKS = 8;

/** What a call may take. A layer that sets limits of its own may allow more than the defaults, see `SeamCall.time`. */
export function modelTime(
  { modelIdleMs, modelMs }: Limits,
  allowed: Partial<ModelTime> | undefined,
): ModelTime {
  if (modelIdleMs === undefined && modelMs === undefined && allowed === undefined) return DEFAULT;
  return {
    idleMs: modelIdleMs === undefined ? Math.max(IDLE_MS, allowed?.idleMs ?? 0) : endless(modelIdleMs),
    totalMs: modelMs === undefined ? Math.max(TOTAL_MS, allowed?.totalMs ?? 0) : endless(modelMs),
  };
}

const DEFAULT: ModelTime = { idleMs: IDLE_MS, totalMs: TOTAL_MS };

function endless(ms: number | 'none'): number {
  return ms === 'none' ? Number.POSITIVE_INFINITY : ms;
}

/** A stream that is being read. */
interface Subject {
  /** How many parts have come. */
  readonly received: number;
  readonly model: Model;
  readonly clock: Clock;
  /** Time that doesn't count: the reader is slow, not the model. */
  readonly pausedMs: number;
  stalled(error: AlliumError): void;
  /** Its answer is complete, but it hasn't ended. */
  overdue(): void;
}

/**
 * Watches a stream. Most answers of fast models are over before the process waits for anything, and cost no timer; the
 * others cost one at a time, however many parts they have. A stream that has ended isn't kept in memory by its watch.
 */
export class StreamWatch {
  private cancel: (() => void) | undefined = undefined;
  private isComplete = false;
  /** A check is scheduled. */
  private isDue = false;
  private began = 0;
  private seen = 0;
  /** The last part came at this time or before. */
  private since = 0;

  constructor(
    private subject: Subject | undefined,
    private readonly time: ModelTime,
  ) {
    this.lookSoon();
  }

  /** The answer is complete, so the stream should end at once. */
  expectEnd(): void {
    if (this.isComplete) return;
    this.isComplete = true;
    this.lookSoon();
  }

  end(): void {
    this.subject = undefined;
    this.cancel?.();
    this.cancel = undefined;
  }

  private lookSoon(): void {
    if (this.isDue) return;
    this.isDue = true;
    if (due.push(this) === 1) soon(firstLooks);
  }

  /** The process is about to wait for something: from here on, a stream that is still read needs a timer. */
  firstLook(): void {
    const { subject } = this;
    this.isDue = false;
    if (subject === undefined) return;
    if (this.isComplete) {
      this.end();
      subject.overdue();
      return;
    }
    this.began = activeTime(subject);
    this.since = this.began;
    this.seen = subject.received;
    this.wait(subject, this.began);
  }

  private wait({ clock }: Subject, now: number): void {
    const { idleMs, totalMs } = this.time;
    const ms = Math.min(idleMs / LOOKS, this.began + totalMs - now);
    if (ms === Number.POSITIVE_INFINITY) return;
    this.cancel = clock.setTimer(() => this.look(), Math.max(1, Math.ceil(ms)));
  }

  private look(): void {
    this.cancel = undefined;
    const { subject } = this;
    if (subject === undefined) return;
    const { idleMs, totalMs } = this.time;
    const now = activeTime(subject);
    if (subject.received !== this.seen) {
      this.seen = subject.received;
      this.since = now;
    }
    if (now - this.began >= totalMs)
      subject.stalled(timedOut(subject, 'modelMs', `did not finish within ${totalMs} ms`));
    else if (now - this.since >= idleMs)
      subject.stalled(timedOut(subject, 'modelIdleMs', `sent nothing for ${idleMs} ms`));
    else this.wait(subject, now);
  }
}

/** One check for all streams that began, or were completed, meanwhile. */
let due: StreamWatch[] = [];

function firstLooks(): void {
  const watches = due;
  due = [];
  for (const watch of watches) watch.firstLook();
}

function activeTime({ clock, pausedMs }: Subject): number {
  return monotonic(clock) - pausedMs;
}

function timedOut({ model }: Subject, limit: keyof Limits, what: string): AlliumError {
  const name = modelName(model);
  return new AlliumError(
    'MODEL_TIMEOUT',
    `${name} ${what}. Raise \`limits.${limit}\`, or set it to 'none' for no limit.`,
    { data: { model: name, limit } },
  );
}
