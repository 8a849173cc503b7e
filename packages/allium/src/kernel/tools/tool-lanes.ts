/** Executes calls one after the other, all at once, or as many at once as their tools allow. */
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { Call } from './tool-call.js';

/** `begin` writes down that calls begin. */
export function executeAll(
  calls: readonly Call[],
  sequential: boolean,
  begin: Begin,
  execute: Execute,
): Promise<void> {
  if (sequential || calls.length === 1 || calls.some(({ ctx }) => ctx.tool?.sequential))
    return oneByOne(calls, begin, execute);
  if (calls.every(({ ctx }) => ctx.tool?.concurrency === undefined)) return atOnce(calls, begin, execute);
  const lanes = new Map<Tool | undefined, Lane>();
  return allSettled(
    calls.map((call) => {
      const { tool } = call.ctx;
      const lane = lanes.get(tool) ?? new Lane(tool?.concurrency ?? Number.POSITIVE_INFINITY);
      lanes.set(tool, lane);
      return lane.run(async () => {
        await begin([call]);
        await execute(call);
      });
    }),
  );
}

type Begin = (calls: readonly Call[]) => Awaitable<void>;
type Execute = (call: Call) => Promise<void>;

async function oneByOne(calls: readonly Call[], begin: Begin, execute: Execute): Promise<void> {
  for (const call of calls) {
    const wait = begin([call]);
    if (wait) await wait;
    await execute(call);
  }
}

async function atOnce(calls: readonly Call[], begin: Begin, execute: Execute): Promise<void> {
  await begin(calls);
  return allSettled(calls.map(execute));
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
