/** What an agent adds to a call of a tool on an MCP server. */
import { atMost } from '../lib/checks.mjs';
import { cell, probe } from '../lib/compare.mjs';

const BARE = 'official client';
const OWN = '@allium/mcp';
const KINDS = ['stdio', 'http'];

export async function run({ settings, progress }) {
  const task = { calls: settings.quick ? 300 : 1500 };
  const rows = KINDS.map((job) => ({ label: job, contender: 'mcp-pair', job, probe: task }));
  const taken = await probe(rows, settings.rounds, progress);
  const results = [
    [BARE, 'bareUs'],
    [OWN, 'ownUs'],
  ].map(([label, figure]) => {
    const failed = taken.find(({ error }) => error);
    if (failed) return { label, error: failed.error };
    const cells = new Map(KINDS.map((kind) => [kind, cell(taken, kind, figure)]));
    return { label, about: taken[0].about, cells };
  });
  return {
    title: 'MCP',
    about: `Calls of \`echo\` on \`@modelcontextprotocol/server-everything\` in another process, ${task.calls} pairs in each of ${settings.rounds} processes: one by the official client alone, then one by an agent, and so on. Over HTTP both talk to the same server. What is added is the median of the differences within a pair. The agent has a turn for each call: the model's answer, checking the arguments, the call, and its result in the history are all in its time.`,
    sections: [{ results, unit: 'µs per call', baseline: BARE }],
    checks: KINDS.map((kind) =>
      atMost(
        `a call over ${kind}, more than the official client alone`,
        cell(taken, kind, 'addedMs'),
        0.3,
        'ms',
      ),
    ),
  };
}
