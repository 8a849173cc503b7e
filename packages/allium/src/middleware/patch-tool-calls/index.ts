/** Repairs conversations from elsewhere in which calls lack their results. */

import {
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

export const OPTIONS = {
  /** What the model reads in place of a missing result. @default 'No result: the call was interrupted.' */
  text: kinds.withDefault(kinds.nonEmptyText, 'No result: the call was interrupted.'),
  ...named('patch-tool-calls'),
} satisfies Fields;

export interface PatchToolCallsOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Gives every call its result right after it, in a run's input and in every request: a missing one is filled in, a
 * misplaced one is moved, and one without a call is left out.
 *
 * @example
 * new Agent({ model, middleware: [patchToolCalls()] });
 */
export function patchToolCalls(options: PatchToolCallsOptions = {}): Middleware {
  const { text, name, madeWith } = readOptions('patchToolCalls', OPTIONS, options);
  return defineMiddleware({
    name,
    madeWith,
    beforeRun(ctx) {
      const patched = patch(ctx.input, text);
      if (patched !== ctx.input) ctx.input = patched;
    },
    transformContext: (messages) => patch(messages, text),
  });
}

/** Returns the same list if there is nothing to repair. */
function patch(messages: readonly Message[], text: string): readonly Message[] {
  if (isWhole(messages)) return messages;
  const patched: Message[] = [];
  messages.forEach((message, index) => {
    if (message.role === 'tool') return;
    patched.push(message);
    if (message.role !== 'assistant') return;
    for (const call of toolCallsOf(message))
      patched.push(resultOf(call, messages, index) ?? missing(call, text));
  });
  return Object.freeze(patched);
}

/** Does every message with calls have their results right after it, in order, and is there no other result? */
function isWhole(messages: readonly Message[]): boolean {
  let open: readonly ToolCall[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (open[0]?.id !== message.toolCallId) return false;
      open = open.slice(1);
    } else if (open.length > 0) return false;
    else if (message.role === 'assistant') open = toolCallsOf(message);
  }
  return open.length === 0;
}

/**
 * The first result of this call after its message. If the id was used again before it, the result belongs to the
 * other call.
 */
function resultOf(call: ToolCall, messages: readonly Message[], from: number): ToolMessage | undefined {
  for (let i = from + 1; i < messages.length; i++) {
    const message = messages[i]!;
    if (message.role === 'tool' && message.toolCallId === call.id) return message;
    if (message.role === 'assistant' && toolCallsOf(message).some(({ id }) => id === call.id))
      return undefined;
  }
  return undefined;
}

function missing({ id, name }: ToolCall, text: string): ToolMessage {
  return {
    id: '',
    role: 'tool',
    toolCallId: id,
    toolName: name,
    content: [{ type: 'text', text }],
    isError: true,
    metadata: { synthetic: true, source: 'patch-tool-calls' },
  };
}
