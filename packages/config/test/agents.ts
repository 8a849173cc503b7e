// Agents of a temporary project, and what goes wrong with them.

import { ConfigError, type CreateAgentOverrides, createAgent, loadConfig } from '../src/index.js';
import { project } from './project.js';

type Files = Record<string, string | object>;

/** Makes the agent of an `allium.toml` and the files beside it. */
export async function make(
  toml: string,
  files: Files = {},
  overrides: CreateAgentOverrides = {},
): Promise<Awaited<ReturnType<typeof createAgent>>> {
  const config = await loadConfig({ cwd: project({ 'allium.toml': toml, ...files }), env: {} });
  return createAgent(config, overrides);
}

/** The error that making it ends with. */
export function failing(...args: Parameters<typeof make>): Promise<ConfigError> {
  return make(...args).then(
    () => Promise.reject(new Error('It was made.')),
    (error) => (error instanceof ConfigError ? error : Promise.reject(error)),
  );
}
