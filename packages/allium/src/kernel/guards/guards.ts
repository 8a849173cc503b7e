/** The guard ring: judges text and calls at fixed points, wherever the guards stand in the list. */

import {
  type Context,
  internal,
  type ModelContext,
  ModelSeam,
  RunContext,
  SeamCall,
} from '../context/context.js';
import { type Asking, asking } from '../journal/merged-questions.js';
import { AlliumError, attribute, attribution, errorKind, isThenable, messageOf } from '../lib/errors.js';
import { isSameList, type Text, textsOfValue } from '../lib/json-texts.js';
import { untilAborted } from '../lib/scope.js';
import { type Message, NOTHING } from '../messages/messages.js';
import type { Context as PublicContext } from '../protocol/contexts.js';
import type { GuardPoint, GuardSubject, Span, Verdict } from '../protocol/guard.js';
import type { PlannedGuard } from '../protocol/middleware.js';
import { isControl } from '../protocol/signals.js';
import { checkVerdict, normalise, spansAcross, WrongReturn } from './guard-returns.js';
import { type Refusal, refuse, refuses, replaced, report, reportFindings } from './refusal.js';

/** What guards left of some texts. */
export interface Left {
  readonly texts: readonly Text[];
  readonly deny?: Refusal;
}

/** What the guards of a point made of some texts. */
export interface Judged extends Left {
  readonly changed: boolean;
  /** A judge rewrote them, so anything else may still repeat the old text. */
  readonly rewritten: boolean;
  /** The arguments of a call, as they are now. */
  readonly args: unknown;
  readonly ask?: Asking;
}

type Subject = Omit<GuardSubject, 'text' | 'media'>;

/**
 * Judges complete texts. Each guard, in list order, sees what the previous one let through. Deny beats ask beats rewrite
 * beats allow. A refusal ends the judging, except for a call: that stays in the history, so the remaining guards still clean
 * its arguments.
 */
export async function judgeTexts(
  guards: readonly PlannedGuard[],
  subject: Subject,
  given: readonly Text[],
  ctx: Context,
): Promise<Judged> {
  const { args: base } = subject;
  const judging: Judging = { subject, texts: given, base, args: base, rewritten: false };
  for (const planned of guards) {
    try {
      if (planned.guard.find) findIn(planned, judging, ctx);
      if (planned.guard.judge) await askJudge(planned, judging, ctx);
    } catch (error) {
      skipOrThrow(planned, error, ctx);
    }
    if (judging.deny && subject.point !== 'tool-args') break;
  }
  const { texts, args, rewritten, deny, ask } = judging;
  const same = args === base && isSameList(texts, given);
  return { texts, changed: !same, rewritten, args, deny, ask: deny ? undefined : ask };
}

interface Judging {
  readonly subject: Subject;
  texts: readonly Text[];
  /** The arguments that the texts come from, and the current ones. */
  base: unknown;
  args: unknown;
  rewritten: boolean;
  deny?: Refusal;
  ask?: Judged['ask'];
}

function findIn(planned: PlannedGuard, judging: Judging, ctx: Context): void {
  const { texts, deny } = redact(planned, judging.subject.point, judging.texts, ctx);
  judging.deny ??= deny;
  if (texts === judging.texts) return;
  judging.texts = texts;
  const { base } = judging;
  if (base !== undefined) judging.args = textsOfValue(base).put(texts);
}

async function askJudge(planned: PlannedGuard, judging: Judging, ctx: Context): Promise<void> {
  const { guard, name } = planned;
  const { subject } = judging;
  const context = judgeContext(planned, ctx);
  let verdict: Verdict | void;
  try {
    const text = judging.texts.map((pieces) => pieces.join('')).join('\n');
    const asked = guard.judge!(
      { ...subject, args: judging.args, text, media: mediaOf(subject) },
      { point: subject.point, from: 0, context },
    );
    verdict = isThenable(asked) ? await untilAborted(asked, ctx._scope) : asked;
  } finally {
    const { latched, latchedBy } = context._call;
    if (latched !== undefined) ctx._latch(latched, latchedBy);
  }
  ctx._call.check();
  if (verdict === undefined) return;
  checkVerdict(planned, verdict, subject.point, judging.args);
  if (verdict.type === 'allow') return;
  if (verdict.type === 'deny') {
    const denied = refuse(planned, subject.point, [verdict], ctx, 0);
    judging.deny ??= denied;
    return;
  }
  const what = verdict.type === 'ask' ? 'asked about' : 'rewrote';
  report(planned, subject.point, verdict.type, verdict, what, ctx);
  if (verdict.type === 'ask') {
    judging.ask = asking(judging.ask, { request: verdict.request, by: name })!;
    return;
  }
  const { text, args } = verdict;
  judging.rewritten = true;
  if (args !== undefined) {
    judging.args = judging.base = args;
    judging.texts = textsOfValue(args).texts;
  } else judging.texts = judging.texts.map((pieces, i) => pieces.map((_, k) => (i + k === 0 ? text! : '')));
}

function mediaOf({ message, result }: Subject): GuardSubject['media'] {
  const content: readonly Part[] = (result ?? message)?.content ?? [];
  return content.filter((part) => part.type === 'image' || part.type === 'file');
}

type Part = Message['content'][number];

/**
 * The context for a judge, under its own name and with the same state. Its model calls aren't judged, or a guard that calls a
 * model would judge its own answers forever.
 */
