/** Breaks `calls-answered`: it keeps bad news from the model, and leaves calls without a result. */

import { defineMiddleware, type Message, type Middleware } from '../../../index.js';
export function goodNewsOnly(): Middleware {
  const isGood = (message: Message): boolean => message.role !== 'tool' || !message.isError;
  return defineMiddleware({
    name: 'good-news-only',
    // Hooks can't do this: the kernel repairs what they make of a request.
    beforeModel(ctx) {
      const { model } = ctx;
      ctx.model = {
        ...model,
        stream: (request, options) =>
          model.stream({ ...request, messages: request.messages.filter(isGood) }, options),
      };
    },
  });
}
