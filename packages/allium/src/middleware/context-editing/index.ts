/** Takes the content of old tool results out of long requests: the calls stay, what they returned does not. */

import { isPassing, isPinned } from '../../context-window/pins.js';
import type { TokenCounter } from '../../context-window/token-counter.js';
import { meterFor } from '../../context-window/token-meter.js';
import {
  type AssistantMessage,
  defineMiddleware,
  type Message,
  type Middleware,
  type ToolCall,
  type ToolMessage,
  toolCallsOf,
} from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';

export type { TokenCounter } from '../../context-window/token-counter.js';

export const OPTIONS = {
  /**
   * Clear old results once a request has this many tokens, measured before anything is cleared: an integer ≥
   * 0. @default 100_000
   */
  clearToolResultsAfterTokens: kinds.withDefault(kinds.integer(0), 100_000),
  /**
   * How many of the latest results stay, and with them all that the model has not read yet; 0 clears every
   * result: an integer ≥ 0. @default 3
   */
  keep: kinds.withDefault(kinds.integer(0), 3),
  /** Clear the arguments of these calls, too. @default false */
  clearInputs: kinds.withDefault(kinds.flag, false),
  /** Names of tools whose results and arguments always stay. @default none */
  keepTools: kinds.withDefault(kinds.names, []),
  /** What stands in the place of a result. @default a line that says how long it was */
  placeholder: kinds.nonEmptyText,
  /** Counts the tokens of a text. @default `gpt-tokenizer` or `tokenx` if installed, else an estimate */
  tokenCounter: kinds.func<TokenCounter>(),
  ...named('context-editing'),
} satisfies Fields;

export interface ContextEditingOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Replaces the results of older calls with a line, in requests that have grown long. The history keeps them.
 *
 * @example
 * new Agent({ model, tools: [read], middleware: [contextEditing({ clearToolResultsAfterTokens: 500, keep: 1 })] });
 */
export function contextEditing(options: ContextEditingOptions = {}): Middleware {
  const settings = readOptions('contextEditing', OPTIONS, options);
  const { clearToolResultsAfterTokens, keep, clearInputs, placeholder, tokenCounter } = settings;
  const { name, madeWith } = settings;
  const keptTools = new Set(settings.keepTools);
  const meter = meterFor(tokenCounter);
  // Messages are frozen, so the result for one stays right, and the same request gets the same objects.
  const made = new WeakMap<Message, Message>();
  const once = <M extends Message>(message: M, make: (message: M) => M): M => {
    const known = (made.get(message) as M | undefined) ?? make(message);
    made.set(message, known);
    return known;
  };
  return defineMiddleware({
    name,
    madeWith,
    async transformContext(messages, ctx) {
      const counts = await meter();
      // Not what the model reports to have read: that was the short request, and the next one would be long again.
      if (counts.sum(messages) + counts.fixed(ctx) < clearToolResultsAfterTokens) return messages;
      const from = latest(messages, keep);
      const goes = (message: Message, index: number): message is ToolMessage =>
        message.role === 'tool' && index < from && !isPinned(message) && !keptTools.has(message.toolName);
      const calls = new Set(clearInputs ? messages.filter(goes).map(({ toolCallId }) => toolCallId) : []);
      const edited = messages.map((message, index) => {
        if (goes(message, index)) return once(message, (one) => clear(one, placeholder));
        if (message.role !== 'assistant' || calls.size === 0 || isPinned(message)) return message;
        // One of several calls may stay as it is, until its result goes as well.
        const gone = toolCallsOf(message).filter(({ id }) => calls.has(id));
        if (gone.length === 0) return message;
        return gone.length === toolCallsOf(message).length
          ? once(message, (one) => withoutInputs(one, calls))
          : withoutInputs(message, calls);
      });
      return edited.some((message, index) => message !== messages[index]) ? edited : messages;
    },
  });
}

/**
 * The index of the first message whose result stays. Those after the model's last answer stay, too: it hasn't read them
 * yet, and would only call again.
 */
function latest(messages: readonly Message[], keep: number): number {
  if (keep === 0) return messages.length;
  const unread = messages.findLastIndex((message) => message.role === 'assistant' && !isPassing(message)) + 1;
  let left = keep;
  for (let i = messages.length - 1; i >= 0; i--) {
    if (messages[i]!.role !== 'tool') continue;
    if (left === 0) return Math.min(i + 1, unread);
    left--;
  }
  return 0;
}

/** The message with its calls, but without their arguments. */
function withoutInputs(message: AssistantMessage, calls: ReadonlySet<string>): AssistantMessage {
  const isLong = (part: AssistantMessage['content'][number]): part is ToolCall =>
    part.type === 'tool-call' && calls.has(part.id) && part.arguments.length > '{}'.length;
  if (!message.content.some(isLong)) return message;
  const content = message.content.map((part) =>
    isLong(part) ? Object.freeze({ ...part, arguments: '{}' }) : part,
  );
  return Object.freeze({ ...message, content: Object.freeze(content) });
}

/** The result with a line in place of its content; unchanged if that wouldn't be shorter. */
function clear(message: ToolMessage, placeholder: string | undefined): ToolMessage {
  let chars = 0;
  let others = 0;
  for (const part of message.content) {
    if (part.type === 'text') chars += part.text.length;
    else others++;
  }
  const what = others === 0 ? `${chars} characters` : `${chars} characters and ${others} attachments`;
  const text =
    placeholder ?? `[The result was cleared to save space: ${what}. Call the tool again if you need it.]`;
  if (others === 0 && chars <= text.length) return message;
  const content = Object.freeze([Object.freeze({ type: 'text' as const, text })]);
  return Object.freeze({ ...message, content });
}
