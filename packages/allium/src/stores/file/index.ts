/** Sessions as files of JSON lines: one file each, readable with any text tool, safe for several processes. */

import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import {
  type Entry,
  type InboxItem,
  type ListOptions,
  type NewEntry,
  type SessionInfo,
  type Snapshot,
  sessionConflict,
  type Tail,
} from '../../index.js';
import { checkFields, type Fields, kinds } from '../../kit/index.js';
import {
  checkFork,
  checkStorable,
  endMoment,
  isBelow,
  listPage,
  makeFolder,
  moment,
  Newest,
  pathError,
  type SyncStore,
  takenBy,
} from '../kit/index.js';
import { fileName, isHashed, readable } from './file-name.js';
import { appendLine, DELETED_LINE, infoOf, postLine, takenLine } from './journal-file.js';
import { openPlain, SessionFile } from './session-file.js';

export interface FileStoreOptions {
  /** The directory of the files. Made if it does not exist. */
  readonly dir: string;
  /**
   * When to wait for the disk. Whatever is chosen, what `append` confirmed outlives the process; this is about the
   * machine losing power. `always`: nothing confirmed is ever lost. `run-end`: when a run ends or is suspended.
   * `never`: the operating system writes when it sees fit, usually within half a minute.
   * @default 'never'
   */
  readonly fsync?: 'always' | 'run-end' | 'never';
}

const OPTIONS = {
  dir: kinds.required({ ...kinds.nonEmptyText, expected: 'the path of a directory' }),
  fsync: kinds.oneOf('always', 'run-end', 'never'),
} satisfies Fields;

/**
 * A store that keeps each session in a file of JSON lines.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: fileStore({ dir: '.allium/sessions' }) });
 * ```
 */
export function fileStore(options: FileStoreOptions): SyncStore {
  checkFields('fileStore()', OPTIONS, options);
  const { dir, fsync = 'never' } = options;
  try {
    makeFolder(fs, path.dirname, dir, 0o700);
    const { R_OK, W_OK, X_OK } = fs.constants;
    fs.accessSync(dir, R_OK | W_OK | X_OK);
  } catch (error) {
    throw pathError('The file store', dir, error);
  }
  return new FileStore(dir, fsync);
}

/** At most this many files are open at once, and this many closed ones are remembered. */
const MAX_OPEN = 512;
const MAX_KNOWN = 20_000;
const NOTHING: readonly never[] = Object.freeze([]);

interface KnownInfo {
  readonly version: string;
  readonly info: SessionInfo | undefined;
}

class FileStore implements SyncStore {
  readonly #dir: string;
  readonly #fsync: 'always' | 'run-end' | 'never';
  readonly #writer = randomBytes(4).readUInt32BE().toString(36);
  readonly #files = new Newest<string, SessionFile>(MAX_KNOWN);
  readonly #open = new Newest<SessionFile, SessionFile>(MAX_OPEN);
  #infos: ReadonlyMap<string, KnownInfo> = new Map();
  /** The last session that was looked for and had no file, and the moment of that look. */
  #missing = { sessionId: '', at: -1 };

