import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { NewEntry, Store } from '../../kernel/protocol/store.js';
import { testStore } from '../../testing/test-store.js';
import type { SyncStore } from '../kit/index.js';
import { openDatabase } from './driver.js';
import { type SqliteStoreOptions, sqliteStore } from './index.js';

const root = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-sqlite-store-'));
afterAll(() => fs.rmSync(root, { recursive: true }));

let count = 0;
const newFile = () => path.join(root, `${count++}`, 'sessions.db');
const paths = new WeakMap<Store, string>();

function on(file: string, options: SqliteStoreOptions = {}): SyncStore {
  const store = sqliteStore({ path: file, ...options });
  paths.set(store, file);
  return store;
}

testStore({
  name: 'sqliteStore',
  open: () => on(newFile()),
  reopen: (store) => on(paths.get(store)!),
  it,
  describe,
});
testStore({
  name: "sqliteStore with fsync: 'always' and exclusive",
  open: () => on(newFile(), { fsync: 'always', exclusive: true }),
  skip: { 'two-handles': 'The database is locked for others.', crash: 'The database is locked for others.' },
  it,
  describe,
});

const text = (id: string): NewEntry => ({
  v: 1,
  at: 7,
  type: 'message',
  runId: 'r',
  message: { id, role: 'user', content: [] },
});

describe('sqliteStore', () => {
  it('works on a database that is given to it, and leaves it open', () => {
    const database = openDatabase(':memory:');
    const store = sqliteStore({ database });
    store.append('s', 0, [text('a')]);
    store.close();
    expect(sqliteStore({ database }).head('s')).toBe(1);
    database.close();
  });

  it("begins a transaction only if it has to: an append inside the owner's transaction is undone with it", () => {
    const database = openDatabase(':memory:');
    const store = sqliteStore({ database });
    store.append('s', 0, [text('a')]);
    database.exec('BEGIN');
    expect(store.append('s', 1, [text('b')])).toBe(2);
    database.exec('ROLLBACK');
    expect(store.head('s')).toBe(1);
    database.close();
  });

  it('recovers after an append was undone behind its back', () => {
    const database = openDatabase(':memory:');
    const store = sqliteStore({ database });
    store.append('s', 0, [text('a')]);
    database.exec('BEGIN');
    store.append('s', 1, [text('b')]);
    database.exec('ROLLBACK');
    expect(() => store.append('s', 2, [text('c')])).toThrow(
      expect.objectContaining({ code: 'SESSION_CONFLICT' }),
    );
    expect(store.append('s', 1, [text('c')])).toBe(2);
    database.close();
  });

  it('says that the disk is full, although SQLite has then undone the transaction itself', () => {
    const database = openDatabase(':memory:');
    const disk = { full: false };
    const store = sqliteStore({
      database: {
        prepare: (sql) => database.prepare(sql),
        close: () => database.close(),
        exec(sql) {
          if (!disk.full || sql !== 'COMMIT') return database.exec(sql);
          database.exec('ROLLBACK');
          throw new Error('database or disk is full');
        },
      },
    });
    disk.full = true;
    expect(() => store.post('s', { type: 'cancel' })).toThrow('database or disk is full');
    disk.full = false;
    store.post('s', { type: 'cancel' });
    expect(store.take('s', 0)).toHaveLength(1);
    database.close();
  });

  it('adds to the database only what is new', () => {
    const file = newFile();
    const store = on(file);
    for (let seq = 0; seq < 3000; seq++) store.append('s', seq, [text('same')]);
    store.close();
    expect(fs.statSync(file).size / 3000).toBeLessThanOrEqual(2 * JSON.stringify(text('same')).length);
  });

  it('finds what was posted to a session that another handle deleted and made again', () => {
    const file = newFile();
    const [one, other] = [on(file), on(file)];
    one.append('s', 0, [text('a')]);
    expect(one.take('s', 0)).toEqual([]);
    other.delete('s');
    other.post('s', { type: 'cancel' });
    expect(one.take('s', 0)).toEqual([{ n: 1, item: { type: 'cancel' } }]);
    one.close();
    other.close();
  });

  it('begins a session with one look and one transaction, and looks into its inbox only together with appends', () => {
    const database = openDatabase(':memory:');
    const asked: string[] = [];
    const note = <T>(sql: string, ask: () => T): T => {
      asked.push(/\w+/.exec(sql)![0]);
      return ask();
    };
    const store = sqliteStore({
      database: {
        exec: (sql) => note(sql, () => database.exec(sql)),
        prepare: (sql) => {
          const statement = database.prepare(sql);
          return {
            run: (...values) => note(sql, () => statement.run(...values)),
            get: (...values) => note(sql, () => statement.get(...values)),
            all: (...values) => note(sql, () => statement.all(...values)),
          };
        },
        close: () => database.close(),
      },
    });
    asked.length = 0;
    expect(store.tail!('s')).toEqual({ entries: [] });
    expect(store.take('s', 0)).toEqual([]);
    store.append('s', 0, [text('a')]);
    expect(store.take('s', 0)).toEqual([]);
    store.append('s', 1, [text('b')]);
    expect(store.take('s', 0)).toEqual([]);
    expect(asked).toEqual(['SELECT', 'BEGIN', 'INSERT', 'INSERT', 'COMMIT', 'INSERT']);
  });

  it('finds what another process posted to a new session between the first look and the first append', () => {
    const file = newFile();
    const store = on(file);
    expect(store.tail!('s')).toEqual({ entries: [] });
    // As another process would, of whose post nothing in this one knows.
    const other = openDatabase(file);
    other.exec(`INSERT INTO allium_sessions (id, posted) VALUES ('s', 1);
      INSERT INTO allium_inbox SELECT (key << 32) | 1, '{"type":"cancel"}' FROM allium_sessions`);
    other.close();
    store.append('s', 0, [text('a')]);
    expect(store.take('s', 0)).toEqual([{ n: 1, item: { type: 'cancel' } }]);
    store.close();
  });

  it('keeps no index of tenants, which no query could use, and removes that of an earlier release', () => {
    const file = newFile();
    on(file).close();
    const indexes = () => {
      const database = openDatabase(file);
      const found = database
        .prepare("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")
        .all();
      database.close();
      return found;
    };
    expect(indexes()).toEqual([]);
    const earlier = openDatabase(file);
    earlier.exec('CREATE INDEX allium_sessions_tenant ON allium_sessions (tenant)');
    earlier.close();
    on(file).close();
    expect(indexes()).toEqual([]);
  });

  it('keeps nothing of a deleted session on the disk, nor in its log', () => {
    const file = newFile();
    const store = on(file);
    store.append('s', 0, [text('a secret')]);
    store.delete('s');
    for (const name of [file, `${file}-wal`])
      expect(fs.readFileSync(name, 'latin1')).not.toContain('a secret');
    store.close();
  });

  it('refuses a database that a newer release has written', () => {
    const database = openDatabase(':memory:');
    sqliteStore({ database });
    database.exec('UPDATE allium_meta SET version = 2');
    expect(() => sqliteStore({ database })).toThrow(
      'The database has version 2 of the tables of this store; this release reads version 1.',
    );
    database.close();
  });

  it('uses the SQLite of Node if there is one, else libsql, else says what to install', () => {
    class BuiltIn {
      constructor(readonly path: string) {}
    }
    class Libsql extends BuiltIn {}
    const load = (name: string) => (name === 'libsql' ? Libsql : undefined);
    expect(openDatabase('x', () => BuiltIn as never, load)).not.toBeInstanceOf(Libsql);
    expect(openDatabase('x', () => undefined, load)).toBeInstanceOf(Libsql);
    const missing = () => {
      throw new Error("Cannot find module 'libsql'");
    };
    expect(() => openDatabase('x', () => undefined, missing)).toThrow(
      `The SQLite store needs Node 22.13 or later, which has SQLite built in, or the package libsql; this is Node ${process.version}. Run: npm install libsql`,
    );
  });

  // Of which libc this is, `ldd` knows as much as a report; where it is not glibc, the loader asks for one.
  const glibc =
    fs.existsSync('/usr/bin/ldd') && /^(?!.*musl).*GLIBC/s.test(fs.readFileSync('/usr/bin/ldd', 'utf8'));
  it.runIf(glibc)('spares the loader of libsql a diagnostic report, and nobody else', () => {
    const { report } = process;
    const { getReport } = report;
    let seen: unknown;
    class Libsql {}
    const load = () => {
      seen = report.getReport();
      return Libsql;
    };
    openDatabase('x', () => undefined, load);
    expect(seen).toEqual({ header: { glibcVersionRuntime: expect.any(String) } });
    expect(report.getReport).toBe(getReport);
    const missing = () => {
      throw new Error("Cannot find module 'libsql'");
    };
    expect(() => openDatabase('x', () => undefined, missing)).toThrow('npm install libsql');
    expect(report.getReport).toBe(getReport);
  });

  it('refuses options and ids it cannot use', () => {
    expect(() => sqliteStore({})).toThrow(
      'Expected `path` to be the path of a file, or `:memory:`, got undefined.',
    );
    expect(() => sqliteStore({ path: ':memory:', fsync: 'never' as 'always' })).toThrow(
      "Expected `fsync` to be 'always' or 'checkpoint', got \"never\".",
    );
    expect(() => sqliteStore({ path: ':memory:', busyTimeoutMs: -1 })).toThrow(
      'Expected `busyTimeoutMs` to be an integer from 0 to 2147483647, got -1.',
    );
    expect(() => sqliteStore({ file: 'x' } as never)).toThrow('Unknown option `file` of sqliteStore().');
    expect(() => sqliteStore({ path: ':memory:' }).append('a\ud800', 0, [text('a')])).toThrow(
      'Expected `sessionId` to be well-formed text',
    );
  });
});

