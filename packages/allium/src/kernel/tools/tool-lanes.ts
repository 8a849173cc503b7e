/** Several calls of one message: all at once, one after the other, or as many at once as their tools allow. */
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { ToolBatch } from './tool-batch.js';
import type { Call } from './tool-call.js';

export async function executeMany(batch: ToolBatch, calls: readonly Call[]): Promise<void> {
  const startAndExecute = async (call: Call): Promise<void> => {
    const wait = batch.started([call]);
    if (wait) await wait;
    return batch.executeOne(call);
  };
  if (batch.runner.agent.toolExecution === 'sequential' || calls.some((call) => call.ctx.tool?.sequential)) {
    for (const call of calls) await startAndExecute(call);
    return;
  }
  if (calls.every((call) => call.ctx.tool?.concurrency === undefined)) {
    const wait = batch.started(calls);
    if (wait) await wait;
    return allSettled(calls.map(async (call) => batch.executeOne(call)));
  }
  const lanes = new Map<Tool | undefined, Lane>();
  return allSettled(
    calls.map((call) => {
      const { tool } = call.ctx;
      const lane = lanes.get(tool) ?? new Lane(tool?.concurrency ?? Number.POSITIVE_INFINITY);
      lanes.set(tool, lane);
      return lane.run(() => startAndExecute(call));
    }),
  );
}

/** Waits for all, then throws what the first that failed threw: nothing goes on behind the back of the run. */
async function allSettled(work: readonly Awaitable<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** At most `max` at once, first come first served. */
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
