/** Keeps requests valid: providers refuse a call without its result, and a result without its call. */
import type { Message } from './messages.js';

export function dropOrphans(messages: readonly Message[]): { kept: readonly Message[]; dropped: readonly string[] } {
  const calls = new Set<string>();
  const answered = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      if (calls.has(message.toolCallId)) answered.add(message.toolCallId);
    } else if (message.role === 'assistant') for (const part of message.content) if (part.type === 'tool-call') calls.add(part.id);
  }
  const dropped = new Set<string>();
  const seen = new Set<string>();
  const kept: Message[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (answered.has(message.toolCallId) && seen.has(message.toolCallId)) kept.push(message);
      else dropped.add(message.toolCallId);
      continue;
    }
    if (message.role === 'user') {
      kept.push(message);
      continue;
    }
    const content = message.content.filter((part) => part.type !== 'tool-call' || answered.has(part.id));
    for (const part of message.content) {
      if (part.type !== 'tool-call') continue;
      if (answered.has(part.id)) seen.add(part.id);
      else dropped.add(part.id);
    }
    if (content.length === message.content.length) kept.push(message);
    else if (content.length > 0) kept.push(Object.freeze({ ...message, content }));
  }
  return dropped.size === 0 ? { kept: messages, dropped: [] } : { kept, dropped: [...dropped] };
}
