/** The floor of `http`: a loop over the events of the same agent, written as they come, by `node:http` or a fetch handler. */

import { toNodeListener } from 'allium/http';
import { agentFor } from '../work/http-agent.mjs';
import { firstByte as measureFirst, readEvents, weighOpen } from '../work/sse-server.mjs';

export const what =
  'reads the body, loops over `session.stream()`, writes what a client needs of each event as a line of JSON: as a listener of `node:http`, or as a fetch handler on the same `toNodeListener()`';

let sessions = 0;

function listener(agent) {
  return async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { input } = JSON.parse(body);
    response.setHeader('content-type', 'text/event-stream');
    let n = 0;
    for await (const event of agent.session(`s${sessions++}`).stream(input)) {
      const told = payload(event);
      if (told) response.write(`id: ${n++}\ndata: ${JSON.stringify(told)}\n\n`);
    }
    response.end();
  };
}

/** The same, from `Request` to `Response`. */
function fetching(agent) {
  const encoder = new TextEncoder();
  return toNodeListener(async (request) => {
    const { input } = await request.json();
    const events = agent.session(`s${sessions++}`).stream(input)[Symbol.asyncIterator]();
    let n = 0;
    const pull = async (controller) => {
      for (let step = await events.next(); !step.done; step = await events.next()) {
        const told = payload(step.value);
        if (!told) continue;
        return controller.enqueue(encoder.encode(`id: ${n++}\ndata: ${JSON.stringify(told)}\n\n`));
      }
      controller.close();
    };
    const body = new ReadableStream({ pull }, { highWaterMark: 0 });
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  });
}

/** The same payload as that of `serve`. */
function payload(event) {
  const { type, messageId } = event;
  switch (type) {
    case 'agent_start':
      return { type, runId: event.runId };
    case 'message_start':
      return { type, messageId, role: event.role };
    case 'message_update':
      return { type, messageId, delta: event.delta };
    case 'message_end':
      return {
        type,
        messageId,
        message: { id: messageId, role: event.message.role, content: event.message.content },
      };
    case 'agent_end': {
      const { runId, status, stop } = event.result;
      return { type, runId, status, stop: { reason: stop.reason } };
    }
    default:
      return undefined;
  }
}

export const events = ({ count }) => readEvents(listener(agentFor({ count })), '/', count);
export const firstByte = (task) => measureFirst(listener(agentFor({ waits: true })), '/', task);
export const fetchEvents = ({ count }) => readEvents(fetching(agentFor({ count })), '/', count);
export const fetchFirstByte = (task) => measureFirst(fetching(agentFor({ waits: true })), '/', task);
export const fetchOpen = (task) => weighOpen(fetching(agentFor({ hangs: true })), '/', task);
export const open = (task) => weighOpen(listener(agentFor({ hangs: true })), '/', task);
