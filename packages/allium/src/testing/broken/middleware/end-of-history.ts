/** Break `end-of-history`: they need more of a long session than they say. */

import { defineMiddleware, type Middleware } from '../../../index.js';

/** Looks at how long the history is, although it says that it looks at nothing. */
export function nearSighted(): Middleware {
  return defineMiddleware({
    name: 'near-sighted',
    looksBack: 0,
    transformSystemPrompt: (prompt, { history }) =>
      history.length > 450 ? `${prompt} Be brief: this has been going on for long.` : prompt,
  });
}

/** Is content with ten messages, but sends every other one of all of them. */
export function contented(): Middleware {
  return defineMiddleware({
    name: 'contented',
    enoughHistory: (latest) => latest.length >= 10,
    transformContext: (messages) =>
      messages.length > 20 ? messages.filter((_, i) => i % 2 === 0) : messages,
  });
}
