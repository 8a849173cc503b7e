import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PartialJson } from './partial-json.js';

function values(...pieces: string[]): unknown[] {
  const json = new PartialJson();
  const said: unknown[] = [];
  for (const piece of pieces) {
    json.add(piece);
    const one = json.nextValue();
    if (one) said.push(one.value);
  }
  return said;
}

describe('PartialJson', () => {
  it('shows strings as far as they go, and the rest when it is complete', () => {
    expect(
      values('{"na', 'me":', '"Bo', 'nn","people":33', '5000', ',"capital":fal', 'se,"parts":["A', '"]}'),
    ).toEqual([
      {},
      { name: 'Bo' },
      { name: 'Bonn' },
      { name: 'Bonn', people: 335000 },
      { name: 'Bonn', people: 335000, capital: false, parts: ['A'] },
    ]);
  });

  it('never shows half an escape or half a character', () => {
    expect(values('["a\\', 'n\\u00', 'e4\\ud83d', '\\ude00', '\ud83d', '\ude00"]')).toEqual([
      ['a'],
      ['a\n'],
      ['a\nä'],
      ['a\nä😀'],
      ['a\nä😀😀'],
    ]);
  });

  it('skips a fence, and what follows the value', () => {
    expect(values('``', '`json\n', '{"a":1', '}\n``', '` {"b":2}')).toEqual([{}, { a: 1 }]);
  });

  it('says nothing about what is not JSON', () => {
    expect(values('Hello', ', world', ' {')).toEqual([]);
    expect(values('}', ']', '"')).toEqual([]);
    expect(values('{"a" 5,', '}')).toEqual([]);
  });

  it('reaches the whole value however the text is cut, and every value on the way is a beginning of it', () => {
    void fc.assert(
      fc.property(fc.json(), fc.array(fc.nat(), { maxLength: 20 }), (text, at) => {
        const cuts = [...new Set(at.map((one) => one % (text.length + 1)))].sort((a, b) => a - b);
        const pieces = [0, ...cuts].map((from, i) => text.slice(from, [...cuts, text.length][i]));
        const all = values(...pieces);
        const whole: unknown = JSON.parse(text);
        // A number or a word alone never shows: nothing tells where it ends.
        if (typeof whole !== 'object' && typeof whole !== 'string') return all.length === 0;
        if (whole === null) return all.length === 0;
        for (const one of all) expect(beginsWith(whole, one)).toBe(true);
        expect(all.at(-1)).toEqual(whole);
        return true;
      }),
    );
  });
});

function beginsWith(whole: unknown, part: unknown): boolean {
  if (typeof whole === 'string') return typeof part === 'string' && whole.startsWith(part);
  if (Array.isArray(whole)) return Array.isArray(part) && part.every((one, i) => beginsWith(whole[i], one));
  if (typeof whole === 'object' && whole !== null) {
    return Object.entries(part as object).every(
      ([key, one]) => Object.hasOwn(whole, key) && beginsWith((whole as Record<string, unknown>)[key], one),
    );
  }
  return Object.is(whole, part);
}
