/** Which versions are installed. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

export function installedVersions(): Record<string, string> {
  const packages = ['@allium/cli', '@allium/config', 'allium'];
  return {
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    node: process.versions.node,
  };
}

export function versionOf(name: string): string {
  const file = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return JSON.parse(readFileSync(file, 'utf8')).version;
}
