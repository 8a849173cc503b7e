// A store that halts its process at the boundaries of an append, so that a kill falls exactly there, and that notes
// outside of the store what was confirmed.

import fs from 'node:fs';
import { line } from './ledger.mjs';

/** @import { NewEntry, Store } from 'allium' */

/** Kinds of appends, by what is in them. */
export const KINDS = [
  'run_start',
  'user message',
  'assistant message',
  'state',
  'tool_started',
  'tool_finished',
  'request',
  'answer',
  'verdict',
  'usage',
  'inbox',
  'run_end',
];

function kindOf(/** @type {NewEntry} */ entry) {
  return entry.type === 'message' ? `${entry.message.role} message` : entry.type;
}

/**
 * @param {Store} store
 * @param {object} options
 * @param {(phases: readonly string[]) => void} options.at Told of every boundary; it may never return.
 * @param {string} options.acks The file of what was confirmed.
 * @returns {Store}
 */
export function stoppingStore(store, { at, acks }) {
  const file = fs.openSync(acks, 'a');
  return {
    append(sessionId, expectedSeq, entries) {
      const kinds = [...new Set(entries.map(kindOf))];
      // As they are now: what the runner does with them afterwards is its own affair.
      const written = structuredClone(entries);
      const confirm = (/** @type {number} */ seq) => {
        fs.writeSync(file, line({ seq, pid: process.pid, entries: written }));
        at(kinds.map((kind) => `after ${kind}`));
        return seq;
      };
      at(kinds.map((kind) => `before ${kind}`));
      const seq = store.append(sessionId, expectedSeq, entries);
      return typeof seq === 'number' ? confirm(seq) : seq.then(confirm);
    },
    read: (sessionId, fromSeq) => store.read(sessionId, fromSeq),
    head: (sessionId) => store.head(sessionId),
    list: (options) => store.list(options),
    fork: (sessionId, seq, newId) => store.fork(sessionId, seq, newId),
    delete: (sessionId) => store.delete(sessionId),
    post: (sessionId, item) => store.post(sessionId, item),
    take: (sessionId, after) => store.take(sessionId, after),
    close: () => store.close?.(),
  };
}
