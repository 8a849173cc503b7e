/** Cuts spans out of text while it streams, holding back as much as a match could still need. */

import type { Span } from '../protocol/guard.js';
import { spansAcross } from './guard-returns.js';

/** How the stage asks about text, and what it does with what may pass. */
interface SpanStageOptions {
  /** Characters that are held back. */
  readonly hold: number;
  /** Spans in the text, sorted and apart. */
  readonly find: (text: string, from: number) => readonly Span[];
  /**
   * What stands where a span was; undefined leaves it. Called once per span, in order, when the span is final. Its place is
   * the one in the whole text.
   */
  readonly replacement: (span: Span) => string | undefined;
  readonly out: (text: string) => void;
  /** What goes out from now on belongs to the next block. */
  readonly outNext: () => void;
}

/** Left context that is never forgotten even if searching from another place would give other spans: see `trim`. */
const CONTEXT_LIMIT = 65_536;

/**
 * With a window of n characters a span is final when it ends at least n characters before the edge, or the text
 * has ended. What is released never ends inside a span or a surrogate pair, so any match of up to n characters is
 * caught for any chunking. Released text stays as left context, so that `\b` and look-behind see the same as they
 * would in the whole text. The text may be that of several blocks, one after the other: a match may begin in one and end
 * in another.
 */
export class SpanStage {
  /** Text is looked at in steps, not at every delta. */
  private readonly step: number;
  private buffer = '';
  /** How much of the text was forgotten before what is in the buffer. */
  private forgotten = 0;
  /** Everything before this place has been released. */
  private from = 0;
  /** The length at which to look again. */
  private look: number;
  /** What is on its way out. */
  private out = '';
  /** The length of context at which to forget some. */
  private full: number;
  /** Places where text was once released: never inside a span. */
  private cuts: number[] = [];
  /** Places where blocks begin, but for the first; those before `passed` have been told. */
  private marks: number[] = [];
  private passed = 0;

  constructor(private readonly options: SpanStageOptions) {
    this.step = Math.max(16, options.hold >> 2);
    this.look = options.hold + this.step;
    this.full = 2 * options.hold + 128;
  }

  push(text: string): void {
    this.buffer += text;
    if (this.buffer.length >= this.look) this.settle();
  }

  /** What is pushed from now on belongs to the next block. */
  next(): void {
    this.marks.push(this.buffer.length);
  }

  /** Releases what is final now. */
  settle(): void {
    const { hold } = this.options;
    if (this.buffer.length - this.from <= hold) return;
    const spans = this.find(this.buffer, this.marks, this.from);
    this.release(spans, this.buffer.length - hold, false);
    if (this.from >= this.full) this.trim(spans);
    // A long span that has not ended is looked at ever more rarely, so that the cost stays linear.
    const stuck = this.buffer.length - this.from - hold;
    this.look = this.buffer.length + Math.max(this.step, stuck >> 2);
  }

  /** The text has ended: everything is final. */
  end(): void {
    if (this.buffer.length > this.from)
      this.release(this.find(this.buffer, this.marks, this.from), this.buffer.length, true);
    this.pass(this.buffer.length);
    this.forgotten += this.buffer.length;
    this.buffer = '';
    this.from = this.passed = 0;
    this.cuts = [];
    this.marks = [];
    this.look = this.options.hold + this.step;
  }

  private find(text: string, marks: readonly number[], from: number): readonly Span[] {
    return spansAcross(text, marks, this.options.find, from);
  }

  private release(spans: readonly Span[], edge: number, ended: boolean): void {
    let limit = edge;
    let position = this.from;
    const { from } = this;
    for (const span of spans) {
      if (span.end <= from) continue;
      if (!ended && span.end > limit) {
        limit = Math.min(limit, span.start);
        break;
      }
      const start = Math.max(span.start, from);
      const replacement = this.options.replacement(moved(span, this.forgotten));
      if (replacement === undefined) continue;
      this.put(position, start);
      // What stands for it stands where it began.
      this.pass(start);
      this.out += replacement;
      position = span.end;
    }
    if (!ended && limit > position && splitsPair(this.buffer, limit)) limit--;
    limit = Math.max(limit, position);
    this.put(position, limit);
    if (limit > from) this.cuts.push(limit);
    this.from = limit;
    this.flush();
  }

  /** Text of the buffer goes out, in the blocks it belongs to. */
  private put(start: number, end: number): void {
    let at = start;
    while (at < end) {
      this.pass(at);
      const to = Math.min(end, this.marks[this.passed] ?? end);
      this.out += this.buffer.slice(at, to);
      at = to;
    }
  }

  /** Tells of the blocks that begin at this place or before it. */
  private pass(place: number): void {
    for (; this.passed < this.marks.length && this.marks[this.passed]! <= place; this.passed++) {
      this.flush();
      this.options.outNext();
    }
  }

  private flush(): void {
    const { out } = this;
    this.out = '';
    if (out !== '') this.options.out(out);
  }

  /**
   * Forgets context that is more than a window old. A search that begins elsewhere may find other spans (`aa` in a
   * row of a's, or a look-behind that no longer sees what was there), so context goes only where both searches
   * agree behind the first window; if they never do, it goes when it has become very long.
   */
  private trim(spans: readonly Span[]): void {
    const { hold } = this.options;
    const keep = this.cuts.findLast((cut) => cut <= this.from - hold - this.step);
    this.full = this.from + hold + 128;
    if (keep === undefined || keep === 0) return;
    const rest = this.buffer.slice(keep);
    const settled = keep + hold;
    const before = spans.filter((span) => span.end > settled);
    const marks = this.marks.filter((mark) => mark > keep).map((mark) => mark - keep);
    const after = this.find(rest, marks, this.from - keep).filter((span) => span.end + keep > settled);
    const agree =
      before.length === after.length &&
      before.every((span, i) => span.start === after[i]!.start + keep && span.end === after[i]!.end + keep);
    if (!agree && this.from < CONTEXT_LIMIT) return;
    this.buffer = rest;
    this.forgotten += keep;
    this.from -= keep;
    this.passed -= this.marks.length - marks.length;
    this.marks = marks;
    this.cuts = this.cuts.filter((cut) => cut > keep).map((cut) => cut - keep);
    this.full = Math.max(2 * hold + 128, this.from + this.step);
  }
}

function moved(span: Span, by: number): Span {
  return by === 0 ? span : { ...span, start: span.start + by, end: span.end + by };
}

function splitsPair(text: string, at: number): boolean {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff;
}
