import { Agent, tool } from 'allium';
import { stopwatch } from 'allium/middleware/stopwatch';
import { failWith, fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

function setup() {
  const clock = fakeClock();
  const lines: string[] = [];
  const dig = tool({
    name: 'dig',
    description: 'Digs.',
    input: z.object({ ms: z.number() }),
    async execute({ ms }) {
      await clock.advance(ms);
      return 'dug';
    },
  });
  return { clock, lines, dig, watch: stopwatch({ log: (line) => lines.push(line), clock }) };
}

testMiddleware(({ clock }) => stopwatch({ clock, log: () => {} }), { name: 'stopwatch', describe, it });

describe('stopwatch', () => {
  it('prints a line per model and tool call, with the tokens used so far', async () => {
    const { lines, dig, watch } = setup();
    const model = scriptedModel([toolCalls({ name: 'dig', args: { ms: 40 } }), text('done')]);
    await new Agent({ model, tools: [dig], middleware: [watch] }).run('dig');
    expect(lines).toEqual([
      'turn 1: model 0 ms, 15 tokens so far',
      'turn 1: dig 40 ms',
      'turn 2: model 0 ms, 30 tokens so far',
    ]);
  });

  it('keeps the times of two stopwatches apart', async () => {
    const clock = fakeClock();
    const lines: string[] = [];
    const watch = (name: string) => stopwatch({ log: (line) => lines.push(`${name} ${line}`), clock });
    const slow = { name: 'slow', beforeModel: () => clock.advance(5) };
    await new Agent({
      model: scriptedModel(['hi']),
      middleware: [watch('outer'), slow, watch('inner')],
    }).run('hi');
    expect(lines).toEqual([
      'inner turn 1: model 0 ms, 15 tokens so far',
      'outer turn 1: model 5 ms, 15 tokens so far',
    ]);
  });

  it('says nothing of a call that failed, and lets the error through as it is', async () => {
    const { lines, watch } = setup();
    const oh = new Error('oh');
    const agent = new Agent({ model: scriptedModel([failWith(oh)]), middleware: [watch] });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR', cause: oh });
    expect(lines).toEqual([]);
  });

  it('does not fail the run when the log throws', async () => {
    const watch = stopwatch({
      log: () => {
        throw new Error('disk full');
      },
    });
    const { text: answer } = await new Agent({ model: scriptedModel(['hi']), middleware: [watch] }).run('hi');
    expect(answer).toBe('hi');
  });

  it('waits for a log that answers later, and notes what it rejects with', async () => {
    const watch = stopwatch({
      log: async () => {
        await undefined;
        throw new Error('disk full');
      },
    });
    const call = toolCalls({ name: 'slow', args: {} });
    const model = scriptedModel([call, 'hi']);
    const slow = tool({ name: 'slow', description: 'Waits.', input: z.object({}), execute: () => 'ok' });
    const { text: answer, changes } = await new Agent({ model, tools: [slow], middleware: [watch] }).run(
      'hi',
    );
    expect(answer).toBe('hi');
    expect(changes.map(({ by, what }) => `${by}: ${what}`)).toEqual([
      'stopwatch: afterModel failed and was skipped: disk full',
      'stopwatch: afterTool failed and was skipped: disk full',
      'stopwatch: afterModel failed and was skipped: disk full',
    ]);
  });

  it('prints to stderr by default, through the current console', async () => {
    const watch = stopwatch();
    const log = vi.spyOn(console, 'log').mockImplementation(() => {});
    const error = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      await new Agent({ model: scriptedModel(['hi']), middleware: [watch] }).run('hi');
      expect(error).toHaveBeenCalledOnce();
      expect(log).not.toHaveBeenCalled();
    } finally {
      log.mockRestore();
      error.mockRestore();
    }
  });

  it.each([
    [{ log: 'stdout' }, 'Expected `log` to be a function, got "stdout".'],
    [{ clock: {} }, 'Expected `clock` to be an object with now(), got {}.'],
    [{ logger: () => {} }, 'Unknown option `logger` of stopwatch(). It takes: log, clock, name.'],
    [5, 'Expected `options` to be an object with log, clock, name for stopwatch(), got 5.'],
  ])('refuses %j', (options, message) => {
    expect(() => stopwatch(options as never)).toThrow(message);
  });
});
