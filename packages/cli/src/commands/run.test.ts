// `allium run`: answers, events, stdin, and exit codes by outcome.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { jsonLines, useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';

const here = useProject();

describe('allium run', () => {
  it('writes the answer to stdout, and what happened on the way to stderr', async () => {
    const { stdout, stderr, code } = await here().allium(['run', 'add', '19', 'and', '23']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^add: 42\n/);
    expect(stderr).toMatch(
      /→ add \{"a":19,"b":23\}\n {2}✓ add \(\d+ ms\)\ndone · 2 turns · \d+ tokens · \$0\.00/,
    );
    expect(stdout + stderr).not.toContain('\u001b');
  });

  it('says nothing but the answer with --quiet', async () => {
    const { stdout, stderr } = await here().allium(['run', '-q', 'add 1 and 1']);
    expect(stdout).toMatch(/^add: 2\n/);
    expect(stderr).toBe('');
  });

  it('reads the message from stdin, alone or in place of a dash', async () => {
    expect((await here().allium(['run'], { input: 'add 2 and 3\n' })).stdout).toContain('add: 5');
    const both = await here().allium(['run', 'Please add', '-'], { input: '4 and 5\n' });
    expect(both.stdout).toContain('add: 9');
  });

  it('does not wait for stdin if the message is given', async () => {
    expect((await here().allium(['run', 'add 1 and 2'], { input: '7 and 8' })).stdout).toContain('add: 3');
  });

  it('prints events with --json, one per line, and nothing else on stdout', async () => {
    const { stdout, code } = await here().allium(['run', '--json', 'add 1 and 2']);
    expect(code).toBe(0);
    const types = jsonLines(stdout).map(({ type }) => type);
    expect(types[0]).toBe('agent_start');
    expect(types).toContain('tool_execution_end');
    expect(types.at(-1)).toBe('agent_end');
  });

  it('goes on with a session', async () => {
    await here().allium(['run', '--session', 'ann', 'add 1 and 2']);
    await here().allium(['run', '--session', 'ann', 'add 3 and 4']);
    const { stdout } = await here().allium(['sessions', 'show', 'ann']);
    expect(stdout.match(/^user: /gm)).toHaveLength(2);
  });

  it('takes colours off with NO_COLOR and --no-color, and puts them on with FORCE_COLOR', async () => {
    const coloured = await here().allium(['run', 'add 1 and 2'], { env: { FORCE_COLOR: '1' } });
    expect(coloured.stderr).toContain('\u001b[');
    for (const [args, env] of [
      [['run', 'add 1 and 2'], { FORCE_COLOR: '1', NO_COLOR: '1' }],
      [['--no-color', 'run', 'add 1 and 2'], { FORCE_COLOR: '1' }],
      [['run', 'add 1 and 2', '--no-color'], { FORCE_COLOR: '1' }],
    ] as const)
      expect((await here().allium(args, { env })).stderr).not.toContain('\u001b');
  });
});

describe('what tools and middleware write to the console', () => {
  const withLogs = () => {
    const config = here().read('allium.toml');
    here().write(
      'allium.toml',
      config
        .replace('"./tools.mjs"', '"./tools.mjs", "./talker.mjs"')
        .replace('chain = [', 'chain = [\n  "stopwatch", "console-logger",'),
    );
    here().write(
      'talker.mjs',
      `import { tool } from 'allium';
      const jsonSchema = { input: () => ({ type: 'object', properties: {} }) };
      export const chatter = tool({
        name: 'chatter',
        description: 'Talks.',
        input: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }), jsonSchema } },
        execute() { console.log('from the tool'); return 'quiet now'; },
      });`,
    );
  };

  it('is not on stdout, neither among events nor beside the answer', async () => {
    withLogs();
    const json = await here().allium(['run', '--json', 'chatter']);
    expect(jsonLines(json.stdout).at(-1)).toMatchObject({ type: 'agent_end' });
    const quiet = await here().allium(['run', '-q', 'chatter']);
    expect(quiet.stdout).toMatch(/^chatter: quiet now\n\n\(Written by [^\n]*\)\n$/);
    for (const { stderr } of [json, quiet])
      for (const line of ['from the tool', 'turn 1: chatter', 'run: done, 2 turns'])
        expect(stderr).toContain(line);
  });

  it('has lines of its own on a terminal', async () => {
    withLogs();
    const run = here().terminal(['run', 'chatter']);
    expect(await run.exit()).toBe(0);
    const lines = run.screen().split('\n');
    expect(lines).toContain('I call chatter.');
    expect(lines).toContain('  from the tool');
    expect(lines).toContain('chatter: quiet now');
    for (const line of lines)
      if (/turn \d: |run: done/.test(line)) expect(line).toMatch(/^ {2}(\[r_\w+\] )?(turn \d|run): /);
    expect(lines.filter((line) => line.includes('turn 1: model'))).toHaveLength(1);
  });

  it('leaves the prompt of a chat alone', async () => {
    withLogs();
    const chat = here().terminal(['chat', '--session', 'ann']);
    await chat.until('Session ann');
    chat.type(`chatter${KEYS.enter}`);
    await chat.until(/done · 2 turns/);
    chat.type('still here');
    await chat.until(/\n› still here$/);
    const lines = chat.screen().split('\n');
    expect(lines).toContain('  from the tool');
    expect(lines.filter((line) => line.includes('turn 1: model'))).toHaveLength(1);
    expect(lines).toContain('chatter: quiet now');
  });
});

