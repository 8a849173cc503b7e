/** Counts the tokens of messages and requests. Each message is counted once, as long as it is in memory. */

import type { FileContent, ImageContent, Message, Tool, Usage } from '../index.js';
import { toolSpecs } from '../kit/index.js';
import { checkedCounter, installedCounter, type TokenCounter } from './token-counter.js';

/** What surrounds the content of a message in a request. */
const MESSAGE_TOKENS = 4;
/** An image of the usual size, by the providers that say what they charge. */
const IMAGE_TOKENS = 1200;
/** A file that isn't text: nobody can tell without opening it. */
const FILE_TOKENS = 2000;

export class TokenMeter {
  private readonly ofMessage = new WeakMap<Message, number>();
  private readonly ofTools = new WeakMap<readonly Tool[], number>();
  private readonly sums = new WeakMap<readonly Message[], Sum>();
  private prompt = { text: '', tokens: 0 };

  constructor(readonly count: TokenCounter) {}

  message(message: Message): number {
    let tokens = this.ofMessage.get(message);
    if (tokens === undefined) {
      tokens = MESSAGE_TOKENS;
      for (const part of message.content) tokens += this.part(part);
      this.ofMessage.set(message, tokens);
    }
    return tokens;
  }

  /** The messages from `from` up to `to`. */
  between(messages: readonly Message[], from: number, to: number): number {
    let tokens = 0;
    for (let i = from; i < to; i++) tokens += this.message(messages[i]!);
    return tokens;
  }

  /** What goes with every request: the system prompt and the schemas of the tools. */
  fixed({ systemPrompt, tools }: { readonly systemPrompt: string; readonly tools: readonly Tool[] }): number {
    if (this.prompt.text !== systemPrompt)
      this.prompt = { text: systemPrompt, tokens: this.count(systemPrompt) };
    let tokens = this.ofTools.get(tools);
    if (tokens === undefined) {
      tokens = 0;
      for (const spec of toolSpecs(tools)) tokens += this.count(JSON.stringify(spec));
      this.ofTools.set(tools, tokens);
    }
    return this.prompt.tokens + tokens;
  }

  /**
   * All messages from `from` on. Lists grow at their end, so the sum of a list that was counted before is continued:
   * the next call only looks at new messages.
   */
  sum(messages: readonly Message[], from = 0): number {
    const known = this.known(messages, from);
    const tokens = known.tokens + this.between(messages, known.upTo, messages.length);
    this.sums.set(messages, { from, upTo: messages.length, tokens });
    return tokens;
  }

  /**
   * What the model reported to have read for its latest answer, plus an estimate of that answer and everything since.
   * Undefined if no answer after the message `since` reports it. Nothing is read twice while the list grows.
   */
  reported(messages: readonly Message[], from: number, since: string | null): number | undefined {
    const known = this.known(messages, from);
    let tokens = 0;
    for (let i = messages.length - 1; i >= known.upTo; i--) {
      const message = messages[i]!;
      if (message.id !== '' && message.id === since) return undefined;
      tokens += this.message(message);
      if (message.role === 'assistant') {
        const read = inputOf(message.usage);
        if (read > 0) return read + tokens;
      }
    }
    return undefined;
  }

  private known(messages: readonly Message[], from: number): Sum {
    const sum = this.sums.get(messages);
    return sum && sum.from === from && sum.upTo <= messages.length ? sum : { from, upTo: from, tokens: 0 };
  }

  private part(part: Message['content'][number]): number {
    switch (part.type) {
      case 'text':
      case 'thinking':
        return this.count(part.text);
      case 'tool-call':
        return this.count(part.name) + this.count(part.arguments);
      case 'image':
        return IMAGE_TOKENS;
      case 'file':
        return fileTokens(part);
      case 'provider':
        return this.count(JSON.stringify(part.value) ?? '');
    }
  }
}

interface Sum {
  readonly from: number;
  readonly upTo: number;
  readonly tokens: number;
}

function inputOf(usage: Usage | undefined): number {
  return usage ? usage.inputTokens + usage.cacheRead + usage.cacheWrite : 0;
}

function fileTokens({ data, mimeType }: FileContent | ImageContent): number {
  if (mimeType.startsWith('image/')) return IMAGE_TOKENS;
  // Base64 has four characters for three bytes, and a token of text has about four.
  return /^text\/|json|xml/.test(mimeType) ? Math.ceil((data.length * 3) / 16) : FILE_TOKENS;
}

/** The meter of a middleware. The tokenizer is looked for when something is counted for the first time. */
export function meterFor(tokenCounter: TokenCounter | undefined): () => TokenMeter | Promise<TokenMeter> {
  const own = checkedCounter(tokenCounter);
  let meter = own && new TokenMeter(own);
  return () =>
    meter ??
    installedCounter().then((count) => {
      meter ??= new TokenMeter(count);
      return meter;
    });
}
