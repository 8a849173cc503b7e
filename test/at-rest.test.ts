/** What is written to disk can be read by its owner only, and what is damaged there is told with a code. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Agent, type Entry, memoryStore, tool } from 'allium';
import { auditLog } from 'allium/middleware/audit-log';
import { sqliteMemory } from 'allium/middleware/memory-recall';
import { record } from 'allium/middleware/record';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from './run-checks.js';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-at-rest-'));
afterAll(() => fs.rmSync(root, { recursive: true, force: true }));
let count = 0;
const newPath = () => path.join(root, `${count++}`);
const mode = (file: string) => (fs.statSync(file).mode & 0o777).toString(8);

describe.skipIf(process.platform === 'win32')('a file that is made is for its owner only', () => {
  it('of sqliteStore, and what SQLite puts beside it', () => {
    const file = newPath();
    const store = sqliteStore({ path: file });
    store.post('s', { type: 'cancel' });
    expect([file, `${file}-wal`, `${file}-shm`].map(mode)).toEqual(['600', '600', '600']);
    store.close();
  });

  it('of sqliteMemory', async () => {
    const file = newPath();
    sqliteMemory({ path: file });
    expect([file, `${file}-wal`].map(mode)).toEqual(['600', '600']);
  });

  it('of fileStore', () => {
    const dir = newPath();
    fileStore({ dir }).post('s', { type: 'cancel' });
    expect([mode(dir), ...fs.readdirSync(dir).map((name) => mode(path.join(dir, name)))]).toEqual([
      '700',
      '600',
    ]);
  });

  it('of auditLog and record', async () => {
    const [log, cassette] = [newPath(), newPath()];
    await new Agent({
      model: scriptedModel(['hi']),
      middleware: [auditLog({ sink: { file: log } }), record({ to: cassette })],
    }).run('hello');
    expect([log, cassette].map(mode)).toEqual(['600', '600']);
  });

  it('and one that was there keeps its mode', () => {
    const file = newPath();
    fs.writeFileSync(file, '', { mode: 0o640 });
    sqliteStore({ path: file }).close();
    expect(mode(file)).toBe('640');
  });
});

describe('a journal in which a field was renamed or damaged', () => {
  const ask = tool({
    name: 'ask',
    description: 'Asks.',
    input: z.any(),
    execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
  });

  async function journal(): Promise<readonly Entry[]> {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel(['hi', toolCalls({ name: 'ask' }), 'done', toolCalls({ name: 'ask' })]),
      tools: [ask],
      store,
      limits: { timeoutMs: 60_000 },
    });
    const session = agent.session('s');
    await session.run('one');
    const { pending } = await session.run('two');
    await session.followUp('three');
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    return store.read('s', 1);
  }

  /** Every way to rename, empty or drop one field, at any depth. */
  function* damages(value: unknown): Generator<unknown> {
    if (typeof value !== 'object' || value === null) return;
    for (const key of Object.keys(value)) {
      const held = (value as Record<string, unknown>)[key];
      const copy = (change: (copied: Record<string, unknown>) => void): unknown => {
        const copied = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
        change(copied);
        return copied;
      };
      yield copy((copied) => {
        delete copied[key];
        copied[`${key}_`] = held;
      });
      for (const other of [null, 7, 'x', [], {}]) yield copy((copied) => (copied[key] = other));
      for (const inner of damages(held)) yield copy((copied) => (copied[key] = inner));
    }
  }

  it('D25 is read, or refused with SESSION_CORRUPT, and never ends in a TypeError', async () => {
    const entries = await journal();
    const seen = new Set<string>();
    for (let i = 0; i < entries.length; i++)
      for (const damaged of damages(entries[i])) {
        const all: unknown[] = entries.map((entry, at) =>
          at === i ? JSON.parse(JSON.stringify(damaged)) : entry,
        );
        const agent = new Agent({
          model: scriptedModel(['fine'], { repeat: true }),
          tools: [ask],
          store: storeWith(memoryStore(), {
            read: (_id, from) => all.slice(Math.max(0, from - 1)) as Entry[],
            append: (_id, seq, more) => seq + more.length,
          }),
        });
        for (const use of [
          () => agent.session('s').messages(),
          () => agent.session('s').pending(),
          () => agent.session('s').run('on'),
        ]) {
          try {
            await use();
            seen.add('read');
          } catch (error) {
            const { code, cause } = error as { code?: string; cause?: unknown };
            seen.add(String(code));
            expect(cause, `${JSON.stringify(damaged)}: ${error}`).not.toBeInstanceOf(TypeError);
            expect(code, `${JSON.stringify(damaged)}: ${error}`).toBeDefined();
          }
        }
      }
    expect([...seen]).toContain('SESSION_CORRUPT');
  });
});

describe('delete', () => {
  it.each([
    ['memoryStore', () => memoryStore()],
    ['fileStore', () => fileStore({ dir: newPath() })],
    ['sqliteStore', () => sqliteStore({ path: newPath() })],
  ])('also removes what sub-agents said: %s', async (_, open) => {
    const store = open();
    const call = { name: 'child', args: { prompt: 'go' } };
    const leaf = new Agent({ name: 'leaf', model: scriptedModel(['leaf'], { repeat: true }) });
    const child = new Agent({
      name: 'child',
      model: scriptedModel([toolCalls({ name: 'leaf', args: { prompt: 'go' } }), 'child'], { repeat: true }),
      tools: [leaf.asTool({ name: 'leaf', description: 'L.' })],
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls(call, call), 'done'], { repeat: true }),
      tools: [child.asTool({ name: 'child', description: 'C.' })],
      store,
    });
    await agent.session('mine/ours').run('go');
    await agent.session('mine').run('go');
    expect(store.list().sessions).toHaveLength(10);
    store.delete('mine');
    const left = store.list().sessions.map(({ sessionId }) => sessionId);
    expect(left).toHaveLength(5);
    expect(left.every((id) => id.startsWith('mine/ours'))).toBe(true);
    store.close();
  });
});
