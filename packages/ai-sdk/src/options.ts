/** Checks of what callers hand in. */
import { AlliumError } from 'allium';

/** Complains about a value in the words all of Allium uses. */
export function invalid(option: string, expected: string, value: unknown): AlliumError {
  const shown = typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? String(value));
  return new AlliumError(
    'INVALID_OPTION',
    `Expected \`${option}\` to be ${expected}, got ${shown.slice(0, 120)}.`,
    {
      data: { option, value },
    },
  );
}

export function checkOptions(what: string, options: unknown, allowed: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw invalid(`${what} options`, 'an object', options);
  for (const key of Object.keys(options)) {
    if (allowed.includes(key)) continue;
    throw new AlliumError(
      'INVALID_OPTION',
      `Unknown option \`${key}\` of \`${what}\`. It takes: ${allowed.join(', ')}.`,
      { data: { option: key, allowed } },
    );
  }
}
