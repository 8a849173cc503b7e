// `allium audit verify`: the log against the journal.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import { useProject } from '../../test/project.js';

const here = useProject();

beforeEach(async () => {
  const config = here().read('allium.toml');
  here().write(
    'allium.toml',
    `${config.replace('chain = [', 'chain = [\n  "audit-log",')}
[allium.plugins.audit-log]
sink = { file = "audit.jsonl" }
key = "\${AUDIT_KEY}"
`,
  );
  await here().allium(['run', '--session', 'ann', 'add 1 and 2'], { env });
});

const env = { AUDIT_KEY: 'a secret of the tests' };

it('accepts an intact log, with file and key from the config', async () => {
  const { code, stdout } = await here().allium(['audit', 'verify'], { env });
  expect(stdout).toMatch(/^ok +ann: \d+ lines verified\n$/);
  expect(code).toBe(0);
});

it('finds what was edited and what is missing, and exits with 1', async () => {
  const lines = here().read('audit.jsonl').trimEnd().split('\n');
  here().write('audit.jsonl', `${[lines[0]!.replace('"v":1', '"v":1 '), ...lines.slice(2)].join('\n')}\n`);
  const { code, stdout } = await here().allium(['audit', 'verify'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^BROKEN +ann/);
  expect(stdout).toContain('edited: line 1 of the session, line 1 of the file');
  expect(stdout).toContain('missing: line 2 of the session');
  const json = JSON.parse((await here().allium(['audit', 'verify', '--json'], { env })).stdout);
  expect(json.reports).toMatchObject([{ session: 'ann', ok: false }]);
});

it('verifies the others if a session is damaged, and does not call that an intact log', async () => {
  here().write('.allium/sessions/ben.jsonl', 'not a line of a journal\n');
  const { code, stdout, stderr } = await here().allium(['audit', 'verify'], { env });
  expect([code, stdout]).toEqual([1, expect.stringMatching(/^ok +ann: \d+ lines verified\n$/)]);
  expect(stderr).toMatch(/ben\.jsonl was changed by something else, or damaged/);
});

it('finds nothing wrong with a fork, before and after a run in it', async () => {
  const verify = () => here().allium(['audit', 'verify'], { env });
  await here().allium(['sessions', 'fork', 'ann', '--as', 'bob'], { env });
  expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ok +ann: .*\n$/) });
  await here().allium(['run', '--session', 'bob', 'add 3 and 4'], { env });
  const { code, stdout } = await verify();
  expect(stdout.trimEnd().split('\n').sort()).toEqual([
    expect.stringMatching(/^ok +ann: \d+ lines verified$/),
    expect.stringMatching(/^ok +bob: \d+ lines verified$/),
  ]);
  expect(code).toBe(0);
});

it('takes another file, one session and another key', async () => {
  here().write('copy.jsonl', here().read('audit.jsonl'));
  const args = ['audit', 'verify', 'copy.jsonl', '--session', 'ann'];
  expect((await here().allium(args, { env })).code).toBe(0);
  const wrong = await here().allium([...args, '--key-env', 'OTHER'], { env: { ...env, OTHER: 'another' } });
  expect(wrong.code).toBe(1);
  const unset = await here().allium([...args, '--key-env', 'NOT_SET_AT_ALL'], { env });
  expect(unset).toMatchObject({ code: 2 });
  expect(unset.stderr).toContain('NOT_SET_AT_ALL is not set');
});

it('reports all lines as missing if the log was deleted, and nothing wrong before the first run', async () => {
  rmSync(join(here().folder, 'audit.jsonl'));
  const { code, stdout } = await here().allium(['audit', 'verify'], { env });
  expect(code).toBe(1);
  expect(stdout).toMatch(/^BROKEN +ann: 0 lines verified\n/);
  await here().allium(['sessions', 'delete', '--yes', 'ann'], { env });
  const none = await here().allium(['audit', 'verify'], { env });
  expect(none.code).toBe(0);
  expect(none.stderr).toContain('No session in the store has lines in');
});

it('says so when there is no log', async () => {
  const { code, stderr } = await here().allium(['audit', 'verify', 'nowhere.jsonl'], { env });
  expect(code).toBe(2);
  expect(stderr).toContain('nowhere.jsonl cannot be read');
});