it('an error of a database in use names the file too, and what to do', () => {
  const file = newFile();
  const store = sqliteStore({ path: file, busyTimeoutMs: 0 });
  store.append('s', 0, [text('a')]);
  const other = openDatabase(file);
  other.exec('BEGIN IMMEDIATE');
  const busy = `The SQLite store cannot use ${file}: another process writes to it, or holds it. Try again`;
  for (const write of [() => store.append('s', 1, [text('b')]), () => store.append('t', 0, [text('b')])])
    expect(write).toThrow(
      expect.objectContaining({ code: 'STORE_FAILED', message: expect.stringContaining(busy) }),
    );
  other.exec('ROLLBACK');
  other.exec('DROP TABLE allium_appends');
  other.close();
  expect(() => store.read('s', 1)).toThrow(`The SQLite store cannot use ${file}: no such table`);
  store.close();
});

it.each([true, {}, undefined])('gives libsql nothing that would end the process: %s', (value) => {
  const database = openDatabase(':memory:', () => undefined);
  const statement = database.prepare('SELECT ? AS v');
  for (const ask of ['run', 'get', 'all'] as const)
    expect(() => statement[ask](value as never)).toThrow('`value` to be text, a number or null, for SQLite');
  expect(statement.get('text')).toMatchObject({ v: 'text' });
  database.close();
});
