/** How much is in a queue, and for how long. */
import type { Backend } from './options.js';
import type { QueueMetrics } from './turns.js';

export async function metricsOf({ turns, runs, later }: Backend): Promise<QueueMetrics> {
  const [seen, delayed, failed] = await Promise.all([
    turns.look(),
    later.getDelayedCount(),
    runs.getFailedCount(),
  ]);
  return { ...seen, delayed, failed };
}
