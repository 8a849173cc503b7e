/** What all guardrails have in common: their options, and the guard that they come to. */
import type { Guard, GuardPoint, Middleware, Span } from 'allium';
import { defineMiddleware, window } from 'allium';
import { type Kind, kinds } from 'allium/kit';
import type { Detector, Finding } from './finding.js';

const POINTS = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'] as const;

/** Where text comes in and goes out; `request`, which has the system prompt as well, on request. */
export const EVERY_TEXT: readonly GuardPoint[] = ['input', 'output', 'thinking', 'tool-args', 'tool-result'];

const ACTIONS = ['redact', 'block', 'stop', 'warn'] as const;

export type Action = (typeof ACTIONS)[number];

/** Options that every guardrail takes. */
export const COMMON_FIELDS = {
  /** Where it judges. @default input, output, thinking, tool-args and tool-result */
  on: kinds.listOf(kinds.oneOf(...POINTS), undefined, 1) as Kind<readonly GuardPoint[]>,
  /** What becomes of a text in which it finds something. */
  action: kinds.oneOf(...ACTIONS),
  /** What its own failure means: `closed` releases nothing more, `open` goes on without it. @default 'closed' */
  onFail: kinds.oneOf('closed', 'open'),
  /** Its name. Two of a kind in one list need different names. @default its kind */
  name: kinds.nonEmptyText,
};

/** Beside those, what a guardrail takes that searches text. */
export const SEARCH_FIELDS = {
  ...COMMON_FIELDS,
  /** How many characters of streamed text are held back: every match of up to this length is caught. */
  window: kinds.integer(1, 65_536),
};

export interface SearchGuard {
  readonly name: string;
  readonly on: readonly GuardPoint[];
  readonly action: Action;
  readonly onFail: 'closed' | 'open' | undefined;
  readonly window: number;
  readonly detect: Detector;
  /** What stands where something was found. */
  readonly replace: (finding: Finding, text: string) => string;
  readonly more?: Middleware;
}

/** A guardrail that searches text, streamed or not. */
export function searchGuard({
  name,
  on,
  action,
  onFail,
  window: chars,
  detect,
  replace,
  more,
}: SearchGuard): Middleware {
  const guard: Guard = {
    on,
    action,
    hold: window(chars),
    find: (text, { from }) => detect(text, from).map((finding) => spanOf(finding, replace(finding, text))),
  };
  return defineMiddleware({
    name,
    ...(onFail && { onFail }),
    traits: action === 'redact' ? ['redacts'] : ['protects'],
    ...more,
    guard,
  });
}

function spanOf({ start, end }: Finding, replacement: string): Span {
  return { start, end, replacement };
}
