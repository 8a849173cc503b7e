/** The law `second-next`. */
import type { Middleware, Next } from '../../index.js';
import { expectSame } from '../same.js';
import { allScenarios, during, fresh, type MiddlewareCheck } from './context.js';
import type { Observation } from './observation.js';

type Again = (next: Next<unknown, never>) => Promise<unknown>;

const AGAIN: Readonly<Record<string, Again>> = {
  'twice in a row': async (next) => {
    await next();
    return next();
  },
  'twice at once': async (next) => (await Promise.all([next(), next()]))[1],
};

export const secondNext: MiddlewareCheck<'second-next'> = {
  law: 'second-next',
  statement:
    'An outer layer may call `next()` again, or twice at once: every attempt works and sends the same request.',
  async check(context) {
    for (const scenario of allScenarios(context)) {
      const once = essential(await fresh(context, { outer: around((next) => next()) }).run(scenario));
      for (const [how, again] of Object.entries(AGAIN)) {
        await during(`${scenario.name}, with next() called ${how} around it`, async () => {
          const twice = essential(await fresh(context, { outer: around(again) }).run(scenario));
          for (const key of Object.keys(once) as (keyof typeof once)[]) {
            expectSame(twice[key], once[key], `the ${key}`, { as: 'when it is called once' });
          }
        });
      }
    }
  },
};

function around(again: Again): Middleware {
  return {
    name: 'outer',
    wrapModel: (_, next) => again(next) as ReturnType<typeof next>,
    wrapTool: (_, next) => again(next) as ReturnType<typeof next>,
  };
}

/** What has to be the same. Not usage, which grows, nor metadata, which may say that an answer came from a cache. */
function essential({ conversation, result, asked }: Observation) {
  const distinct = new Set(asked.map((request) => JSON.stringify(request)));
  return {
    conversation,
    status: result.status,
    reason: result.stop.reason,
    'requests to the model': [...distinct].map((request) => JSON.parse(request)),
  };
}
