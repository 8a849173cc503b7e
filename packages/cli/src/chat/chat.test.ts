// `allium chat` as a person meets it: in a terminal, and piped.

import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';
import { EXIT } from '../outcome.js';
import { main } from '../program.js';
import { makeIo } from '../terminal/io.js';

const here = useProject();

describe('allium chat in a terminal', () => {
  it('answers, remembers what was typed, shows the cost, and exits with Ctrl-D', async () => {
    const chat = here().terminal(['chat', '--session', 'ann']);
    await chat.until('Session ann');
    chat.type(`add 19 and 23${KEYS.enter}`);
    await chat.until('add: 42');
    await chat.until(/done · 2 turns/);
    chat.type(`/cost${KEYS.enter}`);
    await chat.until(/1 run · 2 turns · \d+ tokens · \$0\.00/);
    chat.type(`/explain${KEYS.enter}`);
    await chat.until('Plan: 1 middleware');
    chat.type(`/help${KEYS.enter}`);
    await chat.until('/resume ');
    chat.type(`/nonsense${KEYS.enter}`);
    await chat.until('There is no /nonsense');
    chat.type(`${KEYS.up}${KEYS.up}${KEYS.up}${KEYS.up}${KEYS.up}`);
    await chat.until(/› add 19 and 23$/);
    chat.type(KEYS.enter);
    await chat.until(/add: 42[\s\S]*add: 42/);
    await chat.until(/done[\s\S]*done/);
    chat.type(KEYS.ctrlD);
    expect(await chat.exit()).toBe(0);
    expect(chat.screen()).toContain('Continue with: allium chat --session ann');
    const again = here().terminal(['chat', '--session', 'ann']);
    await again.until('Session ann');
    again.type(KEYS.up);
    await again.until(/› add 19 and 23$/);
  });

  it('lets a person steer the agent while it works', async () => {
    const chat = here().terminal(['chat']);
    await chat.until('Session chat-');
    chat.type(`open the gate${KEYS.enter}`);
    await chat.until('→ gate');
    chat.type(`Now add 1 and 2.${KEYS.enter}`);
    await chat.until('the agent reads that before its next turn');
    here().write('open', '');
    await chat.until('→ add {"a":1,"b":2}');
    await chat.until('add: 3');
  });

  it('aborts the turn with Ctrl-C, goes on, and exits with the next Ctrl-C', async () => {
    const chat = here().terminal(['chat']);
    await chat.until('Session chat-');
    chat.type(`open the gate${KEYS.enter}`);
    await chat.until('→ gate');
    chat.type(KEYS.ctrlC);
    await chat.until(/aborted.*· 1 turn/);
    chat.type(`add 2 and 2${KEYS.enter}`);
    await chat.until('add: 4');
    await chat.until(/done · 2 turns/);
    chat.type(KEYS.ctrlC);
    expect(await chat.exit()).toBe(0);
  });

  it('discards a half-typed line with Ctrl-C, and stays', async () => {
    const chat = here().terminal(['chat']);
    await chat.until('Session chat-');
    chat.type('nothing of this');
    await chat.until(/› nothing of this$/);
    chat.type(KEYS.ctrlC);
    await chat.until(/›$/);
    chat.type(`add 2 and 3${KEYS.enter}`);
    await chat.until('add: 5');
    expect(chat.screen()).not.toContain('nothing of this');
  });

  it('refuses arguments that do not fit, shows those that were edited, and suspends with /exit', async () => {
    here().write(
      'tools.mjs',
      here()
        .read('tools.mjs')
        .replace(
          'validate: (value) => ({ value })',
          `validate: (value) => value.amount > 9 ? { issues: [{ message: 'Too much' }] } : { value }`,
        ),
    );
    const chat = here().terminal(['chat', '--session', 'ann']);
    await chat.until('Session ann');
    chat.type(`pay 5${KEYS.enter}`);
    await chat.until('[l]ater');
    chat.type(`e {"amount":10}${KEYS.enter}`);
    await chat.until('These arguments do not fit "pay": Too much');
    chat.type(`e {"amount":7}${KEYS.enter}`);
    await chat.until('→ pay {"amount":7} (edited)');
    await chat.until('pay: paid 7');
    await chat.until(/done · 2 turns/);
    chat.type(`pay 6${KEYS.enter}`);
    await chat.until(/\[l\]ater[\s\S]*\[l\]ater/);
    chat.type(`/cost${KEYS.enter}`);
    await chat.until(/1 run · 2 turns · \d+ tokens · \$0\.00\nunder way: 1 turn · \d\d+ tokens/);
    chat.type(`/exit${KEYS.enter}`);
    expect(await chat.exit()).toBe(0);
    expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":6}');
    const again = here().terminal(['chat', '--session', 'ann']);
    await again.until('This session waits for an answer. /resume asks');
  });

  it('ends the turn before it exits with Ctrl-D', async () => {
    const chat = here().terminal(['chat', '--session', 'ann']);
    await chat.until('Session ann');
    chat.type(`open the gate${KEYS.enter}`);
    await chat.until('→ gate');
    chat.type(KEYS.ctrlD);
    expect(await chat.exit()).toBe(0);
    expect((await here().allium(['sessions'])).stdout).toMatch(/^ann .* aborted/m);
  });

  it('asks in place, and does what it is told', async () => {
    const chat = here().terminal(['chat']);
    await chat.until('Session chat-');
    chat.type(`pay 5${KEYS.enter}`);
    await chat.until('Run "pay"?');
    chat.type(`what?${KEYS.enter}`);
    await chat.until('Please answer: [y]es');
    chat.type(`y${KEYS.enter}`);
    await chat.until('pay: paid 5');
    await chat.until(/done · 2 turns/);
    chat.type(`pay 6${KEYS.enter}`);
    await chat.until(/Run "pay"\?[\s\S]*Run "pay"\?/);
    chat.type(`n too dear${KEYS.enter}`);
    await chat.until('pay failed: too dear');
    await chat.until(/done[\s\S]*done/);
    chat.type(`pay 7${KEYS.enter}`);
    await chat.until(/"amount":7/);
    chat.type(`e {"amount":1}${KEYS.enter}`);
    await chat.until('pay: paid 1');
    await chat.until(/done[\s\S]*done[\s\S]*done/);
    chat.type(`pay 8${KEYS.enter}`);
    await chat.until(/"amount":8/);
    chat.type(`later${KEYS.enter}`);
    await chat.until('/resume asks again');
    chat.type(`/resume${KEYS.enter}`);
    await chat.until(/"amount":8[\s\S]*"amount":8/);
    chat.type(`yes${KEYS.enter}`);
    await chat.until('pay: paid 8');
  });

  it('keeps what is typed apart from what is said, however narrow the terminal', async () => {
    const chat = here().terminal(['chat'], { cols: 40 });
    await chat.until('Session chat-');
    chat.type(`open the gate${KEYS.enter}`);
    await chat.until('→ gate');
    chat.type('half a sentence that is longer than one row of this terminal');
    await chat.until('this terminal');
    here().write('open', '');
    await chat.until('gate: open');
    await chat.until(/done · 2 turns/);
    // It is drawn once more below what was said, broken wherever the row ends.
    const typed = '› half a sentence that is longer than one row of this terminal';
    await chat.until(new RegExp(`${[...typed].join('\\n?')}$`));
    expect(chat.screen()).toContain('(Written by fixed rules');
  });
});

