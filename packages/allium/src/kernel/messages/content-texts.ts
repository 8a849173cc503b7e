/** Reads all texts in the content of a message, and replaces them. */

import {
  isSameList,
  type Lens,
  lens,
  readArguments,
  textsIn,
  toStoredJson,
  unescaped,
  withTexts,
} from '../lib/json-texts.js';
import type { Message, ProviderContent, TextContent, ThinkingContent } from './messages.js';

/** A value that isn't JSON, or is nested too deep, can't be searched, so it is removed. */
export function readable(part: ProviderContent): ProviderContent {
  return part.value === undefined || toStoredJson(part.value) !== undefined ? part : { ...part, value: null };
}

/** A part of the content of any message. */
export type Part = Message['content'][number];

/** The strings of one part, and the part with others in their place. */
function stringsOf(
  part: Part,
  role: Message['role'],
): { readonly strings: readonly string[]; put(left: readonly string[]): Part } {
  switch (part.type) {
    case 'text':
      return { strings: [part.text], put: ([text]) => withText(part, text!, role) };
    case 'thinking':
      return { strings: [part.text], put: ([text]) => withheldThinking(part, text!) };
    case 'tool-call': {
      const read = readArguments(part.arguments);
      return {
        strings: read ? textsIn(read.args) : [unescaped(part.arguments)],
        put: (left) => ({
          ...withoutMetadata(part),
          arguments: read ? JSON.stringify(withTexts(read.args, left)) : left[0]!,
        }),
      };
    }
    case 'provider': {
      const json = toStoredJson(part.value);
      return {
        strings: textsIn(json),
        put: (left) => ({ ...withoutMetadata(part), value: withTexts(json, left) }),
      };
    }
    case 'file':
      return {
        strings: part.name === undefined ? [] : [part.name],
        put: ([name]) => ({ ...part, name: name! }),
      };
    default:
      return { strings: [], put: () => part };
  }
}

/** Metadata of user messages belongs to the application, so it stays. */
function withText(part: TextContent, text: string, role: Message['role']): TextContent {
  return { ...(role === 'user' ? part : withoutMetadata(part)), text };
}

/** The texts of content, joined as readers see them: all text blocks are one text, and all thinking is another. */
export function saidIn<P extends Part>(content: readonly P[], role: Message['role']): Lens<readonly P[]> {
  const strings: string[] = [];
  const keys: unknown[] = [];
  const parts = content.map((part) => {
    const said = stringsOf(part, role);
    const joined = part.type === 'text' || part.type === 'thinking' ? part.type : undefined;
    for (const text of said.strings) {
      strings.push(text);
      keys.push(joined);
    }
    return said;
  });
  return lens(strings, keys, (left) => {
    let end = 0;
    return parts.map(({ strings: given, put }, i) => {
      end += given.length;
      const mine = left.slice(end - given.length, end);
      return isSameList(mine, given) ? content[i]! : (put(mine) as P);
    });
  });
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
    const made = withText(part, rest, message.role);
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
