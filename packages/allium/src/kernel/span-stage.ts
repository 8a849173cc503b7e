/** Cuts spans out of text while it streams, holding back as much as a match could still need. */
import { AlliumError, shown } from './errors.js';
import type { Span } from './middleware.js';

/** Text is looked at in steps of this many characters, not at every delta. */
const STEP = 16;

/**
 * With a window of n characters a span is final when it ends at least n characters before the edge, or the text
 * has ended. What is released never ends inside a span or a surrogate pair, so any match of up to n characters is
 * caught for any chunking. Released text stays as left context, so that `\b` and look-behind see the same as they
 * would in the whole text; that context begins where text was once released, never inside a span.
 */
export class SpanStage {
  private buffer = '';
  private from = 0;
  private cuts: number[] = [];

  constructor(
    private readonly hold: number,
    private readonly find: (text: string, from: number) => readonly Span[],
    private readonly replacement: (span: Span) => string,
    private readonly out: (text: string) => void,
  ) {}

  push(text: string): void {
    this.buffer += text;
    if (this.buffer.length - this.from >= this.hold + STEP) this.release(this.buffer.length - this.hold, false);
  }

  end(): void {
    this.release(this.buffer.length, true);
    this.buffer = '';
    this.from = 0;
  }

  private release(limit: number, ended: boolean): void {
    let text = '';
    let position = this.from;
    for (const span of this.find(this.buffer, this.from)) {
      if (span.end <= this.from) continue;
      if (!ended && span.end > limit) {
        limit = Math.max(position, Math.min(limit, span.start));
        break;
      }
      text += this.buffer.slice(position, Math.max(span.start, this.from)) + this.replacement(span);
      position = span.end;
    }
    if (!ended && limit > position && splitsPair(this.buffer, limit)) limit--;
    limit = Math.max(limit, position);
    text += this.buffer.slice(position, limit);
    this.from = limit;
    this.trim();
    if (text !== '') this.out(text);
  }

  /** Forgets context that is more than one window old. */
  private trim(): void {
    this.cuts.push(this.from);
    if (this.from < 4 * this.hold + 256) return;
    const keep = this.cuts.findLast((cut) => cut <= this.from - this.hold - STEP);
    if (keep === undefined || keep === 0) return;
    this.buffer = this.buffer.slice(keep);
    this.from -= keep;
    this.cuts = this.cuts.filter((cut) => cut >= keep).map((cut) => cut - keep);
  }
}

/** Sorted, merged and checked. Empty spans are left out. */
export function normalise(spans: unknown, text: string, guard: string): readonly Span[] {
  if (!Array.isArray(spans)) {
    throw new AlliumError('INVALID_HOOK_RESULT', `find of guard "${guard}" returned ${shown(spans)}. Return a list of { start, end }.`);
  }
  if (spans.length === 0) return spans;
  for (const span of spans) {
    if (Number.isInteger(span?.start) && Number.isInteger(span.end) && span.start >= 0 && span.start <= span.end && span.end <= text.length) continue;
    throw new AlliumError('INVALID_HOOK_RESULT', `find of guard "${guard}" returned the span ${shown(span)} for a text of ${text.length} characters. Spans are 0 ≤ start ≤ end ≤ length.`);
  }
  const merged: Span[] = [];
  for (const span of [...(spans as Span[])].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = merged.at(-1);
    if (span.end === span.start) continue;
    if (last && span.start < last.end) {
      if (span.end > last.end) merged[merged.length - 1] = { ...last, end: span.end };
    } else merged.push(span);
  }
  return merged;
}

function splitsPair(text: string, at: number): boolean {
  const code = text.charCodeAt(at - 1);
  return code >= 0xd800 && code <= 0xdbff;
}
