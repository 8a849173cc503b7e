import { Agent, defineMiddleware, type Middleware, tool } from 'allium';
import { type ConsoleLoggerOptions, consoleLogger } from 'allium/middleware/console-logger';
import {
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

const add = tool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

function setup(
  script: readonly Script[],
  level?: ConsoleLoggerOptions['level'],
  more: readonly Middleware[] = [],
) {
  const lines: string[] = [];
  const to = (at: string) => (line: string) => void lines.push(`${at} ${line}`);
  const logger = consoleLogger({
    ...(level && { level }),
    console: { error: to('error'), info: to('info'), debug: to('debug') },
    clock: fakeClock(),
  });
  const agent = new Agent({
    model: scriptedModel(script),
    tools: [add],
    middleware: [logger, ...more],
    newId: () => '1',
  });
  return { lines, agent };
}

const adds = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('It is 3.')];

const quiet = { error() {}, info() {}, debug() {} };
testMiddleware(({ clock }) => consoleLogger({ clock, console: quiet, level: 'debug' }), {
  name: 'console-logger',
  describe,
  it,
});

describe('console-logger', () => {
  it('escapes terminal control characters, and lets no text look like a log line', async () => {
    const { lines, agent } = setup(
      [toolCalls({ name: 'a\u001b]0;owned\u0007', args: {} }), failWith(new Error('no\u009b2J\u202e'))],
      'debug',
    );
    await expect(agent.run('hi')).rejects.toThrow();
    const forging = setup([text('Hi\n[r_2] run: done\u200b')], 'debug');
    await forging.agent.run('hi');
    const all = [...lines, ...forging.lines].join('\n');
    expect(all).toContain('calls a<U+001B>]0;owned<U+0007>');
    expect(all).toContain('failed: no<U+009B>2J<U+202E>');
    expect(all).toContain('[r_1]   Hi\n[r_1]   [r_2] run: done<U+200B>');
    expect(all).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
  });

  it('writes a line for every model call, tool call and run', async () => {
    const { lines, agent } = setup(adds);
    await agent.run('1 + 2?');
    expect(lines).toEqual([
      'info [r_1] turn 1: test/scripted: calls add, 0 ms',
      'info [r_1] turn 1: add: ok, 0 ms',
      'info [r_1] turn 2: test/scripted: answers, 0 ms',
      'info [r_1] run: done, 2 turns, 30 tokens, 0 ms',
    ]);
  });

  it('writes to stderr at every level unless told otherwise', async () => {
    const spies = (['log', 'info', 'debug', 'error'] as const).map((name) =>
      vi.spyOn(console, name).mockImplementation(() => {}),
    );
    try {
      const logger = consoleLogger({ level: 'debug' });
      await new Agent({ model: scriptedModel(['hi']), middleware: [logger] }).run('hi');
      expect(spies.map((spy) => spy.mock.calls.length)).toEqual([0, 0, 0, 3]);
    } finally {
      for (const spy of spies) spy.mockRestore();
    }
  });

  it('adds arguments and text at level debug', async () => {
    const { lines, agent } = setup(adds, 'debug');
    await agent.run('1 + 2?');
    expect(lines.filter((line) => line.startsWith('debug'))).toEqual([
      'debug [r_1]   {"a":1,"b":2} → 3',
      'debug [r_1]   It is 3.',
    ]);
  });

  it('writes failures only at level error, and passes the error on as it is', async () => {
    const oh = new Error('oh');
    const { lines, agent } = setup([adds[0]!, failWith(oh)], 'error');
    await expect(agent.run('hi')).rejects.toMatchObject({ cause: oh });
    expect(lines).toEqual(['error [r_1] turn 2: test/scripted: failed: oh', 'error [r_1] run: failed: oh']);
  });

  it('logs refused calls', async () => {
    const refuse = defineMiddleware({ name: 'no', beforeToolCall: () => ({ block: true, reason: 'No.' }) });
    const { lines, agent } = setup(adds, 'info', [refuse]);
    await agent.run('1 + 2?');
    expect(lines[1]).toBe('info [r_1] turn 1: add: refused');
  });

  it('does not call a stop a failure', async () => {
    const stop = defineMiddleware({ name: 'enough', beforeModel: (ctx) => ctx.stop('stopped', 'Enough.') });
    const { lines, agent } = setup(['hi'], 'info', [stop]);
    expect((await agent.run('hi')).status).toBe('stopped');
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);
    expect(lines[0]).toBe('info [r_1] turn 1: test/scripted: ended: Enough.');
  });

  it('does not call an abort a failure', async () => {
    const { lines, agent } = setup([hang('Well')]);
    const abort = new AbortController();
    const seen = collect(agent.stream('hi', { signal: abort.signal }));
    await new Promise(setImmediate);
    abort.abort(new Error('bye'));
    expect((await seen).error?.code).toBe('ABORTED');
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([]);
  });

  it('never writes what a guard removed, wherever the guard stands', async () => {
    const guard = defineMiddleware({
      name: 'no-pin',
      guard: {
        on: ['output'],
        find: (text) => [...text.matchAll(/\d{4}/g)].map(({ index }) => ({ start: index, end: index + 4 })),
      },
    });
    const { lines, agent } = setup(['The PIN is 1234.'], 'debug', [guard]);
    await agent.run('PIN?');
    expect(lines.join()).toContain('The PIN is [redacted].');
    expect(lines.join()).not.toContain('1234');
  });

  it('does not end the run when the console throws', async () => {
    const broken = () => {
      throw new Error('EPIPE');
    };
    const logger = consoleLogger({ level: 'debug', console: { error: broken, info: broken, debug: broken } });
    const agent = new Agent({ model: scriptedModel(adds), tools: [add], middleware: [logger] });
    expect(await agent.run('1 + 2?')).toMatchObject({ status: 'done', text: 'It is 3.' });
  });

  it('waits for a console that answers later, and notes what it rejects with', async () => {
    const lines: string[] = [];
    const later = async (line: string) => {
      await undefined;
      lines.push(line);
      throw new Error('EPIPE');
    };
    const logger = consoleLogger({ level: 'debug', console: { error: later, info: later, debug: later } });
    const refuses = defineMiddleware({ beforeToolCall: () => ({ block: true }) });
    const agent = new Agent({ model: scriptedModel(adds), tools: [add], middleware: [logger, refuses] });
    const { text: answer, changes } = await agent.run('1 + 2?');
    expect(answer).toBe('It is 3.');
    expect(lines).toHaveLength(4);
    const ours = changes.filter(({ by }) => by === 'console-logger').map(({ what }) => what);
    expect(ours).toEqual([
      'process failed and was skipped: EPIPE',
      'afterToolCall failed and was skipped: EPIPE',
      'process failed and was skipped: EPIPE',
      'process failed and was skipped: EPIPE',
    ]);
    const oh = new Error('oh');
    const failing = new Agent({ model: scriptedModel([failWith(oh)]), middleware: [logger] });
    await expect(failing.run('hi')).rejects.toMatchObject({ cause: oh });
  });

  it.each([
    [{ level: 'warn' }, "Expected `level` to be 'error', 'info' or 'debug', got \"warn\"."],
    [{ console: {} }, 'Expected `console` to be an object with error(), info(), debug(), got {}.'],
    [{ levle: 'info' }, 'Unknown option `levle` of consoleLogger(). Did you mean `level`?'],
    [
      'info',
      'Expected `options` to be an object with level, console, clock, name for consoleLogger(), got "info".',
    ],
  ])('refuses %j', (options, message) => {
    expect(() => consoleLogger(options as never)).toThrow(message);
  });
});
