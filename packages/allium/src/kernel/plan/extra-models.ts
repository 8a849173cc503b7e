/** The models that middleware declare in `extraLlmCalls()` because they call them themselves. */

import { AlliumError, shown } from '../lib/errors.js';
import type { Model } from '../messages/model.js';
import type { Plan } from '../protocol/middleware.js';

/** A model, and the middleware that may call it. */
export interface ExtraModel {
  readonly by: string;
  readonly model: Model;
}

export function extraModels(plan: Plan): readonly ExtraModel[] {
  return plan.middleware.flatMap(({ name: by, middleware }) => {
    if (!middleware.extraLlmCalls) return [];
    return [...middleware.extraLlmCalls()].map((model) => {
      if (typeof model?.id === 'string' && typeof model.provider === 'string') return { by, model };
      throw new AlliumError(
        'INVALID_MIDDLEWARE',
        `Middleware "${by}": \`extraLlmCalls\` must return models, got ${shown(model)} among them.`,
      );
    });
  });
}
