/**
 * Restores the originals of placeholders for tools and for readers of the answer. History, journal, observers and models keep
 * the placeholders.
 */

import type { Context, ToolContext } from '../context/context.js';
import { isSameList, replacer, textsIn, toStoredJson, withTexts } from '../lib/json-texts.js';
import type { Span } from '../protocol/guard.js';
import type { Plan, PlannedGuard, RestoreContext } from '../protocol/middleware.js';
import { merged, normalise } from './guard-returns.js';
import { skipOrThrow } from './guards.js';

/** The arguments for the tool, with originals; the same value if it has no placeholders. */
export function originalArguments(ctx: ToolContext, raw: unknown = ctx._input.raw): unknown {
  const { restores } = ctx.plan;
  if (restores.length === 0) return raw;
  return restoredValue(restores, raw, { for: 'tool', tool: ctx.tool!.name, context: ctx });
}

/** The guards that restore the answer for the caller of a run. */
export function answerRestorers({ restores }: Plan): readonly PlannedGuard[] {
  return restores.filter(({ guard }) => guard.restore!.answer);
}

/** A JSON value with the originals of its placeholders. Other values stay as they are. */
export function restoredValue<T>(guards: readonly PlannedGuard[], value: T, to: To): T {
  const texts = textsIn(toStoredJson(value));
  const originals = texts.map((text) => restoredText(guards, text, to));
  return isSameList(originals, texts) ? value : (withTexts(toStoredJson(value), originals) as T);
}

export function restoredText(guards: readonly PlannedGuard[], text: string, to: To): string {
  let out = '';
  let at = 0;
  for (const { start, end, replacement } of placeholders(guards, text, to)) {
    out += text.slice(at, start) + (replacement ?? text.slice(start, end));
    at = end;
  }
  return at === 0 ? text : out + text.slice(at);
}

/** Returns a function that puts the placeholders of this value back in place of their originals. */
export function hider(guards: readonly PlannedGuard[], value: unknown, to: To): (text: string) => string {
  const known = new Map<string, string>();
  for (const text of textsIn(toStoredJson(value)))
    for (const { start, end, replacement } of placeholders(guards, text, to))
      if (replacement) known.set(replacement, text.slice(start, end));
  return replacer(known);
}

/** Finds placeholders in a text, with their originals. */
export function placeholders(guards: readonly PlannedGuard[], text: string, to: To): readonly Span[] {
  const found = guards.flatMap((planned) => placeholdersOf(planned, text, to));
  return guards.length === 1 ? found : merged(found);
}

function placeholdersOf(planned: PlannedGuard, text: string, to: To): readonly Span[] {
  const { context } = to;
  const { _position: position } = context;
  context._position = planned.position;
  try {
    return normalise(planned.guard.restore!.find(text, to), text, planned.name);
  } catch (error) {
    skipOrThrow(planned, error, context);
    return [];
  } finally {
    context._position = position;
  }
}

type To = RestoreContext & { readonly context: Context };
