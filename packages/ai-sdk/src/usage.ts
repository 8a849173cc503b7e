/** Token counts and finish reasons of the three specifications, as ours. */
import type { FinishReason, Usage } from 'allium';
import { isObject, type Loose } from './language-model.js';

export interface Counted {
  readonly usage: Partial<Usage>;
  /** The part of the output that was thinking. */
  readonly reasoningTokens: number | undefined;
}

/**
 * We count cached input separately from `inputTokens`, because it has its own price. From v3 on models say so
 * themselves; in v2 it depends on the provider whether `inputTokens` includes what was cached.
 */
export function usageOf(usage: unknown, providerMetadata: unknown): Counted {
  if (!isObject(usage)) return { usage: {}, reasoningTokens: undefined };
  return isObject(usage.inputTokens) || isObject(usage.outputTokens)
    ? nested(usage)
    : flat(usage, providerMetadata);
}

function nested({ inputTokens, outputTokens }: Loose): Counted {
  const input = isObject(inputTokens) ? inputTokens : {};
  const output = isObject(outputTokens) ? outputTokens : {};
  const cacheRead = count(input.cacheRead) ?? 0;
  const cacheWrite = count(input.cacheWrite) ?? 0;
  const fresh = count(input.noCache) ?? less(count(input.total), cacheRead + cacheWrite);
  const reasoningTokens = count(output.reasoning);
  const written = count(output.total) ?? sum(count(output.text), reasoningTokens);
  return { usage: { inputTokens: fresh, outputTokens: written, cacheRead, cacheWrite }, reasoningTokens };
}

function flat(usage: Loose, providerMetadata: unknown): Counted {
  const input = count(usage.inputTokens);
  const output = count(usage.outputTokens);
  const cacheRead = count(usage.cachedInputTokens) ?? 0;
  const reasoningTokens = count(usage.reasoningTokens);
  const apart = cachedApart(providerMetadata);
  const includes = apart === undefined && cacheRead <= (input ?? 0);
  // Google counts thinking beside the output; only the total shows it.
  const beside =
    reasoningTokens !== undefined &&
    count(usage.totalTokens) === (input ?? 0) + (output ?? 0) + reasoningTokens;
  return {
    usage: {
      inputTokens: includes ? less(input, cacheRead) : input,
      outputTokens: beside ? (output ?? 0) + reasoningTokens : output,
      cacheRead,
      cacheWrite: apart ?? 0,
    },
    reasoningTokens,
  };
}

/** Anthropic's models, there or on Bedrock, do not count cached tokens as input. Returns what was written to the cache. */
function cachedApart(metadata: unknown): number | undefined {
  if (!isObject(metadata)) return undefined;
  const { anthropic, bedrock } = metadata;
  if (isObject(anthropic)) return count(anthropic.cacheCreationInputTokens) ?? 0;
  if (!isObject(bedrock)) return undefined;
  return isObject(bedrock.usage) ? (count(bedrock.usage.cacheWriteInputTokens) ?? 0) : 0;
}

/** Providers leave counts out, or send NaN if they divide by zero. */
function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

function less(total: number | undefined, part: number): number | undefined {
  return total === undefined ? undefined : Math.max(0, total - part);
}

function sum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
}

export interface Finished {
  readonly reason: FinishReason;
  /** In the provider's own words, if it says. */
  readonly raw: string | undefined;
  /** No reason ever came: the answer broke off, though the connection was closed properly. */
  readonly cut: boolean;
}

const REASONS = new Set<unknown>(['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other']);

/**
 * v2 has a word, later versions an object with ours and theirs. The `unknown` of v2 may be a word its package does
 * not know, or none at all; an answer whose tokens were counted did come to its end.
 */
export function finishOf(given: unknown, outputTokens: number | undefined): Finished {
  const unified = isObject(given) ? given.unified : given;
  const raw = isObject(given) && typeof given.raw === 'string' ? given.raw : undefined;
  const reason = REASONS.has(unified) ? (unified as FinishReason) : 'other';
  const silent = isObject(given) && raw === undefined && unified === 'other';
  const unknown = (unified === 'unknown' || unified === undefined) && !outputTokens;
  return { reason, raw, cut: silent || unknown || unified === 'interrupted' };
}
