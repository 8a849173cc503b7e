/** One request to a model, and what comes of it. */
import type { Model, ModelPart, ModelRequest, ModelResponse } from 'allium';
import { Agent, userMessage } from 'allium';

export const never: AbortSignal = new AbortController().signal;

export function request(more: Partial<ModelRequest> = {}): ModelRequest {
  return { messages: [userMessage('Hello.')], systemPrompt: '', tools: [], settings: {}, ...more };
}

export async function partsOf(
  model: Model,
  more: Partial<ModelRequest> = {},
  signal = never,
): Promise<ModelPart[]> {
  const parts: ModelPart[] = [];
  for await (const part of model.stream(request(more), { signal })) parts.push(part);
  return parts;
}

/** The response as the kernel puts it together. */
export async function responseOf(model: Model): Promise<ModelResponse> {
  const { messages } = await new Agent({ model }).run('Hello.');
  return messages.find(({ role }) => role === 'assistant') as ModelResponse;
}

export function textIn(parts: readonly ModelPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}
