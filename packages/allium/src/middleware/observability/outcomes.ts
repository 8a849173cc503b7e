/** How runs and calls ended, as their spans report it. */

import type { ModelResponse, RunResult, ToolResult } from '../../index.js';
import { controlKind, errorKind } from '../../kit/index.js';
import { answerAttributes, usageAttributes } from './conventions.js';
import type { Attributes, SpanOutcome } from './port.js';

export function runOutcome({ status, stop, turns, usage }: RunResult): SpanOutcome {
  return {
    status: status === 'done' ? 'ok' : status,
    attributes: {
      ...usageAttributes(usage),
      'allium.outcome': status,
      'allium.stop.reason': stop.reason,
      'allium.turns': turns,
    },
  };
}

export function answered(firstChunk: () => number | undefined): (answer: ModelResponse) => SpanOutcome {
  return (answer) => {
    const seconds = firstChunk();
    const first: Attributes = seconds === undefined ? {} : { 'gen_ai.response.time_to_first_chunk': seconds };
    return { status: 'ok', attributes: { ...answerAttributes(answer), ...first } };
  };
}

export function toolOutcome({ isError }: ToolResult): SpanOutcome {
  return isError
    ? { status: 'error', attributes: { 'error.type': 'tool_error' } }
    : { status: 'ok', attributes: {} };
}

/** Control signals are not errors. For errors only the kind is reported: the message may quote anything. */
export function failure(error: unknown): SpanOutcome {
  const signal = controlKind(error);
  if (!signal) return { status: 'error', attributes: { 'error.type': errorKind(error) } };
  const attributes = { 'allium.outcome': OUTCOMES[signal] };
  return { status: signal === 'restart' ? 'stopped' : OUTCOMES[signal], attributes };
}

const OUTCOMES = {
  stop: 'stopped',
  suspend: 'suspended',
  abort: 'aborted',
  restart: 'restarted',
} as const;
