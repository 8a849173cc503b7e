/** Checks the options of the client: nothing is imported here, so these are the only checks. */

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isFunction = (value: unknown): boolean => typeof value === 'function';
const isPause = (value: unknown): boolean => Number.isFinite(value) && (value as number) >= 0;

/** What each option has to be, in words, and a check. */
const OPTIONS: Readonly<Record<string, readonly [expected: string, fits: (value: unknown) => boolean]>> = {
  baseUrl: [
    "an address such as 'https://example.com/api/agent', or a path",
    (value) => typeof value === 'string',
  ],
  headers: [
    'an object of texts, or a function that returns one',
    (value) => isObject(value) || isFunction(value),
  ],
  fetch: ['a function', isFunction],
  backoffMs: [
    'the first pause and the longest one in milliseconds, such as [250, 10000]',
    (value) => Array.isArray(value) && value.length === 2 && value.every(isPause),
  ],
  attempts: ['an integer ≥ 0', (value) => Number.isInteger(value) && (value as number) >= 0],
};

/** Says what is wrong with the options, if anything is. */
export function problemWith(options: unknown): string | undefined {
  const names = Object.keys(OPTIONS).join(', ');
  if (!isObject(options)) return `Expected \`options\` to be an object with ${names}, got ${shown(options)}.`;
  const given = options as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(OPTIONS, name));
  if (unknown !== undefined) return `Unknown option \`${unknown}\` of alliumClient(). It takes: ${names}.`;
  for (const [name, [expected, fits]] of Object.entries(OPTIONS)) {
    const value = given[name];
    if (value === undefined ? name === 'baseUrl' : !fits(value))
      return `Expected \`${name}\` to be ${expected}, got ${shown(value)}.`;
  }
  return undefined;
}

function shown(value: unknown): string {
  if (isFunction(value)) return 'a function';
  return typeof value === 'string' ? JSON.stringify(value) : isObject(value) ? 'an object' : String(value);
}
