/** Cuts spans out of text while it streams, holding back as much as a match could still need. */
import type { Span } from './middleware.js';

/** How the stage asks about text, and what it does with what may pass. */
interface SpanStageOptions {
  /** Characters that are held back. */
  readonly hold: number;
  /** Spans in the text, sorted and apart. */
  readonly find: (text: string, from: number) => readonly Span[];
  /** What stands where a span was. Called once per span, in order, when the span is final. */
  readonly replacement: (span: Span, text: string) => string;
  readonly out: (text: string) => void;
}

/** Left context that is never forgotten even if searching from another place would give other spans: see `trim`. */
const CONTEXT_LIMIT = 65_536;

/**
 * With a window of n characters a span is final when it ends at least n characters before the edge, or the text
 * has ended. What is released never ends inside a span or a surrogate pair, so any match of up to n characters is
 * caught for any chunking. Released text stays as left context, so that `\b` and look-behind see the same as they
 * would in the whole text.
 */
export class SpanStage {
  /** Text is looked at in steps, not at every delta. */
  private readonly step: number;
  private buffer = '';
  /** Everything before this place has been released. */
  private from = 0;
  /** The length at which to look again. */
  private next: number;
  /** The length of context at which to forget some. */
  private full: number;
  /** Places where text was once released: never inside a span. */
  private cuts: number[] = [];

  constructor(private readonly options: SpanStageOptions) {
    this.step = Math.max(16, options.hold >> 2);
    this.next = options.hold + this.step;
    this.full = 2 * options.hold + 128;
  }

  push(text: string): void {
    this.buffer += text;
    if (this.buffer.length >= this.next) this.settle();
  }

  /** Releases what is final now. */
  settle(): void {
    const { hold } = this.options;
    if (this.buffer.length - this.from <= hold) return;
    const spans = this.options.find(this.buffer, this.from);
    this.release(spans, this.buffer.length - hold, false);
    if (this.from >= this.full) this.trim(spans);
    // A long span that has not ended is looked at ever more rarely, so that the cost stays linear.
    const stuck = this.buffer.length - this.from - hold;
    this.next = this.buffer.length + Math.max(this.step, stuck >> 2);
  }

  /** The text has ended: everything is final. */
  end(): void {
    if (this.buffer.length > this.from)
      this.release(this.options.find(this.buffer, this.from), this.buffer.length, true);
    this.buffer = '';
    this.from = 0;
    this.cuts = [];
    this.next = this.options.hold + this.step;
  }

  private release(spans: readonly Span[], edge: number, ended: boolean): void {
    let limit = edge;
    let text = '';
    let position = this.from;
    for (const span of spans) {
      if (span.end <= this.from) continue;
      if (!ended && span.end > limit) {
        limit = Math.min(limit, span.start);
        break;
      }
      const start = Math.max(span.start, this.from);
      text += this.buffer.slice(position, start);
      text += this.options.replacement(span, this.buffer.slice(start, span.end));
      position = span.end;
    }
    if (!ended && limit > position && splitsPair(this.buffer, limit)) limit--;
    limit = Math.max(limit, position);
    text += this.buffer.slice(position, limit);
    if (limit > this.from) this.cuts.push(limit);
    this.from = limit;
    if (text !== '') this.options.out(text);
  }

  /**
   * Forgets context that is more than a window old. A search that begins elsewhere may find other spans (`aa` in a
   * row of a's, or a look-behind that no longer sees what was there), so context goes only where both searches
   * agree behind the first window; if they never do, it goes when it has become very long.
   */
  private trim(spans: readonly Span[]): void {
    const { hold, find } = this.options;
    const keep = this.cuts.findLast((cut) => cut <= this.from - hold - this.step);
    this.full = this.from + hold + 128;
    if (keep === undefined || keep === 0) return;
    const rest = this.buffer.slice(keep);
    const settled = keep + hold;
    const before = spans.filter((span) => span.end > settled);
    const after = find(rest, this.from - keep).filter((span) => span.end + keep > settled);
    const agree =
      before.length === after.length &&
      before.every((span, i) => span.start === after[i]!.start + keep && span.end === after[i]!.end + keep);
    if (!agree && this.from < CONTEXT_LIMIT) return;
    this.buffer = rest;
    this.from -= keep;
    this.cuts = this.cuts.filter((cut) => cut > keep).map((cut) => cut - keep);
    this.full = Math.max(2 * hold + 128, this.from + this.step);
  }
}

function splitsPair(text: string, at: number): boolean {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff;
}
