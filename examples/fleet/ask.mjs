// Asks the workers about six parcels, and follows one of the answers.

import { postgresStore } from '@allium/store-postgres';
import { createQueue } from '@allium/worker';

const { REDIS_URL: connection = '', DATABASE_URL: connectionString = '' } = process.env;
const store = postgresStore({ connectionString });
const queue = createQueue({ connection, store });
const jobs = await Promise.all(
  [1, 2, 3, 4, 5, 6].map((n) =>
    queue.enqueue('support', `Where is parcel ${n}?`, { sessionId: `parcel-${n}`, tenant: `shop-${n % 2}` }),
  ),
);
for await (const { id, event } of queue.join('parcel-1')) console.log(`  parcel-1 ${id} ${event.type}`);
for (const { runId } of jobs) {
  const { status, text } = await queue.finished(runId);
  console.log(`${status}: ${text}`);
}
const { takeovers, ended } = await queue.metrics();
console.log(`${ended.done} done, ${takeovers} of them taken over from a worker that died`);
await queue.close();
await store.close?.();
