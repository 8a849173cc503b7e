/** Lets a model play the tools, for tests: nothing is really done. */

import {
  defineMiddleware,
  type Middleware,
  type Model,
  type Tool,
  type ToolContext,
  textOf,
  toolSpec,
  userMessage,
} from '../../index.js';
import { checkMethods, checkNamed, invalidOption, type NamedOptions } from '../../kit/index.js';

export interface ToolEmulatorOptions extends NamedOptions {
  /** Plays the tools. */
  readonly model: Model;
  /** Which tools it plays, by name or as tool objects; an empty list plays none. @default all of them */
  readonly tools?: readonly (string | Tool)[];
}

const SYSTEM = `You play a tool that a program calls, so that the program can be tried without the real one.
You are given the name and description of the tool, the JSON Schema of its arguments, and the arguments of one call.
Answer with what the tool would return for them: plausible, consistent with the arguments, and nothing else. No explanation, no code fence.`;

/**
 * Answers tool calls with what a model makes up. Arguments are validated, hooks and guards work as usual; only the
 * tool itself does not run.
 *
 * @example
 * new Agent({ model, tools: [weather], middleware: [toolEmulator({ model: player, tools: ['weather'] })] });
 */
export function toolEmulator(options: ToolEmulatorOptions): Middleware {
  checkNamed('toolEmulator', options, ['model', 'tools']);
  const { model, tools } = options;
  checkMethods('model', model, ['stream']);
  const names = tools === undefined ? undefined : namesOf(tools);
  return defineMiddleware({
    name: options.name ?? 'tool-emulator',
    ...(names && { mentions: [...names] }),
    extraLlmCalls: () => [model],
    async wrapTool(ctx, next) {
      if (names && !names.has(ctx.toolCall.name)) return next();
      const response = await ctx.generate(model, {
        systemPrompt: SYSTEM,
        messages: [userMessage(scene(ctx))],
      });
      return { content: [{ type: 'text', text: textOf(response) }], isError: false };
    },
  });
}

function namesOf(tools: readonly (string | Tool)[]): ReadonlySet<string> {
  const name = (tool: unknown) => (typeof tool === 'string' ? tool : (tool as Partial<Tool> | null)?.name);
  if (!Array.isArray(tools) || !tools.every((tool) => typeof name(tool) === 'string'))
    throw invalidOption('tools', 'a list of tools or their names', tools);
  return new Set(tools.map((tool) => name(tool)!));
}

function scene({ tool, toolCall, rawArgs }: ToolContext): string {
  return [
    `Tool: ${tool?.name ?? toolCall.name}`,
    `Description: ${tool?.description ?? ''}`,
    `Schema: ${JSON.stringify(tool ? toolSpec(tool).inputSchema : {})}`,
    `Arguments: ${JSON.stringify(rawArgs ?? {})}`,
  ].join('\n');
}
