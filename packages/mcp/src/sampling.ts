/** A server's request for a model, as a model call of the run: same budget, signal and inner layers. */

import {
  assistantMessage,
  type GenerateRequest,
  type Message,
  type Model,
  type ModelResponse,
  modelName,
  textOf,
  type UserContent,
  userMessage,
} from 'allium';

type Part = {
  readonly type: string;
  readonly text?: string;
  readonly data?: string;
  readonly mimeType?: string;
};

export function samplingRequest(params: Record<string, unknown>): GenerateRequest {
  const { messages, systemPrompt, maxTokens, temperature, stopSequences } = params as {
    messages: readonly { role: 'user' | 'assistant'; content: Part | readonly Part[] }[];
    systemPrompt?: string;
    maxTokens?: number;
    temperature?: number;
    stopSequences?: readonly string[];
  };
  return {
    messages: messages.map(messageOf),
    ...(systemPrompt !== undefined && { systemPrompt }),
    settings: {
      ...(maxTokens !== undefined && { maxOutputTokens: maxTokens }),
      ...(temperature !== undefined && { temperature }),
      ...(stopSequences !== undefined && { stopSequences }),
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
  return userMessage(parts.map(contentOf));
}

function contentOf({ type, text = '', data = '', mimeType = '' }: Part): UserContent {
  if (type === 'image') return { type, data, mimeType };
  return type === 'audio' ? { type: 'file', data, mimeType } : { type: 'text', text };
}

export function samplingResult(response: ModelResponse, model: Model): object {
  return {
    role: 'assistant',
    content: { type: 'text', text: textOf(response) },
    model: modelName(model),
    stopReason: response.stopReason === 'length' ? 'maxTokens' : 'endTurn',
  };
}
