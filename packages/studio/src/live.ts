/** Tells every open page what changed in the store, by checking its list while somebody watches. */
import type { Sources } from './sources.js';
import { rowOf, type Summaries } from './summaries.js';
import type { RunRow } from './wire.js';

type Listener = (rows: readonly RunRow[]) => void;

/**
 * At least this many milliseconds between two checks; ten times as long as a check takes, if that is more.
 */
const EVERY_MS = 700;
/** Sessions looked at each time: the newest. */
const NEWEST = 50;

export class Live {
  readonly #listeners = new Set<Listener>();
  readonly #seen = new Map<string, number>();
  #looked = false;
  /** Settles after the first check. Every change from then on is told. */
  readonly ready: Promise<void>;
  #isReady = (): void => {};
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    private readonly sources: Sources,
    private readonly summaries: Summaries,
  ) {
    this.ready = new Promise((resolve) => {
      this.#isReady = resolve;
    });
  }

  /** Calls with runs that are new or have changed. The returned function ends it. */
  watch(listener: Listener): () => void {
    this.#listeners.add(listener);
    if (!this.#timer) this.#schedule(0);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#listeners.clear();
    this.#isReady();
  }

  #schedule(ms: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    if (this.#listeners.size === 0) {
      this.#timer = undefined;
      return;
    }
    const began = performance.now();
    // A store that is away for a moment is asked again; the lists say what is wrong with it.
    const rows = await this.#changed().catch(() => []);
    this.#isReady();
    if (rows.length > 0) for (const listener of this.#listeners) listener(rows);
    this.#schedule(Math.max(EVERY_MS, (performance.now() - began) * 10));
  }

  async #changed(): Promise<readonly RunRow[]> {
    const { sessions } = await this.sources.list({ limit: NEWEST });
    const first = !this.#looked;
    this.#looked = true;
    const rows: RunRow[] = [];
    for (const info of sessions) {
      if (this.#seen.get(info.sessionId) === info.seq) continue;
      this.#seen.set(info.sessionId, info.seq);
      if (first) continue;
      const fold = await this.summaries.of(info).catch(() => undefined);
      if (fold) for (const run of fold.runs.slice(-3)) rows.push(rowOf(fold, run));
    }
    for (const id of this.#seen.keys()) {
      if (this.#seen.size <= 20_000) break;
      this.#seen.delete(id);
    }
    return rows;
  }
}
