/** A run as JSON lines: one event per line, as it happens, and what was asked and answered on the way. */
import type { AgentEvent } from 'allium';
import type { View } from './view.js';

/** `redact` takes secrets out of what others report: why a run ended, and what middleware tell. Never out of messages. */
export function jsonView(
  write: (line: string) => void,
  redact: (text: string) => string = (text) => text,
): Required<Omit<View, 'log'>> {
  const put = (value: object): void => write(`${JSON.stringify(value)}\n`);
  return {
    event: (event) => put(withoutSecrets(event, redact)),
    pause() {},
    request: (request) => put({ type: 'request', runId: request.runId, request }),
    answer: ({ id, runId }, decision) => put({ type: 'answer', runId, requestId: id, decision }),
  };
}

function withoutSecrets(event: AgentEvent, redact: (text: string) => string): AgentEvent {
  if (event.type === 'custom' && event.data !== undefined)
    return { ...event, data: JSON.parse(redact(JSON.stringify(event.data) ?? 'null')) };
  if (event.type !== 'agent_end' || event.result.stop.message === undefined) return event;
  const { result } = event;
  return { ...event, result: { ...result, stop: { ...result.stop, message: redact(result.stop.message!) } } };
}
