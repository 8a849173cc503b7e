// The rooms of the kernel: which way imports go, and that ARCHITECTURE.md shows the map and the walk as they are.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { alliumFolder, root } from '../scripts/repository.mjs';
import { exceptions, readSources, rooms, upwardImports } from '../scripts/rooms.mjs';
import { walk, walkText } from '../scripts/walk.mjs';

const kernel = join(alliumFolder, 'src/kernel');
const isSource = (file: string) => /\.ts$/.test(file) && !/\.test(-d)?\.ts$/.test(file);

describe('the rooms of the kernel', () => {
  it('hold all of its files', () => {
    expect(readdirSync(kernel).sort()).toEqual(Object.keys(rooms).sort());
  });

  it('import downward only, but for the exceptions that are left', () => {
    expect(upwardImports(readSources())).toEqual([...exceptions]);
  });

  it('are mapped in ARCHITECTURE.md, file by file', () => {
    const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
    const rows = [...page.matchAll(/^\| `(\w+)` \| (.+) \| (.+) \|$/gm)].map(([, room, what, files]) => [
      room,
      what,
      files,
    ]);
    expect(rows).toEqual(
      Object.entries(rooms).map(([room, what]) => {
        const files = readdirSync(join(kernel, room)).filter(isSource);
        const names = files.map((file) => file.replace(/\.ts$/, '')).sort();
        return [room, what, names.map((name) => `\`${name}\``).join(', ')];
      }),
    );
  });
});

describe('the walk of one message', () => {
  it('is shown in ARCHITECTURE.md as it is (node scripts/walk.mjs --write)', {
    timeout: 600_000,
  }, async () => {
    const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
    expect(page).toContain(walkText(await walk()));
  });
});

describe('upwardImports', () => {
  const found = (path: string, code: string) =>
    upwardImports(
      new Map([
        ['kernel/run/loop.ts', ''],
        ['kernel/lib/clock.ts', ''],
        [path, code],
      ]),
    );

  it.each([
    ['a value', `import { loop } from '../run/loop.js';`],
    ['only a type', `import type { Loop } from '../run/loop.js';`],
    ['a type in place', `export type A = import('../run/loop.js').Loop;`],
  ])('finds %s that comes from a room above', (_, code) => {
    expect(found('kernel/lib/hash.ts', code)).toEqual(['lib/hash.ts → run/loop.ts']);
  });

  it('lets a room import from itself and from below, and a test from anywhere', () => {
    expect(found('kernel/run/start-run.ts', `import './loop.js'; import '../lib/clock.js';`)).toEqual([]);
    expect(found('kernel/lib/hash.test.ts', `import '../run/loop.js';`)).toEqual([]);
  });
});
