/** The part of `pg` that the store uses, so that a pool of yours, or of a library that looks like it, will do. */
import pg from 'pg';

export interface PostgresClient {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly object[]; readonly rowCount: number | null }>;
}

/** What `pg` takes in place of a text: the server plans a statement of this name once per connection. */
interface NamedStatement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

/** Runs a statement under a name. Only for pools that know such statements, as those of `pg` do. */
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
  // A connection that breaks while nobody waits for it is replaced by the pool. Whoever does wait gets the error with
  // the query. Without listeners it would end the process besides.
  pool.on('error', ignore);
  pool.on('connect', (client) => client.on('error', ignore));
  return pool as PostgresPool;
}

const ignore = (): void => {};

/** Runs `work` in a transaction, and again if the server asks for it: another one was in its way. */
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
      // Where even this fails the connection is gone, and must not go back to the pool.
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

/** Serialisation failures and deadlocks say that nothing was done and that trying again is right. */
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
