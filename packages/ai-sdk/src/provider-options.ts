/** Options and metadata by provider name, and who may see them. */
import type { Metadata } from 'allium';
import { isObject, jsonCopy, type Loose } from './language-model.js';

/** Options or metadata by provider: `{ anthropic: { cacheControl: { type: 'ephemeral' } } }`. */
export type ProviderOptions = Readonly<Record<string, Loose>>;

/** Packages that also read the options of another one. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  azure: ['openai'],
  'amazon-bedrock': ['bedrock'],
  google: ['vertex', 'googleVertex'],
  vertex: ['google', 'googleVertex'],
};

/** For anything that speaks that protocol, under any name. */
const FOR_COMPATIBLE = 'openaiCompatible';

/**
 * The names under which a provider finds its options: those in its own name (`vertex.anthropic.messages` finds
 * `vertex` and `anthropic`), as written and in camelCase, and those its package is known to read besides.
 */
export function keysOf(provider: string): ReadonlySet<string> {
  const keys = new Set<string>([FOR_COMPATIBLE]);
  for (const name of provider.split('.')) {
    for (const key of [name, ...(ALSO[name] ?? [])]) {
      keys.add(key);
      keys.add(key.replace(/[-_]([a-z0-9])/gi, (_, letter: string) => letter.toUpperCase()));
    }
  }
  return keys;
}

/** Whose options a model may see. `all`: of a prompt that was written for it. */
export type OptionKeys = ReadonlySet<string> | 'all';

/** The options that are meant for one of `keys` and for none of `without`. */
export function optionsFor(
  options: unknown,
  keys: OptionKeys,
  without?: ReadonlySet<string>,
): Record<string, Loose> | undefined {
  if (!isObject(options)) return undefined;
  let kept: Record<string, Loose> | undefined;
  for (const [key, value] of Object.entries(options)) {
    if (!isObject(value) || (keys !== 'all' && !keys.has(key)) || without?.has(key)) continue;
    kept ??= {};
    kept[key] = value;
  }
  return kept;
}

/** What a provider reports about a part, on top of what it reported before. */
export function mergeOptions(
  before: ProviderOptions | undefined,
  more: unknown,
): ProviderOptions | undefined {
  if (!isObject(more)) return before;
  const copy = jsonCopy(more) as Record<string, Loose>;
  if (!before) return Object.keys(copy).length > 0 ? copy : undefined;
  const merged: Record<string, Loose> = { ...before };
  for (const [key, value] of Object.entries(copy)) merged[key] = { ...merged[key], ...value };
  return merged;
}

/** Metadata of a part or message that is named for providers. */
export function providerOptionsOf(metadata: Metadata | undefined): unknown {
  return metadata?.provider;
}
