/** Errors: what they are, what caused them, and what others may be told about them. */
import { isTellable } from '../kernel/guards/safe-values.js';
import type { Context } from '../kernel/protocol/contexts.js';

export { safeErrorMessage } from '../kernel/guards/guards.js';
export { isTellable as isTellableError } from '../kernel/guards/safe-values.js';
export { errorKind, messageOf } from '../kernel/lib/errors.js';
export { controlKind } from '../kernel/protocol/signals.js';
export { pathError } from './path-error.js';
export { chainOf as errorChain, headerOf as errorHeader } from './transient.js';

/** The stack frames of an error, without its message; empty if there are none or a guard objects. */
export function safeStackFrames(error: unknown, ctx: Context): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || !isTellable(error, ctx)) return '';
  const from = error.stack.indexOf('\n    at ');
  return from < 0 ? '' : error.stack.slice(from);
}
