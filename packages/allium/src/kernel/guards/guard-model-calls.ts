/**
 * What sinks see of the model calls that guards make themselves. Such a call shows a model exactly the text that may
 * have to be removed, and its answer may quote it, so a log or a recording of it would keep that text.
 */

import { hash } from '../lib/hash.js';
import { deepFreeze, type Message, type ModelResponse, textOf } from '../messages/messages.js';
import type { ModelRequest } from '../messages/model.js';

/** The original answers, by what sinks were shown instead. */
const originals = new WeakMap<ModelResponse, ModelResponse>();

/** Stands for a text, and only shows whether two texts are the same: recordings look up their answers by it. */
export function withheldText(text: string): string {
  return text === '' ? '' : `[withheld ${hash(text)}]`;
}

/** The messages of such a request, each replaced by such a text. */
export function withheldMessages(messages: readonly Message[]): readonly Message[] {
  return messages.map((message) => {
    const text = withheldText(JSON.stringify(message.content));
    return deepFreeze({ ...message, content: [{ type: 'text', text }] } as Message);
  });
}

/** Such a request, for a trace. */
export function withheldRequest(request: ModelRequest): ModelRequest {
  const { messages, systemPrompt } = request;
  return { ...request, messages: withheldMessages(messages), systemPrompt: withheldText(systemPrompt) };
}

/** The answer without words that are in the messages, except those in the system prompt. */
export function withoutQuotes(
  response: ModelResponse,
  messages: readonly Message[],
  systemPrompt: string,
): ModelResponse {
  const said = JSON.stringify(messages).toLowerCase();
  const own = systemPrompt.toLowerCase();
  const isVerdict = /^\W*(?:\p{L}{1,7}\W*){1,3}$/u.test(textOf(response));
  const clean = (text: string): string =>
    text.replace(/[\p{L}\p{N}][\p{L}\p{M}\p{N}@._+/:-]*/gu, (word) => {
      const lower = word.toLowerCase().replace(/[._:/-]+$/, '');
      return lower.length < 3 || own.includes(lower) || !said.includes(lower) ? word : '…';
    });
  const content = response.content.map((part) => {
    if (part.type === 'text' || part.type === 'thinking')
      return { ...part, text: isVerdict ? part.text : clean(part.text) };
    return part.type === 'tool-call' ? { ...part, arguments: clean(part.arguments) } : part;
  });
  const made = deepFreeze({ ...response, content } as ModelResponse);
  originals.set(made, response);
  return made;
}

/** The original answer, for the guard, if a sink passed on what it was shown. */
export function originalOf(response: ModelResponse): ModelResponse {
  return originals.get(response) ?? response;
}
