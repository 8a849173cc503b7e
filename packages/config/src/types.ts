/** The public types: the contents of a config file, what loading it returns, and what an agent is made with. */
import type {
  Agent,
  AgentOptions,
  Limits,
  Middleware,
  MiddlewareList,
  Model,
  ModelSettings,
  Observer,
  SessionLimits,
  Store,
  Tool,
} from 'allium';
import type { Secret } from './secret.js';

/** A name with options: `{ use = "retry", attempts = 2 }`. Other keys than `use` and `as` are options. */
export interface Use {
  readonly use: string;
  /**
   * For middleware: its name in the plan. Needed to tell twins with session state apart across versions of the file.
   */
  readonly as?: string;
  readonly [option: string]: unknown;
}

/** The contents of `[allium]`. Any text may be a `Secret`, if it came from an environment variable. */
export interface Config {
  /** `"offline"`, `"anthropic/claude-sonnet-4-5"`, `{ use, apiKey, … }`; a model in a config module. */
  readonly model?: string | Secret | Use | Model;
  /** The name of the agent. @default 'agent' */
  readonly name?: string | Secret;
  readonly systemPrompt?: string | Secret;
  readonly limits?: Limits;
  readonly sessionLimits?: SessionLimits;
  readonly settings?: ModelSettings;
  readonly toolChoiceTurns?: AgentOptions['toolChoiceTurns'];
  readonly toolExecution?: AgentOptions['toolExecution'];
  readonly queue?: AgentOptions['queue'];
  readonly trace?: AgentOptions['trace'];
  readonly tenant?: string | Secret;
  /** `"memory"`, `"file"`, `"sqlite"`, a plugin's name, or `{ use, …options }`. @default "memory" */
  readonly store?: string | Secret | Use | Store;
  /** Names of registered tools, modules of yours (`"./tools.mjs"`), or `{ use, …options }`. */
  readonly tools?: readonly (string | Use | Tool)[];
  /** Modules of yours, or `{ use, …options }`. */
  readonly observers?: readonly (string | Use | Observer)[];
  readonly middleware?: { readonly chain?: readonly (string | Use | Middleware)[] };
  /** MCP servers by name, whose tools the agent has: the options of `mcp()` of `@allium/mcp`. */
  readonly mcp?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Options by name, for things that are named elsewhere: `{ use, … }` adds to them. */
  readonly plugins?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface LoadConfigOptions {
  /** Where the search upward begins. @default process.cwd() */
  readonly cwd?: string;
  /** Use this file and don't search. Relative to `cwd`. */
  readonly file?: string;
  /** Where `${NAME}` is looked up. @default process.env */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface ConfigSource {
  readonly format: 'toml' | 'json' | 'module';
  /** The file as it is written, before `${…}` is filled in. */
  readonly text: string;
  /** The 1-based line of a key, or of the nearest key above it; undefined for modules. `['allium', 'limits', 'turns']` */
  lineOf(path: readonly (string | number)[]): number | undefined;
}

export interface LoadedConfig {
  /** Absolute. */
  readonly file: string;
  /** The folder of the file: relative paths and plugins are looked up from here. */
  readonly dir: string;
  readonly config: Config;
  readonly source: ConfigSource;
  /** The environment variables that the file uses with `${NAME}`; none for modules. */
  readonly variables: readonly string[];
  /** Replaces every value that came from the environment with `***`: for errors that others wrote. */
  redact(text: string): string;
  /** The same for all other text: values of fewer than six characters stay, because they may be there by chance. */
  redactLong(text: string): string;
}

/** Replaces what the file says; lists are added to it. */
export interface CreateAgentOverrides {
  /** A name as in the file, or a model. */
  readonly model?: string | Model;
  /** Inside the chain of the file. */
  readonly middleware?: MiddlewareList;
  /** A name as in the file, or a store. `close()` doesn't close a store that you pass in. */
  readonly store?: string | Store;
  readonly tools?: readonly Tool[];
  readonly observers?: readonly Observer[];
  readonly limits?: Limits;
  readonly onRequest?: AgentOptions['onRequest'];
  readonly onObserverError?: AgentOptions['onObserverError'];
  readonly clock?: AgentOptions['clock'];
  readonly newId?: AgentOptions['newId'];
}

/** From `@allium/mcp`, which is installed only if a file names servers. */
export interface McpServer extends Middleware {
  connect(): Promise<McpServerState>;
  close(): Promise<void>;
}

export interface McpServerState {
  readonly server: string;
  readonly tools: readonly {
    readonly name: string;
    readonly description: string;
    readonly fingerprint: string;
  }[];
  readonly leftOut: readonly { readonly name: string; readonly why: string }[];
}

export interface CreatedAgent {
  readonly agent: Agent;
  readonly store: Store;
  readonly model: Model;
  /** The names of the middleware in the plan, outermost first. */
  readonly names: readonly string[];
  /** The MCP servers of the file, not connected yet: what `mcp()` of `@allium/mcp` makes. */
  readonly mcp: readonly McpServer[];
  /** What in the file is not an error but has no effect, in sentences with file, line and key. */
  readonly warnings: readonly string[];
  /** Waits for observers, and closes the MCP servers and the store, if it was made here. May be called twice. */
  close(): Promise<void>;
}

export type PluginType = 'middleware' | 'model' | 'store';

/** What a plugin's package.json says under `"allium"`. */
export interface PluginManifest {
  readonly type: PluginType;
  readonly name: string;
  /** A path inside the package. @default what the package exports as "." */
  readonly entry?: string;
}

export interface InstalledPlugin extends PluginManifest {
  /** The npm package, `allium-mw-foo`. */
  readonly package: string;
  readonly version: string;
  /** Absolute path of the package. */
  readonly folder: string;
}

export interface ScaffoldOptions {
  /** @default 'middleware' */
  readonly type?: 'middleware';
}

export interface ScaffoldedPlugin {
  /** The new folder, `<dir>/allium-mw-<name>`. */
  readonly folder: string;
  readonly package: string;
  /** What was written, relative to `folder`. */
  readonly files: readonly string[];
}

export interface PluginCheck {
  /** `manifest`, `export`, `options`, `laws`, … */
  readonly name: string;
  readonly ok: boolean;
  /** What was found, in one sentence, and what to do if it isn't ok. */
  readonly message: string;
}

export interface PluginReport {
  readonly ok: boolean;
  readonly folder: string;
  readonly manifest: PluginManifest | undefined;
  /** In the order they were made; those that depend on a failed one are left out. */
  readonly checks: readonly PluginCheck[];
}
