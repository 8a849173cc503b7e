/** Allium with the standard box around it. */
import { auditLog } from 'allium/middleware/audit-log';
import { budget } from 'allium/middleware/budget';
import { cache } from 'allium/middleware/cache';
import { loopGuard } from 'allium/middleware/loop-guard';
import { rateLimit } from 'allium/middleware/rate-limit';
import { retry } from 'allium/middleware/retry';
import { structuredOutput } from 'allium/middleware/structured-output';
import { timeout } from 'allium/middleware/timeout';
import { DELTA, talkingModel, varyingModel } from '../work/models.mjs';
import { executed, SCHEMA } from '../work/tool.mjs';
import { agentFor } from './allium.mjs';

export const what = '`agent.run()` with middleware of the standard box';

/** Lines the log in memory keeps. */
const LINES = 10_000;

/** Eight that a service would have. None of the limits is ever reached: what shows is the price of watching. */
function stackOfEight() {
  const lines = [];
  const sink = (line) => {
    if (lines.push(line) === LINES) lines.length = 0;
  };
  return [
    auditLog({ sink, key: 'a secret' }),
    loopGuard(),
    // Off as far as the model is concerned: nothing is sent, only the closing answer is looked at.
    structuredOutput({ schema: SCHEMA, mode: 'validate' }),
    cache(),
    budget({ tokens: 1e9 }),
    retry(),
    rateLimit({ limit: 10_000_000, perMs: 60_000 }),
    timeout({ modelMs: 60_000, toolMs: 60_000 }),
  ];
}

/** Every run has an input of its own, so that no request was made before and the cache misses. */
export function turns({ turns, stack }) {
  const agent = agentFor(varyingModel(turns), turns, { middleware: stack ? stackOfEight() : [] });
  let run = 0;
  return async () => {
    const before = executed.count;
    const { stop, usage } = await agent.run(`go ${run++}`);
    if (stop.reason !== 'final' || usage.totalTokens === 0)
      throw new Error(`Not a whole run: ${stop.reason}`);
    return executed.count - before;
  };
}

/** One answer of `tokens` pieces: without a cache, from the model past a cache that has not seen it, or from the cache. */
export function answer({ tokens, from }) {
  const middleware = from === 'no cache' ? [] : [cache()];
  const agent = agentFor(talkingModel(tokens), 1, { middleware });
  let run = 0;
  return async () => {
    const { text, usage } = await agent.run(from === 'hit' ? 'go' : `go ${run}`);
    // The first one fills the cache.
    const wanted = from === 'hit' && run > 0;
    run += 1;
    if ((usage.totalTokens === 0) !== wanted) throw new Error(`${usage.totalTokens} tokens in run ${run}`);
    return text.length === tokens * DELTA.length ? 1 : 0;
  };
}
