// A temporary project with the files a test needs.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll } from 'vitest';

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** Writes the files and returns the folder; all are removed after the tests of the file. */
export function project(files: Readonly<Record<string, string | object>>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'allium-config-')));
  folders.push(folder);
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  }
  return folder;
}
