/** Limits of a run, and how large the arguments of a call may be. */
import { invalidOption } from '../lib/errors.js';
import { FOREIGN_LIMITS } from '../lib/foreign-names.js';
import { DEEPEST, depthOf } from '../lib/json-texts.js';
import { checkKeys } from '../lib/shapes.js';

export interface Limits {
  /** Model calls of the loop. @default 100 */
  readonly turns?: number;
  /** How deep sub-agents may nest. @default 8 */
  readonly depth?: number;
  /** Tool calls that may run. Those beyond get a result that says so, and the run stops. */
  readonly toolCalls?: number;
  /** Input and output tokens, sub-agents and middleware's own calls included. */
  readonly tokens?: number;
  /** US dollars, shared like tokens. Every model needs a known price: `PRICE_UNKNOWN` otherwise. */
  readonly costUsd?: number;
  /** Active milliseconds: waiting for the consumer or a human does not count. */
  readonly timeoutMs?: number;
  /** Milliseconds a model may send nothing, from when it is asked: then the call fails with `MODEL_TIMEOUT`, which is worth another try. Waiting for the consumer does not count. `'none'` for no limit. @default 120000 */
  readonly modelIdleMs?: number | 'none';
  /** Milliseconds one call of a model may take, however much it sends. `'none'` for no limit. @default 600000 */
  readonly modelMs?: number | 'none';
  /** How deep the arguments of a call may be nested, up to 1000. A call with deeper ones gets an error result. @default 100 */
  readonly argsDepth?: number;
  /** How long the arguments of a call may be, in characters of JSON. A call with longer ones gets an error result. @default 4000000 */
  readonly argsChars?: number;
}

export const ARGS_CHARS = 4_000_000;

/** What is wrong with the size of arguments, if anything. */
export function excessOf(
  args: string,
  { argsDepth = 100, argsChars = ARGS_CHARS }: Limits,
): string | undefined {
  if (args.length > argsChars) return `they are longer than ${argsChars} characters`;
  const depth = Math.min(argsDepth, DEEPEST);
  // Each level takes a character at least.
  if (args.length <= depth || depthOf(args, depth) <= depth) return undefined;
  return `they are nested more than ${depth} levels deep`;
}

const LEFT_OUT = 'Left out: ';

/** What stands in a message for arguments that are too large. It is no JSON, so nothing ever runs with it. */
export function leftOut(excess: string): string {
  return `${LEFT_OUT}${excess}.`;
}

/** Why arguments are too large, or were when the call was written down. */
export function tooLarge(args: string, limits: Limits): string | undefined {
  return args.startsWith(LEFT_OUT) ? args.slice(LEFT_OUT.length, -1) : excessOf(args, limits);
}

/** As they are journaled. JSON has no infinity: what is not limited is null. */
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

const WHOLE = ['turns', 'depth', 'toolCalls', 'argsDepth', 'argsChars'];
const LIMITS = [...WHOLE, 'tokens', 'costUsd', 'timeoutMs', 'modelIdleMs', 'modelMs'];

export function checkLimits(limits: Limits, what = 'limits', allowed: readonly string[] = LIMITS): void {
  if (typeof limits !== 'object' || limits === null) throw invalidOption(what, 'an object', limits);
  checkKeys(what, limits, allowed, FOREIGN_LIMITS);
  for (const [key, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    if (key === 'modelIdleMs' || key === 'modelMs') {
      if (value !== 'none' && !(typeof value === 'number' && value >= 1))
        throw invalidOption(`${what}.${key}`, "a number ≥ 1 or 'none'", value);
      continue;
    }
    const whole = WHOLE.includes(key);
    const amount = typeof value === 'number' && value >= 0;
    if (!amount || (whole && value !== Number.POSITIVE_INFINITY && !Number.isInteger(value)))
      throw invalidOption(`${what}.${key}`, whole ? 'an integer ≥ 0' : 'a number ≥ 0', value);
  }
}

export function checkSessionLimits(limits: SessionLimits): void {
  checkLimits(limits, 'sessionLimits', ['turns', 'toolCalls', 'tokens', 'costUsd']);
}
