/** Text that fits: short, on one line, in columns. */
import { stripVTControlCharacters } from 'node:util';
import { terminalText } from 'allium';

/** A name or an id: line breaks and tabs are spelled out too. */
export function word(text: string): string {
  return terminalText(text).replaceAll('\n', '<U+000A>').replaceAll('\t', '<U+0009>');
}

/** A text of several lines, none of which can pass for a line outside of it. */
export function block(text: string, indent = '    '): string {
  return terminalText(text).replaceAll('\n', `\n${indent}`);
}

/** A line that somebody else wrote for the console, without the colours of loggers. */
export function logLine(text: string): string {
  return terminalText(stripVTControlCharacters(text));
}

/** On one line, at most `limit` characters. */
export function short(text: string, limit = 80): string {
  const line = terminalText(text).replace(/\s+/g, ' ').trim();
  const letters = [...line];
  return letters.length > limit ? `${letters.slice(0, limit - 1).join('')}…` : line;
}

/** A copy of JSON with every text in it changed. One by one, so that escapes don't matter and numbers stay. */
export function withTexts(json: unknown, change: (text: string) => string): unknown {
  const changed = (value: unknown): unknown => {
    if (typeof value === 'string') return change(value);
    if (Array.isArray(value)) return value.map(changed);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [change(key), changed(member)]));
  };
  return changed(JSON.parse(JSON.stringify(json) ?? 'null'));
}

/** `1 turn`, `2 turns`, `1,200 tokens`. `toLocaleString` would load the tables of all languages first. */
export function count(n: number, word: string): string {
  return `${String(n).replace(/\B(?=(\d{3})+$)/g, ',')} ${word}${n === 1 ? '' : 's'}`;
}

export function seconds(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function dollars(costUsd: number | undefined): string {
  if (costUsd === undefined) return 'cost unknown';
  return `$${costUsd === 0 || costUsd >= 0.01 ? costUsd.toFixed(2) : costUsd.toPrecision(2)}`;
}

/** `2026-11-15 14:02:07`, in local time. */
export function moment(at: number): string {
  const date = new Date(at - new Date(at).getTimezoneOffset() * 60_000);
  return date.toISOString().slice(0, 19).replace('T', ' ');
}

/** Columns of text, padded by their widest cell; the last one is left as it is. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}
