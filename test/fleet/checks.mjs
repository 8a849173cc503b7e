// What has to be true at the end, by the journals and by the ledger of effects.

import fs from 'node:fs';
import path from 'node:path';
import { readLines } from '../crash/ledger.mjs';
import { MESSAGES } from './scenario.mjs';

/** @import { Entry, Store } from 'allium' */

/**
 * @typedef {object} Counts
 * @property {number} finished Sessions in which every message was answered.
 * @property {number} lost Messages, answers or calls that are not there.
 * @property {number} doubled Messages, answers or results that are there more than once.
 * @property {number} repeatedEffects Non-idempotent effects that happened more than once.
 * @property {number} missingCharges Idempotent effects that did not happen, though their call has ended.
 * @property {number} strayCharges Idempotent effects that no call asked for.
 * @property {number} inDoubt Calls that were in doubt after a crash, and were not made again.
 * @property {number} repeatedCalls Calls of the idempotent tool that were made again, with the same key.
 * @property {string[]} problems The first few, in words.
 */

/** @returns {Promise<Counts>} */
export async function check(
  /** @type {Store} */ store,
  /** @type {readonly string[]} */ sessions,
  /** @type {string} */ ledger,
  /** @type {number} */ turns,
) {
  /** @type {Counts} */
  const counts = {
    finished: 0,
    lost: 0,
    doubled: 0,
    repeatedEffects: 0,
    missingCharges: 0,
    strayCharges: 0,
    inDoubt: 0,
    repeatedCalls: 0,
    problems: [],
  };
  const tell = (
    /** @type {'lost' | 'doubled' | 'repeatedEffects' | 'missingCharges'} */ kind,
    /** @type {string} */ what,
  ) => {
    counts[kind]++;
    if (counts.problems.length < 20) counts.problems.push(`${kind}: ${what}`);
  };
  const effects = readLines(path.join(ledger, 'effects'));
  /** @type {Map<string, { tool: string, keys: string[] }>} */
  const byCall = new Map();
  for (const { tool, callId, key } of effects) {
    const made = byCall.get(callId) ?? { tool, keys: /** @type {string[]} */ ([]) };
    made.keys.push(key);
    byCall.set(callId, made);
  }
  const charged = new Set(fs.readdirSync(path.join(ledger, 'charges')));
  const known = new Set();
  for (const [callId, { tool, keys }] of byCall) {
    if (tool === 'book' && keys.length > 1)
      tell('repeatedEffects', `${callId} was booked ${keys.length} times`);
    if (tool !== 'charge') continue;
    if (new Set(keys).size > 1)
      tell('repeatedEffects', `${callId} was charged under ${new Set(keys).size} keys`);
    counts.repeatedCalls += keys.length - 1;
    for (const key of keys) known.add(key);
  }
  for (const key of charged) if (!known.has(key)) counts.strayCharges++;
  for (const sessionId of sessions) {
    const entries = await store.read(sessionId, 1);
    const before = counts.lost + counts.doubled;
    checkHistory(sessionId, entries, turns, tell);
    for (const entry of entries) {
      if (entry.type !== 'tool_finished') continue;
      const { toolCallId, toolName, isError, content } = entry.message;
      const doubt = isError && JSON.stringify(content).includes('In doubt');
      if (doubt) counts.inDoubt++;
      else if (isError) tell('lost', `${sessionId} ${toolCallId} failed: ${JSON.stringify(content)}`);
      if (toolName !== 'charge') continue;
      const key = byCall.get(`${sessionId} ${toolCallId}`)?.keys[0];
      if (key === undefined || !charged.has(key)) tell('missingCharges', `${sessionId} ${toolCallId}`);
    }
    if (counts.lost + counts.doubled === before) counts.finished++;
  }
  return counts;
}

function checkHistory(
  /** @type {string} */ sessionId,
  /** @type {readonly Entry[]} */ entries,
  /** @type {number} */ turns,
  /** @type {(kind: 'lost' | 'doubled', what: string) => void} */ tell,
) {
  const messages = entries.flatMap((entry) => (entry.type === 'message' ? [entry.message] : []));
  const said = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content));
  compare(`messages of ${sessionId}`, said, MESSAGES, tell);
  const answers = messages.filter(({ role }) => role === 'assistant').length;
  if (answers < MESSAGES.length * turns) tell('lost', `${sessionId} has ${answers} answers`);
  if (answers > MESSAGES.length * turns) tell('doubled', `${sessionId} has ${answers} answers`);
  const calls = MESSAGES.flatMap((_, half) =>
    Array.from({ length: turns - 1 }, (_, turn) =>
      ['book', 'charge'].map((name) => `${half + 1}-${turn + 1}-${name}`),
    ).flat(),
  );
  const results = entries.flatMap((entry) =>
    entry.type === 'tool_finished' ? [entry.message.toolCallId] : [],
  );
  compare(`results of ${sessionId}`, results.sort(), calls.sort(), tell);
  const ends = entries.flatMap((entry) => (entry.type === 'run_end' ? [entry.status] : []));
  compare(
    `ends of ${sessionId}`,
    ends,
    MESSAGES.map(() => 'done'),
    tell,
  );
}

function compare(
  /** @type {string} */ what,
  /** @type {readonly string[]} */ have,
  /** @type {readonly string[]} */ want,
  /** @type {(kind: 'lost' | 'doubled', what: string) => void} */ tell,
) {
  if (JSON.stringify(have) === JSON.stringify(want)) return;
  const missing = want.some((one) => !have.includes(one));
  tell(missing || have.length <= want.length ? 'lost' : 'doubled', `${what}: ${JSON.stringify(have)}`);
}

function textOf(/** @type {readonly { type: string }[]} */ content) {
  return content.map((part) => ('text' in part ? part.text : '')).join('');
}
