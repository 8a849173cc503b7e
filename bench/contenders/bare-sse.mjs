/** The floor of `http`: a loop over the events of the same agent, written as they come, by `node:http` or a fetch handler. */

import { toNodeListener } from 'allium/http';
import { agentFor } from '../work/http-agent.mjs';
import { readEvents, weighOpen } from '../work/sse-server.mjs';

export const what =
  'parses the JSON body, makes an id for the session, sets the same headers, loops over `session.stream()`, writes what a client needs of each event as `id:` and `data:` lines of JSON, and aborts the run when the client leaves: as a listener of `node:http`, or as a fetch handler on the same `toNodeListener()`. It checks nothing, and nobody can join or resume';

const headersFor = (id) => ({
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-session-id': id,
});

export function listener(agent) {
  const answer = async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { input } = JSON.parse(body);
    const id = `s_${agent.newId()}`;
    const session = agent.session(id);
    for (const [name, value] of Object.entries(headersFor(id))) response.setHeader(name, value);
    response.once('close', () => response.writableEnded || session.abort().catch(() => {}));
    let n = 0;
    for await (const event of session.stream(input)) {
      const told = payload(event);
      if (told) response.write(`id: ${n++}\ndata: ${JSON.stringify(told)}\n\n`);
    }
    response.end();
  };
  // A run that is aborted throws.
  return (request, response) => answer(request, response).catch(() => response.destroy());
}

/** The same, from `Request` to `Response`. */
export function fetching(agent) {
  const encoder = new TextEncoder();
  return toNodeListener(async (request) => {
    const { input } = await request.json();
    const id = `s_${agent.newId()}`;
    const events = agent.session(id).stream(input)[Symbol.asyncIterator]();
    let n = 0;
    const pull = async (controller) => {
      for (let step = await events.next(); !step.done; step = await events.next()) {
        const told = payload(step.value);
        if (!told) continue;
        return controller.enqueue(encoder.encode(`id: ${n++}\ndata: ${JSON.stringify(told)}\n\n`));
      }
      controller.close();
    };
    // Leaving the events ends the run.
    const body = new ReadableStream({ pull, cancel: () => events.return() }, { highWaterMark: 0 });
    return new Response(body, { headers: headersFor(id) });
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
export const fetchEvents = ({ count }) => readEvents(fetching(agentFor({ count })), '/', count);
export const fetchOpen = (task) => weighOpen(fetching(agentFor({ hangs: true })), '/', task);
export const open = (task) => weighOpen(listener(agentFor({ hangs: true })), '/', task);
