/** `@allium/worker`: agents on a fleet of workers. BullMQ dispatches, the journal holds the truth. */
export type { Connection, ConnectionChange } from './connection.js';
export type { JobData, Outcome, RetryOptions } from './jobs.js';
export type { SharedOptions } from './options.js';
export { createQueue } from './queue.js';
export type {
  AgentQueue,
  Enqueued,
  EnqueueOptions,
  FailedJob,
  QueueOptions,
  ResumeOptions,
  Schedule,
} from './queue-options.js';
export type { QueueMetrics, RateLimit } from './turns.js';
export { createWorker } from './worker.js';
export type { AgentWorker, DrainOptions, Health, WorkerEvent, WorkerOptions } from './worker-options.js';
