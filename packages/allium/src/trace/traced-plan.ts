/**
 * A plan whose hooks report what they did to the recorder of their run. Only traced runs use it, so other runs pay
 * nothing.
 */

import type { Context, Guard, Plan, RuleHook, Seam } from '../index.js';
import { callParts, isThenable, type Layer, type PlannedGuard, type PlannedHook } from '../kit/index.js';
import { RULE_ACTS, recordAnswer, recordFailure, recordWrites } from './acts.js';
import { type LayerContext, PlainCall, recorderOf } from './hook-call.js';
import type { Slot } from './kept-acts.js';
import { TracedWrap } from './traced-wrap.js';

export interface TracedPlan extends Plan {
  readonly slots: readonly Slot[];
}

export function tracedPlan(plan: Plan): TracedPlan {
  const slots: Slot[] = [];
  const slot = (by: string, hook: string, seam?: Seam): Slot => {
    const known = slots.find((one) => one.by === by && one.hook === hook && one.seam === seam);
    if (known) return known;
    const made = { index: slots.length, by, hook, step: `${by}\n${hook}`, ...(seam && { seam }) };
    slots.push(made);
    return made;
  };
  const { layers, rules } = plan;
  const at = (seam: Seam): Layer[] => layers[seam].map((layer) => tracedLayer(layer, seam, slot));
  const hooks = Object.entries(rules).map(([hook, list]) => [
    hook,
    list.map((planned) => tracedRule(planned, slot(planned.name, hook))),
  ]);
  const guards = tracedGuards(plan, slot);
  return {
    ...plan,
    layers: { run: at('run'), model: at('model'), tool: at('tool') },
    rules: Object.fromEntries(hooks) as Record<RuleHook, PlannedHook[]>,
    guards,
    slots,
  };
}

type MakeSlot = (by: string, hook: string, seam?: Seam) => Slot;

// ── Layers ───────────────────────────────────────────────────────────────────────────────────────────────────

function tracedLayer(layer: Layer, seam: Seam, slot: MakeSlot): Layer {
  const { name, hooks, wrap, before, after, onError } = layer;
  const first = slot(name, hooks[0]!, seam);
  return {
    ...layer,
    wrap: wrap && ((ctx, next) => TracedWrap.run(first, ctx, wrap, next)),
    before: before && tracedHalf(before, first),
    after: after && tracedHalf(after, slot(name, hooks.at(-1)!, seam)),
    onError: onError && tracedCatch(onError, first),
  };
}

/** A `before` or `after` hook. */
function tracedHalf(hook: Hook, slot: Slot): (ctx: LayerContext) => unknown {
  return (ctx) => timed(slot, ctx, hook, ctx, undefined, halfEnded);
}

function halfEnded(call: PlainCall): void {
  const { result } = call.ctx as LayerContext;
  if (call.result !== result) recordAnswer(call, call.result, result);
}

function tracedCatch(onError: Hook, slot: Slot): (ctx: LayerContext, error: unknown) => unknown {
  return (ctx, error) =>
    timed(slot, ctx, onError, ctx, error, (call, action) => {
      if (action === 'retry' || action === 'fallback' || action === 'restart')
        call.add('retried', { error: call.recorder.telling.error(error, ctx) });
    });
}

type Hook = (subject: any, given?: any) => unknown;

/** Records what a hook did. It may return a frozen copy of the answer to use instead. */
type Ended = (call: PlainCall, answer: unknown) => unknown;

/** Calls a hook, measures it and records the outcome. */
function timed(
  slot: Slot,
  ctx: Context,
  hook: Hook,
  subject: unknown,
  given: unknown,
  ended: Ended,
): unknown {
  const call = new PlainCall(slot, ctx, subject);
  let answer: unknown;
  try {
    answer = given === undefined ? hook(subject) : hook(subject, given);
  } catch (error) {
    return threw(call, error);
  }
  if (!isThenable(answer)) return over(call, answer, ended);
  return answer.then(
    (value) => over(call, value, ended),
    (error) => threw(call, error),
  );
}

function over(call: PlainCall, answer: unknown, ended: Ended): unknown {
  call.end();
  try {
    const parts = callParts(call.ctx);
    if (parts !== call.parts) recordWrites(call, parts);
    return ended(call, answer) ?? answer;
  } catch {
    // Recording never fails a run: an invalid value is reported where the kernel checks it.
    return answer;
  }
}

function threw(call: PlainCall, error: unknown): never {
  call.end();
  call.recorder.quietly(() => recordFailure(call, error));
  throw error;
}

// ── Rules and guards ─────────────────────────────────────────────────────────────────────────────────────────

function tracedRule(planned: PlannedHook, slot: Slot): PlannedHook {
  const { fn, hook } = planned;
  const look = RULE_ACTS[hook];
  const ended: Ended = (call, answer) => {
    if (answer === undefined && call.result === (call.ctx as LayerContext).result) return undefined;
    return look(call, answer);
  };
  return {
    ...planned,
    fn: (subject: any, given?: any) => timed(slot, given ?? subject, fn, subject, given, ended),
  };
}

/** A guard is asked at several points, and is one slot for all of them. */
function tracedGuards(plan: Plan, slot: MakeSlot): Plan['guards'] {
  const known = new Map<Guard, Guard>();
  const traced = (planned: PlannedGuard): PlannedGuard => {
    const { guard, name } = planned;
    const made = known.get(guard) ?? tracedGuard(guard, slot(name, 'guard'));
    known.set(guard, made);
    return { ...planned, guard: made };
  };
  const points = Object.entries(plan.guards).map(([point, guards]) => [point, guards.map(traced)]);
  return Object.fromEntries(points) as Plan['guards'];
}

function tracedGuard(guard: Guard, slot: Slot): Guard {
  const measured =
    (method: (...args: any[]) => unknown) =>
    (subject: unknown, about: { readonly context: Context }): unknown => {
      const recorder = recorderOf(about.context);
      if (recorder.telling.asks) return method.call(guard, subject, about);
      const started = recorder.now();
      const over = (): void => recorder.judged(slot, recorder.now() - started);
      let answer: unknown;
      try {
        answer = method.call(guard, subject, about);
      } catch (error) {
        over();
        throw error;
      }
      if (!isThenable(answer)) {
        over();
        return answer;
      }
      return (answer as Promise<unknown>).then(
        (verdict) => {
          over();
          return verdict;
        },
        (error) => {
          over();
          throw error;
        },
      );
    };
  const { find, judge } = guard;
  return Object.create(guard, {
    ...(find && { find: { value: measured(find), enumerable: true } }),
    ...(judge && { judge: { value: measured(judge), enumerable: true } }),
  });
}
