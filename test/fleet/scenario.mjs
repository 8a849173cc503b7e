// The work of the fault suite: sessions of two messages, each answered in a few turns with two tools that have effects
// outside. What the model says depends only on the history, so every worker that takes over has the same words to say.

import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, tool } from 'allium';
import { openLedger } from '../crash/ledger.mjs';

/** @import { Message, Model, ModelPart } from 'allium' */

/** What is said to every session. */
export const MESSAGES = ['Book the first half.', 'Book the second half.'];

/**
 * @param {string} ledger Folder of the effects.
 * @param {number} turns How many model calls a message takes.
 * @param {number} latencyMs How long the model takes, on average.
 */
export function makeAgent(ledger, turns, latencyMs) {
  const note = openLedger(path.join(ledger, 'effects'));
  const input = /** @type {const} */ ({
    '~standard': {
      version: 1,
      vendor: 'fleet',
      validate: (/** @type {unknown} */ value) => ({ value }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
    },
  });
  const pause = () => sleep(Math.random() * 10);
  const book = tool({
    name: 'book',
    description: 'Books, and cannot be undone.',
    input,
    async execute(_args, ctx) {
      await pause();
      note({ tool: 'book', callId: `${ctx.sessionId} ${ctx.toolCall.id}`, key: ctx.idempotencyKey });
      await pause();
      return 'booked';
    },
  });
  const charge = tool({
    name: 'charge',
    description: 'Charges once for each key.',
    input,
    idempotent: true,
    async execute(_args, ctx) {
      await pause();
      note({ tool: 'charge', callId: `${ctx.sessionId} ${ctx.toolCall.id}`, key: ctx.idempotencyKey });
      // As a payment service does that understands keys: the second time it finds the first.
      try {
        fs.writeFileSync(path.join(ledger, 'charges', ctx.idempotencyKey), ctx.sessionId, { flag: 'wx' });
      } catch (error) {
        if (/** @type {{ code?: string }} */ (error).code !== 'EEXIST') throw error;
      }
      await pause();
      return 'charged';
    },
  });
  /** @type {Model} */
  const model = {
    provider: 'fleet',
    id: 'scripted',
    async *stream({ messages }, { signal }) {
      await sleep(latencyMs * (0.5 + Math.random()), undefined, { signal });
      yield* answer(messages, turns);
    },
  };
  return new Agent({ name: 'fleet', model, tools: [book, charge] });
}

/** @returns {Generator<ModelPart>} */
function* answer(/** @type {readonly Message[]} */ messages, /** @type {number} */ turns) {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const turn = messages.slice(asked).filter(({ role }) => role === 'assistant').length + 1;
  const usage = { inputTokens: 10, outputTokens: 5 };
  if (turn >= turns) {
    yield { type: 'text', text: `Done after ${turn} turns.` };
    yield { type: 'finish', reason: 'stop', usage };
    return;
  }
  const half = messages.filter(({ role }) => role === 'user').length;
  for (const name of ['book', 'charge'])
    yield { type: 'tool-call', id: `${half}-${turn}-${name}`, name, arguments: '{}' };
  yield { type: 'finish', reason: 'tool-calls', usage };
}
