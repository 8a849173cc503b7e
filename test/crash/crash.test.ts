// The harness itself: a small run of it finds nothing wrong with our stores, and finds out the stores that are wrong.

import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { root } from '../../scripts/repository.mjs';
import { runCommand } from '../../scripts/run-command.mjs';
import { line, readLines } from './ledger.mjs';
import { KINDS } from './stopping-store.mjs';

beforeAll(() => build());

async function crash(...args: string[]) {
  const { code, stdout, stderr, timedOut } = await runCommand(
    process.execPath,
    [join(root, 'test/crash/run.mjs'), '--no-build', ...args],
    { cwd: root },
  );
  // The last line of one that was killed would be the counts of one store.
  expect(timedOut, stdout + stderr).toBe(false);
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  return {
    code,
    stderr,
    counts: JSON.parse(last) as {
      kills: number;
      byPhase: Record<string, number>;
      lost: number;
      doubled: number;
      repeatedEffects: number;
      inDoubt: number;
      broken: number;
    },
  };
}

describe('the crash harness', () => {
  it('D1, D3, D4, D12 finds nothing lost, doubled or repeated, wherever a process is killed or comes back', async () => {
    const { code, stderr, counts } = await crash('--quick');
    expect(counts, stderr).toMatchObject({ lost: 0, doubled: 0, repeatedEffects: 0 });
    expect(code, stderr).toBe(0);
    const phases = [
      ...KINDS.flatMap((kind) => [`before ${kind}`, `after ${kind}`]),
      'before effect',
      'after effect',
      'after post',
      'random',
    ];
    expect(Object.keys(counts.byPhase).sort()).toEqual(phases.sort());
    expect(counts.kills).toBeGreaterThanOrEqual(36);
  });

  it.each([
    ['drops-last-append', 'after (effect|assistant message)', ['lost', 'repeatedEffects']],
    ['repeats-append', 'after tool_finished', ['doubled']],
    ['ignores-expected-seq', 'revived before (assistant message|run_end)', ['doubled']],
  ] as const)('detects a store that %s', async (saboteur, only, found) => {
    const { code, stderr, counts } = await crash(
      '--each',
      '2',
      '--random',
      '0',
      '--store',
      'file',
      '--saboteur',
      saboteur,
      '--only',
      only,
    );
    for (const kind of found) expect(counts[kind], stderr).toBeGreaterThan(0);
    expect(code, stderr).toBe(1);
  });

  it('finds nothing wrong in the same kills with a sound store', async () => {
    const { code, stderr, counts } = await crash(
      '--each',
      '2',
      '--random',
      '0',
      '--store',
      'file',
      '--only',
      'after (effect|tool_finished)|revived before run_end',
    );
    expect(counts, stderr).toMatchObject({ lost: 0, doubled: 0, repeatedEffects: 0 });
    expect(code, stderr).toBe(0);
  });

  it.each(['slow', 'late', 'silent'])('a store that is %s does no harm', async (trouble) => {
    const { code, stderr, counts } = await crash(
      '--each',
      '1',
      '--random',
      '0',
      '--store',
      'file',
      '--trouble',
      trouble,
      '--only',
      'after (effect|tool_finished)|revived before run_end',
    );
    expect(counts, stderr).toMatchObject({ lost: 0, doubled: 0, repeatedEffects: 0, broken: 0 });
    expect(code, stderr).toBe(0);
  });

  it('survives half a line in the files that its victims write', () => {
    const folder = mkdtempSync(join(tmpdir(), 'allium-ledger-'));
    const file = join(folder, 'acks');
    writeFileSync(file, `${line({ seq: 1 })}${line({ seq: 2, text: 'cut short' }).slice(0, -5)}`);
    appendFileSync(file, line({ seq: 3 }));
    expect(readLines(file)).toEqual([{ seq: 1 }, { seq: 3 }]);
    rmSync(folder, { recursive: true });
  });

  it('still ends with a verdict if it breaks off itself', async () => {
    const { code, stderr, counts } = await crash(
      '--store',
      'file',
      '--saboteur',
      'not-there',
      '--only',
      'random|after effect',
      '--each',
      '1',
      '--random',
      '2',
    );
    expect(counts, stderr).toMatchObject({ kills: 0 });
    expect(code, stderr).toBe(1);
  });
});
