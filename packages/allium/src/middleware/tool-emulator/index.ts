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
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export const OPTIONS = {
  /** Plays the tools. @default the model of the agent */
  model: kinds.model<Model>(),
  /** Which tools it plays, by name or as tool objects; an empty list plays none. @default all of them */
  tools: kinds.listOf(
    kinds.kind<string | Tool>('a tool or its name', (one) => nameOf(one) !== undefined),
    'a list of tools or their names',
  ),
  ...named('tool-emulator'),
} satisfies Fields;

export interface ToolEmulatorOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

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
export function toolEmulator(options: ToolEmulatorOptions = {}): Middleware {
  const { model, tools, name, madeWith } = readOptions('toolEmulator', OPTIONS, options);
  const names = tools && new Set(tools.map((tool) => nameOf(tool)!));
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    ...(names && { mentions: [...names] }),
    extraLlmCalls: () => (model ? [model] : []),
    async wrapTool(ctx, next) {
      if (names && !names.has(ctx.toolCall.name)) return next();
      const response = await ctx.generate(model ?? ctx.agent.model, {
        systemPrompt: SYSTEM,
        messages: [userMessage(scene(ctx))],
      });
      const text = textOf(response);
      const details = await madeUp(text, ctx.tool);
      return { content: [{ type: 'text', text }], isError: false, ...(details !== undefined && { details }) };
    },
  });
}

function nameOf(tool: unknown): string | undefined {
  const name = typeof tool === 'string' ? tool : (tool as Partial<Tool> | null)?.name;
  return typeof name === 'string' ? name : undefined;
}

/** The value of the made-up text for `toolOutput()`: undefined if it doesn't fit the `output` of the tool. */
async function madeUp(text: string, tool: Tool | undefined): Promise<unknown> {
  if (!tool?.output) return undefined;
  try {
    const checked = await tool.output['~standard'].validate(JSON.parse(text));
    return checked.issues ? undefined : checked.value;
  } catch {
    return undefined;
  }
}

function scene({ tool, toolCall, rawArgs }: ToolContext): string {
  const { inputSchema = {}, outputSchema } = tool ? toolSpec(tool) : {};
  return [
    `Tool: ${tool?.name ?? toolCall.name}`,
    `Description: ${tool?.description ?? ''}`,
    `Schema: ${JSON.stringify(inputSchema)}`,
    ...(outputSchema ? [`It returns JSON of this schema: ${JSON.stringify(outputSchema)}`] : []),
    `Arguments: ${JSON.stringify(rawArgs ?? {})}`,
  ].join('\n');
}
