/** Metrics as Prometheus reads them. */
import type { QueueMetrics } from './turns.js';

export function prometheusOf(metrics: QueueMetrics): string {
  const {
    waiting,
    running,
    retrying,
    delayed,
    failed,
    ageMs,
    tenantsWaiting,
    workers,
    capacity,
    takeovers,
    ended,
  } = metrics;
  const gauges: readonly [string, string, number][] = [
    ['waiting', 'Jobs that have not begun.', waiting],
    ['running', 'Jobs that a worker has, or is about to get.', running],
    ['retrying', 'Jobs that wait for another try.', retrying],
    ['delayed', 'Jobs for later, and schedules.', delayed],
    ['failed', 'Jobs of the dead-letter list.', failed],
    ['oldest_seconds', 'Seconds since the oldest waiting job was enqueued.', ageMs / 1000],
    ['tenants_waiting', 'Tenants that have jobs waiting.', tenantsWaiting],
    ['workers', 'Workers that are there.', workers],
    ['capacity', 'Jobs that all workers take at a time.', capacity],
  ];
  const lines = gauges.flatMap(([name, help, value]) => [
    `# HELP allium_queue_${name} ${help}`,
    `# TYPE allium_queue_${name} gauge`,
    `allium_queue_${name} ${value}`,
  ]);
  lines.push(
    '# HELP allium_queue_takeovers_total Jobs taken over from a worker that died or lost its lock.',
    '# TYPE allium_queue_takeovers_total counter',
    `allium_queue_takeovers_total ${takeovers}`,
    '# HELP allium_queue_ended_total Jobs that ended, by status.',
    '# TYPE allium_queue_ended_total counter',
    ...Object.entries(ended).map(([status, n]) => `allium_queue_ended_total{status="${status}"} ${n}`),
  );
  return `${lines.join('\n')}\n`;
}