  constructor(dir: string, fsync: 'always' | 'run-end' | 'never') {
    this.#dir = dir;
    this.#fsync = fsync;
  }

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number {
    let file = this.#files.get(sessionId);
    // What is known isn't looked up again: if it has become wrong, the write finds out.
    if (!file?.awake || file.state.head !== expectedSeq || entries.length === 0) {
      file = !file && this.#isMissing(sessionId) ? undefined : this.#current(sessionId);
      const head = file?.state.head ?? 0;
      if (head !== expectedSeq) throw sessionConflict(sessionId, expectedSeq, head);
      if (entries.length === 0) return expectedSeq;
      if (!file) {
        file = this.#make(sessionId);
        // Somebody was first, or even deleted it already.
        if (file.state.head > 0 || file.state.deleted)
          return this.append(sessionId, expectedSeq, entries, snapshot);
      }
    }
    const line = appendLine(
      expectedSeq + 1,
      entries,
      this.#writer,
      expectedSeq === 0 ? { id: sessionId } : undefined,
    );
    // Before the entries, in the same write: a reader who finds the snapshot finds them after it.
    const before =
      snapshot && snapshot.seq <= expectedSeq + entries.length ? file.snapshotLine(snapshot, line) : '';
    // A snapshot is more than entries (see `JournalState`), so it is read back.
    const there = this.#write(sessionId, file, expectedSeq, before + line, {
      adds: before === '' ? entries.length : undefined,
      sync: this.#syncs(entries),
    });
    // A deleted session may have been made again: the current file decides.
    if (!there) return this.append(sessionId, expectedSeq, entries, snapshot);
    const taken = takenBy(entries);
    if (taken) this.#wipe(file, (n) => n <= taken.cursor && !taken.waits.includes(n));
    file.readAt = moment();
    return expectedSeq + entries.length;
  }

  read(sessionId: string, fromSeq: number): readonly Entry[] {
    const file = this.#current(sessionId);
    return file === undefined || file.state.head < fromSeq ? [] : file.entries(fromSeq);
  }

  tail(sessionId: string): Tail {
    const file = this.#current(sessionId);
    const snapshot = file?.snapshot();
    if (!file) return { entries: [] };
    if (!snapshot || snapshot.seq > file.state.head) return { entries: file.entries(1) };
    return { snapshot, entries: file.entries(snapshot.seq + 1) };
  }

  head(sessionId: string): number {
    return this.#current(sessionId)?.state.head ?? 0;
  }

  list(options: ListOptions = {}): { readonly sessions: readonly SessionInfo[]; readonly next?: string } {
    const infos = new Map<string, KnownInfo>();
    for (const name of namesIn(this.#dir)) {
      const file = path.join(this.#dir, name);
      // Left by a process that died while deleting a session.
      if (name.endsWith('.gone')) fs.rmSync(file, { force: true });
      const stat = name.endsWith('.jsonl') ? fs.lstatSync(file, { throwIfNoEntry: false }) : undefined;
      // Links and the like are not the store's: see `openPlain`.
      if (!stat?.isFile()) continue;
      // Read only if it has changed since the last list.
      const version = `${stat.ino} ${stat.size} ${stat.mtimeMs} ${stat.ctimeMs}`;
      const known = this.#infos.get(file);
      infos.set(file, known?.version === version ? known : { version, info: readInfo(file, stat.mtimeMs) });
    }
    this.#infos = infos;
    return listPage(
      [...infos.values()].flatMap(({ info }) => info ?? []),
      options,
    );
  }

  fork(sessionId: string, seq: number, newId: string): void {
    const source = this.#current(sessionId);
    const copied = source?.entries(1) ?? [];
    const posted = source?.state.posted ?? 0;
    const target = this.#current(newId);
    checkFork(sessionId, seq, copied.length, newId, target?.state.head ?? 0);
    const entries = copied.slice(0, seq).map(({ seq: _, ...entry }) => entry);
    const line = appendLine(1, entries, this.#writer, { id: newId, inbox: posted });
    // So is a fork, because of its inbox.
    const there = this.#write(newId, target ?? this.#make(newId), 0, line, {
      adds: undefined,
      sync: this.#fsync !== 'never',
    });
    if (!there) this.fork(sessionId, seq, newId);
  }

  delete(sessionId: string): void {
    checkStorable('sessionId', sessionId);
    // Those of its sub-agents first: as long as the session exists, a delete that broke off can be repeated.
    for (const child of this.#below(sessionId)) this.#remove(child);
    this.#remove(sessionId);
    if (this.#fsync !== 'never') syncDirectory(this.#dir);
    endMoment();
  }

  #remove(sessionId: string): void {
    this.#forget(sessionId);
    // Moved away first: from now on nobody finds it when they open the session. Then those who have it open are told.
    // The file is not read, so that a damaged one can be deleted too.
    const file = this.#path(sessionId);
    const gone = `${file}.${randomBytes(6).toString('hex')}.gone`;
    const stat = fs.lstatSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return;
    try {
      fs.renameSync(file, gone);
      const opened = stat.isFile()
        ? openPlain(gone, fs.constants.O_WRONLY | fs.constants.O_APPEND)
        : undefined;
      if (opened) {
        fs.writeSync(opened.fd, DELETED_LINE);
        fs.closeSync(opened.fd);
      }
    } catch (error) {
      // Somebody else deleted it at the same moment.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    fs.rmSync(gone, { force: true });
  }

  /** The sessions of its sub-agents, and of theirs. The names of their files begin like its own. */
  #below(sessionId: string): string[] {
    const beginning = readable(`${sessionId}/r_`);
    return namesIn(this.#dir).flatMap((name) => {
      if (!name.startsWith(beginning) || !name.endsWith('.jsonl')) return [];
      const id = readInfo(path.join(this.#dir, name), 0)?.sessionId;
      return id !== undefined && isBelow(id, sessionId) ? [id] : [];
    });
  }

  post(sessionId: string, item: InboxItem): void {
    const file = this.#current(sessionId) ?? this.#make(sessionId);
    file.append(postLine(item), false);
    if (this.#fsync !== 'never') file.sync();
    file.refresh();
    endMoment();
  }

  take(sessionId: string, after: number): readonly { readonly n: number; readonly item: InboxItem }[] {
    const known = this.#files.get(sessionId);
    // An append has just read everything, and there was nothing; or there was not even a file.
    if (known?.readAt === moment() && known.state.places.size === 0) return NOTHING;
    if (!known && this.#isMissing(sessionId)) return NOTHING;
    const file = this.#current(sessionId);
    if (file === undefined) return NOTHING;
    const oldest = file.state.items[0];
    if (oldest !== undefined && oldest.n <= after) {
      file.append(takenLine(after), false);
      file.refresh();
    }
    // Also items that somebody took without getting to overwrite them.
    if (file.state.places.size > file.state.items.length) this.#wipe(file, (n) => n <= after);
    return file.state.items.slice();
  }

  #wipe(file: SessionFile, isTaken: (n: number) => boolean): void {
    file.wipe(isTaken);
    if (this.#fsync === 'always') file.sync();
  }

  close(): void {
    for (const sessionId of this.#files.keys()) this.#forget(sessionId);
  }

  /**
   * Writes an append line and finds out whether it counts. False if the session has been deleted meanwhile. `adds`: how many
   * entries, if there is nothing else in it.
   */
  #write(
    sessionId: string,
    file: SessionFile,
    expectedSeq: number,
    line: string,
    { adds, sync }: { readonly adds: number | undefined; readonly sync: boolean },
  ): boolean {
    if (file.append(line, adds !== undefined)) {
      file.state.added(adds!);
    } else {
      const won = file.refresh(this.#writer, expectedSeq + 1);
      if (file.state.deleted) return false;
      if (!won) throw sessionConflict(sessionId, expectedSeq, file.state.head);
    }
    if (!sync) return true;
    file.sync();
    if (expectedSeq === 0) syncDirectory(this.#dir);
    return true;
  }

  #syncs(entries: readonly NewEntry[]): boolean {
    return (
      this.#fsync === 'always' ||
      (this.#fsync === 'run-end' && entries.some(({ type }) => type === 'run_end'))
    );
  }

  /** The file of a session with everything that is in it now; undefined if there is none. */
  #current(sessionId: string): SessionFile | undefined {
    const known = this.#files.get(sessionId);
    if (known !== undefined) {
      known.refresh();
      if (!known.state.deleted) return known;
      this.#forget(sessionId);
    } else {
      checkStorable('sessionId', sessionId);
    }
    const file = this.#path(sessionId);
    // Checked first: a failed open costs ten times as much, and runners look for an inbox all the time.
    if (!fs.existsSync(file)) {
      this.#missing = { sessionId, at: moment() };
      return undefined;
    }
    const opened = new SessionFile(file, this.#limit);
    opened.refresh();
    if (opened.state.deleted) return undefined;
    return this.#keep(sessionId, opened);
  }

  /** Was it found to have no file in this moment? */
  #isMissing(sessionId: string): boolean {
    return this.#missing.sessionId === sessionId && this.#missing.at === moment();
  }

  #make(sessionId: string): SessionFile {
    const made = new SessionFile(this.#path(sessionId), this.#limit);
    if (made.wake(true) > 0) made.refresh();
    return this.#keep(sessionId, made);
  }

  #keep(sessionId: string, file: SessionFile): SessionFile {
    const oldest = this.#files.set(sessionId, file);
    if (oldest) this.#rest(oldest);
    return file;
  }

  #forget(sessionId: string): void {
    const file = this.#files.get(sessionId);
    if (file === undefined) return;
    this.#files.delete(sessionId);
    this.#rest(file);
  }

  #rest(file: SessionFile): void {
    this.#open.delete(file);
    file.rest();
  }

  /** Called by a file that is being opened: another one is closed for it. */
  readonly #limit = (file: SessionFile): void => {
    this.#open.set(file, file)?.rest();
  };

  #path(sessionId: string): string {
    const file = path.join(this.#dir, `${fileName(sessionId)}.jsonl`);
    if (!isHashed(sessionId)) return file;
    // If nothing else is known about the session in a file, the file name stands for it, so that it isn't taken for a
    // new one and can be deleted. Such a file is damaged, so nobody reads a session under another id.
    const named = path.join(this.#dir, `${sessionId}.jsonl`);
    return readInfo(named, 0)?.sessionId === sessionId ? named : file;
  }
}

function namesIn(dir: string): string[] {
  try {
    return fs.readdirSync(dir);
  } catch (error) {
    throw pathError('The file store', dir, error);
  }
}

function readInfo(file: string, changedAt: number): SessionInfo | undefined {
  if (fs.lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const opened = openPlain(file, fs.constants.O_RDONLY);
  // Deleted since the directory was read.
  if (!opened) return undefined;
  try {
    return infoOf(fs.readFileSync(opened.fd), file, Math.trunc(changedAt));
  } finally {
    fs.closeSync(opened.fd);
  }
}

/** A new file name is on the disk only when its directory is. */
function syncDirectory(dir: string): void {
  // Windows has no such call and does not need it.
  if (process.platform === 'win32') return;
  const fd = fs.openSync(dir, 'r');
  try {
    fs.fsyncSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}
