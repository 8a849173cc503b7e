// The stores the harness runs on: how a process opens one, and the server that Postgres needs.

import path from 'node:path';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { startPostgres } from '../../scripts/postgres.mjs';

/** @import { Store } from 'allium' */

/** @typedef {{ kind: 'file' | 'sqlite' | 'postgres', location: string }} StoreAddress */

export const STORES = /** @type {const} */ (['file', 'sqlite', 'postgres']);

/** @returns {Promise<Store>} */
export async function openStore(/** @type {StoreAddress} */ { kind, location }) {
  if (kind === 'file') return fileStore({ dir: location });
  if (kind === 'sqlite') return sqliteStore({ path: location });
  const { postgresStore } = await import('@allium/store-postgres');
  return postgresStore({ connectionString: location, maxConnections: 2 });
}

/** @returns {StoreAddress} The address for processes that are known to the server under this name. */
export function addressFor(/** @type {StoreAddress} */ address, /** @type {string} */ name) {
  if (address.kind !== 'postgres') return address;
  const location = new URL(address.location);
  location.searchParams.set('application_name', name);
  return { ...address, location: location.href };
}

/**
 * A server may still be at work on what a process sent before it was killed: waits until it has done with all that are
 * known under this name.
 */
export async function untilGone(/** @type {StoreAddress} */ { kind, location }, /** @type {string} */ name) {
  if (kind !== 'postgres') return;
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: location });
  await client.connect();
  try {
    for (let connected = 1; connected > 0; ) {
      const { rows } = await client.query(
        'select count(*)::int as n from pg_stat_activity where application_name = $1',
        [name],
      );
      connected = rows[0].n;
      if (connected > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await client.end();
  }
}

/**
 * Makes room for a store of that kind.
 *
 * @param {StoreAddress['kind']} kind
 * @param {string} folder
 * @returns {Promise<{ address: StoreAddress, stop: () => Promise<void> }>}
 */
export async function startStore(kind, folder) {
  const none = async () => {};
  if (kind === 'file') return { address: { kind, location: path.join(folder, 'sessions') }, stop: none };
  if (kind === 'sqlite') return { address: { kind, location: path.join(folder, 'sessions.db') }, stop: none };
  const { connectionString, stop } = await startPostgres();
  return { address: { kind, location: connectionString }, stop };
}
