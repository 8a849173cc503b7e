/** Finds combinations that work but surprise, from what middleware declare and never from their names. */

import { isByObject, ownsRunState } from '../compose/twins.js';
import type { Hazard, Plan, PlannedMiddleware } from '../kernel/protocol/middleware.js';
import { SEAMS } from '../kernel/protocol/plan.js';
import { UNGUARDED_AGENTS } from '../kit/child-tags.js';
import {
  at,
  changesAt,
  changesOutside,
  guardInstead,
  has,
  intended,
  type Nested,
  nestedLayers,
  placesAt,
  transformFix,
  waitFix,
  writes,
} from './hazard-places.js';

export function findHazards(plan: Plan): readonly Hazard[] {
  const declared = plan.middleware.flatMap(({ name, middleware }) =>
    [...(middleware.hazards?.(plan) ?? [])].map(({ id, message, fix }) => hazard(id, [name], [message, fix])),
  );
  return [...CHECKS.flatMap((check) => check(plan)), ...declared];
}

type Is = (one: PlannedMiddleware) => boolean;
/** The text of a hazard: what happens, and how to fix it. */
type Told = readonly [message: string, fix: string];
type Check = (plan: Plan) => Hazard[];

/** Two middleware of one name that differ only by object. */
const areAlike: Nested = ({ twins }, one, other) =>
  one.middleware.name === other.middleware.name &&
  isByObject(twins?.[one.name]) &&
  isByObject(twins?.[other.name]);

/** Checks every pair of middleware where an outer one with this property contains an inner one with that property. */
function pairs(
  id: string,
  outer: Is,
  inner: Is,
  tell: (outer: PlannedMiddleware, inner: PlannedMiddleware, plan: Plan) => Told,
  nested: Nested = nestedLayers,
): Check {
  return (plan) =>
    plan.middleware
      .filter(outer)
      .flatMap((out) =>
        plan.middleware
          .filter((one) => one !== out && inner(one) && nested(plan, out, one) && !intended(out, one))
          .map((one) => hazard(id, [out.name, one.name], tell(out, one, plan))),
      );
}

/** Checks for a middleware with one of these traits outside one with that trait. */
function order(id: string, outer: readonly string[], inner: string, [message, fix]: Told): Check {
  return pairs(
    id,
    (one) => outer.some((trait) => has(trait)(one)),
    has(inner),
    ({ name: out }, { name: inside }) => {
      const named = (text: string) =>
        text.replaceAll('{outer}', () => out).replaceAll('{inner}', () => inside);
      return [named(message), named(fix)];
    },
  );
}

/** Checks every middleware for a property. */
function each(
  id: string,
  is: (one: PlannedMiddleware, plan: Plan) => boolean,
  tell: (name: string, plan: Plan) => Told,
): Check {
  return (plan) =>
    plan.middleware.filter((one) => is(one, plan)).map(({ name }) => hazard(id, [name], tell(name, plan)));
}

function hazard(id: string, between: readonly string[], [message, fix]: Told): Hazard {
  return { id, between, message, fix };
}

function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name}"`).join(', ');
}

function unsafeTools(plan: Plan): readonly string[] {
  return plan.tools.filter((tool) => !tool.idempotent).map(({ name }) => name);
}

