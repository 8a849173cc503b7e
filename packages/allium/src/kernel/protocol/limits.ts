/** The limits of a run, and how large the arguments of a call may be. */

import { FOREIGN_LIMITS } from '../lib/foreign-names.js';
import { DEEPEST, depthOf } from '../lib/json-texts.js';
import * as kinds from '../lib/kinds.js';
import type { Kind } from '../lib/shapes.js';

export interface Limits {
  /** Model calls of the loop. @default 100 */
  readonly turns?: number;
  /** How deep sub-agents may nest. @default 8 */
  readonly depth?: number;
  /** Tool calls that may run. Further ones get a result that says so, and the run stops. */
  readonly toolCalls?: number;
  /** Input and output tokens, including sub-agents and middleware's own calls. */
  readonly tokens?: number;
  /** US dollars, counted like tokens. Every model needs a known price, or the run fails with `PRICE_UNKNOWN`. */
  readonly costUsd?: number;
  /** Active milliseconds. Waiting for the consumer or a human doesn't count. */
  readonly timeoutMs?: number;
  /** Milliseconds a model may send nothing. After that the call fails with `MODEL_TIMEOUT`, which is worth a retry. Waiting for the consumer doesn't count. `'none'` for no limit. @default 120000 */
  readonly modelIdleMs?: number | 'none';
  /** Milliseconds one call of a model may take, however much it sends. `'none'` for no limit. @default 600000 */
  readonly modelMs?: number | 'none';
  /** How deep the arguments of a call may be nested, up to 1000. A call with deeper ones gets an error result. @default 100 */
  readonly argsDepth?: number;
  /** How long the arguments of a call may be, in characters of JSON. A call with longer ones gets an error result. @default 4000000 */
  readonly argsChars?: number;
}

export const ARGS_CHARS = 4_000_000;

/** Why these arguments are too large, if they are. */
export function excessOf(
  args: string,
  { argsDepth = 100, argsChars = ARGS_CHARS }: Limits,
): string | undefined {
  if (args.length > argsChars) return `they are longer than ${argsChars} characters`;
  const depth = Math.min(argsDepth, DEEPEST);
  // Each level takes at least one character.
  if (args.length <= depth || depthOf(args, depth) <= depth) return undefined;
  return `they are nested more than ${depth} levels deep`;
}

const LEFT_OUT = 'Left out: ';

/** Replaces arguments that are too large. It isn't JSON, so no tool ever runs with it. */
export function leftOutMarker(excess: string): string {
  return `${LEFT_OUT}${excess}.`;
}

/** Why arguments are too large, or were when the call was journaled. */
export function tooLarge(args: string, limits: Limits): string | undefined {
  return args.startsWith(LEFT_OUT) ? args.slice(LEFT_OUT.length, -1) : excessOf(args, limits);
}

/** Limits as they are journaled. JSON has no infinity, so null means no limit. */
export type StoredLimits = Readonly<Record<string, number | null>>;

export function limitsToJson(limits: Limits): StoredLimits {
  const given = Object.entries(limits).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, Number.isFinite(value) ? value : null]));
}

export function limitsFromJson(stored: StoredLimits): Limits {
  const all = Object.entries(stored);
  return Object.fromEntries(all.map(([name, value]) => [name, value ?? Number.POSITIVE_INFINITY]));
}

/** Limits over all runs of a session. */
export type SessionLimits = Pick<Limits, 'turns' | 'toolCalls' | 'tokens' | 'costUsd'>;

const count = kinds.kind(
  'an integer ≥ 0',
  (value) => value >= 0 && (Number.isInteger(value) || value === Number.POSITIVE_INFINITY),
);
const amount = kinds.number(0, Number.POSITIVE_INFINITY);
const modelTime = kinds.either(kinds.number(1, Number.POSITIVE_INFINITY), kinds.oneOf('none'));
const SHARED = { turns: count, toolCalls: count, tokens: amount, costUsd: amount };

export const SESSION_LIMITS: Kind = kinds.shape(
  SHARED satisfies Record<keyof SessionLimits, Kind>,
  FOREIGN_LIMITS,
);

export const LIMITS: Kind = kinds.shape(
  {
    ...SHARED,
    depth: count,
    argsDepth: count,
    argsChars: count,
    timeoutMs: amount,
    modelIdleMs: modelTime,
    modelMs: modelTime,
  } satisfies Record<keyof Limits, Kind>,
  FOREIGN_LIMITS,
);
