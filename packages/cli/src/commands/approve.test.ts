// `allium approve`: answers for runs that wait.

import { beforeEach, describe, expect, it } from 'vitest';
import { jsonLines, useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';

const here = useProject();

beforeEach(async () => {
  await here().allium(['run', '--session', 'ann', 'pay 5']);
});

it('lists what waits for an answer', async () => {
  const { stdout } = await here().allium(['approve']);
  expect(stdout).toMatch(
    /^Run "pay"\?\n {2}pay \{"amount":5\}\n {2}request \S+, answer with: allium approve ann\n$/,
  );
  const [open] = JSON.parse((await here().allium(['approve', '--json'])).stdout);
  expect(open).toMatchObject({ sessionId: 'ann', request: { toolName: 'pay', arguments: '{"amount":5}' } });
});

it('lists it beside a damaged session, and reports the damage', async () => {
  here().write('.allium/sessions/ben.jsonl', 'not a line of a journal\n');
  const { code, stdout, stderr } = await here().allium(['approve']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('answer with: allium approve ann')]);
  expect(stderr).toMatch(/ben\.jsonl was changed by something else, or damaged/);
});

it('names the config in the commands to copy if --config was given', async () => {
  const { stdout } = await here().allium(['--config', './allium.toml', 'approve']);
  expect(stdout).toContain('answer with: allium --config ./allium.toml approve ann');
});

/** Options that answer, and what the model then says. */
const ANSWERS: [args: string[], answer: string][] = [
  [['--all'], 'pay: paid 5'],
  [['--edit', '{"amount":1}'], 'pay: paid 1'],
  [['--reject', 'too dear'], 'pay failed: too dear'],
  [['--respond', 'it is paid already'], 'pay: it is paid already'],
];

it.each(ANSWERS)('answers with %s and goes on', async (args, answer) => {
  const { code, stdout } = await here().allium(['approve', 'ann', ...args]);
  expect(stdout).toContain(answer);
  expect(code).toBe(0);
  expect((await here().allium(['approve'])).stderr).toContain('Nothing waits for an answer.');
});

