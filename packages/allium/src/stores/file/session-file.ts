/** The file of one session, open or closed, and how far it has been read. */

import fs from 'node:fs';
import { AlliumError, type Entry, type Snapshot } from '../../index.js';
import { pathError } from '../kit/index.js';
import {
  type AppendPlace,
  entriesOf,
  JournalState,
  SNAPSHOT_BEGINS,
  snapshotIn,
  snapshotLine,
  wipedLine,
} from './journal-file.js';

export class SessionFile {
  state = new JournalState();
  /** The moment of the last append: nobody has written anything since. */
  readAt = -1;
  /** How many bytes are in `state`. Up to `#end` there may be the beginning of a line that was cut short. */
  #size = 0;
  #end = 0;
  #fd: number | undefined;
  #identity = '';

  constructor(
    readonly path: string,
    /** Called whenever the file is opened, so that the owner can close others. */
    private readonly opened: (file: SessionFile) => void,
  ) {}

  /**
   * Appends a line. True if the file then ended with it and nobody had written since the last look; with `accept`,
   * the line counts as read then. Otherwise `refresh` finds out what happened. The file has to be open: after it was
   * closed it may be another one, and has to be read first.
   */
  append(line: string, accept = true): boolean {
    const fd = this.#fd!;
    const written = this.#write(fd, line);
    if (written !== Buffer.byteLength(line)) {
      throw new AlliumError(
        'STORE_FAILED',
        `Only ${written} bytes of an entry were written to ${this.path}, so the entry does not count. Is the disk full?`,
        {
          data: { file: this.path, written },
        },
      );
    }
    // Reading one byte beyond the end shows whether the end is where it should be, and costs half as much as asking
    // for the size.
    if (!accept || fs.readSync(fd, ONE, 0, 1, this.#end + written) !== 0) return false;
    this.#size = this.#end += written;
    return true;
  }

  #write(fd: number, line: string): number {
    try {
      return fs.writeSync(fd, line);
    } catch (error) {
      throw pathError('The file store', this.path, error);
    }
  }

  /**
   * Takes in what others wrote. With `writer`: does that include the append of this handle at `seq`, and does it
   * count?
   */
  refresh(writer?: string, seq?: number): boolean {
    if (this.#fd === undefined) this.wake(false);
    const fd = this.#fd;
    if (fd === undefined || fs.readSync(fd, ONE, 0, 1, this.#end) === 0) return false;
    const end = fs.fstatSync(fd).size;
    let found = false;
    try {
      if (this.#size === 0 && end > LONG) this.#begin(fd, end);
      const noted = ({ writer: by, seq: at }: AppendPlace): void => {
        found ||= by === writer && at === seq;
      };
      const bytes = this.#bytes(fd, this.#size, end);
      this.#size += this.state.take(bytes, this.path, noted, this.#size);
    } catch (error) {
      // A damaged file is read from the beginning next time: somebody may have repaired it.
      this.#reset();
      throw error;
    }
    this.#end = end;
    return found;
  }

  /** Begins reading a long file at its newest snapshot, if it has one. */
  #begin(fd: number, end: number): void {
    for (const { state, start } of this.#snapshots(fd, end)) {
      this.state = state;
      this.#size = start;
      return;
    }
  }

  /** The places of snapshots before `end`, newest first, with the result of reading the file up to there. */
  *#snapshots(fd: number, end: number): Generator<{ readonly state: JournalState; readonly start: number }> {
    const item = (start: number, stop: number): Buffer => this.#bytes(fd, start, stop);
    for (let to = end; to > 0; ) {
      const from = Math.max(0, to - LONG);
      const at = this.#bytes(fd, from, to).lastIndexOf(SNAPSHOT_BEGINS);
      // The text we look for may lie across the border.
      if (at < 0) to = from === 0 ? 0 : from + SNAPSHOT_BEGINS.length;
      else {
        const start = from + at + 1;
        const state = JournalState.upTo(this.#lineAt(fd, start, end), start, this.path, item);
        if (state) yield { state, start };
        to = start;
      }
    }
  }

  /** At least the line that begins here, if it is complete. */
  #lineAt(fd: number, start: number, end: number): Buffer {
    const beginning = this.#bytes(fd, start, Math.min(end, start + LONG));
    return beginning.includes('\n') ? beginning : this.#bytes(fd, start, end);
  }

  get awake(): boolean {
    return this.#fd !== undefined;
  }

  /** All complete lines from a place on, as of the last `refresh`. */
  bytes(from = 0): Buffer {
    return this.#bytes(this.#fd!, from, this.#size);
  }

  /** The entries with `seq >= fromSeq`. */
  entries(fromSeq: number): Entry[] {
    if (this.#size > LONG && fromSeq > 1)
      for (const { state, start } of this.#snapshots(this.#fd!, this.#size))
        if (fromSeq > state.head) return entriesOf(this.bytes(start), fromSeq, this.path, state);
    return entriesOf(this.bytes(), fromSeq, this.path);
  }

  /** The newest snapshot, if there is one. */
  snapshot(): Snapshot | undefined {
    const tail = this.#tail();
    return tail && snapshotIn(tail.bytes, this.path);
  }

  /** The bytes from the newest snapshot on, and the state that they begin with. */
  #tail(): { readonly bytes: Buffer; readonly state: JournalState } | undefined {
    const { snapshotAt } = this.state;
    if (snapshotAt === undefined) return undefined;
    const bytes = this.bytes(snapshotAt);
    const item = (start: number, stop: number): Buffer => this.#bytes(this.#fd!, start, stop);
    const state = JournalState.upTo(bytes, snapshotAt, this.path, item);
    return state && { bytes, state };
  }

  /** A line with the snapshot for where the file ends now, before the append `line`. */
  snapshotLine(snapshot: Snapshot, line: string): string {
    return snapshotLine(snapshot, this.#end, this.state, line);
  }

  sync(): void {
    fs.fdatasyncSync(this.#fd!);
  }

  /** Overwrites the lines of items that were taken: what guards removed from them must not stay on the disk. */
  wipe(isTaken: (n: number) => boolean): void {
    const { state } = this;
    const waiting = new Set(state.items.map(({ n }) => n));
    const taken = [...state.places].filter(([n]) => isTaken(n) || !waiting.has(n));
    if (taken.length === 0) return;
    // A file that was opened for appending can't be written elsewhere.
    const opened = openPlain(this.path, fs.constants.O_WRONLY);
    if (!opened) return;
    const { fd, stat } = opened;
    try {
      // Deleted meanwhile, and made again.
      if (this.#identity !== identityOf(stat)) return;
      for (const [n, [start, end]] of taken) {
        fs.writeSync(fd, wipedLine(end - start), start);
        state.places.delete(n);
      }
    } finally {
      fs.closeSync(fd);
    }
    state.items = state.items.filter(({ n }) => !isTaken(n));
  }

  /** Closes the file. What was read stays known, and the next use opens the file again. */
  rest(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd);
    this.#fd = undefined;
  }

  /** Opens the file and returns its size. If it doesn't exist and shouldn't be made, the session counts as deleted. */
  wake(make: boolean): number {
    const { O_RDWR, O_APPEND, O_CREAT } = fs.constants;
    const opened = openPlain(this.path, O_RDWR | O_APPEND | (make ? O_CREAT : 0));
    if (!opened) {
      this.state.deleted = true;
      return 0;
    }
    this.#fd = opened.fd;
    this.opened(this);
    const { size } = opened.stat;
    // Another file of the same name: the session was deleted and made again meanwhile.
    const identity = identityOf(opened.stat);
    if (this.#identity === identity && size >= this.#end) return size;
    if (this.#identity !== '') this.#reset();
    this.#identity = identity;
    return size;
  }

  #reset(): void {
    this.state = new JournalState();
    this.#size = this.#end = 0;
  }

  #bytes(fd: number, start: number, end: number): Buffer {
    const bytes = Buffer.allocUnsafe(end - start);
    let filled = 0;
    while (filled < bytes.length) {
      const count = fs.readSync(fd, bytes, filled, bytes.length - filled, start + filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  }
}

/** File systems give a freed inode number to the next file, so the number alone says nothing. */
function identityOf({ ino, birthtimeMs }: fs.Stats): string {
  return `${ino} ${birthtimeMs}`;
}

const ONE = Buffer.alloc(1);

/** Reading as many bytes as this is quick. */
const LONG = 65_536;

/**
 * Opens a file of the store; undefined if it doesn't exist. A link in its place is not followed, because it may lead
 * to any file of the user. Nothing else but a plain file is opened either: a pipe would block forever.
 */
export function openPlain(
  file: string,
  flags: number,
): { readonly fd: number; readonly stat: fs.Stats } | undefined {
  // Windows has neither flag.
  const { O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  let fd: number;
  try {
    fd = fs.openSync(file, flags | O_NOFOLLOW | O_NONBLOCK, 0o600);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && (flags & fs.constants.O_CREAT) === 0) return undefined;
    if (code === 'ELOOP' || code === 'ENXIO') throw notPlain(file);
    throw pathError('The file store', file, error);
  }
  const stat = fs.fstatSync(fd);
  if (stat.isFile()) return { fd, stat };
  fs.closeSync(fd);
  throw notPlain(file);
}

function notPlain(file: string): AlliumError {
  return new AlliumError(
    'STORE_FAILED',
    `${file} is a link, or something else that is not a plain file, so the store does not open it. The store did not create it: remove it.`,
    { data: { file } },
  );
}
