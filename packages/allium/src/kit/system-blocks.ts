/** System prompts of several blocks, each with metadata of its own, such as a mark for the provider's cache. */
import { AlliumError, invalidOption } from '../kernel/lib/errors.js';
import { hash } from '../kernel/lib/hash.js';
import * as kinds from '../kernel/lib/kinds.js';
import { isOf, type Kind } from '../kernel/lib/shapes.js';
import type { Metadata } from '../kernel/messages/messages.js';
import type { ModelRequest, SystemMark } from '../kernel/messages/model.js';

/** A part of a system prompt. */
export interface SystemBlock {
  readonly text: string;
  /** As messages have it: `provider` holds options by provider name, such as a cache marker. */
  readonly metadata?: Metadata;
}

const BETWEEN = '\n\n';

const BLOCK: Kind = kinds.shape({ text: kinds.required(kinds.text), metadata: kinds.record });
const BLOCKS: Kind = kinds.either(kinds.text, kinds.listOf(kinds.either(kinds.text, BLOCK)));

const EXPECTED = 'text, or a list of texts and { text, metadata } blocks';

export const SYSTEM_PROMPT: Kind<string | readonly (string | SystemBlock)[]> = kinds.kind(
  EXPECTED,
  (value) => typeof value === 'function' || isOf(BLOCKS, value),
  { inside: refuseFunction },
);

/** OpenAI Agents and Mastra take a function here. */
function refuseFunction(given: unknown, option: string): AlliumError | undefined {
  if (typeof given !== 'function') return undefined;
  const { message, data } = invalidOption(option, EXPECTED, given);
  const instead =
    'For one that each request works out, write `transformSystemPrompt: (prompt, ctx) => …` in a middleware.';
  return new AlliumError('INVALID_OPTION', `${message} ${instead}`, { data });
}

/** The whole text, with a blank line between blocks, and where they end. */
export function joinedBlocks(blocks: string | readonly (string | SystemBlock)[]): {
  readonly systemPrompt: string;
  readonly systemBlocks?: readonly SystemMark[];
} {
  if (typeof blocks === 'string') return { systemPrompt: blocks };
  const given = blocks
    .map((block): SystemBlock => (typeof block === 'string' ? { text: block } : block))
    .filter(({ text }) => text !== '');
  const systemBlocks = given.map(({ text, metadata }) => ({
    chars: text.length,
    hash: hash(text),
    ...(metadata && { metadata }),
  }));
  return { systemPrompt: given.map(({ text }) => text).join(BETWEEN), systemBlocks };
}

/**
 * The system prompt of a request, block by block, for providers that take several. Text added after the blocks is one
 * more block. From the first changed block on, everything is one block. The last block also gets `systemMetadata`.
 */
export function systemBlocksOf({
  systemPrompt,
  settings: { systemBlocks = [], systemMetadata },
}: Pick<ModelRequest, 'systemPrompt' | 'settings'>): readonly SystemBlock[] {
  const blocks: SystemBlock[] = [];
  let at = 0;
  for (const mark of systemBlocks) {
    const text = systemPrompt.slice(at, at + mark.chars);
    const end = at + mark.chars;
    const isWhole = end === systemPrompt.length || systemPrompt.startsWith(BETWEEN, end);
    if (!isWhole || hash(text) !== mark.hash) break;
    blocks.push({ text, ...(mark.metadata && { metadata: mark.metadata }) });
    at = Math.min(end + BETWEEN.length, systemPrompt.length);
  }
  if (at < systemPrompt.length) blocks.push({ text: systemPrompt.slice(at) });
  const last = blocks.at(-1);
  if (last && systemMetadata)
    blocks[blocks.length - 1] = { ...last, metadata: both(last.metadata, systemMetadata) };
  return blocks;
}

/** The block's own metadata wins. */
function both(own: Metadata | undefined, all: Metadata): Metadata {
  if (!own) return all;
  const provider = { ...(all.provider as object | undefined), ...(own.provider as object | undefined) };
  return { ...all, ...own, ...(Object.keys(provider).length > 0 && { provider }) };
}
