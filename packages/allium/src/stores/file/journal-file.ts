/** The format of a session's file: lines of JSON, each one append, post or note. */

import path from 'node:path';
import { crc32 } from 'node:zlib';
import {
  AlliumError,
  type Entry,
  type InboxItem,
  type NewEntry,
  type SessionInfo,
  type Snapshot,
} from '../../index.js';
import { deepFreeze, describeValue } from '../../kit/index.js';
import { countIn, entriesIn, entriesText, type WrittenEntries } from '../kit/index.js';
import { idOfDamaged, isFileName } from './file-name.js';

/**
 * The lines:
 *
 * - `{"seq":3,"n":2,"w":"x7k2p9","v":2,"at":…,"run":"…","s":[…]}`: an append of 2 entries, the first being number 3, by the
 *   handle `w`. How the entries are written is in ../kit/entry-text.ts; earlier code wrote them as they are, as `e`. One append
 *   is one line, so a write that was cut short leaves either all of its entries or none. The line with number 1 has the
 *   session's `id`; that of a fork also says after which number its `inbox` begins.
 * - `{"snap":3,"at":812,"head":2,"of":"1c291ca3","posted":1,"items":[[1,700,780]],"state":"…"}`: a snapshot of the session
 *   at entry 3, and the result of reading the file up to this line: the last entry, how many items were posted, and where
 *   those that wait are. Reading may begin here if the line is at the place `at`; otherwise another handle wrote something
 *   first. `of` is the checksum of the append it comes with: if that was cut short, other entries may have its numbers now,
 *   and the snapshot is of entries that never existed.
 * - `{"post":…}`: an item of the inbox; its number is the count of such lines before it, plus one.
 * - `{"post":0 …}`: the same, once a run has taken it. The item is overwritten, so that nothing that guards removed from it
 *   is left on the disk. Only these lines are ever changed.
 * - `{"taken":5}`: the items up to number 5 are forgotten.
 * - `{"deleted":true}`: the session was deleted; handles that still have the file open learn it from this.
 * - Each of these ends with `,"c":"1c291ca3"}`, the CRC-32 of the line up to there: a line that says something else than
 *   what was written is damaged. Lines of earlier code have none, and come before all that have one.
 * - A line that ends with a space is ignored; complete ones end with `}`. Every write begins with a space and a line break:
 *   after a complete line that makes a blank one, and a line that was cut short is closed by it. So a writer need not know
 *   whether another process died in the middle of a line. A line that ends otherwise is damaged.
 * - `…#torn`: how files written by earlier code close a line that was cut short.
 *
 * Handles append without a lock. The operating system puts the lines in some order, and all readers apply the same
 * rule: an append counts if its number is the next one. Of two handles that wrote the same number at once the first
 * line counts, and the second handle finds its line behind the other's and reports a conflict.
 */
const CLOSE = ' \n';

export function appendLine(
  seq: number,
  entries: readonly NewEntry[],
  writer: string,
  first?: { id: string; inbox?: number },
): string {
  const more =
    first === undefined
      ? ''
      : `,"id":${JSON.stringify(first.id)}${first.inbox ? `,"inbox":${first.inbox}` : ''}`;
  return checked(`{"seq":${seq},"n":${entries.length},"w":"${writer}"${more},${entriesText(entries)}`);
}

export const postLine = (item: InboxItem): string => checked(`{"post":${JSON.stringify(item)}`);
/**
 * What the line of a post becomes, in the same number of bytes. Readers only look at its beginning, so it needs no
 * checksum.
 */
export const wipedLine = (bytes: number): string => `${WIPED}${' '.repeat(bytes - WIPED.length - 1)}}`;
const WIPED = '{"post":0';

export const takenLine = (after: number): string => checked(`{"taken":${after}`);
export const DELETED_LINE = checked('{"deleted":true');

/**
 * A line with a snapshot, for the place `at` in the file, before the append `line` it comes with. Undefined while
 * taken items still have to be overwritten.
 */
