/** Removes secrets from texts that others wrote, such as the error messages of a factory that was given one. */
import { isTable } from './interpolate.js';
import { LONG, Secret, valuesOf } from './secret.js';

/** How much of a secret before an ellipsis is recognised as that secret. */
const CUT = 4;
const ELLIPSIS = /\.\.\.|…/;

/** All secrets in a config. */
export function secretsIn(value: unknown): readonly string[] {
  if (value instanceof Secret) return valuesOf(value);
  if (Array.isArray(value)) return value.flatMap(secretsIn);
  return isTable(value) ? Object.values(value).flatMap(secretsIn) : [];
}

export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = [...new Set(secrets.filter((secret) => secret !== '').flatMap(formsOf))].sort(
    (a, b) => b.length - a.length,
  );
  return (text) => {
    const whole = forms.reduce(without, text);
    return ELLIPSIS.test(whole) ? forms.reduce(withoutCut, whole) : whole;
  };
}

/** As it is, in JSON, and in an address. */
function formsOf(secret: string): string[] {
  const forms = [secret, JSON.stringify(secret).slice(1, -1)];
  try {
    forms.push(encodeURIComponent(secret));
  } catch {
    // Half a surrogate pair can't be in an address.
  }
  return forms;
}

/** A short value is only removed if it stands alone: `80` in "got 80", not in "1980". */
function without(text: string, form: string): string {
  if (form.length >= LONG) return text.replaceAll(form, '***');
  const alone = form.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return text.replace(new RegExp(`(?<![\\p{L}\\p{N}])${alone}(?![\\p{L}\\p{N}])`, 'gu'), '***');
}

/** The beginning of a long secret, if a message was cut off in the middle of it. */
function withoutCut(text: string, form: string): string {
  let done = '';
  let from = 0;
  for (const { index } of text.matchAll(new RegExp(ELLIPSIS, 'g'))) {
    let length = Math.min(index - from, form.length);
    while (length >= CUT && !text.startsWith(form.slice(0, length), index - length)) length--;
    if (length < CUT) continue;
    done += `${text.slice(from, index - length)}***`;
    from = index;
  }
  return done + text.slice(from);
}

/** An error that may be shown: without its data and without secrets. */
export function safeError(error: unknown, redact: (text: string) => string): Error {
  if (!(error instanceof Error)) return new Error(redact(String(error)));
  const safe = new Error(redact(error.message));
  safe.name = error.name;
  safe.stack = redact(error.stack ?? '');
  return safe;
}
