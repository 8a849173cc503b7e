/** `serve` of `allium/http` on `node:http`. */
import { serve, toNodeListener } from 'allium/http';
import { agentFor } from '../work/http-agent.mjs';
import { readEvents, weighOpen } from '../work/sse-server.mjs';

export const what =
  '`serve()` with `toNodeListener()`: authorises, checks the body, opens a session, tells ids that any process can resume from';

export const PATH = '/sessions';

export const listener = (agent) =>
  toNodeListener(serve({ agents: agent, authorize: () => ({ tenant: 'bench' }), show: { thinking: true } }));

export const events = ({ count }) => readEvents(listener(agentFor({ count })), PATH, count);
export const open = (task) => weighOpen(listener(agentFor({ hangs: true })), PATH, task);
