/** The page about order says what `explain()` says, and leaves out none of its warnings about the box. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent } from 'allium';
import { fakeClock, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';
import { BOX, type Member } from './pairs/box.js';

interface Row {
  readonly outside: string;
  readonly inside: string;
  /** Of the other order. */
  readonly hazard: string | undefined;
}

const page = readFileSync(join(root, 'docs/guide/which-order.md'), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line): Row => {
    const [outside = '', inside = '', , , hazard = ''] = line.split('|').slice(1, -1);
    return {
      outside: memberName(outside.trim()),
      inside: memberName(inside.trim()),
      hazard: hazard.trim() === 'none' ? undefined : hazard.trim().replaceAll('`', ''),
    };
  });

/** `` `circuitBreaker({ on: 'tool' })` `` → `circuit-breaker of tools`. */
function memberName(cell: string): string {
  const [, factory = '', options] = /^`(\w+)(\(\{ on: 'tool' \}\))?`$/.exec(cell) ?? [];
  const kebab = factory.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return options ? `${kebab} of tools` : kebab;
}

function member(name: string): Member {
  const found = BOX.find((one) => one.name === name);
  if (!found) throw new Error(`The page names ${name}, which is not in the box.`);
  return found;
}

/** Hazards between two middleware in this order. Those of one alone are not about order. */
function hazards(outside: Member, inside: Member): readonly string[] {
  const around = { clock: fakeClock(), spare: scriptedModel([]), cassette: [], tools: [] };
  const middleware = [outside.make(around, 0), inside.make(around, 1)];
  const { hazards: all } = new Agent({ model: scriptedModel([]), middleware }).explain();
  return all.filter(({ between }) => between.length > 1).map(({ id }) => id);
}

describe('docs/guide/which-order.md', () => {
  it('has rows', () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(({ hazard }) => hazard !== undefined).length).toBeGreaterThan(5);
  });

  for (const { outside, inside, hazard } of rows)
    it(`${outside} outside ${inside}: ${hazard ?? 'no hazard'} the other way round`, () => {
      expect(hazards(member(outside), member(inside))).toEqual([]);
      expect(hazards(member(inside), member(outside))).toEqual(hazard === undefined ? [] : [hazard]);
    });

  it('names every hazard that two of the box have because of their order', () => {
    const told = new Set(rows.map(({ outside, inside, hazard }) => `${inside} > ${outside}: ${hazard}`));
    const missing: string[] = [];
    for (const outer of BOX)
      for (const inner of BOX) {
        if (outer === inner) continue;
        for (const id of hazards(outer, inner)) {
          const line = `${outer.name} > ${inner.name}: ${id}`;
          if (!told.has(line)) missing.push(line);
        }
      }
    expect(missing).toEqual([]);
  });

  it('says the same as the page about long runs', () => {
    const long = readFileSync(join(root, 'docs/guide/long-runs.md'), 'utf8');
    const [, list = ''] = /### In which order\s+```text\n([\s\S]*?)```/.exec(long) ?? [];
    const order = list.split('\n').flatMap((line) => line.split(/ {2,}/)[0]!.match(/\w+/g) ?? []);
    const place = new Map(order.map((factory, at) => [memberName(`\`${factory}\``), at]));
    expect([...place.keys()].filter((name) => !BOX.some((one) => one.name === name))).toEqual([]);
    const both = rows.filter(({ outside, inside }) => place.has(outside) && place.has(inside));
    expect(both.length).toBeGreaterThan(8);
    expect(both.filter(({ outside, inside }) => place.get(outside)! > place.get(inside)!)).toEqual([]);
  });

  it('is linked from where people look', () => {
    for (const file of [
      'README.md',
      'docs/README.md',
      'docs/guide/composition.md',
      'docs/guide/long-runs.md',
    ])
      expect(readFileSync(join(root, file), 'utf8')).toContain('which-order.md');
  });
});
