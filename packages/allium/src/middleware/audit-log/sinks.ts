/** Where audit lines go. */

import { appendFile, open } from 'node:fs/promises';
import { kinds, pathError } from '../../kit/index.js';

/** Takes one line, without its line break. Called in order, one line of a session at a time; awaited. */
export type AuditFunction = (line: string) => void | Promise<void>;

export interface AuditFile {
  /** Path of the file; lines are appended, and it is made when it does not exist. */
  readonly file: string;
  /** When lines are forced to the disk: each, at the end of each run, or when the system likes. @default 'line' */
  readonly fsync?: 'line' | 'run' | 'never';
}

export interface Sink {
  readonly write: AuditFunction;
  /** A run has ended. */
  readonly flush?: () => Promise<void>;
}

const FILE = kinds.shape({
  file: kinds.required(kinds.nonEmptyText),
  fsync: kinds.oneOf('line', 'run', 'never'),
});

/** The option. */
export const SINK = kinds.kind<AuditFunction | AuditFile>(
  'a function, or an object with `file`',
  (value) => typeof value === 'function' || kinds.nonEmptyText.fits(value?.file),
  {
    inside: (value, option) => (typeof value === 'function' ? undefined : FILE.inside?.(value, option)),
    schema: FILE.schema!,
  },
);

export function sinkOf(given: AuditFunction | AuditFile): Sink {
  if (typeof given === 'function') return { write: given };
  const { file, fsync = 'line' } = given;
  return fileSink(file, fsync);
}

function fileSink(file: string, fsync: 'line' | 'run' | 'never'): Sink {
  let last: Promise<void> = Promise.resolve();
  let begun = false;
  const append = async (line: string): Promise<void> => {
    // A crash may have left half a line behind: it must not swallow the next one.
    const lead = begun || (await endsClean(file)) ? '' : '\n';
    begun = true;
    await appendFile(file, `${lead}${line}\n`, { flush: fsync === 'line', mode: 0o600 });
  };
  return {
    write(line) {
      const written = last
        .then(() => append(line))
        .catch((error: unknown) => {
          throw pathError('The audit log', file, error);
        });
      last = written.catch(() => {});
      return written;
    },
    ...(fsync === 'run' && { flush: () => last.then(() => sync(file)) }),
  };
}

async function endsClean(file: string): Promise<boolean> {
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(file, 'r');
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return true;
    throw error;
  }
  try {
    const { size } = await handle.stat();
    if (size === 0) return true;
    const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: size - 1 });
    return buffer[0] === 0x0a;
  } finally {
    await handle.close();
  }
}

async function sync(file: string): Promise<void> {
  const handle = await open(file, 'a', 0o600);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