describe('without a session', () => {
  it.each(ANSWERS)(
    'answers the only one that waits with %s, whichever was used last',
    async (args, answer) => {
      await here().allium(['run', '--session', 'bob', 'add 1 and 2']);
      const { code, stdout, stderr } = await here().allium(['approve', ...args]);
      expect([code, stdout]).toEqual([0, expect.stringContaining(answer)]);
      expect(stderr).toMatch(/^session ann\n/);
      expect((await here().allium(['approve'])).stderr).toContain('Nothing waits for an answer.');
    },
  );

  it('asks about it in a terminal with --no-resume, and says so without a terminal', async () => {
    const nobody = await here().allium(['approve', '--no-resume']);
    expect([nobody.code, nobody.stderr]).toEqual([2, expect.stringContaining('no terminal to ask in')]);
    const approve = here().terminal(['approve', '--no-resume']);
    await approve.until('Run "pay"?');
    approve.type(KEYS.enter);
    await approve.until('Answered. Continue with: allium sessions resume ann');
    expect(await approve.exit()).toBe(0);
  });

  it.each([
    [['--all']],
    [['--edit', '{"amount":1}']],
    [['--reject', 'no']],
    [['--respond', 'hi']],
    [['--no-resume']],
  ])('answers nothing with %s where several wait, and lists them', async (args) => {
    await here().allium(['run', '--session', 'bob', 'pay 6']);
    const { code, stdout, stderr } = await here().allium(['approve', ...args]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('error: 2 sessions wait for an answer. Nothing was answered: name the one');
    expect(stderr).toMatch(/pay \{"amount":6\}\n {2}request \S+, answer with: allium approve bob\n/);
    expect(stderr).toMatch(/pay \{"amount":5\}\n {2}request \S+, answer with: allium approve ann\n/);
    expect(JSON.parse((await here().allium(['approve', '--json'])).stdout)).toHaveLength(2);
  });

  it('finds the session of the question that is named', async () => {
    await here().allium(['run', '--session', 'bob', 'pay 6']);
    const open = JSON.parse((await here().allium(['approve', '--json'])).stdout);
    const { request } = open.find((one: { sessionId: string }) => one.sessionId === 'ann');
    const wrong = await here().allium(['approve', '--all', '--request', 'r1']);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('has an open question "r1". Open:'),
    ]);
    expect(wrong.stderr).toContain(`request ${request.id}, answer with: allium approve ann`);
    const right = await here().allium(['approve', '--all', '--request', request.id]);
    expect([right.code, right.stdout]).toEqual([0, expect.stringContaining('pay: paid 5')]);
    expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":6}');
  });

  it('does not take a session id as the reason of a rejection', async () => {
    await here().allium(['run', '--session', 'bob', 'add 1 and 2']);
    const { code, stderr } = await here().allium(['approve', '--reject', 'bob']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('Write: allium approve bob --reject\n')]);
    expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":5}');
  });

  it('answers what a sub-agent asks in the session of its caller, and lists it there alone', async () => {
    await here().allium(['approve', '--all']);
    const config = here()
      .read('allium.toml')
      .replace(/tools = .*/, '');
    here().write('allium.toml', config.replace(/chain = .*/s, 'chain = ["./team.mjs"]\n'));
    here().write('team.mjs', TEAM);
    expect((await here().allium(['run', '--session', 'bob', 'delegate "pay 7"'])).code).toBe(5);
    const [below] = JSON.parse((await here().allium(['sessions', '--json'])).stdout).filter(
      ({ sessionId }: { sessionId: string }) => sessionId.startsWith('bob/'),
    );
    expect(below.status).toBe('suspended');
    const open = JSON.parse((await here().allium(['approve', '--json'])).stdout);
    expect(open).toMatchObject([{ sessionId: 'bob', request: { toolName: 'pay' } }]);
    expect((await here().allium(['approve', '--all', '--no-resume'])).code).toBe(0);
    // The sub-agent has not heard of the answer yet, but its question is no longer open.
    expect((await here().allium(['approve', '--all'])).code).toBe(2);
    expect((await here().allium(['sessions', 'resume', 'bob'])).stdout).toContain('paid 7');
  });

  it('says so if nothing waits', async () => {
    await here().allium(['approve', 'ann', '--all']);
    const { code, stderr } = await here().allium(['approve', '--all']);
    expect([code, stderr]).toEqual([2, 'error: Nothing waits for an answer.\n']);
    expect((await here().allium(['approve'])).code).toBe(0);
  });
});

it('answers without resuming the run with --no-resume', async () => {
  const { stderr, stdout } = await here().allium(['approve', 'ann', '--all', '--no-resume']);
  expect(stdout).toBe('');
  expect(stderr).toContain('allium sessions resume ann');
  expect((await here().allium(['approve'])).stderr).toContain('Nothing waits for an answer.');
  expect((await here().allium(['sessions', 'resume', 'ann'])).stdout).toContain('pay: paid 5');
});

it('asks in a terminal', async () => {
  const approve = here().terminal(['approve', 'ann']);
  await approve.until('Run "pay"?');
  approve.type(KEYS.enter);
  await approve.until('pay: paid 5');
  expect(await approve.exit()).toBe(0);
});

it('stays suspended, and says so with its exit code, when the person leaves', async () => {
  const approve = here().terminal(['approve', 'ann']);
  await approve.until('Run "pay"?');
  approve.type(KEYS.ctrlC);
  await approve.until('The run stays suspended.');
  expect(await approve.exit()).toBe(5);
  expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":5}');
});

it('prints the events of the run with --json', async () => {
  const { stdout } = await here().allium(['approve', 'ann', '--all', '--json']);
  expect(jsonLines(stdout)[0]).toMatchObject({ type: 'agent_start', resumed: true });
});

