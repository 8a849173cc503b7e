// A worker process of the fault suite. What happens to its jobs is told to the parent.

import { postgresStore } from '@allium/store-postgres';
import { createWorker } from '@allium/worker';
import { makeAgent } from './scenario.mjs';

const { connectionString, url, ledger, turns, latencyMs, concurrency, lockMs, drainMs } = JSON.parse(
  process.env.FLEET ?? '{}',
);
const store = postgresStore({ connectionString, maxConnections: 4 });
const worker = createWorker({
  agents: { fleet: makeAgent(ledger, turns, latencyMs) },
  store,
  connection: url,
  concurrency,
  lockMs,
  ...(drainMs !== undefined && { drainMs }),
  maxTakeovers: 100,
  onEvent: ({ type, runId, error }) =>
    void process.send?.({ type, runId, at: Date.now(), ...(error ? { error: String(error) } : {}) }),
});
// Nobody is left to see it.
process.on('disconnect', () => process.exit());
await worker.ready();
process.send?.({ type: 'ready' });
