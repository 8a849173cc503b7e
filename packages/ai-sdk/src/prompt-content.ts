/** The content of results, and files, as the specifications of the AI SDK have them. */
import type { FileContent, ImageContent, ToolContent } from 'allium';
import type { Loose, SpecVersion } from './language-model.js';
import type { PromptPart } from './prompt.js';
import { wellFormed } from './well-formed.js';

/** A result without a word is told as such: some providers, such as Bedrock, refuse blank text. */
const NO_OUTPUT: ToolContent = { type: 'text', text: '(no output)' };

export function outputOf(given: readonly ToolContent[], isError: boolean, version: SpecVersion): Loose {
  const said = given.filter((part) => part.type !== 'text' || part.text.trim() !== '');
  const content = said.length > 0 ? said : [NO_OUTPUT];
  if (content.every((part) => part.type === 'text')) {
    const value = wellFormed(content.map(({ text }) => text).join('\n'));
    return { type: isError ? 'error-text' : 'text', value };
  }
  const told = isError ? asFailure(content) : content;
  return { type: 'content', value: told.map((part) => resultPart(part, version)) };
}

const FAILED = 'The call failed:';

/**
 * Only text has a kind for errors; everything else says it in words. In a separate text: Google's package answers
 * once per text.
 */
function asFailure(content: readonly ToolContent[]): readonly ToolContent[] {
  const at = content.findIndex((part) => part.type === 'text');
  if (at === -1) return [{ type: 'text', text: FAILED }, ...content];
  return content.map((part, index) =>
    index === at && part.type === 'text' ? { ...part, text: `${FAILED}\n${part.text}` } : part,
  );
}

function resultPart(part: ToolContent, version: SpecVersion): Loose {
  if (part.type === 'text') return { type: 'text', text: wellFormed(part.text) };
  const { data, mimeType: mediaType } = part;
  const filename = part.type === 'file' && part.name !== undefined && { filename: part.name };
  if (version === 'v4') return { ...filePart(part, version) };
  const { url, base64 } = located(data);
  if (version === 'v2') return url ? { type: 'text', text: url } : { type: 'media', data: base64, mediaType };
  const kind = part.type === 'image' ? 'image' : 'file';
  if (url) return { type: `${kind}-url`, url };
  return { type: `${kind}-data`, data: base64, mediaType, ...filename };
}

export function filePart(part: ImageContent | FileContent, version: SpecVersion): PromptPart {
  const { url, base64 } = located(part.data);
  return {
    type: 'file',
    data: version === 'v4' ? taggedData(part.data) : url ? new URL(url) : base64,
    mediaType: part.mimeType,
    ...(part.type === 'file' && part.name !== undefined && { filename: part.name }),
  };
}

/** The data of a file as version 4 has it. */
export function taggedData(data: string): Loose {
  const { url, base64 } = located(data);
  return url ? { type: 'url', url: new URL(url) } : { type: 'data', data: base64 };
}

/** Base64 text never has a colon in it. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:/i;
const DATA_URL = /^data:[^,]*;base64,/i;

function located(data: string): { readonly url?: string; readonly base64?: string } {
  const inline = DATA_URL.exec(data);
  if (inline) return { base64: data.slice(inline[0].length) };
  return ADDRESS.test(data) ? { url: data } : { base64: data };
}
