/** Results of tools in a store, and which tools they are of. */

import type { ToolContext, ToolResult } from '../index.js';
import { type Kind, kinds } from '../kit/index.js';

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

type Picks = (ctx: ToolContext) => boolean;

/** An option that says which tools are meant: names, or a function that is asked for each call. */
export const SELECTED_TOOLS: Kind<readonly string[] | Picks> = {
  ...kinds.either(kinds.names, kinds.func<Picks>()),
  expected: 'a list of tool names or a function',
};

/** Whether a call is of one of the tools that such an option names or picks. */
export function toolSelector(tools: readonly string[] | Picks): Picks {
  if (typeof tools === 'function') return tools;
  const names = new Set(tools);
  return (ctx) => names.has(ctx.toolCall.name);
}
