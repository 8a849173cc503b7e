/** A server's request for a model, as a model call of the run: same budget, signal and inner layers. */

import {
  assistantMessage,
  type GenerateRequest,
  type Message,
  type Model,
  type ModelResponse,
  modelName,
  textOf,
  userMessage,
} from 'allium';

type Part = {
  readonly type: string;
  readonly text?: string;
  readonly data?: string;
  readonly mimeType?: string;
};

export function samplingRequest(params: Record<string, unknown>): GenerateRequest {
  const { messages, systemPrompt, maxTokens, temperature } = params as {
    messages: readonly { role: 'user' | 'assistant'; content: Part | readonly Part[] }[];
    systemPrompt?: string;
    maxTokens?: number;
    temperature?: number;
  };
  return {
    messages: messages.map(messageOf),
    ...(systemPrompt !== undefined && { systemPrompt }),
    settings: {
      ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
      ...(temperature !== undefined && { temperature }),
    },
  };
}

function messageOf({
  role,
  content,
}: {
  role: 'user' | 'assistant';
  content: Part | readonly Part[];
}): Message {
  const parts = (Array.isArray(content) ? content : [content]) as readonly Part[];
  const text = parts.map((part) => part.text ?? '').join('');
  if (role === 'assistant') return { ...assistantMessage(text), id: '' };
  return userMessage(
    parts.map((part) =>
      part.type === 'image'
        ? { type: 'image', data: part.data!, mimeType: part.mimeType! }
        : { type: 'text', text: part.text ?? '' },
    ),
  );
}

export function samplingResult(response: ModelResponse, model: Model): object {
  return {
    role: 'assistant',
    content: { type: 'text', text: textOf(response) },
    model: modelName(model),
    stopReason: response.stopReason === 'length' ? 'maxTokens' : 'endTurn',
  };
}
