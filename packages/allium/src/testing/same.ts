/** Compares JSON values and says where they differ. */

interface Wording {
  /** What the expected value was taken from: "without the middleware". */
  readonly as?: string;
  /** What to do, as a sentence. */
  readonly advice?: string;
}

/** Throws unless both are the same JSON. A property that is undefined counts as absent, as it does in JSON. */
export function expectSame(
  actual: unknown,
  expected: unknown,
  what: string,
  { as, advice }: Wording = {},
): void {
  const at = difference(actual, expected, []);
  if (at === undefined) return;
  const [was, wanted] = [brief(valueAt(actual, at)), brief(valueAt(expected, at))];
  const where = at.length === 0 ? '' : ` (at ${at.join('.')})`;
  const like = as === undefined ? '' : `, as ${as}`;
  throw new Error(
    `Expected ${what} to be ${wanted}${like}, got ${was}${where}.${advice ? ` ${advice}` : ''}`,
  );
}

/** The path to the first difference; undefined when there is none. */
function difference(a: unknown, b: unknown, path: readonly string[]): readonly string[] | undefined {
  if (Object.is(a, b)) return undefined;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) return path;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const inner = difference(a[key], b[key], [...path, key]);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

export function brief(value: unknown): string {
  const json = JSON.stringify(value) ?? String(value);
  return json.length > 200 ? `${json.slice(0, 200)}… (${json.length} characters)` : json;
}
