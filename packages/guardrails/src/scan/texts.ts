/** All text that a judge has to look at. */
import type { GuardSubject } from 'allium';
import { isRecord } from 'allium/kit';

/** Every text in a value, including keys. Other values are written as they would be in JSON. */
export function allTexts(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(allTexts);
  if (isRecord(value)) return Object.entries(value).flatMap(([key, inside]) => [key, ...allTexts(inside)]);
  return value === undefined || value === null ? [] : [String(value)];
}

/**
 * The text of a subject, and below it that of a result's details, a line each: no model sees them, but events and
 * journals have them.
 */
export function textsOf({ text, result }: Pick<GuardSubject, 'text' | 'result'>): string {
  return [text, ...allTexts(result?.details)].join('\n');
}
