import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Lru } from './lru.js';

describe('the store in memory', () => {
  it('keeps the entries used last, whatever is read, written and deleted in between', () => {
    const key = fc.integer({ min: 0, max: 9 }).map(String);
    const step = fc.tuple(fc.constantFrom('get', 'set', 'delete'), key);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 600 }), (max, steps) => {
        const lru = new Lru<number>(max);
        // The same with a list, the oldest first.
        let expected: [string, number][] = [];
        for (const [n, [what, name]] of steps.entries()) {
          const found = expected.find(([one]) => one === name);
          const others = expected.filter(([one]) => one !== name);
          if (what === 'get') {
            expect(lru.get(name)).toBe(found?.[1]);
            if (found) expected = [...others, found];
          } else if (what === 'set') {
            lru.set(name, n);
            expected = [...others, [name, n] as [string, number]].slice(-max);
          } else {
            lru.delete(name);
            expected = others;
          }
        }
        for (const [name, value] of expected) expect(lru.get(name)).toBe(value);
      }),
    );
  });

  it('uses no more memory however often it is read', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const store = new Lru<number>(10);
    for (let i = 0; i < 5; i++) store.set(`key ${i}`, i);
    const ask = () => {
      for (let i = 0; i < 200_000; i++) store.get(`key ${i % 5}`);
      gc();
      return process.memoryUsage().heapUsed;
    };
    ask();
    const before = ask();
    expect(ask() - before).toBeLessThan(1_000_000);
  });
});