it.each([
  [['approve', 'ann'], 'no terminal to ask in'],
  [['approve', 'ann', '--all', '--reject'], 'Pass only one of'],
  [['approve', 'ann', '--edit', 'nonsense'], '--edit takes JSON'],
  [['approve', 'ann', '--all', '--request', 'r1'], 'no open question "r1"'],
  [['approve', 'bob', '--all'], 'There is no session "bob"'],
])('refuses %s', async (args, message) => {
  const { code, stderr } = await here().allium(args);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

it('says so when nothing of the session waits', async () => {
  await here().allium(['run', '--session', 'bob', 'add 1 and 2']);
  const { stderr } = await here().allium(['approve', 'bob', '--all']);
  expect(stderr).toContain('Nothing in session "bob" waits for an answer.');
  expect(stderr, 'the run has ended').not.toContain('To continue it');
});

it.each([
  [['--all'], '→ pay {"amount":5}'],
  [['--edit', '{"amount":1}'], '→ pay {"amount":1} (edited)'],
  [['--reject', 'too dear'], '⊘ pay is not run: rejected'],
  [['--respond', 'it is paid already'], '↩ pay is not run: answered in its place'],
])('says after %s what it really does', async (args, line) => {
  const { stderr } = await here().allium(['approve', 'ann', ...args]);
  expect(stderr.split('\n')).toContain(`  ${line}`);
  expect(stderr.match(/^ {2}[→⊘↩] /gm)).toHaveLength(1);
});

it('says so too when the answer was left for later', async () => {
  await here().allium(['approve', 'ann', '--reject', '--no-resume']);
  expect((await here().allium(['sessions', 'resume', 'ann'])).stderr).toContain('⊘ pay is not run: rejected');
});

it('refuses arguments that do not fit the tool, and leaves the question open', async () => {
  here().write('tools.mjs', here().read('tools.mjs').replace(`validate: (value) => ({ value })`, NUMBERS));
  const wrong = await here().allium(['approve', 'ann', '--edit', '{"amount":"much"}']);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain(
    'These arguments do not fit "pay": amount: Expected a number. The question stays open.',
  );
  expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":5}');
  expect((await here().allium(['approve', 'ann', '--edit', '{"amount":2}'])).stdout).toContain('paid 2');
});

it('ends an error with one full stop, even if the schema writes its own', async () => {
  const issues = [{ message: 'Expected { amount }.' }, { message: 'Not a number.' }];
  const sentences = `validate: () => (${JSON.stringify({ issues })})`;
  here().write('tools.mjs', here().read('tools.mjs').replace(`validate: (value) => ({ value })`, sentences));
  const { stderr } = await here().allium(['approve', 'ann', '--edit', '{"amount":"much"}']);
  expect(stderr).toContain('fit "pay": Expected { amount }; Not a number. The question stays open.\n');
});

it('shows and answers nothing of another tenant', async () => {
  here().write('allium.toml', here().read('allium.toml').replace('[allium]', '[allium]\ntenant = "acme"'));
  expect((await here().allium(['approve'])).stderr).toContain('Nothing waits for an answer.');
  expect((await here().allium(['approve', '--all'])).stderr).toContain('Nothing waits for an answer.');
  const { code, stderr } = await here().allium(['approve', 'ann', '--all']);
  expect(code).not.toBe(0);
  expect(stderr).toContain('Session "ann" belongs to tenant undefined, not "acme".');
  await here().allium(['run', '--session', 'bob', 'pay 6']);
  expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":6}');
  expect((await here().allium(['approve', 'bob', '--all'])).stdout).toContain('pay: paid 6');
});

/** An agent that may pay after a question, as a tool of the one that is asked. */
const TEAM = `
import { Agent } from 'allium';
import { approval } from 'allium/middleware/approval';
import { offlineModel } from 'allium/models/offline';
import { pay } from './tools.mjs';

const payer = new Agent({ model: offlineModel(), tools: [pay], middleware: [approval({ policy: { pay: 'ask' } })] });
export default { name: 'team', tools: [payer.asTool({ name: 'delegate', description: 'Pays.' })] };
`;

/** Every argument is a number. */
const NUMBERS = `validate: (value) => {
  const wrong = Object.keys(value).find((key) => typeof value[key] !== 'number');
  return wrong ? { issues: [{ message: 'Expected a number', path: [wrong] }] } : { value };
}`;

it('warns when a new message cancels an open question', async () => {
  const { stderr, code } = await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
  expect(code).toBe(0);
  expect(stderr).toMatch(
    /^warning: session "ann" waited for an answer, which this run gives up: Run "pay"\?\n/,
  );
  expect((await here().allium(['run', '--session', 'ann', 'add 1 and 2'])).stderr).not.toContain('warning');
});

describe('a run that waits at a prompt in another terminal', () => {
  it.each([
    [['--reject', 'too dear', '--no-resume'], 'pay failed: too dear'],
    [['--all'], 'pay: paid 7'],
  ])('is answered with %s: the prompt closes, and the run goes on there', async (args, answer) => {
    const run = here().terminal(['run', '--session', 'bob', 'pay 7']);
    await run.until('Run "pay"?');
    const { code, stderr } = await here().allium(['approve', 'bob', ...args]);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('Answered. The run continues where it waits.'),
    ]);
    await run.until('answered elsewhere');
    await run.until(answer);
    expect(await run.exit()).toBe(0);
    const late = await here().allium(['approve', 'bob', '--all']);
    expect(late.code).toBe(2);
  });

  it('closes its prompt in a chat, too', async () => {
    const chat = here().terminal(['chat', '--session', 'bob']);
    await chat.until('›');
    chat.type(`pay 7${KEYS.enter}`);
    await chat.until('[a]lways');
    await here().allium(['approve', 'bob', '--reject', 'too dear']);
    await chat.until('answered elsewhere');
    await chat.until('pay failed: too dear');
    chat.type(KEYS.ctrlD);
    expect(await chat.exit()).toBe(0);
  });
});

