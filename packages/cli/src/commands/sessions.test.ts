// `allium sessions`: what is in the store.

import path from 'node:path';
import { Agent } from 'allium';
import { fileStore } from 'allium/stores/file';
import { scriptedModel } from 'allium/testing';
import { beforeEach, expect, it } from 'vitest';
import { useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';

const here = useProject();

beforeEach(async () => {
  await here().allium(['run', '--session', 'first', 'add 1 and 2']);
  await here().allium(['run', '--session', 'second', 'pay 5']);
});

it('lists sessions, newest first, with their status', async () => {
  const { stdout, code } = await here().allium(['sessions']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^SESSION .*\nsecond .* suspended +pay 5\nfirst .* done +add 1 and 2\n$/);
  const json = await here().allium(['sessions', 'list', '--json', '--limit', '1']);
  expect(JSON.parse(json.stdout)).toMatchObject([
    { sessionId: 'second', status: 'suspended', title: 'pay 5' },
  ]);
  expect((await here().allium(['sessions', 'list', '--limit', 'some'])).code).toBe(2);
});

it('shows the messages of a session; a part of its id is enough', async () => {
  const { stdout } = await here().allium(['sessions', 'show', 'fir']);
  expect(stdout).toContain('user: add 1 and 2\n');
  expect(stdout).toContain('assistant calls add {"a":1,"b":2}\ntool add: 3\n');
  const json = JSON.parse((await here().allium(['sessions', 'show', '--json', 'first'])).stdout);
  expect(json.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
});

it('says so when it does not know the session, or which one is meant', async () => {
  const unknown = await here().allium(['sessions', 'show', 'third']);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain('There is no session "third"');
  await here().allium(['run', '--session', 'fifth', 'add 1 and 2']);
  expect((await here().allium(['sessions', 'show', 'fi'])).stderr).toMatch(
    /Which one\?.*fifth, first|Which one\?.*first, fifth/,
  );
});

it('forks a session, and both go on independently', async () => {
  const { stdout } = await here().allium(['sessions', 'fork', 'first']);
  expect(stdout).toBe('first-fork\n');
  await here().allium(['run', '--session', 'first-fork', 'add 3 and 4']);
  expect((await here().allium(['sessions', 'show', 'first'])).stdout).not.toContain('add 3 and 4');
  expect((await here().allium(['sessions', 'fork', 'first'])).stdout).toBe('first-fork-2\n');
  const json = await here().allium(['sessions', 'fork', '--json', 'first']);
  expect(JSON.parse(json.stdout)).toEqual({ sessionId: 'first-fork-3' });
  expect((await here().allium(['sessions', 'fork', 'first', '--as', 'second'])).code).toBe(2);
  expect((await here().allium(['sessions', 'fork', 'first', '--at', '999'])).stderr).toContain('entries');
  await here().allium(['sessions', 'fork', 'first', '--at', '2', '--as', 'early']);
  expect((await here().allium(['sessions', 'show', 'early'])).stdout).toBe('user: add 1 and 2\n');
});

it('lists waiting messages of a session, and removes them', async () => {
  expect((await here().allium(['sessions', 'queue', 'first'])).stderr).toContain('No message waits');
  const store = fileStore({ dir: path.join(here().folder, '.allium/sessions') });
  const post = new Agent({ store, model: scriptedModel([]) }).session('first');
  await post.steer('be brief');
  await post.followUp('and then?');
  const { stdout } = await here().allium(['sessions', 'queue', 'first']);
  expect(stdout).toMatch(/^MESSAGE .*\n1 +steer +be brief\n2 +follow_up +and then\?\n$/);
  const json = await here().allium(['sessions', 'queue', 'first', '--remove', '1', '--json']);
  expect(JSON.parse(json.stdout)).toMatchObject([{ id: '2', kind: 'follow_up' }]);
  const twice = await here().allium(['sessions', 'queue', 'first', '--remove', '1']);
  expect([twice.code, twice.stderr]).toEqual([2, expect.stringContaining('No message "1" waits')]);
});

it('shows the history as it was rewound', async () => {
  const store = fileStore({ dir: path.join(here().folder, '.allium/sessions') });
  const session = new Agent({ store, model: scriptedModel([]) }).session('first');
  const messages = await session.messages();
  await session.rewind(messages[2]!.id);
  expect((await here().allium(['sessions', 'show', 'first'])).stdout).toMatch(/\ntool add: 3\n$/);
  expect((await here().allium(['trace', 'first'])).stdout).toContain(`rewound to ${messages[2]!.id}`);
});

it('cancels a suspended run, and says so if there is none', async () => {
  const asked = JSON.parse((await here().allium(['approve', '--json'])).stdout);
  expect(asked).toHaveLength(1);
  const cancelled = await here().allium(['sessions', 'cancel', 'second', '--reason', 'Too dear.', '--json']);
  expect(JSON.parse(cancelled.stdout)).toEqual({ sessionId: 'second', ended: true });
  expect(JSON.parse((await here().allium(['approve', '--json'])).stdout)).toEqual([]);
  expect((await here().allium(['sessions'])).stdout).toMatch(/\nsecond .* aborted +pay 5\n/);
  expect((await here().allium(['sessions', 'show', 'second'])).stdout).toContain('Too dear.');
  const late = await here().allium(['approve', 'second', '--all']);
  expect([late.code, late.stderr]).toEqual([2, expect.stringContaining('Nothing in session "second" waits')]);
  expect((await here().allium(['run', '--session', 'second', 'add 1 and 2'])).code).toBe(0);
  const none = await here().allium(['sessions', 'cancel', 'first']);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('no run to end (done)')]);
});

