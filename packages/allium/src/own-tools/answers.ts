/** What tools of middleware say when they cannot do what was asked. */

import { type ToolResult, toolResult } from '../index.js';
import { closestName } from '../kit/index.js';

/** A result that says what is wrong. */
export function failure(text: string): ToolResult {
  return toolResult({ content: text, isError: true });
}

/** Ends a sentence about a name that does not exist; empty when no name is like it. */
export function didYouMean(name: string, names: Iterable<string>): string {
  const near = closestName(name, names);
  return near ? ` Did you mean "${near}"?` : '';
}
