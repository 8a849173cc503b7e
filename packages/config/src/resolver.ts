/** Turns the contents of a config into things: names into middleware, models and stores, paths into modules. */
import { AlliumError } from 'allium';
import {
  checkOptionsSchema,
  type Factory,
  findRegistered,
  type MakeNamed,
  type OptionsSchema,
  optionsSchemaOf,
  resolveMiddleware,
  resolveModel,
  resolveStore,
  resolveTool,
  unknownName,
} from 'allium/registry';
import { ConfigError } from './config-error.js';
import { isTable } from './interpolate.js';
import { place } from './load.js';
import type { KeyPath } from './locate.js';
import { exportsOf, importUser, isPath, loaderFrom, type Module, OWN_FILE } from './modules.js';
import { findPlugin, installedPlugins, loadPlugin } from './plugins.js';
import { safeError } from './redact.js';
import { reveal } from './reveal.js';
import type { LoadedConfig, PluginType } from './types.js';

type Kind = PluginType | 'tool';

/** A name with its options, and where both are in the file. */
export interface Named {
  readonly name: string;
  readonly as: string | undefined;
  /** The key of its options under `plugins`, if it has some. */
  readonly plugin: string | undefined;
  /** Secrets still in them. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Where an option is: in the table of the use, or under `plugins`. */
  readonly pathOf: (option: KeyPath) => KeyPath;
}

const RESOLVE = {
  middleware: resolveMiddleware,
  model: resolveModel,
  store: resolveStore,
  tool: resolveTool,
};

export class Resolver {
  readonly #load: (specifier: string) => Promise<unknown>;
  /** Keys under `plugins` that were used for what other options name. */
  readonly usedInside = new Set<string>();

  constructor(readonly loaded: LoadedConfig) {
    this.#load = loaderFrom(loaded.dir);
  }

  /** Undefined for an object that exists already: only modules have those. */
  named(item: unknown, path: KeyPath): Named | undefined {
    const { use: written, as, ...own } = isTable(item) ? item : { use: item };
    const name = reveal(written);
    if (typeof name !== 'string') return undefined;
    const [key, base] = this.#pluginOptions(name);
    return {
      name,
      as: reveal(as) as string | undefined,
      plugin: key,
      options: { ...base, ...own },
      pathOf: ([first, ...rest]) =>
        first === undefined || first in own || !(first in base)
          ? [...path, ...(first === undefined ? [] : [first]), ...rest]
          : ['allium', 'plugins', key!, first, ...rest],
    };
  }

  /**
   * Makes it, from a module, the registry or a plugin. Any failure is a `ConfigError` with a place and no secrets.
   */
  make(kind: Kind, named: Named): Promise<unknown> {
    return this.guarded(named.pathOf, () => this.#make(kind, named));
  }

  /** What the options of something name: looked up like anything else in the file. */
  readonly #makeInside: MakeNamed = (kind, item) => {
    const named = this.named(item, []) as Named;
    if (named.plugin !== undefined) this.usedInside.add(named.plugin);
    return this.#make(kind, named);
  };

  async #make(kind: Kind, { name, options }: Named): Promise<unknown> {
    const context = { dir: this.loaded.dir, load: this.#load, make: this.#makeInside };
    if (isPath(name)) {
      const { module, chosen } = await importUser(this.loaded.dir, name);
      return this.#fromModule(kind, name, module, chosen, options);
    }
    if (findRegistered(kind, name)) {
      const schema = await optionsSchemaOf(kind, name);
      return RESOLVE[kind](name, (await this.#ready(options, schema)) as object, context);
    }
    const type = kind === 'tool' ? undefined : kind;
    const [scheme = name] = name.split('/', 1);
    const plugin =
      type &&
      ((await findPlugin(this.loaded.dir, type, name)) ?? (await findPlugin(this.loaded.dir, type, scheme)));
    if (type && plugin) {
      const { factory, optionsSchema } = await loadPlugin(plugin, type);
      return this.#call(name, factory, optionsSchema, options);
    }
    const installed = (await installedPlugins(this.loaded.dir)).filter((one) => one.type === type);
    const near = unknownName(
      kind,
      name,
      installed.map((one) => one.name),
    );
    throw new AlliumError('UNKNOWN_NAME', `${near.message} ${howTo(kind, name)}`, {
      data: (near as AlliumError).data as never,
    });
  }

  async #fromModule(
    kind: Kind,
    name: string,
    module: Module,
    chosen: unknown,
    options: Named['options'],
  ): Promise<unknown> {
    if (typeof chosen === 'function')
      return this.#call(
        name,
        chosen as Factory<unknown>,
        module.optionsSchema as OptionsSchema | undefined,
        options,
      );
    if (Object.keys(options).length > 0)
      throw new ConfigError('CONFIG_INVALID', `${name} does not export a function, so it takes no options.`);
    // A module of tools may export each of them.
    if (kind === 'tool') return chosen ?? Object.values(module);
    if (typeof chosen === 'object' && chosen !== null) return chosen;
    throw new ConfigError(
      'CONFIG_INVALID',
      `Expected ${name} to export a ${kind} or a function that makes one as its default. It exports: ${exportsOf(module)}. Name one of them with ${name}#<export>.`,
    );
  }

