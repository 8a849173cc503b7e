/** Whose limit a call counts against: what `rateLimit` and `concurrency` share. */

import type { ModelContext, RunContext, ToolContext } from '../index.js';
import { invalidOption, type Kind, kinds } from '../kit/index.js';

type AnyContext = RunContext | ModelContext | ToolContext;

type Whose = 'tenant' | 'session' | 'agent' | ((ctx: AnyContext) => string);

/** The option `key`: a word, which a file can hold too, or a function. */
export const WHOSE: Kind<Whose> = {
  ...kinds.either(kinds.oneOf('tenant', 'session', 'agent'), kinds.func<(ctx: AnyContext) => string>()),
  expected: "'tenant', 'session', 'agent' or a function",
};

/** The key of a call. */
export function keyReader(whose: Whose): (ctx: AnyContext) => string {
  if (typeof whose === 'string') return WORDS[whose];
  return (ctx) => {
    const key = whose(ctx);
    if (typeof key !== 'string') throw invalidOption('key()', 'a function that returns text', key);
    return key;
  };
}

const WORDS = {
  tenant: (ctx: AnyContext) => ctx.tenant ?? '',
  session: (ctx: AnyContext) => ctx.sessionId,
  agent: (ctx: AnyContext) => ctx.agent.name,
};