describe('for the rest of the session', () => {
  const payAgain = () => here().allium(['run', '--session', 'ann', 'pay 6']);

  it('approves with --remember', async () => {
    const both = await here().allium(['approve', 'ann', '--remember', '--reject']);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('Pass only one of')]);
    expect((await here().allium(['approve', 'ann', '--remember'])).stdout).toContain('pay: paid 5');
    expect((await payAgain()).stdout).toContain('pay: paid 6');
  });

  it('approves only the same arguments with --remember-arguments', async () => {
    const both = await here().allium(['approve', 'ann', '--remember', '--remember-arguments']);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('Pass only one of')]);
    const { stdout } = await here().allium(['approve', 'ann', '--remember-arguments']);
    expect(stdout).toContain('pay: paid 5');
    expect((await here().allium(['run', '--session', 'ann', 'pay 5'])).stdout).toContain('pay: paid 5');
    expect((await payAgain()).code).toBe(5);
  });

  it('lists what is allowed, and takes it back', async () => {
    const allowances = (...more: string[]) => here().allium(['sessions', 'allowances', 'ann', ...more]);
    expect((await allowances()).stderr).toContain('Nothing is remembered as approved in session ann');
    await here().allium(['approve', 'ann', '--remember-arguments']);
    expect((await allowances()).stdout).toMatch(/^ALLOWANCE .*\n\S+ +pay +\{"amount":5\} +\S+.*\n$/);
    const [{ id }] = JSON.parse((await allowances('--json')).stdout);
    const unknown = await allowances('--revoke', 'nothing');
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('has no allowance')]);
    expect(JSON.parse((await allowances('--revoke', id, '--json')).stdout)).toEqual([]);
    expect((await allowances('--revoke', id)).code).toBe(2);
    expect((await here().allium(['run', '--session', 'ann', 'pay 5'])).code).toBe(5);
  });

  it('a fork is not allowed what was revoked before it, even if no run has taken that in', async () => {
    const allowances = async (id: string, ...more: string[]) =>
      JSON.parse((await here().allium(['sessions', 'allowances', id, '--json', ...more])).stdout);
    await here().allium(['approve', 'ann', '--remember']);
    const [{ id }] = await allowances('ann');
    await here().allium(['sessions', 'fork', 'ann', '--as', 'before']);
    expect(await allowances('before')).toHaveLength(1);
    expect(await allowances('ann', '--revoke', id)).toEqual([]);
    await here().allium(['sessions', 'fork', 'ann', '--as', 'after']);
    expect(await allowances('after')).toEqual([]);
  });

  it('approves the same arguments in a terminal', async () => {
    const approve = here().terminal(['approve', 'ann']);
    await approve.until('Always approve this');
    approve.type(KEYS.down.repeat(4) + KEYS.enter);
    await approve.until('pay: paid 5');
    expect(await approve.exit()).toBe(0);
    expect((await payAgain()).code).toBe(5);
  });

  it('approves in a terminal', async () => {
    const approve = here().terminal(['approve', 'ann']);
    await approve.until('Approve for this session');
    approve.type(KEYS.down.repeat(3) + KEYS.enter);
    await approve.until('pay: paid 5');
    expect(await approve.exit()).toBe(0);
    expect((await payAgain()).stdout).toContain('pay: paid 6');
  });
});
