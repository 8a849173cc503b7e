/** Tools: schemas for tools of your own, results, and layers around tool calls. */

export { type Field as InputField, objectInput } from '../kernel/messages/object-input.js';
export { describeIssues, isStandardSchema, jsonSchemaOf } from '../kernel/messages/standard-schema.js';
export { specsOf as toolSpecs } from '../kernel/plan/compose.js';
export { errorResult, isContentList as isToolContent, isTool } from '../kernel/protocol/tool.js';
export { wasOffered as wasToolOffered } from '../kernel/tools/tool-preparation.js';
export { isDoubtful as mayHaveRun } from '../kernel/tools/unanswered.js';
export { nextWithProgress, nextWithTool, type ToolProgress } from './tool-layers.js';
