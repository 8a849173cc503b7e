/** However an answer is cut up on its way, the final message and everything that follows from it are the same. */
import { expectSame } from '../same.js';
import { chunkings, rechunked, unchunked } from './chunkings.js';
import { during, fresh, type MiddlewareCheck } from './context.js';
import { WORDY } from './scenarios.js';

/** Beside the fixed ones: these have pieces of uneven length. */
const RANDOM_CHUNKINGS = 25;
const COMPARED = ['messages', 'request-messages', 'system-prompt', 'tool-runs', 'result'] as const;

export const chunkInvariance: MiddlewareCheck<'chunk-invariance'> = {
  law: 'chunk-invariance',
  async check(context) {
    for (const scenario of [...WORDY, ...context.scenarios]) {
      const inOnePiece = await fresh(context).run(unchunked(scenario));
      for (const chunking of chunkings(context.seed, RANDOM_CHUNKINGS)) {
        await during(`${scenario.name}, in ${chunking.name}`, async () => {
          const { facets } = await fresh(context).run(rechunked(scenario, chunking));
          for (const facet of COMPARED) {
            expectSame(
              facets[facet],
              inOnePiece.facets[facet],
              `\`${facet}\` as when the answer comes in one piece`,
            );
          }
        });
      }
    }
  },
};
