/** Bounds how much text goes into a request and comes out of a tool, and says how much was cut. */

import { defineMiddleware, type Message, type Middleware } from '../../index.js';
import {
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
} from '../../kit/index.js';
import { beginning } from '../../texts/cut.js';

export const OPTIONS = {
  /** Characters of text a message or result may have, the note about the cut included: an integer ≥ 100. @default 50_000 */
  maxChars: kinds.withDefault(kinds.integer(100), 50_000),
  /**
   * `model` limits user messages and results in requests, `tool` limits the results that go into the history.
   * @default both
   */
  on: kinds.withDefault(
    kinds.listOf(kinds.oneOf('model', 'tool'), "a non-empty list of 'model' and 'tool'", 1),
    ['model', 'tool'],
  ),
  ...named('content-truncator'),
} satisfies Fields;

export interface ContentTruncatorOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Cuts off the end of texts that are too long: in a request before the model is called, in a result before it is
 * kept.
 *
 * @example
 * new Agent({ model, tools: [read], middleware: [contentTruncator({ maxChars: 100 })] });
 */
export function contentTruncator(options: ContentTruncatorOptions = {}): Middleware {
  const { maxChars, on, name, madeWith } = readOptions('contentTruncator', OPTIONS, options);
  // Messages are frozen, so the result for one stays right: a long history is not cut again for every call.
  const made = new WeakMap<Message, Message>();
  const bounded = (message: Message): Message => {
    if (message.role === 'assistant') return message;
    let known = made.get(message);
    if (!known) {
      const content = cut(message.content, maxChars);
      known = content === message.content ? message : Object.freeze({ ...message, content } as Message);
      if (Object.isFrozen(message)) made.set(message, known);
    }
    return known;
  };
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    ...(on.includes('model') && {
      // A rule and not a layer, after every `transformContext`: what others put into the request is bounded as well,
      // and calls that they make for themselves, such as a summary of the conversation, are left whole.
      transformSystemPrompt(prompt, ctx) {
        const { messages } = ctx;
        const next = messages.map(bounded);
        if (next.some((message, i) => message !== messages[i])) ctx.messages = Object.freeze(next);
        return prompt;
      },
    }),
    ...(on.includes('tool') && {
      // After the guards: none of them would recognise half a secret that a cut left over.
      afterToolCall(ctx) {
        const { content } = ctx.result!;
        const short = cut(content, maxChars);
        return short === content ? undefined : { content: short };
      },
    }),
  });
}

type Part = { readonly type: string; readonly text?: string };

/** The parts with at most `maxChars` characters of text in them; the same list when they have no more. */
function cut<P extends Part>(content: readonly P[], maxChars: number): readonly P[] {
  let total = 0;
  for (const part of content) if (part.type === 'text') total += part.text!.length;
  if (total <= maxChars) return content;
  let left = maxChars - note(total, total).length;
  const kept: P[] = [];
  let ended = false;
  for (const part of content) {
    if (part.type !== 'text') kept.push(part);
    else if (!ended && part.text!.length <= left) {
      kept.push(part);
      left -= part.text!.length;
    } else if (!ended) {
      ended = true;
      const text = beginning(part.text!, left);
      // Everything before this part was kept whole.
      const shown = maxChars - note(total, total).length - left + text.length;
      kept.push({ ...part, text: text + note(total - shown, total) });
    }
  }
  return kept;
}

function note(cutOff: number, total: number): string {
  return `\n[${cutOff} of ${total} characters were cut off here.]`;
}
