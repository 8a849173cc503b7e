// A journal that lacks entries or has too many: what is wrong, and what to do.

import { Agent, type Entry, memoryStore } from 'allium';
import { scriptedModel } from 'allium/testing';
import { expect, it } from 'vitest';
import { storeWith } from '../../../../../test/run-checks.js';

const ADVICE = 'Restore it from a backup, or delete the session.';
const at = { v: 2, at: 7, runId: 'r' };
const answer = { ...at, type: 'answer', requestId: 'q', decision: { type: 'approve' } };
const message = { id: 'x', role: 'tool', toolCallId: 'c', toolName: 't', content: [], isError: false };

it.each<[string, (entries: Entry[]) => readonly unknown[]]>([
  [`goes from entry 0 to 2: entries are missing or out of order. ${ADVICE}`, (all) => all.slice(1)],
  [
    `holds an entry \`answer\` of run "r", which is not under way. ${ADVICE}`,
    (all) => [...all, { ...answer, seq: all.length + 1 }],
  ],
  [
    `holds a result for call "c", but no such call was made. ${ADVICE}`,
    ([begun]) => [begun, { ...begun, seq: 2, type: 'tool_finished', message }],
  ],
  ['It was written by a newer release, so update', ([one]) => [{ ...one, type: 'nonsense' }]],
])('%s', async (words, damage) => {
  const inner = memoryStore();
  await new Agent({ model: scriptedModel(['Hi.']), store: inner }).session('s').run('Hello');
  const read = async () => damage([...(await inner.read('s', 1))]) as Entry[];
  const session = new Agent({ model: scriptedModel([]), store: storeWith(inner, { read }) }).session('s');
  await expect(session.messages()).rejects.toMatchObject({
    code: 'SESSION_CORRUPT',
    message: expect.stringContaining(words),
  });
});
