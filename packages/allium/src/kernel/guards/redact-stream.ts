/** Cuts spans out of streaming text, holding back as much as a match may still need. */

import type { Span } from '../protocol/guard.js';
import { spansAcross } from './guard-returns.js';

/** How a stage finds spans, and where it sends the text that passes. */
interface SpanStageOptions {
  /** How many characters to hold back. */
  readonly hold: number;
  /** Finds spans, sorted and not overlapping. */
  readonly find: (text: string, from: number) => readonly Span[];
  /**
   * The replacement for a span; undefined leaves it. Called once per span, in order, when the span is final. Positions are
   * those in the whole text.
   */
  readonly replacement: (span: Span) => string | undefined;
  readonly out: (text: string) => void;
  /** Text that goes out from now on belongs to the next block. */
  readonly outNext: () => void;
}

/** When the left context is longer than this, `trim` drops some of it even if that changes the spans. */
const CONTEXT_LIMIT = 65_536;

/**
 * With a window of n characters, a span is final once it ends at least n characters before the end of the buffer, or the text
 * has ended. Text is never released in the middle of a span or a surrogate pair, so any match of up to n characters is caught
 * for any chunking. Released text stays as left context, so that `\b` and look-behind work as in the whole text. The text may
 * span several blocks: a match may start in one and end in another.
 */
export class SpanStage {
  /** Text is searched in steps, not at every delta. */
  private readonly step: number;
  private buffer = '';
  /** How many characters before the buffer were dropped. */
  private forgotten = 0;
  /** Everything before this index has been released. */
  private from = 0;
  /** The buffer length at which to search again. */
  private look: number;
  /** Text about to be released. */
  private out = '';
  /** The context length at which to drop some. */
  private full: number;
  /** Indices up to which text was released at some time: never inside a span. */
  private cuts: number[] = [];
  /** Indices where blocks start, except the first; `outNext` was called for those before `passed`. */
  private marks: number[] = [];
  private passed = 0;

  constructor(private readonly options: SpanStageOptions) {
    this.step = Math.max(16, options.hold >> 2);
    this.look = options.hold + this.step;
    this.full = 2 * options.hold + 128;
  }

  push(text: string): void {
    this.buffer += text;
    if (this.buffer.length >= this.look) this.releaseFinal();
  }

  /** Text pushed from now on belongs to the next block. */
  next(): void {
    this.marks.push(this.buffer.length);
  }

  /** Releases what is final now. */
  releaseFinal(): void {
    const { hold } = this.options;
    if (this.buffer.length - this.from <= hold) return;
    const spans = this.find(this.buffer, this.marks, this.from);
    this.release(spans, this.buffer.length - hold, false);
    if (this.from >= this.full) this.trim(spans);
    // A long span that hasn't ended is searched less and less often, so that the cost stays linear.
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
      // The replacement goes where the span starts.
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

  /** Releases text of the buffer, block by block. */
  private put(start: number, end: number): void {
    let at = start;
    while (at < end) {
      this.pass(at);
      const to = Math.min(end, this.marks[this.passed] ?? end);
      this.out += this.buffer.slice(at, to);
      at = to;
    }
  }

  /** Announces the blocks that start at this index or before it. */
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
   * Drops context that is more than a window old. A search from another start may find other spans (`aa` in a row of a's, or
   * a look-behind that no longer sees its context), so it is only dropped if both searches agree after the first window, or
   * if it has become very long.
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
