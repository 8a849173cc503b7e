/** Our answers in the format of the AI SDK. */

import type { AssistantContent, AssistantMessage, ModelResponse, Usage } from 'allium';
import { isObject, type Loose, type SpecVersion } from './language-model.js';
import type { AiSdkMetadata } from './part-mapper.js';
import { assistantParts } from './prompt.js';
import { taggedData } from './prompt-content.js';

/**
 * The content of `doGenerate`, with what the provider wants to see again: of the parts that nobody changed, as for
 * requests of ours.
 */
export function toContent(answer: AssistantMessage, version: SpecVersion): Loose[] {
  const provider = answer.model?.split('/')[0] ?? '';
  const sent = assistantParts(answer, { version, provider, keys: 'all' });
  return answer.content.map((part) => {
    // Sources and the like are never sent.
    const own = part.type === 'provider' ? part.metadata?.provider : sent.get(part)?.providerOptions;
    return { ...contentPart(part, version), ...(own !== undefined && { providerMetadata: own }) };
  });
}

/** A part of an answer without metadata, as `doGenerate` has it and as streams have those that come whole. */
export function contentPart(part: AssistantContent, version: SpecVersion): Loose {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text };
    case 'thinking':
      return { type: 'reasoning', text: part.text };
    case 'tool-call':
      return { type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.arguments };
    case 'file':
      return { type: 'file', mediaType: part.mimeType, data: fileData(part.data, version) };
    case 'provider': {
      const value = isObject(part.value) ? part.value : { value: part.value };
      const file = part.kind === 'reasoning-file' && { data: fileData(String(value.data), version) };
      return { ...value, ...file, type: part.kind };
    }
  }
}

function fileData(data: string, version: SpecVersion): unknown {
  return version === 'v4' ? taggedData(data) : data;
}

/** The end of an answer: `finish` of a stream, and what `doGenerate` has beside its content. */
export function ending(response: ModelResponse, version: SpecVersion, usage: unknown): Loose {
  const aiSdk = (response.metadata?.aiSdk ?? {}) as AiSdkMetadata;
  const { stopReason } = response;
  const unified = stopReason === 'aborted' ? 'other' : stopReason;
  return {
    finishReason: version === 'v2' ? unified : { unified, raw: aiSdk.finishReason },
    usage: usage ?? usageFor(response.usage, aiSdk.reasoningTokens, version),
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
