// `npm start`: what a newcomer sees first. Run as they would, without a terminal and with one.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentEvent, Decision, PendingRequest } from 'allium';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEYS, openTerminal } from '../packages/cli/test/terminal.js';
import { root } from '../scripts/repository.mjs';
import { type RunOutcome, runCommand } from '../scripts/run-command.mjs';

type Line =
  | AgentEvent
  | { type: 'request'; runId: string; request: PendingRequest }
  | { type: 'answer'; runId: string; requestId: string; decision: Decision };

const folder = mkdtempSync(join(tmpdir(), 'allium-demo-'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('npm start -- --json FILE', () => {
  let outcome: RunOutcome;
  let lines: Line[];
  const ofType = <T extends Line['type']>(type: T) =>
    lines.filter((line): line is Extract<Line, { type: T }> => line.type === type);

  beforeAll(async () => {
    const file = join(folder, 'events.jsonl');
    outcome = await runCommand('npm', ['start', '--', '--json', file], { cwd: root });
    lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  });

  it('exits with 0 and shows the plan, two runs, what they came to, and where to look next', () => {
    expect(outcome.code).toBe(0);
    const order = [
      'Plan: 4 middleware, 3 tools',
      'forecast failed: the weather service is busy; retry tries again',
      '✗ forecast: "forecast" failed: the weather service is busy',
      'I call forecast again: it failed.',
      '✓ forecast',
      'Run "book_room"? approved (automatically: there is no terminal to ask in)',
      'write to [email]',
      'The same question again',
      'cache: this answer was given before',
      'run 1: done after 5 turns',
      'run 2: done after 5 turns, 0 tokens',
      'The data is in examples/demo/.allium.',
    ];
    const places = order.map((text) => outcome.stdout.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(outcome.stdout).not.toContain('\u001b');
    expect(outcome.stdout).not.toMatch(/\w@\w/);
  });

  it('has a call that is retried and ends in an error, and the same call again that ends in success', () => {
    const [retry] = ofType('custom').filter(({ name }) => name === 'retry');
    const { callId, error } = retry!.data as { callId: string; error: string };
    expect(error).toBe('the weather service is busy');
    const about = lines.filter(
      (line) =>
        line === retry ||
        ((line.type === 'tool_execution_start' || line.type === 'tool_execution_end') &&
          line.runId === retry!.runId &&
          line.toolCall.name === 'forecast'),
    );
    const [start, , failed, again, succeeded] = about;
    expect(about.map(({ type }) => type)).toEqual([
      'tool_execution_start',
      'custom',
      'tool_execution_end',
      'tool_execution_start',
      'tool_execution_end',
    ]);
    expect(start).toMatchObject({ toolCall: { id: callId } });
    expect(failed).toMatchObject({ toolCall: { id: callId }, message: { isError: true } });
    const args = (start as { toolCall?: { arguments: string } }).toolCall?.arguments;
    expect(again).toMatchObject({ toolCall: { arguments: args } });
    expect(again).not.toMatchObject({ toolCall: { id: callId } });
    expect(succeeded).toMatchObject({ message: { isError: false } });
  });

  it('redacts the e-mail address while the answer streams', () => {
    const [run] = ofType('agent_start');
    const answer = ofType('message_end').findLast(
      ({ runId, message }) => runId === run?.runId && message?.role === 'assistant',
    );
    const deltas = ofType('message_update').filter(({ messageId }) => messageId === answer?.messageId);
    const texts = deltas.map(({ delta }) => (delta.type === 'text' ? delta.text : ''));
    expect(texts.length).toBeGreaterThan(1);
    expect(texts.join('')).toContain('write to [email]');
    expect(texts.join('')).not.toContain('@');
    // It was there: a tool found it, and the model was about to say it.
    const found = ofType('tool_execution_end').find(({ toolCall }) => toolCall.name === 'find_guide');
    expect(JSON.stringify(found?.message)).toContain('ingrid@bergen.example');
  });

  it('asks before it books, and has the answer before the call ends', () => {
    const [request] = ofType('request');
    const [answer] = ofType('answer');
    expect(request?.request).toMatchObject({ toolName: 'book_room', kind: 'ask', by: 'approval' });
    expect(answer).toMatchObject({ requestId: request?.request.id, decision: { type: 'approve' } });
    const booked = lines.findIndex(
      (line) => line.type === 'tool_execution_end' && line.toolCall.name === 'book_room',
    );
    expect(lines.indexOf(answer!)).toBeLessThan(booked);
    const states = lines
      .filter((line) => 'toolCall' in line && line.toolCall.name === 'book_room')
      .slice(0, 3);
    expect(states.map(({ type }) => type)).toEqual([
      'tool_execution_start',
      'tool_execution_waiting',
      'tool_execution_end',
    ]);
  });

  it('answers the second run from the cache', () => {
    const runs = ofType('agent_start').map(({ runId }) => runId);
    expect(runs).toHaveLength(2);
    const hits = (runId: string | undefined) =>
      ofType('message_end')
        .filter((event) => event.runId === runId && event.message?.role === 'assistant')
        .map(({ message }) => message?.metadata?.cacheHit === true);
    expect(hits(runs[0])).toEqual([false, false, false, false, false]);
    expect(hits(runs[1])).toEqual([true, true, true, true, true]);
  });

  it('leaves its data where it says, for the commands it names', async () => {
    const [run] = ofType('agent_start');
    const args = ['allium', 'trace', run!.sessionId, '--config', 'examples/demo/allium.toml'];
    const { code, stdout } = await runCommand('npx', args, { cwd: root });
    expect(code).toBe(0);
    expect(stdout).toContain('asked: Run "book_room"? → approve');
  });
});

it.each([[['--josn', 'x']], [['--json', 'no/such/folder/x']]])(
  'npm start -- %j says what is wrong, without a stack',
  async (args) => {
    const { code, stderr } = await runCommand(process.execPath, ['examples/demo/demo.mjs', ...args], {
      cwd: root,
    });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*(josn|no\/such\/folder)/);
    expect(stderr).toContain('usage: npm start [-- --json FILE]');
    expect(stderr).not.toMatch(/^ {4}at /m);
  },
);

it('npm start in a terminal asks where the call stands, and leaves a screen that reads from top to bottom', async () => {
  const demo = openTerminal(process.execPath, ['examples/demo/demo.mjs'], { cwd: root, rows: 30 });
  try {
    const asked = await demo.until(/Run "book_room"\?[\s\S]*Decide later/);
    expect(
      asked
        .trimEnd()
        .split('\n')
        .findLast((line) => /^\w/.test(line)),
    ).toBe('I call book_room.');
    demo.type(KEYS.enter);
    expect(await demo.exit()).toBe(0);
    const screen = demo.screen();
    const run = [
      /^I call forecast\.$/,
      /^ {2}→ forecast /,
      /^ {2}↻ forecast failed: /,
      /^ {2}✗ forecast: /,
      /^I call forecast again: it failed\.$/,
      /^ {2}→ forecast /,
      /^ {2}✓ forecast/,
      /^I call find_guide\.$/,
      /^ {2}→ find_guide /,
      /^ {2}✓ find_guide/,
      /^I call book_room\.$/,
      /Run "book_room"\?/,
      /Approve/,
      /^ {2}→ book_room /,
      /^ {2}✓ book_room/,
      /^forecast: 2 days of rain/,
      /write to \[email\]$/,
      /^done · 5 turns/,
    ];
    const again = run.filter(({ source }) => source !== 'Approve');
    again[again.findIndex(({ source }) => source.startsWith('Run'))] =
      /^ {2}\? the same call as before: approve$/;
    expectInOrder(screen, [/The first run/, ...run, /The same question again/, ...again, /What it came to/]);
    // Nothing of the menu, and no line of the spinner, is left behind.
    expect(screen).not.toMatch(/Reject|Decide later|thinking/);
    for (const what of ['I call find_guide.', '  ? the same call as before: approve'])
      expect(screen.split('\n').filter((line) => line === what)).toHaveLength(what.startsWith('I') ? 2 : 1);
  } finally {
    demo.kill();
  }
});

it('npm start in a terminal says how to answer what was left for later', async () => {
  const demo = openTerminal(process.execPath, ['examples/demo/demo.mjs'], { cwd: root, cols: 120 });
  try {
    for (const title of ['The first run', 'The same question again']) {
      await demo.until(new RegExp(`${title}[\\s\\S]*○ Decide later`));
      demo.type(KEYS.up);
      await demo.until(new RegExp(`${title}[\\s\\S]*● Decide later`));
      demo.type(KEYS.enter);
    }
    expect(await demo.exit()).toBe(0);
    const command = /A call still waits for you: npx (allium approve s_\w+ --config \S+)/;
    const [, args] = command.exec(demo.screen())!;
    const { stdout } = await runCommand('npx', [...args!.split(' '), '--all'], { cwd: root });
    expect(stdout).toContain('book_room: a room in Bergen is booked for 2 nights');
  } finally {
    demo.kill();
  }
});

/** Every pattern has a line of its own, below that of the pattern before it. */
function expectInOrder(screen: string, patterns: readonly RegExp[]): void {
  const rest = screen.split('\n');
  for (const pattern of patterns) {
    const at = rest.findIndex((line) => pattern.test(line));
    expect(at, `${pattern} is missing, or stands too early:\n${screen}`).not.toBe(-1);
    rest.splice(0, at + 1);
  }
}
