/** The guide shows what the eval of the guardrails measured, and names what was not reached. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';

interface Row {
  readonly name: string;
  readonly texts: number;
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
  readonly falseAlarms?: number;
  readonly mbPerSecond: number;
  readonly goal: string;
  readonly reached: boolean;
}

interface Peer {
  readonly name: string;
  readonly version: string | null;
  readonly mbPerSecond: number;
  readonly unavailable?: string;
  readonly types?: Readonly<
    Record<
      string,
      {
        readonly precision: number;
        readonly recall: number;
        readonly f1: number;
        readonly falseAlarms: number;
      }
    >
  >;
}

const folder = join(root, 'packages/guardrails/eval');
const read = (path: string) => JSON.parse(readFileSync(join(folder, path), 'utf8'));
const page = readFileSync(join(root, 'docs/guide/guardrails.md'), 'utf8');
const between = (name: string) => page.split(`<!-- ${name} -->`)[1]!.split(`<!-- /${name} -->`)[0]!;
const percent = (share: number) => `${(share * 100).toFixed(1)} %`;

it('has a row for each detector, as it was measured', () => {
  const { results } = read('results.json') as { results: Row[] };
  const rows = between('eval').trim().split('\n').slice(2);
  expect(rows).toEqual(
    results.map(
      ({ name, texts, precision, recall, f1, falseAlarms, mbPerSecond, goal, reached }) =>
        `| ${name} | ${texts} | ${precision.toFixed(3)} | ${recall.toFixed(3)} | ${f1.toFixed(3)} | ${falseAlarms === undefined ? '' : percent(falseAlarms)} | ${mbPerSecond} | ${goal}: ${reached ? 'reached' : '**not reached**'} |`,
    ),
  );
});

it('has a row for each package it was compared with, all of one run', () => {
  const { results, date, node } = read('compare/results.json') as {
    results: Peer[];
    date: string;
    node: string;
  };
  const table = between('compare');
  expect(table).toContain(`All rows are of one run, on ${date}, with Node ${node}.`);
  expect(results.filter(({ unavailable }) => unavailable !== undefined)).toEqual([]);
  for (const { name, version, mbPerSecond, types = {} } of results) {
    const title = version ? `${name} ${version}` : name;
    for (const [type, { precision, recall, f1, falseAlarms }] of Object.entries(types)) {
      if (type === 'secrets' || type === 'injection')
        expect(table).toContain(
          `| ${type} | ${title} | ${precision.toFixed(3)} | ${recall.toFixed(3)} | ${f1.toFixed(3)} | ${percent(falseAlarms)} | ${mbPerSecond} |`,
        );
      else {
        const row = table.split('\n').find((line) => line.startsWith(`| ${title} |`));
        expect(row, title).toContain(`${f1.toFixed(2)}<br>${precision.toFixed(2)} / ${recall.toFixed(2)}`);
      }
    }
  }
});

it('measures the same detectors in both', () => {
  const { results } = read('results.json') as { results: Row[] };
  const peers = (read('compare/results.json') as { results: Peer[] }).results;
  const injection = results.find(({ name }) => name === 'prompt injection')!;
  const compared = peers.find(({ name }) => name.includes('promptInjection'))!.types!.injection!;
  expect(compared).toMatchObject({ recall: injection.recall, falseAlarms: injection.falseAlarms });
});
