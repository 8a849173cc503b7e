/** Tools of LangChain, by their shape. */

import {
  type JsonSchema,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolResult,
  tool,
  toolResult,
} from 'allium';
import { invalidOption } from 'allium/kit';
import { schemaFrom, schemaOf } from './foreign-schemas.js';
import { outputContent } from './from-prompt.js';
import { isObject, jsonCopy, type Loose } from './language-model.js';

/** The part of a tool of LangChain that is used. */
export interface LangChainTool {
  readonly name: string;
  readonly description?: string | undefined;
  /** A schema of zod, or a JSON Schema. */
  readonly schema: unknown;
  /** With `content_and_artifact`, what it returns beside the content becomes the `details` of the result. */
  readonly responseFormat?: string | undefined;
  /** Ends the run with the tool's result, unless other tools were called together with it. */
  readonly returnDirect?: boolean | undefined;
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
        resultOf(await given.invoke(...callOf(given, args, ctx)), given.returnDirect === true),
    });
  });
}

/**
 * Told of the call, LangChain answers with a whole message. Versions that don't look for it in the config drop the artifact,
 * unless the call itself is the input.
 */
function callOf({ name, responseFormat }: LangChainTool, args: Loose, ctx: ToolContext): [Loose, Loose] {
  const toolCall = { type: 'tool_call', id: ctx.toolCall.id, name, args };
  return [responseFormat === 'content_and_artifact' ? toolCall : args, { signal: ctx.signal, toolCall }];
}

/** LangChain checks the arguments itself, and transforms them, so it gets what the model wrote. */
function inputOf(schema: unknown, option: string): StandardSchema<Loose> {
  const fail = (what: string, value: unknown) => invalidOption(option, what, value);
  const known = schemaOf(schema, fail);
  if (known) {
    const { validate } = known['~standard'];
    return {
      '~standard': {
        ...known['~standard'],
        async validate(value) {
          const checked = await validate(value);
          return checked.issues ? checked : { value: value as Loose };
        },
      },
    };
  }
  if (!isObject(schema) || schema.type !== 'object')
    throw fail('a schema of zod or a JSON Schema of an object', schema);
  return schemaFrom(schema as JsonSchema, (value) => ({ value: value as Loose }));
}

/** A text, a value, content, or a whole message with `content` and `artifact`. */
function resultOf(given: unknown, terminate: boolean): ToolResult {
  const output = isObject(given) && given.lg_name === 'Command' ? messageOf(given) : given;
  const { content, artifact, status } = (isObject(output) ? output : {}) as Loose;
  const told = content ?? (typeof output === 'string' ? output : (JSON.stringify(output) ?? '(no output)'));
  const parts = Array.isArray(told) ? told.map(partOf) : [{ type: 'text', text: String(told) }];
  return toolResult({
    content: outputContent({ type: 'content', value: parts }),
    isError: status === 'error',
    ...(artifact !== undefined && artifact !== null && { details: jsonCopy(artifact) }),
    ...(terminate && status !== 'error' && { terminate }),
  });
}

/** The message in a `Command` of LangGraph. Whatever else it changes would be lost, since there is no graph. */
function messageOf({ update, goto, resume }: Loose): unknown {
  const changes: [string, unknown][] = Array.isArray(update) ? update : Object.entries(update ?? {});
  const others = changes.flatMap(([key]) => (key === 'messages' ? [] : `update.${key}`));
  if (goto !== undefined && [goto].flat().length > 0) others.push('goto');
  if (resume !== undefined) others.push('resume');
  const messages = changes.flatMap(([key, value]) => (key === 'messages' ? value : []));
  const message = messages.findLast((one) => isObject(one) && one.tool_call_id !== undefined);
  if (others.length === 0 && message) return message;
  const what = others.length > 0 ? others.join(', ') : 'no message for the call';
  throw new Error(
    `it returned a Command with ${what}, which only a graph of LangGraph can follow. Let it return its result.`,
  );
}

function partOf(part: unknown): Loose {
  if (!isObject(part)) return { type: 'text', text: String(part) };
  const { image_url: image, mimeType, mime_type: mediaType = mimeType } = part;
  const url = isObject(image) ? image.url : image;
  if (typeof url === 'string') return imageAt(url);
  return mediaType === undefined ? part : { ...part, mediaType };
}

/** Providers take the type of an image from beside it, and refuse one that isn't of that type. */
function imageAt(url: string): Loose {
  const [, mediaType, data] = DATA_URL.exec(url) ?? [];
  if (data === undefined) return { type: 'image', url, mediaType: 'image/*' };
  return { type: 'image', data, mediaType };
}

const DATA_URL = /^data:([^;,]+)[^,]*;base64,(.*)$/is;
