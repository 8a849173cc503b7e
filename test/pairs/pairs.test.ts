/** Every two middleware of the box, in both orders and every situation, against the laws of all of them. */
import { readdirSync } from 'node:fs';
import { record } from 'allium/middleware/record';
import { fakeClock, scriptedModel } from 'allium/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NOBODY_WAITED, observe } from './bench.js';
import { BOX, type Member } from './box.js';
import { BROKEN } from './broken.js';
import { breachesOf, namesOf } from './check.js';
import { OUTCOMES, SITUATIONS, type Situation } from './conversation.js';
import { LAWS } from './laws.js';
import { isReached } from './reach.js';

/** Where two middleware together do what a law forbids and each promises. `explain()` warns of them. */
const EXCEPTIONS = [
  {
    pair: 'idempotency > tool-errors',
    at: 'tool',
    law: 'the next run is as if nothing had happened',
    reason: 'an error in words is a result, and idempotency keeps results: it belongs inside',
  },
] as const;

const WAIT = SITUATIONS.find(({ at }) => at === 'wait')!;

const cassette: string[] = [];
const tried = { combinations: new Set<string>(), situations: 0 };
/** The situations that each member can notice. */
const reached = new Map<Member, ReadonlySet<Situation>>();
/** Members with which a run waits for time to pass; two others do not wait together either. */
const waiting = new Set<Member>();
const skipped = new Map<string, number>();

function skip(reason: string, situations = 1): void {
  skipped.set(reason, (skipped.get(reason) ?? 0) + situations);
}

async function breaches(pair: readonly Member[], situation: Situation): Promise<readonly string[]> {
  const { outcome, at } = situation;
  if (!pair.some((member) => reached.get(member)!.has(situation))) {
    skip(`${outcome} (${at}): neither has a hook there or around the run`);
    return [];
  }
  const isAlone = at === 'wait' && !pair.some((member) => waiting.has(member));
  const found = isAlone ? undefined : await breachesOf(pair, situation, { cassette });
  if (!found) {
    skip(`${outcome} (${at}): nobody in this pair waits, so there is nothing to abort`);
    return [];
  }
  tried.situations++;
  tried.combinations.add(`${namesOf(pair)}, ${outcome}`);
  return found.flatMap(({ law, message }) => {
    const excused = EXCEPTIONS.find((one) => one.pair === namesOf(pair) && one.at === at && one.law === law);
    if (!excused) return [message];
    skip(`${excused.pair}, ${outcome} (${at}), "${law}": ${excused.reason}`);
    return [];
  });
}

beforeAll(async () => {
  const recorder: Member = { name: 'recorder', make: () => record({ to: cassette }) };
  await observe([recorder], SITUATIONS[0]!);
  expect(cassette).not.toEqual([]);

  const around = { clock: fakeClock(), spare: scriptedModel([]), cassette, tools: [] };
  for (const member of BOX) {
    const made = member.make(around, 0);
    reached.set(member, new Set(SITUATIONS.filter((situation) => isReached(made, situation))));
    if ((await observe([member], WAIT, cassette)) !== NOBODY_WAITED) waiting.add(member);
  }
  expect([...waiting].map(({ name }) => name)).toContain('rate-limit');
});

describe('every pair of the box keeps the laws', () => {
  for (const outer of BOX) {
    it(`${outer.name}, around every other and itself`, async () => {
      const found: string[] = [];
      for (const inner of BOX) {
        if (outer === inner && outer.once) {
          await expect(observe([outer, inner], SITUATIONS[0]!)).rejects.toMatchObject({ code: outer.once });
          skip(`${outer.name}, twice: the agent refuses it (${outer.once})`, SITUATIONS.length);
          continue;
        }
        for (const situation of SITUATIONS) found.push(...(await breaches([outer, inner], situation)));
      }
      expect(found).toEqual([]);
    });
  }

  it('and no built-in middleware is left out', () => {
    const folder = new URL('../../packages/allium/src/middleware/', import.meta.url);
    const folders = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    const members = new Set(BOX.map(({ name }) => name.split(' of ')[0]!));
    expect([...members].sort()).toEqual(folders.sort());
    expect(new Set(SITUATIONS.map(({ outcome }) => outcome))).toEqual(new Set(OUTCOMES));
  });

  afterAll(() => {
    const size = BOX.length;
    const skips = [...skipped].map(([reason, count]) => `  ${count} × ${reason}`);
    console.info(
      [
        `${tried.combinations.size} combinations (of ${size} × ${size} ordered pairs × ${OUTCOMES.length} outcomes), tried in ${tried.situations} situations.`,
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
        const named = new Set<string>();
        for (const situation of SITUATIONS)
          for (const breach of (await breachesOf(pair, situation, tamper ? { tamper } : {})) ?? [])
            named.add(breach.law);
        expect([...named]).toContain(law);
      }
    });
  }

  it('every law has a middleware that breaks it', () => {
    expect([...new Set(BROKEN.map(({ law }) => law))].sort()).toEqual(LAWS.map(({ law }) => law).sort());
  });
});
