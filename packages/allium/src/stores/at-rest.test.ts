/** What a guard took out of steering, follow-ups and answers is in no file once the entry that replaces it is written. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Agent, defineMiddleware, type Store, textOf, tool } from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { openDatabase } from './sqlite/driver.js';

const SECRET = 'ann@x.org';
const mail = defineMiddleware({
  name: 'mail',
  guard: {
    on: ['input', 'output', 'tool-args', 'tool-result'],
    replacement: '[mail]',
    find: (given) => [...given.matchAll(/ann@x\.org/g)].map((m) => ({ start: m.index, end: m.index + 9 })),
  },
});
const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
const ask = tool({
  name: 'ask',
  description: '',
  input: z.object({}),
  execute: async (_, ctx) => JSON.stringify(await ctx.suspend({ title: 'Who?' })),
});

const dirs: string[] = [];
const stores: (Store & { close?(): unknown })[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close?.();
  for (const dir of dirs.splice(0)) fs.rmSync(dir, { recursive: true, force: true });
});

function folder(): string {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-at-rest-'));
  dirs.push(dir);
  return dir;
}

/** All bytes of all files, logs and leftovers included. */
function bytesIn(dir: string): string {
  const files = fs.readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return files.map((one) => fs.readFileSync(path.join(one.parentPath, one.name), 'latin1')).join('\n');
}

interface Kind {
  open(dir: string): Store & { close?(): unknown };
  /** Remembers what is posted. The function puts it back beside the entries, as if the process had died behind them. */
  remembered(dir: string): () => void;
}

const KINDS: Record<string, Kind> = {
  file: {
    open: (dir) => fileStore({ dir }),
    remembered(dir) {
      const file = path.join(dir, 's.jsonl');
      const posts = fs.readFileSync(file);
      return () => {
        const lines = fs.readFileSync(file, 'utf8').split('\n');
        const appends = lines.filter((line) => line.startsWith('{"seq"')).join('\n');
        fs.writeFileSync(file, Buffer.concat([posts, Buffer.from(`${appends}\n`)]));
      };
    },
  },
  sqlite: {
    open: (dir) => sqliteStore({ path: path.join(dir, 'sessions.db') }),
    remembered(dir) {
      const rows = (sql: string, ...values: (string | number)[]): { id: number; item: string }[] => {
        const database = openDatabase(path.join(dir, 'sessions.db'));
        const found = database.prepare(sql).all(...values) as { id: number; item: string }[];
        database.close();
        return found;
      };
      const posts = rows('SELECT id, item FROM allium_inbox');
      return () => {
        for (const { id, item } of posts) rows('INSERT INTO allium_inbox VALUES (?, ?)', id, item);
      };
    },
  },
};

describe.each(Object.entries(KINDS))('%s', (_, { open, remembered }) => {
  const opened = (dir: string): Store => {
    const store = open(dir);
    stores.push(store);
    return store;
  };
  const session = (store: Store, ...steps: Parameters<typeof scriptedModel>[0][number][]) =>
    new Agent({ model: scriptedModel(steps), store, tools: [look, ask], middleware: [mail] }).session('s');
  const long = `${SECRET} ${'and more '.repeat(3000)}${SECRET}`;

  it.each([SECRET, long])('steering and follow-ups', async (secret) => {
    const dir = folder();
    const store = opened(dir);
    const one = session(store, toolCalls({ name: 'look', args: {} }), text('a'), text('b'), text('c'));
    await one.followUp(`later ${secret}`);
    await one.steer(`now ${secret}`);
    expect(bytesIn(dir)).toContain(SECRET);
    const result = await one.run('go');
    expect(result.status).toBe('done');
    const said = result.messages.map(textOf).join('\n');
    expect(said).toContain('now [mail]');
    expect(said).toContain('later [mail]');
    expect(bytesIn(dir)).not.toContain(SECRET);
    expect(JSON.stringify(await one.messages())).toContain('later [mail]');
  });

  it('steering that was posted behind a follow-up that keeps waiting', async () => {
    const dir = folder();
    const store = opened(dir);
    let seen = '';
    const looks = defineMiddleware({
      name: 'looks',
      beforeModel(ctx) {
        if (ctx.messages.some((message) => textOf(message).includes('[mail]')) && seen === '')
          seen = bytesIn(dir);
      },
    });
    const one = new Agent({
      model: scriptedModel([toolCalls({ name: 'look', args: {} }), text('a'), text('b'), text('c')]),
      store,
      tools: [look],
      middleware: [mail, looks],
    }).session('s');
    await one.followUp('wait for it');
    await one.steer(`now ${SECRET}`);
    await one.run('go');
    expect(seen).toContain('wait for it');
    expect(seen).not.toContain(SECRET);
  });

  it('answers, given from another process', async () => {
    const dir = folder();
    const { pending } = await session(opened(dir), toolCalls({ name: 'ask', args: {} })).run('go');
    const other = opened(dir);
    await session(other).answer(pending[0]!.id, { type: 'respond', text: `It is ${SECRET}` });
    const result = await session(other, text('done')).resume();
    expect(result).toMatchObject({ status: 'done' });
    expect(JSON.stringify(result.messages)).toContain('It is [mail]');
    for (const store of stores) await store.close?.();
    stores.length = 0;
    expect(bytesIn(dir)).not.toContain(SECRET);
  });

  it('after a crash between the entry and its removal, once the session goes on', async () => {
    const dir = folder();
    const one = session(opened(dir), toolCalls({ name: 'look', args: {} }), text('a'));
    await one.steer(`now ${SECRET}`);
    const undo = remembered(dir);
    await one.run('go');
    await stores.pop()!.close?.();
    undo();
    expect(bytesIn(dir)).toContain(SECRET);
    const again = session(opened(dir), text('on'));
    expect(await again.run('more')).toMatchObject({ status: 'done', text: 'on', queued: [] });
    expect((await again.messages()).filter((message) => textOf(message).includes('now'))).toHaveLength(1);
    expect(bytesIn(dir)).not.toContain(SECRET);
  });

  it('does not disturb what is still to be taken, nor its numbers', async () => {
    const dir = folder();
    const store = opened(dir);
    await store.post('s', { type: 'cancel', reason: 'one' });
    await store.post('s', { type: 'cancel', reason: 'two' });
    const start = { v: 1, at: 1, type: 'run_start', runId: 'r', plan: [] } as const;
    await store.append('s', 0, [start, { v: 1, at: 1, type: 'inbox', cursor: 2, waits: [1] }]);
    await store.post('s', { type: 'cancel', reason: 'three' });
    const items = [
      { n: 1, item: { type: 'cancel', reason: 'one' } },
      { n: 3, item: { type: 'cancel', reason: 'three' } },
    ];
    expect(await store.take('s', 0)).toEqual(items);
    expect(await opened(dir).take('s', 0)).toEqual(items);
    expect(bytesIn(dir)).not.toContain('two');
    expect(await opened(dir).take('s', 1)).toEqual(items.slice(1));
    expect(await opened(dir).read('s', 1)).toHaveLength(2);
    expect(bytesIn(dir)).toContain('three');
  });
});
