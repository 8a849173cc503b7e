// How long a run takes when a judge of the input works before the first model call, and beside it. Both wait for a timer, as
// they would for a network. Build first: npm run build.
//
//   node packages/guardrails/eval/parallel.mjs [judge ms] [model ms] [runs]

import { setTimeout as after } from 'node:timers/promises';
import { guardrail } from '@allium/guardrails';
import { Agent } from 'allium';

const [judgeMs = 200, modelMs = 300, runs = 15] = process.argv.slice(2).map(Number);

/** @type {import('allium').Model} */
const model = {
  provider: 'simulated',
  id: 'slow',
  async *stream(_request, { signal }) {
    await after(modelMs, undefined, { signal });
    yield { type: 'text', text: 'Hello.' };
    yield { type: 'finish', reason: 'stop' };
  },
};

/** The median of some runs, in milliseconds. */
async function time(/** @type {boolean} */ parallel, /** @type {string} */ input) {
  const judge = async (/** @type {{ text: string }} */ { text }) => {
    await after(judgeMs);
    return text.includes('forbidden');
  };
  const agent = new Agent({ model, middleware: [guardrail({ on: ['input'], judge, parallel })] });
  const times = [];
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    await agent.run(input);
    times.push(performance.now() - start);
  }
  return times.sort((a, b) => a - b)[runs >> 1] ?? Number.NaN;
}

console.log(`A judge of ${judgeMs} ms and a model of ${modelMs} ms, median of ${runs} runs:`);
for (const [what, input] of [
  ['allowed', 'Hi'],
  ['refused', 'Something forbidden'],
]) {
  const [before, beside] = [await time(false, input ?? ''), await time(true, input ?? '')];
  console.log(`${what}: ${before.toFixed(0)} ms before the model, ${beside.toFixed(0)} ms beside it`);
}
