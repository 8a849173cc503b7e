/** Makes an agent from a config. */
import {
  Agent,
  type AgentOptions,
  type Middleware,
  type Model,
  type Observer,
  type Store,
  type Tool,
  withStoreTimeout,
} from 'allium';
import { checkKeys, describeValue, invalidOption, isRecord } from 'allium/kit';
import { ConfigError } from './config-error.js';
import { hideSecrets, observerReport, type SecretsHidden } from './hide-secrets.js';
import { isTable } from './interpolate.js';
import type { KeyPath } from './locate.js';
import { exportsOf, importUser, isPath, OWN_FILE } from './modules.js';
import { secretsIn } from './redact.js';
import { Resolver } from './resolver.js';
import { reveal } from './reveal.js';
import { checkingSchema } from './schema.js';
import type { CreateAgentOverrides, CreatedAgent, LoadedConfig, McpServer } from './types.js';
import { withUniqueNames } from './unique-names.js';
import { unusedPlugins } from './unused-plugins.js';

const OVERRIDES = [
  ...['model', 'middleware', 'store', 'tools', 'observers', 'limits'],
  ...['onRequest', 'onObserverError', 'clock', 'newId'],
];

/**
 * The agent of a config file: its model, tools, chain and store. Call `close()` when you are done with it.
 *
 * @example
 * const { agent, close } = await createAgent(await loadConfig());
 * console.log((await agent.run('Hi')).text);
 * await close();
 */
export async function createAgent(
  loaded: LoadedConfig,
  overrides: CreateAgentOverrides = {},
): Promise<CreatedAgent> {
  checkLoaded(loaded);
  checkKeys('createAgent()', overrides, OVERRIDES);
  const resolver = new Resolver(loaded);
  const { config } = loaded;
  const plain = plainOptions(config);
  const model = await makeModel(resolver, overrides.model);
  const tools = [...(await makeTools(resolver)), ...(overrides.tools ?? [])];
  const observers = [...(await makeObservers(resolver)), ...(overrides.observers ?? [])];
  const hidden = hideSecrets(config);
  const { chain, mcp } = await makeChain(resolver, hidden);
  const warnings = await unusedPlugins(resolver, [overrides.model, overrides.store]);
  // Last, so that no error above leaves it open.
  const made = await makeStore(resolver, overrides.store);
  const { onRequest, onObserverError, clock, newId, middleware = [] } = overrides;
  let agent: Agent;
  try {
    agent = new Agent({
      ...plain,
      ...{
        model,
        tools,
        observers,
        middleware: [chain, middleware, hidden?.inner ?? []],
        onRequest,
        onObserverError: observerReport(loaded.redact, onObserverError),
        clock,
        newId,
      },
      limits: { ...plain.limits, ...overrides.limits },
      ...(made && { store: hidden ? hidden.store(made.store) : made.store }),
    });
  } catch (error) {
    await made?.close();
    throw resolver.failure(error, (option) => placeInAgent(option, config));
  }
  let closing: Promise<void> | undefined;
  return {
    agent,
    model,
    store: agent.store,
    warnings,
    mcp,
    names: agent.plan.middleware.map(({ name }) => name),
    close() {
      closing ??= agent
        .observersIdle()
        .then(() => Promise.all(mcp.map((server) => server.close())))
        .then(() => made?.close());
      return closing;
    },
  };
}

/** The store of a config alone, for looking at sessions. If the file names none, it is in memory, and empty. */
export async function resolveConfigStore(
  loaded: LoadedConfig,
): Promise<{ store: Store; close(): Promise<void> }> {
  checkLoaded(loaded);
  const resolver = new Resolver(loaded);
  return (await makeStore(resolver, loaded.config.store === undefined ? 'memory' : undefined))!;
}

/** The model of a config alone, for looking at what it is called and costs. */
export async function resolveConfigModel(loaded: LoadedConfig): Promise<Model> {
  checkLoaded(loaded);
  return makeModel(new Resolver(loaded), undefined);
}

function checkLoaded(loaded: unknown): void {
  const { config, redact } = Object(loaded) as Partial<LoadedConfig>;
  if (isRecord(config) && typeof redact === 'function') return;
  throw invalidOption('loaded', 'what loadConfig() returns, as in createAgent(await loadConfig())', loaded);
}

/** Options that are passed to the agent unchanged. */
function plainOptions(
  config: LoadedConfig['config'],
): Pick<AgentOptions, 'limits' | 'name'> & Partial<AgentOptions> {
  const { name, systemPrompt, limits, sessionLimits, settings, tenant } = config;
  const { toolChoiceTurns, toolExecution, queue, trace } = config;
  const given = {
    ...{ name, systemPrompt, limits, sessionLimits, settings, tenant },
    ...{ toolChoiceTurns, toolExecution, queue, trace },
  };
  const set = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return reveal(set, checkingSchema(false)) as Partial<AgentOptions>;
}

async function makeModel(resolver: Resolver, override: string | Model | undefined): Promise<Model> {
  const { config, file } = resolver.loaded;
  const path = ['allium', 'model'];
  const item = override ?? config.model;
  if (item === undefined)
    throw new ConfigError(
      'CONFIG_INVALID',
      'It is not set. Write model = "offline" to begin without a key.',
      {
        file,
        key: 'allium.model',
      },
    );
  const named = resolver.named(item, path);
  const model = named ? await resolver.make('model', named) : item;
  if (typeof (model as Model | null)?.stream === 'function') return model as Model;
  throw resolver.failure(
    new ConfigError(
      'CONFIG_INVALID',
      `Expected a model with provider, id and stream(), got ${describeValue(model)}.`,
    ),
    () => path,
  );
}

