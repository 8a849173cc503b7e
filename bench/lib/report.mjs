/** Prints the outcome of scenarios and writes them down. */
import { writeFileSync } from 'node:fs';
import { versionsOfNode24 } from './node24.mjs';
import { machine, versions } from './setup.mjs';
import { checkTable, resultTable } from './table.mjs';

/** @param outcome what a scenario returns: `{ title, about, missing, sections, checks }`, or `{ title, skipped }` */
export function outcomeText({ title, about, skipped, missing, sections = [], checks = [] }) {
  const parts = [`## ${title}`];
  if (skipped) parts.push(`Skipped: ${skipped}`);
  if (about) parts.push(about);
  if (missing) parts.push(`**${missing}**`);
  for (const section of sections) parts.push(resultTable(section));
  if (checks.length > 0) parts.push(checkTable(checks));
  return parts.join('\n\n');
}

export function verdictLine(outcomes) {
  const verdicts = outcomes.flatMap(({ checks = [] }) => checks.map(({ verdict }) => verdict));
  const count = (wanted) => verdicts.filter((verdict) => verdict === wanted).length;
  return `${count('PASS')} targets reached, ${count('FAIL')} missed, ${count('NOT MEASURED')} not measured.`;
}

/** What could not be measured for want of something, to be said where nobody overlooks it. */
export function missingLines(outcomes) {
  return outcomes.filter(({ missing }) => missing).map(({ title, missing }) => `!!! ${title}: ${missing}`);
}

export function writeResults(path, outcomes, { quick, seconds, load }) {
  const contenders = new Map();
  for (const { sections = [] } of outcomes) {
    for (const { results } of sections) {
      for (const { about } of results) if (about) contenders.set(about.name, about.what);
    }
  }
  const text = [
    '# Benchmark results',
    'Written by `npm run bench`; `README.md` beside this file says how to read it.',
    quick ? 'A `--quick` run: few repetitions, code that is not quite warm, larger spread.' : undefined,
    verdictLine(outcomes),
    [
      `- date: ${new Date().toISOString().slice(0, 10)}`,
      `- machine: ${machine()}`,
      `- load at the start: ${load.toFixed(1)}`,
      `- duration: ${Math.round(seconds)} s`,
      ...[...versions(), ...versionsOfNode24()].map(([name, version]) => `- ${name}: ${version}`),
    ].join('\n'),
    ...outcomes.map(outcomeText),
    '## What each contender does',
    [...contenders].map(([name, what]) => `- ${name}: ${what}.`).join('\n'),
  ];
  writeFileSync(path, `${text.filter(Boolean).join('\n\n')}\n`);
}
