import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MostlyOne } from './mostly-one.js';

const id = fc.constantFrom('a', 'b', 'c');
const step = fc.oneof(
  fc.record({ type: fc.constant('set' as const), id, value: fc.nat() }),
  fc.record({ type: fc.constant('delete' as const), id, value: fc.constant(0) }),
);

describe('a map of mostly one', () => {
  it('holds what a map holds, whatever is set and deleted', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const [made, wanted] = [new MostlyOne<number>(), new Map<string, number>()];
        for (const { type, id, value } of steps) {
          if (type === 'set') made.set(id, value);
          else made.delete(id);
          if (type === 'set') wanted.set(id, value);
          else wanted.delete(id);
          for (const one of ['a', 'b', 'c']) {
            expect(made.get(one)).toBe(wanted.get(one));
            expect(made.has(one)).toBe(wanted.has(one));
          }
          expect(new Map(made.entries())).toEqual(wanted);
        }
      }),
    );
  });
});