const CHECKS: readonly Check[] = [
  function twoConverters(plan) {
    const names = plan.rules.convertToLlm.map(({ name }) => name);
    if (names.length < 2) return [];
    return [
      hazard('two-convert-to-llm', names, [
        `${names.length} middleware convert messages for the model; only "${names.at(-1)}" runs.`,
        'Merge them into one that calls both, or use transformContext, which chains.',
      ]),
    ];
  },
  function hookReplaced(plan) {
    return plan.replaced.map(({ hook, names }) =>
      hazard('hook-replaced', names, [
        `The agent's own ${hook} replaces that of ${quoted(names)}.`,
        hook === 'convertToLlm'
          ? 'Only one converts in any case: merge them into one that calls both, or use transformContext, which chains.'
          : 'Pass it as a middleware to have both.',
      ]),
    );
  },
  each(
    'retry-of-unsafe-tool',
    (one, plan) => has('retries')(one) && at(plan, one, 'tool') && unsafeTools(plan).length > 0,
    (name, plan) => [
      `"${name}" may run ${quoted(unsafeTools(plan))} twice, which ${unsafeTools(plan).length > 1 ? 'are' : 'is'} not declared idempotent.`,
      'Declare idempotent: true where running twice does no harm, or retry other tools only.',
    ],
  ),
  order('cache-outside-variation', ['caches'], 'varies', [
    '"{outer}" stands outside "{inner}", which changes each request: the cache key does not see the change.',
    'Put "{inner}" outside "{outer}", or leave one out.',
  ]),
  pairs(
    'cache-outside-variation',
    has('caches'),
    has('varies'),
    ({ name: cache }, { name: varies }) => [
      `"${varies}" changes each request in convertToLlm, which runs inside "${cache}" wherever it stands: the cache key does not see the change.`,
      'Change the request in transformContext, which comes before every cache, or leave one out.',
    ],
    (plan, cache, one) =>
      plan.rules.convertToLlm.at(-1)?.position === one.position &&
      at(plan, cache, 'model') &&
      !nestedLayers(plan, cache, one),
  ),
  pairs(
    'transform-outside-cache',
    (one) => has('transforms')(one) || has('redacts')(one),
    has('caches'),
    (transform, cache, plan) => [
      nestedLayers(plan, transform, cache)
        ? `"${transform.name}" stands outside "${cache.name}", which therefore stores the text as it was before.`
        : `"${transform.name}" changes text after all layers are done with it: "${cache.name}" stores it as it was before.`,
      transformFix(plan, transform, cache),
    ],
    changesOutside,
  ),
  pairs(
    'redaction-outside-sink',
    has('redacts'),
    writes,
    (redacts, sink) => [
      `"${redacts.name}" removes text after "${sink.name}" has already received it.`,
      guardInstead(redacts, sink),
    ],
    (plan, outer, sink) =>
      SEAMS.some((seam) =>
        placesAt(plan, sink, seam).some((inner) =>
          changesAt(plan, outer, seam).some((place) => place < inner),
        ),
      ),
  ),
  function sharedCell(plan) {
    return [...plan.cells].flatMap(([cell, key]) => {
      const owners = plan.middleware.filter(({ middleware }) => middleware.state?.includes(cell));
      // A cell is stored under the name of the first that declares it, and the agent comes first.
      const isOfAgent = key === `agent:${cell.name}` && owners[0]?.middleware.name !== 'agent';
      const between = [...(isOfAgent ? ['agent'] : []), ...owners.map(({ name }) => name)];
      if (between.length < 2) return [];
      const names = [...(isOfAgent ? ['the agent'] : []), ...owners.map(({ name }) => `"${name}"`)];
      return hazard('shared-cell', between, [
        `State cell "${cell.name}" is declared by ${names.join(' and ')}.`,
        isOfAgent
          ? 'Remove it from the `state` of the agent, where its value is stored now. Everybody may read what a middleware declares.'
          : 'Let one middleware own the cell and the others read it.',
      ]);
    });
  },
  function unguardedSubagents(plan) {
    const guards = plan.middleware.filter(({ middleware }) => middleware.guard).map(({ name }) => name);
    if (guards.length === 0) return [];
    return plan.tools
      .filter(({ tags }) => tags?.includes(UNGUARDED_AGENTS))
      .map(({ name }) =>
        hazard('unguarded-subagent', guards, [
          `"${name}" runs agents that do not inherit ${quoted(guards)}: what they are told, say and do is judged by their own guards only.`,
          'Leave out `inheritGuards: false`, or give those agents guards of their own.',
        ]),
      );
  },
  order('budget-inside-retry', ['retries'], 'budgets', [
    '"{inner}" stands inside "{outer}": it counts every attempt, and its refusals pass through the retry.',
    'Put "{inner}" outside "{outer}" to count calls; the kernel\'s limits count attempts in any case.',
  ]),
  order('errors-settled-inside', ['retries', 'trips'], 'settles', [
    '"{inner}" stands inside "{outer}" and turns errors into results: "{outer}" never sees one.',
    'Put "{inner}" outside "{outer}".',
  ]),
  order('settled-errors-kept', ['keeps'], 'settles', [
    '"{inner}" stands inside "{outer}" and turns errors into results, which "{outer}" then keeps: the call is not tried again.',
    'Put "{inner}" outside "{outer}".',
  ]),
  order('breaker-outside-fallback', ['trips'], 'switches', [
    '"{outer}" stands outside "{inner}": it counts a failure only when every model has failed, and then refuses calls that another model would answer.',
    'Put "{outer}" inside "{inner}".',
  ]),
  order('timeout-outside-breaker', ['times-out'], 'trips', [
    '"{outer}" stands outside "{inner}", which doesn\'t count a cancelled call as a failure: calls that hang never open the circuit.',
    'Put "{outer}" inside "{inner}".',
  ]),
  each(
    'listed-twice',
    (one, plan) => plan.middleware.find(({ middleware }) => middleware === one.middleware) !== one,
    (name) => [
      `"${name}" is in the list twice, as the same object: it counts and stores everything twice, and may wait for itself.`,
      'List it once, or make another one.',
    ],
  ),
  pairs(
    'told-apart-by-order',
    ({ middleware }) => ownsRunState(middleware),
    ({ middleware }) => ownsRunState(middleware),
    ({ name }, { name: twin }) => [
      `"${name}" and "${twin}" share a name and have no options that tell them apart. Another process or agent could not tell whose state is whose, so only this one can resume its runs.`,
      'Give each a `name`.',
    ],
    (plan, outer, inner) => outer.position < inner.position && areAlike(plan, outer, inner),
  ),
  pairs(
    'timeout-outside-human',
    (one) => has('times-out')(one) && !has('pauses')(one),
    ({ middleware }) => middleware.suspends === true,
    (timeout, human, plan) => [
      `"${timeout.name}" keeps counting while "${human.name}" waits for a person.`,
      waitFix(plan, timeout, human)!,
    ],
    (plan, timeout, human) => waitFix(plan, timeout, human) !== undefined,
  ),
  function unknownTool(plan) {
    const known = new Set(plan.middleware.flatMap(({ middleware }) => middleware.brings ?? []));
    for (const { name } of plan.tools) known.add(name);
    return plan.middleware.flatMap(({ name, middleware }) =>
      [...new Set(middleware.mentions ?? [])]
        .filter((mentioned) => !known.has(mentioned))
        .map((mentioned) =>
          hazard(
            'unknown-tool',
            [name],
            [
              `"${name}" mentions tool "${mentioned}", which does not exist: that setting does nothing.`,
              known.size === 0
                ? 'Give the agent that tool.'
                : `Name one of ${quoted([...known].slice(0, 20))}.`,
            ],
          ),
        ),
    );
  },
  each(
    'undeclared-sink',
    (one) => has('exports')(one) && one.middleware.sink !== true,
    (name) => [
      `"${name}" writes content elsewhere but is not declared a sink: it sees text before the guards have judged it.`,
      'Declare sink: true, or make it an observer.',
    ],
  ),
];
