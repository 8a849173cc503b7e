/** Tools of LangChain, by their shape. */

import { type StandardSchema, type Tool, type ToolContext, type ToolResult, tool, toolResult } from 'allium';
import { invalidOption, isStandardSchema } from 'allium/kit';
import { outputContent } from './from-prompt.js';
import { isObject, jsonCopy, type Loose } from './language-model.js';

/** The part of a tool of LangChain that is used. */
export interface LangChainTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** A schema of zod 4, or a JSON Schema. */
  readonly schema: unknown;
  /** With `content_and_artifact`, what it returns beside the content becomes the `details` of the result. */
  readonly responseFormat?: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: each tool has types of its own.
  invoke(input: any, config?: any): unknown;
}

/**
 * Tools of LangChain as tools of an agent.
 *
 * @example
 * const agent = new Agent({ model, tools: fromLangChainTools([search, calculator]) });
 */
export function fromLangChainTools(tools: readonly LangChainTool[]): Tool[] {
  if (!Array.isArray(tools)) throw invalidOption('tools', 'a list of tools of LangChain', tools);
  return tools.map((given, i) => {
    if (
      typeof given !== 'object' ||
      given === null ||
      typeof given.name !== 'string' ||
      typeof given.invoke !== 'function'
    )
      throw invalidOption(`tools[${i}]`, 'a tool of LangChain, with `name`, `schema` and `invoke`', given);
    return tool({
      name: given.name,
      description: given.description ?? '',
      input: inputOf(given.schema, `tools[${i}].schema`),
      execute: async (args, ctx) =>
        resultOf(await given.invoke(inputFor(given, args, ctx), { signal: ctx.signal })),
    });
  });
}

/** Given arguments alone, LangChain drops the artifact. Given the call, it answers with a whole message. */
function inputFor({ name, responseFormat }: LangChainTool, args: Loose, ctx: ToolContext): Loose {
  return responseFormat === 'content_and_artifact'
    ? { type: 'tool_call', id: ctx.toolCall.id, name, args }
    : args;
}

function inputOf(schema: unknown, option: string): StandardSchema<Loose> {
  if (isStandardSchema(schema) && schema['~standard'].jsonSchema) return schema as StandardSchema<Loose>;
  if (isStandardSchema(schema) || !isObject(schema) || schema.type !== 'object')
    throw invalidOption(option, 'a schema of zod 4 or a JSON Schema of an object', schema);
  // LangChain also passes on values that don't fit the JSON Schema: the tool itself checks them.
  return {
    '~standard': {
      version: 1,
      vendor: 'langchain',
      jsonSchema: { input: () => ({ ...schema }) },
      validate: (value) => ({ value: value as Loose }),
    },
  };
}

/** A text, a value, content, or a whole message with `content` and `artifact`. */
function resultOf(output: unknown): ToolResult | string {
  if (typeof output === 'string') return output;
  const { content, artifact, status } = (isObject(output) ? output : {}) as Loose;
  if (content === undefined) return JSON.stringify(output) ?? '(no output)';
  const parts = Array.isArray(content) ? content.map(partOf) : [{ type: 'text', text: String(content) }];
  return toolResult({
    content: outputContent({ type: 'content', value: parts }),
    isError: status === 'error',
    ...(artifact !== undefined && artifact !== null && { details: jsonCopy(artifact) }),
  });
}

function partOf(part: unknown): Loose {
  if (!isObject(part)) return { type: 'text', text: String(part) };
  const { image_url: image } = part;
  const url = isObject(image) ? image.url : image;
  return typeof url === 'string' ? { type: 'image', url, mediaType: 'image/*' } : part;
}
