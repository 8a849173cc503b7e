/** The innermost layer of a bench: gives each turn its answer and notes what reached the model and the tools. */

import type { Middleware, Model, ModelSettings } from '../../index.js';
import { deepFreeze } from '../../kit/index.js';
import { play, snapshot, toStep } from '../scripted-model.js';
import type { Activity, Waits } from './activity.js';
import type { Seen } from './observation.js';
import type { KitScenario } from './scenarios.js';

export interface OnBench extends Waits {
  readonly model: Model;
  /** The model to answer with when a middleware has wrapped the bench's own, by the settings of the request. */
  readonly wrapped: WeakMap<ModelSettings, Model>;
  readonly signal: AbortSignal;
  readonly freeze: boolean;
  readonly activity: Activity;
}

export function scenarioLayer(
  { answers, stopsAtModel }: KitScenario,
  seen: Seen,
  { model, wrapped, signal, freeze, activity, tick, hang }: OnBench,
): Middleware {
  const modelOf = (turn: number): Model => ({
    ...model,
    stream(request, options) {
      activity.calls++;
      seen.requests.push({ turn, request: snapshot(request) });
      // A call after an abort is answered at once, so that only the law about such calls notices.
      const step = toStep(signal.aborted ? 'Done.' : (answers[turn - 1] ?? 'Done.'));
      // Copies, so that changing one spoils neither the scenario nor the next attempt.
      const parts = step.parts.map((part) =>
        part === 'tick' ? part : freeze ? deepFreeze({ ...part }) : { ...part },
      );
      return play({ ...step, parts }, { options, tick, hang });
    },
  });
  return {
    name: 'scenario',
    looksBack: 0,
    wrapModel(ctx, next) {
      activity.steps++;
      if (stopsAtModel) ctx.stop('stopped', 'The bench stops the run.');
      if (ctx.model === model) return next({ model: modelOf(ctx.turn) });
      if (ctx.model.provider !== model.provider || ctx.model.id !== model.id) return next();
      // A middleware wrapped the model in one of its own, which has to be called too.
      const settings = Object.freeze({ ...ctx.settings });
      wrapped.set(settings, modelOf(ctx.turn));
      return next({ settings });
    },
    wrapTool({ turn, toolCall: { id, name }, args }, next) {
      activity.steps++;
      seen.toolRuns.push({ turn, id, name, args });
      return next();
    },
    beforeToolCall: (ctx) =>
      ctx.toolCall.name === 'kit_refused' ? { block: true, reason: 'Refused.' } : undefined,
  };
}
