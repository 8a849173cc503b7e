/** What an answer allows for the rest of a session. */

import { takes } from '../protocol/asking.js';
import type { Decision, PendingRequest } from '../protocol/store.js';

/** Something that a person does not want to be asked again in a session. */
export interface Allowance {
  /** For `session.revoke(id)`. */
  readonly id: string;
  readonly toolName: string;
  /** `tool`: any call of the tool. `arguments`: only calls with the same arguments. */
  readonly scope: 'tool' | 'arguments';
  /** The arguments of a scope `arguments`, as the model wrote them, as JSON text. */
  readonly arguments?: string;
  /** The middleware that asked. It holds for no other. */
  readonly by?: string;
  /** The name of the sub-agent that asked, if one did. */
  readonly agent?: string;
  /** When the run took the answer, in milliseconds since the epoch. */
  readonly at: number;
}

/** The question that was answered so. */
interface Given {
  readonly request: PendingRequest;
  readonly scope: Allowance['scope'];
  readonly at: number;
}

/** By asker, agent, tool and, for a scope `arguments`, hash: an approval for one asker or sub-agent holds for no other. */
export type Allowed = ReadonlyMap<string, Given>;

type Asked = Pick<PendingRequest, 'by' | 'from' | 'toolName' | 'hash' | 'kind' | 'decisions' | 'remember'>;

function keyOf({ by, from, toolName, hash }: Asked, scope: Allowance['scope']): string {
  return JSON.stringify([from?.agent, by, toolName, scope === 'arguments' ? hash : undefined]);
}

/** With what this answer allows from now on, if anything. */
export function allowing(
  allowed: Allowed | undefined,
  request: PendingRequest | undefined,
  decision: Decision,
  at: number,
): Allowed | undefined {
  if (decision.type !== 'approve' || !decision.remember || request?.kind !== 'ask') return allowed;
  const scope = decision.remember;
  const key = keyOf(request, scope);
  // Whoever has seen a list of them can revoke by it, so it keeps its id if it is given again.
  return allowed?.has(key) ? allowed : new Map([...(allowed ?? []), [key, { request, scope, at }]]);
}

/** Without those of these ids. */
export function revoking(allowed: Allowed | undefined, ids: readonly string[]): Allowed | undefined {
  const left = [...(allowed ?? [])].filter(([, { request }]) => !ids.includes(request.id));
  return left.length === 0 ? undefined : new Map(left);
}

/** Has somebody said that this need not be asked again? Never for a question that takes no such answer. */
export function isAllowed(allowed: Allowed | undefined, request: Asked): boolean {
  if (!allowed || request.kind !== 'ask' || request.remember === false || !takes(request, 'approve'))
    return false;
  return allowed.has(keyOf(request, 'tool')) || allowed.has(keyOf(request, 'arguments'));
}

/** For people, oldest first. */
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
