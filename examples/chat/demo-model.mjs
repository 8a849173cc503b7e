// A model that needs no key. It looks for a few words, and fails in the middle of a sentence when it hears "clumsy".

import { setTimeout as pause } from 'node:timers/promises';
import { textOf } from 'allium';

/** @typedef {import('allium').ModelPart} ModelPart */

/** @returns {import('allium').Model} */
export function demoModel() {
  const stumbled = new Set();
  return {
    provider: 'example',
    id: 'guide',
    async *stream({ messages }, { signal }) {
      const asked = messages.findLastIndex(({ role }) => role === 'user');
      const question = messages[asked];
      const said = question ? textOf(question).toLowerCase() : '';
      const results = messages.slice(asked + 1).filter(({ role }) => role === 'tool');
      if (results.length === 0 && /walk|hike|tour/.test(said)) {
        yield* speak('Let me see what is near. ', signal);
        return yield* call('find_walks', { hours: /short|easy/.test(said) ? 3 : 6 }, messages.length);
      }
      if (results.length === 0 && /book|hut|bed/.test(said)) {
        yield* speak('I can book that. You have the last word. ', signal);
        return yield* call('book_hut', { hut: 'Ridge hut', nights: 2 }, messages.length);
      }
      if (said.includes('clumsy') && !stumbled.has(question?.id)) {
        stumbled.add(question?.id);
        yield* speak('The weather tomorrow will be terri', signal);
        throw Object.assign(new Error('The connection broke.'), { status: 503 });
      }
      yield* speak(answerTo(said, results.map(textOf)), signal);
      yield { type: 'finish', reason: 'stop' };
    },
  };
}

function answerTo(/** @type {string} */ said, /** @type {string[]} */ [result]) {
  if (result?.includes('LARCH'))
    return 'Done: two nights in the **Ridge hut**. Your code is `LARCH-42`. Bring a sleeping bag liner and some cash for the soup.';
  if (result?.startsWith('[')) {
    /** @type {{ name: string, hours: number, climb: number, hut: string }[]} */
    const walks = JSON.parse(result);
    const lines = walks.map(
      (one) => `- **${one.name}**: ${one.hours} hours, ${one.climb} m of climb, past the ${one.hut}`,
    );
    return `I would take these:\n\n${lines.join('\n')}\n\nShall I book a bed for the night?`;
  }
  if (result !== undefined)
    return 'All right, I will not book it. We can stay in the valley and decide tomorrow.';
  if (said.includes('clumsy'))
    return 'The weather tomorrow will be terrific: sun from eight, a light wind on the ridge, and no clouds before evening.';
  return 'Hello! I know the paths around here. Ask me for a *short walk*, let me *book a hut*, or call me *clumsy* and watch me take a sentence back.';
}

/** @returns {AsyncGenerator<ModelPart>} */
async function* speak(/** @type {string} */ text, /** @type {AbortSignal | undefined} */ signal) {
  for (const word of text.split(/(?<= )/)) {
    await pause(45, undefined, { signal });
    yield { type: 'text', text: word };
  }
}

/** @returns {AsyncGenerator<ModelPart, undefined>} */
async function* call(/** @type {string} */ name, /** @type {object} */ args, /** @type {number} */ turn) {
  await pause(200);
  yield { type: 'tool-call', id: `${name}-${turn}`, name, arguments: JSON.stringify(args) };
  yield { type: 'finish', reason: 'tool-calls' };
}