export function snapshotLine(
  { seq, state }: Snapshot,
  at: number,
  known: JournalState,
  line: string,
): string {
  const { head, posted, places, items } = known;
  if (places.size !== items.length) return '';
  const waiting = JSON.stringify([...places].map(([n, place]) => [n, ...place]));
  return checked(
    `{"snap":${seq},"at":${at + CLOSE.length},"head":${head},"of":"${line.slice(-11, -3)}","posted":${posted},"items":${waiting},"state":${JSON.stringify(state)}`,
  );
}

interface SnapshotLine {
  readonly snap: number;
  readonly at: number;
  readonly head: number;
  readonly of: string;
  readonly posted: number;
  readonly items: readonly (readonly [n: number, start: number, end: number])[];
  readonly state: string;
}

/** How a line with a snapshot begins, including the end of the line before. */
export const SNAPSHOT_BEGINS = '\n{"snap":';

/** Completes the line of an object that lacks its end. */
function checked(object: string): string {
  return `${CLOSE}${object},"c":"${crc(object)}"}\n`;
}

function crc(bytes: string | Buffer): string {
  return crc32(bytes).toString(16).padStart(8, '0');
}

/** The end of a line with a checksum, and its length. */
const CHECKSUM = /^,"c":"([0-9a-f]{8})"\}$/;
const CHECKSUM_LENGTH = 16;

function isWiped(bytes: Buffer, start: number, end: number): boolean {
  return bytes.toString('latin1', start, Math.min(end, start + WIPED.length)) === WIPED;
}

/** More zeros in a row than text in another encoding has, such as UTF-16, and fewer than a block of any disk. */
const ZEROS = Buffer.alloc(64);

/** An append line as it was parsed. */
interface AppendLine extends WrittenEntries {
  /** Only in the line with number 1. */
  readonly id: string;
}

/** An append line that counts, as a place in the bytes. */
export interface AppendPlace {
  readonly seq: number;
  readonly count: number;
  readonly writer: string;
  readonly start: number;
  readonly end: number;
}

/** What is known about a file after reading its lines so far. */
export class JournalState {
  head = 0;
  deleted = false;
  /** The number of the newest item ever posted. */
  posted = 0;
  items: { readonly n: number; readonly item: InboxItem }[] = [];
  /** Where the line of each of these items is in the file. */
  readonly places = new Map<number, readonly [start: number, end: number]>();
  /** Where the line of the newest snapshot begins. */
  snapshotAt: number | undefined;
  /** The place of the bytes that are being read. */
  private base = 0;
  /** From here on every line has a checksum. */
  private checked = false;

