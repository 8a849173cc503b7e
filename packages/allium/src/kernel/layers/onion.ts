/** The onion. A middleware is compiled into up to four layers: process, a before/after pair, wrap, and its catch. */

import type { LayerContext } from '../context/context.js';
import type { Tracer } from '../context/tracing.js';
import type { Plan } from '../protocol/middleware.js';
import type { Layer } from '../protocol/plan.js';
import type { Awaitable } from '../protocol/store.js';
import { aroundRun } from './around-run.js';
import { runPairs } from './before-after.js';
import type { Inward } from './layer.js';
import { runCatch } from './on-error.js';
import { runWrap } from './run-wrap.js';

/** A plan with its onions, made with the first call. */
export interface ComposedPlan extends Plan {
  readonly onions: { run: Onion | undefined; model: Onion | undefined; tool: Onion | undefined };
}

const reportingPlans = new WeakMap<ComposedPlan, ComposedPlan>();

/** The plan of a run that is traced. Made once for each plan. */
export function reportingPlan(plan: ComposedPlan, tracer: Tracer): ComposedPlan {
  let made = reportingPlans.get(plan);
  if (!made) {
    made = Object.freeze({
      ...tracer.plan(plan),
      onions: { run: undefined, model: undefined, tool: undefined },
    });
    reportingPlans.set(plan, made);
  }
  return made;
}

/** The layers of a seam and what is inside them. It holds nothing of a call, so one serves every call of a plan. */
export class Onion implements Inward {
  constructor(
    readonly layers: readonly Layer[],
    private readonly final: (ctx: any) => Awaitable<unknown>,
  ) {}

  enter(i: number, ctx: LayerContext): Awaitable<unknown> {
    const layer = this.layers[i];
    const { ended } = ctx._call;
    if (ended !== undefined && i > 0) {
      // No layer further in begins. A stopped run still has a result, which the loop makes.
      if (ctx.seam !== 'run') throw ended;
      return this.final(ctx);
    }
    if (layer === undefined) return this.final(ctx);
    ctx._position = layer.position;
    const { judgements } = ctx._run;
    // A sink gets nothing that the guards have not judged.
    if (layer.sink && judgements.hasUnjudgedArguments(ctx))
      return judgements.judgeAssigned(ctx).then(() => this.through(layer, i, ctx));
    return this.through(layer, i, ctx);
  }

  private through(layer: Layer, i: number, ctx: LayerContext): Awaitable<unknown> {
    if (layer.kind === 'wrap') return runWrap(this, layer, i, ctx);
    if (layer.kind === 'catch') return runCatch(this, layer, i, ctx);
    return ctx.seam === 'run' ? aroundRun(this, layer, i, ctx) : runPairs(this, i, ctx);
  }
}
