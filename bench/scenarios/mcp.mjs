/** What an agent adds to a call of a tool on an MCP server. */
import { atMost } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { byRound } from '../lib/stats.mjs';

const COUNT = 100;
const BARE = 'official client';
const OWN = '@allium/mcp';
const KINDS = ['stdio', 'http'];

export async function run({ settings, progress }) {
  const sections = [];
  const checks = [];
  for (const job of KINDS) {
    const variants = [{ label: job, params: { count: COUNT }, units: COUNT }];
    const results = await compare(
      [
        { label: BARE, contender: 'bare-mcp', job, variants },
        { label: OWN, contender: 'allium-mcp', job, variants },
      ],
      settings,
      progress,
    );
    const [own, bare] = [OWN, BARE].map((label) => cell(results, label, job));
    const added = own && bare && byRound(own, bare, (x, y) => (x - y) / 1000);
    sections.push({ results, unit: 'µs per call', baseline: BARE });
    checks.push(atMost(`a call over ${job}, more than the official client alone`, added, 0.3, 'ms'));
  }
  return {
    title: 'MCP',
    about: `${COUNT} calls of \`echo\`, one after the other, on \`@modelcontextprotocol/server-everything\` in another process. The agent has a turn for each of them: the model's answer, checking the arguments, the call, and its result in the history are all in its time.`,
    sections,
    checks,
  };
}
