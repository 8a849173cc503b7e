import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseAssembler } from '../../kernel/stream/assemble.js';
import { type ScriptStep, toStep } from '../scripted-model.js';
import { chunkings, generator, rechunked, unchunked } from './chunkings.js';
import { WORDY } from './scenarios.js';

function content(step: ScriptStep): unknown {
  const assembler = new ResponseAssembler('test');
  for (const part of step.parts) if (part !== 'tick') assembler.add(part);
  return assembler.response();
}

describe('chunkings', () => {
  it('cut any text into pieces that join to it again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer(), (text, seed) => {
        for (const { name, cut } of chunkings(seed, 5)) expect(cut(text).join(''), name).toBe(text);
      }),
    );
  });

  it('are the same for the same seed, and differ for another', () => {
    const cuts = (seed: number) =>
      chunkings(seed, 10).map(({ cut }) => cut('x'.repeat(200)).map(({ length }) => length));
    expect(cuts(1)).toEqual(cuts(1));
    expect(cuts(1)).not.toEqual(cuts(2));
  });

  it('do not change the content of an answer, even an empty one', () => {
    const scenarios = [
      ...WORDY,
      { name: 'empty', answers: ['', toStep([{ type: 'tool-call', id: 'a', name: 'b', arguments: '' }])] },
    ];
    for (const scenario of scenarios) {
      const expected = scenario.answers.map((answer) => content(toStep(answer)));
      const whole = unchunked(scenario).answers.map((answer) => content(toStep(answer)));
      expect(whole).toEqual(expected);
      for (const chunking of chunkings(1, 5)) {
        expect(rechunked(scenario, chunking).answers.map((answer) => content(toStep(answer)))).toEqual(
          expected,
        );
      }
    }
  });

  it('join the pieces of an answer', () => {
    const scenario = { name: 'pieces', answers: [toStep('')] };
    const parts = [
      { type: 'text', text: 'a' },
      'tick',
      { type: 'text', text: 'b' },
      { type: 'finish', reason: 'stop' },
    ] as const;
    expect(unchunked({ ...scenario, answers: [{ parts }] }).answers).toEqual([
      {
        parts: [
          { type: 'text', text: 'ab' },
          { type: 'finish', reason: 'stop' },
        ],
      },
    ]);
  });
});

describe('generator', () => {
  it('gives numbers from 0 up to 1 that are spread out', () => {
    const next = generator(7);
    const numbers = Array.from({ length: 1000 }, next);
    expect(numbers.every((n) => n >= 0 && n < 1)).toBe(true);
    const mean = numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
    expect(mean).toBeCloseTo(0.5, 1);
  });
});
