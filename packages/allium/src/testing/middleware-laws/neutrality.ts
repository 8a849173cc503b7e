/** The law `neutrality`. */
import { expectSame } from '../same.js';
import { during, fresh, type MiddlewareCheck, type MiddlewareLawContext, ownTools } from './context.js';
import { FACETS, type Observation } from './observation.js';
import { CALM, type KitScenario, MEETING } from './scenarios.js';

export const neutrality: MiddlewareCheck<'neutrality'> = {
  law: 'neutrality',
  statement: 'With nothing to do, the middleware changes nothing: the run is the same as without it.',
  async check(context) {
    for (const scenario of [...CALM, MEETING]) {
      for (const mode of ['stream', 'run'] as const) {
        await during(`${scenario.name} (${mode})`, async () => {
          const without = await runWithout(context, scenario, mode);
          if (without.error)
            throw new Error(`The run fails even without the middleware: ${without.error.message}`);
          const held = await fresh(context, { factory: context.neutral }).run(scenario, { mode });
          if (held.error && !context.changes.includes('result'))
            throw new Error(`The run fails only with the middleware: ${held.error.message}`, {
              cause: held.error,
            });
          for (const facet of FACETS) {
            if (context.changes.includes(facet)) continue;
            const advice = `If it does this on purpose, declare changes: ['${facet}'], or give a \`neutral\` that has nothing to do.`;
            expectSame(held.facets[facet], without.facets[facet], `\`${facet}\``, {
              as: 'without it',
              advice,
            });
          }
        });
      }
    }
  },
};

/** Runs without the middleware, by mode and scenario. They serve every middleware without companions and tools. */
const bare = {
  stream: new Map<KitScenario, Promise<Observation>>(),
  run: new Map<KitScenario, Promise<Observation>>(),
};

function runWithout(
  context: MiddlewareLawContext,
  scenario: KitScenario,
  mode: 'stream' | 'run',
): Promise<Observation> {
  const start = () => fresh(context, { factory: undefined }).run(scenario, { mode });
  if (context.companions || ownTools(context).length > 0) return start();
  const known = bare[mode].get(scenario) ?? start();
  bare[mode].set(scenario, known);
  return known;
}
