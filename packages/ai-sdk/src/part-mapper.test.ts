import type { ModelPart } from 'allium';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { AnyPart } from '../test/fakes.js';
import { block, call, finish } from '../test/fakes.js';
import { PartMapper } from './part-mapper.js';

function mapped(parts: readonly AnyPart[]): ModelPart[] {
  const emitted: ModelPart[] = [];
  const mapper = new PartMapper({ tools: new Set(['look']), acceptUnfinished: false }, (part) =>
    emitted.push(part),
  );
  for (const part of parts) mapper.take(part);
  return emitted;
}

/** Parts of several lists in any order that keeps each list's own. */
function interleaved(lists: readonly AnyPart[][], picks: readonly number[]): AnyPart[] {
  const left = lists.map((list) => [...list]);
  const mixed: AnyPart[] = [];
  for (const pick of picks) {
    const open = left.filter((list) => list.length > 0);
    if (open.length > 0) mixed.push(open[pick % open.length]!.shift());
  }
  return [...mixed, ...left.flat()];
}

it('puts every block and call together again, however they are cut and mixed', () => {
  const pieces = fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 6 });
  const blocks = fc.array(fc.tuple(fc.constantFrom('text' as const, 'reasoning' as const), pieces), {
    maxLength: 5,
  });
  const inputs = fc.array(fc.json(), { maxLength: 3 });
  fc.assert(
    fc.property(blocks, inputs, fc.array(fc.nat()), (texts, jsons, picks) => {
      const lists = [
        ...texts.map(([type, given], i) => block(type, String(i), given)),
        ...jsons.map((json, i) => call(`c${i}`, 'look', json)),
      ];
      const emitted = mapped([...interleaved(lists, picks), finish('v3')]);
      const whole = new Map<unknown, string>();
      for (const part of emitted) {
        if (part.type === 'text' || part.type === 'thinking')
          whole.set(part.block, (whole.get(part.block) ?? '') + part.text);
        if (part.type === 'tool-call' || part.type === 'tool-call-delta')
          whole.set(part.id, (whole.get(part.id) ?? '') + part.arguments);
      }
      const expected = [...texts.map(([, given]) => given.join('')).filter((text) => text !== ''), ...jsons];
      expect([...whole.values()].sort()).toEqual(expected.sort());
      expect(emitted.filter(({ type }) => type === 'finish')).toHaveLength(1);
      expect(emitted.at(-1)?.type).toBe('finish');
    }),
  );
});
