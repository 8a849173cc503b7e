// What the store does in a Postgres with a million sessions: `npm run build && node bench/postgres-at-size.mjs`. Brings its
// server; takes about 5 minutes and 12 GB of disk. Prints times, and the plan of every statement that the store sends, as the
// server's own `auto_explain` tells it. Fails if a statement goes through a large table instead of an index, or throws away
// many rows of it. `--sessions 50000` takes half a minute, `--plans` prints the plans whole.

import os from 'node:os';
import { parseArgs } from 'node:util';
import { postgresStore } from '@allium/store-postgres';
import { Agent, tool } from 'allium';
import { listCursor, prunable, pruneSession } from 'allium/stores/kit';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import pg from 'pg';
import { startPostgres } from '../scripts/postgres.mjs';

const { values: flags } = parseArgs({
  options: { sessions: { type: 'string', default: '1000000' }, plans: { type: 'boolean', default: false } },
});
const SESSIONS = Number(flags.sessions);
const TENANTS = 1000;
const DAY = 86_400_000;
const NEWEST = Date.now();
/** A statement may read so many rows in vain, for those that share a millisecond. */
const IN_VAIN = 200;
/** From so many rows on, nothing may go through a table from end to end. */
const LARGE = 1000;
const TABLES = ['sessions', 'appends', 'snapshots', 'inbox'];

const schema = {
  '~standard': {
    version: 1,
    vendor: 'bench',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
  },
};
const look = tool({
  name: 'look',
  description: 'Looks.',
  input: schema,
  execute: () => 'A paragraph. '.repeat(30),
});

/** A session whose rows are copied: made by an agent, through the store. */
async function runOf(store, sessionId, turns) {
  const calls = Array.from({ length: turns - 1 }, () => toolCalls({ name: 'look', args: { at: 'it' } }));
  const model = scriptedModel([...calls, text('That is all there is to say. '.repeat(20))]);
  const agent = new Agent({ model, tools: [look], store, limits: { turns } });
  await agent.session(sessionId).run('What is there to see? '.repeat(10));
}

const FILL = `
  SET session_replication_role = replica; -- no look at the foreign key of every row
  SET maintenance_work_mem = '512MB';
  CREATE TEMP TABLE copies AS
    SELECT i, md5(i::text) AS id, (SELECT key FROM allium.sessions WHERE id = CASE WHEN i % 250 = 0 THEN 'long' ELSE 'short' END) AS source,
      -- Some tenants have far more than others.
      'tenant-' || floor(power(random(), 3) * ${TENANTS})::int AS tenant,
      floor(${NEWEST} - random() * 90 * ${DAY}) AS updated_at
    FROM generate_series(1, ${SESSIONS}) i;
  INSERT INTO allium.sessions (id, seq, created_at, updated_at, started, tenant, posted)
    SELECT c.id, s.seq, c.updated_at - 60000, c.updated_at, true, c.tenant, CASE WHEN i % 50 = 1 THEN 1 ELSE 0 END
    FROM copies c JOIN allium.sessions s ON s.key = c.source ORDER BY i;
  CREATE TEMP TABLE made AS SELECT t.key, c.source, c.i FROM copies c JOIN allium.sessions t ON t.id = c.id;
  INSERT INTO allium.appends SELECT m.key, a.seq, a.entries FROM made m JOIN allium.appends a ON a.session = m.source ORDER BY m.key, a.seq;
  INSERT INTO allium.snapshots SELECT m.key, p.seq, p.state FROM made m JOIN allium.snapshots p ON p.session = m.source;
  INSERT INTO allium.inbox SELECT key, 1, '{"type":"cancel","reason":"enough"}' FROM made WHERE i % 50 = 1;
  RESET session_replication_role;
`;

