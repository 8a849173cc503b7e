/** Breaks `usage`: it does not know what was used, and says so in numbers. */
import type { Model } from '../../../index.js';
import { brokenParts } from './delegate.js';

export function innumerateModel(): Model {
  const usage = { inputTokens: Number.NaN, outputTokens: -1 };
  return brokenParts((parts) => parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part)));
}

/** Breaks it in another way: its total is smaller than its parts. */
export function shortModel(): Model {
  const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 5 };
  return brokenParts((parts) => parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part)));
}

/** Breaks it in another way: it fills in zeros, and those who count the cost believe them. */
export function freeModel(): Model {
  const usage = { inputTokens: 0, outputTokens: 0 };
  return brokenParts((parts) => parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part)));
}

/** Breaks it in another way: each call reports what all calls so far have used. */
export function summingModel(): Model {
  let calls = 0;
  return brokenParts((parts) => {
    calls++;
    const usage = { inputTokens: 10 * calls, outputTokens: 5 * calls };
    return parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part));
  });
}

/** Breaks it in another way: it counts the input of each call, and sums up the output. */
export function outputSummingModel(): Model {
  let calls = 0;
  return brokenParts((parts) => {
    const usage = { inputTokens: 10, outputTokens: 5 * ++calls };
    return parts.map((part) => (part.type === 'finish' ? { ...part, usage } : part));
  });
}
