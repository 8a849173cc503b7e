import { type Message, NO_USAGE, tool, toolSpec, userMessage } from 'allium';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { randomHistory, unpaired } from '../../../../test/random-history.js';
import { cutBackward, cutForward } from './cut.js';
import { PinIndex } from './pins.js';
import { checkedCounter, findCounter, installedCounter, roughCount } from './token-counter.js';
import { meterFor, TokenMeter } from './token-meter.js';

const user = (id: string, text = id, metadata?: Record<string, unknown>): Message => ({
  ...userMessage(text, metadata),
  id,
});
const calls = (id: string, ...ids: string[]): Message => ({
  id,
  role: 'assistant',
  stopReason: 'tool-calls',
  content: ids.map((call) => ({ type: 'tool-call', id: call, name: 'look', arguments: '{}' })),
});
const result = (id: string, toolCallId: string, metadata?: Record<string, unknown>): Message => ({
  id,
  role: 'tool',
  toolCallId,
  toolName: 'look',
  content: [{ type: 'text', text: id }],
  isError: false,
  ...(metadata && { metadata }),
});
const answer = (id: string, inputTokens: number, text = 'ok'): Message => ({
  id,
  role: 'assistant',
  stopReason: 'stop',
  content: [{ type: 'text', text }],
  usage: { ...NO_USAGE, inputTokens, cacheRead: 5, cacheWrite: 7, totalTokens: inputTokens },
});

describe('a cut', () => {
  const list = [user('1'), calls('2', 'a', 'b'), result('3', 'a'), result('4', 'b'), user('5')];

  it('moves back to the call of the first result after it, or forward past the last result', () => {
    expect([0, 1, 2, 3, 4, 5].map((cut) => cutBackward(list, 0, cut))).toEqual([0, 1, 1, 1, 4, 5]);
    expect([0, 1, 2, 3, 4, 5].map((cut) => cutForward(list, cut))).toEqual([0, 1, 4, 4, 4, 5]);
  });

  it('does not move back for an orphaned result, nor past its bound', () => {
    expect(cutBackward([user('1'), result('2', 'x'), user('3')], 0, 1)).toBe(1);
    expect(cutBackward(list, 2, 3)).toBe(3);
  });

  it('follows results that stand far from their calls', () => {
    const mixed = [calls('1', 'a'), calls('2', 'b'), result('3', 'a'), user('4'), result('5', 'b')];
    expect(cutBackward(mixed, 0, 4)).toBe(0);
    expect(cutForward(mixed, 1)).toBe(5);
  });

  it('splits no pair, in any history, and moves no further than it has to', () => {
    fc.assert(
      fc.property(randomHistory(), fc.nat(), (messages, at) => {
        const cut = messages.length === 0 ? 0 : at % (messages.length + 1);
        const back = cutBackward(messages, 0, cut);
        const on = cutForward(messages, cut);
        expect(back).toBeLessThanOrEqual(cut);
        expect(on).toBeGreaterThanOrEqual(cut);
        for (const split of [back, on]) expect(pairsAcross(messages, split)).toEqual([]);
        for (let between = back + 1; between <= cut; between++)
          expect(pairsAcross(messages, between)).not.toEqual([]);
      }),
    );
  });
});

/** Calls before the cut whose result is after it. */
function pairsAcross(messages: readonly Message[], cut: number): readonly string[] {
  const before = new Set(unpaired(messages.slice(0, cut)).calls);
  return unpaired(messages.slice(cut)).results.filter((id) => before.has(id));
}

describe('pins', () => {
  it('keep the answer and all results of a pinned call, but no orphaned result', () => {
    const pinned = { pinned: true };
    const list = [
      user('1', 'x', pinned),
      user('2'),
      calls('3', 'a', 'b'),
      result('4', 'a'),
      result('5', 'b', pinned),
      result('6', 'z', pinned),
      user('7'),
    ];
    expect(new PinIndex().before(list, 7)).toEqual([0, 2, 3, 4]);
    expect(new PinIndex().before(list, 1)).toEqual([0]);
    expect(new PinIndex().before(list, 7, [6])).toEqual([0, 2, 3, 4, 6]);
  });

  it('hold for messages without an id, which a middleware put in', () => {
    expect(new PinIndex().before([user(''), user('1'), user('2')], 2)).toEqual([0]);
  });

  it('are looked up once per message while a list grows', () => {
    let looks = 0;
    const counted = (id: string): Message =>
      new Proxy(user(id), {
        get: (target, key) => {
          if (key === 'metadata') looks++;
          return Reflect.get(target, key);
        },
      });
    const list = Array.from({ length: 50 }, (_, i) => counted(String(i)));
    const pins = new PinIndex();
    pins.of(list);
    const first = looks;
    list.push(counted('50'));
    expect(pins.of(list).lastUser).toBe(50);
    expect(looks - first).toBe(first / 50);
  });
});

