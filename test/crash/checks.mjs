// What has to be true of a session that was killed and taken over, however often.

import { isDeepStrictEqual } from 'node:util';
import { AT_MOST_ONCE } from './scenario.mjs';

/**
 * @import { Entry, Message } from 'allium'
 * @import { Effect } from './ledger.mjs'
 */

/** @typedef {{ kind: 'lost' | 'doubled' | 'repeatedEffects', what: string }} Violation */

/**
 * @typedef {object} Snapshot What was there when a process had been killed.
 * @property {readonly Entry[]} entries
 * @property {number} effects
 */

/**
 * @typedef {object} Evidence
 * @property {readonly Entry[]} entries
 * @property {readonly Message[]} messages
 * @property {readonly Effect[]} ledger
 * @property {readonly { seq: number, entries: readonly object[] }[]} acks
 * @property {readonly Snapshot[]} snapshots
 * @property {boolean} [failing] Runs failed and were resumed by the same process: nobody looked in between.
 */

/** @typedef {Pick<Evidence, 'entries' | 'messages'>} Baseline The same session, uninterrupted. */

/**
 * @param {Evidence} evidence
 * @param {Baseline} baseline
 * @returns {{ violations: Violation[], inDoubt: number }}
 */
export function verify(evidence, baseline) {
  /** @type {Violation[]} */
  const violations = [];
  const report = (/** @type {Violation['kind']} */ kind, /** @type {string} */ what) =>
    violations.push({ kind, what });
  checkJournal(evidence, report);
  const doubtful = checkMessages(evidence, baseline, report);
  checkEffects(evidence, doubtful, report);
  checkTotals(evidence, baseline, report);
  return { violations, inDoubt: doubtful.size };
}

/** @typedef {(kind: Violation['kind'], what: string) => void} Report */

/** Nothing that was confirmed or seen is gone or changed, and nothing is there twice. */
function checkJournal(/** @type {Evidence} */ { entries, acks, snapshots }, /** @type {Report} */ report) {
  entries.forEach(({ seq }, i) => {
    if (seq !== i + 1) report('lost', `entry ${i + 1} of the journal has number ${seq}`);
  });
  for (const { seq, entries: confirmed } of acks) {
    const there = entries.slice(seq - confirmed.length, seq).map(({ seq: _, ...entry }) => entry);
    if (!isDeepStrictEqual(there, confirmed))
      report('lost', `the append confirmed up to ${seq} is not in the journal as it was written`);
  }
  snapshots.forEach((snapshot, i) => {
    if (!isDeepStrictEqual(snapshot.entries, entries.slice(0, snapshot.entries.length)))
      report('lost', `what the journal held after kill ${i + 1} has changed`);
  });
  /** @type {Set<string>} */
  const seen = new Set();
  for (const entry of entries) {
    const key = identityOf(entry);
    if (key && seen.has(key)) report('doubled', `${key} is in the journal twice`);
    if (key) seen.add(key);
  }
}

/** What may happen once in a session. A question may be put again: a tool that asks begins anew with every resume. */
function identityOf(/** @type {Entry} */ entry) {
  switch (entry.type) {
    case 'message':
    case 'tool_finished':
      return `message ${entry.message.id}`;
    case 'run_start':
    case 'run_end':
      return `${entry.type} ${entry.runId}`;
    case 'answer':
      return `answer ${entry.requestId}`;
    case 'verdict':
      return `verdict ${entry.callId} ${entry.hash}`;
    default:
      return undefined;
  }
}

