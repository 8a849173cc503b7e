// The fleet on this machine, without Docker: Redis, Postgres and two workers, one of which is killed.
//   npm run build && node examples/fleet/run.mjs
//
// Postgres comes with the development packages; redis-server has to be installed.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { startPostgres } from '../../scripts/postgres.mjs';
import { startRedis } from '../../scripts/redis.mjs';

const [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
const env = { ...process.env, REDIS_URL: redis.url, DATABASE_URL: postgres.connectionString };
const start = (/** @type {string} */ file) => fork(new URL(file, import.meta.url), { env });

const workers = [start('worker.mjs'), start('worker.mjs')];
try {
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  const ask = start('ask.mjs');
  const ended = once(ask, 'exit');
  // The first worker that has something to do.
  const victim = await Promise.race(workers.map((worker) => once(worker, 'message').then(() => worker)));
  console.log(`  worker ${victim.pid} is killed`);
  victim.kill('SIGKILL');
  const [code] = await ended;
  process.exitCode = code;
} finally {
  for (const worker of workers) worker.kill('SIGTERM');
  await Promise.all(workers.map((worker) => worker.exitCode ?? worker.signalCode ?? once(worker, 'exit')));
  await Promise.all([redis.stop(), postgres.stop()]);
}
