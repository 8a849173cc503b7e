/** Finds an SQLite: the one built into Node, or the `libsql` package. Neither needs a compiler. */

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { AlliumError } from '../../index.js';
import { invalidOption, makeFolder, pathError } from '../kit/index.js';

export type SqliteValue = string | number | null;

/** The part of a database handle that the store uses: `node:sqlite`, `libsql` and `better-sqlite3` all have it. */
export interface SqliteDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
  close(): unknown;
}

export interface SqliteStatement {
  run(...values: SqliteValue[]): { readonly changes: number | bigint };
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
}

type Constructor = new (path: string) => SqliteDatabase;

/**
 * Opens the database in a file, which is made with its folder if it doesn't exist, and passes it to `use`; closes it
 * if that fails. SQLite only looks into a file when it is asked something, so `use` begins by asking.
 */
export function openFile<T>(file: string, who: string, use: (database: SqliteDatabase) => T): T {
  let opened: SqliteDatabase | undefined;
  try {
    if (file !== ':memory:') {
      makeFolder(fs, path.dirname, path.dirname(file));
      // Node says why a file can't be opened; SQLite doesn't. And others can't read a file that Node made, nor those
      // that SQLite puts beside it with the same mode (-wal, -shm).
      fs.closeSync(fs.openSync(file, 'a', 0o600));
    }
    opened = openDatabase(file, undefined, undefined, who);
    return use(naming(opened, (error) => pathError(who, file, error)));
  } catch (error) {
    opened?.close();
    throw pathError(who, file, error);
  }
}

/** The same database, whose errors say which file it is and what to do: later ones too, as when the disk is full. */
function naming(database: SqliteDatabase, named: (error: unknown) => unknown): SqliteDatabase {
  const telling =
    <Args extends unknown[], Result>(work: (...args: Args) => Result) =>
    (...args: Args): Result => {
      try {
        return work(...args);
      } catch (error) {
        throw named(error);
      }
    };
  return {
    exec: telling((sql: string) => database.exec(sql)),
    prepare: telling((sql: string): SqliteStatement => {
      const statement = database.prepare(sql);
      return {
        run: telling((...values: SqliteValue[]) => statement.run(...values)),
        get: telling((...values: SqliteValue[]) => statement.get(...values)),
        all: telling((...values: SqliteValue[]) => statement.all(...values)),
      };
    }),
    close: () => database.close(),
  };
}

/** `who`: who needs it, for the error. The other parameters say where to look, for tests. */
export function openDatabase(
  path: string,
  findBuiltIn: () => Constructor | undefined = builtIn,
  load: (name: string) => unknown = createRequire(import.meta.url),
  who = 'The SQLite store',
): SqliteDatabase {
  return new (findBuiltIn() ?? libsql(load, who))(path);
}

function builtIn(): Constructor | undefined {
  // Node still calls the module experimental and would say so on stderr in every program that uses this store. The
  // few calls used here have not changed since it was added, and the tests run on every supported version.
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return (process.getBuiltinModule('node:sqlite') as { DatabaseSync: Constructor } | undefined)
      ?.DatabaseSync;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function libsql(load: (name: string) => unknown, who: string): Constructor {
  try {
    return withLists(withoutReport(() => load('libsql')) as Constructor);
  } catch (cause) {
    throw new AlliumError(
      'MISSING_DEPENDENCY',
      `${who} needs Node 22.13 or later, which has SQLite built in, or the package libsql; this is Node ${process.version}. Run: npm install libsql`,
      { cause, data: { package: 'libsql' } },
    );
  }
}

/**
 * To find out whether this is glibc, the loader of `libsql` makes Node write a whole diagnostic report, which takes
 * as long as the rest of loading it. If `ldd` says so, the loader gets that answer at once. It would come to the same
 * answer: it reads that file next. Otherwise it finds out for itself.
 */
function withoutReport<T>(load: () => T): T {
  const { report } = process;
  if (!report || !hasGlibc()) return load();
  const { getReport } = report;
  report.getReport = () => ({ header: { glibcVersionRuntime: 'unknown' } });
  try {
    return load();
  } finally {
    report.getReport = getReport;
  }
}

function hasGlibc(): boolean {
  try {
    const ldd = fs.readFileSync('/usr/bin/ldd', 'utf8');
    return ldd.includes('GLIBC') && !ldd.includes('musl');
  } catch {
    return false;
  }
}

/** What `libsql` really takes: values one by one, which it puts into a list, or a list. */
interface ListStatement {
  run(values: readonly SqliteValue[]): { readonly changes: number | bigint };
  get(values: readonly SqliteValue[]): unknown;
  all(values: readonly SqliteValue[]): unknown[];
}

/** Given any other value, `libsql` ends the process. */
function known(values: SqliteValue[]): SqliteValue[] {
  for (const value of values)
    if (typeof value !== 'string' && typeof value !== 'number' && value !== null)
      throw invalidOption('value', 'text, a number or null, for SQLite', value);
  return values;
}

/** Passes values as a list, which makes every append a tenth faster. */
function withLists(Libsql: Constructor): Constructor {
  return class extends Libsql {
    override prepare(sql: string): SqliteStatement {
      const statement = super.prepare(sql) as unknown as ListStatement;
      return {
        run: (...values) => statement.run(known(values)),
        get: (...values) => statement.get(known(values)),
        all: (...values) => statement.all(known(values)),
      };
    }
  };
}
