/** What `allium worker` and `allium enqueue` share: the package they need, and where Redis is. */
import type * as Fleet from '@allium/worker';
import type { Command } from 'commander';
import { UsageError } from './outcome.js';
import { installLine, type Shell } from './shell.js';

export interface FleetOptions {
  readonly redis?: string;
  readonly prefix?: string;
}

export function withFleetOptions(command: Command): Command {
  return command
    .option('--redis <url>', 'where the queue is; by default REDIS_URL')
    .option('--prefix <name>', 'begins the keys in Redis; worker and enqueue need the same one');
}

/** Loaded only by the commands that need it, so that others need not install it. */
export async function loadFleet({ io }: Shell): Promise<typeof Fleet> {
  try {
    return await import('@allium/worker');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new UsageError(`This needs @allium/worker. Install it: ${installLine(io, ['@allium/worker'])}`);
  }
}

export function connectionOf({ io }: Shell, { redis, prefix }: FleetOptions) {
  const connection = redis ?? io.env.REDIS_URL;
  if (!connection)
    throw new UsageError('Where is Redis? Pass --redis redis://localhost:6379, or set REDIS_URL.');
  return { connection, ...(prefix !== undefined && { prefix }) };
}
