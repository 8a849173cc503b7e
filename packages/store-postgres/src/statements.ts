/** The statement that appends. It is the same text every time, so that the server plans it once. */

/**
 * Appends to any number of sessions, each row only if its session is at `expected`, and returns the numbers of the
 * rows that were written. Removes the inbox items that the entries take.
 */
export const appendAll = (s: string): string => `
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::integer[], $3::integer[], $4::text[], $5::double precision[], $6::double precision[],
      $7::boolean[], $8::text[], $9::double precision[], $10::text[],
      $11::integer[], $12::text[])
    WITH ORDINALITY AS g (id, expected, count, entries, first_at, last_at, starts, tenant, cursor, waits,
      snapshot_seq, snapshot, nr)
  ), made AS (
    INSERT INTO ${s}.sessions AS t (id, seq, created_at, updated_at, started, tenant)
    SELECT id, count, first_at, last_at, starts, tenant FROM given WHERE expected = 0
    ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, created_at = excluded.created_at, updated_at = excluded.updated_at,
      started = excluded.started, tenant = excluded.tenant
    WHERE t.seq = 0 RETURNING id, key
  ), moved AS (
    UPDATE ${s}.sessions t SET seq = g.expected + g.count, created_at = coalesce(t.created_at, g.first_at), updated_at = g.last_at,
      started = t.started OR g.starts, tenant = CASE WHEN t.started THEN t.tenant ELSE g.tenant END
    FROM given g WHERE g.expected > 0 AND t.id = g.id AND t.seq = g.expected RETURNING t.key, g.nr
  ), done AS (
    SELECT key, nr FROM moved UNION ALL SELECT made.key, g.nr FROM made JOIN given g ON g.id = made.id AND g.expected = 0
  ), gone AS (
    DELETE FROM ${s}.inbox i USING done d JOIN given g ON g.nr = d.nr
    WHERE g.cursor IS NOT NULL AND i.session = d.key AND i.n <= g.cursor AND NOT i.n = ANY(g.waits::integer[])
  ), written AS (
    INSERT INTO ${s}.appends (session, seq, entries)
    SELECT d.key, g.expected + 1, g.entries FROM done d JOIN given g ON g.nr = d.nr
  ), kept AS (
    INSERT INTO ${s}.snapshots (session, seq, state)
    SELECT d.key, g.snapshot_seq, g.snapshot FROM done d JOIN given g ON g.nr = d.nr
    WHERE g.snapshot_seq <= g.expected + g.count
    ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, state = excluded.state
  ) SELECT nr FROM done`;
