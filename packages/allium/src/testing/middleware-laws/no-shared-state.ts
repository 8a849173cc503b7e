/** One instance serves any number of runs: each goes as if it were alone, before, after and beside the others. */
import { expectSame } from '../same.js';
import { toStep } from '../scripted-model.js';
import { during, fresh, type MiddlewareCheck, type MiddlewareLawContext } from './context.js';
import type { Observation } from './observation.js';
import { CALM, type Scenario, TROUBLE, WORDY } from './scenarios.js';

const COMPARED = [
  'events',
  'messages',
  'request-messages',
  'system-prompt',
  'settings',
  'tool-runs',
  'result',
] as const;
/** Turns of the event loop by which the second run starts later. */
const STAGGERS = [0, 1, 2, 5, 9];

export const noSharedState: MiddlewareCheck<'no-shared-state'> = {
  law: 'no-shared-state',
  async check(context) {
    for (const [one, other] of pairs(context)) {
      const alone = [await fresh(context).run(one), await fresh(context).run(other)] as const;
      await during(`"${one.name}" and then "${other.name}"`, async () => {
        const bench = fresh(context);
        expectAlike([await bench.run(one), await bench.run(other)], alone);
      });
      for (const stagger of STAGGERS) {
        await during(
          `"${one.name}" beside "${other.name}", which starts ${stagger} ticks later`,
          async () => {
            const bench = fresh(context);
            const first = bench.start(one);
            for (let i = 0; i < stagger; i++) await new Promise((resolve) => setImmediate(resolve));
            const second = bench.start(other);
            expectAlike([await bench.finish(first), await bench.finish(second)], alone);
          },
        );
      }
    }
  },
};

function expectAlike(runs: readonly Observation[], alone: readonly Observation[]): void {
  for (const [i, { facets }] of runs.entries()) {
    for (const facet of COMPARED) {
      const which = i === 0 ? 'first' : 'second';
      const advice = 'Keep what belongs to a run in a state cell or in ctx.metadata.';
      expectSame(
        facets[facet],
        alone[i]!.facets[facet],
        `\`${facet}\` of the ${which} run as when it is alone`,
        advice,
      );
    }
  }
}

/** Two conversations that have nothing in common, and pause often enough to get mixed up. */
function pairs({ scenarios }: MiddlewareLawContext): readonly (readonly [Scenario, Scenario])[] {
  const [a, b] = [mine(CALM.at(-1)!, 'Alpha'), mine(WORDY[0]!, 'Beta')];
  return [
    [a, b],
    [b, mine(TROUBLE[1]!, 'Gamma')],
    ...scenarios.map((own) => [mine(own, 'Delta'), a] as const),
  ];
}

function mine(scenario: Scenario, name: string): Scenario {
  const answers = scenario.answers.map((answer) => {
    const step = toStep(answer);
    return { ...step, parts: step.parts.flatMap((part) => ['tick' as const, part]) };
  });
  return { ...scenario, input: `${name}: ${scenario.input ?? 'Hello.'}`, answers };
}
