/** The door to the contexts, which hooks are given. A field means the same in all of them. */

import type {
  Context as PublicContext,
  ModelContext as PublicModelContext,
  RunContext as PublicRunContext,
  ToolContext as PublicToolContext,
} from '../protocol/contexts.js';
import type { Context } from './base-context.js';
import type { ModelContext } from './model-context.js';
import type { RunContext } from './run-context.js';
import type { ToolContext } from './tool-context.js';

export { Context } from './base-context.js';
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

/** The context a hook was given, with the members that only the kernel uses. */
export function internal(ctx: PublicModelContext): ModelContext;
export function internal(ctx: PublicToolContext): ToolContext;
export function internal(ctx: PublicRunContext): RunContext;
export function internal(ctx: PublicContext): Context;
export function internal(ctx: PublicContext): Context {
  return ctx as Context;
}
