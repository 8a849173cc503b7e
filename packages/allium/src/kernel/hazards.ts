/** Combinations that work and still surprise. Found from what middleware declare, never from their names. */
import type { Plan, PlannedMiddleware } from './compose.js';
import type { Seam } from './middleware.js';

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

function shareSeam(plan: Plan, a: PlannedMiddleware, b: PlannedMiddleware): boolean {
  return (['run', 'model', 'tool'] as const).some((seam) => at(plan, a, seam) && at(plan, b, seam));
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

/** Every pair of an outer and an inner middleware with these properties whose layers stand inside each other. */
function pairs(plan: Plan, outer: Is, inner: Is, nested = shareSeam): (readonly [string, string])[] {
  return plan.middleware
    .filter(outer)
    .flatMap((out) =>
      plan.middleware
        .filter(
          (one) => one.position > out.position && inner(one) && nested(plan, out, one) && !intended(out, one),
        )
        .map((one) => [out.name, one.name] as const),
    );
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
      fix: 'Pass it as a middleware to have both.',
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
  function transformOutsideCache(plan) {
    return pairs(plan, has('transforms'), has('caches')).map(([transform, cache]) => ({
      id: 'transform-outside-cache',
      between: [transform, cache],
      message: `"${transform}" stands outside "${cache}", which therefore stores the text as it was before.`,
      fix: `Put "${transform}" inside "${cache}" if the stored text should be changed too; for safety use a guard.`,
    }));
  },
  function sharedCell(plan) {
    const found: Hazard[] = [];
    for (const cell of plan.cells.keys()) {
      const owners = plan.middleware
        .filter(({ middleware }) => middleware.state?.includes(cell))
        .map(({ name }) => name);
      if (owners.length > 1)
        found.push({
          id: 'shared-cell',
          between: owners,
          message: `State cell "${cell.name}" is declared by ${owners.map((name) => `"${name}"`).join(' and ')}.`,
          fix: 'Let one middleware own the cell and the others read it.',
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
    return pairs(
      plan,
      has('times-out'),
      ({ middleware }) => middleware.suspends === true,
      // Rules are asked before the layers of a tool begin: only a layer that asks does so while their time runs.
      (_, out, human) => at(plan, out, 'run') || (at(plan, out, 'tool') && at(plan, human, 'tool')),
    ).map(([timeout, human]) => ({
      id: 'timeout-outside-human',
      between: [timeout, human],
      message: `"${timeout}" stands outside "${human}", which may wait for a person.`,
      fix: `Put "${timeout}" inside "${human}".`,
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
