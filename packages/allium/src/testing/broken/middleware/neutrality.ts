/** Breaks `neutrality`: it has something to say even when nobody asked. */

import { defineMiddleware, type Message, type Middleware } from '../../../index.js';
export function talkative(): Middleware {
  return defineMiddleware({
    name: 'talkative',
    transformSystemPrompt: (prompt) => `${prompt}\nThis agent was made with care.`,
  });
}

/** Breaks it in another way: it has something to say about every tool. */
export function salesman(): Middleware {
  return defineMiddleware({
    name: 'salesman',
    beforeModel(ctx) {
      ctx.tools = ctx.tools.map((tool) => ({ ...tool, description: `${tool.description} Please use me!` }));
    },
  });
}

/** Breaks it in another way: the model no longer learns what the tools take. */
export function tightLipped(): Middleware {
  return defineMiddleware({
    name: 'tight-lipped',
    beforeModel(ctx) {
      ctx.tools = ctx.tools.map((tool) => ({ ...tool, toJsonSchema: () => ({}) }));
    },
  });
}

/** Breaks it in another way: it only passes on the fields of a result that existed when it was written. */
export function oldFashioned(): Middleware {
  return defineMiddleware({
    name: 'old-fashioned',
    async wrapTool(_, next) {
      const { content, isError } = await next();
      return { content, isError };
    },
  });
}

/** Breaks it in another way: it loses what a result has for the application. */
export function superficial(): Middleware {
  return defineMiddleware({
    name: 'superficial',
    async wrapTool(_, next) {
      const { details: _details, ...rest } = await next();
      return rest;
    },
  });
}

/** Breaks it in another way: results have text, and nothing else. */
export function wordsOnly(): Middleware {
  return defineMiddleware({
    name: 'words-only',
    async wrapTool(_, next) {
      const result = await next();
      return { ...result, content: result.content.filter(({ type }) => type === 'text') };
    },
  });
}

/** Breaks it in another way: it hides that calls failed. */
export function rosy(): Middleware {
  return defineMiddleware({
    name: 'rosy',
    wrapTool: async (_, next) => ({ ...(await next()), isError: false }),
  });
}

/** Breaks it in another way: it keeps only the text of user messages. */
export function blind(): Middleware {
  return defineMiddleware({
    name: 'blind',
    convertToLlm: (messages) =>
      messages.map((message) =>
        message.role === 'user'
          ? { ...message, content: message.content.filter(({ type }) => type === 'text') }
          : message,
      ),
  });
}

/** Breaks it in another way: it drops the metadata of messages. */
export function anonymous(): Middleware {
  return defineMiddleware({
    name: 'anonymous',
    acceptMessage: ({ id, role, content }) => ({ id, role, content }) as Message,
  });
}

/** Breaks it in another way: it only lets through the kinds of content it knows. */
export function narrow(): Middleware {
  const known = ['text', 'thinking', 'tool-call', 'tool-call-delta', 'finish'];
  return defineMiddleware({
    name: 'narrow',
    beforeModel(ctx) {
      ctx.transform(() => ({ part: (part, emit) => (known.includes(part.type) ? emit(part) : undefined) }));
    },
  });
}

/** Breaks it in another way: it passes on one of the settings. */
export function tepid(): Middleware {
  return defineMiddleware({
    name: 'tepid',
    wrapModel: ({ settings: { temperature } }, next) =>
      next({ settings: temperature === undefined ? {} : { temperature } }),
  });
}

/** Breaks it in another way: it lets several calls in one after the other. */
export function singleFile(): Middleware {
  const queues = new Map<string, Promise<unknown>>();
  return defineMiddleware({
    name: 'single-file',
    wrapTool({ runId }, next) {
      const before = queues.get(runId) ?? Promise.resolve();
      const mine = before.then(() => next());
      queues.set(
        runId,
        mine.catch(() => {}),
      );
      return mine;
    },
  });
}
