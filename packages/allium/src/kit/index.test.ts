import { Agent, defineMiddleware, type ModelContext, type RunContext, tool } from 'allium';
import * as kit from 'allium/kit';
import {
  allowModelTime,
  callKey,
  childResult,
  estimateInputTokens,
  guardedMessages,
  isTellable,
  type MeteredUsage,
  meterUsage,
  nextWithProgress,
  nextWithTool,
  objectInput,
  ResponseAssembler,
  responseParts,
  runChild,
  safeErrorMessage,
  stopRunAs,
} from 'allium/kit';
import { failWith, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';

/** An input without properties. */
const nothing = objectInput<object>({});
const noNumbers = defineMiddleware({
  name: 'no-numbers',
  guard: {
    on: ['request', 'output', 'tool-result'],
    find: (said) =>
      [...said.matchAll(/\d+/g)].map(({ index, 0: { length } }) => ({ start: index, end: index + length })),
  },
});

describe('allium/kit', () => {
  it('exports functions and classes under names of its own', () => {
    const values = Object.entries(kit);
    expect(values.length).toBeGreaterThan(50);
    for (const [name, value] of values)
      expect(value, name).toBeTypeOf(name === 'kinds' ? 'object' : 'function');
  });

  it('has a key for each model call: one for all its layers and attempts', async () => {
    const keys: object[] = [];
    const look = (name: string) =>
      defineMiddleware({ name, beforeModel: (ctx) => void keys.push(callKey(ctx)) });
    const again = defineMiddleware({ name: 'again', wrapModel: (_, next) => next().catch(() => next()) });
    const model = scriptedModel([failWith(new Error('down')), toolCalls({ name: 'a' }), text('Done.')]);
    const a = tool({ name: 'a', description: 'A.', input: nothing, execute: () => 'a' });
    await new Agent({ model, tools: [a], middleware: [look('outer'), again, look('inner')] }).run('Go');
    const [outer, first, second, ...next] = keys;
    expect(new Set([outer, first, second]).size).toBe(1);
    expect(new Set(next).size).toBe(1);
    expect(next).not.toContain(outer);
  });

  it('counts what sub-agents and other middleware use, and stops a run in the name of the one that counts', async () => {
    const used: MeteredUsage[] = [];
    const most = (limit: number) =>
      defineMiddleware({
        name: 'most',
        beforeRun(ctx: RunContext) {
          const admit = (call: ModelContext) =>
            used.length < limit ? undefined : stopRunAs('most', call, 'max_tokens', 'That is enough.');
          if (ctx.depth === 0) meterUsage(ctx, used, { list: used, admit });
        },
      });
    const helper = new Agent({ name: 'helper', model: scriptedModel(['Helped.']) });
    const help = tool({
      name: 'help',
      description: 'Helps.',
      input: nothing,
      execute: async (_, ctx) => childResult(await runChild(ctx, { agent: helper, input: 'Help.' })),
    });
    const model = scriptedModel([toolCalls({ name: 'help' }), text('Never said.')]);
    const result = await new Agent({ model, tools: [help], middleware: [most(2)] }).run('Go');
    expect(used.map((one) => one.model)).toEqual([model, helper.model]);
    expect(result.stop).toMatchObject({ reason: 'max_tokens', message: 'That is enough.', by: 'most' });
  });

  it('lets a layer give a model more time than it has by default', async () => {
    const clock = fakeClock();
    const patient = defineMiddleware({
      name: 'patient',
      beforeModel: (ctx) => allowModelTime(ctx, { totalMs: 3_600_000, idleMs: 3_600_000 }),
    });
    const agent = new Agent({ model: scriptedModel([hang()]), clock, middleware: [patient] });
    let over = false;
    const run = agent.run('Go').finally(() => {
      over = true;
    });
    run.catch(() => {});
    await clock.advance(600_000);
    expect(over).toBe(false);
    await clock.advance(3_600_000);
    await expect(run).rejects.toMatchObject({ code: 'MODEL_TIMEOUT' });
  });

  it('calls another tool in the place of one, and hears what it shows', async () => {
    const shown: unknown[] = [];
    const real = tool({ name: 'send', description: 'Sends.', input: nothing, execute: () => 'Sent.' });
    const dry = tool({
      name: 'send',
      description: 'Sends nothing.',
      input: nothing,
      async execute(_, ctx) {
        await ctx.update('almost');
        return 'Not sent.';
      },
    });
    const dryRun = defineMiddleware({
      name: 'dry-run',
      wrapTool: (ctx, next) => nextWithTool(ctx, dry, next),
    });
    const hear = defineMiddleware({
      name: 'hear',
      wrapTool: (ctx, next) => nextWithProgress(ctx, (partial) => void shown.push(partial), next),
    });
    const model = scriptedModel([toolCalls({ name: 'send' }), text('Done.')]);
    await new Agent({ model, tools: [real], middleware: [hear, dryRun] }).run('Send');
    expect(shown).toEqual(['almost']);
    expect(JSON.stringify(model.requests[1])).toContain('Not sent.');
  });

  it('says what may be recorded when guards judge', async () => {
    const seen: unknown[] = [];
    const sink = defineMiddleware({
      name: 'sink',
      sink: true,
      async beforeModel(ctx) {
        seen.push((await guardedMessages(ctx))[0]?.content[0]);
        seen.push(isTellable({ a: ['fine'] }, ctx), isTellable({ a: ['room 12'] }, ctx));
        seen.push(safeErrorMessage(new TypeError('no'), ctx), safeErrorMessage(new TypeError('no 12'), ctx));
        seen.push(estimateInputTokens(ctx) > 0);
      },
    });
    await new Agent({ model: scriptedModel(['Hi.']), middleware: [noNumbers, sink] }).run('Room 12?');
    expect(seen).toEqual([{ type: 'text', text: 'Room [redacted]?' }, true, false, 'no', 'TypeError', true]);
  });

  it('takes a response apart and puts it together again', () => {
    const usage = { inputTokens: 1, outputTokens: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3 };
    const response = {
      role: 'assistant' as const,
      content: [
        { type: 'thinking' as const, text: 'Hm.' },
        { type: 'text' as const, text: 'Hi.' },
        { type: 'tool-call' as const, id: '1', name: 'a', arguments: '{}' },
      ],
      usage,
      stopReason: 'tool-calls' as const,
      model: 'a model',
    };
    const assembler = new ResponseAssembler('a model');
    for (const part of responseParts(response)) assembler.add(part);
    expect(assembler.response()).toEqual(response);
  });
});

describe('what contexts tell everybody', () => {
  it('notes what a middleware did in the result, under its name', async () => {
    const noting = defineMiddleware({ name: 'noting', beforeRun: (ctx) => ctx.note('did something') });
    const { changes } = await new Agent({ model: scriptedModel(['Hi.']), middleware: [noting] }).run('Hello');
    expect(changes).toEqual([{ turn: 0, by: 'noting', what: 'did something' }]);
    const wrong = defineMiddleware({ name: 'wrong', beforeRun: (ctx) => ctx.note('') });
    const run = new Agent({ model: scriptedModel(['Hi.']), middleware: [wrong] }).run('Hello');
    await expect(run).rejects.toMatchObject({ cause: { code: 'INVALID_OPTION' } });
  });

  it('takes out of a note what guards find in it', async () => {
    const noting = defineMiddleware({ name: 'noting', beforeRun: (ctx) => ctx.note('went to room 12') });
    const agent = new Agent({ model: scriptedModel(['Hi.']), middleware: [noNumbers, noting] });
    const { changes } = await agent.run('Hello');
    expect(changes).toEqual([{ turn: 0, by: 'noting', what: 'went to room [redacted]' }]);
  });

  it('shows the output that was set', async () => {
    const outputs: unknown[] = [];
    const output = defineMiddleware({
      name: 'output',
      afterModelResponse(_, ctx) {
        outputs.push(ctx.output);
        ctx.setOutput(42);
        return undefined;
      },
      onRunEnd: (ctx) => void outputs.push(ctx.output),
    });
    await new Agent({ model: scriptedModel(['Hi.']), middleware: [output] }).run('Hello');
    expect(outputs).toEqual([undefined, 42]);
  });
});
