/** Things by name: registered ones, those of this package, and the error for unknown names. */
import { AlliumError, closestName, invalidOption, shown } from '../kernel/lib/errors.js';
import { isStandardSchema } from '../kernel/messages/standard-schema.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import type { MakeNamed } from './named-options.js';
import { checkOptionsSchema, checkSchema, type OptionsSchema } from './options-schema.js';

export type Kind = 'middleware' | 'model' | 'store' | 'tool';

/** What a factory gets besides its options. */
export interface FactoryContext {
  /** The name that was asked for, as it was written. */
  readonly name: string;
  /** What follows the first slash of the name: for `openai/gpt-5` it is `gpt-5`. Empty without one. */
  readonly id: string;
  /** Where relative paths in options start. Undefined: the current folder. */
  readonly dir: string | undefined;
  /** Imports a package as the caller would find it. */
  load(specifier: string): Promise<unknown>;
  /** Makes a model, tools or a middleware that options name. Undefined outside of config files: see `resolveNamed()`. */
  readonly make?: MakeNamed | undefined;
}

/** What the caller may set. */
export interface ResolveContext {
  /** @default the current folder */
  readonly dir?: string;
  /** @default import(), as seen from this package */
  readonly load?: (specifier: string) => Promise<unknown>;
  /** Makes a model, a tool or a middleware that the options name. @default what is registered under that name */
  readonly make?: MakeNamed;
}

/**
 * Makes the thing. Contract: it is called for every use, with options that fit the schema, and awaited. Its errors
 * reach the caller.
 */
export type Factory<T> = (options: never, context: FactoryContext) => Awaitable<T>;

export interface RegisterOptions {
  /** Options are checked with it before the factory is called. @default unchecked: the factory judges them */
  readonly optionsSchema?: OptionsSchema;
}

export interface Registered {
  readonly name: string;
  readonly builtIn: boolean;
}

export interface Entry<T> extends Registered {
  readonly factory: Factory<T>;
  /** For built-in ones it is for editors, and the factory does the checks. Some have to be loaded to know it. */
  readonly optionsSchema: OptionsSchema | (() => Promise<OptionsSchema>) | undefined;
}

export class Registry<T> {
  readonly #kind: Kind;
  readonly #fits: (made: T | undefined | null) => boolean;
  readonly #builtIn = new Map<string, Entry<T>>();
  readonly #own = new Map<string, Entry<T>>();

  /** `fits`: is this what a factory should make? */
  constructor(
    kind: Kind,
    builtIn: readonly Omit<Entry<T>, 'builtIn'>[],
    fits: (made: T | undefined | null) => boolean,
  ) {
    this.#kind = kind;
    this.#fits = fits;
    for (const entry of builtIn) this.#builtIn.set(flat(entry.name), { ...entry, builtIn: true });
  }

