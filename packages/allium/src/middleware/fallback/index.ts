/** Asks another model when the one that was asked has failed for good. */

import {
  AlliumError,
  attribution,
  defineMiddleware,
  defineState,
  isTransient,
  type Middleware,
  type Model,
  type ModelContext,
  type ModelSettings,
  modelName,
  type ToolContext,
} from '../../index.js';
import {
  type ErrorClass,
  errorTest,
  type Fields,
  invalidOption,
  kinds,
  messageOf,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  safeErrorMessage,
} from '../../kit/index.js';

const LIST = kinds.listOf(kinds.model<Model>());

/** Each once: the next one is found by the position of the last one. */
const MODELS = kinds.kind<readonly Model[]>(
  'a list of at least one model',
  (value) => Array.isArray(value) && value.length > 0,
  {
    inside(models: readonly Model[], option) {
      const wrong = LIST.inside?.(models, option);
      if (wrong) return wrong;
      const twice = models.findIndex((model, index) => models.indexOf(model) !== index);
      if (twice === -1) return undefined;
      return invalidOption(
        `models[${twice}]`,
        'a model that is not in the list already',
        modelName(models[twice]!),
      );
    },
    schema: { type: 'array', items: kinds.NAMED.model, minItems: 1 },
  },
);

export const OPTIONS = {
  /** Asked in order when the model of the call fails. At least one, each once. */
  models: kinds.required(MODELS),
  /**
   * Which errors are worth another model: a function, or an error class (subclasses count too). Never asked
   * about stops, suspensions and aborts. @default mayFallBack
   */
  on: kinds.withDefault(
    kinds.errorFilter<((error: unknown, ctx: ModelContext) => boolean | Promise<boolean>) | ErrorClass>(),
    mayFallBack,
  ),
  /** Stay with the new model for the rest of the run, after a resume too. @default false */
  sticky: kinds.withDefault(kinds.flag, false),
  ...named('fallback'),
} satisfies Fields;

export interface FallbackOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/** Thrown when every model failed: `cause` is the first error, `errors` are all of them in order. */
export interface FallbackError extends AlliumError {
  readonly code: 'FALLBACK_EXHAUSTED';
  readonly errors: readonly unknown[];
  /** True if one of the errors is transient, so a retry further out has something to do. */
  readonly isRetryable: boolean;
}

/** Errors of middleware that say "not this model, not now". */
const BUSY: readonly unknown[] = ['CIRCUIT_OPEN', 'RATE_LIMITED', 'CONCURRENCY_LIMITED'];

/**
 * Yes to any error from a model, anything transient, and the refusals of breakers and limiters. No to bugs of a
 * middleware.
 */
export function mayFallBack(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return true;
  // For a fallback further in: the last error ended it.
  const { code, errors } = error as Partial<FallbackError>;
  if (code === 'FALLBACK_EXHAUSTED' && Array.isArray(errors)) return mayFallBack(errors.at(-1));
  return attribution(error)?.hook === 'model' || isTransient(error) || BUSY.includes(code);
}

/**
 * Calls the next model of the list when everything further in has given up on the one before. When none is left, it
 * throws an error with the first failure as its cause and all of them in `errors`.
 *
 * @example
 * new Agent({ model, middleware: [fallback({ models: [spare] })] });
 */
export function fallback(options: FallbackOptions): Middleware {
  const { models, sticky, name, madeWith, ...settings } = readOptions('fallback', OPTIONS, options);
  const on = errorTest('on', settings.on);
  const chain = [...models];
  // The cell holds the name and not the position in the list, which may differ after a resume.
  const current = defineState<string | null>({ name: 'model', scope: 'run', initial: null });
  const failures = new WeakMap<object, { readonly model: string; readonly error: unknown }[]>();

  return defineMiddleware({
    name,
    madeWith,
    // A function of yours may look at anything.
    looksBack: options?.on ? undefined : 0,
    seams: ['model'],
    traits: ['retries', 'switches'],
    ...(sticky && {
      state: [current],
      beforeModel(ctx: ModelContext) {
        const name = ctx.state.get(current);
        const kept = name === null ? undefined : chain.find((model) => modelName(model) === name);
        if (kept) switchTo(ctx, kept);
      },
    }),
    async onError(given: ModelContext | ToolContext, error) {
      // The context of this layer is the same object for all attempts of a call, and differs between calls.
      const ctx = given as ModelContext;
      const failed = failures.get(ctx) ?? [];
      failures.set(ctx, failed);
      const from = modelName(ctx.model);
      failed.push({ model: from, error });
      const next = chain[chain.indexOf(ctx.model) + 1];
      if (next === undefined || !(await on(error, ctx))) {
        if (failed.length === 1) return undefined;
        throw exhausted(failed);
      }
      switchTo(ctx, next);
      if (sticky) ctx.state.set(current, modelName(next));
      ctx.emit('fallback', { from, to: modelName(next), error: safeErrorMessage(error, ctx) });
      return 'fallback';
    },
  });
}

/** The settings before a switch: they may hold options for the provider of the next model. */
const whole = new WeakMap<ModelSettings, ModelSettings>();

/** Options for other providers are removed. */
function switchTo(ctx: ModelContext, model: Model): void {
  ctx.model = model;
  const given = whole.get(ctx.settings) ?? ctx.settings;
  const { provider, ...rest } = given;
  if (provider === undefined) return;
  const own = provider[model.provider];
  const settings: ModelSettings = own === undefined ? rest : { ...rest, provider: { [model.provider]: own } };
  whole.set(settings, given);
  ctx.settings = settings;
}

function exhausted(failed: readonly { readonly model: string; readonly error: unknown }[]): FallbackError {
  const errors = failed.map(({ error }) => error);
  const list = failed.map(({ model, error }) => `${model}: ${messageOf(error)}`).join('; ');
  const error = new AlliumError('FALLBACK_EXHAUSTED', `None of ${failed.length} models answered. ${list}`, {
    cause: errors[0],
    data: { models: failed.map(({ model }) => model) },
  });
  return Object.assign(error, { errors, isRetryable: errors.some(isTransient) }) as FallbackError;
}
