import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RingQueue } from './ring-queue.js';

describe('RingQueue', () => {
  it('gives back what was put in, in order, like an array', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.integer()), { maxLength: 300 }), (steps) => {
        const fifo = new RingQueue<number>();
        const array: number[] = [];
        for (const step of steps) {
          if (step === null) expect(fifo.shift()).toBe(array.shift());
          else {
            fifo.push(step);
            array.push(step);
          }
          expect(fifo.length).toBe(array.length);
        }
        while (array.length > 0) expect(fifo.shift()).toBe(array.shift());
        expect(fifo.shift()).toBeUndefined();
      }),
    );
  });

  it('is empty after clear()', () => {
    const fifo = new RingQueue<number>();
    for (let i = 0; i < 100; i++) fifo.push(i);
    fifo.clear();
    expect([fifo.length, fifo.shift()]).toEqual([0, undefined]);
    fifo.push(1);
    expect(fifo.shift()).toBe(1);
  });
});
