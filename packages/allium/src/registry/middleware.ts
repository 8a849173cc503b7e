/** Middleware by name. Those of the box are loaded when they are asked for. */
import { resolve } from 'node:path';
import { invalidOption } from '../kernel/lib/errors.js';
import { shape } from '../kernel/lib/kinds.js';
import type { Fields } from '../kernel/lib/shapes.js';
import type { JsonSchema } from '../kernel/messages/model.js';
import type { Middleware } from '../kernel/protocol/middleware.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import { BUILT_IN, type MiddlewareModule } from './built-in-middleware.js';
import { guardrailEntries } from './guardrails.js';
import { mcpEntry } from './mcp.js';
import { resolveModel } from './models.js';
import { CODE_IN_FILES, inFiles, type MakeNamed, type NamedKind, withNamed } from './named-options.js';
import { otelEntry } from './otel.js';
import {
  type Factory,
  type FactoryContext,
  type RegisterOptions,
  Registry,
  type ResolveContext,
} from './registry.js';
import { resolveTool } from './tools.js';

type Options = Record<string, unknown>;

/** What a file can write instead of an object it can't hold. */
interface InFiles {
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly adapt?: (options: Options, context: FactoryContext) => Awaitable<Options>;
}

const text = { type: 'string' } as const;

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
    adapt: ({ store, ...rest }) => ({
      ...rest,
      store:
        store === 'memory'
          ? new Map()
          : noText('store', '"memory" or an object with get(), set(), delete()', store),
    }),
  },
  'memory-recall': {
    properties: {
      memory: {
        description: 'Kept in this process, or in an SQLite database; another one is a module of yours.',
        anyOf: [
          { enum: ['memory'] },
          { type: 'object', properties: { path: text }, required: ['path'], additionalProperties: false },
          CODE_IN_FILES,
        ],
      },
    },
    adapt: async ({ memory, ...rest }, context) => {
      const { localMemory, sqliteMemory } = await import('../middleware/memory-recall/index.js');
      if (memory === 'memory') return { ...rest, memory: localMemory() };
      if (isOptions(memory) && typeof memory.path === 'string')
        return { ...rest, memory: sqliteMemory({ path: pathIn(context, memory.path) as string }) };
      return {
        ...rest,
        memory: noText('memory', '"memory", { path } or an object with recall(), save()', memory),
      };
    },
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
  skills: {
    properties: {},
    adapt: ({ dir, ...rest }, context) => ({ ...rest, dir: pathIn(context, dir) }),
  },
  'structured-output': {
    properties: { schema: { description: 'A JSON Schema.', type: 'object' } },
  },
  'tool-result-limit': {
    properties: {
      spill: {
        description: 'A folder; another place is a module of yours.',
        anyOf: [
          { type: 'object', properties: { dir: text }, required: ['dir'], additionalProperties: false },
          CODE_IN_FILES,
        ],
      },
    },
    adapt: async ({ spill, ...rest }, context) => {
      if (!isOptions(spill) || typeof spill.dir !== 'string')
        return { ...rest, ...(spill !== undefined && { spill }) };
      const { fileSpill } = await import('../middleware/tool-result-limit/index.js');
      return { ...rest, spill: fileSpill(pathIn(context, spill.dir) as string) };
    },
  },
};

const box = Object.entries(BUILT_IN).map(([name, load]) => ({
  name,
  optionsSchema: async () => schemaOf((await load()).OPTIONS, IN_FILES[name]?.properties),
  factory: async (options: never, context: FactoryContext) => {
    const module = await load();
    const { adapt } = IN_FILES[name] ?? {};
    const adapted = adapt ? await adapt(options, context) : options;
    return factoryIn(module, name)(await inOptions(adapted, module.OPTIONS, context));
  },
}));

const guardrails = guardrailEntries(inOptions, schemaOf);

const registry = new Registry<Middleware>(
  'middleware',
  [...box, ...guardrails, mcpEntry((context, item) => resolveNamed('model', item, context)), otelEntry],
  (made) => typeof made === 'object' && made !== null,
);

/** `tool-cache` is made by `toolCache`. */
function factoryIn(module: MiddlewareModule, name: string): (options: Options) => Middleware {
  const factory = name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return (module as unknown as Record<string, (options: Options) => Middleware>)[factory]!;
}

/**
 * The JSON Schema of options, for editors; the factory checks them. `written`: options that are written differently
 * in files.
 */
function schemaOf(fields: Fields, written: InFiles['properties'] = {}): JsonSchema {
  const { properties, ...rest } = fieldsSchema(fields);
  return { ...rest, properties: { ...(inFiles(properties) as object), ...written } };
}

function fieldsSchema(fields: Fields): JsonSchema {
  const inSchemas = Object.entries(fields).filter(([, { schema }]) => schema !== undefined);
  return shape(Object.fromEntries(inSchemas)).schema as JsonSchema;
}

/** Options with what the names in them mean. */
async function inOptions(options: Options, fields: Fields, context: FactoryContext): Promise<Options> {
  const make: MakeNamed = (kind, item) => resolveNamed(kind, item, context);
  return (await withNamed(options, fieldsSchema(fields), make)) as Options;
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

/** A name that isn't one of those a file may write. */
function noText(option: string, expected: string, value: unknown): unknown {
  if (typeof value === 'string') throw invalidOption(option, expected, value);
  return value;
}

/** A path in options is relative to the folder of its file. */
function pathIn({ dir }: FactoryContext, path: unknown): unknown {
  return typeof path === 'string' && dir !== undefined ? resolve(dir, path) : path;
}

/** What an option names: a model, tools or a middleware. Anything that isn't a name is returned as it is. */
export function resolveNamed(kind: NamedKind, item: unknown, context: ResolveContext = {}): unknown {
  const { use, ...options } = (isOptions(item) ? item : { use: item }) as Options;
  if (typeof use !== 'string') return item;
  if (context.make) return context.make(kind, item as Parameters<MakeNamed>[1]);
  const resolve = { model: resolveModel, tool: resolveTool, middleware: resolveMiddleware }[kind];
  return resolve(use, options, context);
}

function isOptions(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
