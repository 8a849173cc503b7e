/** Breaks `second-next`: it takes a second attempt for a mistake. */

import { defineMiddleware, type Middleware } from '../../../index.js';
export function oncePerTurn(): Middleware {
  const seen = new Set<string>();
  return defineMiddleware({
    name: 'once-per-turn',
    beforeModel(ctx) {
      const key = `${ctx.runId} ${ctx.turn}`;
      if (seen.has(key)) throw new Error('The model was called in this turn already.');
      seen.add(key);
    },
  });
}

/** Breaks it in another way: every attempt adds to what the ones before it added. */
export function piling(): Middleware {
  const notes = new Map<string, string>();
  return defineMiddleware({
    name: 'piling',
    beforeModel(ctx) {
      const key = `${ctx.runId} ${ctx.turn}`;
      const note = notes.get(key);
      if (note !== undefined) ctx.systemPrompt += note;
      notes.set(key, `${note ?? ''} Be brief.`);
    },
  });
}
