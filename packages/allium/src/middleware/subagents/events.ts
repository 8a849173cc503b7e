/**
 * What happens to the events of a sub-agent: they go to the parent's stream and to `onEvent`, and are kept with its
 * result.
 */

import { type AgentEvent, type Awaitable, type ToolContext, textOf } from '../../index.js';
import { describeValue, forwardChildEvent, isThenable, safeErrorMessage } from '../../kit/index.js';
import { untilAborted } from '../../own-tools/until-aborted.js';
import { cut } from '../../texts/cut.js';
import type { SubagentsOptions } from './index.js';

const MAX_EVENTS = 200;
const MAX_TEXT = 200;

/** Listens to one sub-agent. `events` fills as it works. */
export function listener(
  ctx: ToolContext,
  mapEvent: NonNullable<SubagentsOptions['mapEvent']>,
  onEvent: SubagentsOptions['onEvent'],
): { events: readonly unknown[]; onEvent(event: AgentEvent, agentId: string): Awaitable<void> } {
  const events: unknown[] = [];
  const tell = (event: AgentEvent, agentId: string): Awaitable<void> => {
    const failed = (error: unknown): void => {
      if (ctx.signal.aborted && error === ctx.signal.reason) return;
      ctx.emit('subagent_event_failed', { agentId, event: event.type, error: safeErrorMessage(error, ctx) });
    };
    try {
      const payload = mapEvent(event, agentId);
      if (payload === undefined) return;
      if (events.length < MAX_EVENTS) events.push(plain(payload));
      const wait = onEvent?.(agentId, payload);
      if (isThenable(wait)) return untilAborted(wait, ctx.signal).catch(failed);
    } catch (error) {
      failed(error);
    }
  };
  return {
    events,
    onEvent(event, agentId) {
      const wait = forwardChildEvent(ctx, event, agentId);
      return wait ? wait.then(() => tell(event, agentId)) : tell(event, agentId);
    },
  };
}

/** What is kept goes into the journal, so it must be JSON. */
function plain(payload: unknown): unknown {
  const json = JSON.stringify(payload);
  if (json === undefined)
    throw new TypeError(`Expected mapEvent to return JSON, got ${describeValue(payload)}.`);
  return JSON.parse(json);
}

/** An event in short, if nobody says what to keep; undefined for those that are left out. */
export function eventSummary(event: AgentEvent): unknown {
  const { type } = event;
  switch (event.type) {
    case 'turn_start':
      return { type, turn: event.turn };
    case 'message_end': {
      if (event.message?.role !== 'assistant') return undefined;
      const text = textOf(event.message);
      return text === '' ? undefined : { type, text: cut(text, MAX_TEXT) };
    }
    case 'tool_execution_end':
      return event.message && { type, tool: event.toolCall.name, isError: event.message.isError };
    case 'suspended':
      return { type, pending: event.pending.length };
    case 'agent_end':
      return { type, status: event.result.status };
    default:
      return undefined;
  }
}
