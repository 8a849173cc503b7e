/** Errors about files and folders that cannot be used. */
import { AlliumError, messageOf } from '../kernel/lib/errors.js';

const A_FILE = 'there is a file where a folder is needed. Name another path, or move that file away.';

/** By what Node and SQLite call it: what is wrong with a path, and what to do about it. */
const PATH_PROBLEMS: Readonly<Record<string, string>> = {
  EISDIR: 'it is a folder. Name a file in it.',
  ENOTDIR: A_FILE,
  EEXIST: A_FILE,
  ENOENT: 'its folder is not there. Make it, or name another path.',
  EACCES: 'this process may not use it. Give it the right to read and write there, or name another path.',
  EROFS: 'the file system can only be read. Name a path that can be written to.',
  ENOSPC: 'the disk is full. Make room, or name a path on another disk.',
  EMFILE: 'too many files are open. Raise the limit of the process (ulimit -n).',
  ELOOP: 'it is a link that leads in a circle, or one that is not followed. Name the file itself.',
  ENAMETOOLONG: 'it is longer than the file system allows. Name a shorter path.',
  SQLITE_CANTOPEN: 'SQLite cannot open it. Give the process the right to read and write it and its folder.',
  SQLITE_NOTADB: 'it is not an SQLite database. Name another file, or move this one away.',
  SQLITE_CORRUPT: 'the database in it is damaged. Restore a backup, or name another file.',
  SQLITE_READONLY: 'it can only be read. Give the process the right to write it and its folder.',
  SQLITE_FULL: 'the disk is full. Make room, or name a path on another disk.',
  SQLITE_IOERR: 'the disk failed while it was read or written. Check the disk.',
  SQLITE_BUSY: 'another process writes to it, or holds it. Try again, or end that process.',
};
/** The same by the numbers that `node:sqlite` gives. */
const SQLITE_NUMBERS: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
};

/**
 * The error for a file or folder that cannot be used: which one, why, and what to do. An error that has a code of ours stays
 * as it is.
 */
export function pathError(what: string, path: string, cause: unknown): unknown {
  const { code, errcode } = (cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown };
  if (cause instanceof AlliumError) return cause;
  const named = typeof errcode === 'number' ? SQLITE_NUMBERS[errcode & 0xff] : String(code ?? '');
  const problem =
    PATH_PROBLEMS[named === 'EPERM' ? 'EACCES' : (named ?? '').replace(/^(SQLITE_[A-Z]+)_.*/, '$1')];
  return new AlliumError('STORE_FAILED', `${what} cannot use ${path}: ${problem ?? messageOf(cause)}`, {
    cause,
    data: { path },
  });
}
