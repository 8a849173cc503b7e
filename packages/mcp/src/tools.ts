/** A server's tools as tools of an agent: names, descriptions, schemas, results. */

import type {
  CallToolResult,
  fromJsonSchema as FromJsonSchema,
  jsonSchemaValidator,
  Tool as ServerTool,
} from '@modelcontextprotocol/client';
import {
  type Decision,
  type StandardSchema,
  type Tool,
  type ToolContent,
  type ToolContext,
  type ToolResult,
  tool,
  toolResult,
} from 'allium';
import { messageOf } from 'allium/kit';
import type { Listing } from './answers.js';
import type { CallHooks } from './calls.js';
import type { Connection } from './connection.js';
import { elicitationAnswer, elicitationRequest } from './elicitation.js';
import { fingerprintOf, sha256 } from './fingerprint.js';
import type { Settings } from './options.js';
import { samplingRequest, samplingResult } from './sampling.js';
import { withMembers } from './schema-members.js';

/** A tool as the server describes it. The description and the schema are the server's own words: don't trust them. */
export interface McpTool {
  /** What the model calls it. */
  readonly name: string;
  /** What the server calls it. */
  readonly serverName: string;
  /** As the model sees it: cut, and without invisible characters. */
  readonly description: string;
  /** Changes if the server describes the tool or its arguments differently. */
  readonly fingerprint: string;
}

export interface OfferedTool extends McpTool {
  readonly tool: Tool;
}

/** The tools of a server that are offered, and why others were left out. */
export interface Offer {
  readonly tools: readonly OfferedTool[];
  readonly leftOut: readonly { readonly name: string; readonly why: string }[];
}

/** What makes schemas of those a server sends. */
export interface Schemas {
  readonly fromJsonSchema: typeof FromJsonSchema;
  readonly validator: jsonSchemaValidator;
  /** Checks what people answer to forms. */
  readonly forms: jsonSchemaValidator;
}

export function offerOf(
  { tools: listed, broken }: Listing,
  connection: Connection,
  settings: Settings,
  schemas: Schemas,
): Offer {
  const { only, except = [], pins, maxTools } = settings;
  const isWanted = ({ name }: { name: string }) => (only?.includes(name) ?? true) && !except.includes(name);
  const tools = new Map<string, OfferedTool>();
  const leftOut = broken.filter(isWanted);
  const wanted = listed.filter(isWanted);
  const names = namesOf(wanted, settings.prefix);
  for (const one of wanted) {
    const why = (() => {
      if (pins && !Object.hasOwn(pins, one.name)) return 'it is not among the `pins`';
      if (one.execution?.taskSupport === 'required')
        return 'it only runs as a task, and tasks are not supported';
      if (tools.size >= maxTools) return `there are more than ${maxTools} tools (\`maxTools\`)`;
      const name = names.get(one.name)!;
      if (tools.has(name)) return `another tool is called "${name}" too`;
      try {
        tools.set(name, offered(name, one, connection, settings, schemas));
      } catch (error) {
        return messageOf(error);
      }
      return undefined;
    })();
    if (why !== undefined) leftOut.push({ name: one.name, why });
  }
  const known = [...listed, ...broken].map(({ name }) => name);
  for (const name of new Set([...(only ?? []), ...except, ...Object.keys(pins ?? {})]))
    if (!known.includes(name))
      leftOut.push({ name, why: 'the server has no such tool, but an option names it' });
  return { tools: [...tools.values()], leftOut };
}

function offered(
  name: string,
  listed: ServerTool,
  connection: Connection,
  settings: Settings,
  { fromJsonSchema, validator, forms }: Schemas,
): OfferedTool {
  const { inputSchema, annotations } = listed;
  const size = JSON.stringify(inputSchema).length;
  if (size > settings.maxSchemaChars)
    throw new Error(
      `its schema has ${size} characters of JSON (\`maxSchemaChars\` is ${settings.maxSchemaChars})`,
    );
  const readable = (said: string): string => plainText(said, settings.maxDescriptionChars);
  const description = readable(listed.description ?? listed.title ?? '');
  const made = tool({
    name,
    description,
    // Its types name the dialects of JSON Schema, ours don't.
    input: fromJsonSchema(readableSchema(inputSchema, readable) as never, validator) as StandardSchema<
      Record<string, unknown>
    >,
    idempotent: annotations?.idempotentHint === true || annotations?.readOnlyHint === true,
    timeoutMs: settings.timeoutMs,
    tags: ['mcp', ...(annotations?.destructiveHint === true ? ['destructive'] : [])],
    execute: (args, ctx) => execute(connection, listed, args, ctx, settings, forms),
  });
  return { name, serverName: listed.name, description, fingerprint: fingerprintOf(listed), tool: made };
}

