/** The part of `pg` that the store uses, so that your own pool, or that of a similar library, will do. */
import pg from 'pg';

export interface PostgresClient {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly object[]; readonly rowCount: number | null }>;
}

/** A statement as `pg` takes it instead of a text: the server plans each name once per connection. */
interface NamedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Runs a statement under a name. Only for pools that support this, as those of `pg` do. */
export function queryNamed(
  client: PostgresClient,
  statement: NamedStatement,
): ReturnType<PostgresClient['query']> {
  return client.query(statement as unknown as string);
}

export interface PostgresConnection extends PostgresClient {
  release(error?: boolean): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
}

export interface PostgresPool extends PostgresClient {
  connect(): Promise<PostgresConnection>;
  end(): Promise<unknown>;
}

export function openPool(connectionString: string, max: number): PostgresPool {
  const pool = new pg.Pool({ connectionString, max });
  // The pool replaces a connection that breaks while nobody waits for it. Somebody who waits gets the error with the
  // query. Without a listener, it would also end the process.
  pool.on('error', ignore);
  pool.on('connect', (client) => client.on('error', ignore));
  return pool as PostgresPool;
}

const ignore = (): void => {};

/** Runs `work` in a transaction, and again if the server asks for it because of a conflict. */
export async function transaction<T>(
  pool: PostgresPool,
  work: (client: PostgresClient) => Promise<T>,
): Promise<T> {
  return repeated(async () => {
    const client = await pool.connect();
    client.on('error', ignore);
    let broken = false;
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      // If even this fails, the connection is gone and must not go back to the pool.
      await client.query('ROLLBACK').catch(() => {
        broken = true;
      });
      throw error;
    } finally {
      client.off('error', ignore);
      client.release(broken);
    }
  });
}

/** After serialisation failures and deadlocks nothing was done, and trying again is right. */
export async function repeated<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (attempt === MAX_ATTEMPTS || (code !== '40001' && code !== '40P01')) throw error;
    }
  }
}

const MAX_ATTEMPTS = 10;