  /**
   * Takes in the complete lines of `bytes`, which continue where the last ones ended, and returns how many bytes they
   * are. `counts` is called for every append line that counts; `base` is their place in the file.
   */
  take(bytes: Buffer, file: string, counts?: (place: AppendPlace) => void, base = 0): number {
    this.base = base;
    // After a power failure, a disk may show blocks of zeros instead of a line. JSON text has none.
    const damaged = bytes.includes(ZEROS);
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end !== -1; start = end + 1, end = bytes.indexOf(NEWLINE, start)) {
      if (closed(bytes, start, end)) continue;
      if (damaged && bytes.subarray(start, end).includes(ZEROS)) continue;
      this.verify(bytes, start, end, file);
      this.line(bytes, start, end, file, counts);
    }
    return start;
  }

  /**
   * The result of reading a file up to the snapshot line at the beginning of `bytes`, which start at `at`. Undefined
   * if it isn't complete, or not in its place. `item` reads the line of an item; undefined if it was overwritten.
   */
  static upTo(
    bytes: Buffer,
    at: number,
    file: string,
    item: (start: number, end: number) => Buffer,
  ): JournalState | undefined {
    const end = bytes.indexOf(NEWLINE);
    if (end < 0 || closed(bytes, 0, end)) return undefined;
    const state = new JournalState();
    state.checked = true;
    state.verify(bytes, 0, end, file);
    const line = parse(bytes, 0, end, file) as SnapshotLine;
    if (line.at !== at) return undefined;
    state.head = line.head;
    state.posted = line.posted;
    for (const [n, start, stop] of line.items) {
      const text = item(start, stop);
      if (isWiped(text, 0, text.length)) continue;
      state.verify(text, 0, text.length, file);
      const { post } = parse(text, 0, text.length, file) as { post: InboxItem };
      state.items.push(deepFreeze({ n, item: post }));
      state.places.set(n, [start, stop]);
    }
    return state;
  }

  /** This handle has appended so many entries, and nobody else wrote before it. */
  added(count: number): void {
    this.head += count;
    this.checked = true;
  }

  private verify(bytes: Buffer, start: number, end: number, file: string): void {
    const from = Math.max(start, end - CHECKSUM_LENGTH);
    const checksum = CHECKSUM.exec(bytes.toString('latin1', from, end))?.[1];
    if (checksum === undefined && (!this.checked || isWiped(bytes, start, end))) return;
    this.checked = true;
    if (checksum === crc(bytes.subarray(start, from))) return;
    const line = describeValue(bytes.toString('latin1', start, Math.min(end, start + 80)));
    throw corrupt(file, `the checksum of the line ${line} does not fit it`);
  }

  private line(
    bytes: Buffer,
    start: number,
    end: number,
    file: string,
    counts?: (place: AppendPlace) => void,
  ): void {
    const beginning = bytes.toString('latin1', start, Math.min(end, start + 80));
    const append = /^\{"seq":(\d+),"n":(\d+),"w":"([a-z0-9]+)"/.exec(beginning);
    if (append !== null) {
      const [seq, count] = [Number(append[1]), Number(append[2])];
      // Not the next number: the line of a handle that came second. A number beyond the next one is impossible.
      if (seq <= this.head) return;
      if (seq > this.head + 1) throw corrupt(file, `entry ${seq} follows entry ${this.head}`);
      if (seq === 1) this.shiftInbox(bytes, start, end, file);
      this.head += count;
      counts?.({ seq, count, writer: append[3]!, start, end });
    } else if (beginning.startsWith('{"snap":')) {
      const { at, head } = parse(bytes, start, end, file) as SnapshotLine;
      if (at === this.base + start && head === this.head) this.snapshotAt = at;
    } else if (beginning.startsWith(WIPED)) {
      this.posted++;
    } else if (beginning.startsWith('{"post":')) {
      const { post } = parse(bytes, start, end, file) as { post: InboxItem };
      this.items.push(deepFreeze({ n: ++this.posted, item: post }));
      this.places.set(this.posted, [this.base + start, this.base + end]);
    } else if (beginning.startsWith('{"taken":')) {
      const { taken } = parse(bytes, start, end, file) as { taken: number };
      this.items = this.items.filter(({ n }) => n > taken);
    } else if (beginning.startsWith('{"deleted":')) {
      this.deleted = true;
    } else {
      throw corrupt(file, `it has the line ${describeValue(beginning)}`);
    }
  }

  /** In a fork, the inbox numbers of its source are used up: items that were posted to it earlier move up. */
  private shiftInbox(bytes: Buffer, start: number, end: number, file: string): void {
    const { inbox = 0 } = parse(bytes, start, end, file) as { inbox?: number };
    if (inbox === 0) return;
    this.posted += inbox;
    this.items = this.items.map(({ n, item }) => deepFreeze({ n: n + inbox, item }));
    const places = [...this.places];
    this.places.clear();
    for (const [n, place] of places) this.places.set(n + inbox, place);
  }
}

/** The entries of a file with `seq >= fromSeq`. `bytes` begin where `state` ends. */
export function entriesOf(
  bytes: Buffer,
  fromSeq: number,
  file: string,
  state: JournalState = new JournalState(),
): Entry[] {
  const entries: Entry[] = [];
  state.take(bytes, file, (place) => {
    const { seq, count } = place;
    if (seq + count <= fromSeq) return;
    const found = entriesIn(parseAppend(bytes, place, file));
    for (let i = Math.max(0, fromSeq - seq); i < found.length; i++)
      entries.push(Object.assign(found[i]!, { seq: seq + i }) as Entry);
  });
  return entries;
}

