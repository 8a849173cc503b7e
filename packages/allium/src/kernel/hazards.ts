/** Combinations that work and still surprise. Found from what middleware declare, never from their names. */
import { SEAMS } from './check-middleware.js';
import type { Plan, PlannedMiddleware } from './compose.js';
import type { Layer } from './layer.js';
import type { GuardPoint, Seam } from './middleware.js';
import type { RuleHook } from './rules.js';

export interface Hazard {
  readonly id: string;
  /** The middleware (or hook) involved, outermost first. */
  readonly between: readonly string[];
  readonly message: string;
  readonly fix: string;
}

export function findHazards(plan: Plan): readonly Hazard[] {
  return CHECKS.flatMap((check) => check(plan));
}

const has = (trait: string) => (one: PlannedMiddleware) => one.middleware.traits?.includes(trait) ?? false;

function at(plan: Plan, one: PlannedMiddleware, seam: Seam): boolean {
  return plan.layers[seam].some((layer) => layer.position === one.position);
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

function nestedLayers(plan: Plan, outer: PlannedMiddleware, inner: PlannedMiddleware): boolean {
  return (
    outer.position < inner.position && SEAMS.some((seam) => at(plan, outer, seam) && at(plan, inner, seam))
  );
}

/** Every pair of an outer and an inner middleware with these properties of which one stands inside the other. */
function nestedPairs(
  plan: Plan,
  outer: Is,
  inner: Is,
  nested: Nested,
): (readonly [PlannedMiddleware, PlannedMiddleware])[] {
  return plan.middleware
    .filter(outer)
    .flatMap((out) =>
      plan.middleware
        .filter((one) => one !== out && inner(one) && nested(plan, out, one) && !intended(out, one))
        .map((one) => [out, one] as const),
    );
}

/** The names of those whose layers stand inside each other. */
function pairs(plan: Plan, outer: Is, inner: Is): (readonly [string, string])[] {
  return nestedPairs(plan, outer, inner, nestedLayers).map(([out, one]) => [out.name, one.name]);
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
function placesAt(plan: Plan, { position }: PlannedMiddleware, seam: Seam, counts = seesResponses): number[] {
  const { rule } = RESPONSES[seam];
  const asked = rule !== undefined && plan.rules[rule].some((member) => member.position === position);
  const wraps = plan.layers[seam].some((layer) => layer.position === position && counts(layer));
  return [...(asked ? [-1 - position] : []), ...(wraps ? [position] : [])];
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

const changes: Is = (one) => has('transforms')(one) || has('redacts')(one);

function changesOutside(plan: Plan, outer: PlannedMiddleware, inner: PlannedMiddleware): boolean {
  return SEAMS.some(
    (seam) => at(plan, inner, seam) && changesAt(plan, outer, seam).some((place) => place < inner.position),
  );
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

// ── Who waits for people ─────────────────────────────────────────────────────────────────────────────────────

/** Something of it runs inside every layer around the run: rules, guards, tools, and layers around calls. */
function runsFurtherIn(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  return (
    guard !== undefined ||
    tools.length > 0 ||
    hasRule(plan, one) ||
    at(plan, one, 'model') ||
    at(plan, one, 'tool')
  );
}

function hasRule(plan: Plan, { position }: PlannedMiddleware): boolean {
  return Object.values(plan.rules).some((members) => members.some((member) => member.position === position));
}

/** It can ask in its tools only. Rules and guards ask before the layers of a call begin. */
function asksInTools(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  const asksBefore = plan.rules.beforeToolCall.some(({ position }) => position === one.position);
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

const CHECKS: readonly ((plan: Plan) => Hazard[])[] = [
  function twoConverters(plan) {
    const names = plan.rules.convertToLlm.map(({ name }) => name);
    if (names.length < 2) return [];
    return [
      {
        id: 'two-convert-to-llm',
        between: names,
        message: `${names.length} middleware convert messages for the model; only "${names.at(-1)}" runs.`,
        fix: 'Merge them into one that calls both, or use transformContext, which chains.',
      },
    ];
  },
  function hookReplaced(plan) {
    return plan.replaced.map(({ hook, names }) => ({
      id: 'hook-replaced',
      between: names,
      message: `The agent's own ${hook} replaces that of ${names.map((name) => `"${name}"`).join(', ')}.`,
      fix:
        hook === 'convertToLlm'
          ? 'Only one converts in any case: merge them into one that calls both, or use transformContext, which chains.'
          : 'Pass it as a middleware to have both.',
    }));
  },
  function unsafeToolRetry(plan) {
    const unsafe = plan.tools.filter((tool) => !tool.idempotent).map(({ name }) => name);
    if (unsafe.length === 0) return [];
    return plan.middleware
      .filter((one) => has('retries')(one) && at(plan, one, 'tool'))
      .map(({ name }) => ({
        id: 'retry-of-unsafe-tool',
        between: [name],
        message: `"${name}" may run ${unsafe.map((tool) => `"${tool}"`).join(', ')} twice, which ${unsafe.length > 1 ? 'are' : 'is'} not declared idempotent.`,
        fix: 'Declare idempotent: true where running twice does no harm, or retry other tools only.',
      }));
  },
  function cacheOutsideVariation(plan) {
    return pairs(plan, has('caches'), has('varies')).map(([cache, varies]) => ({
      id: 'cache-outside-variation',
      between: [cache, varies],
      message: `"${cache}" stands outside "${varies}", which changes each request: the cache key does not see the change.`,
      fix: `Put "${varies}" outside "${cache}", or leave one out.`,
    }));
  },
  function cacheOutsideConversion(plan) {
    const converter = plan.rules.convertToLlm.at(-1);
    const converts: Is = (one) => has('varies')(one) && one.position === converter?.position;
    const nested: Nested = (_, cache, one) => at(plan, cache, 'model') && !nestedLayers(plan, cache, one);
    return nestedPairs(plan, has('caches'), converts, nested).map(([{ name: cache }, { name: varies }]) => ({
      id: 'cache-outside-variation',
      between: [cache, varies],
      message: `"${varies}" changes each request in convertToLlm, which runs inside "${cache}" wherever it stands: the cache key does not see the change.`,
      fix: 'Change the request in transformContext, which comes before every cache, or leave one out.',
    }));
  },
  function transformOutsideCache(plan) {
    return nestedPairs(plan, changes, has('caches'), changesOutside).map(([transform, cache]) => ({
      id: 'transform-outside-cache',
      between: [transform.name, cache.name],
      message: nestedLayers(plan, transform, cache)
        ? `"${transform.name}" stands outside "${cache.name}", which therefore stores the text as it was before.`
        : `"${transform.name}" changes text when all layers are done with it: "${cache.name}" stores it as it was before.`,
      fix: transformFix(plan, transform, cache),
    }));
  },
  function redactionOutsideSink(plan) {
    const writes: Is = (one) =>
      (one.middleware.sink === true || has('exports')(one) || has('keeps')(one)) && !has('caches')(one);
    const redactsOutside: Nested = (_, outer, sink) =>
      SEAMS.some((seam) =>
        placesAt(plan, sink, seam).some((inner) =>
          changesAt(plan, outer, seam).some((place) => place < inner),
        ),
      );
    return nestedPairs(plan, has('redacts'), writes, redactsOutside).map(([redacts, sink]) => ({
      id: 'redaction-outside-sink',
      between: [redacts.name, sink.name],
      message: `"${redacts.name}" removes text when "${sink.name}" has been given it already.`,
      fix: guardInstead(redacts, sink),
    }));
  },
  function sharedCell(plan) {
    const found: Hazard[] = [];
    for (const [cell, key] of plan.cells) {
      const owners = plan.middleware.filter(({ middleware }) => middleware.state?.includes(cell));
      // A cell is stored under the name of the first that declares it, and the agent comes first.
      const isOfAgent = key === `agent:${cell.name}` && owners[0]?.middleware.name !== 'agent';
      const between = [...(isOfAgent ? ['agent'] : []), ...owners.map(({ name }) => name)];
      if (between.length < 2) continue;
      const names = [...(isOfAgent ? ['the agent'] : []), ...owners.map(({ name }) => `"${name}"`)];
      found.push({
        id: 'shared-cell',
        between,
        message: `State cell "${cell.name}" is declared by ${names.join(' and ')}.`,
        fix: isOfAgent
          ? 'Leave it out of the `state` of the agent, under whose name it is stored now: what a middleware declares, all may read.'
          : 'Let one middleware own the cell and the others read it.',
      });
    }
    return found;
  },
  function budgetInsideRetry(plan) {
    return pairs(plan, has('retries'), has('budgets')).map(([retry, budget]) => ({
      id: 'budget-inside-retry',
      between: [retry, budget],
      message: `"${budget}" stands inside "${retry}": it counts every attempt, and its refusals pass through the retry.`,
      fix: `Put "${budget}" outside "${retry}" to count calls; the kernel's limits count attempts in any case.`,
    }));
  },
  function errorsSettledInside(plan) {
    const needsErrors: Is = (one) => has('retries')(one) || has('trips')(one);
    return pairs(plan, needsErrors, has('settles')).map(([outer, settles]) => ({
      id: 'errors-settled-inside',
      between: [outer, settles],
      message: `"${settles}" stands inside "${outer}" and turns errors into results: "${outer}" never sees one.`,
      fix: `Put "${settles}" outside "${outer}".`,
    }));
  },
  function settledErrorsKept(plan) {
    return pairs(plan, has('keeps'), has('settles')).map(([keeps, settles]) => ({
      id: 'settled-errors-kept',
      between: [keeps, settles],
      message: `"${settles}" stands inside "${keeps}" and turns errors into results, which "${keeps}" then keeps: the call is not tried again.`,
      fix: `Put "${settles}" outside "${keeps}".`,
    }));
  },
  function breakerOutsideFallback(plan) {
    return pairs(plan, has('trips'), has('switches')).map(([breaker, fallback]) => ({
      id: 'breaker-outside-fallback',
      between: [breaker, fallback],
      message: `"${breaker}" stands outside "${fallback}": it counts a failure only when every model has failed, and then refuses calls that another model would answer.`,
      fix: `Put "${breaker}" inside "${fallback}".`,
    }));
  },
  function timeoutOutsideBreaker(plan) {
    return pairs(plan, has('times-out'), has('trips')).map(([timeout, breaker]) => ({
      id: 'timeout-outside-breaker',
      between: [timeout, breaker],
      message: `"${timeout}" stands outside "${breaker}": what it cancels is no failure to "${breaker}", so calls that hang never open the circuit.`,
      fix: `Put "${timeout}" inside "${breaker}".`,
    }));
  },
  function listedTwice(plan) {
    const { middleware: all } = plan;
    return all
      .filter((one, i) => all.findIndex(({ middleware }) => middleware === one.middleware) < i)
      .map(({ name }) => ({
        id: 'listed-twice',
        between: [name],
        message: `"${name}" is in the list already, as the same object: what it counts, stores or waits for, it does twice, and may wait for itself.`,
        fix: 'List it once, or make another one.',
      }));
  },
  function timeoutOutsideHuman(plan) {
    const counts: Is = (one) => has('times-out')(one) && !has('pauses')(one);
    const asks: Is = ({ middleware }) => middleware.suspends === true;
    const runsOn: Nested = (_, timeout, human) => waitFix(plan, timeout, human) !== undefined;
    return nestedPairs(plan, counts, asks, runsOn).map(([timeout, human]) => ({
      id: 'timeout-outside-human',
      between: [timeout.name, human.name],
      message: `The time of "${timeout.name}" runs while "${human.name}" waits for a person.`,
      fix: waitFix(plan, timeout, human)!,
    }));
  },
  function undeclaredSink(plan) {
    return plan.middleware
      .filter((one) => has('exports')(one) && one.middleware.sink !== true)
      .map(({ name }) => ({
        id: 'undeclared-sink',
        between: [name],
        message: `"${name}" writes content elsewhere but is not declared a sink: it sees text before the guards have judged it.`,
        fix: 'Declare sink: true, or make it an observer.',
      }));
  },
];
