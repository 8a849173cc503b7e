/** The laws any middleware can be held to: one test per law, for the middleware here and for yours. */

import { AlliumError, type Clock, type Middleware } from '../index.js';
import { checkKeys, closestName, describeValue, invalidOption } from '../kit/index.js';
import { checkLaws, declareLaws, type LawReport, type RunnerOptions, type Skips } from './law-runner.js';
import type { MiddlewareFactory } from './middleware-laws/bench.js';
import type { MiddlewareLawContext } from './middleware-laws/context.js';
import { MIDDLEWARE_LAWS, type MiddlewareLaw } from './middleware-laws/index.js';
import { FACETS, type Facet } from './middleware-laws/observation.js';
import type { Scenario } from './middleware-laws/scenarios.js';
import { isAnswer } from './scripted-model.js';

export type { MiddlewareFactory } from './middleware-laws/bench.js';
export type { MiddlewareLaw } from './middleware-laws/index.js';
export type { Facet } from './middleware-laws/observation.js';
export type { Scenario } from './middleware-laws/scenarios.js';

export interface CheckMiddlewareOptions {
  /** Makes the middleware without anything to do, if the factory gives it something to do. @default the factory */
  readonly neutral?: MiddlewareFactory;
  /** Makes the other middleware that its `order` requires, for every run. They stand around it, or where `order` says. @default none */
  readonly companions?: (env: { readonly clock: Clock }) => readonly Middleware[];
  /** What it changes even if it has nothing to do. @default nothing */
  readonly changes?: readonly Facet[];
  /** The errors that it handles or replaces on purpose. @default none */
  readonly handles?: readonly ('model-errors' | 'tool-errors')[];
  /** Conversations that give it something to do. Every law except neutrality is tried in them too. */
  readonly scenarios?: readonly Scenario[];
  /** Laws that do not hold, each with the reason. */
  readonly skip?: Skips<MiddlewareLaw>;
  /** Seed of the random chunkings. @default 1 */
  readonly seed?: number;
  /** A run that takes longer (milliseconds of real time) has failed. @default 5000 */
  readonly timeoutMs?: number;
}

export interface TestMiddlewareOptions extends CheckMiddlewareOptions, RunnerOptions {}

const OPTIONS = ['neutral', 'companions', 'changes', 'handles', 'scenarios', 'skip', 'seed', 'timeoutMs'];

/**
 * Declares one test per law with vitest, node:test or any runner of that shape.
 *
 * The factory is called for almost every run, with a clock that stands still. A middleware that waits or reads the time
 * must use that clock, or the law about timers sees nothing. The kit does wait for real work, such as writing a file.
 *
 * @example
 * ```ts
 * import { describe, it } from 'node:test';
 * testMiddleware(({ clock }) => retry({ clock }), { name: 'retry', describe, it });
 * ```
 */
export function testMiddleware(factory: MiddlewareFactory, options: TestMiddlewareOptions = {}): void {
  checkKeys('`testMiddleware`', options, [...OPTIONS, 'name', 'it', 'describe']);
  const { name = 'middleware', it, describe, ...rest } = options;
  declareLaws(MIDDLEWARE_LAWS, contextOf(factory, rest), rest.skip, { name, it, describe });
}

/** Tries every law and reports by name. */
export async function checkMiddleware(
  factory: MiddlewareFactory,
  options: CheckMiddlewareOptions = {},
): Promise<readonly LawReport<MiddlewareLaw>[]> {
  checkKeys('`checkMiddleware`', options, OPTIONS);
  return checkLaws(MIDDLEWARE_LAWS, contextOf(factory, options), options.skip);
}

function contextOf(factory: MiddlewareFactory, options: CheckMiddlewareOptions): MiddlewareLawContext {
  const {
    neutral = factory,
    companions,
    changes = [],
    handles = [],
    scenarios = [],
    seed = 1,
    timeoutMs = 5000,
  } = options;
  if (typeof factory !== 'function') {
    throw invalidOption(
      'factory',
      'a function that makes a middleware, like ({ clock }) => retry({ clock })',
      factory,
    );
  }
  if (typeof neutral !== 'function')
    throw invalidOption('neutral', 'a function that makes a middleware', neutral);
  if (companions !== undefined && typeof companions !== 'function')
    throw invalidOption('companions', 'a function that makes a list of middleware', companions);
  checkNames('changes', changes, FACETS);
  checkNames('handles', handles, ['model-errors', 'tool-errors']);
  if (!Array.isArray(scenarios)) throw invalidOption('scenarios', 'a list of scenarios', scenarios);
  for (const scenario of scenarios as readonly Scenario[]) checkScenario(scenario);
  if (!Number.isInteger(seed)) throw invalidOption('seed', 'an integer', seed);
  if (!(timeoutMs > 0)) throw invalidOption('timeoutMs', 'a number > 0', timeoutMs);
  return {
    factory,
    neutral,
    companions,
    changes,
    handles,
    scenarios,
    seed,
    timeoutMs,
    habits: { tries: 0, silent: false },
  };
}

function checkNames(option: string, given: readonly string[], allowed: readonly string[]): void {
  if (!Array.isArray(given)) throw invalidOption(option, 'a list', given);
  for (const name of given) {
    if (allowed.includes(name)) continue;
    const near = typeof name === 'string' ? closestName(name, allowed) : undefined;
    const hint = near ? ` Did you mean "${near}"?` : '';
    throw new AlliumError(
      'INVALID_OPTION',
      `\`${option}\` may hold ${allowed.join(', ')}, got ${describeValue(name)}.${hint}`,
    );
  }
}

function checkScenario(scenario: Scenario): void {
  if (typeof scenario !== 'object' || scenario === null)
    throw invalidOption('scenarios', 'a list of scenarios', scenario);
  checkKeys(`scenario ${describeValue(scenario.name)}`, scenario, ['name', 'input', 'answers', 'tools']);
  if (typeof scenario.name !== 'string') throw invalidOption('scenario.name', 'text', scenario.name);
  if (!Array.isArray(scenario.answers))
    throw invalidOption('scenario.answers', 'a list of answers', scenario.answers);
  for (const [i, answer] of scenario.answers.entries())
    if (!isAnswer(answer))
      throw invalidOption(
        `scenario.answers[${i}]`,
        'text, a list of content, or a step such as toolCalls()',
        answer,
      );
}
