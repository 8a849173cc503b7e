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
export interface Watched {
  /** How many parts have come. */
  readonly received: number;
  readonly model: Model;
  readonly clock: Clock;
  /** Time that doesn't count: the reader is slow, not the model. */
  readonly pausedMs: number;
  /** Its index in the list of streams to check soon, or -1. */
  place: number;
  /** The process is about to wait for something. */
  look(): void;
  stalled(error: AlliumError): void;
}

/** Streams that began, or were completed, since the process last waited. Those that have ended are taken out again. */
let fresh: Watched[] = [];
let looking = false;

/**
 * Calls `look()` when the process is about to wait, if the stream is still read then. Most answers of fast models are
 * over before that, and cost no timer.
 */
export function lookSoon(stream: Watched): void {
  if (stream.place >= 0) return;
  stream.place = fresh.push(stream) - 1;
  if (looking) return;
  looking = true;
  soon(lookAtAll);
}

export function dontLook(stream: Watched): void {
  const { place } = stream;
  if (place < 0) return;
  stream.place = -1;
  const last = fresh.pop()!;
  if (last === stream) return;
  fresh[place] = last;
  last.place = place;
}

function lookAtAll(): void {
  looking = false;
  const streams = fresh;
  fresh = [];
  for (const stream of streams) stream.place = -1;
  for (const stream of streams) stream.look();
}

/** Watches a stream that the process waits for. It costs one timer at a time, however many parts the stream has. */
export class StreamWatch {
  private cancel: (() => void) | undefined = undefined;
  private readonly began: number;
  private seen: number;
  /** The last part came at this time or before. */
  private since: number;

  constructor(
    private readonly stream: Watched,
    private readonly time: ModelTime,
  ) {
    this.began = activeTime(stream);
    this.since = this.began;
    this.seen = stream.received;
    this.wait(this.began);
  }

  end(): void {
    this.cancel?.();
  }

  private wait(now: number): void {
    const { idleMs, totalMs } = this.time;
    const ms = Math.min(idleMs / LOOKS, this.began + totalMs - now);
    if (ms === Number.POSITIVE_INFINITY) return;
    this.cancel = this.stream.clock.setTimer(() => this.check(), Math.max(1, Math.ceil(ms)));
  }

  private check(): void {
    const { stream } = this;
    const { idleMs, totalMs } = this.time;
    const now = activeTime(stream);
    if (stream.received !== this.seen) {
      this.seen = stream.received;
      this.since = now;
    }
    if (now - this.began >= totalMs)
      stream.stalled(timedOut(stream, 'modelMs', `did not finish within ${totalMs} ms`));
    else if (now - this.since >= idleMs)
      stream.stalled(timedOut(stream, 'modelIdleMs', `sent nothing for ${idleMs} ms`));
    else this.wait(now);
  }
}

function activeTime({ clock, pausedMs }: Watched): number {
  return monotonic(clock) - pausedMs;
}

function timedOut({ model }: Watched, limit: keyof Limits, what: string): AlliumError {
  const name = modelName(model);
  return new AlliumError(
    'MODEL_TIMEOUT',
    `${name} ${what}. Raise \`limits.${limit}\`, or set it to 'none' for no limit.`,
    { data: { model: name, limit } },
  );
}
