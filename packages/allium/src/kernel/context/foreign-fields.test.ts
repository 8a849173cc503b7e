import { Agent, defineMiddleware, type Middleware, textOf, tool } from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

// These names are compile errors in TypeScript.
type AnyContext = any;

const set = (of: AnyContext, name: string): void => {
  of[name] = 1;
};
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const run = (hooks: Middleware) =>
  new Agent({
    model: scriptedModel([toolCalls({ name: 'look' }), 'done']),
    tools: [look],
    middleware: [defineMiddleware({ name: 'theirs', ...hooks })],
  }).run('Look.');

describe('a field of a context that is called otherwise elsewhere', () => {
  it.each<[string, (ctx: AnyContext) => void, string]>([
    ['ctx.provider', (ctx) => set(ctx, 'provider'), '`ctx.model`'],
    ['ctx.force_continue', (ctx) => set(ctx, 'force_continue'), '`ctx.forceContinue`'],
    ['ctx.extra', (ctx) => set(ctx.extra, 't0'), '`ctx.metadata`'],
    ['ctx.system_instructions', (ctx) => ctx.system_instructions.length, '`ctx.systemPrompt`'],
    ['ctx.abortSignal', ({ abortSignal }) => abortSignal, '`ctx.signal`'],
    [
      'ctx.state.scratch',
      (ctx) => set(ctx.state.scratch, 'seen'),
      'a cell of `defineState()`, read with `ctx.state.get(cell)`',
    ],
    ['ctx.state.step', (ctx) => ctx.state.step, '`ctx.turn`'],
    ['ctx.state.usage', (ctx) => ctx.state.usage.total_tokens, '`ctx.usage`'],
  ])('%s is an error that says what it is here', async (field, use, here) => {
    const error = await run({ beforeModel: (ctx) => void use(ctx) }).catch((raised) => raised);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', cause: { data: { field } } });
    expect(error.message).toBe(
      `The run failed: There is no \`${field}\`. Here that is ${here}. (in beforeModel of "theirs")`,
    );
  });

  it('does not go unnoticed around a tool or in the tool itself', async () => {
    const told = async (hooks: Middleware) => textOf((await run(hooks)).messages[2]!);
    expect(await told({ beforeTool: (ctx: AnyContext) => set(ctx, 'timeout_s') })).toContain(
      'There is no `ctx.timeout_s`. Here that is `ctx.timeoutMs`, in milliseconds.',
    );
    expect(await told({ afterToolCall: (ctx: AnyContext) => void ctx.is_error })).toContain('`ctx.isError`');
    const own = tool({ ...look, execute: (_, { abortSignal }: AnyContext) => String(abortSignal) });
    const model = scriptedModel([toolCalls({ name: 'look' }), 'done']);
    const { messages } = await new Agent({ model, tools: [own] }).run('Look.');
    expect(textOf(messages[2]!)).toContain('There is no `ctx.abortSignal`. Here that is `ctx.signal`.');
  });

  it('is in no list of fields', async () => {
    const keys: string[] = [];
    await run({
      beforeModel(ctx) {
        for (const key in ctx) keys.push(key);
        keys.push(...Object.keys({ ...ctx.state }));
      },
    });
    expect(keys).not.toContain('provider');
    expect(keys).not.toContain('scratch');
  });
});
