/** Marks the part of requests that stays the same, for providers with a prompt cache. */

import { defineMiddleware, type Message, type Metadata, type Middleware } from '../../index.js';
import {
  checkFields,
  type Fields,
  kinds,
  type NamedOptions,
  named,
  type OptionsOf,
  readOptions,
  systemBlocksOf,
} from '../../kit/index.js';

export const OPTIONS = {
  /** How long the provider keeps what it cached, if it lets you choose: `'5m'` or `'1h'`. @default '5m' */
  ttl: kinds.withDefault(kinds.oneOf('5m', '1h'), '5m'),
  /**
   * How many messages to mark, at most, besides the system prompt: an integer from 0 to 3, since Anthropic
   * takes four marks in all, your own included. @default 2
   */
  maxMessages: kinds.withDefault(kinds.integer(0, 3), 2),
  ...named('prompt-caching'),
} satisfies Fields;

export interface PromptCachingOptions extends OptionsOf<typeof OPTIONS>, NamedOptions {}

/**
 * Marks the system prompt, the latest message and the one that was latest a turn before. The provider can then read
 * everything up to there from its cache next time.
 *
 * @example
 * new Agent({ model, systemPrompt: 'Be kind.', middleware: [promptCaching()] });
 */
export function promptCaching(options: PromptCachingOptions = {}): Middleware {
  const { ttl, maxMessages, name, madeWith } = readOptions('promptCaching', OPTIONS, options);
  const marks = marksOf(ttl);
  const system = Object.freeze({ provider: marks });
  return defineMiddleware({
    name,
    madeWith,
    looksBack: 0,
    // A rule and not a layer, after every `transformContext`: calls that middleware make for themselves aren't
    // repeated.
    transformSystemPrompt(prompt, ctx) {
      const { settings, messages } = ctx;
      const given = settings.systemMetadata;
      const blocks = systemBlocksOf({ systemPrompt: prompt, settings });
      const hasEnd = isMarked(blocks.at(-1));
      const left = Math.max(MOST - [...blocks, ...messages].filter(isMarked).length, 0);
      // The last mark that is left is worth the most on the latest message.
      const count = Math.min(maxMessages, hasEnd || left < 2 ? left : left - 1);
      if (hasEnd || left > count)
        ctx.settings = { ...settings, systemMetadata: given ? withMarks(given, marks) : system };
      const places = placesOf(messages, count);
      if (places.length > 0) {
        const marked = [...messages];
        for (const index of places) marked[index] = mark(messages[index]!, marks);
        ctx.messages = Object.freeze(marked);
      }
      return prompt;
    },
  });
}

/**
 * A cache mark as metadata, for one block of a system prompt or one message: everything up to there can be read from the
 * provider's cache next time.
 *
 * @example
 * new Agent({ model, systemPrompt: [{ text: rules, metadata: cacheMark() }, `Today is ${today}.`] });
 */
export function cacheMark(options: { readonly ttl?: '5m' | '1h' } = {}): Metadata {
  checkFields('cacheMark()', { ttl: OPTIONS.ttl }, options);
  return Object.freeze({ provider: marksOf(options.ttl ?? '5m') });
}

/** How many marks Anthropic takes in a request. */
const MOST = 4;

type Marks = Readonly<Record<string, Metadata>>;

function isMarked(part: { readonly metadata?: Metadata } | undefined): boolean {
  const provider = part?.metadata?.provider as Marks | undefined;
  if (provider === undefined) return false;
  return Object.values(provider).some(
    (own) => own?.cacheControl !== undefined || own?.cachePoint !== undefined,
  );
}

/** By provider, each in its own words; a provider only sees its own. Those that cache automatically need none. */
function marksOf(ttl: '5m' | '1h'): Marks {
  const long = ttl === '1h' && { ttl };
  const ephemeral = Object.freeze({ cacheControl: Object.freeze({ type: 'ephemeral', ...long }) });
  const point = Object.freeze({ cachePoint: Object.freeze({ type: 'default', ...long }) });
  return Object.freeze({ anthropic: ephemeral, openrouter: ephemeral, bedrock: point });
}

/**
 * The last message, and those before the latest answers, where the requests of earlier turns ended. Messages without
 * an id are in no history: a middleware put them into this request, and may put others into the next.
 */
function placesOf(messages: readonly Message[], count: number): readonly number[] {
  const last = messages.findLastIndex(({ id }) => id !== '');
  const places: number[] = [];
  for (let i = last; i >= 0 && places.length < count; i--) {
    const ended = i === last || messages[i + 1]!.role === 'assistant';
    if (ended && messages[i]!.id !== '') places.push(i);
  }
  return places;
}

function mark<M extends Message>(message: M, marks: Marks): M {
  return Object.freeze({ ...message, metadata: withMarks(message.metadata ?? {}, marks) });
}

function withMarks(metadata: Metadata, marks: Marks): Metadata {
  const given = (metadata.provider ?? {}) as Marks;
  const provider: Record<string, Metadata> = { ...given };
  for (const [name, own] of Object.entries(marks)) provider[name] = { ...own, ...given[name] };
  return { ...metadata, provider };
}
