/** Says in words how a question differs from what was recorded. */

export interface Difference {
  /** Where, like `messages[1].content[0].text`. */
  readonly path: string;
  /** Undefined: there is nothing. */
  readonly recorded: unknown;
  readonly asked: unknown;
}

/** Every place in which two JSON values differ. */
export function differences(recorded: unknown, asked: unknown): readonly Difference[] {
  const [there, here] = [leaves(recorded), leaves(asked)];
  const paths = new Set([...there.keys(), ...here.keys()]);
  return [...paths].flatMap((path) => {
    const one = { path, recorded: there.get(path), asked: here.get(path) };
    return one.recorded === one.asked ? [] : [one];
  });
}

/** How far apart they are: texts that share something are nearer than texts that share nothing. */
export function distance(list: readonly Difference[]): number {
  return list.reduce((sum, { recorded, asked }) => {
    if (typeof recorded !== 'string' || typeof asked !== 'string') return sum + 1;
    const { start, end } = common(recorded, asked);
    return sum + 1 - (start + end) / (Math.max(recorded.length, asked.length) + 1);
  }, 0);
}

const MAX_SHOWN = 5;
const AROUND = 24;
const WIDTH = 72;

/** The first few, three lines each. For long texts, only the surroundings of the first difference. */
export function describe(list: readonly Difference[]): string {
  const lines = list.slice(0, MAX_SHOWN).flatMap(({ path, recorded, asked }) => {
    const both = typeof recorded === 'string' && typeof asked === 'string';
    const from = both ? Math.max(0, common(recorded, asked).start - AROUND) : 0;
    return [`  ${path}`, `    recorded: ${excerpt(recorded, from)}`, `    asked:    ${excerpt(asked, from)}`];
  });
  if (list.length > MAX_SHOWN) lines.push(`  … and ${list.length - MAX_SHOWN} more`);
  return lines.join('\n');
}

function excerpt(value: unknown, from: number): string {
  if (value === undefined) return '(nothing)';
  if (typeof value !== 'string') return JSON.stringify(value);
  const to = from + WIDTH;
  return `${from > 0 ? '…' : ''}${JSON.stringify(value.slice(from, to))}${to < value.length ? '…' : ''}`;
}

/** How many characters two texts share at their beginning and, beyond that, at their end. */
function common(a: string, b: string): { start: number; end: number } {
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start++;
  let end = 0;
  while (end < most - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return { start, end };
}

/** Texts, numbers and the like by their path; an empty list or object counts as one. */
function leaves(value: unknown, path = '', out = new Map<string, unknown>()): Map<string, unknown> {
  const list = Array.isArray(value);
  if (typeof value !== 'object' || value === null) out.set(path, value);
  else if (Object.keys(value).length === 0) out.set(path, list ? '[]' : '{}');
  else
    for (const [key, item] of Object.entries(value))
      leaves(item, list ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`, out);
  return out;
}