async function makeStore(
  resolver: Resolver,
  override: string | Store | undefined,
): Promise<{ store: Store; close(): Promise<void> } | undefined> {
  const item = override ?? resolver.loaded.config.store;
  if (item === undefined) return undefined;
  const path = ['allium', 'store'];
  const named = resolver.named(item, path);
  const store = (named ? await resolver.make('store', named) : item) as Store;
  if (typeof store?.append !== 'function')
    throw resolver.failure(
      new ConfigError('CONFIG_INVALID', `Expected a store, got ${describeValue(store)}.`),
      () => path,
    );
  return { store, close: async () => void (named && (await withStoreTimeout(store).close?.())) };
}

async function makeTools(resolver: Resolver): Promise<Tool[]> {
  const tools: Tool[] = [];
  for (const [index, item] of (resolver.loaded.config.tools ?? []).entries()) {
    const path = ['allium', 'tools', index];
    const named = resolver.named(item, path);
    const made: unknown = named ? await resolver.make('tool', named) : item;
    const found = [made].flat().filter(isTool);
    const wrong = wrongTools(found, tools, named?.name ?? 'It');
    if (wrong) throw resolver.failure(wrong, () => path);
    tools.push(...found);
  }
  return tools;
}

function wrongTools(found: readonly Tool[], before: readonly Tool[], from: string): ConfigError | undefined {
  if (found.length === 0)
    return new ConfigError(
      'CONFIG_INVALID',
      `${from} has no tools. Export what tool({ … }) makes: as default, as a list, or by name.`,
    );
  const names = before.map(({ name }) => name);
  for (const { name } of found) {
    if (names.includes(name))
      return new ConfigError(
        'DUPLICATE_TOOL',
        `Two tools are called ${describeValue(name)}. Rename one, or leave one out.`,
      );
    names.push(name);
  }
  return undefined;
}

function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && 'execute' in value && 'input' in value;
}

/** By path, the export is the observer; with options, it is a function that makes one. */
async function makeObservers(resolver: Resolver): Promise<Observer[]> {
  const { config, dir } = resolver.loaded;
  const observers: Observer[] = [];
  for (const [index, item] of (config.observers ?? []).entries()) {
    const path: KeyPath = ['allium', 'observers', index];
    const observer = await resolver.guarded(
      () => path,
      async () => {
        const named = resolver.named(item, path);
        if (!named) return item;
        if (!isPath(named.name))
          throw new ConfigError(
            'CONFIG_INVALID',
            `Observers must be files of your own, got ${describeValue(named.name)}. ${OWN_FILE}`,
          );
        const { module, chosen } = await importUser(dir, named.name);
        if (chosen === undefined)
          throw new ConfigError(
            'CONFIG_INVALID',
            `${named.name} has no default export. It exports: ${exportsOf(module)}.`,
          );
        return isTable(item) && typeof chosen === 'function' ? chosen(reveal(named.options)) : chosen;
      },
    );
    observers.push(observer as Observer);
  }
  return observers;
}

/** The chain of the file, with the MCP servers inside it. `mcp`: the servers, to connect and close them. */
async function makeChain(
  resolver: Resolver,
  hidden: SecretsHidden | undefined,
): Promise<{ chain: Middleware[]; mcp: McpServer[] }> {
  const { config } = resolver.loaded;
  const chain: { middleware: Middleware; as: string | undefined; fresh: boolean }[] = [];
  const mcp: McpServer[] = [];
  const items = [
    ...(config.middleware?.chain ?? []).map((item, index) => ({
      item,
      path: ['allium', 'middleware', 'chain', index] as KeyPath,
    })),
    ...Object.entries(config.mcp ?? {}).map(([name, options]) => ({
      item: { ...options, use: 'mcp', name },
      path: ['allium', 'mcp', name] as KeyPath,
    })),
  ];
  for (const { item, path } of items) {
    const named = resolver.named(item, path);
    const made = named ? await resolver.make('middleware', named) : item;
    const several = Array.isArray(made)
      ? (made.flat(Number.POSITIVE_INFINITY) as Middleware[])
      : [made as Middleware];
    if (named?.name === 'mcp') mcp.push(made as McpServer);
    const handed = named !== undefined && secretsIn(named.options).length > 0;
    for (const middleware of several)
      chain.push({
        middleware: handed && hidden ? hidden.middleware(middleware) : middleware,
        as: several.length === 1 ? named?.as : undefined,
        fresh: named !== undefined,
      });
  }
  return { chain: withUniqueNames(chain), mcp };
}

/**
 * Where an error of the agent belongs: to one of its options, or to the chain. Neither is what the caller of
 * `createAgent` gave.
 */
function placeInAgent(option: KeyPath, config: LoadedConfig['config']): KeyPath {
  const [first] = option;
  if (first !== undefined && first in config) return ['allium', ...option];
  return first === undefined && config.middleware?.chain ? ['allium', 'middleware', 'chain'] : ['allium'];
}
