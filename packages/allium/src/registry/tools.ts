import { AlliumError, shown } from '../kernel/lib/errors.js';
import { isTool, type Tool } from '../kernel/protocol/tool.js';
import { type Factory, type RegisterOptions, Registry, type ResolveContext } from './registry.js';

// `resolveTool` checks each of several.
const registry = new Registry<Tool | readonly Tool[]>('tool', [], () => true);

/** Lets `resolveTool` and config files find one or several tools by one name. Returns a function that undoes this. */
export function registerTool(
  name: string,
  factory: Tool | Factory<Tool | readonly Tool[]>,
  options: RegisterOptions = {},
): () => void {
  return registry.register(name, isTool(factory) ? () => factory : factory, options);
}

/** Makes what is registered under that name: one tool or several. */
export async function resolveTool(
  name: string,
  options: object = {},
  context: ResolveContext = {},
): Promise<readonly Tool[]> {
  const made: unknown = await registry.resolve(name, options, context);
  const tools: readonly unknown[] = Array.isArray(made) ? made : [made];
  for (const one of tools)
    if (!isTool(one))
      throw new AlliumError(
        'INVALID_TOOL',
        `Expected the factory of "${name}" to return tools made with tool(), got ${shown(one)}.`,
      );
  return tools as readonly Tool[];
}

export { registry as toolRegistry };
