/** State of a run belongs to whoever is called by its name, wherever that stands in the list after a resume. */
import { Agent, defineState, type Middleware, memoryStore, tool } from 'allium';
import * as middleware from 'allium/middleware';
import { callLimits } from 'allium/middleware/call-limits';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { middlewareArguments } from './middleware-arguments.js';

const input = z.object({});
const asks = tool({
  name: 'asks',
  description: '',
  input,
  execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
});
const look = tool({ name: 'look', description: '', input, execute: () => 'seen' });

/** Begins under one list, with one model call, and goes on under another; how many model calls it makes in all. */
async function calls(before: Middleware[], after: Middleware[], more: object = {}): Promise<number> {
  const store = memoryStore();
  const agent = (list: Middleware[], script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ model: scriptedModel(script), tools: [asks, look], store, middleware: list });
  const { pending } = await agent(before, [toolCalls({ name: 'asks' })])
    .session('s')
    .run('go');
  const looks = Array.from({ length: 60 }, () => toolCalls({ name: 'look' }));
  const { turns } = await agent(after, [...looks, text('done')])
    .session('s')
    .resume({ answers: { [pending[0]!.id]: { type: 'approve' } }, ...more });
  return turns;
}

const three = (name?: string) => callLimits({ modelCalls: 3, ...(name && { name }) });
const fifty = (name?: string) => callLimits({ modelCalls: 50, ...(name && { name }) });

describe('a run that goes on under another list', () => {
  it.each([
    ['with one more before it', () => [fifty(), three()]],
    ['with one more after it', () => [three(), fifty()]],
  ])('is refused where it is not clear whose its state is: %s', async (_, after) => {
    await expect(calls([three()], after())).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('Give each instance a `name` of its own'),
    });
    expect(await calls([three()], [three(), fifty()], { allowPlanChange: true })).toBe(3);
  });

  it('is refused with one fewer', async () => {
    await expect(calls([three(), fifty()], [three()])).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
  });

  it('has its state where the name is', async () => {
    expect(await calls([three()], [fifty('more'), three()])).toBe(3);
    expect(await calls([three()], [three(), fifty('more')])).toBe(3);
    expect(await calls([three('a'), fifty('b')], [fifty('b'), three('a')])).toBe(3);
    expect(await calls([three('a')], [fifty('b'), fifty('c'), three('a')])).toBe(3);
  });

  it('goes on with several of a kind when there are as many as before', async () => {
    expect(await calls([fifty(), three()], [fifty(), three()])).toBe(3);
  });

  it('is refused where several of a kind that count different things have changed places', async () => {
    const looks = () => callLimits({ perTool: { look: 60 } });
    expect(await calls([looks(), three()], [looks(), three()])).toBe(3);
    await expect(calls([looks(), three()], [three(), looks()])).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('"call-limits#2"'),
    });
    expect(await calls([callLimits({ modelCalls: 3, toolCalls: 9 })], [three()])).toBe(3);
  });

  it('is refused where those without a name have changed places', async () => {
    const owning = (cell: string): Middleware => {
      const count = defineState({ name: cell, scope: 'run', initial: 0 });
      return { state: [count], beforeModel: (ctx) => ctx.state.update(count, (n) => n + 1) };
    };
    await expect(calls([owning('a'), owning('b')], [owning('b'), owning('a')])).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('"middleware-1", "middleware-2"'),
    });
    await expect(calls([owning('a'), three()], [owning('a'), three()])).resolves.toBe(3);
  });
});

const HELPERS = new Set(
  'ask auditHead cacheKey deny fileSpill isTransient mayFallBack verifyAudit localMemory sqliteMemory memorySpill'.split(
    ' ',
  ),
);
const factories = Object.entries(middleware).filter(
  ([name, one]) => typeof one === 'function' && !HELPERS.has(name),
) as [string, (options: object) => Middleware][];

describe.each(factories)('%s()', (name, make) => {
  const kebab = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const [options] = (middlewareArguments[kebab]?.() ?? [{}]) as [object];

  it('takes a name', () => {
    expect(make({ ...options, name: 'mine' }).name).toBe('mine');
  });

  it('refuses what is no name', () => {
    for (const wrong of ['', 5, null])
      expect(() => make({ ...options, name: wrong })).toThrow('Expected `name` to be non-empty text');
  });
});
