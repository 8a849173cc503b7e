// Every command, over a session whose model, tools, middleware and ids try to steer the terminal.

import { beforeEach, describe, expect, it } from 'vitest';
import { jsonLines, useProject } from '../test/project.js';
import { KEYS } from '../test/terminal.js';

/** Title, clipboard, clear, blink, C1, overwriting, turned writing, no width, tags; and a line that looks like one of ours. */
const EVIL =
  '\u001b]0;owned\u0007\u001b]52;c;cm0=\u001b\\\u001b[2J\u001b[5m\u009b5m\u0085\r\b\u007f\u202e\u2066\u200b\u200d\ufeff\u{e0041}';
const ID = `s${EVIL}`;

const MODEL = `
const evil = ${JSON.stringify(EVIL)};
export default () => ({
  provider: 'p' + evil,
  id: 'm' + evil,
  async *stream({ messages }) {
    const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user').content);
    const results = messages.slice(messages.findLastIndex(({ role }) => role === 'user')).length - 1;
    if (asked.includes('fail')) throw new Error('The provider says ' + evil);
    if (results === 0) {
      for (const piece of 'Hello ' + evil) yield { type: 'text', text: piece };
      yield { type: 'tool-call', id: 'c' + evil, name: 'unknown' + evil + '\\n✓ forged', arguments: '{"a":1}' };
      yield { type: 'tool-call', id: 'd', name: 'break', arguments: '{}' };
      yield { type: 'finish', reason: 'tool-calls' };
    } else if (asked.includes('pay') && results < 4) {
      yield { type: 'tool-call', id: 'e' + results, name: 'pay', arguments: JSON.stringify({ to: 'ann' + evil }) };
      yield { type: 'finish', reason: 'tool-calls' };
    } else {
      yield { type: 'text', text: 'Done ' + evil };
      yield { type: 'finish', reason: 'stop' };
    }
  },
});
`;

const TOOLS = `
import { tool } from 'allium';
const evil = ${JSON.stringify(EVIL)};
const input = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }), jsonSchema: { input: () => ({ type: 'object' }) } } };
export const pay = tool({ name: 'pay', description: 'Pays.' + evil, input, execute: () => 'paid ' + evil });
export const fails = tool({ name: 'break', description: 'Fails.', input, execute() {
  console.log('logged ' + evil);
  throw new Error('broke ' + evil);
} });
`;

const MIDDLEWARE = `
import { defineState } from 'allium';
const evil = ${JSON.stringify(EVIL)};
const cell = defineState({ name: 'cell' + evil, scope: 'session', initial: '' });
export default () => ({
  name: 'mw' + evil,
  state: [cell],
  beforeModel(ctx) {
    ctx.state.set(cell, evil);
    ctx.emit('told' + evil, { evil });
  },
});
`;

const CONFIG = `[allium]
model = "./model.mjs"
store = { use = "file", dir = ".allium/sessions" }
tools = ["./tools.mjs"]

[allium.middleware]
chain = [
  "console-logger", "stopwatch", "./middleware.mjs",
  { use = "audit-log", sink = { file = "audit.jsonl" }, key = "0123456789abcdef0123456789abcdef" },
  { use = "approval", policy = { pay = "ask", "*" = "allow" } },
]
`;

const here = useProject({
  'allium.toml': CONFIG,
  'model.mjs': MODEL,
  'tools.mjs': TOOLS,
  'middleware.mjs': MIDDLEWARE,
});

