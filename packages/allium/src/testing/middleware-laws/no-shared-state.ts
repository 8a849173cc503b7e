/** The law `no-shared-state`. */
import { expectSame } from '../same.js';
import { text, toolCalls, toStep } from '../scripted-model.js';
import { during, fresh, type MiddlewareCheck, type MiddlewareLawContext } from './context.js';
import type { Observation } from './observation.js';
import { CALM, type Scenario, TROUBLE, WORDY } from './scenarios.js';

const COMPARED = [
  'events',
  'messages',
  'request-messages',
  'system-prompt',
  'tools',
  'settings',
  'tool-runs',
  'result',
] as const;
/** How many turns of the event loop the second run starts later. */
const STAGGERS = [0, 1, 2, 5, 9];
/** Enough runs to reach a limit that was meant for one run but is counted for all. */
const RUNS = 20;

export const noSharedState: MiddlewareCheck<'no-shared-state'> = {
  law: 'no-shared-state',
  statement:
    'One instance serves any number of runs: each goes as if it were the only one, whatever ran before it or runs beside it.',
  async check(context) {
    const alone = runsAlone(context);
    for (const [one, other] of pairs(context)) {
      const expected = [await alone(one), await alone(other)] as const;
      await during(`"${one.name}" and then "${other.name}"`, async () => {
        const bench = fresh(context);
        expectAlike([await bench.run(one), await bench.run(other)], expected);
      });
      for (const stagger of STAGGERS) {
        await during(
          `"${one.name}" beside "${other.name}", which starts ${stagger} ticks later`,
          async () => {
            const bench = fresh(context);
            const first = bench.start(one);
            for (let i = 0; i < stagger; i++) await new Promise((resolve) => setImmediate(resolve));
            const second = bench.start(other);
            expectAlike([await bench.finish(first), await bench.finish(second)], expected);
          },
        );
      }
    }
    await during(`${RUNS} runs, one after the other`, async () => {
      const bench = fresh(context);
      for (let i = 1; i < RUNS; i++) await bench.run(numbered(i));
      expectAlike([await bench.run(LAST)], [await alone(LAST)], ['last']);
    });
    await during(`${RUNS} runs of one session`, () => expectFreshEnds(context, alone));
  },
};

type RunsAlone = (scenario: Scenario) => Promise<Observation>;

/** Runs each scenario by itself, once. */
function runsAlone(context: MiddlewareLawContext): RunsAlone {
  const known = new Map<Scenario, Promise<Observation>>();
  return (scenario) => {
    const run = known.get(scenario) ?? fresh(context).run(scenario);
    known.set(scenario, run);
    return run;
  };
}

function expectAlike(
  runs: readonly Observation[],
  alone: readonly Observation[],
  names: readonly string[] = ['first', 'second'],
): void {
  for (const [i, { facets }] of runs.entries()) {
    for (const facet of COMPARED) {
      const advice = 'Keep what belongs to a run in a state cell or in ctx.metadata.';
      expectSame(facets[facet], alone[i]!.facets[facet], `\`${facet}\` of the ${names[i]} run`, {
        as: 'when it runs alone',
        advice,
      });
    }
  }
}

/** The runs of a session share its history, so their requests differ, but not their ends. */
async function expectFreshEnds(context: MiddlewareLawContext, alone: RunsAlone): Promise<void> {
  const bench = fresh(context);
  const session = bench.session();
  for (let i = 1; i < RUNS; i++) {
    const { result } = await bench.run(numbered(i), { session });
    // While it waits for an answer, the session cannot run again.
    if (result.status === 'suspended') return;
  }
  const [end, expected] = [endOf(await bench.run(LAST, { session })), endOf(await alone(LAST))];
  const advice = "Count what is meant for one run in a cell of scope 'run'.";
  expectSame(end, expected, 'the end of the last run', { as: 'in a session of its own', advice });
}

function endOf({ result: { status, stop, turns, text: said }, facets }: Observation) {
  return { status, reason: stop.reason, turns, text: said, 'tool-runs': facets['tool-runs'] };
}

/** Two conversations that have little in common and pause often, so that they could get mixed up. */
function pairs({ scenarios }: MiddlewareLawContext): readonly (readonly [Scenario, Scenario])[] {
  const [a, b] = [mine(CALM.at(-1)!, 'Alpha'), mine(WORDY[0]!, 'Beta')];
  return [
    [a, b],
    [b, mine(TROUBLE[1]!, 'Gamma')],
    [mine(sum('It is three.', 1, 2), 'Epsilon'), mine(sum('Three apples.', 2, 1), 'Zeta')],
    ...scenarios.map((own) => [mine(own, 'Delta'), a] as const),
  ];
}

/** Two of these with the same sum have the same last message in their second requests. */
function sum(answer: string, a: number, b: number): Scenario {
  const answers = [toolCalls({ name: 'kit_add', args: { a, b } }), text(answer)];
  return { name: `${a} + ${b}`, input: `What is ${a} + ${b}?`, answers };
}

/** A short conversation like no other, so that no cache has an answer for it. */
function numbered(i: number): Scenario {
  const answers = [toolCalls({ name: 'kit_add', args: { a: i, b: i } }), text(`It is ${i + i}.`)];
  return { name: `run ${i}`, input: `What is twice ${i}?`, answers };
}

/** Runs after the others: a count over all runs shows here. */
const LAST = numbered(RUNS);

function mine(scenario: Scenario, name: string): Scenario {
  const answers = scenario.answers.map((answer) => {
    const step = toStep(answer);
    return { ...step, parts: step.parts.flatMap((part) => ['tick' as const, part]) };
  });
  return { ...scenario, input: `${name}: ${scenario.input ?? 'Hello.'}`, answers };
}
