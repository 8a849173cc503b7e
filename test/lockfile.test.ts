// The lockfiles name no registry: everybody installs from the one they have configured.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';

type Entry = { resolved?: string; link?: boolean; optionalDependencies?: Record<string, string> };

const lockfiles = [
  'package-lock.json',
  'bench/package-lock.json',
  'bench/node24/package-lock.json',
  'examples/chat/package-lock.json',
  'examples/http/package-lock.json',
  'packages/guardrails/eval/compare/package-lock.json',
].filter((path) => existsSync(join(root, path)));

it.each(lockfiles)('%s resolves nothing to an address', (path) => {
  const addressed = Object.entries(packagesOf(path)).filter(
    ([, { resolved, link }]) => resolved !== undefined && !link,
  );
  expect(addressed.map(([name]) => name)).toEqual([]);
});

it('package-lock.json locks the binaries of every platform, not only of the one it was written on', () => {
  const packages = packagesOf('package-lock.json');
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !(`node_modules/${name}` in packages))
      .map((name) => `${path} → ${name}`),
  );
  expect(missing).toEqual([]);
});

function packagesOf(path: string): Record<string, Entry> {
  return JSON.parse(readFileSync(join(root, path), 'utf8')).packages;
}
