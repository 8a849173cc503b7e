/** Our answers in the format of the AI SDK. */

import type { AssistantContent, ModelResponse, Usage } from 'allium';
import { isObject, type Loose, type SpecVersion } from './language-model.js';
import type { AiSdkMetadata } from './part-mapper.js';
import { taggedData } from './prompt.js';
import { putSeal } from './seal.js';

/** The content of `doGenerate`. */
export function toContent({ content }: Pick<ModelResponse, 'content'>, version: SpecVersion): Loose[] {
  return content.map((part) => contentPart(part, version));
}

/** A part of an answer, as `doGenerate` has it and as streams have those that come whole. */
export function contentPart(part: AssistantContent, version: SpecVersion): Loose {
  const told = withMetadata(part);
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text, ...told };
    case 'thinking':
      return { type: 'reasoning', text: part.text, ...told };
    case 'tool-call':
      return { type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.arguments, ...told };
    case 'file':
      return { type: 'file', mediaType: part.mimeType, data: fileData(part.data, version), ...told };
    case 'provider': {
      const value = isObject(part.value) ? part.value : { value: part.value };
      const file = part.kind === 'reasoning-file' && { data: fileData(String(value.data), version) };
      return { ...value, ...file, type: part.kind, ...told };
    }
  }
}

function fileData(data: string, version: SpecVersion): unknown {
  return version === 'v4' ? taggedData(data) : data;
}

/** What the provider wants to see again, with the seal of its thinking. */
export function withMetadata(part: AssistantContent): { providerMetadata?: unknown } {
  const provider = part.metadata?.provider as Record<string, unknown> | undefined;
  const own = part.type === 'thinking' ? putSeal(provider, part.metadata?.seal, part.signature) : provider;
  return own ? { providerMetadata: own } : {};
}

/** The end of an answer: `finish` of a stream, and what `doGenerate` has beside its content. */
export function ending(response: ModelResponse, version: SpecVersion, raw: unknown): Loose {
  const aiSdk = (response.metadata?.aiSdk ?? {}) as AiSdkMetadata;
  const { stopReason } = response;
  const unified = stopReason === 'aborted' ? 'other' : stopReason;
  return {
    finishReason: version === 'v2' ? unified : { unified, raw: aiSdk.finishReason },
    usage: {
      ...usageFor(response.usage, aiSdk.reasoningTokens, version),
      ...(version !== 'v2' && raw !== undefined && { raw }),
    },
    ...(aiSdk.providerMetadata && { providerMetadata: aiSdk.providerMetadata }),
  };
}

function usageFor(usage: Usage | undefined, reasoning: number | undefined, version: SpecVersion): Loose {
  const { inputTokens, outputTokens, cacheRead = 0, cacheWrite = 0 } = usage ?? {};
  const total = inputTokens === undefined ? undefined : inputTokens + cacheRead + cacheWrite;
  if (version === 'v2')
    return {
      inputTokens: total,
      outputTokens,
      totalTokens: total === undefined || outputTokens === undefined ? undefined : total + outputTokens,
      cachedInputTokens: cacheRead,
      reasoningTokens: reasoning,
    };
  const text = outputTokens === undefined || reasoning === undefined ? undefined : outputTokens - reasoning;
  return {
    inputTokens: { total, noCache: inputTokens, cacheRead, cacheWrite },
    outputTokens: { total: outputTokens, text, reasoning },
  };
}

export function warningsOf(response: ModelResponse): readonly unknown[] {
  return (response.metadata?.aiSdk as AiSdkMetadata | undefined)?.warnings ?? [];
}

export function responseOf(response: ModelResponse): Loose {
  const { response: told } = (response.metadata?.aiSdk ?? {}) as AiSdkMetadata;
  const { timestamp, ...rest } = told ?? {};
  return { ...rest, ...(timestamp !== undefined && { timestamp: new Date(timestamp) }) };
}
