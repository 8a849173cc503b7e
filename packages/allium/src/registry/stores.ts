/** Stores by name: `memory`, `file`, `sqlite`, `postgres`, `redis`, and registered ones. */
import { resolve } from 'node:path';
import { AlliumError, invalidOption } from '../kernel/lib/errors.js';
import type { Store } from '../kernel/protocol/store.js';
import {
  type Factory,
  type FactoryContext,
  loadPackage,
  type RegisterOptions,
  Registry,
  type ResolveContext,
} from './registry.js';

const text = { type: 'string' } as const;

/** Where sessions are kept by default: beside the config file. */
const FOLDER = '.allium';

const registry = new Registry<Store>(
  'store',
  [
    {
      name: 'memory',
      optionsSchema: { type: 'object', properties: {}, additionalProperties: false },
      factory: async () => (await import('../stores/memory/index.js')).memoryStore(),
    },
    {
      name: 'file',
      optionsSchema: shape({
        dir: { description: `The folder. Default: ${FOLDER}/sessions`, type: 'string' },
        fsync: { enum: ['always', 'run-end', 'never'] },
      }),
      factory: async ({ dir = `${FOLDER}/sessions`, ...rest }: { dir?: string }, context) =>
        (await import('../stores/file/index.js')).fileStore({ dir: pathIn(context, 'dir', dir), ...rest }),
    },
    {
      name: 'sqlite',
      optionsSchema: shape({
        path: { description: `The file. Default: ${FOLDER}/sessions.db`, type: 'string' },
        fsync: { enum: ['always', 'checkpoint'] },
        exclusive: { type: 'boolean' },
        busyTimeoutMs: { type: 'number' },
      }),
      factory: async ({ path = `${FOLDER}/sessions.db`, ...rest }: { path?: string }, context) => {
        const file = path === ':memory:' ? path : pathIn(context, 'path', path);
        return (await import('../stores/sqlite/index.js')).sqliteStore({ path: file, ...rest });
      },
    },
    {
      name: 'postgres',
      optionsSchema: shape({
        connectionString: text,
        maxConnections: { type: 'number' },
        schema: text,
        prepare: { type: 'boolean' },
        notify: { type: ['boolean', 'string'] },
        setup: { type: 'boolean' },
      }),
      factory: fromPackage('@allium/store-postgres', 'postgresStore'),
    },
    {
      name: 'redis',
      optionsSchema: shape({ url: text, prefix: text }),
      factory: fromPackage('@allium/store-redis', 'redisStore'),
    },
  ],
  (made) => typeof made?.append === 'function',
);

/** Lets `resolveStore` and config files find a store by name. Returns a function that undoes this. */
export function registerStore(
  name: string,
  factory: Factory<Store>,
  options: RegisterOptions = {},
): () => void {
  return registry.register(name, factory, options);
}

/**
 * Makes the store of that name. The caller closes it.
 *
 * @example
 * const store = await resolveStore('sqlite', { path: 'sessions.db' });
 */
export function resolveStore(
  name: string,
  options: object = {},
  context: ResolveContext = {},
): Promise<Store> {
  return registry.resolve(name, options, context);
}

export { registry as storeRegistry };

function shape(properties: Record<string, object>): {
  type: string;
  properties: object;
  additionalProperties: boolean;
} {
  return { type: 'object', properties, additionalProperties: false };
}

function fromPackage(name: string, factory: string): Factory<Store> {
  return async (options, context) => {
    const make = (await loadPackage(context, name))[factory];
    if (typeof make !== 'function')
      throw new AlliumError('MISSING_DEPENDENCY', `The installed ${name} has no ${factory}(). Update it.`);
    return make(options) as Store;
  };
}

function pathIn({ dir }: FactoryContext, option: string, path: unknown): string {
  if (typeof path !== 'string' || path === '') throw invalidOption(option, 'a path', path);
  return resolve(dir ?? '.', path);
}
