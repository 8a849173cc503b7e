/** Breaks `neutrality`: it has something to say even when nobody asked. */
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';

export function talkative(): Middleware {
  return defineMiddleware({
    name: 'talkative',
    transformSystemPrompt: (prompt) => `${prompt}\nThis agent was made with care.`,
  });
}
