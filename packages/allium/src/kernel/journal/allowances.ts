/** What an answer allows for the rest of a session. */

import type { Decision, PendingRequest } from '../protocol/store.js';

/** The key of a remembered approval. An approval for one asker, or for a sub-agent, holds for no other. */
function allowanceOf({ by, from, toolName, hash }: PendingRequest, remember: 'tool' | 'arguments'): string {
  return JSON.stringify([from?.agent, by, toolName, remember === 'arguments' ? hash : undefined]);
}

/** What this answer allows from now on, if anything. */
export function allowance(request: PendingRequest | undefined, decision: Decision): string | undefined {
  if (decision.type !== 'approve' || !decision.remember || request?.kind !== 'ask') return undefined;
  return allowanceOf(request, decision.remember);
}

/** Has somebody said that this need not be asked again? */
export function isAllowed(allowed: ReadonlySet<string> | undefined, request: PendingRequest): boolean {
  if (!allowed || request.kind !== 'ask') return false;
  return allowed.has(allowanceOf(request, 'tool')) || allowed.has(allowanceOf(request, 'arguments'));
}
