/** Middleware by name. Those of the box are loaded when they are asked for. */
import { resolve } from 'node:path';
import type { JsonSchema } from '../kernel/messages/model.js';
import type { Middleware } from '../kernel/protocol/middleware.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import { guardrailEntries } from './guardrails.js';
import { mcpEntry } from './mcp.js';
import { MIDDLEWARE } from './middleware-table.js';
import { resolveModel } from './models.js';
import {
  type Factory,
  type FactoryContext,
  type RegisterOptions,
  Registry,
  type ResolveContext,
} from './registry.js';

type Options = Record<string, unknown>;

/** What a file can say in the place of an object that it cannot hold. */
interface InFiles {
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly adapt?: (options: Options, context: FactoryContext) => Awaitable<Options>;
}

const text = { type: 'string' } as const;
const modelNames = { anyOf: [text, { type: 'object', properties: { use: text }, required: ['use'] }] };

const IN_FILES: Readonly<Record<string, InFiles>> = {
  approval: {
    properties: {
      policy: {
        description: "By the name of a tool; '*' is for the others.",
        type: 'object',
        additionalProperties: { enum: ['allow', 'ask', 'deny'] },
      },
    },
  },
  'audit-log': {
    properties: {
      sink: {
        description: 'Where lines are appended.',
        type: 'object',
        properties: { file: text, fsync: { enum: ['line', 'run', 'never'] } },
        required: ['file'],
        additionalProperties: false,
      },
      key: { description: 'Seals the lines.', type: 'string' },
    },
    adapt: ({ sink, ...rest }, context) => ({
      ...rest,
      ...(sink !== undefined && {
        sink: isOptions(sink) ? { ...sink, file: pathIn(context, sink.file) } : sink,
      }),
    }),
  },
  fallback: {
    properties: {
      models: {
        description: 'Names of models, asked one after the other.',
        type: 'array',
        items: modelNames,
      },
    },
    adapt: async ({ models, ...rest }, context) => ({
      ...rest,
      models: Array.isArray(models)
        ? await Promise.all(models.map((model) => modelIn(context, model)))
        : models,
    }),
  },
  'file-validator': {
    properties: {},
    adapt: ({ roots, ...rest }, context) => ({
      ...rest,
      roots: Array.isArray(roots) ? roots.map((root) => pathIn(context, root)) : roots,
    }),
  },
  idempotency: {
    properties: {
      store: { description: 'Of this process; another one is a module of yours.', enum: ['memory'] },
    },
    adapt: ({ store, ...rest }) => ({ ...rest, store: store === 'memory' ? new Map() : store }),
  },
  record: {
    properties: { to: { description: 'The file.', type: 'string' }, redact: { type: 'array', items: text } },
    adapt: ({ to, ...rest }, context) => ({ ...rest, to: pathIn(context, to) }),
  },
  replay: {
    properties: {
      from: { description: 'The file.', type: 'string' },
      redact: { type: 'array', items: text },
    },
    adapt: ({ from, ...rest }, context) => ({ ...rest, from: pathIn(context, from) }),
  },
  'structured-output': {
    properties: { schema: { description: 'A JSON Schema.', type: 'object' } },
  },
  'tool-emulator': {
    properties: { model: { description: 'The name of the model that plays the tools.', ...modelNames } },
    adapt: async ({ model, ...rest }, context) => ({ ...rest, model: await modelIn(context, model) }),
  },
};

const box = Object.entries(MIDDLEWARE).map(([name, { load, shape }]) => {
  const { properties, adapt } = IN_FILES[name] ?? { properties: {} };
  return {
    name,
    optionsSchema: { ...shape, properties: { ...(shape.properties as object), ...properties } },
    factory: async (options: never, context: FactoryContext) => {
      const factory = await load();
      return factory((adapt ? await adapt(options, context) : options) as never);
    },
  };
});

const guardrails = guardrailEntries(async ({ model, ...rest }, context) =>
  model === undefined ? rest : { ...rest, model: await modelIn(context, model) },
);

const registry = new Registry<Middleware>(
  'middleware',
  [...box, ...guardrails, mcpEntry(modelIn)],
  (made) => typeof made === 'object' && made !== null,
);

/**
 * Lets `resolveMiddleware` and config files find a middleware by name. A name that is known already is replaced.
 * Returns a function that puts things back.
 *
 * @example
 * registerMiddleware('polite', ({ say = 'please' }: { say?: string }) => polite(say));
 */
export function registerMiddleware(
  name: string,
  factory: Factory<Middleware>,
  options: RegisterOptions = {},
): () => void {
  return registry.register(name, factory, options);
}

/**
 * Makes the middleware of that name. Case, dashes and underscores make no difference.
 *
 * @example
 * const retry = await resolveMiddleware('retry', { attempts: 2 });
 */
export function resolveMiddleware(
  name: string,
  options: object = {},
  context: ResolveContext = {},
): Promise<Middleware> {
  return registry.resolve(name, options, context);
}

export { registry as middlewareRegistry };

/** A path in options starts from the folder of the file that says it. */
function pathIn({ dir }: FactoryContext, path: unknown): unknown {
  return typeof path === 'string' && dir !== undefined ? resolve(dir, path) : path;
}

function modelIn(context: FactoryContext, model: unknown): unknown {
  if (typeof model === 'string') return resolveModel(model, {}, context);
  if (!isOptions(model) || typeof model.use !== 'string') return model;
  const { use, ...options } = model;
  return resolveModel(use, options, context);
}

function isOptions(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