it('deletes only what somebody said yes to', async () => {
  const refused = await here().allium(['sessions', 'delete', 'first']);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('--yes');
  const asked = here().terminal(['sessions', 'delete', 'first']);
  await asked.until('Delete first for good?');
  asked.type(KEYS.enter);
  await asked.until('Nothing was deleted.');
  await asked.exit();
  expect((await here().allium(['sessions', 'delete', '--yes', 'first', 'second'])).code).toBe(0);
  expect((await here().allium(['sessions'])).stderr).toContain('There are no sessions yet');
});

it('lists a damaged session among the others, says what is wrong with it, and deletes it', async () => {
  here().write('.allium/sessions/first.jsonl', 'not a line of a journal\n');
  const { stdout, stderr, code } = await here().allium(['sessions']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^first .* damaged *$/m);
  expect(stdout).toMatch(/^second .* suspended +pay 5$/m);
  expect(stderr).toMatch(/first\.jsonl was changed by something else, or damaged/);
  const json = JSON.parse((await here().allium(['sessions', '--json'])).stdout);
  expect(json).toContainEqual(expect.objectContaining({ sessionId: 'first', status: 'damaged' }));
  expect((await here().allium(['sessions', 'show', 'first'])).stderr).toContain('or damaged');
  expect((await here().allium(['sessions', 'delete', '--yes', 'first'])).stderr).toContain('deleted first');
  expect((await here().allium(['sessions'])).stdout).not.toContain('first');
});

it('takes the last used session that is not damaged if none is named', async () => {
  here().write('.allium/sessions/second.jsonl', 'not a line of a journal\n');
  const { stdout, code } = await here().allium(['sessions', 'show']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('user: add 1 and 2\n')]);
  here().write('.allium/sessions/first.jsonl', 'not a line of a journal\n');
  const none = await here().allium(['sessions', 'show']);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('or none that can be read')]);
});

