// What every package says of itself to those who find it in a registry.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';

const read = (folder: string) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));

it.each(readdirSync(join(root, 'packages')))('%s says where it comes from, and may be published', (name) => {
  const { repository, bugs, publishConfig, license } = read(`packages/${name}`);
  expect({ repository, bugs, publishConfig, license }).toEqual({
    repository: { ...read('.').repository, directory: `packages/${name}` },
    bugs: read('.').bugs,
    // Without it npm takes a package with a scope for a private one.
    publishConfig: { access: 'public' },
    license: 'MIT',
  });
});
