// An npm registry on loopback that serves a folder of tarballs, so that `npx` and `npm install` can be run as users
// run them, by package name, without a network.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { mustRun } from './run-command.mjs';

/**
 * @param {string} folder With what `npm pack` made.
 * @returns {Promise<{ url: string, close: () => Promise<void> }>}
 */
export async function npmRegistry(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith('.tgz'));
  const manifests = await Promise.all(files.map((file) => manifestIn(folder, file)));
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    if (files.includes(path)) return response.end(readFileSync(join(folder, path)));
    const manifest = manifests.find(({ name }) => name === path);
    if (!manifest) return response.writeHead(404).end('{}');
    const { name, version, file } = manifest;
    const hash = createHash('sha512').update(readFileSync(join(folder, file)));
    const dist = {
      tarball: `http://${request.headers.host}/${file}`,
      integrity: `sha512-${hash.digest('base64')}`,
    };
    const versions = { [version]: { ...manifest, dist } };
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}/`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** @returns {Promise<Record<string, any>>} */
async function manifestIn(/** @type {string} */ folder, /** @type {string} */ file) {
  const { stdout } = await mustRun('tar', ['-xzOf', file, 'package/package.json'], { cwd: folder });
  return { ...JSON.parse(stdout), file };
}
