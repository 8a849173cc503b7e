/** Finds the provider's signature on its model's thinking, which each provider keeps elsewhere in the metadata. */
import { isObject } from './language-model.js';
import type { ProviderOptions } from './provider-options.js';

/** Members by which providers recognise their own thinking. `redactedData` is all there is of hidden thinking. */
const SEALS = ['signature', 'redactedData', 'thoughtSignature', 'reasoningEncryptedContent'] as const;

export interface Sealed {
  readonly signature: string;
  /** Provider name and member the signature was taken from. */
  readonly seal: readonly [string, string];
  /** What is left of the metadata. */
  readonly provider: ProviderOptions;
}

/**
 * Takes the seal out of the metadata. It becomes the `signature` of the thinking, which is removed when somebody
 * rewrites the thinking, so there must not be a second copy.
 */
export function takeSeal(metadata: ProviderOptions): Sealed | undefined {
  for (const [key, value] of Object.entries(metadata)) {
    for (const member of SEALS) {
      const { [member]: signature, ...rest } = value;
      if (typeof signature === 'string')
        return { signature, seal: [key, member], provider: { ...metadata, [key]: rest } };
    }
  }
  return undefined;
}

/** The metadata as the provider gave it. */
export function putSeal(
  options: Record<string, unknown> | undefined,
  seal: unknown,
  signature: string | undefined,
): Record<string, unknown> | undefined {
  if (!Array.isArray(seal) || signature === undefined) return options;
  const [key, member] = seal as [string, string];
  const before = options?.[key];
  return { ...options, [key]: { ...(isObject(before) && before), [member]: signature } };
}