describe('a token counter', () => {
  it('uses a tokenizer if one is installed', async () => {
    const count = await installedCounter();
    expect(count('Hello, world!')).toBe(4);
    expect(count('')).toBe(0);
  });

  it('counts control tokens as text, and long texts without spaces quickly', async () => {
    const count = await installedCounter();
    expect(count('<|endoftext|>')).toBeGreaterThan(1);
    expect(count('a'.repeat(100_000))).toBeGreaterThan(10_000);
  });

  it('uses the first installed package, or an estimate if there is none', async () => {
    const missing = {
      load: () => Promise.reject(Object.assign(new Error('no'), { code: 'ERR_MODULE_NOT_FOUND' })),
      counter: () => () => 0,
    };
    const there = { load: async () => ({ tokens: 3 }), counter: (m: { tokens: number }) => () => m.tokens };
    expect((await findCounter([missing, there]))('x')).toBe(3);
    expect(await findCounter([missing])).toBe(roughCount);
    const broken = { ...missing, load: () => Promise.reject(new Error('broken')) };
    await expect(findCounter([broken, there])).rejects.toThrow('broken');
  });

  it('estimates a token for four letters or one Chinese character', () => {
    expect(roughCount('')).toBe(0);
    expect(roughCount('abcdefgh')).toBe(2);
    expect(roughCount('漢字漢字')).toBe(4);
    expect(roughCount('éééé')).toBe(2);
  });

  it('given by the user is checked, and so is its result', () => {
    expect(() => checkedCounter(5 as never)).toThrow('Expected `tokenCounter` to be a function, got 5.');
    for (const wrong of [Number.NaN, -1, Number.POSITIVE_INFINITY, '5'])
      expect(() => checkedCounter((() => wrong) as never)!('x')).toThrow(
        'Expected `tokenCounter` to be a function that returns a finite number ≥ 0',
      );
  });
});

describe('a meter', () => {
  const perCharacter = (calls: string[] = []) =>
    new TokenMeter((text) => {
      calls.push(text);
      return text.length;
    });

  it('counts text, thinking, calls, images, files and what providers add', () => {
    const meter = perCharacter();
    const of = (...content: object[]) =>
      meter.message({ id: 'x', role: 'assistant', stopReason: 'stop', content: content as never }) - 4;
    expect(of({ type: 'text', text: 'abc' }, { type: 'thinking', text: 'de' })).toBe(5);
    expect(of({ type: 'tool-call', id: '1', name: 'look', arguments: '{}' })).toBe(6);
    expect(of({ type: 'image', data: 'AAAA', mimeType: 'image/png' })).toBe(1200);
    expect(of({ type: 'file', data: 'AAAA', mimeType: 'image/png' })).toBe(1200);
    expect(of({ type: 'file', data: 'A'.repeat(1600), mimeType: 'text/csv' })).toBe(300);
    expect(of({ type: 'file', data: 'AAAA', mimeType: 'application/pdf' })).toBe(2000);
    expect(of({ type: 'provider', kind: 'x', value: [1] })).toBe(3);
    expect(of({ type: 'provider', kind: 'x', value: undefined })).toBe(0);
  });

  it('counts the system prompt and the schemas of tools, once', () => {
    const counted: string[] = [];
    const meter = perCharacter(counted);
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => '' });
    const request = { systemPrompt: 'Be kind.', tools: [look] };
    expect(meter.fixed(request)).toBe(8 + JSON.stringify(toolSpec(look)).length);
    meter.fixed(request);
    expect(counted).toHaveLength(2);
  });

  it('goes on from what it has counted when a list grows', () => {
    const counted: string[] = [];
    const meter = perCharacter(counted);
    const list = Array.from({ length: 50 }, (_, i) => user(String(i), 'abc'));
    expect(meter.sum(list)).toBe(50 * 7);
    list.push(user('50', 'abcd'));
    expect(meter.sum(list)).toBe(50 * 7 + 8);
    expect(counted).toHaveLength(51);
    expect(meter.sum(list, 50)).toBe(8);
  });

  it('starts from what the latest answer reports, and estimates the rest', () => {
    const counted: string[] = [];
    const meter = perCharacter(counted);
    const list = [
      user('1', 'x'.repeat(900)),
      answer('2', 100),
      user('3'),
      answer('4', 200),
      user('5', 'abc'),
    ];
    expect(meter.reported(list, 0, null)).toBe(200 + 12 + (4 + 2) + (4 + 3));
    expect(counted).toEqual(['abc', 'ok']);
    expect(meter.reported(list, 4, null)).toBeUndefined();
    expect(meter.reported(list, 0, '4')).toBeUndefined();
    expect(meter.reported(list, 0, '2')).toBe(225);
    expect(meter.reported([user('1')], 0, null)).toBeUndefined();
  });

  it('is made only once', async () => {
    const own = meterFor((text) => text.length);
    expect(await own()).toBe(await own());
    const found = meterFor(undefined);
    const [first, second] = await Promise.all([found(), found()]);
    expect(first).toBe(second);
    expect(found()).toBe(first);
  });
});
