// What a queue and workers cost and bring: `npm run build && node bench/fleet.mjs`. Needs `redis-server`; brings its Postgres.
// Prints a table, and JSON as its last line. `--only overhead,live,scaling,takeover,fairness` runs a part of it.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { postgresStore } from '@allium/store-postgres';
import { createQueue, createWorker } from '@allium/worker';
import { Agent, tool } from 'allium';
import { Redis } from 'ioredis';
import { startPostgres } from '../scripts/postgres.mjs';
import { startRedis } from '../scripts/redis.mjs';

const TURNS = 2;

function makeAgent(latencyMs) {
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'bench',
      validate: (value) => ({ value }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
    },
  };
  const look = tool({ name: 'look', description: 'Looks.', input: schema, execute: () => 'seen' });
  const model = {
    provider: 'bench',
    id: 'latency',
    async *stream({ messages }) {
      if (latencyMs > 0) await sleep(latencyMs);
      const asked = messages.findLastIndex(({ role }) => role === 'user');
      const turn = messages.slice(asked).filter(({ role }) => role === 'assistant').length + 1;
      const usage = { inputTokens: 10, outputTokens: 5 };
      if (turn < TURNS) yield { type: 'tool-call', id: `c${turn}`, name: 'look', arguments: '{}' };
      else yield { type: 'text', text: 'Done.' };
      yield { type: 'finish', reason: turn < TURNS ? 'tool-calls' : 'stop', usage };
    },
  };
  return new Agent({ name: 'bench', model, tools: [look] });
}

if (process.env.BENCH_FLEET) {
  const { url, connectionString, latencyMs, concurrency, lockMs, prefix } = JSON.parse(
    process.env.BENCH_FLEET,
  );
  const worker = createWorker({
    agents: { bench: makeAgent(latencyMs) },
    store: postgresStore({ connectionString, maxConnections: 4 }),
    connection: url,
    prefix,
    concurrency,
    lockMs,
    onEvent: ({ type, runId }) => process.send?.({ type, runId, at: Date.now() }),
  });
  process.on('disconnect', () => process.exit());
  await worker.ready();
  process.send?.({ type: 'ready' });
} else await main();

async function main() {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: 'overhead,live,scaling,takeover,fairness' } },
  });
  const wanted = values.only.split(',');
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const { connectionString } = postgres;
  const store = postgresStore({ connectionString, maxConnections: 10 });
  const place = { url: redis.url, connectionString, store };
  const result = { load: Number(os.loadavg()[0].toFixed(1)), cores: os.availableParallelism() };
  try {
    for (const [name, measure] of Object.entries({ overhead, live, scaling, takeover, fairness }))
      if (wanted.includes(name)) {
        result[name] = await measure(place);
        console.log(name, result[name]);
      }
    console.log(JSON.stringify(result));
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    await store.close();
    await Promise.allSettled([redis.stop(), postgres.stop()]);
    process.exit();
  }
}

/** One run at a time: alone, with its journal in Postgres, and through the queue besides. Instant model. */
async function overhead({ url, store }) {
  const agent = makeAgent(0);
  const queue = createQueue({ connection: url, prefix: 'overhead', store });
  const worker = createWorker({
    agents: { bench: agent },
    store,
    connection: url,
    prefix: 'overhead',
    drainOn: [],
  });
  await worker.ready();
  const ways = {
    bareMs: () => agent.run('Look.'),
    journalMs: (i) => agent.session(`j${i}`, { store }).run('Look.'),
    queueMs: async (i) =>
      queue.finished((await queue.enqueue('bench', 'Look.', { sessionId: `q${i}` })).runId),
  };
  const times = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let i = 0; i < 320; i++)
    for (const [way, run] of Object.entries(ways)) {
      const began = performance.now();
      await run(i);
      if (i >= 20) times[way].push(performance.now() - began);
    }
  await worker.close();
  await queue.close();
  const [bare, journal, queued] = Object.values(times).map((list) => at(list, 0.5));
  return {
    bareP50Ms: round(bare),
    journalP50Ms: round(journal),
    queueAndJournalP50Ms: round(queued),
    addedP50Ms: round(queued - bare),
    queueAloneP50Ms: round(queued - journal),
  };
}

