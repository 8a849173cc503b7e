/** Allowances: what a person approved with `remember` for the rest of a session. */

import type { Decision, PendingRequest } from '../protocol/store.js';
import { takes } from './merged-questions.js';

/** Something that isn't asked again in a session. */
export interface Allowance {
  /** For `session.revoke(id)`. */
  readonly id: string;
  readonly toolName: string;
  /** `tool`: any call of the tool. `arguments`: only calls with the same arguments. */
  readonly scope: 'tool' | 'arguments';
  /** For scope `arguments`: the arguments as the model wrote them, as JSON text. */
  readonly arguments?: string;
  /** The middleware that asked. The allowance only counts for this one. */
  readonly by?: string;
  /** The name of the sub-agent that asked, if one did. */
  readonly agent?: string;
  /** When the run took the answer, in milliseconds since the epoch. */
  readonly at: number;
}

/** An allowance with the question it answers. */
interface Given {
  readonly request: PendingRequest;
  readonly scope: Allowance['scope'];
  readonly at: number;
}

/** By asker, agent, tool and, for scope `arguments`, hash. An approval for one asker or sub-agent doesn't count for another. */
export type Allowed = ReadonlyMap<string, Given>;

type Asked = Pick<PendingRequest, 'by' | 'from' | 'toolName' | 'hash' | 'kind' | 'decisions' | 'remember'>;

function keyOf({ by, from, toolName, hash }: Asked, scope: Allowance['scope']): string {
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

/** The allowances as users see them, oldest first. */
export function listed(allowed: Allowed | undefined): readonly Allowance[] {
  return [...(allowed?.values() ?? [])].map(({ request, scope, at }) => ({
    id: request.id,
    toolName: request.toolName,
    scope,
    ...(scope === 'arguments' && { arguments: request.arguments }),
    ...(request.by !== undefined && { by: request.by }),
    ...(request.from && { agent: request.from.agent }),
    at,
  }));
}
