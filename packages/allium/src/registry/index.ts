/** Middleware, models, stores and tools by name: what config files and command lines are made of. */
import { checkOneOf } from '../kit/index.js';
import { middlewareRegistry } from './middleware.js';
import { modelRegistry } from './models.js';
import type { OptionsSchema } from './options-schema.js';
import { type Entry, type Kind, loadedSchema, type Registered } from './registry.js';
import { storeRegistry } from './stores.js';
import { toolRegistry } from './tools.js';

export { registerMiddleware, resolveMiddleware, resolveNamed } from './middleware.js';
export { findModel, registerModel, resolveModel } from './models.js';
export type { MakeNamed, NamedKind } from './named-options.js';
export {
  type CheckedOptions,
  checkOptionsSchema,
  type OptionIssue,
  type OptionsSchema,
} from './options-schema.js';
export type {
  Entry,
  Factory,
  FactoryContext,
  Kind,
  Registered,
  RegisterOptions,
  ResolveContext,
} from './registry.js';
export { registerStore, resolveStore } from './stores.js';
export { registerTool, resolveTool } from './tools.js';

const REGISTRIES = {
  middleware: middlewareRegistry,
  model: modelRegistry,
  store: storeRegistry,
  tool: toolRegistry,
};

/** Everything that is known by name, including what this package brings. */
export function registered(kind: Kind): readonly Registered[] {
  return registryOf(kind)
    .list()
    .map(({ name, builtIn }) => ({ name, builtIn }));
}

/** The entry of a name; undefined if it isn't known. Case, dashes and underscores make no difference. */
export function findRegistered(kind: Kind, name: string): Registered | undefined {
  const entry = entryOf(kind, name);
  return entry && { name: entry.name, builtIn: entry.builtIn };
}

/** The schema of the options of a name, for editors and forms. A built-in middleware is loaded to know it. */
export async function optionsSchemaOf(kind: Kind, name: string): Promise<OptionsSchema | undefined> {
  const entry = entryOf(kind, name);
  return entry && loadedSchema(entry);
}

function entryOf(kind: Kind, name: string): Entry<unknown> | undefined {
  return kind === 'model'
    ? (modelRegistry.find(name) ?? modelRegistry.find(String(name).split('/', 1)[0]!))
    : registryOf(kind).find(name);
}

/** The error for an unknown name. It lists the known ones, including `others`, and suggests the nearest. */
export function unknownName(kind: Kind, name: string, others: readonly string[] = []): Error {
  return registryOf(kind).unknown(name, others);
}

function registryOf<K extends Kind>(kind: K): (typeof REGISTRIES)[K] {
  checkOneOf('kind', kind, Object.keys(REGISTRIES));
  return REGISTRIES[kind];
}