/**
 * What a piece of a streamed answer costs a worker: CPU of this process, which runs worker and reader, for an answer of 5,000
 * pieces that come 50 at a time. Alone, through the queue, and with somebody who follows.
 */
async function live({ url, store }) {
  const PIECES = 5000;
  const model = {
    provider: 'bench',
    id: 'pieces',
    async *stream() {
      for (let i = 0; i < PIECES; i++) {
        if (i % 50 === 0) await sleep(1);
        yield { type: 'text', text: 'word ' };
      }
      yield { type: 'finish', reason: 'stop', usage: { inputTokens: 1, outputTokens: PIECES } };
    },
  };
  const agent = new Agent({ name: 'bench', model });
  const shared = { connection: url, prefix: 'live', store };
  const queue = createQueue(shared);
  const worker = createWorker({ ...shared, agents: { bench: agent }, drainOn: [] });
  const client = new Redis(url);
  await worker.ready();
  let pieces = 0;
  const send = async (i) => queue.enqueue('bench', 'Go.', { sessionId: `live-${i}` });
  const ways = {
    alone: () => agent.run('Go.'),
    unfollowed: async (i) => queue.finished((await send(`u${i}`)).runId),
    followed: async (i) => {
      const { sessionId } = await send(`f${i}`);
      for await (const { event } of queue.join(sessionId)) if (event.type === 'message_update') pieces++;
    },
  };
  const cpu = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  const commands = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
  for (let i = 0; i < 12; i++)
    for (const [way, run] of Object.entries(ways)) {
      const before = await statsOf(client);
      const began = process.cpuUsage();
      await run(i);
      const { user, system } = process.cpuUsage(began);
      if (i < 2) continue;
      cpu[way].push((user + system) / PIECES);
      commands[way].push((await statsOf(client)).commands - before.commands);
    }
  await worker.close();
  await queue.close();
  client.disconnect();
  const [alone, unfollowed, followed] = Object.values(cpu).map((list) => at(list, 0.5));
  return {
    aloneUsPerPiece: round(alone),
    addedUnfollowedUs: round(unfollowed - alone),
    addedFollowedUs: round(followed - alone),
    redisCommandsUnfollowed: at(commands.unfollowed, 0.5),
    redisCommandsFollowed: at(commands.followed, 0.5),
    piecesRead: Math.round(pieces / 12),
  };
}

/** Sessions a second with 1, 2 and 4 workers, and what Redis has to do for a turn. A model call takes 200 ms. */
async function scaling({ url, connectionString, store }) {
  const concurrency = 3;
  const rows = {};
  for (const workers of [1, 2, 4]) {
    const prefix = `scaling${workers}`;
    const hands = await hire(workers, {
      url,
      connectionString,
      latencyMs: 200,
      concurrency,
      lockMs: 30_000,
      prefix,
    });
    const queue = createQueue({ connection: url, prefix, store });
    const client = new Redis(url);
    const send = (i) => queue.enqueue('bench', 'Look.', { sessionId: `${prefix}-${i}` });
    await Promise.all(
      Array.from({ length: 6 * workers }, (_, i) =>
        send(`warm${i}`).then(({ runId }) => queue.finished(runId)),
      ),
    );
    const count = 60 * workers;
    const before = await statsOf(client);
    const began = performance.now();
    const jobs = await Promise.all(Array.from({ length: count }, (_, i) => send(i)));
    await Promise.all(jobs.map(({ runId }) => queue.finished(runId)));
    const seconds = (performance.now() - began) / 1000;
    const after = await statsOf(client);
    const turns = count * TURNS;
    rows[workers] = {
      sessionsPerSecond: round(count / seconds),
      ofTheIdeal: round(count / seconds / ((workers * concurrency) / (0.2 * TURNS))),
      redisCommandsPerTurn: round((after.commands - before.commands) / turns),
      redisBytesPerTurn: Math.round((after.bytes - before.bytes) / turns),
      redisCpuMsPerRun: round((1000 * (after.cpu - before.cpu)) / count),
    };
    await fire(hands);
    client.disconnect();
    await queue.close();
  }
  return { ...rows, fourToOne: round(rows[4].sessionsPerSecond / rows[1].sessionsPerSecond) };
}

