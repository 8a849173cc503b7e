import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, type AgentOptions } from 'allium';
import {
  localMemory,
  type Memory,
  type MemoryItem,
  memoryRecall,
  sqliteMemory,
} from 'allium/middleware/memory-recall';
import { sqliteStore } from 'allium/stores/sqlite';
import { type Script, scriptedModel, text } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../stores/sqlite/driver.js';

const folder = mkdtempSync(join(tmpdir(), 'memory-recall-'));
afterAll(() => rmSync(folder, { recursive: true }));

const never = new AbortController().signal;
const note = (said: string, more: Partial<MemoryItem> = {}): MemoryItem => ({
  id: said,
  text: said,
  at: 1,
  ...more,
});

function setup(memory: Memory, script: readonly Script[], options: Partial<AgentOptions> = {}) {
  const model = scriptedModel(script);
  return { agent: new Agent({ model, middleware: [memoryRecall({ memory })], ...options }), model };
}

let files = 0;
describe.each([
  ['localMemory', () => localMemory()],
  ['sqliteMemory in a file', () => sqliteMemory({ path: join(folder, 'sub', `${files++}.db`) })],
  ['sqliteMemory in a given database', () => sqliteMemory({ database: openDatabase(':memory:') })],
] as const)('%s', (_, make) => {
  const find = async (
    memory: Memory,
    query: string,
    scope = {},
    more: { k?: number; exceptSession?: string } = {},
  ) => {
    const { k = 10, ...rest } = more;
    return (await memory.recall(query, k, scope, { signal: never, ...rest })).map(({ text: said }) => said);
  };
  const keep = (memory: Memory, texts: readonly string[], scope = {}, more: Partial<MemoryItem> = {}) =>
    memory.save(
      texts.map((said, i) => note(said, { at: i, ...more })),
      scope,
      { signal: never },
    );

  it('finds by words, whatever their case and accents', async () => {
    const memory = make();
    await keep(memory, ['Tea from Köln', 'Coffee, black', 'Größe: 42']);
    expect(await find(memory, 'KOLN')).toEqual(['Tea from Köln']);
    expect(await find(memory, 'the COFFEE?')).toEqual(['Coffee, black']);
    expect(await find(memory, '42')).toEqual(['Größe: 42']);
    expect(await find(memory, 'juice')).toEqual([]);
  });

  it('gives the best first, then the newest, and no more than k', async () => {
    const memory = make();
    await keep(memory, ['red apple', 'red wine', 'red cherry', 'green tea', 'black tea', 'white milk']);
    expect((await find(memory, 'red wine'))[0]).toBe('red wine');
    expect(await find(memory, 'tea')).toEqual(['black tea', 'green tea']);
    expect(await find(memory, 'red', {}, { k: 2 })).toEqual(['red cherry', 'red wine']);
  });

  it.each([
    '',
    '?!',
    '"',
    'a" OR "b',
    'NOT',
    'owner : x',
    'tea*',
    '(',
    'NEAR(a b)',
    "'; DROP TABLE allium_memory; --",
    '🧅',
  ])('treats %j as words and nothing else', async (query) => {
    const memory = make();
    await keep(memory, ['plain words']);
    expect(await find(memory, query)).toEqual([]);
    expect(await find(memory, `${query} plain`)).toEqual(['plain words']);
  });

  it('keeps tenants apart from each other and from sessions without one', async () => {
    const memory = make();
    const tenants = [
      {},
      { tenant: 'a' },
      { tenant: 'b' },
      { tenant: '' },
      { tenant: 'null' },
      { tenant: 'a"] OR owner : ["b' },
    ];
    for (const scope of tenants)
      await keep(memory, [`secret of ${JSON.stringify(scope)}`], scope, { id: 'same' });
    for (const scope of tenants)
      expect(await find(memory, 'secret', scope)).toEqual([`secret of ${JSON.stringify(scope)}`]);
    expect(await find(memory, 'secret', { tenant: 'c' })).toEqual([]);
  });

  it('searches one session only, or all but one', async () => {
    const memory = make();
    await keep(memory, ['tea of one'], {}, { sessionId: 'one' });
    await keep(memory, ['tea of two'], {}, { sessionId: 'two' });
    await keep(memory, ['tea of nobody']);
    expect(await find(memory, 'tea', { sessionId: 'one' })).toEqual(['tea of one']);
    expect((await find(memory, 'tea', {}, { exceptSession: 'one' })).sort()).toEqual([
      'tea of nobody',
      'tea of two',
    ]);
  });

  it('replaces what is saved again', async () => {
    const memory = make();
    await keep(memory, ['old words'], {}, { id: 'x' });
    await keep(memory, ['new text'], {}, { id: 'x' });
    expect(await find(memory, 'old')).toEqual([]);
    expect(await find(memory, 'new')).toEqual(['new text']);
  });

  it('returns what was saved', async () => {
    const memory = make();
    const item = { id: 'i', text: 'grüß 🧅\n"x"', at: 1_700_000_000_000, sessionId: 's' };
    await memory.save([item], {}, { signal: never });
    expect(await memory.recall('grüß', 5, {}, { signal: never })).toEqual([item]);
  });

  it('serves agents of two tenants without telling one about the other', async () => {
    const memory = make();
    const { agent, model } = setup(memory, [text('Noted.'), text('No idea.'), text('It is red.')]);
    await agent.session('1').run('My bicycle is red.', { tenant: 'ann' });
    await agent.session('2').run('Which colour has my bicycle?', { tenant: 'bob' });
    await agent.session('3').run('Which colour has my bicycle?', { tenant: 'ann' });
    expect(JSON.stringify(model.requests[1])).not.toContain('red');
    expect(JSON.stringify(model.requests[2])).toContain('My bicycle is red.');
  });
});

