/** Breaks `neutrality`: it has something to say even when nobody asked. */
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';
import type { ToolSpec } from '../../../kernel/model.js';
import type { Tool } from '../../../kernel/tool.js';

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
      ctx.tools = ctx.tools.map((tool) =>
        shownAs(tool, { description: `${tool.description} Please use me!` }),
      );
    },
  });
}

/** Breaks it in another way: the model no longer learns what the tools take. */
export function tightLipped(): Middleware {
  return defineMiddleware({
    name: 'tight-lipped',
    beforeModel(ctx) {
      ctx.tools = ctx.tools.map((tool) => shownAs(tool, { inputSchema: {} }));
    },
  });
}

function shownAs(tool: Tool, change: Partial<ToolSpec>): Tool {
  return { ...tool, spec: { ...tool.spec, ...change } };
}
