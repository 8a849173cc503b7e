/** Whether the arguments of a call are too large, and what is kept of them then. */

import { DEEPEST, depthOf } from '../lib/json-texts.js';

/** See `Limits`. */
interface ArgumentLimits {
  readonly argsDepth?: number;
  readonly argsChars?: number;
}

export const ARGS_CHARS = 4_000_000;

/** Why these arguments are too large, if they are. */
export function excessOf(
  args: string,
  { argsDepth = 100, argsChars = ARGS_CHARS }: ArgumentLimits,
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
export function tooLarge(args: string, limits: ArgumentLimits): string | undefined {
  return args.startsWith(LEFT_OUT) ? args.slice(LEFT_OUT.length, -1) : excessOf(args, limits);
}
