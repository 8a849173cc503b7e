// Sub-agents over processes: one that asks suspends its parents, is answered from elsewhere, and goes on as the same run.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PendingRequest } from 'allium';
import { beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { root } from '../../scripts/repository.mjs';
import { runCommand } from '../../scripts/run-command.mjs';
import { readLines } from './ledger.mjs';

beforeAll(() => build());

interface Report {
  readonly status: string;
  readonly runId: string;
  readonly said: readonly string[];
  readonly pending: readonly PendingRequest[];
  /** How many runs each session has had. */
  readonly starts: readonly number[];
  readonly tokens: number;
  readonly appends: number;
}

/** Where a session lives. Each step is a process of its own; one without a report was killed. */
class Place {
  private constructor(
    readonly kind: 'file' | 'sqlite',
    readonly folder: string,
  ) {}

  static async use<T>(kind: Place['kind'], work: (place: Place) => Promise<T>, from?: Place): Promise<T> {
    const folder = mkdtempSync(join(tmpdir(), 'allium-sub-agents-'));
    try {
      if (from) cpSync(from.folder, folder, { recursive: true });
      return await work(new Place(kind, folder));
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  async step(part: 'work' | 'answer', dieAfter?: number): Promise<Report | undefined> {
    const location = join(this.folder, this.kind === 'file' ? 'sessions' : 'sessions.db');
    const task = { part, store: { kind: this.kind, location }, ledger: this.ledger, dieAfter };
    const { code, stdout, stderr } = await runCommand(
      process.execPath,
      [join(root, 'test/crash/sub-agents.mjs'), JSON.stringify(task)],
      { cwd: root },
    );
    if (dieAfter !== undefined && code !== 0 && stdout === '') return undefined;
    expect(stderr).toBe('');
    return JSON.parse(stdout) as Report;
  }

  get ledger(): string {
    return join(this.folder, 'ledger');
  }

  get paid(): readonly unknown[] {
    return readLines(this.ledger);
  }
}

describe('a sub-agent of a sub-agent that asks', () => {
  it.each(['file', 'sqlite'] as const)(
    'D21 is answered in a second process and goes on in a third, as the same run (%s)',
    (kind) =>
      Place.use(kind, async (place) => {
        const first = (await place.step('work'))!;
        expect(first).toMatchObject({ status: 'suspended', starts: [1, 1, 1] });
        expect(first.pending).toMatchObject([
          { toolName: 'pay', arguments: '{"euros":900}', from: { agent: 'cashier' } },
        ]);
        expect((await place.step('work'))!).toMatchObject({ status: 'suspended', runId: first.runId });
        expect((await place.step('answer'))!.pending).toEqual(first.pending);
        expect(place.paid).toEqual([]);
        const last = (await place.step('work'))!;
        expect(last).toMatchObject({
          status: 'done',
          runId: first.runId,
          pending: [],
          starts: [1, 1, 1],
          // Three agents, two turns each, on one account.
          tokens: 90,
        });
        expect(last.said).toEqual(['Please pay the printer.', '', 'The cashier has paid.', 'All is paid.']);
        expect(place.paid).toHaveLength(1);
      }),
  );

  it('D22 killed after any append it goes on, every agent is run once, and nothing is paid twice', () =>
    Place.use('sqlite', async (whole) => {
      const before = (await whole.step('work'))!.appends;
      for (let n = 1; n <= before; n += 2)
        await Place.use('sqlite', async (place) => {
          expect(await place.step('work', n), `killed after ${n}`).toBeUndefined();
          expect(await place.step('work'), `killed after ${n}`).toMatchObject({
            status: 'suspended',
            starts: [1, 1, 1],
          });
        });
      await whole.step('answer');
      const after = await Place.use('sqlite', async (place) => (await place.step('work'))!.appends, whole);
      expect(after).toBeGreaterThan(8);
      // The last append is the end of the run, after which nothing is left to resume.
      for (let n = 1; n < after; n++)
        await Place.use(
          'sqlite',
          async (place) => {
            expect(await place.step('work', n), `killed after ${n}`).toBeUndefined();
            const { status, starts, said } = (await place.step('work'))!;
            expect([status, starts, said.at(-1)], `killed after ${n}`).toEqual([
              'done',
              [1, 1, 1],
              'All is paid.',
            ]);
            expect(place.paid.length, `killed after ${n}`).toBeLessThanOrEqual(1);
          },
          whole,
        );
    }));
});
