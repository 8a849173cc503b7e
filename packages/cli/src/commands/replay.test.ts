// `allium replay`: a recorded run again.

import { expect, it } from 'vitest';
import { jsonLines, useProject } from '../../test/project.js';

const here = useProject();

it('plays what was recorded, without calling the tools, and keeps nothing', async () => {
  await here().allium(['run', '--record', 'add.jsonl', 'add 19 and 23']);
  // Whoever calls the tool now gets another answer.
  here().write('tools.mjs', here().read('tools.mjs').replace('String(a + b)', '"something else"'));
  const before = await here().allium(['sessions', '--json']);
  const { code, stdout } = await here().allium(['replay', 'add.jsonl']);
  expect(code).toBe(0);
  expect(stdout).toContain('add: 42');
  expect((await here().allium(['sessions', '--json'])).stdout).toBe(before.stdout);
  const events = jsonLines((await here().allium(['replay', '--json', 'add.jsonl'])).stdout);
  expect(events.at(-1)).toMatchObject({ type: 'agent_end', result: { status: 'done' } });
});

it('plays a run that went on from a longer conversation', async () => {
  await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
  await here().allium(['run', '--session', 'ann', '--record', 'more.jsonl', 'add 3 and 4']);
  const { code, stdout } = await here().allium(['replay', 'more.jsonl']);
  expect(stdout).toContain('add: 7');
  expect(code).toBe(0);
});

it.each([
  ['a limit', '[allium.middleware]', '[allium.limits]\ncostUsd = 1\n\n[allium.middleware]'],
  ['a budget in the chain', 'chain = [', 'chain = [\n  { use = "budget", usd = 1 },'],
])('uses the price of the model if %s counts dollars', async (_, place, more) => {
  here().write('allium.toml', here().read('allium.toml').replace(place, more));
  const run = await here().allium(['run', '--record', 'add.jsonl', 'add 19 and 23']);
  expect([run.code, run.stderr]).toEqual([0, expect.stringContaining('$0.00')]);
  const { code, stdout, stderr } = await here().allium(['replay', 'add.jsonl']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('add: 42')]);
  expect(stderr).toContain('$0.00');
});

it('fails when the config asks what was not recorded', async () => {
  await here().allium(['run', '--record', 'add.jsonl', 'add 19 and 23']);
  here().write('allium.toml', here().read('allium.toml').replace('Be brief.', 'Be long.'));
  const { code, stderr } = await here().allium(['replay', 'add.jsonl']);
  expect(code).toBe(1);
  expect(stderr).toContain('Be long.');
});

it('points to --yes if it would have to ask, because nothing can be answered later', async () => {
  await here().allium(['run', '--yes', '--record', 'pay.jsonl', 'pay 5']);
  const { code, stderr } = await here().allium(['replay', 'pay.jsonl']);
  expect(code).toBe(5);
  expect(stderr).toContain('Nobody can answer later: a replay keeps nothing. Pass --yes.');
  expect(stderr).not.toContain('allium approve');
  const { stdout } = await here().allium(['replay', '--yes', 'pay.jsonl']);
  expect(stdout).toContain('pay: paid 5');
});

it('says so when there is no such cassette or run', async () => {
  const missing = await here().allium(['replay', 'none.jsonl']);
  expect(missing.code).toBe(2);
  expect(missing.stderr).toContain('allium run --record none.jsonl');
  await here().allium(['run', '--record', 'add.jsonl', 'add 1 and 2']);
  expect((await here().allium(['replay', 'add.jsonl', '--run', '2'])).stderr).toContain(
    '"add.jsonl" has no run 2 that begins with a model call. It has: 1.',
  );
  for (const text of [
    '',
    'notes',
    'null\n7\n',
    '{"type":"model","run":1,"request":{"model":"m","messages":[1]}}',
  ]) {
    here().write('notes.txt', text);
    const wrong = await here().allium(['replay', 'notes.txt']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('"notes.txt" ')]);
  }
});

it('takes the number of a run, and nothing else in its place', async () => {
  const { code, stderr } = await here().allium(['replay', '--run', 'x', 'tape.jsonl']);
  expect(code).toBe(2);
  expect(stderr).toContain('Expected a whole number from 1, got "x".');
});
