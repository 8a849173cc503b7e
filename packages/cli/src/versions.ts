/** Which versions are installed. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export function installedVersions(): Record<string, string> {
  const packages = ['@allium/config', 'allium'];
  return {
    '@allium/cli': ownVersion(),
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    node: process.versions.node,
  };
}

/** Every command asks for it. The folder of this file is beside the manifest, built or not, so nothing is searched for. */
export function ownVersion(): string {
  return versionIn(new URL('../package.json', import.meta.url));
}

function versionOf(name: string): string {
  return versionIn(createRequire(import.meta.url).resolve(`${name}/package.json`));
}

function versionIn(manifest: string | URL): string {
  return JSON.parse(readFileSync(manifest, 'utf8')).version;
}