/** The history is the uninterrupted one, message for message and id for id, up to results in doubt. */
function checkMessages(
  /** @type {Evidence} */ { entries: journal, messages, snapshots, failing },
  /** @type {Baseline} */ baseline,
  /** @type {Report} */ report,
) {
  /** @type {Set<string>} */
  const doubtful = new Set();
  const ids = messages.map(({ id }) => id);
  for (const id of baseline.messages.map((message) => message.id))
    if (!ids.includes(id)) report('lost', `message ${id} is missing`);
  for (const [i, message] of messages.entries()) {
    const wanted = baseline.messages.find(({ id }) => id === message.id);
    if (!wanted || ids.indexOf(message.id) < i) {
      report('doubled', `message ${message.id} is there once too often`);
      continue;
    }
    if (baseline.messages[i]?.id !== message.id) report('lost', `message ${message.id} is in another place`);
    if (isDeepStrictEqual(message, wanted)) continue;
    const inDoubt =
      message.role === 'tool' && message.isError && JSON.stringify(message.content).includes('In doubt: ');
    if (!inDoubt) {
      report('lost', `message ${message.id} is not what it was: ${JSON.stringify(message)}`);
      continue;
    }
    const { toolCallId, toolName } = message;
    const broken =
      snapshots.some(({ entries }) => wasUnderWay(entries, toolCallId)) ||
      (failing && wasUnderWay(untilFinished(journal, toolCallId), toolCallId));
    if (!broken || !AT_MOST_ONCE.includes(toolName))
      report('lost', `the result of ${toolName} ${toolCallId} is said to be in doubt and is not`);
    doubtful.add(toolCallId);
  }
  return doubtful;
}

/** Had the call begun, and not ended? */
function wasUnderWay(/** @type {readonly Entry[]} */ entries, /** @type {string} */ callId) {
  return (
    entries.some(
      (entry) =>
        (entry.type === 'tool_started' && entry.callId === callId) ||
        (entry.type === 'message' && entry.started && makes(entry.message, callId)),
    ) && !isFinished(entries, callId)
  );
}

function untilFinished(/** @type {readonly Entry[]} */ entries, /** @type {string} */ callId) {
  return entries.slice(
    0,
    entries.findIndex((entry) => entry.type === 'tool_finished' && entry.message.toolCallId === callId),
  );
}

function makes(/** @type {Message} */ message, /** @type {string} */ callId) {
  return message.content.some((part) => part.type === 'tool-call' && part.id === callId);
}

function isFinished(/** @type {readonly Entry[]} */ entries, /** @type {string} */ callId) {
  return entries.some((entry) => entry.type === 'tool_finished' && entry.message.toolCallId === callId);
}

/** No effect happens twice that may not, none after its result was written, and none is claimed that did not happen. */
function checkEffects(
  /** @type {Evidence} */ { messages, ledger, snapshots },
  /** @type {ReadonlySet<string>} */ doubtful,
  /** @type {Report} */ report,
) {
  for (const message of messages) {
    if (message.role !== 'tool') continue;
    const { toolCallId, toolName, isError } = message;
    const effects = ledger.filter(({ callId }) => callId === toolCallId);
    const most =
      isError && !doubtful.has(toolCallId) ? 0 : AT_MOST_ONCE.includes(toolName) ? 1 : effects.length;
    if (effects.length > most)
      report('repeatedEffects', `${toolName} ${toolCallId} took effect ${effects.length} times`);
    if (new Set(effects.map(({ key }) => key)).size > 1)
      report('repeatedEffects', `${toolName} ${toolCallId} had more than one idempotency key`);
    if (!isError && effects.length === 0)
      report('lost', `${toolName} ${toolCallId} claims an effect that never happened`);
  }
  snapshots.forEach(({ entries, effects }, i) => {
    for (const { tool, callId } of ledger.slice(effects)) {
      if (isFinished(entries, callId))
        report('repeatedEffects', `${tool} ${callId} had its result at kill ${i + 1} and took effect again`);
    }
  });
}

/** State cells and usage are those of the uninterrupted session: nothing of an attempt that was cut off counts. */
function checkTotals(
  /** @type {Evidence} */ { entries },
  /** @type {Baseline} */ baseline,
  /** @type {Report} */ report,
) {
  const [found, wanted] = [totalsOf(entries), totalsOf(baseline.entries)];
  if (!isDeepStrictEqual(found, wanted))
    report('lost', `cells and usage are ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

function totalsOf(/** @type {readonly Entry[]} */ entries) {
  /** @type {Record<string, unknown>} */
  const cells = {};
  let tokens = 0;
  for (const entry of entries) {
    if (entry.type === 'state') cells[`${entry.cell} ${entry.runId ?? ''}`] = entry.value;
    if (entry.type === 'usage') tokens += entry.usage.totalTokens;
    if (entry.type === 'message' && entry.message.role === 'assistant')
      tokens += entry.message.usage?.totalTokens ?? 0;
  }
  return { cells, tokens };
}
