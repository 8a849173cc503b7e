/** Models by name: `openai/gpt-5`, `anthropic/claude-sonnet-4-5`, and schemes of your own. */
import { AlliumError, type Model, type ModelPart, type ModelRequest } from 'allium';
import { invalidOption } from 'allium/kit';
import { findModel, registered, registerModel } from 'allium/registry';
import { FROM_AI_SDK_OPTIONS, type FromAiSdkOptions, fromAiSdk, jsonModeOf } from './from-ai-sdk.js';
import type { AiSdkLanguageModel } from './language-model.js';
import { checkOptions, checkTypes } from './options.js';
import { BUILT_IN_SCHEMES } from './schemes.js';

export interface ResolveModelOptions extends FromAiSdkOptions {
  /** @default the variable of the scheme, such as OPENAI_API_KEY */
  readonly apiKey?: string;
  /** Where the server is. @default the provider's own, or the variable of the scheme, such as OPENAI_BASE_URL */
  readonly baseUrl?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Used instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/**
 * Makes a model from what follows the scheme in a name.
 *
 * Contract: it is called by `resolveModel`, once per call of it, and may throw at once (a key is missing). It returns
 * a model, or a function that loads one. That function is called at the first request and awaited; if it rejects,
 * that request fails, and the next one calls it again.
 */
export type ModelScheme = (
  id: string,
  options: ResolveModelOptions,
) => Model | AiSdkLanguageModel | (() => Promise<Model | AiSdkLanguageModel>);

/**
 * They are names of `allium/registry` as well, which asks this package for them; a name that is registered there
 * wins.
 */
const BUILT_IN: ReadonlyMap<string, ModelScheme> = new Map(BUILT_IN_SCHEMES);

const OPTIONS = [...FROM_AI_SDK_OPTIONS, 'apiKey', 'baseUrl', 'headers', 'fetch'];

/**
 * Lets `resolveModel` understand names that begin with `scheme/`. It is `registerModel` of `allium/registry` for
 * functions that make language models of the AI SDK: config files know the name from then on, too. Replaces a scheme
 * that is known already. Returns a function that undoes this.
 *
 * @example
 * registerModelScheme('ollama', (id) =>
 *   resolveModel(`openai-compatible/${id}@http://localhost:11434/v1`, { provider: 'ollama' }));
 */
export function registerModelScheme(scheme: string, make: ModelScheme): () => void {
  if (typeof scheme !== 'string' || !/^[a-z][a-z0-9.+-]*$/i.test(scheme))
    throw invalidOption('scheme', 'a name of letters, digits, dots, pluses and dashes', scheme);
  if (typeof make !== 'function') throw invalidOption('make', 'a function that makes a model', make);
  return registerModel(scheme, (options: ResolveModelOptions, { id }) => {
    checkTypes({ ...options });
    return modelOf(scheme, id, make, options);
  });
}

/**
 * The model of that name. The provider package is loaded at the first request; a missing key or address is reported
 * at once, a missing package then. Names that others registered with `allium/registry` are understood as well. If
 * their factory is async, the model has the name and price in `options`, or the name it was asked for.
 *
 * @example
 * new Agent({ model: resolveModel('anthropic/claude-sonnet-4-5') });
 */
export function resolveModel(name: string, options: ResolveModelOptions = {}): Model {
  const entry = typeof name === 'string' ? findModel(name) : undefined;
  const [, scheme, id] = (typeof name === 'string' && /^([^/]+)\/(.+)$/s.exec(name)) || [];
  if (!entry && (scheme === undefined || id === undefined))
    throw invalidOption('name', 'the name of a model, such as "openai/gpt-5"', name);
  if (!entry) throw noScheme(name, scheme!);
  const own = entry.builtIn ? BUILT_IN.get(entry.name) : undefined;
  if (own) {
    if (id === undefined) throw invalidOption('name', 'the name of a model, such as "openai/gpt-5"', name);
    checkOptions('resolveModel', options, OPTIONS);
    return modelOf(entry.name, id, own, options);
  }
  if (!entry.builtIn) checkOptions('resolveModel', options, OPTIONS);
  const context = { name, id: id ?? '', dir: undefined, load: (specifier: string) => import(specifier) };
  const made = entry.factory(options as never, context);
  if ('stream' in made) return made;
  const loading = Promise.resolve(made);
  loading.catch(() => {}); // The first request reports it.
  return lazyModel(scheme ?? name, id ?? name, () => loading, options);
}

function noScheme(name: string, scheme: string): AlliumError {
  const names = registered('model').map((one) => one.name);
  return new AlliumError(
    'INVALID_OPTION',
    `No scheme "${scheme}" for the model ${JSON.stringify(name)}. There are: ${names.join(', ')}. Add it with registerModelScheme(${JSON.stringify(scheme)}, …).`,
    { data: { name, scheme } },
  );
}

function modelOf(scheme: string, id: string, make: ModelScheme, options: ResolveModelOptions): Model {
  const made = make(id, options);
  return typeof made === 'function' ? lazyModel(scheme, id, made, options) : toModel(made, options);
}

function toModel(made: Model | AiSdkLanguageModel, options: ResolveModelOptions): Model {
  return 'doStream' in made ? fromAiSdk(made, adapterOptions(options)) : made;
}

function adapterOptions(options: ResolveModelOptions): FromAiSdkOptions {
  const kept = FROM_AI_SDK_OPTIONS.filter((key) => options[key] !== undefined);
  return Object.fromEntries(kept.map((key) => [key, options[key]]));
}

function lazyModel(
  scheme: string,
  id: string,
  load: () => Promise<Model | AiSdkLanguageModel>,
  options: ResolveModelOptions,
): Model {
  const named = { ...options, provider: options.provider ?? scheme, id: options.id ?? withoutAddress(id) };
  const { jsonMode = jsonModeOf(id) } = options;
  let model: Model | undefined;
  let loading: Promise<Model> | undefined;
  const loaded = (): Promise<Model> => {
    loading ??= load().then(
      (made) => {
        model = toModel(made, named);
        return model;
      },
      (error) => {
        loading = undefined;
        throw error;
      },
    );
    return loading;
  };
  return {
    provider: named.provider,
    id: named.id,
    ...(options.price && { price: options.price }),
    ...(jsonMode !== undefined && { jsonMode }),
    stream(request, call) {
      return model ? model.stream(request, call) : afterLoading(loaded, request, call);
    },
  };
}

async function* afterLoading(
  loaded: () => Promise<Model>,
  request: ModelRequest,
  call: { readonly signal: AbortSignal },
): AsyncGenerator<ModelPart> {
  const model = await loaded();
  yield* model.stream(request, call);
}

/** `llama3.2@http://localhost:11434/v1` is the model llama3.2. */
function withoutAddress(id: string): string {
  return id.replace(/@https?:\/\/.*$/s, '');
}
