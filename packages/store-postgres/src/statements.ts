/** The statements of every turn. Each is the same text every time, so that the server plans it once. */

/**
 * Appends to any number of sessions, each row only if its session is at `expected`. Returns the numbers of the rows that
 * were written, once for each item in the session's inbox, or once if it is empty. Removes the inbox items that the
 * entries take.
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
  ) SELECT d.nr::integer, d.key AS session, i.n, i.item FROM done d JOIN given g ON g.nr = d.nr
  LEFT JOIN LATERAL (
    SELECT n, item FROM ${s}.inbox WHERE session = d.key AND (g.cursor IS NULL OR n > g.cursor OR n = ANY(g.waits::integer[])) ORDER BY n
  ) i ON true`;

/** The newest snapshot of a session, the appends after it, and what its inbox has. */
export const tailOf = (s: string): string => `
  WITH found AS (
    SELECT t.key, p.seq, p.state FROM ${s}.sessions t LEFT JOIN ${s}.snapshots p ON p.session = t.key AND p.seq <= t.seq WHERE t.id = $1
  ) SELECT 'snapshot' AS kind, seq, state AS text, key AS session FROM found WHERE seq IS NOT NULL
  UNION ALL SELECT 'append', a.seq, a.entries, f.key FROM found f JOIN ${s}.appends a ON a.session = f.key
  WHERE a.seq >= coalesce((SELECT max(seq) FROM ${s}.appends WHERE session = f.key AND seq <= f.seq + 1), 0)
  UNION ALL SELECT 'item', i.n, i.item, f.key FROM found f JOIN ${s}.inbox i ON i.session = f.key
  ORDER BY seq`;

/** What the inboxes of these sessions have. */
export const lookInto = (s: string): string =>
  `SELECT t.id, i.n, i.item, i.session FROM ${s}.sessions t JOIN ${s}.inbox i ON i.session = t.key WHERE t.id = ANY($1::text[]) ORDER BY i.n`;
