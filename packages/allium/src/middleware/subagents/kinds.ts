/** The kinds of options that describe other agents. Mistakes are found before anything runs. */

import type { AlliumError, Middleware, MiddlewareList, Model, Tool } from '../../index.js';
import { checkMembers, flattenMiddleware, isTool, type Kind, kinds } from '../../kit/index.js';
import type { SubagentSpec } from './index.js';

export const TOOLS: Kind<readonly Tool[]> = kinds.listOf(
  kinds.kind<Tool>('a tool', isTool, { schema: kinds.NAMED.tool }),
  'a list of tools',
);

/** The agent's own error for a wrong list, but when the list is given and not with the first task. */
export const MIDDLEWARE: Kind<MiddlewareList> = kinds.kind(
  'a list of middleware',
  (value) => Array.isArray(value) || (typeof value === 'object' && value !== null && 'layers' in value),
  {
    inside: (list, option) => thrownBy(() => flattenMiddleware(list, option)),
    schema: { type: 'array', items: kinds.NAMED.middleware },
  },
);

export const TRACER: Kind<Middleware> = kinds.kind('a middleware', kinds.record.fits, {
  inside: (tracer, option) => thrownBy(() => checkMembers(tracer, `\`${option}\``)),
  schema: kinds.NAMED.middleware,
});

export const AGENTS: Kind<Readonly<Record<string, SubagentSpec>>> = kinds.recordOf(
  kinds.shape({
    name: kinds.text,
    description: kinds.required(kinds.text),
    systemPrompt: kinds.required(kinds.text),
    model: kinds.model<Model>(),
    tools: TOOLS,
    middleware: MIDDLEWARE,
  }),
  'an object of sub-agents by type',
);

function thrownBy(check: () => void): AlliumError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return error as AlliumError;
  }
}
