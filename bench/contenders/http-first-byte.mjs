/** The first byte of `serve` and of the two bare servers, in turns in one process. */
import { median } from '../lib/stats.mjs';
import { agentFor } from '../work/http-agent.mjs';
import { firstBytes } from '../work/sse-server.mjs';
import * as own from './allium-http.mjs';
import * as bare from './bare-sse.mjs';

export const what = 'the three servers of this scenario in one process, asked in turns';

export async function firstByte(task) {
  const rounds = await firstBytes(
    [
      { listener: bare.listener(agentFor({ waits: true })), path: '/' },
      { listener: bare.fetching(agentFor({ waits: true })), path: '/' },
      { listener: own.listener(agentFor({ waits: true })), path: own.PATH },
    ],
    task,
  );
  const [node, fetching, serve] = [0, 1, 2].map((i) => median(rounds.map((figures) => figures[i])));
  return { node, fetching, serve, toNode: serve / node, toFetching: serve / fetching };
}
