// The page of concepts lists what hooks are given. This compares the table with the types.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';

const types = readFileSync(join(root, 'packages/allium/src/kernel/protocol/contexts.ts'), 'utf8');
const page = readFileSync(join(root, 'docs/guide/concepts.md'), 'utf8');

function fieldsOf(context: string): { reads: string[]; assigns: string[] } {
  const [, body = ''] =
    new RegExp(`^export interface ${context}\\b[^{]*\\{\\n(.*?)^\\}`, 'ms').exec(types) ?? [];
  const fields = [...body.matchAll(/^ {2}(readonly )?(\w+)([?:<(])/gm)].filter(
    ([, , name]) => context === 'Context' || name !== 'seam',
  );
  const isAssignable = ([, readonly, , sign]: RegExpExecArray) => !readonly && sign !== '(' && sign !== '<';
  const names = (list: RegExpExecArray[]) => list.map(([, , name]) => name!).sort();
  return {
    reads: names(fields.filter((one) => !isAssignable(one))),
    assigns: names(fields.filter(isAssignable)),
  };
}

const namesIn = (cell = ''): string[] =>
  [...cell.matchAll(/`(\w+)(?:\(\))?`/g)].map(([, name]) => name!).sort();

it.each([
  ['all', 'Context'],
  ['`RunContext`', 'RunContext'],
  ['`ModelContext`', 'ModelContext'],
  ['`ToolContext`', 'ToolContext'],
  ['`TurnContext`', 'TurnContext'],
])('the row of %s has every field, where it belongs', (row, context) => {
  const line = page.split('\n').find((one) => one.startsWith(`| ${row} |`)) ?? '';
  const [, , , reads, assigns] = line.split('|');
  const fields = fieldsOf(context);
  expect(fields.reads.length + fields.assigns.length).toBeGreaterThan(3);
  expect({ reads: namesIn(reads), assigns: namesIn(assigns) }).toEqual(fields);
});