/** A worker is killed while it has jobs, and others have places. */
async function takeover({ url, connectionString, store }) {
  const lockMs = 2000;
  const prefix = 'takeover';
  const options = { url, connectionString, latencyMs: 3000, concurrency: 20, lockMs, prefix };
  const queue = createQueue({ connection: url, prefix, store });
  const taken = [];
  let hands = await hire(2, options);
  for (let round = 0; round < 6; round++) {
    const orphans = new Map();
    const jobs = new Map(hands.map((hand) => [hand, new Set()]));
    for (const hand of hands)
      hand.on('message', ({ type, runId, at: when }) => {
        if (type === 'started') jobs.get(hand)?.add(runId);
        const since = orphans.get(runId);
        if (type === 'takeover' && since !== undefined) taken.push(when - since);
        if (type === 'takeover') orphans.delete(runId);
      });
    const sent = await Promise.all(
      Array.from({ length: 10 }, (_, i) => queue.enqueue('bench', 'Look.', { sessionId: `t${round}-${i}` })),
    );
    await sleep(500 + Math.random() * lockMs);
    const [victim, other] = [...hands].sort((a, b) => jobs.get(b).size - jobs.get(a).size);
    for (const runId of jobs.get(victim)) orphans.set(runId, Date.now());
    victim.kill('SIGKILL');
    await Promise.all(sent.map(({ runId }) => queue.finished(runId)));
    other.removeAllListeners('message');
    hands = [other, ...(await hire(1, options))];
  }
  await fire(hands);
  await queue.close();
  return {
    lockMs,
    takeovers: taken.length,
    p50Ms: at(taken, 0.5),
    p95Ms: at(taken, 0.95),
    p95ToLock: round(at(taken, 0.95) / lockMs),
  };
}

/** One tenant has 10,000 jobs, and then another comes with 10. */
async function fairness({ url, store }) {
  const prefix = 'fairness';
  const queue = createQueue({ connection: url, prefix, store });
  const order = [];
  const agents = { bench: makeAgent(10) };
  const send = (tenant, i) => queue.enqueue('bench', 'Look.', { sessionId: `${tenant}${i}`, tenant });
  for (let i = 0; i < 10_000; i += 500)
    await Promise.all(Array.from({ length: 500 }, (_, n) => send('big', i + n)));
  const onEvent = ({ type, sessionId }) => void (type === 'started' && order.push(sessionId));
  const worker = createWorker({
    agents,
    store,
    connection: url,
    prefix,
    concurrency: 4,
    drainOn: [],
    onEvent,
  });
  await worker.ready();
  while (order.length < 100) await sleep(5);
  const before = order.length;
  const began = performance.now();
  const small = await Promise.all(Array.from({ length: 10 }, (_, i) => send('small', i)));
  await Promise.all(small.map(({ runId }) => queue.finished(runId)));
  const tookMs = performance.now() - began;
  const mixed = order.slice(before, order.findLastIndex((id) => id.startsWith('small')) + 1);
  await worker.drain({ deadlineMs: 1000 });
  await queue.close();
  return {
    waiting: 10_000,
    bigStartedMeanwhile: mixed.filter((id) => id.startsWith('big')).length,
    smallStarted: mixed.filter((id) => id.startsWith('small')).length,
    smallTookMs: Math.round(tookMs),
  };
}

async function hire(count, options) {
  const hands = Array.from({ length: count }, () =>
    fork(new URL(import.meta.url), { env: { ...process.env, BENCH_FLEET: JSON.stringify(options) } }),
  );
  await Promise.all(hands.map((hand) => once(hand, 'message')));
  return hands;
}

async function fire(hands) {
  await Promise.all(
    hands.map((hand) => {
      hand.kill('SIGKILL');
      return once(hand, 'exit');
    }),
  );
}

async function statsOf(client) {
  const info = `${await client.info('stats')}${await client.info('cpu')}`;
  const value = (name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)[1]);
  return {
    commands: value('total_commands_processed'),
    bytes: value('total_net_input_bytes') + value('total_net_output_bytes'),
    cpu: value('used_cpu_sys') + value('used_cpu_user'),
  };
}

function at(list, part) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

function round(value) {
  return Number(value.toPrecision(3));
}