describe('allium chat in a pipe', () => {
  it('says every line and prints every answer, in one session', async () => {
    const { stdout, stderr, code } = await here().allium(['chat', '--session', 'bob'], {
      input: 'add 1 and 2\n\n/cost\n/nonsense\nadd 3 and 4\n/exit\nadd 5 and 6\n',
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/add: 3[\s\S]*1 run · 2 turns[\s\S]*add: 7/);
    expect(stdout).not.toContain('add: 11');
    expect(stdout).not.toContain('\u001b');
    expect(stderr).toContain('There is no /nonsense');
    const shown = await here().allium(['sessions', 'show', 'bob']);
    expect(shown.stdout.match(/^user: /gm)).toHaveLength(2);
  });

  it('ends with 130 after Ctrl-C, also while it waits for the next line', async () => {
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const abort = new AbortController();
    const parts = { stdin, stdout, stderr, env: {}, cwd: here().folder, signal: abort.signal };
    const ended = main(['chat', '--session', 'bob'], makeIo(parts));
    stdin.write('add 1 and 2\n');
    let said = '';
    for await (const chunk of stdout.iterator({ destroyOnReturn: false })) {
      said += chunk;
      if (said.includes('add: 3')) break;
    }
    abort.abort();
    expect(await ended).toBe(EXIT.aborted);
  });

  it('says why a run could not begin', async () => {
    const { code, stderr } = await here().allium(['chat', '--session', 'bob'], { input: '/resume\n' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: \S/);
  });

  it('warns when the next line cancels an open question', async () => {
    const { stderr } = await here().allium(['chat', '--session', 'bob'], {
      input: 'pay 5\n/resume\nadd 1 and 2\nadd 3 and 4\n',
    });
    expect(stderr.match(/^warning: .*/gm)).toEqual([
      'warning: session "bob" waited for an answer, which this run gives up: Run "pay"?',
    ]);
  });

  it('suspends the run if nobody can be asked', async () => {
    const { code } = await here().allium(['chat'], { input: 'pay 5\n' });
    expect(code).toBe(5);
    expect((await here().allium(['approve'])).stdout).toContain('pay {"amount":5}');
  });
});
