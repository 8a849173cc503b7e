/**
 * Plugins: npm packages that describe themselves under `"allium"` in their package.json. Only those that are named
 * are loaded.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Factory, OptionsSchema } from 'allium/registry';
import { ConfigError } from './config-error.js';
import { isTable } from './interpolate.js';
import {
  entryOf,
  exportsOf,
  findPackage,
  importNamed,
  modulesFolders,
  type PackageJson,
  readManifest,
} from './modules.js';
import type { InstalledPlugin, PluginManifest, PluginType } from './types.js';

/** How their packages begin. */
export const PREFIXES: Readonly<Record<PluginType, string>> = {
  middleware: 'allium-mw-',
  model: 'allium-model-',
  store: 'allium-store-',
};

const PACKAGE = /^allium-(mw|model|store)-./;

export interface Plugin {
  readonly factory: Factory<unknown>;
  readonly optionsSchema: OptionsSchema | undefined;
}

/** The plugins that code in `dir` could use. Reads their package.json files and loads none. */
export async function installedPlugins(dir: string): Promise<readonly InstalledPlugin[]> {
  const found = new Map<string, InstalledPlugin>();
  for (const modules of modulesFolders(dir)) {
    for (const name of packageNames(modules)) {
      if (found.has(name)) continue;
      const folder = join(modules, name);
      const manifest = readManifest(folder);
      const allium = manifestOf(manifest);
      if (typeof allium === 'object')
        found.set(name, { ...allium, package: name, version: manifest.version ?? '0.0.0', folder });
    }
  }
  return [...found.values()].sort((a, b) => a.package.localeCompare(b.package));
}

function packageNames(modules: string): string[] {
  const entries = readdirSync(modules);
  const scoped = entries
    .filter((name) => name.startsWith('@'))
    .flatMap((scope) => readdirSync(join(modules, scope)).map((name) => `${scope}/${name}`));
  const named = [...entries, ...scoped].filter((name) => PACKAGE.test(name.split('/').at(-1)!));
  return named.filter((name) => existsSync(join(modules, name, 'package.json')));
}

/** The plugin that a name means: `foo` is `allium-mw-foo`; a package's whole name means that package. */
export async function findPlugin(
  dir: string,
  type: PluginType,
  name: string,
): Promise<InstalledPlugin | undefined> {
  const exact = PACKAGE.test(name.split('/').at(-1)!) ? findPackage(dir, name) : undefined;
  if (exact) {
    const { folder, manifest } = exact;
    const allium = manifestOf(manifest);
    if (typeof allium === 'string') throw invalid(name, allium);
    return { ...allium, package: name, version: manifest.version ?? '0.0.0', folder };
  }
  const wanted = flat(PREFIXES[type] + name);
  const plugin = (await installedPlugins(dir)).find(
    (one) => flat(one.package) === wanted || (one.type === type && flat(one.name) === flat(name)),
  );
  if (plugin) return plugin;
  // A package of that name that is not a plugin would otherwise be reported as missing.
  const broken = findPackage(dir, PREFIXES[type] + name);
  if (broken) throw invalid(PREFIXES[type] + name, String(manifestOf(broken.manifest)));
  return undefined;
}

export async function loadPlugin(plugin: InstalledPlugin, type: PluginType): Promise<Plugin> {
  if (plugin.type !== type)
    throw invalid(plugin.package, `It is a ${plugin.type}, but a ${type} is needed here.`);
  const module = await importNamed(pluginEntry(plugin.folder, readManifest(plugin.folder), plugin));
  const { default: factory, optionsSchema } = module;
  if (typeof factory !== 'function')
    throw invalid(
      plugin.package,
      `Its default export must be a function that makes a ${type}. It exports: ${exportsOf(module)}.`,
    );
  return { factory: factory as Factory<unknown>, optionsSchema: optionsSchema as OptionsSchema | undefined };
}

export function pluginEntry(folder: string, manifest: PackageJson, { entry }: PluginManifest): string {
  return entry === undefined ? entryOf(folder, manifest) : join(folder, entry);
}

/** What a package.json says under "allium"; a sentence if that is wrong. */
export function manifestOf({ name: packageName = '', allium }: PackageJson): PluginManifest | string {
  const example = '"allium": { "type": "middleware", "name": "foo" }';
  if (!isTable(allium)) return `Its package.json has no table "allium". It takes one such as ${example}.`;
  const { type, name, entry } = allium;
  if (typeof type !== 'string' || !Object.hasOwn(PREFIXES, type))
    return `Expected \`allium.type\` in its package.json to be middleware, model or store, got ${JSON.stringify(type)}.`;
  if (typeof name !== 'string' || !/^[a-z][\w.-]*$/i.test(name))
    return `Expected \`allium.name\` in its package.json to be a name, got ${JSON.stringify(name)}.`;
  if (entry !== undefined && (typeof entry !== 'string' || /^([\\/]|.*\.\.)/.test(entry)))
    return `Expected \`allium.entry\` in its package.json to be a path inside the package, got ${JSON.stringify(entry)}.`;
  const prefix = PREFIXES[type as PluginType];
  if (!packageName.split('/').at(-1)!.startsWith(prefix))
    return `A ${type} plugin is called ${prefix}<name>, got ${JSON.stringify(packageName)}.`;
  return { type: type as PluginType, name, ...(typeof entry === 'string' && { entry }) };
}

function invalid(name: string, why: string): ConfigError {
  return new ConfigError('PLUGIN_INVALID', `The plugin ${name} cannot be used. ${why}`, {
    data: { package: name },
  });
}

function flat(name: string): string {
  return name.split('/').at(-1)!.replace(/[-_]/g, '').toLowerCase();
}
