/** What all guardrails share: their options, and the guard that is made from them. */
import {
  defineMiddleware,
  type Guard,
  type GuardContext,
  type GuardPoint,
  type Middleware,
  type Severity,
  type Span,
  window,
} from 'allium';
import { type Kind, kinds } from 'allium/kit';
import type { Finding } from './finding.js';

const POINTS = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'] as const;

/** Where text comes in and goes out. `request`, which also has the system prompt, only if asked for. */
const EVERY_TEXT: readonly GuardPoint[] = ['input', 'output', 'thinking', 'tool-args', 'tool-result'];

/** What the model wrote. Only there can it be asked again. */
const ANSWERS: readonly GuardPoint[] = ['output', 'thinking', 'tool-args'];

const ACTIONS = ['redact', 'block', 'stop', 'warn', 'feedback'] as const;

export type Action = (typeof ACTIONS)[number];

/** Options that every guardrail takes. */
export const COMMON_FIELDS = {
  /** Where it judges. */
  on: kinds.listOf(kinds.oneOf(...POINTS), undefined, 1) as Kind<readonly GuardPoint[]>,
  /**
   * What happens to a text in which it finds something: `redact` cuts it, `block` refuses the whole text, `stop` ends
   * the run, `warn` only reports, `feedback` asks the model again and says why.
   */
  action: kinds.oneOf(...ACTIONS),
  /** How often the model is asked again in a turn before it is refused. @default 2 */
  maxFeedback: kinds.integer(1),
  /** What its own failure means: `closed` releases nothing more, `open` continues without it. @default 'closed' */
  onFail: kinds.oneOf('closed', 'open'),
  /** Its name. Two of a kind in one list need different names. @default its kind */
  name: kinds.nonEmptyText,
};

/** In addition, the options of a guardrail that searches text. */
export const SEARCH_FIELDS = {
  ...COMMON_FIELDS,
  /** How many characters of streamed text are held back: every match of up to this length is caught. */
  window: kinds.integer(1, 65_536),
};

interface Common {
  readonly on?: readonly GuardPoint[];
  readonly action?: Action;
  readonly maxFeedback?: number;
  readonly onFail?: 'closed' | 'open';
  readonly name?: string;
}

export interface SearchGuard {
  /** Its kind, which is its name unless the options say otherwise. */
  readonly kind: string;
  /** Where it judges unless the options say otherwise. */
  readonly points?: readonly GuardPoint[];
  readonly action?: Action;
  /** Characters that are held back; 'full' for all of a text. */
  readonly hold: number | 'full';
  readonly severity?: Severity;
  readonly detect: (text: string, from: number, ctx: GuardContext) => readonly Finding[];
  /** Replaces what was found. */
  readonly replace: (finding: Finding, text: string, ctx: GuardContext) => string;
  readonly more?: Partial<Middleware>;
  readonly guard?: Partial<Guard>;
}

/** A guardrail that searches text, streamed or not. */
export function searchGuard(options: Common, own: SearchGuard): Middleware {
  const { detect, replace, hold, severity = 'medium' } = own;
  const find: Guard['find'] = (text, ctx) =>
    detect(text, ctx.from, ctx).map((finding) => spanOf(finding, replace(finding, text, ctx), severity));
  const more = { looksBack: 0, ...own.more };
  return guardrailOf(
    options,
    { ...own, more },
    { hold: hold === 'full' ? 'full' : window(hold), find, ...own.guard },
  );
}

/** A middleware with this guard, and with what the options say about it. */
export function guardrailOf(
  options: Common,
  own: Pick<SearchGuard, 'kind' | 'points' | 'action' | 'more'>,
  guard: Omit<Guard, 'on' | 'action'>,
): Middleware {
  const action = options.action ?? own.action ?? 'redact';
  const points = own.points ?? EVERY_TEXT;
  const on = options.on ?? (action === 'feedback' ? answersOf(points) : points);
  return defineMiddleware({
    name: options.name ?? own.kind,
    ...(options.onFail && { onFail: options.onFail }),
    traits: [action === 'redact' ? 'redacts' : 'protects'],
    ...own.more,
    guard: {
      on,
      action,
      ...(options.maxFeedback !== undefined && { maxFeedback: options.maxFeedback }),
      ...guard,
    },
  });
}

function answersOf(points: readonly GuardPoint[]): readonly GuardPoint[] {
  const answers = points.filter((point) => ANSWERS.includes(point) || point === 'final');
  return answers.length > 0 ? answers : ANSWERS;
}

function spanOf({ start, end, kind }: Finding, replacement: string, severity: Severity): Span {
  return { start, end, replacement, kind, severity };
}
