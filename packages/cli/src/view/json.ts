/** A run as JSON lines: one event per line, as it happens, with the questions and answers on the way. */
import { type AgentEvent, terminalJson } from 'allium';
import { withTexts } from '../terminal/text.js';
import { type View, withoutSecrets } from './view.js';

/**
 * Shows a run to a program: `write` gets a line of JSON for each event. `redact` removes secrets from what others report: why
 * a run ended, and what middleware say. Never from messages. `redactError` does so if the run failed.
 */
export function jsonView(
  write: (line: string) => void,
  redact: (text: string) => string = (text) => text,
  redactError = redact,
): Required<Omit<View, 'log'>> {
  const put = (value: object): void => write(`${terminalJson(JSON.stringify(value))}\n`);
  const shown = (event: AgentEvent): AgentEvent => {
    if (event.type === 'custom' && event.data !== undefined)
      return { ...event, data: withTexts(event.data, redact) };
    if (event.type === 'tool_execution_end' && event.error !== undefined)
      return { ...event, error: withTexts(plain(event.error), redact) };
    if (event.type !== 'agent_end') return event;
    return { ...event, result: withoutSecrets(event.result, redact, redactError) };
  };
  return {
    event: (event) => put(shown(event)),
    pause() {},
    request: (request) => put({ type: 'request', runId: request.runId, request }),
    answer: ({ id, runId }, decision) => put({ type: 'answer', runId, requestId: id, decision }),
  };
}

/** An error as JSON, which would leave out its properties. */
function plain(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack } = error;
  return { name, message, stack };
}
