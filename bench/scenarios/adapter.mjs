/** What a language model of the AI SDK costs through Allium's adapter, beside the SDK itself. */
import { atMost } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { HOW_TO_INSTALL, node24 } from '../lib/node24.mjs';
import { ratio } from '../lib/stats.mjs';

const COUNTS = { full: 10_000, quick: 2000 };
const TURNS = 100;
const LIMIT = 0.25;

/** The SDK, and Allium on the same Node with a fake of the specification that the SDK speaks. */
const PAIRS = [
  { sdk: 'ai 6 streamText', contender: 'ai', own: 'allium beside ai 6', version: 'v3' },
  { sdk: 'ai 7 streamText', contender: 'ai7', own: 'allium beside ai 7', version: 'v4', newer: true },
];

export async function run({ settings, progress }) {
  const count = settings.quick ? COUNTS.quick : COUNTS.full;
  const newer = node24();
  const pairs = PAIRS.filter((pair) => !pair.newer || newer);
  const measured = (job, label, params, units) =>
    compare(
      pairs.flatMap(({ sdk, contender, own, version, newer: needsNewer }) => {
        const variants = [{ label, params: { ...params, version }, units }];
        const node = needsNewer ? newer : undefined;
        // The SDK is no `peer` here: it is one side of a target, so both get the same time to warm up.
        return [
          { label: own, contender: 'allium-ai-sdk', job, variants, node },
          { label: sdk, contender, job, variants, node },
        ];
      }),
      settings,
      progress,
    );
  const deltas = await measured('deltas', 'delta', { count }, count);
  const turns = await measured('events', 'turn', { turns: TURNS }, TURNS);
  const against = (results, label, { own, sdk }) => {
    const [one, other] = [own, sdk].map((name) => cell(results, name, label));
    return one && other && ratio(one, other);
  };
  return {
    title: 'AI SDK adapter',
    about: `The same fake language model through \`fromAiSdk()\` and an agent, and through \`streamText()\`: one answer of ${count.toLocaleString('en')} pieces, and runs of ${TURNS} turns with one tool call each, all events read with \`for await\`. \`ai\` 6 and Allium beside it run on this Node with a model of specification v3; \`ai\` 7 and Allium beside it on Node 24 with v4.`,
    missing: newer
      ? undefined
      : `The rows of ai 7 on Node 24 are NOT MEASURED: it is not installed. Run: ${HOW_TO_INSTALL}`,
    sections: [
      { results: deltas, unit: 'µs per delta' },
      { results: turns, unit: 'µs per turn' },
    ],
    checks: PAIRS.flatMap((pair) => [
      atMost(`allium to ${pair.sdk}, per delta`, against(deltas, 'delta', pair), LIMIT, '×'),
      atMost(`allium to ${pair.sdk}, per turn`, against(turns, 'turn', pair), LIMIT, '×'),
    ]),
  };
}
