/** The options of the store, and what follows from them. */
import { checkFields, type Fields, kinds } from 'allium/kit';
import { invalidOption } from 'allium/stores/kit';
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

const OPTIONS = {
  connectionString: { ...kinds.nonEmptyText, expected: 'postgres://user:password@host:port/database' },
  pool: kinds.methods<PostgresPool>('query', 'connect'),
  maxConnections: kinds.integer(1),
  schema: kinds.kind<string>(
    'a name of lower-case letters, digits and underscores',
    (value) => typeof value === 'string' && /^[a-z_][a-z0-9_]{0,62}$/.test(value),
  ),
  prepare: kinds.flag,
  notify: { ...kinds.anything, expected: 'true with a `connectionString`, or the address of the server' },
  setup: kinds.flag,
} satisfies Fields;

/** Checks them. */
export function settingsOf(options: PostgresStoreOptions): Settings {
  checkFields('postgresStore()', OPTIONS, options);
  const { connectionString, pool, maxConnections = 10, schema = 'allium', setup = true } = options;
  const { prepare = pool === undefined, notify = false } = options;
  const address = notify === true ? connectionString : notify || undefined;
  if (notify !== false && (typeof address !== 'string' || address === ''))
    throw invalidOption('notify', 'true with a `connectionString`, or the address of the server', notify);
  // At most a third for appends and a third for looking into inboxes: reads and lists need some, too.
  const parallel = Math.max(1, Math.floor(maxConnections / 3));
  const settings = { channel: schema, schema: `"${schema}"`, setup, prepare, parallel, address };
  if (pool !== undefined) return { ...settings, pool, owned: false };
  if (connectionString === undefined)
    throw invalidOption('connectionString', OPTIONS.connectionString.expected, connectionString);
  return { ...settings, pool: openPool(connectionString, maxConnections), owned: true };
}
