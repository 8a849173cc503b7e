/** Breaks `calls-answered`: it keeps bad news from the model, and leaves calls without a result. */

import { defineMiddleware, type Middleware } from '../../../index.js';
export function goodNewsOnly(): Middleware {
  return defineMiddleware({
    name: 'good-news-only',
    convertToLlm: (messages) => messages.filter((message) => message.role !== 'tool' || !message.isError),
  });
}
