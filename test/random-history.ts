import type { Message } from 'allium';
import fc from 'fast-check';

// Histories for property tests: answers with several calls, results that come late or never, pinned messages.

interface Step {
  readonly kind: 'user' | 'answer' | 'calls';
  readonly calls: number;
  /** How many of the calls are answered right away. */
  readonly answered: number;
  readonly pinned: boolean;
  readonly length: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('user', 'answer', 'calls'),
  calls: fc.integer({ min: 1, max: 3 }),
  answered: fc.integer({ min: 0, max: 3 }),
  pinned: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  length: fc.integer({ min: 1, max: 400 }),
});

/** With `whole`, every call has its result right after it, as the kernel keeps histories. */
export function randomHistory(
  options: { whole?: boolean; maxLength?: number } = {},
): fc.Arbitrary<Message[]> {
  const { whole = false, maxLength = 30 } = options;
  return fc.array(step, { maxLength }).map((steps) => {
    const messages: Message[] = [];
    const late: string[] = [];
    for (const { kind, calls, answered, pinned, length } of steps) {
      const metadata = pinned && { metadata: { pinned: true } };
      const id = `m${messages.length}`;
      // Never empty: an empty answer isn't sent.
      const text = { type: 'text' as const, text: `${id} `.repeat(Math.ceil(length / 4)) };
      if (kind === 'user') messages.push({ id, role: 'user', content: [text], ...metadata });
      else if (kind === 'answer')
        messages.push({ id, role: 'assistant', content: [text], stopReason: 'stop', ...metadata });
      else {
        const ids = Array.from({ length: calls }, (_, i) => `${id}-${i}`);
        const content = ids.map((call) => ({
          type: 'tool-call' as const,
          id: call,
          name: 'look',
          arguments: '{}',
        }));
        messages.push({ id, role: 'assistant', content, stopReason: 'tool-calls', ...metadata });
        const now = whole ? ids : ids.slice(0, answered);
        for (const call of now) messages.push(resultOf(call, messages.length, text.text));
        late.push(...ids.slice(now.length));
      }
      if (kind === 'user' && late.length > 0) messages.push(resultOf(late.shift()!, messages.length, 'late'));
    }
    return messages;
  });
}

function resultOf(toolCallId: string, index: number, text: string): Message {
  const content = [{ type: 'text' as const, text }];
  return { id: `m${index}`, role: 'tool', toolCallId, toolName: 'look', content, isError: false };
}

/** Ids of calls without a result after them, and of results without a call before them. */
export function unpaired(messages: readonly Message[]): {
  readonly calls: readonly string[];
  readonly results: readonly string[];
} {
  const open = new Set<string>();
  const results: string[] = [];
  for (const message of messages) {
    if (message.role === 'assistant')
      for (const part of message.content) if (part.type === 'tool-call') open.add(part.id);
    if (message.role === 'tool' && !open.delete(message.toolCallId)) results.push(message.toolCallId);
  }
  return { calls: [...open], results };
}
