/** Calls whose arguments a person changed in answer to a question. Requests say so, see `model/changed-calls`. */

import { canonicalJson } from '../lib/hash.js';
import type { Decision, PendingRequest } from '../protocol/store.js';

/** Ids of calls that answers changed, by request id. */
export type ChangedCalls = ReadonlyMap<string, string>;

/** Adds what this answer changes. `request` is undefined for an answer that replaces an earlier one, as guards left it. */
export function changing(
  changed: ChangedCalls | undefined,
  requestId: string,
  request: PendingRequest | undefined,
  decision: Decision,
): ChangedCalls | undefined {
  if (decision.type !== 'edit') return without(changed, requestId);
  // A question of `ctx.suspend()` uses the answer as it likes, and a sub-agent's call is in its own session.
  if (request?.kind !== 'ask' || request.from) return changed;
  const args = canonicalJson(decision.args);
  const { arguments: given, effectiveArguments: effective = given } = request;
  if ([given, effective].some((text) => canonicalJson(JSON.parse(text)) === args)) return changed;
  return new Map([...(changed ?? []), [requestId, request.callId]]);
}

function without(changed: ChangedCalls | undefined, requestId: string): ChangedCalls | undefined {
  if (!changed?.has(requestId)) return changed;
  return new Map([...changed].filter(([id]) => id !== requestId));
}
