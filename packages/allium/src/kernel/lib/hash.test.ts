import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson, Hash, hash, toolCallKey } from './hash.js';

describe('canonical', () => {
  it('writes a text exactly like JSON.stringify', () => {
    for (let code = 0; code < 0x300; code++) {
      const text = `a${String.fromCharCode(code)}b`;
      expect(canonicalJson(text)).toBe(JSON.stringify(text));
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => canonicalJson(text) === JSON.stringify(text)),
    );
  });

  it('sorts keys at every depth and leaves undefined out', () => {
    expect(canonicalJson({ b: [{ d: 1, c: undefined }], a: null })).toBe('{"a":null,"b":[{"d":1}]}');
    expect(canonicalJson([undefined, () => {}])).toBe('[null,null]');
  });

  it('takes dates and similar objects as their own JSON', () => {
    expect(canonicalJson({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });

  it('is JSON of the same value, whatever the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(canonicalJson(turned)).toBe(canonicalJson(value));
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe('hash', () => {
  it('is 22 characters, always the same', () => {
    expect(hash('')).toMatchInlineSnapshot(`"1aggevgbi2j1247s7v64qa"`);
    expect(hash('allium')).toMatchInlineSnapshot(`"0zkoo45wryv14pjupircn2"`);
  });

  it('differs for different text', () => {
    const texts = Array.from({ length: 20_000 }, (_, i) => `text ${i}`);
    expect(new Set(texts.map(hash)).size).toBe(texts.length);
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'binary' }),
        (a, b) => (hash(a) === hash(b)) === (a === b),
      ),
    );
  });

  it('is the same in one go and in pieces, and copies are independent', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        const begun = new Hash().text(a);
        expect(begun.copy().text(b).digest()).toBe(hash(a + b));
        expect(begun.digest()).toBe(hash(a));
      }),
    );
    expect(new Hash().text('a').number(-12).text('b').digest()).toBe(hash('a-12b'));
  });

  it('goes on with other hashes, in their order', () => {
    const of = (...texts: string[]) =>
      texts.reduce((made, text) => made.hash(new Hash().text(text)), new Hash()).digest();
    const lists = [[], ['a'], ['b'], ['a', 'b'], ['b', 'a'], ['ab'], ['a', 'a'], ['', 'a'], ['a', ''], ['']];
    expect(new Set(lists.map((list) => of(...list))).size).toBe(lists.length);
    const many = Array.from({ length: 20_000 }, (_, i) =>
      of(`text ${i % 150}`, `text ${Math.floor(i / 150)}`),
    );
    expect(new Set(many).size).toBe(many.length);
  });

  it('binds a call to its tool and arguments, whatever the order of keys', () => {
    expect(toolCallKey('pay', { a: 1, b: 2 })).toBe(toolCallKey('pay', { b: 2, a: 1 }));
    expect(toolCallKey('pay', { a: 1 })).not.toBe(toolCallKey('pay', { a: 2 }));
    expect(toolCallKey('pay', { a: 1 })).not.toBe(toolCallKey('refund', { a: 1 }));
  });
});