/** What the store is asked: a name, how often it is timed, and what to do the i-th time. */
function cases(store, known) {
  const any = (i) => known.ids[(i * 7919) % known.ids.length];
  const entry = (at) => ({ v: 2, at, type: 'state', cell: 'c', version: 1, value: 'x'.repeat(400) });
  const next = new Map();
  const append = async (id) => {
    const seq = next.get(id) ?? (await store.head(id));
    next.set(id, await store.append(id, seq, [entry(Date.now())]));
  };
  const all = [
    ['list: the first page', 50, () => store.list({ limit: 50 })],
    [
      'list: the first page of a tenant',
      50,
      (i) => store.list({ limit: 50, tenant: `tenant-${i % TENANTS}` }),
    ],
    ['list: a page in the middle', 50, () => store.list({ limit: 50, cursor: known.middle })],
    ['list: the last page but one', 50, () => store.list({ limit: 50, cursor: known.last })],
    [
      'list: a page in the middle of a tenant',
      50,
      () => store.list({ limit: 50, tenant: 'tenant-0', cursor: known.ofTenant }),
    ],
    ['list: since an hour ago', 50, () => store.list({ limit: 50, since: NEWEST - 3_600_000 })],
    ['open: tail', 300, (i) => store.tail(any(i))],
    ['open: tail of a long session', 100, (i) => store.tail(known.long[i % known.long.length])],
    ['read: all of a session', 300, (i) => store.read(any(i), 1)],
    ['read: the end of a long session', 100, (i) => store.read(known.long[i % known.long.length], 390)],
    ['head', 300, (i) => store.head(any(i))],
    ['append', 300, (i) => append(any(i))],
    ['append: a new session', 300, (i) => store.append(`new-${known.run}-${i}`, 0, [entry(Date.now())])],
    ['post', 100, (i) => store.post(any(i), { type: 'cancel', reason: 'enough' })],
    ['take: an empty inbox', 300, (i) => store.take(any(i + 5000), 0)],
    ['take: an item', 100, (i) => store.take(any(i), 0)],
    ['fork', 50, (i) => store.fork(any(i), 2, `fork-${known.run}-${i}`)],
    ['delete', 50, (i) => store.delete(`fork-${known.run}-${i}`)],
  ];
  return all.map(([name, times, work]) => ({ name, times, work }));
}

async function known(client, run) {
  const page = async (options, at) => {
    const { rows } = await client.query(
      `SELECT updated_at FROM allium.sessions WHERE seq > 0 ${options.tenant ? `AND tenant = '${options.tenant}'` : ''}
       ORDER BY updated_at DESC OFFSET ${at} LIMIT 1`,
    );
    // As `list` gives it for the page before.
    return listCursor({ sessionId: '~', updatedAt: rows[0].updated_at, createdAt: 0, seq: 1 });
  };
  const ids = (where) => client.query(`SELECT id FROM allium.sessions WHERE ${where} LIMIT 20000`);
  const counted = await client.query(
    "SELECT count(*)::int AS n FROM allium.sessions WHERE tenant = 'tenant-0'",
  );
  return {
    run,
    ids: (await ids("id >= '5' AND id < '6' AND length(id) = 32 AND seq < 100")).rows.map(({ id }) => id),
    long: (await ids('seq > 100 AND length(id) = 32')).rows.map(({ id }) => id),
    middle: await page({}, Math.floor(SESSIONS / 2)),
    last: await page({}, SESSIONS - 60),
    ofTenant: await page({ tenant: 'tenant-0' }, Math.floor(counted.rows[0].n / 2)),
  };
}

async function timed({ times, work }) {
  const took = [];
  for (let i = 0; i < times; i++) {
    const began = performance.now();
    await work(i);
    took.push(performance.now() - began);
  }
  took.sort((a, b) => a - b);
  return { p50: took[Math.floor(times / 2)], p95: took[Math.floor(times * 0.95)] };
}

/** A pool whose connections tell the plan of each statement, those of foreign keys included. */
function tellingPool(connectionString, told) {
  const pool = new pg.Pool({ connectionString, max: 3 });
  const settings = `LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on;
    SET auto_explain.log_buffers = on; SET auto_explain.log_nested_statements = on; SET auto_explain.log_format = 'json';
    SET client_min_messages = log`;
  pool.on('connect', (client) => {
    client.on('notice', ({ message }) => {
      const json = /plan:\n(\{.*\})\s*$/s.exec(message)?.[1];
      if (json) told(JSON.parse(json));
    });
    client.query(settings);
  });
  return pool;
}

function* nodesOf(node) {
  yield node;
  for (const child of node.Plans ?? []) yield* nodesOf(child);
}

/** What is wrong with a plan, and in short what it is. */
function judged(plan, large) {
  const nodes = [...nodesOf(plan.Plan)].filter(
    (node) => large.includes(node['Relation Name']) || node['Index Name'],
  );
  const wrong = nodes.flatMap((node) => {
    const vain = (node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'];
    if (node['Node Type'] === 'Seq Scan') return [`Seq Scan on ${node['Relation Name']}`];
    return vain > IN_VAIN ? [`${vain} rows of ${node['Index Name']} read in vain`] : [];
  });
  const used = nodes.flatMap((node) => (node['Index Name'] ? [node['Index Name']] : []));
  const buffers = (plan.Plan['Shared Hit Blocks'] ?? 0) + (plan.Plan['Shared Read Blocks'] ?? 0);
  return { wrong, used: [...new Set(used)], buffers };
}

const ms = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(0));

