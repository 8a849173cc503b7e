/** Tables that read the same in a terminal and in Markdown. */
import { ratio } from './stats.mjs';

export function table(head, rows) {
  const widths = head.map((title, i) => Math.max(3, title.length, ...rows.map((row) => row[i].length)));
  const line = (cells) => `| ${cells.map((text, i) => pad(text, widths[i], i)).join(' | ')} |`;
  const rule = `|${widths.map((width, i) => (i === 0 ? `-${'-'.repeat(width)}-` : `-${'-'.repeat(width)}:`)).join('|')}|`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

const pad = (text, width, column) => (column === 0 ? text.padEnd(width) : text.padStart(width));

/** About three significant digits. */
export function figure(value) {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString('en');
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** One line per row and variant: median, spread over the rounds, and the ratio to the baseline row. */
export function resultTable({ results, unit, variant = 'case', baseline }) {
  const lines = [];
  const base = results.find((result) => result.label === baseline);
  for (const { label, cells, error } of results) {
    if (error) {
      lines.push([label, '–', 'failed', '–', '']);
      continue;
    }
    for (const [name, summary] of cells) {
      const against = base?.cells?.get(name);
      lines.push([
        label,
        name,
        figure(summary.median),
        `${figure(summary.low)} – ${figure(summary.high)}`,
        against ? `${figure(ratio(summary, against).median)} ×` : '',
      ]);
    }
  }
  const failures = results
    .filter(({ error }) => error)
    .map(({ label, error }) => `- ${label} failed: ${error}`);
  const head = ['contender', variant, unit, 'spread'];
  if (baseline) head.push(`to ${baseline}`);
  const body = table(
    head,
    lines.map((line) => line.slice(0, head.length)),
  );
  return failures.length === 0 ? body : `${body}\n\n${failures.join('\n')}`;
}

export function checkTable(checks) {
  const lines = checks.map(({ target, figure: measured, limit, unit, verdict, unsure, atLeast }) => [
    target,
    measured ? `${figure(measured.median)} ${unit}` : '–',
    measured ? `${figure(measured.low)} – ${figure(measured.high)}` : '–',
    limit === undefined ? '' : `${atLeast ? '≥' : '≤'} ${limit} ${unit}`,
    unsure ? `~ ${verdict}` : verdict,
  ]);
  return table(['target', 'measured', 'spread', 'limit', 'verdict'], lines);
}
