/** Checks what guards return. The caller gets the full error; everybody else gets it without content. */

import { isRequest } from '../context/request-shape.js';
import { AlliumError, hasOnly, isThenable, leaveAlone, shown } from '../lib/errors.js';
import type { Finding, GuardPoint, Span, Verdict } from '../protocol/guard.js';
import type { PlannedGuard } from '../protocol/middleware.js';

/** A guard broke its contract. The message may quote what was judged; `told` says the same without quoting. */
export class WrongReturn extends AlliumError {
  readonly told: string;

  constructor(guard: string, hook: 'find' | 'judge', returned: unknown, wanted: string) {
    super('INVALID_HOOK_RESULT', `${hook} of guard "${guard}" returned ${shown(returned)}. ${wanted}`);
    this.told = `its ${hook} returned ${shapeOf(returned)}. ${wanted}`;
  }
}

/** The spans that `find` returned, checked, sorted and merged, without empty ones. */
export function normalise(spans: unknown, text: string, guard: string): readonly Span[] {
  if (isThenable(spans)) {
    leaveAlone(spans);
    throw new WrongReturn(guard, 'find', spans, AT_ONCE);
  }
  if (!Array.isArray(spans)) throw new WrongReturn(guard, 'find', spans, 'Return a list of { start, end }.');
  if (spans.length === 0) return spans;
  for (const span of spans) {
    const wanted = wrongSpan(span, text.length);
    if (wanted) throw new WrongReturn(guard, 'find', span, wanted);
  }
  return merged(spans);
}

const AT_ONCE =
  'Return a list of { start, end }, at once. What takes its time is a `judge`, or a `check` written as an async function.';

/** Sorts spans, merges overlapping ones and drops empty ones. */
export function merged(spans: readonly Span[]): readonly Span[] {
  const made: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = made.at(-1);
    if (span.end === span.start) continue;
    if (last && span.start < last.end) {
      if (span.end > last.end) made[made.length - 1] = { ...last, end: span.end };
    } else made.push(span);
  }
  return made;
}

type Find = (text: string, from: number) => readonly Span[];

/**
 * Finds spans in a text made of several pieces, which start at `marks`. Some readers join the pieces and others show them
 * separately, so this searches the whole text and then each piece.
 */
export function spansAcross(text: string, marks: readonly number[], find: Find, from = 0): readonly Span[] {
  const whole = find(text, from);
  if (marks.length === 0) return whole;
  const all = [...whole];
  let start = 0;
  for (const end of [...marks, text.length]) {
    // Everything before `from` is decided.
    if (end > start && end > from)
      for (const span of find(text.slice(start, end), Math.max(0, from - start)))
        all.push({ ...span, start: span.start + start, end: span.end + start });
    start = end;
  }
  return merged(all);
}

const SPAN: readonly string[] = ['start', 'end', 'replacement', 'reason', 'kind', 'severity'];

const KIND = /^[\w.:/-]{1,64}$/;
const SEVERITIES: readonly unknown[] = [undefined, 'low', 'medium', 'high', 'critical'];
const FINDING =
  "`kind` is a word of up to 64 letters, digits and _ . : / -, and `severity` 'low', 'medium', 'high' or 'critical'.";

/** A kind is shown to everybody, so it must be a word: that keeps judged text out of it. */
function isFinding({ kind, severity }: Finding): boolean {
  return (
    (kind === undefined || (typeof kind === 'string' && KIND.test(kind))) && SEVERITIES.includes(severity)
  );
}

function isTextOrNone(value: unknown): boolean {
  return value === undefined || typeof value === 'string';
}

/** What a span should be like, if it isn't. */
function wrongSpan(span: Span | null | undefined, length: number): string | undefined {
  const { start = -1, end = -1, replacement, reason } = span ?? {};
  if (!(Number.isInteger(start) && Number.isInteger(end) && start >= 0 && start <= end && end <= length))
    return `Return spans with 0 ≤ start ≤ end ≤ ${length}, the length of the text.`;
  if (!isTextOrNone(replacement) || !isTextOrNone(reason))
    return 'A `replacement` is text, and so is a `reason`.';
  if (!isFinding(span!)) return FINDING;
  return hasOnly(span, SPAN) ? undefined : `A span has ${SPAN.join(', ')} and nothing else.`;
}

/** The fields of each verdict. Any other field was meant to do something that it doesn't. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  __proto__: null as never,
  allow: ['type'],
  deny: ['type', 'reason', 'kind', 'severity'],
  ask: ['type', 'request', 'kind', 'severity'],
  rewrite: ['type', 'text', 'args', 'kind', 'severity'],
};

/** `args`: the arguments that were judged, for a call. */
export function checkVerdict(
  { name: guard, guard: { parallel } }: PlannedGuard,
  verdict: Verdict,
  point: GuardPoint,
  args: unknown,
): void {
  const atArgs = point === 'tool-args';
  // Checked first: a list with one word would be taken for the word.
  const fields = typeof verdict?.type === 'string' ? FIELDS[verdict.type] : undefined;
  const fail = (wanted: string) => new WrongReturn(guard, 'judge', verdict, wanted);
  if (!fields) throw fail("Return { type: 'allow' | 'deny' | 'ask' | 'rewrite' } or nothing.");
  if (!hasOnly(verdict, fields))
    throw fail(`A verdict to ${verdict.type} has ${fields.join(', ')} and nothing else.`);
  if (!isFinding(verdict as Finding)) throw fail(FINDING);
  if (verdict.type === 'deny' && !isTextOrNone(verdict.reason)) throw fail('`reason` is text.');
  if (verdict.type === 'ask') {
    if (!atArgs) throw fail(`A human can be asked about a call (tool-args), not at ${point}: deny it.`);
    if (!isRequest(verdict.request))
      throw fail(
        '`request` is { title?, details?, timeoutMs?, decisions?, remember?, onRequest? }, with details that are JSON.',
      );
  }
  if (verdict.type !== 'rewrite') return;
  if (parallel) throw fail('A guard in parallel can allow or deny: the model has read the text by then.');
  if (verdict.args !== undefined) {
    if (!atArgs || JSON.stringify(verdict.args) === undefined)
      throw fail('`args` is for tool-args, and JSON.');
    return;
  }
  if (typeof verdict.text !== 'string') throw fail(`A rewrite brings ${atArgs ? '`args`' : '`text`'}.`);
  if (atArgs && args !== undefined) throw fail('Arguments are rewritten with `args`, not `text`.');
}

/** Describes a value without its texts, which may be what the guard should have held back. */
function shapeOf(value: unknown): string {
  if (value === null || value === undefined || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return 'text';
  if (typeof value !== 'object') return `a ${typeof value}`;
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof (value as { then?: unknown }).then === 'function') return 'a promise';
  const keys = Object.keys(value);
  const fields = keys.slice(0, 6).map((key) => fieldOf(key, (value as Record<string, unknown>)[key]));
  if (keys.length > 6) fields.push('…');
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}

function fieldOf(key: string, value: unknown): string {
  const name = WORD.test(key) ? key : '…';
  // People often get offsets and verdict types wrong, and neither is content.
  if ((key === 'start' || key === 'end') && typeof value === 'number') return `${name}: ${value}`;
  if (key === 'type' && typeof value === 'string' && WORD.test(value)) return `${name}: '${value}'`;
  return `${name}: ${typeof value === 'object' && value !== null ? 'an object' : shapeOf(value)}`;
}

const WORD = /^[\w-]{1,20}$/;
