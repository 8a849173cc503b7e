/** Copies the beginning of a session into a new one, and reads entries. */
import { checkFork, type Entry, firstRun, parseEntries, sessionConflict } from 'allium/stores/kit';
import type { PostgresClient } from './client.js';

export async function forkIn(
  client: PostgresClient,
  s: string,
  { sessionId, seq, newId }: { readonly sessionId: string; readonly seq: number; readonly newId: string },
): Promise<void> {
  const locked = async (id: string) =>
    (await client.query(`SELECT key, seq, posted FROM ${s}.sessions WHERE id = $1 FOR UPDATE`, [id]))
      .rows[0] as { key: string; seq: number; posted: number } | undefined;
  const source = await locked(sessionId);
  const occupied = (await locked(newId))?.seq ?? 0;
  checkFork(sessionId, seq, source?.seq ?? 0, newId, occupied);
  const entries = (await entriesFrom(client, s, sessionId, 1)).slice(0, seq);
  const run = firstRun(entries);
  const { rows } = await client.query(
    `INSERT INTO ${s}.sessions AS t (id, seq, created_at, updated_at, started, tenant, posted) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (id) DO UPDATE SET seq = $2, created_at = $3, updated_at = $4, started = $5, tenant = $6, posted = t.posted + $7
     WHERE t.seq = 0 RETURNING key`,
    [newId, seq, entries[0]!.at, entries.at(-1)!.at, run !== undefined, run?.tenant ?? null, source!.posted],
  );
  // Somebody else made it in the meantime.
  if (rows.length === 0) throw sessionConflict(newId, 0, (await locked(newId))?.seq ?? 0);
  const { key } = rows[0] as { key: string };
  const copied = JSON.stringify(entries.map(({ seq: _, ...entry }) => entry));
  await client.query(`INSERT INTO ${s}.appends (session, seq, entries) VALUES ($1, 1, $2)`, [key, copied]);
  // The inbox continues counting where that of the source is, since the copied journal says how far it was taken.
  // Items that were posted before move up, by way of negative numbers, so that two rows never collide.
  await client.query(`UPDATE ${s}.inbox SET n = -(n + $2) WHERE session = $1`, [key, source!.posted]);
  await client.query(`UPDATE ${s}.inbox SET n = -n WHERE session = $1`, [key]);
}

/** The entries of a session with `seq >= fromSeq`. */
export async function entriesFrom(
  client: PostgresClient,
  s: string,
  sessionId: string,
  fromSeq: number,
): Promise<Entry[]> {
  // The first wanted entry may be in the middle of an append.
  const { rows } = await client.query(
    `SELECT a.seq, a.entries FROM ${s}.sessions t JOIN ${s}.appends a ON a.session = t.key
     WHERE t.id = $1 AND a.seq >= coalesce((SELECT max(seq) FROM ${s}.appends WHERE session = t.key AND seq <= $2), 0)
     ORDER BY a.seq`,
    [sessionId, Math.max(1, fromSeq)],
  );
  return (rows as { seq: number; entries: string }[])
    .flatMap(({ seq, entries }) => parseEntries(entries, seq, sessionId))
    .filter(({ seq }) => seq >= fromSeq);
}
