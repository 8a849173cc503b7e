/** An MCP server by name. It is loaded from `@allium/mcp` when one is asked for. */
import { resolve } from 'node:path';
import type { Middleware } from '../kernel/protocol/middleware.js';
import { type Entry, type FactoryContext, loadPackage } from './registry.js';

/** `modelOf`: the model that a name means. */
export function mcpEntry(
  modelOf: (context: FactoryContext, name: unknown) => unknown,
): Omit<Entry<Middleware>, 'builtIn'> {
  return {
    name: 'mcp',
    // The factory checks its options.
    optionsSchema: { type: 'object' },
    factory: async ({ sampling, ...options }: Record<string, unknown>, context: FactoryContext) => {
      const { mcp } = (await loadPackage(context, '@allium/mcp')) as { mcp(options: object): Middleware };
      return mcp({
        ...options,
        ...('command' in options && startIn(context, options)),
        ...(sampling !== undefined && { sampling: await modelOf(context, sampling) }),
      });
    },
  };
}

/** Paths in a file are relative to its folder. Those in `command` and `args` are, too, if the program starts there. */
function startIn({ dir }: FactoryContext, { cwd = '.' }: { cwd?: unknown }): object {
  return typeof cwd === 'string' && dir !== undefined ? { cwd: resolve(dir, cwd) } : {};
}
