/** Did the provider refuse a request because it was too long? Providers have no common code for it. */

import { isControl } from '../../index.js';
import { errorChain } from '../../kit/index.js';

const CODES = new Set([
  'context_length_exceeded',
  'context_window_exceeded',
  'model_context_window_exceeded',
  'request_too_large',
]);

/** Their wordings: OpenAI and those like it, Anthropic, Google, Bedrock, Groq, xAI, Mistral, llama.cpp, Ollama. */
const WORDINGS = [
  /maximum context length/i,
  /prompt is too long/i,
  /input is too long/i,
  /exceeds? (the |your )?(available |model'?s? |maximum )*(context|prompt)[ _-]?(size|window|length|limit)?/i,
  /input token count.{0,60}exceeds/i,
  /reduce the length of (the|your) (messages|prompt|input)/i,
  /maximum prompt length/i,
  /too large for model with \d+ maximum context/i,
  /context (length|window|size|limit).{0,40}(exceeded|too (long|large|small))/i,
  /input length.{0,60}exceed/i,
];

/** Statuses of such an error. Others that mention tokens mean something else: 429 is a rate limit. */
const STATUSES = new Set([200, 400, 413, 422, 500]);

export function isContextOverflow(error: unknown): boolean {
  for (const one of errorChain(error)) {
    if (isControl(one)) return false;
    const status = one.statusCode ?? one.status;
    if (typeof status === 'number' && !STATUSES.has(status)) return false;
    if (texts(one).some((text) => CODES.has(text) || WORDINGS.some((wording) => wording.test(text))))
      return true;
  }
  return false;
}

/** Codes and messages, of the error and of the answer it was made from. */
function texts(error: Record<string, unknown>): readonly string[] {
  const body = objectOf(error.error);
  const inner = objectOf(body.error);
  const data = objectOf(objectOf(error.data).error);
  return [
    error.code,
    error.type,
    error.message,
    error.responseBody,
    ...[body, inner, data].flatMap(({ code, type, message }) => [code, type, message]),
  ].filter((text) => typeof text === 'string');
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
