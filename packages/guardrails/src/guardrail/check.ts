/** What a check may return, and what the guard makes of it. */
import type { Awaitable, GuardContext, GuardSubject, Span, Verdict } from 'allium';
import { isPlainObject, isThenable } from 'allium/kit';
import type { Action } from '../scan/guard.js';

/**
 * What a check says about a text: spans that may not pass, or a verdict on all of it. `true` and a reason refuse, nothing
 * means that all is well.
 */
export type Checked = readonly Span[] | Verdict | boolean | string | null | undefined | void;

export type Check = (text: string, ctx: GuardContext) => Awaitable<Checked>;

/** An async check is asked once, about the whole text: nothing can be shown before it has answered anyway. */
export function isAsync(check: Check): boolean {
  return Object.prototype.toString.call(check) === '[object AsyncFunction]';
}

/** `true` and a reason refuse. */
export function verdictOf(said: Exclude<Checked, readonly Span[]>): Verdict | undefined {
  if (said === undefined || said === false || said === null) return undefined;
  if (said === true) return { type: 'deny' };
  return typeof said === 'string' ? { type: 'deny', reason: said } : (said as Verdict);
}

/** The spans of a text. An objection to the whole text is one span over all of it. */
export function spansOf(said: Awaitable<Checked>, text: string): readonly Span[] {
  // The kernel refuses it, with an error that says what to do.
  if (isThenable(said)) return said as never;
  if (Array.isArray(said)) return said;
  const verdict = verdictOf(said as Exclude<Checked, readonly Span[]>);
  if (verdict === undefined || verdict.type === 'allow') return [];
  const { type, ...more } = verdict;
  const whole = { start: 0, end: text.length };
  if (type === 'deny') return [{ ...whole, ...more } as Span];
  if (type !== 'rewrite' || typeof verdict.text !== 'string') throw new Error(RETURNS);
  const { text: replacement, args: _, ...finding } = more as Partial<Extract<Verdict, { type: 'rewrite' }>>;
  return [{ ...whole, ...finding, replacement } as Span];
}

const RETURNS =
  "A check returns spans, { type: 'allow' }, { type: 'deny', reason }, { type: 'rewrite', text }, true, a reason, or nothing.";

/** Asks an async check. Spans are cut here, because an async guard can only return a verdict. */
export function judgeOf(check: Check, { action = 'redact', replacement = '[redacted]' }: Cutting) {
  return async (subject: GuardSubject, ctx: GuardContext): Promise<Verdict | undefined> => {
    const said = await check(subject.text, ctx);
    if (!Array.isArray(said)) return verdictOf(said as Exclude<Checked, readonly Span[]>);
    const spans = said as readonly Span[];
    if (spans.length === 0) return undefined;
    const { reason, kind, severity } = spans[0]!;
    const finding = { ...(kind !== undefined && { kind }), ...(severity !== undefined && { severity }) };
    if (action !== 'redact') return { type: 'deny', ...(reason !== undefined && { reason }), ...finding };
    if (subject.point !== 'tool-args')
      return { type: 'rewrite', text: without(subject.text, spans, replacement), ...finding };
    const cut = async (text: string): Promise<string> =>
      without(text, spansOf(await check(text, ctx), text), replacement);
    return { type: 'rewrite', args: await mapTexts(subject.args, cut), ...finding };
  };
}

interface Cutting {
  readonly action?: Action | undefined;
  readonly replacement?: string | undefined;
}

/** A text without these spans. Overlapping ones are cut as one. */
function without(text: string, spans: readonly Span[], replacement: string): string {
  let out = '';
  let at = 0;
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    if (!(span.start >= 0 && span.end >= span.start && span.end <= text.length))
      throw new Error(`A span has 0 ≤ start ≤ end ≤ ${text.length}, the length of the text.`);
    if (span.start >= at && span.end > span.start)
      out += text.slice(at, span.start) + (span.replacement ?? replacement);
    at = Math.max(at, span.end);
  }
  return out + text.slice(at);
}

/** Arguments with every string changed, the names of fields as well. */
async function mapTexts(value: unknown, change: (text: string) => Promise<string>): Promise<unknown> {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return Promise.all(value.map((one) => mapTexts(one, change)));
  if (typeof value !== 'object' || value === null || !isPlainObject(value)) return value;
  const entries = Object.entries(value).map(async ([key, one]) => [
    await change(key),
    await mapTexts(one, change),
  ]);
  return Object.fromEntries(await Promise.all(entries));
}
