/**
 * Finds options under `plugins` that belong to nothing in the file: a misspelt name, or something that was removed.
 */
import { findRegistered, registered, unknownName } from 'allium/registry';
import { place } from './load.js';
import { isPath } from './modules.js';
import { installedPlugins } from './plugins.js';
import type { Resolver } from './resolver.js';

const KINDS = ['middleware', 'model', 'store', 'tool'] as const;

/** Throws for an unknown name, and returns a sentence for each known one that isn't used. */
export async function unusedPlugins(resolver: Resolver, overrides: readonly unknown[]): Promise<string[]> {
  const { config, dir, file, source } = resolver.loaded;
  const { model, store, tools = [], observers = [], middleware } = config;
  const items = [model, store, ...tools, ...observers, ...(middleware?.chain ?? []), ...overrides];
  const used = new Set([...items.map((item) => resolver.named(item, [])?.plugin), ...resolver.usedInside]);
  const unused = Object.keys(config.plugins ?? {}).filter((key) => !used.has(key));
  if (unused.length === 0) return [];
  const installed = (await installedPlugins(dir)).flatMap((one) => [one.name, one.package]);
  return unused.map((key) => {
    const path = ['allium', 'plugins', key];
    const known =
      isPath(key) ||
      KINDS.some((kind) => findRegistered(kind, key)) ||
      installed.some((name) => resolver.same(name, key));
    if (!known) {
      const others = KINDS.flatMap((kind) => registered(kind).map(({ name }) => name));
      throw resolver.failure(unknownName('middleware', key, [...others, ...installed]), () => path);
    }
    const { line } = place(file, source, path);
    const where = `${file}${line === undefined ? '' : `:${line}`}`;
    return `${where}: \`allium.plugins.${key}\`: Nothing in the file uses "${key}", so these options have no effect. Name it in the chain, or remove them.`;
  });
}