async function execute(
  connection: Connection,
  listed: ServerTool,
  args: Record<string, unknown>,
  ctx: ToolContext,
  settings: Settings,
  forms: jsonSchemaValidator,
): Promise<ToolResult> {
  const hooks: CallHooks = {
    key: ctx.idempotencyKey,
    signal: ctx.signal,
    progress({ progress, total, message }) {
      const share = total === undefined ? `${progress}` : `${progress} of ${total}`;
      void ctx.update(message ? `${message} (${share})` : share, {
        progress,
        ...(total !== undefined && { total }),
      });
    },
    async elicit(params) {
      const decision: Decision = await ctx.suspend(elicitationRequest(settings.name, listed.name, params));
      return elicitationAnswer(decision, params, forms);
    },
    async sample(params) {
      const model = settings.sampling!;
      return samplingResult(await ctx.generate(model, samplingRequest(params)), model);
    },
  };
  return resultOf(await connection.call(listed, args, hooks));
}

/**
 * What the model calls each tool: at most 64 letters, digits, `_` and `-`. A name that had to be shortened, or that would be that
 * of another tool without its other characters, ends with a few letters of its hash.
 */
function namesOf(tools: readonly ServerTool[], prefix: string): ReadonlyMap<string, string> {
  const plain = new Map(tools.map(({ name }) => [name, (prefix + name).replace(/[^\w-]/g, '_')]));
  const uses = new Map<string, number>();
  for (const name of plain.values()) uses.set(name, (uses.get(name) ?? 0) + 1);
  return new Map(
    [...plain].map(([name, short]) => {
      const isOwn = short === prefix + name || uses.get(short) === 1;
      return [name, isOwn && short.length <= MAX_NAME ? short : hashed(short, name)];
    }),
  );
}

const MAX_NAME = 64;

function hashed(short: string, name: string): string {
  return `${short.slice(0, 55)}_${sha256(name).slice(0, 8).replace(/\W/g, '_')}`;
}

/** Members of a schema that are only there to be read. */
const WORDS = ['title', 'description', '$comment'];

/** What is said of arguments is as little trusted as what is said of the tool. */
function readableSchema(schema: unknown, readable: (said: string) => string): unknown {
  return withMembers(schema, (members) =>
    Object.fromEntries(
      Object.entries(members).map(([name, member]) => [
        name,
        WORDS.includes(name) && typeof member === 'string' ? readable(member) : member,
      ]),
    ),
  );
}

/** Without control characters and characters that are not seen, such as those that reverse or hide text. */
function plainText(text: string, maxChars: number): string {
  const seen = text.replace(/[^\P{C}\n\t]|[\p{Default_Ignorable_Code_Point}]/gu, '');
  return seen.length <= maxChars
    ? seen
    : `${seen.slice(0, maxChars)} … (cut, ${seen.length - maxChars} characters more)`;
}

/**
 * What a tool of a server returned, as a result: text, images and files for the model, structured content as details. What the
 * content doesn't say of it, the model reads as JSON: some servers write nothing, or only a summary.
 */
function resultOf({ content = [], structuredContent, isError = false }: CallToolResult): ToolResult {
  // Some providers refuse empty texts.
  const parts = content.map(partOf).filter((part) => part.type !== 'text' || part.text.trim() !== '');
  const said = parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
  const json = structuredContent === undefined ? undefined : JSON.stringify(structuredContent);
  if (json !== undefined && (parts.length === 0 || !says(said, structuredContent, json)))
    parts.push(text(json));
  return toolResult({
    content: parts.length > 0 ? parts : '(no output)',
    isError,
    ...(structuredContent !== undefined && { details: structuredContent }),
  });
}

/** The search takes the product of the lengths, in the worst case: at this one a moment, where a server could make it hours. */
const MOST_SEARCHED = 1e9;

/** Does the text say it all: as JSON, or with every value somewhere in it? */
function says(said: string, structured: unknown, json: string): boolean {
  return (
    compact(said) === json || (said.length * json.length <= MOST_SEARCHED && hasValues(said, structured))
  );
}

function compact(json: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function hasValues(said: string, value: unknown): boolean {
  if (value === null) return true;
  if (typeof value === 'object') return Object.values(value).every((one) => hasValues(said, one));
  return said.includes(String(value)) || said.includes(JSON.stringify(value));
}

function partOf(part: CallToolResult['content'][number]): ToolContent {
  switch (part.type) {
    case 'text':
      return text(part.text);
    case 'image':
      return { type: 'image', data: part.data, mimeType: part.mimeType };
    case 'audio':
      return { type: 'file', data: part.data, mimeType: part.mimeType };
    case 'resource': {
      const { resource } = part;
      if ('text' in resource) return text(`${resource.uri}\n${resource.text}`);
      return { type: 'file', data: resource.blob, mimeType: resource.mimeType ?? 'application/octet-stream' };
    }
    case 'resource_link':
      return text(
        `${part.title ?? part.name}: ${part.uri}${part.description ? `\n${part.description}` : ''}`,
      );
    default:
      return text(JSON.stringify(part));
  }
}

function text(value: string): ToolContent {
  return { type: 'text', text: value };
}
