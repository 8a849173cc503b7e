/** The agent behind the servers of the HTTP scenario: it talks, or says one word and waits for ever. */
import { Agent } from 'allium';
import { memoryStore } from 'allium/stores/memory';
import { talkingModel } from './models.mjs';

export function agentFor({ count, hangs = false, waits = false }) {
  const model = hangs ? hangingModel : waits ? waitingModel : talkingModel(count);
  return new Agent({ model, store: forgetful() });
}

/** Models answer over a network, so never at once: what a run does after its first event would count otherwise. */
const waitingModel = {
  provider: 'bench',
  id: 'waiting',
  async *stream() {
    await new Promise(setImmediate);
    yield { type: 'text', text: 'One' };
    yield { type: 'finish', reason: 'stop', usage: { inputTokens: 10, outputTokens: 5 } };
  },
};

/** Sessions of the runs before would fill the memory and measure the collector: all but the latest are let go. */
function forgetful(kept = 2000) {
  const store = memoryStore();
  const ids = [];
  return {
    ...Object.fromEntries(
      ['append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'].map((name) => [
        name,
        (...args) => store[name](...args),
      ]),
    ),
    append(id, seq, entries) {
      if (seq === 0 && ids.push(id) > kept) store.delete(ids.shift());
      return store.append(id, seq, entries);
    },
  };
}

const hangingModel = {
  provider: 'bench',
  id: 'hanging',
  async *stream(_, { signal }) {
    yield { type: 'text', text: 'One' };
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  },
};
