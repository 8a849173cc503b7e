/** Allium in the middle of a long session. */
import { memoryStore } from 'allium/stores/memory';
import { median } from '../lib/stats.mjs';
import { callingModel, turnOf } from '../work/models.mjs';
import { agentFor } from './allium.mjs';

export const what = '`agent.session().run()` in a session that has a history';

/**
 * Runs of `turns` turns in copies of a session of `messages` messages, timed from the first request of the run to its
 * last: copying and loading the session are no part of it.
 */
export async function turnsAfter({ messages, turns, runs, compacting }) {
  const store = memoryStore();
  // One message of a person, two per turn, and the closing answer.
  const before = turnOf(messages - 1);
  const made = await agentFor(callingModel(before), before, { store }).session('source').run('go');
  if (made.messages.length !== messages) throw new Error(`${made.messages.length} messages were made.`);

  const marks = [];
  const middleware = compacting ? [await idleCompaction()] : [];
  const agent = agentFor(continuingModel(messages, turns, marks), turns, { store, middleware });
  const taken = [];
  for (let run = 0; run < runs; run++) {
    const id = `copy-${run}`;
    store.fork('source', store.head('source'), id);
    marks.length = 0;
    await agent.session(id).run('go');
    if (marks.length !== turns + 1) throw new Error(`${marks.length} requests, expected ${turns + 1}.`);
    // The first third is for the compiler.
    if (run >= runs / 3) taken.push(((marks[turns] - marks[0]) * 1000) / turns);
    store.delete(id);
  }
  return { perTurn: median(taken) };
}

/** Far from its threshold: it may look, and must find nothing to do. */
async function idleCompaction() {
  const { compaction } = await import('allium/middleware/compaction');
  const summaryModel = {
    provider: 'bench',
    id: 'summary',
    stream() {
      throw new Error('The session was compacted.');
    },
  };
  return compaction({ summaryModel, maxTokens: 10_000_000 });
}

/** `callingModel` for a session that already has messages; notes when it was asked. */
function continuingModel(messages, turns, marks) {
  const model = callingModel(turns);
  return {
    ...model,
    stream(request) {
      marks.push(performance.now());
      return model.stream({ messages: { length: request.messages.length - messages } });
    },
  };
}
