/** What a server lists. One tool that isn't described as the protocol says doesn't spoil the others. */

import type { Tool as ServerTool, specTypeSchemas, Transport } from '@modelcontextprotocol/client';
import { isRecord } from 'allium/kit';

export interface Listing {
  readonly tools: readonly ServerTool[];
  /** Tools that nobody can call, and why. */
  readonly broken: readonly Broken[];
}

export interface Broken {
  readonly name: string;
  readonly why: string;
}

type ToolSchema = (typeof specTypeSchemas)['Tool'];

/**
 * Takes tools that aren't described as the protocol says out of the server's answers: the library would refuse the whole list.
 * Returns those of the latest list.
 */
export function withoutBrokenTools(transport: Transport, schema: ToolSchema): () => readonly Broken[] {
  const asked = new Set<unknown>();
  let broken: Broken[] = [];
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const { id, method, params } = message as {
      id?: unknown;
      method?: unknown;
      params?: { cursor?: unknown };
    };
    if (method === 'tools/list') {
      asked.add(id);
      if (params?.cursor === undefined) broken = [];
    }
    return send(message, options);
  };
  // The library calls this before its own.
  const before = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const { id, result } = message as { id?: unknown; result?: { tools?: unknown } };
    if (asked.delete(id) && Array.isArray(result?.tools)) {
      const told = result.tools.map((tool) => ({ tool, why: whatIsWrong(tool, schema) }));
      result.tools = told.filter(({ why }) => why === undefined).map(({ tool }) => tool);
      for (const { tool, why } of told) if (why !== undefined) broken.push({ name: nameOf(tool), why });
    }
    before?.(message, extra);
  };
  return () => broken;
}

function whatIsWrong(tool: unknown, schema: ToolSchema): string | undefined {
  const [issue] = schema['~standard'].validate(tool).issues ?? [];
  if (issue === undefined) return undefined;
  const path = issue.path?.map((part) => String(isRecord(part) ? part.key : part)).join('.');
  return `it isn't described as the protocol says: ${path ? `${path}: ` : ''}${issue.message}`;
}

function nameOf(tool: unknown): string {
  const { name } = (isRecord(tool) ? tool : {}) as { name?: unknown };
  return typeof name === 'string' ? name : '(no name)';
}
