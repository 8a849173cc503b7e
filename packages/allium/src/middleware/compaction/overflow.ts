/** Did the provider refuse a request because it was too long? Providers have no common code for it. */

import { isControl } from '../../index.js';
import { errorChain } from '../../kit/index.js';

/** Their codes and wordings, hosted and local. Some put the body of the answer into the message, codes included. */
const WORDINGS = [
  /context[ _]?(length|window|limit|size)?[ _]?(exceeded|overflow)/i,
  /context (length|window|size|limit).{0,40}(exceeds|exceeded|too (long|large|small))/i,
  /exceeds? (the |your )?(available |model'?s? |maximum )*(context|prompt)[ _-]?(size|window|length|limit)?/i,
  /max(imum)? ((context|prompt|model|input) length|context (size|window)|number of input tokens)/i,
  /(longer|larger|greater) than the (model'?s? |maximum |available )*context (length|size|window)/i,
  /context length of only \d/i,
  /(prompt|input) (is )?too long/i,
  /(prompt|input) (token count|tokens).{0,60}exceed/i,
  /(prompt|input|total tokens) exceeds? (the )?(max|model)/i,
  /exceed(s|ed)? (the )?model'?s? token limit/i,
  /input length.{0,60}exceed/i,
  /range of input length should be/i,
  /reduce the length of (the|your) (messages|prompt|input)/i,
  /max_prompt_tokens_exceeded|request_too_large|tokens: size limit exceeded|`max_new_tokens` must be <=/i,
];

/** Statuses of such an error. Others that mention tokens mean something else: 429 is a rate limit. */
const STATUSES = new Set([200, 400, 413, 422, 500]);

export function isContextOverflow(error: unknown): boolean {
  for (const one of errorChain(error)) {
    if (isControl(one)) return false;
    const status = one.statusCode ?? one.status;
    if (typeof status === 'number' && !STATUSES.has(status)) return false;
    if (status === 413 || texts(one).some((text) => WORDINGS.some((wording) => wording.test(text))))
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
    error.name,
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
