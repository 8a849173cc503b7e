/** What the standard box costs: a stack of eight per turn, and an answer from the cache. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { difference } from '../lib/stats.mjs';

const LENGTHS = [10, 100];
const TOKENS = 2000;
const STACK = 'stack of eight';
const NONE = 'no middleware';
const ANSWERS = ['no cache', 'miss', 'hit'];

export async function run({ settings, progress }) {
  const variants = (stack) =>
    LENGTHS.map((turns) => ({ label: String(turns), params: { turns, stack }, units: turns }));
  const stacked = await compare(
    [
      { label: NONE, contender: 'allium-box', job: 'turns', variants: variants(false) },
      { label: STACK, contender: 'allium-box', job: 'turns', variants: variants(true) },
    ],
    settings,
    progress,
  );
  const answers = await compare(
    [
      {
        label: 'allium',
        contender: 'allium-box',
        job: 'answer',
        variants: ANSWERS.map((from) => ({ label: from, params: { tokens: TOKENS, from }, units: 1 })),
      },
    ],
    settings,
    progress,
  );
  const added = (turns) => {
    const [one, other] = [STACK, NONE].map((label) => cell(stacked, label, String(turns)));
    return one && other && difference(one, other);
  };
  const size = TOKENS.toLocaleString('en');
  return {
    title: 'Standard box',
    about: `Runs with one tool call per turn, without middleware and with eight: audit log (sealed, to memory), loop guard, structured output (nothing sent to the model), cache (every request is new), budget, retry, rate limit, timeout. Nothing is refused, repeated or found. Then a whole run that gets an answer of ${size} pieces, about as many tokens: with no cache, past a cache that does not have it, and out of the cache.`,
    sections: [
      { results: stacked, unit: 'µs per turn', variant: 'turns', baseline: NONE },
      { results: answers, unit: 'µs per run', variant: 'answer' },
    ],
    checks: [
      ...LENGTHS.map((turns) =>
        atMost(`the stack of eight adds per turn, ${turns} turns`, added(turns), 45, 'µs'),
      ),
      atMost(`a run with a cache hit of ${size} tokens`, cell(answers, 'allium', 'hit'), 100, 'µs'),
      reported(`a run with a cache miss of ${size} tokens`, cell(answers, 'allium', 'miss'), 'µs'),
    ],
  };
}
