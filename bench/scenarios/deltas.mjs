/** What a streamed piece of text costs on its way to a consumer. */
import { atMost } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { byRound, ratio } from '../lib/stats.mjs';

const COUNT = 10_000;
const LAYERS = 10;
const GUARD = 'window guard';
const READY = 'plain generator';
const LAYERED = `${LAYERS} layers`;

const variant = (label, params = {}) => ({ label, params: { count: COUNT, ...params }, units: COUNT });

export async function run({ settings, progress }) {
  const plain = [variant('plain')];
  const results = await compare(
    [
      { label: 'bare generator', contender: 'bare', job: 'deltas', variants: plain },
      {
        label: 'allium',
        contender: 'allium',
        job: 'deltas',
        variants: [
          ...plain,
          variant(READY, { ready: true }),
          variant(LAYERED, { layers: LAYERS }),
          variant(GUARD, { guarded: true }),
        ],
      },
      { label: 'pi', contender: 'pi', job: 'deltas', variants: plain, peer: true },
      { label: 'ai', contender: 'ai', job: 'deltas', variants: plain, peer: true },
      { label: 'langchain', contender: 'langchain', job: 'deltas', variants: plain, peer: true },
    ],
    settings,
    progress,
  );
  const own = cell(results, 'allium', 'plain');
  const ready = cell(results, 'allium', READY);
  const bare = cell(results, 'bare generator', 'plain');
  const added = (name, layers) => {
    const withIt = cell(results, 'allium', name);
    return own && withIt && byRound(withIt, own, (b, a) => (b - a) / layers);
  };
  return {
    title: 'Per streamed delta',
    about: `One answer of ${COUNT.toLocaleString('en')} five-character pieces, read with \`for await\`. The models are async generators, as the bare one is, so that a good part of the limit is reading the model; the one of the case “${READY}” yields without waiting. The layers wrap model and tool and register no transform; the guard looks for a string that never comes.`,
    sections: [{ results, unit: 'µs per delta', baseline: 'bare generator' }],
    checks: [
      atMost(
        'a model that never waits, to a bare async generator',
        ready && bare && ratio(ready, bare),
        2.5,
        '×',
      ),
      atMost('a model that is an async generator itself, to it', own && bare && ratio(own, bare), 2.5, '×'),
      atMost('one layer without a transform adds per delta', added(LAYERED, LAYERS), 0.02, 'µs'),
      atMost('a guard with window(64) adds per delta', added(GUARD, 1), 1, 'µs'),
    ],
  };
}
