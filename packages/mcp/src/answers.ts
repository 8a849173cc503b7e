/** What a server answers, made readable for the library, which would refuse all of it for one slip. */

import type { Tool as ServerTool, specTypeSchemas, Transport } from '@modelcontextprotocol/client';
import { isRecord, messageOf } from 'allium/kit';

export interface Listing {
  readonly tools: readonly ServerTool[];
  /** Tools that nobody can call, and why. */
  readonly broken: readonly Broken[];
}

export interface Broken {
  readonly name: string;
  readonly why: string;
}

type Schemas = Pick<typeof specTypeSchemas, 'Tool' | 'ContentBlock'>;
type Result = Readonly<Record<string, unknown>>;

/**
 * Mends the server's answers before the library reads them: null means that something is absent, tools that aren't described as
 * the protocol says are taken out, and content of an unknown kind becomes text. Returns those tools of the latest list.
 */
export function withReadableAnswers(transport: Transport, schemas: Schemas): () => readonly Broken[] {
  let broken: Broken[] = [];
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const { method, params } = message as { method?: unknown; params?: { cursor?: unknown } };
    if (method === 'tools/list' && params?.cursor === undefined) broken = [];
    return send(message, options);
  };
  // The library calls this before its own.
  const before = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const answer = message as { result?: unknown };
    if (isRecord(answer.result)) answer.result = readable(answer.result as Result);
    before?.(message, extra);
  };
  return () => broken;

  function readable({ structuredContent, tools, content, ...said }: Result): Result {
    return {
      ...(withoutNulls(said) as Result),
      ...(tools !== undefined && { tools: Array.isArray(tools) ? tools.flatMap(described) : tools }),
      ...(content !== undefined && { content: listOf(content).map(asContent) }),
      ...(structuredContent !== null && structuredContent !== undefined && { structuredContent }),
    };
  }

  /** The tool, or nothing if it can't be used. */
  function described(told: unknown): readonly unknown[] {
    try {
      const tool = withoutNulls(told);
      const why = whatIsWrong(tool, schemas.Tool);
      if (why === undefined) return [tool];
      broken.push({ name: nameOf(told), why });
    } catch (error) {
      // It is nested too deep.
      broken.push({ name: nameOf(told), why: messageOf(error) });
    }
    return [];
  }

  function asContent(said: unknown): unknown {
    const part = withoutNulls(said);
    if (whatIsWrong(part, schemas.ContentBlock) === undefined) return part;
    const { text } = (isRecord(part) ? part : { text: part }) as { text?: unknown };
    return { type: 'text', text: typeof text === 'string' ? text : JSON.stringify(part) };
  }
}

/** Members whose values are data, in which null is a value. */
const DATA = ['const', 'default', 'enum', 'examples'];

/** Servers in some languages write null for every member that isn't there. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, member]) =>
    DATA.includes(name) ? [name, member] : [name, member === null ? undefined : withoutNulls(member)],
  );
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

function listOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : content === null ? [] : [content];
}

function whatIsWrong(value: unknown, schema: Schemas[keyof Schemas]): string | undefined {
  const [issue] = schema['~standard'].validate(value).issues ?? [];
  if (issue === undefined) return undefined;
  const path = issue.path?.map((part) => String(isRecord(part) ? part.key : part)).join('.');
  return `it isn't described as the protocol says: ${path ? `${path}: ` : ''}${issue.message}`;
}

function nameOf(tool: unknown): string {
  const { name } = (isRecord(tool) ? tool : {}) as { name?: unknown };
  return typeof name === 'string' ? name : '(no name)';
}
