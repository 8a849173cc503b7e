/** How long the other side asks to wait. */

import { errorChain, errorHeader } from '../../kit/index.js';

/** Milliseconds, from the error or one of its causes; undefined if it doesn't say, or the time has passed. */
export function retryAfterOf(error: unknown, now: number): number | undefined {
  try {
    return wishOf(error, now);
  } catch {
    // An error that can't be read.
    return undefined;
  }
}

function wishOf(error: unknown, now: number): number | undefined {
  for (const one of errorChain(error)) {
    const data = one.data as { retryAfterMs?: unknown } | null | undefined;
    const ms = first(
      positive(one.retryAfterMs),
      positive(data?.retryAfterMs),
      positive(errorHeader(one, 'retry-after-ms')),
      fromHeader(errorHeader(one, 'retry-after'), now),
      fromBody(one),
    );
    if (ms !== undefined) return ms;
  }
  return undefined;
}

/** Google says it in the details of the error. Its clients pass them on, or the body of the answer they stand in. */
function fromBody({ message, responseBody, errorDetails }: Record<string, unknown>): number | undefined {
  const details = Array.isArray(errorDetails) ? JSON.stringify(errorDetails) : undefined;
  for (const text of [responseBody, details, message]) {
    const seconds = typeof text === 'string' ? /"retryDelay":\s*"([\d.]+)s"/.exec(text)?.[1] : undefined;
    if (seconds !== undefined) return positive(Math.ceil(Number(seconds) * 1000));
  }
  return undefined;
}

/** Seconds, or a date. */
function fromHeader(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = positive(value);
  if (seconds !== undefined) return seconds * 1000;
  return positive(Date.parse(value) - now);
}

function positive(value: unknown): number | undefined {
  if (typeof value !== 'number' && (typeof value !== 'string' || value.trim() === '')) return undefined;
  const number = Number(value);
  return Number.isFinite(number) && number > 0 ? number : undefined;
}

function first(...values: readonly (number | undefined)[]): number | undefined {
  return values.find((value) => value !== undefined);
}
