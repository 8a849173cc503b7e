/**
 * How the events of a run travel from the worker to its followers: short, and without what is in the journal anyway.
 */
import type { AgentEvent, MessageDelta } from 'allium';
import type { Outcome } from './jobs.js';

/** A piece of text of the message that was started last: block, text, and 1 if it is thinking. Or an event. */
export type WireEvent =
  | readonly [block: number, text: string, thinking?: 1]
  | Readonly<Record<string, unknown>>;

/**
 * `n`: how many events of this try were sent before these. With `seq`, it is for late followers: the journal up to
 * that entry, and then these events, is everything so far. `null` instead of events: this worker sends nothing more.
 */
export type WireMessage = readonly [
  epoch: string,
  n: number,
  events: readonly WireEvent[] | null,
  seq?: number,
];

/** Undefined for events that nobody is shown. */
export function toWire(event: AgentEvent): WireEvent | undefined {
  const { type } = event;
  switch (type) {
    case 'agent_start':
      return { type, runId: event.runId, resumed: event.resumed };
    case 'message_start':
      return { type, messageId: event.messageId, role: event.role };
    case 'message_update':
      return deltaToWire(event.messageId, event.delta);
    case 'message_reset':
      return { type, messageId: event.messageId };
    case 'message_end':
      return { type, messageId: event.messageId, ...(event.discarded && { discarded: true }) };
    case 'tool_execution_update':
      return { type, toolCallId: event.toolCallId, toolName: event.toolName, update: event.update };
    case 'tool_execution_waiting':
      return { type, pending: event.pending.slice(-1).map(({ id }) => ({ id })) };
    case 'tool_execution_end':
      return { type, toolCall: { id: event.toolCall.id } };
    case 'custom':
      return { type, name: event.name, data: event.data };
    default:
      return undefined;
  }
}

export function deltaToWire(messageId: string, delta: MessageDelta): WireEvent {
  if (delta.type === 'text') return [delta.block, delta.text];
  if (delta.type === 'thinking') return [delta.block, delta.text, 1];
  return { type: 'message_update', messageId, delta };
}

export function endToWire({ runId, status, stop, pending = [] }: Outcome): WireEvent {
  return { type: 'agent_end', result: { runId, status, stop: stop ?? { reason: 'final' }, pending } };
}

/** Reads events in their order: pieces of text belong to the message that was started last. */
export class WireReader {
  private messageId = '';

  /** The parts of the event that those who show it read. */
  read(event: WireEvent): AgentEvent {
    if (!Array.isArray(event)) {
      const whole = event as unknown as AgentEvent;
      if (whole.type === 'message_start') this.messageId = whole.messageId;
      return whole;
    }
    const [block, text, thinking] = event as readonly [number, string, 1?];
    const delta = { type: thinking ? 'thinking' : 'text', block, text } as const;
    const { messageId } = this;
    return { type: 'message_update', runId: '', sessionId: '', messageId, delta };
  }
}