describe('localMemory', () => {
  it('keeps the newest of a tenant', async () => {
    const memory = localMemory({ maxItems: 2 });
    for (const said of ['tea 1', 'tea 2', 'tea 3'])
      await memory.save([note(said, { at: 0 })], {}, { signal: never });
    await memory.save([note('tea of a')], { tenant: 'a' }, { signal: never });
    const found = await memory.recall('tea', 9, {}, { signal: never });
    expect(found.map(({ id }) => id).sort()).toEqual(['tea 2', 'tea 3']);
    expect(() => localMemory({ maxItems: 0 })).toThrow('Expected `maxItems` to be an integer ≥ 1, got 0.');
  });
});

describe('sqliteMemory', () => {
  it('outlives the process, and several may use the file', async () => {
    const path = join(folder, 'shared.db');
    const [one, two] = [sqliteMemory({ path }), sqliteMemory({ path })];
    await one.save([note('tea')], {}, { signal: never });
    await two.save([note('more tea')], {}, { signal: never });
    one.close();
    expect(await two.recall('tea', 9, {}, { signal: never })).toHaveLength(2);
    two.close();
  });

  it('lives in the database of the store, and is undone with a transaction of its owner', async () => {
    const database = openDatabase(':memory:');
    const memory = sqliteMemory({ database });
    const { agent } = setup(memory, [text('Noted.')], { store: sqliteStore({ database }) });
    await agent.session('s').run('I like tea.');
    database.exec('BEGIN');
    await memory.save([note('tea, too')], {}, { signal: never });
    database.exec('ROLLBACK');
    expect(await memory.recall('tea', 9, {}, { signal: never })).toHaveLength(1);
    memory.close();
    expect(database.prepare('SELECT count(*) AS n FROM allium_memory').get()).toMatchObject({ n: 1 });
    database.close();
  });

  it('saves all of a run or nothing', async () => {
    const memory = sqliteMemory({ path: ':memory:' });
    expect(() =>
      memory.save([note('tea'), note('bad', { at: null as never })], {}, { signal: never }),
    ).toThrow('NOT NULL');
    expect(await memory.recall('tea', 9, {}, { signal: never })).toEqual([]);
  });

  it('refuses a database that a newer release has written, and options it cannot use', () => {
    const database = openDatabase(':memory:');
    sqliteMemory({ database });
    database.exec('UPDATE allium_memory_meta SET version = 2');
    expect(() => sqliteMemory({ database })).toThrow(
      'The database has version 2 of the tables of this memory; this release reads version 1.',
    );
    expect(() => sqliteMemory({})).toThrow(
      'Expected `path` to be the path of a file, or `:memory:`, got undefined.',
    );
    expect(() => sqliteMemory({ database: {} as never })).toThrow(
      'Expected `database` to be an object with exec(), prepare(), got {}.',
    );
  });

  it('says what to install where there is no SQLite', () => {
    const missing = () => {
      throw new Error("Cannot find module 'libsql'");
    };
    expect(() => openDatabase('x', () => undefined, missing, 'sqliteMemory()')).toThrow(
      'sqliteMemory() needs Node 22.13 or later',
    );
  });
});
