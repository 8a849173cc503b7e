/** Tools: schemas for tools of your own, results, and layers around tool calls. */
import { internal } from '../kernel/context/context.js';
import type { ToolContext } from '../kernel/protocol/contexts.js';

export { mayHaveRun } from '../kernel/calls/unanswered.js';
export { describeIssues, isStandardSchema, jsonSchemaOf } from '../kernel/messages/standard-schema.js';
export { errorResult, isContentList as isToolContent } from '../kernel/messages/tool-result.js';
export { isTool, toolSpecs } from '../kernel/protocol/tool.js';
export { type Field as InputField, objectInput } from './object-input.js';
export { nextWithProgress, nextWithTool, type ToolProgress, withExecute } from './tool-layers.js';

/** Was a tool of this name in the request that the call answers? Also known after a resume. */
export function wasToolOffered(ctx: ToolContext, name: string): boolean {
  const { _run: run } = internal(ctx);
  const offered = run.open.batch?.offered;
  return offered ? offered.includes(name) : run.plan.toolsByName.has(name);
}
