/** A worker's sign of life: how many places it has, and that it is there. */
import type { Backend } from './options.js';
import { answerUnheard } from './unheard.js';

/** A worker says at least this often that it is there. */
const BEAT_MS = 2000;
/** How long BullMQ may take to show that it has a job. */
const SWEEP_MS = 5000;

export class Heartbeat {
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(
    private readonly backend: Backend,
    private readonly worker: { readonly id: string; readonly concurrency: number; readonly lockMs: number },
    /** Called with jobs that were cancelled: the message about it may have been lost with a connection. */
    private readonly cancel: (id: string, reason: string) => void,
  ) {}

  /** Says once that it is there. */
  async once(): Promise<void> {
    const { id, concurrency } = this.worker;
    const cancelled = await this.backend.turns.beat(id, concurrency, this.#deadAfterMs);
    for (const [job, reason] of cancelled) this.cancel(job, reason);
  }

  /** Says it again and again, and looks for jobs that got lost on their way. */
  async begin(): Promise<void> {
    const { turns, onError } = this.backend;
    try {
      await this.once();
      for (const { id, data } of await turns.sweep(SWEEP_MS)) await answerUnheard(this.backend, id!, data);
    } catch (error) {
      onError(error);
    }
    if (this.#stopped) return;
    const wait = Math.max(1, turns.nextIn ?? this.#beatMs);
    this.#timer = setTimeout(() => void this.begin(), Math.min(this.#beatMs, wait));
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Gives up the worker's places. */
  async leave(): Promise<void> {
    await this.backend.turns.beat(this.worker.id, -1, this.#deadAfterMs);
  }

  get #beatMs(): number {
    return Math.min(BEAT_MS, Math.ceil(this.worker.lockMs / 6));
  }

  /**
   * After this long without a sign, a worker's places are not counted on. That is before its locks expire: until then the
   * others get nothing new for its places, so its jobs find free ones. A worker that was only slow gets its places back with
   * its next sign.
   */
  get #deadAfterMs(): number {
    return Math.max(Math.ceil(this.worker.lockMs / 2), 3 * this.#beatMs);
  }
}
