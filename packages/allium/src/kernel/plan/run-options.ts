/** Checks the options of a run: the kernel's own, and those that middleware declare with `runOptions`. */

import type { Context } from '../context/context.js';
import { FOREIGN_RUN } from '../lib/foreign-names.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, type Fields, type Kind } from '../lib/shapes.js';
import { MODEL_SETTINGS } from '../messages/model.js';
import type { DeclaredOptions, GenerateRequest } from '../protocol/contexts.js';
import { LIMITS } from '../protocol/limits.js';

const mode = kinds.oneOf('all', 'one');
export const QUEUE_MODES: Kind = kinds.shape({ steering: mode, followUps: mode });

export const OBSERVER: Kind = kinds.either(kinds.func(), kinds.methods<{ onEvent(): void }>('onEvent'));

export const TRACE: Kind = kinds.oneOf('off', 'changes');

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
  parent: kinds.kind<Context>('the `ctx` of a hook or tool', (value) => typeof value?._run === 'object'),
  inheritGuards: kinds.flag,
};

const RESUME: Fields = {
  ...RUN,
  answers: kinds.record,
  allowPlanChange: kinds.flag,
};

/** Names that no middleware may declare. */
export const RESUME_OPTIONS: readonly string[] = Object.keys(RESUME);

export const NONE_DECLARED: DeclaredOptions = Object.freeze({});

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

/** The request of `ctx.generate()`. */
export const GENERATE: Fields = {
  messages: kinds.required(kinds.kind('text or messages for ctx.generate()', (value) => value !== undefined)),
  systemPrompt: kinds.text,
  tools: kinds.listOf(
    kinds.kind('a tool', (one) => typeof one?.execute === 'function'),
    'a list of tools made with tool()',
  ),
  settings: MODEL_SETTINGS,
} satisfies Record<keyof GenerateRequest, Kind>;