/** The snapshot in the first line of `bytes`, unless its entries were never written. */
export function snapshotIn(bytes: Buffer, file: string): Snapshot | undefined {
  const { snap, head, of, state } = parse(bytes, 0, bytes.indexOf(NEWLINE), file) as SnapshotLine;
  return snap <= head || checksumOf(bytes, head + 1) === of ? { seq: snap, state } : undefined;
}

/** The checksum of the append with that number, if it is there. */
function checksumOf(bytes: Buffer, seq: number): string | undefined {
  const begins = `\n{"seq":${seq},`;
  for (let at = bytes.indexOf(begins); at >= 0; at = bytes.indexOf(begins, at + 1)) {
    const end = bytes.indexOf(NEWLINE, at + 1);
    if (end < 0) return undefined;
    if (!closed(bytes, at + 1, end)) return bytes.toString('latin1', end - 10, end - 2);
  }
  return undefined;
}

/**
 * What `list` says about a file; undefined if it has only an inbox. Damage is reported when the session is opened. A
 * damaged file hides neither others nor itself: it is listed with what can be read of it, changed at `changedAt` if
 * its entries don't say.
 */
export function infoOf(bytes: Buffer, file: string, changedAt: number): SessionInfo | undefined {
  let first: AppendLine | undefined;
  let run: NewEntry | undefined;
  let last: AppendPlace | undefined;
  const whole = unlessDamaged(() =>
    new JournalState().take(bytes, file, (place) => {
      last = place;
      if (first !== undefined && run !== undefined) return;
      const line = parseAppend(bytes, place, file);
      first ??= line;
      run = entriesIn(line).find(({ type }) => type === 'run_start');
    }),
  );
  const name = path.basename(file, '.jsonl');
  if (whole === undefined ? !isFileName(name) : first === undefined) return undefined;
  const place: AppendPlace | undefined = first && last;
  const newest = (place && unlessDamaged(() => parseAppend(bytes, place, file))) ?? first;
  const tenant = run?.type === 'run_start' ? run.tenant : undefined;
  return Object.freeze({
    sessionId: first?.id ?? idOfDamaged(bytes, name),
    ...(tenant !== undefined && { tenant }),
    seq: place === undefined ? 0 : place.seq + place.count - 1,
    createdAt: (first && entriesIn(first)[0]?.at) ?? changedAt,
    updatedAt: (newest && entriesIn(newest).at(-1)?.at) ?? changedAt,
  });
}

const NEWLINE = 10;
const SPACE = 32;
const BRACE = 125;

/** Is the line ignored? An editor may have removed the space of a blank one. */
function closed(bytes: Buffer, start: number, end: number): boolean {
  const last = bytes[end - 1];
  if (start === end || last === SPACE) return true;
  return last !== BRACE && bytes.toString('latin1', Math.max(start, end - 5), end) === '#torn';
}

function parseAppend(bytes: Buffer, { seq, count, start, end }: AppendPlace, file: string): AppendLine {
  const line = parse(bytes, start, end, file) as AppendLine;
  // Entries that somebody removed from a line by hand must not go unnoticed.
  if (countIn(line) !== count)
    throw corrupt(file, `the line of entry ${seq} does not have the ${count} entries it should`);
  return line;
}

function parse(bytes: Buffer, start: number, end: number, file: string): unknown {
  try {
    return JSON.parse(bytes.toString('utf8', start, end));
  } catch (cause) {
    throw corrupt(
      file,
      `it has a line that is not JSON, ${describeValue(bytes.toString('latin1', start, Math.min(end, start + 80)))}`,
      cause,
    );
  }
}

function corrupt(file: string, what: string, cause?: unknown): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `The journal ${file} was changed by something else, or damaged: ${what}. Restore it from a backup, or delete the session.`,
    { cause, data: { file } },
  );
}

function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof AlliumError && error.code === 'SESSION_CORRUPT') return undefined;
    throw error;
  }
}
