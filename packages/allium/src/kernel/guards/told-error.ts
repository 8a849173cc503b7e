/** What observers and logs are shown of an error: all of it, unless a guard would take something out. */

import { isRecord } from '../lib/errors.js';
import type { Context } from '../protocol/contexts.js';
import { toldError } from './guards.js';

const MAX_CAUSES = 8;

/** May the error be shown as it is? Its stack, its causes and what else it carries may quote what guards remove. */
export function isTellable(error: unknown, ctx: Context): boolean {
  const guarded = Object.values(ctx.plan.guards).some((guards) => guards.length > 0);
  if (!guarded) return true;
  try {
    return textsOf(error).every((text) => toldError(text, ctx) === text);
  } catch {
    return false;
  }
}

/** The frames of the stack of an error, without its message; empty if there are none, or guards object to them. */
export function toldFrames(error: unknown, ctx: Context): string {
  if (!(error instanceof Error) || typeof error.stack !== 'string' || !isTellable(error, ctx)) return '';
  const from = error.stack.indexOf('\n    at ');
  return from < 0 ? '' : error.stack.slice(from);
}

function textsOf(error: unknown): readonly string[] {
  const texts: string[] = [];
  for (
    let at = error, n = 0;
    at !== undefined && n < MAX_CAUSES;
    at = (at as { cause?: unknown }).cause, n++
  ) {
    if (at instanceof Error) texts.push(at.message, at.stack ?? '', JSON.stringify({ ...at }));
    else texts.push(typeof at === 'string' ? at : (JSON.stringify(at) ?? ''));
    if (!isRecord(at)) break;
  }
  return texts;
}
