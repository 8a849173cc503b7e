/** With nothing to do, a run is the same with the middleware as without it. */
import { expectSame } from '../same.js';
import { during, fresh, type MiddlewareCheck } from './context.js';
import { FACETS } from './observation.js';
import { CALM, MEETING } from './scenarios.js';

export const neutrality: MiddlewareCheck<'neutrality'> = {
  law: 'neutrality',
  async check(context) {
    for (const scenario of [...CALM, MEETING]) {
      for (const mode of ['stream', 'run'] as const) {
        await during(`${scenario.name} (${mode})`, async () => {
          const without = await fresh(context, { factory: undefined }).run(scenario, { mode });
          if (without.error)
            throw new Error(`This fails without the middleware, too: ${without.error.message}`);
          const held = await fresh(context, { factory: context.neutral }).run(scenario, { mode });
          if (held.error && !context.changes.includes('result'))
            throw new Error(`Only with the middleware the run fails: ${held.error.message}`, {
              cause: held.error,
            });
          for (const facet of FACETS) {
            if (context.changes.includes(facet)) continue;
            const advice = `If that is its purpose, declare changes: ['${facet}'], or give a \`neutral\` that has nothing to do.`;
            expectSame(held.facets[facet], without.facets[facet], `\`${facet}\` as without it`, advice);
          }
        });
      }
    }
  },
};
