import { Agent, tool } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { valueChanges } from './value-changes.js';

describe('the difference between two values', () => {
  it('names what differs, and nothing else', () => {
    const shared = { deep: [1, 2, 3] };
    expect(valueChanges({ shared, a: 1, gone: true }, { shared, a: 2, more: null })).toEqual([
      { path: ['a'], from: 1, to: 2 },
      { path: ['gone'], from: true },
      { path: ['more'], to: null },
    ]);
    expect(valueChanges([1, [2]], [1, [3, 4]])).toEqual([
      { path: [1, 0], from: 2, to: 3 },
      { path: [1, 1], to: 4 },
    ]);
    expect(valueChanges({ a: undefined, b: 1 }, { b: 1 })).toEqual([]);
  });

  it('compares only own properties', () => {
    expect(valueChanges({}, { constructor: 'of houses', toString: 1 })).toEqual([
      { path: ['constructor'], to: 'of houses' },
      { path: ['toString'], to: 1 },
    ]);
  });

  it('copies what differs, so that nobody can change it later', () => {
    const to = { list: ['one'] };
    const changes = valueChanges({}, { to })!;
    to.list.push('two');
    expect(changes).toEqual([{ path: ['to'], to: { list: ['one'] } }]);
  });

  it('is unknown where something that differs is not JSON', () => {
    const circle: Record<string, unknown> = {};
    circle.own = circle;
    const other: Record<string, unknown> = {};
    other.own = other;
    for (const [before, after] of [
      [{}, { at: new Date(0) }],
      [{ at: new Date(0) }, { at: new Date(1) }],
      [{ a: 1 }, { a: 2, toJSON: () => 3 }],
      [[1], [1, undefined]],
      [{ a: 1 }, { a: Number.NaN }],
      [circle, other],
    ])
      expect(valueChanges(before, after)).toBeUndefined();
  });
});

it('a value that is not JSON is shown as JSON would write it', async () => {
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'look', args: {} }), text('done')]),
    tools: [tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' })],
    trace: 'changes',
    middleware: [
      {
        name: 'dating',
        async wrapTool(_ctx, next) {
          const details = { at: new Date(0), list: ['one'] };
          return { ...(await next()), details };
        },
      },
    ],
  });
  const { trace } = await agent.run('go');
  const record = trace!.records.find(({ by }) => by === 'dating');
  expect(record?.changes?.result).toEqual([
    { path: ['details'], to: { at: '1970-01-01T00:00:00.000Z', list: ['one'] } },
  ]);
});
