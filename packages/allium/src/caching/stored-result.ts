/** Results of tools in a store, and the option that selects those tools. */

import type { Tool, ToolContext, ToolResult } from '../index.js';
import { isTool, type Kind, kinds, yesOrNo } from '../kit/index.js';

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

type SelectedTools = readonly (string | Tool)[] | Picks;

const aTool = kinds.kind<Tool>('a tool', isTool);

/** An option that selects tools: names, tools, or a function that is asked for each call. */
export const SELECTED_TOOLS: Kind<SelectedTools> = {
  ...kinds.either(
    { ...kinds.listOf(kinds.either(kinds.text, aTool), 'a list'), schema: kinds.names.schema },
    kinds.func<Picks>(),
  ),
  expected: 'a list of tool names and tools, or a function',
};

/** Is the call of one of the tools that such an option selects? */
export function toolSelector(tools: SelectedTools): Picks {
  if (typeof tools === 'function') return yesOrNo('tools', tools);
  const names = new Set(namesIn(tools));
  return (ctx) => names.has(ctx.toolCall.name);
}

/** The names in such a list. */
export function namesIn(tools: readonly (string | Tool)[]): readonly string[] {
  return tools.map((one) => (typeof one === 'string' ? one : one.name));
}
