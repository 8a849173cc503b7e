/** An agent from a file: `allium.toml`, `allium.json` or `allium.config.ts`, with plugins found by name. */
export { checkPlugin } from './check-plugin.js';
export { ConfigError } from './config-error.js';
export { createAgent, resolveConfigModel, resolveConfigStore } from './create-agent.js';
export { CONFIG_FILES, defineConfig, loadConfig } from './load.js';
export { installedPlugins } from './plugins.js';
export { scaffoldPlugin } from './scaffold.js';
export { configJsonSchema } from './schema.js';
export { Secret } from './secret.js';
export type {
  Config,
  ConfigSource,
  CreateAgentOverrides,
  CreatedAgent,
  InstalledPlugin,
  LoadConfigOptions,
  LoadedConfig,
  McpServer,
  McpServerState,
  PluginCheck,
  PluginManifest,
  PluginReport,
  PluginType,
  ScaffoldedPlugin,
  ScaffoldOptions,
  Use,
} from './types.js';
