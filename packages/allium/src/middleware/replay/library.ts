/** The recordings of a cassette, and which of them answers which call. */

import { readFileSync } from 'node:fs';
import { type Entry, type Line, type PlainRequest, parseCassette } from '../../cassette/format.js';
import type { Asked } from '../../cassette/questions.js';
import { AlliumError } from '../../index.js';
import { describeValue, type Kind, kinds } from '../../kit/index.js';

/** A file, or the lines of one. */
export type Source = string | URL | readonly string[];

/** What one run has been answered with so far. */
export interface Replayed {
  readonly taken: Set<Entry>;
  /** The recorded runs it follows, by number. */
  readonly follows: number[];
}

export class Library {
  readonly lines: readonly Line[];
  private readonly found = new Map<string, Line[]>();
  /** How many runs follow each recorded run. */
  private readonly followers = new Map<number, number>();

  constructor(
    from: Source,
    readonly name = nameOf(from),
  ) {
    this.lines = parseCassette(linesOf(from), name);
    for (const line of this.lines) {
      const alike = this.recordings(line.entry);
      if (alike.length === 0) this.found.set(idOf(line.entry), alike);
      alike.push(line);
    }
  }

  /** All recordings of a call. */
  recordings(asked: Pick<Asked, 'type' | 'key'>): Line[] {
    return this.found.get(idOf(asked)) ?? [];
  }

  /**
   * The recording for a call. A run follows one of the recorded runs as long as that has an answer, so that a
   * cassette can be replayed any number of times, also by parallel runs. Each recording answers once per run. Calls
   * that ask the same get theirs by their position in the run, otherwise in the order of recording.
   */
  take(asked: Asked, { taken, follows }: Replayed): Entry | undefined {
    const free = this.recordings(asked).flatMap(({ entry }) => (taken.has(entry) ? [] : [entry]));
    let own = free.filter(({ run }) => follows.includes(run));
    if (own.length === 0 && free.length > 0) {
      const run = this.leastFollowed(free);
      this.followers.set(run, (this.followers.get(run) ?? 0) + 1);
      follows.push(run);
      own = free.filter((entry) => entry.run === run);
    }
    const found = own.find((entry) => samePlace(entry, asked)) ?? own[0];
    if (found) taken.add(found);
    return found;
  }

  /** The request of a recorded model call in full. */
  requestOf(line: Line): PlainRequest {
    const messages: PlainRequest['messages'][number][][] = [];
    let fields: Partial<PlainRequest> = {};
    const seen = new Set<Line>();
    for (let at: Line | undefined = line; at; ) {
      seen.add(at);
      if (at.entry.type !== 'model') break;
      const { after, messages: own, ...rest }: typeof at.entry.request = at.entry.request;
      fields = { ...rest, ...fields };
      messages.unshift([...own]);
      if (after === undefined) break;
      const [before]: Line[] = this.recordings({ type: 'model', key: after });
      if (!before || seen.has(before)) throw this.broken(at, after);
      at = before;
    }
    return { model: '', systemPrompt: '', tools: [], settings: {}, ...fields, messages: messages.flat() };
  }

  private broken({ number }: Line, after: string): AlliumError {
    return new AlliumError(
      'CASSETTE_INVALID',
      `Line ${number} of ${this.name} continues from the request ${describeValue(after)}, which the cassette does not contain. Restore that line, or record again.`,
      { data: { line: number, after } },
    );
  }

  private leastFollowed(entries: readonly Entry[]): number {
    const runs = [...new Set(entries.map(({ run }) => run))];
    const count = (run: number) => this.followers.get(run) ?? 0;
    return runs.reduce((least, run) => (count(run) < count(least) ? run : least));
  }
}

function idOf({ type, key }: Pick<Asked, 'type' | 'key'>): string {
  return `${type} ${key}`;
}

function samePlace(entry: Entry, asked: Asked): boolean {
  if (entry.turn !== asked.turn) return false;
  return entry.type === 'model' || asked.type === 'model' || entry.call === asked.call;
}

export const SOURCE: Kind<Source> = kinds.kind(
  'the path of a cassette, or the lines of one',
  (from) => kinds.names.fits(from) || from instanceof URL || (typeof from === 'string' && from !== ''),
  { schema: { anyOf: [kinds.nonEmptyText.schema, kinds.names.schema] } },
);

function nameOf(from: Source): string {
  return typeof from === 'string' || from instanceof URL ? String(from) : 'the cassette';
}

/** A file that doesn't exist is an empty cassette. */
function linesOf(from: Source): readonly string[] {
  if (typeof from !== 'string' && !(from instanceof URL)) return from;
  try {
    return readFileSync(from, 'utf8').split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
