/** Executes calls all at once, or as many at once as their tools allow. */

import type { Call } from '../calls/tool-call.js';
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';

/** Runs the calls of a batch. */
interface Executor {
  /** Writes down that calls begin. */
  started(calls: readonly Call[]): Awaitable<void>;
  execute(call: Call): Awaitable<void>;
}

/** All at once, or as many as their tools allow. */
export async function executeAll(calls: readonly Call[], executor: Executor): Promise<void> {
  if (calls.every(({ ctx }) => ctx.tool?.concurrency === undefined)) {
    await executor.started(calls);
    return allSettled(calls.map(async (call) => executor.execute(call)));
  }
  const lanes = new Map<Tool | undefined, Lane>();
  return allSettled(
    calls.map((call) => {
      const { tool } = call.ctx;
      const lane = lanes.get(tool) ?? new Lane(tool?.concurrency ?? Number.POSITIVE_INFINITY);
      lanes.set(tool, lane);
      return lane.run(async () => {
        await executor.started([call]);
        await executor.execute(call);
      });
    }),
  );
}

/** Waits for all of them, then throws the first error: nothing goes on behind the back of the run. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** At most `max` at once, first come, first served. */
class Lane {
  private active = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly max: number) {}

  async run(work: () => Promise<void>): Promise<void> {
    if (this.active >= this.max) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.active++;
    try {
      await work();
    } finally {
      this.active--;
      this.waiting.shift()?.();
    }
  }
}