/** What no reader of a pipe should get. */
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** What we draw with ourselves: colours, the cursor, the end of a line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
const OURS = /\u001b\[(?:(?:[0-9]|2[0-9]|[349][0-9])?(?:;[0-9]+)*m|[0-9]*[ABCDGKJ]|\?25[lh]|\?2004[lh])|\r/g;

function expectSafe(output: string): void {
  expect(output).not.toMatch(HIDDEN);
}

function expectSafeScreen(raw: string): void {
  for (const one of ['\u001b]', '\u001b[2J', '\u001b[5m', '\u009b', '\u202e'])
    expect(raw.includes(one), JSON.stringify(one)).toBe(false);
  expectSafe(raw.replace(OURS, ''));
}

beforeEach(async () => {
  const { code, stderr } = await here().allium(['run', '--session', ID, 'pay']);
  expect([code, stderr]).toEqual([5, expect.stringContaining('→ unknown')]);
});

describe('in a pipe', () => {
  it.each<[string, string[]]>([
    ['run', ['run', 'hi']],
    ['run, of which the provider fails', ['run', 'fail']],
    ['run, into a session that waits', ['run', '--session', ID, 'hi']],
    ['the list of sessions', ['sessions']],
    ['sessions show', ['sessions', 'show', ID]],
    ['sessions fork', ['sessions', 'fork', ID]],
    ['sessions delete', ['sessions', 'delete', ID]],
    ['sessions delete --yes', ['sessions', 'delete', '--yes', ID]],
    ['sessions queue', ['sessions', 'queue', ID]],
    ['sessions resume', ['sessions', 'resume', ID]],
    ['sessions resume of what is not there', ['sessions', 'resume', `none${EVIL}`]],
    ['trace', ['trace', '--state']],
    ['trace of a run that is not there', ['trace', '--run', EVIL]],
    ['the list of questions', ['approve']],
    ['approve', ['approve', ID, '--all']],
    ['approve what nobody asks', ['approve', ID, '--request', EVIL, '--all']],
    ['approve with what is not JSON', ['approve', ID, '--edit', EVIL]],
    ['explain', ['explain']],
    ['doctor', ['doctor']],
    ['audit verify', ['audit', 'verify']],
    ['replay of what is not there', ['replay', EVIL]],
    ['plugin check', ['plugin', 'check', EVIL]],
    ['plugin list', ['plugin', 'list']],
    ['init where there is a config', ['init', '--yes']],
    ['init in a folder of that name', ['init', '--yes', 'f\u202e\u009b\u001b[2J']],
    ['a command that is none', [`x${EVIL}`]],
    ['an option that is none', ['run', `--x${EVIL}`]],
    ['a config that is not there', ['--config', EVIL, 'explain']],
  ])('%s', async (_, args) => {
    const { stdout, stderr } = await here().allium(args, { env: { ALLIUM_DEBUG: '1' } });
    expect(stdout + stderr).not.toBe('');
    expectSafe(stdout);
    expectSafe(stderr);
    expect(stdout + stderr).not.toMatch(/^ {0,2}✓ forged/m);
    if (!args.includes('--json')) expectSafe((await here().allium([...args, '--json'])).stdout);
  });

  it('a recording, and its replay', async () => {
    for (const args of [
      ['run', '--yes', '--record', 'tape.jsonl', 'pay'],
      ['replay', '--yes', 'tape.jsonl'],
    ]) {
      const { code, stdout, stderr } = await here().allium(args);
      expect([code, stdout]).toEqual([0, expect.stringContaining('Done <U+001B>')]);
      expectSafe(stdout + stderr);
    }
  });

  it('chat', async () => {
    const { stdout, stderr } = await here().allium(['chat', '--session', ID], {
      input: `hi\nfail\n/explain\n/cost\n/${EVIL}\npay\n/resume\n`,
    });
    expect(stdout).toContain('Done <U+001B>');
    expectSafe(stdout);
    expectSafe(stderr);
  });

  it('keeps the original text in --json output', async () => {
    const { stdout } = await here().allium(['sessions', 'show', ID, '--json']);
    expectSafe(stdout);
    expect(stdout).toContain('\\u202e');
    expect(stdout).toContain('\\u009b');
    const [, hello] = JSON.parse(stdout);
    expect(hello.content[0].text).toBe(`Hello ${EVIL}`);
    const events = await here().allium(['run', '--json', 'hi']);
    expect(jsonLines(events.stdout).at(-1)).toMatchObject({ result: { text: `Done ${EVIL}` } });
  });

  it("shows such characters in a tool name of the model and a provider's error", async () => {
    expect((await here().allium(['trace', ID])).stdout).toContain('unknown<U+001B>]0;owned<U+0007>');
    expect((await here().allium(['run', 'fail'])).stderr).toContain('The provider says <U+001B>]0;owned');
  });
});

describe('on a terminal', () => {
  it.each<[string, string[]]>([
    ['run', ['run', 'hi']],
    ['run, of which the provider fails', ['run', 'fail']],
    ['sessions show', ['sessions', 'show', ID]],
    ['trace', ['trace', '--state', ID]],
    ['explain', ['explain']],
  ])('%s', async (_, args) => {
    const terminal = here().terminal(args);
    await terminal.exit();
    expect(terminal.raw()).toContain('<U+202E>');
    expectSafeScreen(terminal.raw());
  });

  it('a question shows what hides in the arguments, and what can be edited is still the same JSON', async () => {
    const terminal = here().terminal(['approve', ID], { cols: 250 });
    await terminal.until('Approve');
    expect(terminal.screen()).toContain('pay {"to":"ann\\u001b]0;owned\\u0007');
    expect(terminal.screen()).toContain('<U+202E><U+2066><U+200B><U+200D><U+FEFF><U+E0041>');
    terminal.type(`${KEYS.down}${KEYS.down}${KEYS.enter}`);
    await terminal.until('The arguments, as JSON');
    await terminal.until('\\u202e\\u2066\\u200b\\u200d\\ufeff\\udb40\\udc41"}');
    terminal.type(KEYS.enter);
    await terminal.exit();
    expectSafeScreen(terminal.raw());
    const { stdout } = await here().allium(['trace', ID, '--json']);
    expect(stdout).toContain('→ edit');
  });

  it('a question whether to delete', async () => {
    const terminal = here().terminal(['sessions', 'delete', ID]);
    await terminal.until('for good?');
    terminal.type(KEYS.enter);
    await terminal.exit();
    expectSafeScreen(terminal.raw());
  });

  it('chat, with its questions and a history that somebody else wrote', async () => {
    here().write('.allium/chat-history', `old${EVIL.replace('\r', '')}\n`);
    const chat = here().terminal(['chat', '--session', `t${EVIL}`]);
    await chat.until('/help');
    chat.type(KEYS.up);
    await chat.until('old<U+001B>');
    chat.type(KEYS.ctrlC);
    chat.type(`pay${KEYS.enter}`);
    await chat.until('[y]es');
    chat.type(`y${KEYS.enter}`);
    await chat.until(/done · /);
    chat.type(`fail${KEYS.enter}`);
    await chat.until('The provider says');
    chat.type(KEYS.ctrlD);
    await chat.exit();
    expectSafeScreen(chat.raw());
  });
});
