/** Errors: what they are, what caused them, and what others may be told about them. */
export { safeErrorMessage } from '../kernel/guards/guards.js';
export { isTellable as isTellableError, safeStackFrames } from '../kernel/guards/safe-values.js';
export { errorKind, messageOf } from '../kernel/lib/errors.js';
export { controlKind } from '../kernel/protocol/signals.js';
export { pathError } from './path-error.js';
export { chainOf as errorChain, headerOf as errorHeader } from './transient.js';
