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
  }, 120_000);

  it('exits with 0 and shows the plan, two runs, what they came to, and where to look next', () => {
    expect(outcome.code).toBe(0);
    const order = [
      'Plan: 4 middleware, 3 tools',
      'forecast failed: the weather service is busy',
      '✓ forecast',
      'Run "book_room"? approved (automatically: there is no terminal to ask on)',
      'write to [email]',
      'The same question again',
      'cache: this answer was given before',
      'run 1: done after 4 turns',
      'run 2: done after 4 turns, 0 tokens',
      'The data is in examples/demo/.allium.',
    ];
    const places = order.map((text) => outcome.stdout.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(outcome.stdout).not.toContain('\u001b');
    expect(outcome.stdout).not.toMatch(/\w@\w/);
  });

  it('has a call that ends in an error and then, tried again, in success', () => {
    const [retry] = ofType('custom').filter(({ name }) => name === 'retry');
    const { callId, error } = retry!.data as { callId: string; error: string };
    expect(error).toBe('the weather service is busy');
    const about = lines.filter(
      (line) =>
        line === retry ||
        ((line.type === 'tool_execution_start' || line.type === 'tool_execution_end') &&
          line.runId === retry!.runId &&
          line.toolCall.id === callId),
    );
    expect(about.map(({ type }) => type)).toEqual(['tool_execution_start', 'custom', 'tool_execution_end']);
    expect(about.at(-1)).toMatchObject({ toolCall: { name: 'forecast' }, message: { isError: false } });
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

  it('asks before it books, and has the answer before the call starts', () => {
    const [request] = ofType('request');
    const [answer] = ofType('answer');
    expect(request?.request).toMatchObject({ toolName: 'book_room', kind: 'ask', by: 'approval' });
    expect(answer).toMatchObject({ requestId: request?.request.id, decision: { type: 'approve' } });
    const booked = lines.findIndex(
      (line) => line.type === 'tool_execution_start' && line.toolCall.name === 'book_room',
    );
    expect(lines.indexOf(answer!)).toBeLessThan(booked);
  });

  it('answers the second run from the cache', () => {
    const runs = ofType('agent_start').map(({ runId }) => runId);
    expect(runs).toHaveLength(2);
    const hits = (runId: string | undefined) =>
      ofType('message_end')
        .filter((event) => event.runId === runId && event.message?.role === 'assistant')
        .map(({ message }) => message?.metadata?.cacheHit === true);
    expect(hits(runs[0])).toEqual([false, false, false, false]);
    expect(hits(runs[1])).toEqual([true, true, true, true]);
  });

  it('leaves its data where it says, for the commands it names', async () => {
    const [run] = ofType('agent_start');
    const args = ['allium', 'trace', run!.sessionId, '--config', 'examples/demo/allium.toml'];
    const { code, stdout } = await runCommand('npx', args, { cwd: root });
    expect(code).toBe(0);
    expect(stdout).toContain('asked: Run "book_room"? → approve');
  });
});

it('npm start in a terminal asks, and goes on when it is answered', async () => {
  const demo = openTerminal(process.execPath, ['examples/demo/demo.mjs'], { cwd: root });
  try {
    await demo.until('Run "book_room"?');
    demo.type(KEYS.enter);
    await demo.until('the same call as before: approve');
    await demo.until('Where to look next');
    expect(await demo.exit()).toBe(0);
  } finally {
    demo.kill();
  }
});
