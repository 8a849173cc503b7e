// Promises that fail and that nobody awaits. Handed to Allium, they must not end the process.

import {
  Agent,
  defineState,
  type Middleware,
  type ModelContext,
  type Tool,
  type ToolContext,
  tool,
} from 'allium';
import { observability } from 'allium/middleware/observability';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

const failing = (): never => Promise.reject(new Error('nobody awaits this')) as never;
const input = z.object({});
const job = (execute: (input: object, ctx: ToolContext) => unknown): Tool =>
  tool({ name: 'job', description: 'Works.', input, execute });

const live = defineState<unknown>({ name: 'live', scope: 'run', durable: false, create: failing });
const scratch = defineState<unknown>({ name: 'scratch', scope: 'call', initial: undefined });

const before = (beforeModel: (ctx: ModelContext) => void): Middleware => ({
  name: 'odd',
  state: [live, scratch],
  beforeModel,
});

const middleware: Record<string, Middleware> = {
  'measures and spans': observability({
    counter: failing,
    histogram: failing,
    span: () => ({ end: failing, event: failing }),
    content: true,
  }),
  'the start of a span': observability({ span: failing }),
  'create of a live cell': before((ctx) => void ctx.state.get(live)),
  'set of a live cell': before((ctx) => ctx.state.set(live, failing())),
  'a call cell': before((ctx) => ctx.state.set(scratch, failing())),
  'ctx.emit()': before((ctx) => ctx.emit('told', failing())),
  'an object in ctx.emit()': before((ctx) => ctx.emit('told', { deep: [failing(), failing()] })),
  'the reason of ctx.stop()': before((ctx) => ctx.stop('stopped', failing())),
  'ctx.response': before((ctx) => {
    ctx.response = failing();
  }),
  'ctx.forceContinue': before((ctx) => {
    ctx.forceContinue = failing();
  }),
  'ctx.args': {
    name: 'odd',
    beforeTool: (ctx) => {
      ctx.args = failing();
    },
  },
  'ctx.result': {
    name: 'odd',
    beforeTool: (ctx) => void Object.assign(ctx, { skip: true, result: failing() }),
  },
  'details of a question': {
    name: 'odd',
    suspends: true,
    beforeToolCall: () => ({ ask: { title: 'Well?', details: failing() } }),
  },
  'details of a result': { name: 'odd', afterToolCall: () => ({ details: failing() }) },
  'a list that a hook returns': { name: 'odd', onRunEnd: () => [failing()] },
  'an object that a hook returns': {
    name: 'odd',
    afterModelResponse: () => ({ injectMessages: [failing()] }),
  },
};

const tools: Record<string, Tool> = {
  'ctx.update()': job((_, ctx) => void ctx.update(failing())),
  'details of ctx.update()': job((_, ctx) => void ctx.update('half', { left: failing() })),
  'an object that a tool returns': job(() => ({ rows: failing() })),
  'a list that a tool returns': job(() => [1, failing()]),
};

describe('a failing promise does not end the process', () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  beforeEach(() => {
    unhandled.length = 0;
    process.on('unhandledRejection', note);
  });
  afterEach(() => {
    process.off('unhandledRejection', note);
  });

  const cases = [
    ...Object.entries(middleware).map(([where, odd]) => [where, [odd], job(() => 'Done.')] as const),
    ...Object.entries(tools).map(([where, odd]) => [where, [], odd] as const),
  ];
  it.each(cases)('in %s', async (_, list, odd) => {
    const agent = () =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'job' }), text('Done.')]),
        tools: [odd],
        middleware: [...list],
      });
    await agent()
      .run('Go.')
      .catch(() => {});
    await collect(agent().stream('Go.')).catch(() => {});
    // Node reports them after a turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(unhandled).toEqual([]);
  });

  it('is still there for whoever awaits the cell', async () => {
    let seen: unknown;
    const waits: Middleware = {
      name: 'waits',
      state: [live],
      beforeModel: async (ctx) => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        seen = await (ctx.state.get(live) as Promise<unknown>).catch((error: Error) => error.message);
      },
    };
    await new Agent({ model: scriptedModel(['Hi.']), middleware: [waits] }).run('Hi');
    expect(seen).toBe('nobody awaits this');
    expect(unhandled).toEqual([]);
  });
});

it('ctx.forceContinue counts by its truth, and a promise is an error', async () => {
  const turns = async (value: unknown) => {
    const force: Middleware = {
      name: 'force',
      afterModel: (ctx) => {
        if (ctx.turn === 1) ctx.forceContinue = value as boolean;
      },
    };
    return (await new Agent({ model: scriptedModel(['one', 'two']), middleware: [force] }).run('Go.')).turns;
  };
  expect(await Promise.all([turns(1), turns('yes'), turns(0), turns(undefined)])).toEqual([2, 2, 1, 1]);
  await expect(turns(Promise.resolve(false))).rejects.toThrow(
    'Expected `ctx.forceContinue` to be true or false',
  );
});
