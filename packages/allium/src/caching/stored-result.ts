/** Results of tools in a store, and the option that selects those tools. */

import type { ToolContext, ToolResult } from '../index.js';
import { type Kind, kinds } from '../kit/index.js';

/** What is stored: JSON, so that any store can hold it. */
export interface StoredResult {
  readonly version: 1;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  readonly result: ToolResult;
}

/** Stores also hold what others wrote: older versions, other programs. */
export function isStoredResult(value: unknown): value is StoredResult {
  if (typeof value !== 'object' || value === null) return false;
  const { version, expiresAt, result } = value as Partial<StoredResult>;
  return version === 1 && typeof expiresAt === 'number' && Array.isArray(result?.content);
}

type Picks = (ctx: ToolContext) => boolean;

/** An option that selects tools: names, or a function that is asked for each call. */
export const SELECTED_TOOLS: Kind<readonly string[] | Picks> = {
  ...kinds.either(kinds.names, kinds.func<Picks>()),
  expected: 'a list of tool names or a function',
};

/** Is the call of one of the tools that such an option selects? */
export function toolSelector(tools: readonly string[] | Picks): Picks {
  if (typeof tools === 'function') return tools;
  const names = new Set(tools);
  return (ctx) => names.has(ctx.toolCall.name);
}
