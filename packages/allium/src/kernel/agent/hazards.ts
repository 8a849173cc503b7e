/** Combinations that work and still surprise. Found from what middleware declare, never from their names. */

import { SEAMS } from '../plan/check-middleware.js';
import { isByObject, ownsRunState } from '../plan/twins.js';
import { UNGUARDED_AGENTS } from '../protocol/child-tags.js';
import type { GuardPoint } from '../protocol/guard.js';
import type { Hazard, Seam } from '../protocol/middleware.js';
import type { Layer, Plan, PlannedMiddleware, RuleHook } from '../protocol/plan.js';

export function findHazards(plan: Plan): readonly Hazard[] {
  const declared = plan.middleware.flatMap(({ name, middleware }) =>
    [...(middleware.hazards?.(plan) ?? [])].map(({ id, message, fix }) => hazard(id, [name], [message, fix])),
  );
  return [...CHECKS.flatMap((check) => check(plan)), ...declared];
}

const has = (trait: string) => (one: PlannedMiddleware) => one.middleware.traits?.includes(trait) ?? false;

function at(plan: Plan, one: PlannedMiddleware, seam: Seam): boolean {
  return isAmong(plan.layers[seam], one);
}

function isAmong(
  members: readonly { readonly position: number }[],
  { position }: PlannedMiddleware,
): boolean {
  return members.some((member) => member.position === position);
}

/** One of them says that they belong in this order. */
function intended(outer: PlannedMiddleware, inner: PlannedMiddleware): boolean {
  const names = ({ name, middleware }: PlannedMiddleware) => [name, middleware.name];
  const { outside = [] } = outer.middleware.order ?? {};
  const { inside = [] } = inner.middleware.order ?? {};
  return (
    outside.some((name) => names(inner).includes(name)) || inside.some((name) => names(outer).includes(name))
  );
}

type Is = (one: PlannedMiddleware) => boolean;
type Nested = (plan: Plan, outer: PlannedMiddleware, inner: PlannedMiddleware) => boolean;
/** What to tell about those involved: the message, and the fix. */
type Told = readonly [message: string, fix: string];
type Check = (plan: Plan) => Hazard[];

/** Two of one name that only their objects tell apart. */
const areAlike: Nested = ({ twins }, one, other) =>
  one.middleware.name === other.middleware.name &&
  isByObject(twins?.[one.name]) &&
  isByObject(twins?.[other.name]);

const nestedLayers: Nested = (plan, outer, inner) =>
  outer.position < inner.position && SEAMS.some((seam) => at(plan, outer, seam) && at(plan, inner, seam));

/** Every pair of an outer and an inner middleware with these properties of which one stands inside the other. */
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

/** Every middleware with this property. */
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

// ── Who changes, stores and writes responses ─────────────────────────────────────────────────────────────────

/** Rules that see a response when all layers are done with it, and guard points that come before anything is stored. */
const RESPONSES: Readonly<Record<Seam, { rule?: RuleHook; points: readonly GuardPoint[] }>> = {
  run: { points: ['output', 'final'] },
  model: { rule: 'afterModelResponse', points: ['output', 'thinking', 'final'] },
  tool: { rule: 'afterToolCall', points: ['tool-result'] },
};

/**
 * Where a middleware meets the responses of a seam: the smaller, the further out. Rules are asked after all layers, one
 * after the other.
 */
function placesAt(plan: Plan, one: PlannedMiddleware, seam: Seam, counts = seesResponses): number[] {
  const { rule } = RESPONSES[seam];
  const asked = rule !== undefined && isAmong(plan.rules[rule], one);
  const wraps = isAmong(plan.layers[seam].filter(counts), one);
  return [...(asked ? [-1 - one.position] : []), ...(wraps ? [one.position] : [])];
}

function seesResponses({ wrap, after }: Layer): boolean {
  return wrap !== undefined || after !== undefined;
}

function changesAt(plan: Plan, one: PlannedMiddleware, seam: Seam): number[] {
  // What is there before a call may register a transform of its stream.
  if (has('transforms')(one)) return placesAt(plan, one, seam, () => true);
  const guarded = one.middleware.guard?.on.some((point) => RESPONSES[seam].points.includes(point));
  return has('redacts')(one) && !guarded ? placesAt(plan, one, seam) : [];
}

const changesOutside: Nested = (plan, outer, inner) =>
  SEAMS.some(
    (seam) => at(plan, inner, seam) && changesAt(plan, outer, seam).some((place) => place < inner.position),
  );

/** It keeps or writes what it is given. Caches have a hazard of their own. */
function writes(one: PlannedMiddleware): boolean {
  if (has('caches')(one)) return false;
  return has('exports')(one) || has('keeps')(one) || (one.middleware.sink === true && !has('replays')(one));
}

/** Sinks are given what guards left, so a guard is the remedy for whoever is one. */
function guardInstead(redacts: PlannedMiddleware, { name, middleware }: PlannedMiddleware): string {
  const declare = middleware.sink === true ? '' : `, and declare "${name}" a sink`;
  return `Make "${redacts.name}" a guard${declare}: what a guard removes reaches no sink, wherever they stand.`;
}

function transformFix(plan: Plan, transform: PlannedMiddleware, cache: PlannedMiddleware): string {
  if (has('redacts')(transform)) return guardInstead(transform, cache);
  const change = nestedLayers(plan, transform, cache)
    ? `Put "${transform.name}" inside "${cache.name}"`
    : `Change the text in a layer inside "${cache.name}"`;
  return `${change} if the stored text should be changed too; for safety use a guard.`;
}

