// `allium trace`: the journal as a tree.

import { expect, it } from 'vitest';
import { useProject } from '../../test/project.js';

const here = useProject();

it('shows turns, calls, questions, answers and the end', async () => {
  await here().allium(['run', '--session', 'ann', '--yes', 'add 1 and 2, then pay 5']);
  const { stdout, code } = await here().allium(['trace', 'ann']);
  expect(code).toBe(0);
  const shape = stdout
    .replace(/\d+ ms/g, 'T')
    .replace(/\d+ → \d+ tokens/g, 'N tokens')
    .replace(/run r_\w+.*/, 'run');
  expect(shape).toBe(`session ann
└─ run
   ├─ user: add 1 and 2, then pay 5
   ├─ turn 1 · allium/offline · N tokens · T
   │  ├─ says: I call add.
   │  └─ add {"a":1,"b":2}
   │     └─ ✓ 3
   ├─ turn 2 · allium/offline · N tokens · T
   │  ├─ says: I call pay.
   │  └─ pay {"amount":5}
   │     ├─ asked: Run "pay"? → approve after T
   │     └─ ✓ paid 5 · T
   ├─ turn 3 · allium/offline · N tokens · T
   │  └─ says: add: 3 pay: paid 5 (Written by fixed rules: this is the offline model of Allium, not a language mod…
   └─ done: final
`);
});

it('takes the session that was used last, and one run of it', async () => {
  await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
  await here().allium(['run', '--session', 'ann', 'crash']);
  const runs = JSON.parse((await here().allium(['trace', '--json'])).stdout).children;
  expect(runs).toHaveLength(2);
  const one = await here().allium(['trace', '--run', runs[0].id]);
  expect(one.stdout).toContain('add 1 and 2');
  expect(one.stdout).not.toContain('crash');
  const last = await here().allium(['trace', '--last']);
  expect(last.stdout).toContain('✗ "crash" failed: it broke');
  expect(last.stdout).not.toContain('add 1 and 2');
  expect((await here().allium(['trace', '--run', 'r_none'])).code).toBe(2);
});

it('says so when there is nothing to show', async () => {
  const { code, stderr } = await here().allium(['trace']);
  expect(code).toBe(2);
  expect(stderr).toContain('There are no sessions yet');
});

it('has no secret of the config in it, nor have sessions', async () => {
  const config = here().read('allium.toml');
  here().write(
    'allium.toml',
    config.replace(
      'chain = [',
      'chain = [\n  { use = "./leaky.mjs", token = "@{TOKEN}" },'.replace('@', '$'),
    ),
  );
  here().write(
    'leaky.mjs',
    `export default ({ token }) => ({
      name: 'leaky',
      beforeModel() { throw new Error('401 for key ' + (token.reveal?.() ?? token)); },
    });`,
  );
  const env = { TOKEN: 'hunter2-very-secret' };
  const run = await here().allium(['run', '--session', 'ann', 'say hunter2-very-secret'], { env });
  expect(run.code).toBe(1);
  for (const args of [['trace'], ['trace', '--json'], ['sessions', 'show', 'ann'], ['sessions', '--json']]) {
    const { stdout, stderr, code } = await here().allium(args, { env });
    expect(code).toBe(0);
    expect(stdout).toContain('***');
    expect(stdout + stderr).not.toContain('hunter2');
  }
});

it('shows who acted in a run that was traced, and tells the story of a message', async () => {
  const config = here().read('allium.toml');
  here().write(
    'allium.toml',
    config
      .replace('[allium]', '[allium]\ntrace = "changes"')
      .replace('chain = [', 'chain = [\n  { use = "./polite.mjs" },'),
  );
  here().write(
    'polite.mjs',
    `export default () => ({
      name: 'polite',
      transformSystemPrompt: (prompt) => prompt + ' Say please.',
    });`,
  );
  await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
  const { stdout } = await here().allium(['trace', 'ann']);
  expect(stdout).toContain('polite (transformSystemPrompt) rewrote the system prompt of the request');
  const story = await here().allium(['trace', 'ann', '--message', '2']);
  expect(story.code).toBe(0);
  expect(story.stdout).toContain('is the answer of turn 1');
  expect(story.stdout).toContain('"polite" (transformSystemPrompt');
  expect(story.stdout).toContain('Say please.');
  expect((await here().allium(['trace', 'ann', '--message', '99'])).code).toBe(2);
});

it('says that a run was not traced', async () => {
  await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
  const { code, stderr } = await here().allium(['trace', 'ann', '--message', '2']);
  expect(code).toBe(2);
  expect(stderr).toContain('was not traced');
});
