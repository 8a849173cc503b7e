/** Placeholders that guards put in place of originals, in what leaves the session. */

import { internal } from '../kernel/context/context.js';
import { answerRestorers, placeholders, restoredValue } from '../kernel/guards/restore.js';
import { textsIn, toStoredJson } from '../kernel/lib/json-texts.js';
import type { ModelResponse } from '../kernel/messages/messages.js';
import type { Context, ModelContext } from '../kernel/protocol/contexts.js';

/** A text for readers outside the session, where placeholders mean nothing or something else. */
export function withoutPlaceholders(text: string, ctx: Context): string {
  const { restores } = ctx.plan;
  if (restores.length === 0) return text;
  let out = '';
  let at = 0;
  for (const { start, end } of placeholders(restores, text, { for: 'answer', context: internal(ctx) })) {
    out += `${text.slice(at, start)}[redacted]`;
    at = end;
  }
  return out + text.slice(at);
}

/**
 * A JSON value of an answer with the originals of its placeholders, if they will be restored: for the caller of the run, or for
 * the tools of a sub-agent's caller. To check the value only: hooks, history and models keep the placeholders.
 */
export function withOriginals<T>(value: T, ctx: Context): T {
  const guards = ctx.parentRunId === undefined ? answerRestorers(ctx.plan) : ctx.plan.restores;
  return guards.length === 0
    ? value
    : restoredValue(guards, value, { for: 'answer', context: internal(ctx) });
}

/**
 * Does the answer hold placeholders that its request doesn't? They were issued for this answer, so another run that gets it
 * can't restore them.
 */
export function hasNewPlaceholders({ content }: ModelResponse, ctx: ModelContext): boolean {
  const { restores } = ctx.plan;
  if (restores.length === 0) return false;
  const to = { for: 'answer', context: internal(ctx) } as const;
  const held = textsIn(toStoredJson(content)).flatMap((text) =>
    placeholders(restores, text, to).map(({ start, end }) => text.slice(start, end)),
  );
  if (held.length === 0) return false;
  const asked = textsIn(toStoredJson([ctx.systemPrompt, ctx.messages]));
  return held.some((placeholder) => !asked.some((text) => text.includes(placeholder)));
}
