// A page far down a long list costs what the first one costs.

import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startPostgres } from '../../../scripts/postgres.mjs';
import { postgresStore } from './index.js';

let connectionString = '';
let stop: (() => Promise<void>) | undefined;
beforeAll(async () => {
  ({ connectionString, stop } = await startPostgres());
});
afterAll(() => stop?.());

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}
const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

it.each([undefined, 'b'])('reads no page before the one it is asked for (tenant %s)', async (tenant) => {
  const pool = new pg.Pool({ connectionString });
  // The server may end before the last connection has.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  const sent: [text: string, values: unknown[]][] = [];
  const store = postgresStore({
    schema: `pages_of_${tenant ?? 'all'}`,
    pool: {
      query(text: string, values: unknown[] = []) {
        sent.push([text, values]);
        return pool.query(text, values);
      },
      connect: () => pool.connect(),
      end: () => pool.end(),
    },
  });
  await store.list();
  await pool.query(`INSERT INTO pages_of_${tenant ?? 'all'}.sessions (id, seq, created_at, updated_at, tenant)
    SELECT 's' || i, 1, i / 3, i / 3, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END FROM generate_series(1, 20000) i`);
  await pool.query('ANALYZE');
  const options = { limit: 100, ...(tenant !== undefined && { tenant }) };
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ ...options, ...(cursor !== undefined && { cursor }) });
    seen.push(...page.sessions.map(({ sessionId }) => sessionId));
    cursor = page.next;
    const [text, values] = sent.at(-1)!;
    const { rows } = await pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values);
    const nodes = nodesOf(rows[0]['QUERY PLAN'][0].Plan);
    // Those that share the time of the cursor, and about as many of the other tenant where the index of all is used. It
    // does not grow from page to page.
    for (const node of nodes) expect(node['Rows Removed by Filter'] ?? 0).toBeLessThan(3 * options.limit);
    expect(nodes.map((node) => node['Node Type'])).not.toContain('Seq Scan');
  } while (cursor !== undefined);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen).toHaveLength(tenant === undefined ? 20000 : 10000);
  await pool.end();
});