  async #call(
    name: string,
    factory: Factory<unknown>,
    schema: OptionsSchema | undefined,
    options: object,
  ): Promise<unknown> {
    let ready = await this.#ready(options, schema);
    if (schema !== undefined) {
      const checked = await checkOptionsSchema(schema, ready);
      if (checked.issues) {
        const { path, message } = checked.issues[0];
        throw new AlliumError('INVALID_OPTION', `${message} This is an option of "${name}".`, {
          data: { path },
        });
      }
      ready = checked.value;
    }
    const [, id = ''] = /^[^/]*\/(.*)$/s.exec(name) ?? [];
    return factory(ready as never, {
      name,
      id: isPath(name) ? '' : id,
      dir: this.loaded.dir,
      load: this.#load,
      make: this.#makeInside,
    });
  }

  /** Options as a factory gets them: with secrets revealed, and `{ import = "./x.mjs" }` replaced by that code. */
  async #ready(options: object, schema: unknown): Promise<unknown> {
    return this.#withCode(reveal(options, schema));
  }

  async #withCode(value: unknown): Promise<unknown> {
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.#withCode(item)));
    if (!isTable(value)) return value;
    if (
      typeof value.import === 'string' &&
      isPath(value.import) &&
      Object.keys(value).every((key) => key === 'import' || key === 'name')
    ) {
      const name = value.name === undefined ? value.import : `${value.import}#${value.name}`;
      const { module, chosen } = await importUser(this.loaded.dir, name);
      if (chosen !== undefined) return chosen;
      throw new ConfigError(
        'CONFIG_INVALID',
        `${value.import} has no export \`${value.name ?? 'default'}\`. It exports: ${exportsOf(module)}. Choose one with \`name\`.`,
      );
    }
    const members = Object.entries(value).map(
      async ([key, member]) => [key, await this.#withCode(member)] as const,
    );
    return Object.fromEntries(await Promise.all(members));
  }

  /** Runs `work`. What it throws becomes a `ConfigError` at the place the error is about. */
  async guarded<T>(pathOf: (option: KeyPath) => KeyPath, work: () => Promise<T> | T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw this.failure(error, pathOf);
    }
  }

  failure(error: unknown, pathOf: (option: KeyPath) => KeyPath): ConfigError {
    const { file, source, redact } = this.loaded;
    if (error instanceof ConfigError && error.key !== undefined) return error;
    const data: Readonly<Record<string, unknown>> = error instanceof AlliumError ? error.data : {};
    const option = Array.isArray(data.path)
      ? (data.path as KeyPath)
      : typeof data.option === 'string'
        ? data.option.split('.')
        : [];
    const message = error instanceof Error ? error.message : String(error);
    const code = error instanceof AlliumError ? error.code : 'CONFIG_INVALID';
    return new ConfigError(code, redact(message), {
      ...place(file, source, pathOf(option)),
      cause: safeError(error, redact),
      ...(code === 'UNKNOWN_NAME' && { data: { known: data.known, nearest: data.nearest } }),
    });
  }

  /** Do both spellings mean the same? */
  same(name: string, other: string): boolean {
    return flat(name) === flat(other);
  }

  /** The options under `plugins` for a name, and the key as it is written there. */
  #pluginOptions(name: string): [string | undefined, Readonly<Record<string, unknown>>] {
    const plugins = this.loaded.config.plugins ?? {};
    // As it is written, without the prefix of a package name, and for a model by the part before the slash.
    const names = [name, shortName(name), ...(isPath(name) ? [] : name.split('/', 1))].map(flat);
    const key = names.map((one) => Object.keys(plugins).find((other) => flat(other) === one)).find(Boolean);
    return [key, key === undefined ? {} : plugins[key]!];
  }
}

const PROVIDER_FIRST = 'A model of a provider is written like "openai/gpt-5". ';

function howTo(kind: Kind, name: string): string {
  if (kind === 'tool') return OWN_FILE;
  const prefix = { middleware: 'allium-mw-', model: 'allium-model-', store: 'allium-store-' }[kind];
  const plain = /^[\w-]+$/.test(name) ? name : '<name>';
  const provider = kind === 'model' && !name.includes('/') ? PROVIDER_FIRST : '';
  return `${provider}A plugin would be ${prefix}${plain.toLowerCase()}, installed beside the config file. ${OWN_FILE}`;
}

function shortName(name: string): string {
  return name.replace(/^(@[^/]+\/)?allium-(mw|model|store)-/, '');
}

function flat(name: string): string {
  return name.replace(/[-_]/g, '').toLowerCase();
}
