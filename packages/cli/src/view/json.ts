/** A run as JSON lines: one event per line, as it happens, and what was asked and answered on the way. */
import type { View } from './view.js';

export function jsonView(write: (line: string) => void): Required<View> {
  const put = (value: object): void => write(`${JSON.stringify(value)}\n`);
  return {
    event: put,
    pause() {},
    request: (request) => put({ type: 'request', runId: request.runId, request }),
    answer: ({ id, runId }, decision) => put({ type: 'answer', runId, requestId: id, decision }),
  };
}