async function main() {
  const { connectionString, stop } = await startPostgres();
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const store = postgresStore({ connectionString });
    await runOf(store, 'short', 3);
    await runOf(store, 'long', 200);
    const began = performance.now();
    await client.query(FILL);
    await client.query('VACUUM (ANALYZE)');
    const large = await printSetup(client, performance.now() - began);
    const found = await known(client, 'timed');
    console.log('\n| what | p50 | p95 |\n|---|---|---|');
    for (const one of cases(store, found)) {
      const { p50, p95 } = await timed(one);
      console.log(`| ${one.name} | ${ms(p50)} ms | ${ms(p95)} ms |`);
    }
    await timePruning(store);
    await store.close();
    const failed = await explainAll(connectionString, { ...found, run: 'explained' }, large);
    if (failed > 0) process.exitCode = 1;
    console.log(failed > 0 ? `\n${failed} plans are wrong.` : '\nEvery statement goes by an index.');
  } finally {
    await client.end();
    await stop();
  }
}

/** @returns The tables that are large. */
async function printSetup(client, took) {
  const { rows } =
    await client.query(`SELECT (SELECT count(*) FROM allium.sessions) AS sessions, (SELECT count(*) FROM allium.appends) AS appends,
    (SELECT count(*) FROM allium.snapshots) AS snapshots, (SELECT count(*) FROM allium.inbox) AS inbox,
    pg_size_pretty(pg_database_size(current_database())) AS size, current_setting('shared_buffers') AS buffers, current_setting('server_version') AS version`);
  const { sessions, appends, snapshots, inbox, size, buffers, version } = rows[0];
  console.log(
    `PostgreSQL ${version}, shared_buffers ${buffers}; ${os.cpus().length} × ${os.cpus()[0].model}; Node ${process.version}`,
  );
  console.log(
    `${sessions} sessions, ${appends} appends, ${snapshots} snapshots, ${inbox} inbox items: ${size}, filled in ${Math.round(took / 1000)} s`,
  );
  return TABLES.filter((table) => Number(rows[0][table]) >= LARGE);
}

/** The oldest of a tenant, as `allium sessions prune --tenant` deletes them. */
async function timePruning(store) {
  const began = performance.now();
  let deleted = 0;
  for await (const info of prunable(store, { before: NEWEST - 60 * DAY, tenant: 'tenant-500' }))
    if (await pruneSession(store, info)) deleted++;
  const took = performance.now() - began;
  console.log(`\nprune --older-than 60d --tenant tenant-500: ${deleted} deleted in ${ms(took)} ms`);
}

/** Each case some times, for the server to come to the plan that it keeps. @returns how many plans were wrong */
async function explainAll(connectionString, found, large) {
  let plans = [];
  const pool = tellingPool(connectionString, (plan) => plans.push(plan));
  const store = postgresStore({ pool, prepare: true });
  await store.head('short');
  let failed = 0;
  console.log('\n| what | statement | indexes | pages |\n|---|---|---|---|');
  for (const { name, work } of cases(store, found)) {
    const seen = new Map();
    for (let i = 0; i < 12; i++) {
      plans = [];
      await work(i);
      if (plans.length === 0) throw new Error(`No plan was told for "${name}".`);
      for (const plan of plans) {
        const query = plan['Query Text'].replace(/\s+/g, ' ').trim();
        const { wrong, used, buffers } = judged(plan, large);
        const before = seen.get(query) ?? { buffers: 0, wrong: new Set(), used: new Set() };
        for (const one of wrong) before.wrong.add(one);
        for (const one of used) before.used.add(one);
        seen.set(query, { ...before, buffers: Math.max(before.buffers, buffers), plan });
      }
    }
    for (const [query, { wrong, used, buffers, plan }] of seen) {
      failed += wrong.size;
      const told = [...used].join(', ') || 'none';
      console.log(
        `| ${name} | ${query.slice(0, 60)} | ${told} | ${buffers} |${[...wrong].map((one) => ` FAIL: ${one}`)}`,
      );
      if (flags.plans) console.log(JSON.stringify(plan.Plan, null, 1));
    }
  }
  await pool.end();
  return failed;
}

await main();
