import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelPart } from '../kernel/messages/model.js';
import { ResponseAssembler } from '../kernel/stream/assemble.js';
import { cleaning, withIds } from './clean.js';
import { partsOfStored, refitted, storedParts } from './pieces.js';

const ids = { runId: 'r_0123456789abcdef', sessionId: 's_0123456789abcdef' };
const clean = cleaning({}).answer(ids);

describe('refitted', () => {
  it.each<[string[], string, string[]]>([
    [['ab', 'cd'], 'abcd', ['ab', 'cd']],
    [['ab', 'cd', 'ef'], 'abXef', ['ab', 'X', 'ef']],
    [['abc', 'def', 'ghi'], 'abXYhi', ['abXY', '', 'hi']],
    [['ab', 'cd'], 'ab', ['ab', '']],
    [['ab', 'cd'], 'abcdef', ['ab', 'cdef']],
    [['aa', 'aa'], 'aaa', ['aa', 'a']],
    [['', 'ab'], 'X', ['', 'X']],
  ])('%j for %j is %j', (pieces, to, expected) => {
    expect(refitted(pieces, to)).toEqual(expected);
  });

  it('always gives the new text, in the same number of pieces', () => {
    const piece = fc.string({ unit: fc.constantFrom('a', 'b', '🧅', ' '), maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 6 }),
        fc.string({ unit: fc.constantFrom('a', 'b', 'X'), maxLength: 9 }),
        (pieces, to) => {
          const made = refitted(pieces, to);
          expect(made.join('')).toBe(to);
          expect(made).toHaveLength(pieces.length);
        },
      ),
    );
  });
});

describe('a stored stream', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 6 });
  const block = fc.option(fc.constantFrom('x', 1), { nil: undefined });
  const parts = fc.array(
    fc.oneof(
      fc.record({ type: fc.constant('text' as const), text, block }),
      fc.record({ type: fc.constant('thinking' as const), text, block }),
      fc.record({
        type: fc.constant('thinking' as const),
        text,
        signature: fc.constant('sig'),
        metadata: fc.constant({ a: 1 }),
      }),
      fc.record({ type: fc.constant('provider' as const), kind: fc.constant('k'), value: fc.jsonValue() }),
      fc.record({
        type: fc.constant('call' as const),
        pieces: fc.array(text, { minLength: 1, maxLength: 4 }),
      }),
    ),
    { maxLength: 8 },
  );

  it('streams again exactly as it came', () => {
    fc.assert(
      fc.property(parts, (given) => {
        const stream = JSON.parse(
          JSON.stringify(
            given.flatMap((one, n): ModelPart[] => {
              if (one.type !== 'call') return [one];
              const [first, ...more] = one.pieces;
              return [
                { type: 'tool-call', id: `c${n}`, name: 'f', arguments: first! },
                ...more.map((piece) => ({ type: 'tool-call-delta', id: `c${n}`, arguments: piece }) as const),
              ];
            }),
          ),
        ) as ModelPart[];
        const assembler = new ResponseAssembler('test');
        const heard = stream.map((part) => ({ part, block: assembler.add(part) }));
        const stored = JSON.parse(JSON.stringify(storedParts(heard, assembler.content, clean)));
        expect([...partsOfStored(stored, withIds(ids))]).toEqual(stream);
      }),
    );
  });

  it('has the ids of the run it is played in, each in one piece', () => {
    const assembler = new ResponseAssembler('test');
    const stream: ModelPart[] = ['in r_0123', '456789abcdef', ' now'].map((piece) => ({
      type: 'text',
      text: piece,
    }));
    const heard = stream.map((part) => ({ part, block: assembler.add(part) }));
    const stored = storedParts(heard, assembler.content, clean);
    expect(stored).toEqual([{ type: 'text', text: 'in {{runId}} now', cuts: [12] }]);
    expect([...partsOfStored(stored, withIds({ runId: 'R', sessionId: 'S' }))]).toEqual([
      { type: 'text', text: 'in R' },
      { type: 'text', text: ' now' },
    ]);
  });
});
