/** Texts, times and numbers in sentences that people read. */

const LONGEST = 120;

export function quoted(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > LONGEST ? `“${line.slice(0, LONGEST)}…”` : `“${line}”`;
}

export function short(value: unknown): string {
  return quoted(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
}

/** How long something took. */
export function time(ms: number): string {
  return ms < 10
    ? `${Math.round(ms * 100) / 100} ms`
    : ms < 1000
      ? `${Math.round(ms)} ms`
      : `${(ms / 1000).toFixed(1)} s`;
}

export function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
