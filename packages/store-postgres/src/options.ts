/** The options of the store, and what follows from them. */
import { checkKeys, invalidOption } from 'allium/stores/kit';
import { openPool, type PostgresPool } from './client.js';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database` */
  readonly connectionString?: string;
  /** An open pool instead of `connectionString`. It stays yours: `close()` leaves it open. */
  readonly pool?: PostgresPool;
  /** The most connections to open. @default 10 */
  readonly maxConnections?: number;
  /** The schema of the tables. @default 'allium' */
  readonly schema?: string;
  /**
   * Let the server keep the plans of statements, per connection. Turn it off behind a proxy that hands a connection to
   * several clients and does not track their statements, such as PgBouncer before 1.21. @default true, but false with `pool`
   */
  readonly prepare?: boolean;
  /**
   * Tell all processes which sessions change, so that readers need not ask (see `watch`). Give the address of the server if
   * `connectionString` is that of a pooler, or with a `pool`. @default false
   */
  readonly notify?: boolean | string;
  /** Make the schema and its tables if they are missing. Turn it off where the user may not. @default true */
  readonly setup?: boolean;
}

export interface Settings {
  readonly pool: PostgresPool;
  /** Quoted. */
  readonly schema: string;
  /** Of notifications. */
  readonly channel: string;
  /** Where to listen for notifications, if they are sent. */
  readonly address: string | undefined;
  readonly setup: boolean;
  readonly prepare: boolean;
  /** The store closes the pool. */
  readonly owned: boolean;
  /** Statements of one kind under way at once. */
  readonly parallel: number;
}

/** Checks them. */
export function settingsOf(options: PostgresStoreOptions): Settings {
  checkKeys('postgresStore()', options, [
    'connectionString',
    'pool',
    'maxConnections',
    'schema',
    'prepare',
    'notify',
    'setup',
  ]);
  const { connectionString, pool, maxConnections = 10, schema = 'allium', setup = true } = options;
  const { prepare = pool === undefined, notify = false } = options;
  if (typeof prepare !== 'boolean') throw invalidOption('prepare', 'true or false', prepare);
  if (!Number.isInteger(maxConnections) || maxConnections < 1)
    throw invalidOption('maxConnections', 'an integer ≥ 1', maxConnections);
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalidOption('schema', 'a name of lower-case letters, digits and underscores', schema);
  const address = notify === true ? connectionString : notify || undefined;
  if (notify !== false && (typeof address !== 'string' || address === ''))
    throw invalidOption('notify', 'true with a `connectionString`, or the address of the server', notify);
  // At most a third for appends and a third for looking into inboxes: reads and lists need some, too.
  const parallel = Math.max(1, Math.floor(maxConnections / 3));
  const settings = { channel: schema, schema: `"${schema}"`, setup, prepare, parallel, address };
  if (pool !== undefined) return { ...settings, pool, owned: false };
  if (typeof connectionString !== 'string' || connectionString === '') {
    throw invalidOption('connectionString', 'postgres://user:password@host:port/database', connectionString);
  }
  return { ...settings, pool: openPool(connectionString, maxConnections), owned: true };
}