describe('the exit code of allium run', () => {
  it('is 0 if a tool fails and the run goes on', async () => {
    const { code, stderr } = await here().allium(['run', 'crash']);
    expect(code).toBe(0);
    expect(stderr).toContain('✗ crash: "crash" failed: it broke');
  });

  it('is 1 when the run fails', async () => {
    here().write(
      'allium.toml',
      here().read('allium.toml').replace('chain = [', 'chain = [\n  "./broken.mjs",'),
    );
    here().write(
      'broken.mjs',
      `export default () => ({ name: 'broken', beforeModel() { throw new Error('no luck'); } });`,
    );
    const { code, stderr, stdout } = await here().allium(['run', 'hi']);
    expect(code).toBe(1);
    expect(stderr).toContain('no luck');
    expect(stdout).toBe('');
    const json = await here().allium(['run', '--json', 'hi']);
    expect(json.code).toBe(1);
    expect(jsonLines(json.stdout).at(-1)).toMatchObject({ type: 'error', code: 'MIDDLEWARE_ERROR' });
  });

  it.each([
    [['run'], '', 'The prompt is empty'],
    [['run', '--nonsense', 'hi'], '', "unknown option '--nonsense'"],
    [['rum', 'hi'], '', 'Did you mean run?'],
  ])('is 2 for a command line that makes no sense: %s', async (args, input, message) => {
    const { code, stderr } = await here().allium(args, { input });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });

  it('is 3 when there is no config, or it is wrong', async () => {
    const missing = await here().allium(['run', '--config', 'nowhere.toml', 'hi']);
    expect(missing.code).toBe(3);
    expect(missing.stderr).toContain('nowhere.toml');
    here().write('allium.toml', '[allium]\nmodel = "offline"\n[allium.middleware]\nchain = ["retri"]\n');
    const wrong = await here().allium(['run', '--json', 'hi']);
    expect(wrong.code).toBe(3);
    expect(wrong.stderr).toContain('retri');
    expect(jsonLines(wrong.stdout)).toMatchObject([{ type: 'error', code: 'UNKNOWN_NAME' }]);
  });

  it('is 4 when a limit stops the run', async () => {
    here().write('allium.toml', `${here().read('allium.toml')}\n[allium.limits]\nturns = 1\n`);
    const { code, stderr } = await here().allium(['run', 'add 1 and 2']);
    expect(code).toBe(4);
    expect(stderr).toMatch(/^stopped \(.*turn/m);
  });

  it('is 5 when the run waits for an answer, and says how to give it', async () => {
    const { code, stderr } = await here().allium(['run', '--session', 'ann', 'pay 5']);
    expect(code).toBe(5);
    expect(stderr).toContain('pay {"amount":5}');
    expect(stderr).toContain('Answer with: allium approve ann');
  });

  it('is followed by a command with proper shell quoting', async () => {
    const { stderr } = await here().allium(['run', '--session', "ann's $5", 'pay 5']);
    expect(stderr).toContain(`Answer with: allium approve 'ann'\\''s $5'`);
  });

  it('says so when nothing is kept that could be answered later', async () => {
    here().write(
      'allium.toml',
      here()
        .read('allium.toml')
        .replace(/store = .*/, 'store = "memory"'),
    );
    const { code, stderr } = await here().allium(['run', 'pay 5']);
    expect(code).toBe(5);
    expect(stderr).toContain('keeps nothing');
    expect(stderr).not.toContain('allium approve');
  });

  it('shows where an error came from with ALLIUM_DEBUG', async () => {
    const args = ['run', '--config', 'nowhere.toml', 'hi'];
    expect((await here().allium(args)).stderr).not.toMatch(/^ {4}at /m);
    expect((await here().allium(args, { env: { ALLIUM_DEBUG: '1' } })).stderr).toMatch(/^ {4}at /m);
  });

  it('is 0 when --yes answers, which the events show', async () => {
    const { code, stderr } = await here().allium(['run', '--yes', 'pay 5']);
    expect(code).toBe(0);
    expect(stderr).toContain('Run "pay"? approved (--yes)');
    const { stdout } = await here().allium(['run', '--yes', '--json', 'pay 5']);
    const lines = jsonLines(stdout);
    expect(lines.find(({ type }) => type === 'request')).toMatchObject({ request: { toolName: 'pay' } });
    expect(lines.find(({ type }) => type === 'answer')).toMatchObject({ decision: { type: 'approve' } });
  });
});

describe('allium run in a terminal', () => {
  it('streams, shows what it waits for, and exits with 130 after Ctrl-C', async () => {
    const run = here().terminal(['run', 'open the gate']);
    await run.until('→ gate');
    await run.until(/⠙ gate \d+ ms/);
    run.type(KEYS.ctrlC);
    expect(await run.exit()).toBe(130);
    expect(run.screen()).toMatch(/aborted.*· 1 turn/);
    expect(run.screen()).not.toContain('⠙');
  });

  it('asks about calls that need approval', async () => {
    const run = here().terminal(['run', 'pay 5']);
    await run.until('Run "pay"?');
    run.type(`${KEYS.down}${KEYS.enter}`);
    await run.until('Why not?');
    run.type(`too dear${KEYS.enter}`);
    await run.until('pay failed: too dear');
    expect(await run.exit()).toBe(0);
  });

  it('suspends the run when the person wants to decide later', async () => {
    const run = here().terminal(['run', 'pay 5']);
    await run.until('Run "pay"?');
    run.type(KEYS.ctrlC);
    expect(await run.exit()).toBe(5);
    expect(run.screen()).toContain('Answer with: allium approve');
  });

  it('suspends the run too when the person leaves while saying why not', async () => {
    const run = here().terminal(['run', '--session', 'ann', 'pay 5']);
    await run.until('Run "pay"?');
    run.type(`${KEYS.down}${KEYS.enter}`);
    await run.until('Why not?');
    run.type(`too${KEYS.ctrlC}`);
    expect(await run.exit()).toBe(5);
    expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":5}');
  });

  it('takes a rejection without a reason', async () => {
    const run = here().terminal(['run', 'pay 5']);
    await run.until('Run "pay"?');
    run.type(`${KEYS.down}${KEYS.enter}`);
    await run.until('Why not?');
    run.type(KEYS.enter);
    expect(await run.exit()).toBe(0);
    expect(run.screen()).toContain('pay failed:');
  });

  it('asks for something when there is nothing to ask', async () => {
    const run = here().terminal(['run']);
    await run.until('Ask something');
    expect(await run.exit()).toBe(2);
  });
});

describe('what allium run says of the command line and the config', () => {
  it('blames --model for a model that is not to be found, not the file', async () => {
    const { code, stderr } = await here().allium(['run', '-m', 'nope', 'hi']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: --model nope: No model is called "nope"\./);
    expect(stderr).not.toContain('allium.toml');
  });

  it('blames --model for a model that lacks its key, too', async () => {
    const { code, stderr } = await here().allium(['run', '-m', 'openai/x', 'hi'], {
      env: { OPENAI_API_KEY: '' },
    });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: --model openai\/x: No API key .*OPENAI_API_KEY/);
    expect(stderr).not.toContain('allium.toml');
  });

  it('still blames the file for what the file says', async () => {
    here().write('allium.toml', here().read('allium.toml').replace('"offline"', '"nope"'));
    const { code, stderr } = await here().allium(['run', 'hi']);
    expect(code).toBe(3);
    expect(stderr).toContain('allium.toml:2');
  });

  it('points to allium init if there is no config', async () => {
    rmSync(join(here().folder, 'allium.toml'));
    const { code, stderr } = await here().allium(['run', 'hi']);
    expect(code).toBe(3);
    expect(stderr).toContain('Write one with: allium init');
  });

  it('refuses a session without a name', async () => {
    expect(await here().allium(['run', '--session', '', 'hi'])).toMatchObject({ code: 2 });
  });

  it('prints errors of the command line as JSON too, with --json', async () => {
    const { code, stdout } = await here().allium(['run', '--json', '--foo', 'hi']);
    expect(code).toBe(2);
    expect(jsonLines(stdout)).toEqual([
      { type: 'error', code: 'commander.unknownOption', message: "error: unknown option '--foo'" },
    ]);
    const empty = await here().allium(['run', '--json']);
    expect(jsonLines(empty.stdout)).toEqual([
      { type: 'error', code: 'USAGE', message: 'The prompt is empty. Write what you want to ask.' },
    ]);
  });

  it('shows the stack of a failed run with ALLIUM_DEBUG, and where it came from', async () => {
    const config = here().read('allium.toml');
    here().write('allium.toml', config.replace('chain = [', 'chain = [\n  "./broken.mjs",'));
    here().write(
      'broken.mjs',
      `export default () => ({ name: 'broken', beforeModel() { throw new Error('no luck'); } });`,
    );
    const { stderr } = await here().allium(['run', 'hi'], { env: { ALLIUM_DEBUG: '1' } });
    expect(stderr).toMatch(/Error: no luck\n {4}at .*broken\.mjs/);
    expect((await here().allium(['run', 'hi'])).stderr).not.toMatch(/^ {4}at /m);
  });

  it('says when an answer is cut off', async () => {
    here().write('allium.toml', `${here().read('allium.toml')}\n[allium.settings]\nmaxOutputTokens = 3\n`);
    const { stderr } = await here().allium(['run', 'hi']);
    expect(stderr).toContain('stopped (kernel: The answer was cut off at its limit of 3 output tokens.');
  });
});