it('prunes unused sessions, and keeps waiting ones unless asked to', async () => {
  const store = fileStore({ dir: path.join(here().folder, '.allium/sessions') });
  const at = Date.now() - 40 * 86_400_000;
  const stop = { reason: 'final' } as const;
  for (const [id, tenant] of [
    ['ancient', 'a'],
    ['dusty', 'b'],
  ] as const)
    store.append(id, 0, [
      { v: 2, at, type: 'run_start', runId: 'r_1', plan: [], tenant },
      { v: 2, at, type: 'run_end', runId: 'r_1', status: 'done', stop, turns: 1 },
    ]);
  store.append('asking', 0, [{ v: 2, at, type: 'run_start', runId: 'r_1', plan: [] }]);
  const prune = (...args: string[]) => here().allium(['sessions', 'prune', '--older-than', ...args]);
  const dry = await prune('30d', '--dry-run');
  expect(dry.stdout).toMatch(/^(ancient|dusty) .*\n(ancient|dusty) .*\n$/);
  expect(JSON.parse((await prune('60d', '--dry-run', '--json')).stdout)).toEqual({ found: [], deleted: [] });
  expect((await prune('30d')).code).toBe(2);
  for (const unclear of ['soon', '6m', '5min', '1s', '30'])
    expect((await prune(unclear, '--yes')).stderr).toContain('12h, 30d or 8w');
  expect(JSON.parse((await prune('30d', '--yes', '--tenant', 'a', '--json')).stdout)).toEqual({
    found: ['ancient'],
    deleted: ['ancient'],
  });
  expect((await prune('30d', '--yes')).stderr).toContain('Deleted 1 of 1.');
  expect(store.head('asking')).toBe(1);
  expect((await prune('30d', '--yes', '--include-open')).code).toBe(0);
  expect([store.head('asking'), store.head('first') > 0]).toEqual([0, true]);
});

it('resumes a suspended run, and can approve everything', async () => {
  const waiting = await here().allium(['sessions', 'resume', 'second']);
  expect(waiting.code).toBe(5);
  const { code, stdout } = await here().allium(['sessions', 'resume', '--yes', 'second']);
  expect(code).toBe(0);
  expect(stdout).toContain('pay: paid 5');
  const over = await here().allium(['sessions', 'resume', 'second']);
  expect(over.code).toBe(2);
  expect(over.stderr).toContain('has no run to continue (done)');
});

it('lists the commands if it does not know one, and says what to do if nothing can be resumed', async () => {
  const typo = await here().allium(['sessions', 'resmue']);
  expect(typo.code).toBe(2);
  expect(typo.stderr).toContain(
    'There is no "allium sessions resmue". There are: list, show, queue, allowances, fork, delete, prune, resume, cancel.',
  );
  await here().allium(['run', '--session', 'over', 'add 1 and 2']);
  const over = await here().allium(['sessions', 'resume', 'over']);
  expect(over.code).toBe(2);
  expect(over.stderr).toContain(
    'has no run to continue (done). Send a new message: allium run --session over',
  );
});

it('takes an empty name for a variable that is not set, and does nothing', async () => {
  await here().allium(['sessions', 'delete', 'second', '--yes']);
  // The beginning of every id: it would mean the only session.
  for (const [args, what] of [
    [['sessions', 'delete', '', '--yes'], '<id> is empty. Is a variable not set?'],
    [['sessions', 'delete', 'first', '', '--yes'], '<id> is empty'],
    [['sessions', 'fork', 'first', '--as', ''], '--as <id> is empty'],
    [['sessions', 'show', ''], '<id> is empty'],
    [['trace', ''], '<session> is empty'],
    [['trace', '--run', ''], '--run <id> is empty'],
    [['approve', '', '--all'], '<session> is empty'],
    [['chat', '--session', ''], '-s, --session <id> is empty'],
    [['run', '--record', '', 'hi'], '--record <file> is empty'],
    [['--config', '', 'run', 'hi'], '-c, --config <file> is empty'],
  ] as const) {
    const { code, stderr } = await here().allium([...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(what)]);
  }
  const { stdout } = await here().allium(['sessions', 'list', '--json']);
  expect(JSON.parse(stdout).map(({ sessionId }: { sessionId: string }) => sessionId)).toEqual(['first']);
});

it('names the option whose value makes no sense', async () => {
  for (const [args, what] of [
    [['list', '--limit', 'x'], '--limit: Expected a whole number from 1, got "x".'],
    [['fork', 'first', '--at', '0'], '--at: Expected a whole number from 1, got "0".'],
    [['prune', '--older-than', '3'], '--older-than: Expected a time such as 12h, 30d or 8w, got "3".'],
  ] as const)
    expect((await here().allium(['sessions', ...args])).stderr).toContain(what);
});
