// Installs a Debian package, if this is a machine and a user that can. Other installs may be under way at the same time,
// those of our own tests too, so it waits for the locks of apt.

import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 5 * 60_000;
const PAUSE_MS = 1000;

/** Throws with what apt-get said if it couldn't install the package. */
export async function installDebianPackage(/** @type {string} */ name) {
  const end = Date.now() + PATIENCE_MS;
  await aptGet(['update', '-q'], end);
  await aptGet(['install', '-qy', '--no-install-recommends', name], end);
}

async function aptGet(/** @type {string[]} */ args, /** @type {number} */ end) {
  for (;;) {
    try {
      execFileSync('apt-get', args, {
        stdio: 'pipe',
        env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
      });
      return;
    } catch (error) {
      const said = String(/** @type {{ stderr?: Buffer }} */ (error).stderr ?? error).trim();
      // The lock of the lists has no option to wait for it, so it is asked for again.
      if (!said.includes('Could not get lock') || Date.now() > end)
        throw new Error(`apt-get ${args.join(' ')} failed: ${said}`, { cause: error });
      await sleep(PAUSE_MS);
    }
  }
}
