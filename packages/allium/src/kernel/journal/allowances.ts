/** Allowances: what a person approved with `remember` for the rest of a session. */

import type { Decision, PendingRequest } from '../protocol/store.js';
import { takes } from './merged-questions.js';

/** An allowance, with the question it answers. `tool`: any call of the tool; `arguments`: only calls with the same arguments. */
interface Given {
  readonly request: PendingRequest;
  readonly scope: Scope;
  readonly at: number;
}

type Scope = NonNullable<(Decision & { readonly type: 'approve' })['remember']>;

/** By asker, agent, tool and, for scope `arguments`, hash. An approval for one asker or sub-agent doesn't count for another. */
export type Allowed = ReadonlyMap<string, Given>;

type Asked = Pick<PendingRequest, 'by' | 'from' | 'toolName' | 'hash' | 'kind' | 'decisions' | 'remember'>;

function keyOf({ by, from, toolName, hash }: Asked, scope: Scope): string {
  return JSON.stringify([from?.agent, by, toolName, scope === 'arguments' ? hash : undefined]);
}

/** Adds what this answer allows, if anything. */
export function allowing(
  allowed: Allowed | undefined,
  request: PendingRequest | undefined,
  decision: Decision,
  at: number,
): Allowed | undefined {
  if (decision.type !== 'approve' || !decision.remember || request?.kind !== 'ask') return allowed;
  const scope = decision.remember;
  const key = keyOf(request, scope);
  // A repeated allowance keeps its id, so that it can still be revoked by the id that was listed.
  return allowed?.has(key) ? allowed : new Map([...(allowed ?? []), [key, { request, scope, at }]]);
}

/** Removes the allowances with these ids. */
export function revoking(allowed: Allowed | undefined, ids: readonly string[]): Allowed | undefined {
  const left = [...(allowed ?? [])].filter(([, { request }]) => !ids.includes(request.id));
  return left.length === 0 ? undefined : new Map(left);
}

/** Was this approved for the rest of the session? Never for a question that doesn't accept such an answer. */
export function isAllowed(allowed: Allowed | undefined, request: Asked): boolean {
  if (!allowed || request.kind !== 'ask' || request.remember === false || !takes(request, 'approve'))
    return false;
  return allowed.has(keyOf(request, 'tool')) || allowed.has(keyOf(request, 'arguments'));
}
