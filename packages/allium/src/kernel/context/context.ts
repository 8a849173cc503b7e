/** What hooks are given: one family of contexts in which a field means the same wherever it appears. */

import type { ModelContext } from './model-context.js';
import type { RunContext } from './run-context.js';
import type { ToolContext } from './tool-context.js';

export { Context, type GenerateRequest } from './base-context.js';
export { ModelContext } from './model-context.js';
export { RunContext, type Taken } from './run-context.js';
export { ModelSeam, SeamCall } from './seam-call.js';
export {
  NO_INPUT,
  type ToolCallOwner,
  type ToolCallSubject,
  ToolContext,
} from './tool-context.js';
export { TurnContext } from './turn-context.js';

export type LayerContext = ModelContext | ToolContext | RunContext;
