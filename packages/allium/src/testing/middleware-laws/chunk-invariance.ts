/** The law `chunk-invariance`. */
import { expectSame } from '../same.js';
import { chunkings, rechunked, unchunked } from './chunkings.js';
import { during, fresh, type MiddlewareCheck } from './context.js';
import { WORDY } from './scenarios.js';

/** Random ones, beside the fixed ones. Their pieces have uneven lengths. */
const RANDOM_CHUNKINGS = 25;
const COMPARED = ['messages', 'request-messages', 'system-prompt', 'tool-runs', 'result'] as const;

export const chunkInvariance: MiddlewareCheck<'chunk-invariance'> = {
  law: 'chunk-invariance',
  statement:
    "However the model's answer is cut into pieces, the final message and everything after it are the same.",
  async check(context) {
    for (const scenario of [...WORDY, ...context.scenarios]) {
      const inOnePiece = await fresh(context).run(unchunked(scenario));
      for (const chunking of chunkings(context.seed, RANDOM_CHUNKINGS)) {
        await during(`${scenario.name}, in ${chunking.name}`, async () => {
          const { facets } = await fresh(context).run(rechunked(scenario, chunking));
          for (const facet of COMPARED) {
            expectSame(facets[facet], inOnePiece.facets[facet], `\`${facet}\``, {
              as: 'when the answer comes in one piece',
            });
          }
        });
      }
    }
  },
};