function unsafeTools(plan: Plan): readonly string[] {
  return plan.tools.filter((tool) => !tool.idempotent).map(({ name }) => name);
}

// ── Who waits for people ─────────────────────────────────────────────────────────────────────────────────────

/** Something of it runs inside every layer around the run: rules, guards, tools, and layers around calls. */
function runsFurtherIn(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  const asked = Object.values(plan.rules).some((hooks) => isAmong(hooks, one));
  return guard !== undefined || tools.length > 0 || asked || at(plan, one, 'model') || at(plan, one, 'tool');
}

/** It can ask in its tools only. Rules and guards ask before the layers of a call begin. */
function asksInTools(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  const asksBefore = isAmong(plan.rules.beforeToolCall, one);
  return tools.length > 0 && !asksBefore && !guard?.on.includes('tool-args') && !at(plan, one, 'tool');
}

/** How to keep the time of a timeout from running while somebody is waited for; undefined where it does not run. */
function waitFix(plan: Plan, timeout: PlannedMiddleware, human: PlannedMiddleware): string | undefined {
  const swap = `Put "${timeout.name}" inside "${human.name}"`;
  const pause = 'leave ctx.pausedMs out of its time and declare the trait "pauses"';
  const inside = timeout.position < human.position;
  if (at(plan, timeout, 'run')) {
    if (runsFurtherIn(plan, human))
      return `Use limits.timeoutMs, which does not count the time people take: no other place of "${timeout.name}" helps.`;
    if (inside) return `${swap}, or use limits.timeoutMs, which does not count the time people take.`;
  }
  if (!at(plan, timeout, 'tool')) return undefined;
  if (asksInTools(plan, human)) return `No other place of "${timeout.name}" helps: ${pause}.`;
  return inside && at(plan, human, 'tool') ? `${swap}, or ${pause}.` : undefined;
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
  pairs('cache-outside-variation', has('caches'), has('varies'), ({ name: cache }, { name: varies }) => [
    `"${cache}" stands outside "${varies}", which changes each request: the cache key does not see the change.`,
    `Put "${varies}" outside "${cache}", or leave one out.`,
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
        : `"${transform.name}" changes text when all layers are done with it: "${cache.name}" stores it as it was before.`,
      transformFix(plan, transform, cache),
    ],
    changesOutside,
  ),
  pairs(
    'redaction-outside-sink',
    has('redacts'),
    writes,
    (redacts, sink) => [
      `"${redacts.name}" removes text when "${sink.name}" has been given it already.`,
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
          ? 'Leave it out of the `state` of the agent, under whose name it is stored now: what a middleware declares, all may read.'
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
  pairs('budget-inside-retry', has('retries'), has('budgets'), ({ name: retry }, { name: budget }) => [
    `"${budget}" stands inside "${retry}": it counts every attempt, and its refusals pass through the retry.`,
    `Put "${budget}" outside "${retry}" to count calls; the kernel's limits count attempts in any case.`,
  ]),
  pairs(
    'errors-settled-inside',
    (one) => has('retries')(one) || has('trips')(one),
    has('settles'),
    ({ name: outer }, { name: settles }) => [
      `"${settles}" stands inside "${outer}" and turns errors into results: "${outer}" never sees one.`,
      `Put "${settles}" outside "${outer}".`,
    ],
  ),
  pairs('settled-errors-kept', has('keeps'), has('settles'), ({ name: keeps }, { name: settles }) => [
    `"${settles}" stands inside "${keeps}" and turns errors into results, which "${keeps}" then keeps: the call is not tried again.`,
    `Put "${settles}" outside "${keeps}".`,
  ]),
  pairs(
    'breaker-outside-fallback',
    has('trips'),
    has('switches'),
    ({ name: breaker }, { name: fallback }) => [
      `"${breaker}" stands outside "${fallback}": it counts a failure only when every model has failed, and then refuses calls that another model would answer.`,
      `Put "${breaker}" inside "${fallback}".`,
    ],
  ),
  pairs('timeout-outside-breaker', has('times-out'), has('trips'), ({ name: timeout }, { name: breaker }) => [
    `"${timeout}" stands outside "${breaker}": what it cancels is no failure to "${breaker}", so calls that hang never open the circuit.`,
    `Put "${timeout}" inside "${breaker}".`,
  ]),
  each(
    'listed-twice',
    (one, plan) => plan.middleware.find(({ middleware }) => middleware === one.middleware) !== one,
    (name) => [
      `"${name}" is in the list already, as the same object: what it counts, stores or waits for, it does twice, and may wait for itself.`,
      'List it once, or make another one.',
    ],
  ),
  pairs(
    'told-apart-by-order',
    ({ middleware }) => ownsRunState(middleware),
    ({ middleware }) => ownsRunState(middleware),
    ({ name }, { name: twin }) => [
      `"${name}" and "${twin}" have no names of their own, and no options that tell them apart: no other process or agent can know whose the state of a run is, so only this one can resume its runs.`,
      'Give each a `name`.',
    ],
    (plan, outer, inner) => outer.position < inner.position && areAlike(plan, outer, inner),
  ),
  pairs(
    'timeout-outside-human',
    (one) => has('times-out')(one) && !has('pauses')(one),
    ({ middleware }) => middleware.suspends === true,
    (timeout, human, plan) => [
      `The time of "${timeout.name}" runs while "${human.name}" waits for a person.`,
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
              `"${name}" speaks of tool "${mentioned}", and there is none of that name: what it says of it does nothing.`,
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
