import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../kernel/protocol/store.js';
import { fileStore } from './file/index.js';
import { sqliteStore } from './sqlite/index.js';

// Inside the workspace, for the child processes to find the packages a store loads.
const root = path.resolve(
  import.meta.dirname,
  '../../../../node_modules/.cache',
  `allium-store-processes-${process.pid}`,
);

const STORES: Record<string, (name: string) => Store> = {
  file: (name) => fileStore({ dir: path.join(root, name) }),
  sqlite: (name) => sqliteStore({ path: path.join(root, `${name}.db`) }),
};

// What a child does: appends batches of three entries that name it, and says so once each is confirmed.
const CHILD = `
  import fs from 'node:fs';
  import { fileStore } from './file.mjs';
  import { sqliteStore } from './sqlite.mjs';
  const [kind, location, name, count] = process.argv.slice(2);
  const store = kind === 'file' ? fileStore({ dir: location }) : sqliteStore({ path: location + '.db' });
  // All begin at the same moment, or the first would be done before the last is there.
  fs.writeSync(1, 'ready\\n');
  fs.readSync(0, Buffer.alloc(1));
  const entry = (cell, value) => ({ v: 1, at: 1, type: 'state', cell, version: 1, value });
  for (let done = 0, conflicts = 0; done < Number(count); ) {
    try {
      store.append('shared', store.head('shared'), ['a', 'b', 'c'].map((part) => entry(name, done + part)));
      fs.writeSync(1, ++done + ' ' + conflicts + '\\n');
    } catch (error) {
      if (error.code !== 'SESSION_CONFLICT') throw error;
      conflicts++;
    }
  }
`;

beforeAll(async () => {
  const input = Object.fromEntries(
    Object.keys(STORES).map((kind) => [kind, path.join(import.meta.dirname, kind, 'index.ts')]),
  );
  const bundle = await rolldown({
    input,
    platform: 'node',
    resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  });
  await bundle.write({ dir: root, entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' });
  await bundle.close();
  fs.writeFileSync(path.join(root, 'child.mjs'), CHILD);
});
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));

function start(kind: string, location: string, name: string, count: number): ChildProcess {
  return spawn(
    process.execPath,
    [path.join(root, 'child.mjs'), kind, path.join(root, location), name, String(count)],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
}

async function written(store: Store): Promise<string[]> {
  const entries = await store.read('shared', 1);
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1));
  return entries.map((entry) => (entry.type === 'state' ? `${entry.cell} ${entry.value}` : entry.type));
}

describe.each(Object.keys(STORES))('%s store', (kind) => {
  it('lets eight processes append to one session without a gap, a loss or a mixture', async () => {
    const [processes, batches] = [8, 200];
    const children = Array.from({ length: processes }, (_, i) =>
      start(kind, `${kind}-eight`, `p${i}`, batches),
    );
    const outputs = children.map((child) => createInterface({ input: child.stdout! }));
    let conflicts = 0;
    // A child that fails to start closes its output without a line.
    await Promise.all(outputs.map((lines) => Promise.race([once(lines, 'line'), once(lines, 'close')])));
    for (const lines of outputs)
      lines.on('line', (line) => {
        if (line.startsWith(`${batches} `)) conflicts += Number(line.split(' ')[1]);
      });
    for (const child of children) child.stdin!.end('!');
    const codes = await Promise.all(children.map(async (child) => (await once(child, 'exit'))[0]));
    expect(codes).toEqual(codes.map(() => 0));
    expect(conflicts, 'conflicts: without any, nothing was tried here').toBeGreaterThan(0);
    const found = await written(STORES[kind]!(`${kind}-eight`));
    expect(found).toHaveLength(processes * batches * 3);
    const whole = found
      .filter((_, i) => i % 3 === 0)
      .flatMap((first) => ['a', 'b', 'c'].map((part) => first.slice(0, -1) + part));
    expect(found).toEqual(whole);
    for (let i = 0; i < processes; i++) {
      const own = found.filter((text) => text.startsWith(`p${i} `)).map((text) => text.slice(3));
      expect(own).toEqual(
        Array.from({ length: batches }, (_, batch) =>
          ['a', 'b', 'c'].map((part) => `${batch}${part}`),
        ).flat(),
      );
    }
  });

  it('keeps every confirmed append of a process that is killed, and none in part', async () => {
    for (let kill = 0; kill < 15; kill++) {
      const location = `${kind}-killed-${kill}`;
      const child = start(kind, location, 'p', 1_000_000);
      let confirmed = 0;
      const lines = createInterface({ input: child.stdout! });
      child.stdin!.end('!');
      lines.on('line', (line) => {
        if (line === 'ready') return;
        confirmed = Number(line.split(' ')[0]);
        // A different place each time; what it is doing at that moment is up to chance.
        if (confirmed >= 1 + kill * 7) child.kill('SIGKILL');
      });
      await once(lines, 'close');
      const store = STORES[kind]!(location);
      const found = await written(store);
      expect(found.length % 3).toBe(0);
      expect(found.length / 3).toBeGreaterThanOrEqual(confirmed);
      // At most the one append that was under way is there without having been confirmed.
      expect(found.length / 3).toBeLessThanOrEqual(confirmed + 1);
      expect(await store.append('shared', found.length, [{ v: 1, at: 1, type: 'inbox', cursor: 1 }])).toBe(
        found.length + 1,
      );
      await store.close?.();
    }
  });
});
