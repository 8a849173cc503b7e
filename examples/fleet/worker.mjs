// A worker. Start as many as you like. REDIS_URL says where the queue is, DATABASE_URL where the sessions are.

import { postgresStore } from '@allium/store-postgres';
import { createWorker } from '@allium/worker';
import { support } from './agent.mjs';

const { REDIS_URL: connection = '', DATABASE_URL: connectionString = '' } = process.env;
const worker = createWorker({
  agents: { support },
  store: postgresStore({ connectionString }),
  connection,
  lockMs: 2000,
  onEvent({ type, sessionId }) {
    console.log(`  worker ${process.pid}: ${type} ${sessionId}`);
    process.send?.(type);
  },
});
await worker.ready();
process.send?.('ready');
