/** Prints the outcome of scenarios and writes them down. */
import { writeFileSync } from 'node:fs';
import { machine, versions } from './setup.mjs';
import { checkTable, resultTable } from './table.mjs';

/** @param outcome what a scenario returns: `{ title, about, sections, checks }`, or `{ title, skipped }` */
export function outcomeText({ title, about, skipped, sections = [], checks = [] }) {
  const parts = [`## ${title}`];
  if (skipped) parts.push(`Skipped: ${skipped}`);
  if (about) parts.push(about);
  for (const section of sections) parts.push(resultTable(section));
  if (checks.length > 0) parts.push(checkTable(checks));
  return parts.join('\n\n');
}

export function verdictLine(outcomes) {
  const verdicts = outcomes.flatMap(({ checks = [] }) => checks.map(({ verdict }) => verdict));
  const count = (wanted) => verdicts.filter((verdict) => verdict === wanted).length;
  return `${count('PASS')} targets reached, ${count('FAIL')} missed, ${count('NOT MEASURED')} not measured.`;
}

export function writeResults(path, outcomes, { quick, seconds }) {
  const contenders = new Map();
  for (const { sections = [] } of outcomes) {
    for (const { results } of sections) {
      for (const { about } of results) if (about) contenders.set(about.name, about.what);
    }
  }
  const text = [
    '# Benchmark results',
    'Written by `npm run bench`; `README.md` beside this file says how to read it.',
    quick ? 'A `--quick` run: few repetitions, larger spread.' : undefined,
    verdictLine(outcomes),
    [
      `- date: ${new Date().toISOString().slice(0, 10)}`,
      `- machine: ${machine()}`,
      `- duration: ${Math.round(seconds)} s`,
      ...[...versions()].map(([name, version]) => `- ${name}: ${version}`),
    ].join('\n'),
    ...outcomes.map(outcomeText),
    '## What each contender does',
    [...contenders].map(([name, what]) => `- ${name}: ${what}.`).join('\n'),
  ];
  writeFileSync(path, `${text.filter(Boolean).join('\n\n')}\n`);
}
