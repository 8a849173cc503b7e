/** Results of tools in a store, and which tools they are of. */

import type { ToolContext, ToolResult } from '../index.js';
import { invalidOption } from '../kit/index.js';

/** What is stored: JSON, so that any store can hold it. */
export interface StoredResult {
  readonly version: 1;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly result: ToolResult;
}

/** Stores hold what others wrote, too: older versions, other programs. */
export function isStoredResult(value: unknown): value is StoredResult {
  if (typeof value !== 'object' || value === null) return false;
  const { version, expiresAt, result } = value as Partial<StoredResult>;
  return version === 1 && typeof expiresAt === 'number' && Array.isArray(result?.content);
}

/** Whether a call is of one of the tools that an option names or a function picks. */
export function toolSelector(tools: unknown): (ctx: ToolContext) => boolean {
  if (typeof tools === 'function') return tools as (ctx: ToolContext) => boolean;
  if (!Array.isArray(tools) || !tools.every((name) => typeof name === 'string'))
    throw invalidOption('tools', 'a list of tool names or a function', tools);
  const names = new Set<string>(tools);
  return (ctx) => names.has(ctx.toolCall.name);
}
