/** Models by name: `offline`, `openai/gpt-5`, and registered ones. The part before the slash decides. */
import { invalidOption } from '../kernel/lib/errors.js';
import type { Model } from '../kernel/messages/model.js';
import { offlineModel } from '../models/offline/index.js';
import {
  type Entry,
  type Factory,
  type FactoryContext,
  loadPackage,
  type RegisterOptions,
  Registry,
  type ResolveContext,
} from './registry.js';

/** Where the providers of the AI SDK are. */
const AI_SDK = '@allium/ai-sdk';

const PRICE = {
  description: 'US dollars per million tokens, for cost limits.',
  type: 'object',
  properties: Object.fromEntries(
    ['input', 'output', 'cacheRead', 'cacheWrite'].map((key) => [key, { type: 'number' }]),
  ),
  required: ['input', 'output'],
  additionalProperties: false,
} as const;

/**
 * Options of `resolveModel` of that package, which checks them. `fetch` and tools may be code: `{ import = "./x.mjs"
 * }`.
 */
const AI_SDK_OPTIONS = {
  type: 'object',
  properties: {
    apiKey: { description: 'Default: the variable of the provider, such as OPENAI_API_KEY', type: 'string' },
    baseUrl: { description: 'Where the server is.', type: 'string' },
    headers: { type: 'object', additionalProperties: { type: 'string' } },
    price: PRICE,
    provider: { description: 'The name of the provider in messages and prices.', type: 'string' },
    id: { description: 'The name of the model in messages and prices.', type: 'string' },
    providerTools: { description: 'Tools the provider defines, by name.', type: 'object' },
    systemOptions: { description: 'Options of the system prompt by provider.', type: 'object' },
    callOptions: { description: 'Further options of every call.', type: 'object' },
    optionKeys: {
      description: 'Further providers whose options this model may see.',
      type: 'array',
      items: { type: 'string' },
    },
    acceptUnfinished: {
      description: 'Takes an answer without a finish reason as complete. Default: false',
      type: 'boolean',
    },
    fetch: { description: 'Used instead of the global `fetch`.', type: 'object' },
  },
  additionalProperties: false,
} as const;

const OFFLINE_OPTIONS = { type: 'object', properties: { price: PRICE }, additionalProperties: false };

const registry = new Registry<Model>(
  'model',
  [
    {
      name: 'offline',
      optionsSchema: OFFLINE_OPTIONS,
      // At once, so that `resolveModel` of the adapter has its name and price.
      factory: (options) => offlineModel(options),
    },
    ...['openai', 'anthropic', 'google', 'openai-compatible'].map((name) => ({
      name,
      optionsSchema: AI_SDK_OPTIONS,
      factory: async (options: never, context: FactoryContext) => {
        const { resolveModel: resolve } = await loadPackage(context, AI_SDK);
        return (resolve as (name: string, options: object) => Model)(`${name}/${context.id}`, options);
      },
    })),
  ],
  (made) => typeof made?.stream === 'function',
);

/**
 * Lets `resolveModel`, config files and `@allium/ai-sdk` find models by name: by the whole name, or by the part
 * before its first slash; then `context.id` is the rest. Returns a function that undoes this.
 *
 * @example
 * registerModel('parrot', (_options, { id }) => parrot(id));
 */
export function registerModel(
  name: string,
  factory: Factory<Model>,
  options: RegisterOptions = {},
): () => void {
  return registry.register(name, factory, options);
}

/**
 * Makes the model of that name.
 *
 * @example
 * const model = await resolveModel('offline');
 */
export async function resolveModel(
  name: string,
  options: object = {},
  context: ResolveContext = {},
): Promise<Model> {
  return registry.resolve(name, options, context, findModel(name));
}

/** The entry that makes the model of that name. For adapters that resolve names themselves. */
export function findModel(name: string): Entry<Model> | undefined {
  if (typeof name !== 'string')
    throw invalidOption('name', 'the name of a model, such as "offline" or "openai/gpt-5"', name);
  return registry.find(name) ?? registry.find(name.split('/', 1)[0]!);
}

export { registry as modelRegistry };
