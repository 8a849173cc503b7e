/** A Postgres server of its own and a pool that counts what it is asked. */
import pg from 'pg';
import { startPostgres } from '../../scripts/postgres.mjs';

/** Gives `use` a pool, and a function that returns the statements so far; ends the server when it is done. */
export async function withPostgres(use) {
  const { connectionString, stop } = await startPostgres();
  const pool = new pg.Pool({ connectionString, max: 10 });
  pool.on('error', () => {});
  let statements = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function count(...given) {
    statements++;
    return query.apply(this, given);
  };
  try {
    return await use(pool, () => statements);
  } finally {
    await pool.end();
    await stop();
  }
}