describe('short values of the environment', () => {
  const env = { DELAY: '5' };
  const withDelay = (tool: string): void => {
    const retry = `chain = [\n  { use = "retry", on = "tool", minDelayMs = "\${DELAY}", jitter = "none" },`;
    const config = here().read('allium.toml');
    here().write(
      'allium.toml',
      config.replace('chain = [', () => retry),
    );
    here().write('tools.mjs', `${here().read('tools.mjs')}\n${tool}`);
  };

  it('are left in events, which stay JSON', async () => {
    withDelay(`let tries = 0;
      export const wobble = tool({
        name: 'wobble',
        description: 'Wobbles.',
        input: schema({}),
        idempotent: true,
        execute() {
          if (tries++ === 0) throw Object.assign(new Error('busy'), { status: 503 });
          return 'steady';
        },
      });`);
    const { code, stdout } = await here().allium(['run', '--json', 'wobble'], { env });
    expect(code).toBe(0);
    const retry = jsonLines(stdout).find(({ name }) => name === 'retry');
    expect(retry).toMatchObject({ data: { tool: 'wobble', delayMs: 5 } });
  });

  it('are left in questions to a person, and in the messages of sessions', async () => {
    withDelay('');
    const waits = await here().allium(['run', '--session', 'ann', 'pay 5'], { env });
    expect(waits.stderr).toContain('pay {"amount":5}');
    expect((await here().allium(['approve'], { env })).stdout).toContain('pay {"amount":5}');
    const [open] = JSON.parse((await here().allium(['approve', '--json'], { env })).stdout);
    expect(open.request.arguments).toBe('{"amount":5}');
    expect((await here().allium(['approve', 'ann', '--all'], { env })).stderr).toContain(
      '→ pay {"amount":5}',
    );
    for (const command of [
      ['sessions', 'show', 'ann'],
      ['trace', 'ann'],
    ]) {
      const { stdout } = await here().allium(command, { env });
      expect(stdout).toContain('paid 5');
      expect(stdout).not.toContain('***');
    }
  });

  it('are taken out of errors', async () => {
    const config = here().read('allium.toml');
    const broken = `chain = [\n  { use = "./broken.mjs", code = "\${CODE}" },`;
    here().write(
      'allium.toml',
      config.replace('chain = [', () => broken),
    );
    here().write(
      'broken.mjs',
      `export default ({ code }) => ({
        name: 'broken',
        beforeModel() { throw new Error('the code ' + code + ' is wrong'); },
      });`,
    );
    for (const args of [['run', 'hi'], ['run', '--json', 'hi'], ['chat']]) {
      const { stdout, stderr, code } = await here().allium(args, { env: { CODE: 'x7y' }, input: 'hi\n' });
      expect(code).toBe(1);
      expect(stdout + stderr).toContain('the code *** is wrong');
      expect(stdout + stderr).not.toContain('x7y');
    }
  });
});