function judgeContext(planned: PlannedGuard, ctx: Context): Context {
  const fork =
    ctx instanceof RunContext
      ? new RunContext(ctx._run, ctx._scope, ctx.input, ctx._taken)
      : (ctx as ModelContext)._fork();
  const made = fork as { -readonly [K in keyof Context]: Context[K] };
  made._state = ctx.state as Context['_state'];
  made._metadata = ctx.metadata;
  made._position = planned.position;
  const { _call: call, _run: run } = ctx;
  made._call =
    call instanceof ModelSeam
      ? new ModelSeam(run, call.scope, call.live, call.length)
      : new SeamCall(run, call.scope);
  made._call.guarded = false;
  made._call.converted = ctx._call.converted;
  return made as unknown as Context;
}

/**
 * The message of an error, for notes, events and logs. It may quote what guards remove, so if a guard finds something in it,
 * or has a judge and can't answer synchronously, this returns only the kind of the error.
 */
export function safeErrorMessage(error: unknown, ctx: PublicContext): string {
  const own = internal(ctx);
  const text = messageOf(error);
  const points = Object.entries(own.plan.guards) as [GuardPoint, readonly PlannedGuard[]][];
  const objects = (planned: PlannedGuard, point: GuardPoint): boolean =>
    Boolean(planned.guard.judge) ||
    (planned.guard.action !== 'warn' && spansOf(planned, point, text, 0, own).length > 0);
  try {
    const clean = !points.some(([point, guards]) => guards.some((planned) => objects(planned, point)));
    return clean ? text : errorKind(error);
  } catch {
    return errorKind(error);
  }
}

/**
 * Removes what one guard finds in texts; returns the same list if it found nothing to remove. `quiet`: only watchers would
 * see the texts, so findings are removed but not reported.
 */
export function redact(
  planned: PlannedGuard,
  point: GuardPoint,
  given: readonly Text[],
  ctx: Context,
  quiet = false,
): Left {
  let deny: Refusal | undefined;
  let offset = 0;
  const texts = given.map((pieces) => {
    const text = pieces.length === 1 ? pieces[0]! : pieces.join('');
    const start = offset;
    offset += text.length + 1;
    const spans = spansAcross(text, marksOf(pieces), (part) => spansOf(planned, point, part, 0, ctx));
    if (spans.length === 0) return pieces;
    const denied = quiet ? quietly(planned) : reportFindings(planned, point, spans, ctx, start);
    deny ??= denied;
    // A refused call stays in the history, but without what must not pass.
    const stays = planned.guard.action === 'warn' || (denied && point !== 'tool-args');
    return stays ? pieces : cut(pieces, text, spans, planned);
  });
  return { texts: isSameList(texts, given) ? given : texts, deny };
}

function quietly(planned: PlannedGuard): Refusal | undefined {
  return refuses(planned) ? { reason: '', by: planned.name } : undefined;
}

/** Where the pieces of a text start, except the first. */
function marksOf(pieces: Text): readonly number[] {
  if (pieces.length < 2) return NOTHING;
  let at = 0;
  return pieces.slice(0, -1).map((piece) => {
    at += piece.length;
    return at;
  });
}

/** Cuts spans out of the pieces of a text. A replacement goes where its span starts. */
function cut(pieces: Text, text: string, spans: readonly Span[], planned: PlannedGuard): Text {
  let next = 0;
  let start = 0;
  return pieces.map((piece) => {
    const end = start + piece.length;
    let out = '';
    let position = start;
    for (let span = spans[next]; span && span.start < end; span = spans[next]) {
      if (span.start >= start) out += text.slice(position, span.start) + replaced(planned, span);
      position = Math.min(span.end, end);
      if (span.end > end) break;
      next++;
    }
    start = end;
    return out + text.slice(position, end);
  });
}

export function spansOf(
  planned: PlannedGuard,
  point: GuardPoint,
  text: string,
  from: number,
  context: Context,
): readonly Span[] {
  // What the guard does with the context is attributed to it.
  const { _position: position } = context;
  context._position = planned.position;
  try {
    return normalise(planned.guard.find!(text, { point, from, context }), text, planned.name);
  } finally {
    context._position = position;
  }
}

/** Skips a guard that fails open. Otherwise throws GUARD_FAILED, which no retry gets past. */
export function skipOrThrow(planned: PlannedGuard, error: unknown, ctx: Context): void {
  const { name, open } = planned;
  if (isControl(error)) {
    ctx._cross(error, name);
    throw error;
  }
  if (open) {
    ctx._run.note(name, `failed and was skipped: ${safeErrorMessage(error, ctx)}`, 'failed');
    return;
  }
  // The error may quote what was judged, so it is only attached as the cause, for the caller.
  const why = error instanceof WrongReturn ? `: ${error.told}` : '.';
  const told = `Guard "${name}" failed, so nothing more was released${why}`;
  const failure = new AlliumError('GUARD_FAILED', told, { cause: error });
  const by = { middleware: name, hook: 'guard' };
  attribute(error, by, ctx);
  attribute(failure, by, ctx);
  throw failure;
}

/** Latches errors: a broken guard ends the run, even if a layer swallows the error or retries. Abandoned attempts don't count. */
export function latching<T>(ctx: Context, work: () => T): T {
  const latch = (error: unknown): never => {
    ctx._latch(error, attribution(error)?.middleware);
    throw error;
  };
  try {
    const made = work();
    return isThenable(made) ? (made.then(undefined, latch) as T) : made;
  } catch (error) {
    return latch(error);
  }
}