  /** Replaces a name that is known already. Returns a function that undoes this. */
  register(name: string, factory: Factory<T>, options: RegisterOptions = {}): () => void {
    if (typeof name !== 'string' || !/^[a-z@][\w.+@/-]*$/i.test(name))
      throw invalidOption('name', 'a name of letters, digits, dashes, dots and slashes', name);
    if (typeof factory !== 'function')
      throw invalidOption('factory', `a function that makes a ${this.#kind}`, factory);
    if (/^class\b/.test(String(factory)))
      throw invalidOption(
        'factory',
        `a function such as (options) => new ${factory.name || 'X'}(options)`,
        factory,
      );
    const { optionsSchema } = options;
    if (optionsSchema !== undefined) checkSchema('optionsSchema', optionsSchema);
    const key = flat(name);
    const before = this.#own.get(key);
    const entry: Entry<T> = { name, factory, optionsSchema, builtIn: false };
    this.#own.set(key, entry);
    return () => {
      if (this.#own.get(key) !== entry) return;
      if (before) this.#own.set(key, before);
      else this.#own.delete(key);
    };
  }

  find(name: string): Entry<T> | undefined {
    const key = flat(name);
    return this.#own.get(key) ?? this.#builtIn.get(key);
  }

  list(): readonly Entry<T>[] {
    return [...new Map([...this.#builtIn, ...this.#own]).values()];
  }

  /** Makes the thing of that name, or throws. `entry`: who makes it, if the name alone doesn't say. */
  async resolve(
    name: string,
    options: unknown,
    context: ResolveContext,
    entry: Entry<T> | undefined = this.find(name),
  ): Promise<T> {
    if (!entry) throw this.unknown(name);
    const made = await this.make(entry, name, options, context);
    if (this.#fits(made)) return made;
    throw invalidOption(`the factory of "${name}"`, `a function that returns a ${this.#kind}`, made);
  }

  /** Checks the options and calls the factory. */
  async make(entry: Entry<T>, name: string, options: unknown, context: ResolveContext): Promise<T> {
    let given = options ?? {};
    if (typeof given !== 'object' || Array.isArray(given))
      throw invalidOption('options', `an object for ${this.#kind} "${name}"`, given);
    const schema = entry.builtIn ? undefined : await loadedSchema(entry);
    if (schema !== undefined) {
      const checked = await checkOptionsSchema(schema, given);
      if (checked.issues) {
        const { path, message } = checked.issues[0];
        throw new AlliumError(
          'INVALID_OPTION',
          `${message} This is an option of ${this.#kind} "${entry.name}".`,
          {
            data: { option: path.join('.'), path, issues: checked.issues },
          },
        );
      }
      given = checked.value as object;
    }
    return entry.factory(given as never, factoryContext(name, context));
  }

  /** `others`: more names that could be used, such as those of installed plugins. */
  unknown(name: string, others: readonly string[] = []): AlliumError {
    const known = [...new Set([...this.list().map((entry) => entry.name), ...others])].sort();
    const near = typeof name === 'string' ? closestName(name, known) : undefined;
    const there =
      known.length > 0
        ? `There ${known.length > 1 ? 'are' : 'is'}: ${known.join(', ')}.`
        : 'None is installed.';
    return new AlliumError(
      'UNKNOWN_NAME',
      `No ${this.#kind} is called ${shown(name)}.${near ? ` Did you mean "${near}"?` : ''} ${there}`,
      { data: { kind: this.#kind, name, known, ...(near && { nearest: near }) } },
    );
  }
}

/** The schema of an entry's options. */
export async function loadedSchema({ optionsSchema }: Entry<unknown>): Promise<OptionsSchema | undefined> {
  const known = typeof optionsSchema !== 'function' || isStandardSchema(optionsSchema);
  return known ? (optionsSchema as OptionsSchema | undefined) : optionsSchema();
}

function factoryContext(name: string, { dir, load, make }: ResolveContext): FactoryContext {
  const slash = name.indexOf('/');
  return {
    name,
    id: slash === -1 ? '' : name.slice(slash + 1),
    dir,
    load: load ?? ((specifier) => import(/* @vite-ignore */ specifier)),
    make,
  };
}

/** How names are compared: case, dashes and underscores make no difference. */
function flat(name: string): string {
  return String(name).replace(/[-_]/g, '').toLowerCase();
}

/** Loads a package that is not part of this one, or says how to install it. */
export async function loadPackage(context: FactoryContext, name: string): Promise<Record<string, unknown>> {
  try {
    return (await context.load(name)) as Record<string, unknown>;
  } catch (cause) {
    const { code, message } = cause as { code?: unknown; message?: unknown };
    const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    if (!missing || !String(message).includes(name)) throw cause;
    throw new AlliumError(
      'MISSING_DEPENDENCY',
      `"${context.name}" needs the package ${name}, which is not installed. Run \`npm install ${name}\`.`,
      { cause, data: { package: name } },
    );
  }
}
