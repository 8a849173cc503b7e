/** Middleware by name. Those of the box are loaded when they are asked for. */
import { resolve } from 'node:path';
import { CODE, shape } from '../kernel/lib/kinds.js';
import type { Fields } from '../kernel/lib/shapes.js';
import type { JsonSchema } from '../kernel/messages/model.js';
import type { Middleware } from '../kernel/protocol/middleware.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import { BUILT_IN, type MiddlewareModule } from './built-in-middleware.js';
import { guardrailEntries } from './guardrails.js';
import { mcpEntry } from './mcp.js';
import { resolveModel } from './models.js';
import { otelEntry } from './otel.js';
import {
  type Factory,
  type FactoryContext,
  type RegisterOptions,
  Registry,
  type ResolveContext,
} from './registry.js';

type Options = Record<string, unknown>;

/** What a file can write instead of an object it can't hold. */
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

const box = Object.entries(BUILT_IN).map(([name, load]) => ({
  name,
  optionsSchema: async () => schemaOf((await load()).OPTIONS, IN_FILES[name]?.properties),
  factory: async (options: never, context: FactoryContext) => {
    const factory = factoryIn(await load(), name);
    const { adapt } = IN_FILES[name] ?? {};
    return factory(adapt ? await adapt(options, context) : options);
  },
}));

const guardrails = guardrailEntries(
  async ({ model, ...rest }, context) =>
    model === undefined ? rest : { ...rest, model: await modelIn(context, model) },
  (fields) =>
    schemaOf(fields, fields.model && { model: { description: 'The name of the model.', ...modelNames } }),
);

const registry = new Registry<Middleware>(
  'middleware',
  [...box, ...guardrails, mcpEntry(modelIn), otelEntry],
  (made) => typeof made === 'object' && made !== null,
);

/** `tool-cache` is made by `toolCache`. */
function factoryIn(module: MiddlewareModule, name: string): (options: Options) => Middleware {
  const factory = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return (module as unknown as Record<string, (options: Options) => Middleware>)[factory]!;
}

/**
 * The JSON Schema of options, for editors; the factory checks them. `inFiles`: options that are written differently
 * in files.
 */
function schemaOf(fields: Fields, inFiles: InFiles['properties'] = {}): JsonSchema {
  const inSchemas = Object.entries(fields).filter(([, { schema }]) => schema !== undefined);
  const { properties, ...rest } = shape(Object.fromEntries(inSchemas)).schema as {
    readonly properties: Record<string, JsonSchema>;
  };
  return { ...rest, properties: { ...(withCode(properties) as object), ...inFiles } };
}

/** In a file, code is a module of the user's and one of its exports. */
const CODE_IN_FILES = {
  type: 'object',
  properties: { import: text, name: text },
  required: ['import'],
  additionalProperties: false,
};

function withCode(schema: unknown): unknown {
  if (schema === CODE) return CODE_IN_FILES;
  if (Array.isArray(schema)) return schema.map(withCode);
  if (!isOptions(schema)) return schema;
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, withCode(value)]));
}

/**
 * Lets `resolveMiddleware` and config files find a middleware by name. Replaces a name that is known already. Returns
 * a function that undoes this.
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

/** A path in options is relative to the folder of its file. */
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
