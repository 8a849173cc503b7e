/** Reads a stream to its end and keeps its events. */

import { type AgentEvent, AlliumError, RunError, type RunResult, type RunStream } from '../index.js';
import { invalidOption, isThenable } from '../kit/index.js';

export interface Collected {
  readonly events: readonly AgentEvent[];
  readonly types: readonly AgentEvent['type'][];
  /** Undefined if the run failed. */
  readonly result: RunResult | undefined;
  /** What the run failed with. */
  readonly error: RunError | undefined;
  /** The text of each message as a screen would show it at the end, by message id. */
  readonly shown: ReadonlyMap<string, string>;
}

/** Collects all events of a run; a run that fails does not throw here. */
export async function collect(stream: RunStream): Promise<Collected> {
  if (isThenable(stream)) {
    // After this error nobody looks at the promise any more.
    stream.then(undefined, () => {});
    throw new AlliumError(
      'INVALID_OPTION',
      'Expected `stream` to be what agent.stream() returns, got a promise. Call stream() instead of run(), and do not await it.',
    );
  }
  if (typeof stream?.[Symbol.asyncIterator] !== 'function')
    throw invalidOption('stream', 'what agent.stream() returns', stream);
  const events: AgentEvent[] = [];
  const shown = new Map<string, string>();
  let error: RunError | undefined;
  try {
    for await (const event of stream) {
      events.push(event);
      if (event.type === 'message_reset') shown.delete(event.messageId);
      if (event.type === 'message_update' && event.delta.type === 'text')
        shown.set(event.messageId, (shown.get(event.messageId) ?? '') + event.delta.text);
    }
  } catch (thrown) {
    if (!(thrown instanceof RunError)) throw thrown;
    error = thrown;
  }
  const result = error ? undefined : await stream.result;
  return { events, types: events.map(({ type }) => type), result, error, shown };
}
