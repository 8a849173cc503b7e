/** Writes a cassette: the lines of a run in the order in which its calls began, however they end. */

import fs, { appendFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type Entry,
  headerLine,
  lineOf,
  type PlainRequest,
  type StoredRequest,
} from '../../cassette/format.js';
import type { Awaitable } from '../../index.js';
import { isThenable, type Kind, kinds, makeFolder, pathError } from '../../kit/index.js';

/** Where lines go: a file, a list, or a function that is called with one line at a time and awaited. */
export type Sink = string | URL | string[] | ((line: string) => Awaitable<void>);

/** A line without the number of its run. */
type Draft = Entry extends infer E ? (E extends Entry ? Omit<E, 'run'> : never) : never;

/** The place of a call in the cassette, taken when it begins. */
export interface Place {
  /** Writes this line and those that waited for it. Without a draft, the place stays empty. */
  fill(draft: Draft | undefined): Awaitable<void>;
  /** The request as it is written here: only what is new compared to one that was written before this call began. */
  shortened(key: string, request: PlainRequest): StoredRequest;
  /** Has the run waited for the answer to this question before? */
  waitsAgain(requestId: string): boolean;
}

export interface Writer {
  /** A call of this run begins. */
  begin(runId: string): Place;
  /** There will be no more calls, unless the run is resumed. */
  end(runId: string, resumable: boolean): void;
}

interface RunLines {
  readonly run: number;
  waiting: { line: string | undefined; done: boolean }[];
  bases: Base[];
  /** The ids of questions it waited for. */
  readonly questions: Set<string>;
}

/** A request that is in the cassette, as texts to compare. */
interface Base {
  readonly key: string;
  readonly messages: readonly string[];
  readonly fields: Readonly<Record<string, string>>;
}

/** How many requests of a run a later one is compared with. */
const MAX_BASES = 4;

export const SINK: Kind<Sink> = kinds.kind(
  'the path of a file, a list, or a function that takes a line',
  (to) =>
    typeof to === 'function' ||
    Array.isArray(to) ||
    (typeof to === 'string' && to !== '') ||
    to instanceof URL,
  { schema: { anyOf: [kinds.nonEmptyText.schema, kinds.CODE] } },
);

export function writer(to: Sink): Writer {
  const write = inOrder(sinkOf(to));
  const path = typeof to === 'string' || to instanceof URL ? pathOf(to) : undefined;
  const runs = new Map<string, RunLines>();
  let count = 0;
  return {
    begin(runId) {
      // A file that can't be written is noticed before the call has cost anything.
      if (path !== undefined && count === 0) checkFile(path);
      let lines = runs.get(runId);
      if (!lines) {
        lines = { run: ++count, waiting: [], bases: [], questions: new Set() };
        runs.set(runId, lines);
      }
      return placeIn(lines, write);
    },
    end(runId, resumable) {
      if (!resumable) runs.delete(runId);
    },
  };
}

function placeIn(lines: RunLines, write: (ready: readonly string[]) => Awaitable<void>): Place {
  const place: RunLines['waiting'][number] = { line: undefined, done: false };
  lines.waiting.push(place);
  let base: Base | undefined;
  return {
    shortened(key, request) {
      base = baseOf(key, request);
      return shortened(base, request, lines.bases);
    },
    waitsAgain(requestId) {
      const again = lines.questions.has(requestId);
      lines.questions.add(requestId);
      return again;
    },
    fill(draft) {
      place.done = true;
      if (draft) {
        place.line = lineOf({ ...draft, run: lines.run });
        if (base) lines.bases = [...lines.bases, base].slice(-MAX_BASES);
      }
      const ready: string[] = [];
      while (lines.waiting[0]?.done) {
        const { line } = lines.waiting.shift()!;
        if (line !== undefined) ready.push(line);
      }
      return ready.length > 0 ? write(ready) : undefined;
    },
  };
}

function baseOf(key: string, { messages, ...fields }: PlainRequest): Base {
  const texts = Object.entries(fields).map(([name, value]) => [name, lineOf(value)]);
  return { key, messages: messages.map(lineOf), fields: Object.fromEntries(texts) };
}

function shortened(own: Base, request: PlainRequest, bases: readonly Base[]): StoredRequest {
  const { messages, ...fields } = request;
  const before = bases
    .filter((base) => startsWith(own.messages, base.messages))
    .sort((a, b) => b.messages.length - a.messages.length)[0];
  if (!before) {
    // Empty fields are left out.
    const given = Object.entries(fields).filter(([, value]) => Object.keys(value).length > 0);
    return { ...Object.fromEntries(given), messages };
  }
  const changed = Object.entries(fields).filter(([name]) => own.fields[name] !== before.fields[name]);
  return {
    after: before.key,
    ...Object.fromEntries(changed),
    messages: messages.slice(before.messages.length),
  };
}

function startsWith(list: readonly string[], start: readonly string[]): boolean {
  return start.length <= list.length && start.every((item, i) => item === list[i]);
}

/** One line after the other, the header first. Waits only if the sink does. */
function inOrder(sink: (line: string) => Awaitable<void>): (lines: readonly string[]) => Awaitable<void> {
  let begun = false;
  let busy: Promise<void> | undefined;
  const put = (lines: readonly string[]): Awaitable<void> => {
    for (const [i, line] of lines.entries()) {
      const wait = sink(line);
      if (isThenable(wait)) return wait.then(() => put(lines.slice(i + 1)));
    }
  };
  return (lines) => {
    const all = begun ? lines : [headerLine(), ...lines];
    begun = true;
    const written = busy ? busy.then(() => put(all)) : put(all);
    if (!written) return undefined;
    // The caller of these lines learns that writing failed. The next ones are tried anyway.
    const idle = (): void => {
      if (busy === mine) busy = undefined;
    };
    const mine = written.then(idle, idle);
    busy = mine;
    return written;
  };
}

function sinkOf(to: Sink): (line: string) => Awaitable<void> {
  if (typeof to === 'function') return to;
  if (Array.isArray(to)) return (line) => void to.push(line);
  return fileSink(to);
}

function pathOf(to: string | URL): string {
  return to instanceof URL ? fileURLToPath(to) : to;
}

function checkFile(path: string): void {
  try {
    makeFolder(fs, dirname, dirname(path));
    appendFileSync(path, '', { mode: 0o600 });
  } catch (error) {
    throw pathError('The recording', path, error);
  }
}

/** The first line starts the file over. Written at once, so that the recording is there however the process ends. */
function fileSink(to: string | URL): (line: string) => void {
  const path = pathOf(to);
  let begun = false;
  return (line) => {
    try {
      if (begun) return appendFileSync(path, `${line}\n`, { mode: 0o600 });
      writeFileSync(path, `${line}\n`, { mode: 0o600 });
    } catch (error) {
      throw pathError('The recording', path, error);
    }
    begun = true;
  };
}
