/** Reads all texts in the content of a message, and replaces them. */

import {
  type Gathered,
  gather,
  isSameList,
  readArguments,
  textsIn,
  toStoredJson,
  unescaped,
  withTexts,
} from '../lib/json-texts.js';
import type { Message, ProviderContent, ThinkingContent } from './messages.js';

/** A value that isn't JSON, or is nested too deep, can't be searched, so it is removed. */
export function readable(part: ProviderContent): ProviderContent {
  return part.value === undefined || toStoredJson(part.value) !== undefined ? part : { ...part, value: null };
}

/** A part of the content of any message. */
export type Part = Message['content'][number];

function textsOfPart(part: Part): readonly string[] {
  switch (part.type) {
    case 'text':
    case 'thinking':
      return [part.text];
    case 'tool-call': {
      const read = readArguments(part.arguments);
      return read ? textsIn(read.args) : [unescaped(part.arguments)];
    }
    case 'provider':
      return textsIn(toStoredJson(part.value));
    case 'file':
      return part.name === undefined ? [] : [part.name];
    default:
      return [];
  }
}

/** The texts of content, joined as readers see them: all text blocks are one text, and all thinking is another. */
export function saidIn(content: readonly Part[]): Gathered {
  const strings: string[] = [];
  const keys: unknown[] = [];
  for (const part of content) {
    const joined = part.type === 'text' || part.type === 'thinking' ? part.type : undefined;
    for (const text of textsOfPart(part)) {
      strings.push(text);
      keys.push(joined);
    }
  }
  return gather(strings, keys);
}

/** Replaces the texts of content. `left`: the new texts, in the order they were read. */
export function redactedContent(
  { role, content }: Pick<Message, 'role' | 'content'>,
  left: readonly string[],
): readonly Part[] {
  let at = 0;
  return content.map((part) => {
    const given = textsOfPart(part);
    const mine = left.slice(at, at + given.length);
    at += given.length;
    return isSameList(mine, given) ? part : withPartTexts(part, mine, role);
  });
}

function withPartTexts(part: Part, texts: readonly string[], role: Message['role']): Part {
  switch (part.type) {
    case 'text':
      // Metadata of user messages belongs to the application, so it stays.
      return { ...(role === 'user' ? part : withoutMetadata(part)), text: texts[0]! };
    case 'thinking':
      return withheldThinking(part, texts[0]!);
    case 'tool-call': {
      const read = readArguments(part.arguments);
      const made = read ? JSON.stringify(withTexts(read.args, texts)) : texts[0]!;
      return { ...withoutMetadata(part), arguments: made };
    }
    case 'provider':
      return { ...withoutMetadata(part), value: withTexts(toStoredJson(part.value), texts) };
    case 'file':
      return { ...part, name: texts[0]! };
    default:
      return part;
  }
}

/** A judge replaced all text of the message. Calls stay, because their results need them. */
export function rewrittenContent(message: Message, text: string): readonly Part[] {
  let rest = text;
  const content = message.content.flatMap((part): Part | readonly Part[] => {
    if (part.type === 'thinking' || part.type === 'provider') return [];
    if (part.type === 'tool-call') return { ...withoutMetadata(part), arguments: '{}' };
    if (part.type === 'file' && part.name !== undefined) {
      const { name: _, ...unnamed } = part;
      return unnamed;
    }
    if (part.type !== 'text') return part;
    const made = withPartTexts(part, [rest], message.role);
    rest = '';
    return made;
  });
  return rest === '' ? content : [{ type: 'text', text: rest }, ...content];
}

/** Thinking with other text. The signature was for the old text, so this can't be sent back. */
export function withheldThinking(part: ThinkingContent, text: string): ThinkingContent {
  const { signature: _, ...rest } = withoutMetadata(part);
  return { ...rest, text, redacted: true };
}

/** Drops metadata: the provider's describes the old text, and may quote it. */
export function withoutMetadata<P extends Part>({ metadata: _, ...part }: P): Omit<P, 'metadata'> {
  return part;
}
