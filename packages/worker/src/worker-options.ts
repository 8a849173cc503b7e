/** The options of a worker, and its methods. */
import type { Agent, Store } from 'allium';
import { invalidOption, isRecord } from 'allium/kit';
import type { Outcome } from './jobs.js';
import type { SharedOptions } from './options.js';
import type { QueueMetrics } from './turns.js';

export interface WorkerOptions extends SharedOptions {
  /** One agent, or several by the names that `enqueue` uses. */
  readonly agents: Agent | Readonly<Record<string, Agent>>;
  /** Where the sessions are. The agents' own stores are not used. */
  readonly store: Store;
  /** Jobs at a time. They wait for models most of the time, so many fit into one process. @default 10 */
  readonly concurrency?: number;
  /**
   * Milliseconds after which a silent worker counts as dead, and its jobs are taken over. Renewed all the time, so
   * runs may take longer. @default 30000
   */
  readonly lockMs?: number;
  /** A job that so many workers died with is assumed to kill them, and fails. @default 10 */
  readonly maxTakeovers?: number;
  /** Milliseconds for the runs under way when the worker is told to leave. @default 25000 */
  readonly drainMs?: number;
  /** Signals that make the worker leave, and the process end after it. @default ['SIGTERM'] */
  readonly drainOn?: readonly NodeJS.Signals[];
  /** Called with what happens to jobs, for logs. */
  readonly onEvent?: (event: WorkerEvent) => void;
}

export interface WorkerEvent {
  /**
   * `takeover`: begun again after another worker died. `retry`: it failed and is tried again. `handed over`: by a
   * worker that leaves.
   */
  readonly type: 'started' | 'takeover' | 'ended' | 'retry' | 'failed' | 'handed over' | 'lost';
  readonly runId: string;
  readonly sessionId: string;
  readonly outcome?: Outcome;
  readonly error?: unknown;
}

export interface Health {
  /** It works, or leaves as it was told to. */
  readonly live: boolean;
  /** It takes jobs: Redis and the store answer, and it is not leaving. */
  readonly ready: boolean;
  readonly running: number;
  readonly draining: boolean;
  /** What does not answer. */
  readonly down: readonly string[];
}

export interface DrainOptions {
  /** Milliseconds for the runs under way. @default `drainMs` of the worker */
  readonly deadlineMs?: number;
  /** After this many of them, runs break off where another worker can continue. @default half of `deadlineMs` */
  readonly finishMs?: number;
}

export interface AgentWorker {
  readonly id: string;
  /** Settles when it takes jobs. */
  ready(): Promise<void>;
  health(): Promise<Health>;
  metrics(): Promise<QueueMetrics>;
  /** The metrics as Prometheus reads them. */
  prometheus(): Promise<string>;
  /**
   * Leaves: takes nothing new, lets runs end for half of the time, then breaks the others off between two turns,
   * where another worker continues them, and gives up what is left at the end.
   */
  drain(options?: DrainOptions): Promise<void>;
  /** Drains, and closes its connections. */
  close(): Promise<void>;
}

export const OWN = [
  'agents',
  'store',
  'concurrency',
  'lockMs',
  'maxTakeovers',
  'drainMs',
  'drainOn',
  'onEvent',
] as const satisfies readonly (keyof WorkerOptions)[];

export function agentsOf(given: WorkerOptions['agents']): ReadonlyMap<string, Agent> {
  const isAgent = (value: unknown): value is Agent =>
    typeof (value as Agent | undefined)?.session === 'function';
  if (isAgent(given)) return new Map([[given.name, given]]);
  if (!isRecord(given) || Object.keys(given).length === 0)
    throw invalidOption('agents', 'an agent, or agents by name', given);
  for (const [name, agent] of Object.entries(given))
    if (!isAgent(agent)) throw invalidOption(`agents.${name}`, 'an agent', agent);
  return new Map(Object.entries(given) as [string, Agent][]);
}
