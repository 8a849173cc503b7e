/** Every two middleware of the box, in both orders and every situation, against the laws of all of them. */
import { readdirSync } from 'node:fs';
import { record } from 'allium/middleware/record';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NOBODY_WAITED, type Observed, observe } from './bench.js';
import { BOX, type Member } from './box.js';
import { BROKEN } from './broken.js';
import { OUTCOMES, SITUATIONS, type Situation } from './conversation.js';
import { LAWS } from './laws.js';

/** Where two middleware together do what a law forbids and each promises. `explain()` warns of them. */
const EXCEPTIONS = [
  {
    pair: 'idempotency > tool-errors',
    at: 'tool',
    law: 'the next run is as if nothing had happened',
    reason: 'an error in words is a result, and idempotency keeps results: it belongs inside',
  },
] as const;

const cassette: string[] = [];
const tried = { combinations: 0, situations: 0 };
const skipped = new Map<string, number>();

/** Every breach, with the pair, its order and the situation. */
async function breaches(
  pair: readonly Member[],
  situation: Situation,
  tamper: (observed: Observed) => Observed = (same) => same,
): Promise<readonly string[]> {
  const where = `${pair.map(({ name }) => name).join(' > ')}, ${situation.outcome} (${situation.at})`;
  try {
    const observed = await observe(pair, situation, cassette);
    if (observed === NOBODY_WAITED) {
      skip('abort (wait): nobody in this pair waits, so there is nothing to abort');
      return [];
    }
    tried.situations++;
    return LAWS.flatMap(({ law, breach }) => {
      const problem = breach(tamper(observed), pair);
      if (problem === undefined || isException(pair, situation, law)) return [];
      return [`${where}: ${law}. ${problem}`];
    });
  } catch (error) {
    return [`${where}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`];
  }
}

function isException(pair: readonly Member[], { outcome, at }: Situation, law: string): boolean {
  const found = EXCEPTIONS.find(
    (one) => one.pair === pair.map(({ name }) => name).join(' > ') && one.at === at && one.law === law,
  );
  if (found) skip(`${found.pair}, ${outcome} (${at}), "${law}": ${found.reason}`);
  return found !== undefined;
}

function skip(reason: string): void {
  skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
}

beforeAll(async () => {
  const recorder: Member = { name: 'recorder', make: () => record({ to: cassette }) };
  await observe([recorder], SITUATIONS[0]!);
});

describe('every pair of the box keeps the laws', () => {
  for (const outer of BOX) {
    it(`${outer.name}, around every other and itself`, async () => {
      const found: string[] = [];
      for (const inner of BOX) {
        tried.combinations += OUTCOMES.length;
        for (const situation of SITUATIONS) found.push(...(await breaches([outer, inner], situation)));
      }
      expect(found).toEqual([]);
    });
  }

  it('and the box is all there', () => {
    const folder = new URL('../../packages/allium/src/middleware/', import.meta.url);
    const folders = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const members = new Set(BOX.map(({ name }) => name.split(' of ')[0]!));
    expect([...members].sort()).toEqual(folders.sort());
  });

  afterAll(() => {
    const skips = [...skipped].map(([reason, count]) => `  ${count} × ${reason}`);
    console.info(
      [
        `${tried.combinations} combinations (${BOX.length} × ${BOX.length} pairs in order × ${OUTCOMES.length} outcomes), ${tried.situations} situations tried.`,
        `Skipped:${skips.length === 0 ? ' none' : ''}`,
        ...skips,
      ].join('\n'),
    );
  });
});

describe('the laws name what', () => {
  const still: Member = { name: 'still', make: () => ({ name: 'still', wrapModel: (_, next) => next() }) };
  for (const { law, name, make, tamper } of BROKEN) {
    it(`${name}: ${law}`, async () => {
      const broken: Member = { name, make: (around) => ({ name: 'broken', ...make(around) }) };
      for (const pair of [
        [broken, still],
        [still, broken],
      ]) {
        const found: string[] = [];
        for (const situation of SITUATIONS) found.push(...(await breaches(pair, situation, tamper)));
        expect(found.filter((one) => one.includes(`: ${law}. `))).not.toEqual([]);
      }
    });
  }

  it('every law has somebody who breaks it', () => {
    expect([...new Set(BROKEN.map(({ law }) => law))].sort()).toEqual(LAWS.map(({ law }) => law).sort());
  });
});
