import { inspect } from 'node:util';
import { Agent, defineMiddleware, tool } from 'allium';
import { scriptedModel, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

async function printed(print: (ctx: object) => string): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  const note = (where: string, ctx: object): void => {
    seen[where] ??= print(ctx);
  };
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ at: z.string() }),
    execute(_, ctx) {
      note('execute', ctx);
      return 'seen';
    },
  });
  const all = defineMiddleware({
    name: 'prints',
    beforeRun: (ctx) => note('run', ctx),
    beforeModel: (ctx) => note('model', ctx),
    afterTool: (ctx) => note('tool', ctx),
    shouldStopAfterTurn: (ctx) => note('turn', ctx),
    afterRun: (ctx) => note('end', ctx),
  });
  const model = scriptedModel([toolCalls({ name: 'look', args: { at: 'sky' } }), 'Blue.']);
  await new Agent({ model, name: 'sky', tools: [look], middleware: [all] }).run('Which colour?', {
    metadata: {},
  });
  return seen;
}

it('a context can be written as JSON: its fields, and not the run behind them', async () => {
  const seen = await printed((ctx) => JSON.stringify(ctx));
  const read = Object.fromEntries(Object.entries(seen).map(([where, text]) => [where, JSON.parse(text)]));
  expect(read.run).toMatchObject({ seam: 'run', agent: 'sky', turn: 0, messages: [{ role: 'user' }] });
  expect(read.model).toMatchObject({ seam: 'model', model: 'test/scripted', tools: ['look'], attempt: 1 });
  expect(read.execute).toMatchObject({ seam: 'tool', tool: 'look', args: { at: 'sky' } });
  expect(read.tool).toMatchObject({ result: { content: [{ type: 'text', text: 'seen' }] }, isError: false });
  expect(read.turn).toMatchObject({
    message: { role: 'assistant' },
    toolResults: [{ role: 'tool' }],
    more: true,
  });
  expect(read.end).toMatchObject({ result: { status: 'done', text: 'Blue.' } });
  for (const one of Object.values(read))
    expect(Object.keys(one as object).join()).not.toMatch(/_|history|plan|signal/);
});

it('console.log prints the same', async () => {
  const seen = await printed((ctx) => inspect(ctx, { depth: 0 }));
  expect(seen.model).toMatch(/^\{\n {2}seam: 'model',\n {2}agent: 'sky',/);
  expect(Object.values(seen).filter((text) => text.includes('_run'))).toEqual([]);
});
