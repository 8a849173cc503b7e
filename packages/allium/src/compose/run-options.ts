/** Checks the options of a run: the kernel's own, and those that middleware declare with `runOptions`. */

import * as kinds from '../kernel/lib/kinds.js';
import { checkFields, type Fields, type Kind } from '../kernel/lib/shapes.js';
import type { DeclaredOptions } from '../kernel/protocol/contexts.js';
import type { Limits, SessionLimits } from '../kernel/protocol/limits.js';
import { NONE_DECLARED } from '../kernel/protocol/run-options.js';
import { runBehind } from '../kernel/run/run.js';
import { FOREIGN_LIMITS, FOREIGN_RUN } from './foreign-run.js';

const mode = kinds.oneOf('all', 'one');
export const QUEUE_MODES: Kind = kinds.shape({ steering: mode, followUps: mode });

export const OBSERVER: Kind = kinds.either(kinds.func(), kinds.methods<{ onEvent(): void }>('onEvent'));

export const TRACE: Kind = kinds.oneOf('off', 'changes');

const count = kinds.kind(
  'an integer ≥ 0',
  (value) => (Number.isInteger(value) || value === Number.POSITIVE_INFINITY) && value >= 0,
);
const amount = kinds.number(0, Number.POSITIVE_INFINITY);
const modelTime = kinds.either(kinds.number(1, Number.POSITIVE_INFINITY), kinds.oneOf('none'));
const SHARED = { turns: count, toolCalls: count, tokens: amount, costUsd: amount };

export const SESSION_LIMITS: Kind = kinds.shape(
  SHARED satisfies Record<keyof SessionLimits, Kind>,
  FOREIGN_LIMITS,
);

export const LIMITS: Kind = kinds.shape(
  {
    ...SHARED,
    depth: count,
    argsDepth: count,
    argsChars: count,
    timeoutMs: amount,
    modelIdleMs: modelTime,
    modelMs: modelTime,
  } satisfies Record<keyof Limits, Kind>,
  FOREIGN_LIMITS,
);

/** The kernel's own options of `run()` and `stream()`. Middleware are checked when they are composed. */
const RUN: Fields = {
  middleware: kinds.anything,
  observers: kinds.listOf(OBSERVER),
  signal: kinds.kind('an AbortSignal', (value) => value instanceof AbortSignal),
  limits: LIMITS,
  tenant: kinds.text,
  queue: QUEUE_MODES,
  runId: kinds.kind('text without spaces', (value) => typeof value === 'string' && /^\S+$/.test(value)),
  trace: TRACE,
  metadata: kinds.record,
  onRequest: kinds.func(),
  // Not by class: it may come from another copy of this package.
  parent: kinds.kind('the `ctx` of a hook or tool', (value) => typeof runBehind(value) === 'object'),
  inheritGuards: kinds.flag,
};

const RESUME: Fields = {
  ...RUN,
  answers: kinds.record,
  allowPlanChange: kinds.flag,
};

/** Names that no middleware may declare. */
export const RESUME_OPTIONS: readonly string[] = Object.keys(RESUME);

/**
 * Checks the options of a run or resume and returns those that belong to middleware. Throws for an option that nobody
 * declares. `declared` is only called if there are such options, which is rare.
 */
export function declaredOptions(
  options: object,
  resumes: boolean,
  declared: () => readonly string[],
): DeclaredOptions {
  const own = resumes ? RESUME : RUN;
  const given = Object.entries(options).filter(([name]) => !Object.hasOwn(own, name));
  const others = given.length === 0 ? [] : declared().map((name) => [name, kinds.anything] as const);
  checkFields(
    resumes ? 'resume()' : 'run()',
    { ...own, ...Object.fromEntries(others) },
    options,
    FOREIGN_RUN,
  );
  if (given.length === 0) return NONE_DECLARED;
  return Object.freeze(Object.fromEntries(given.filter(([, value]) => value !== undefined)));
}
