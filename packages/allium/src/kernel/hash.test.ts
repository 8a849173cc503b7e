import { assistantMessage, requestKey, userMessage } from 'allium';
import { scriptedModel } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callHash, canonical, hash } from './hash.js';

describe('canonical', () => {
  it('sorts keys at every depth and leaves undefined out', () => {
    expect(canonical({ b: [{ d: 1, c: undefined }], a: null })).toBe('{"a":null,"b":[{"d":1}]}');
    expect(canonical([undefined, () => {}])).toBe('[null,null]');
  });

  it('takes dates and the like as their own JSON', () => {
    expect(canonical({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
  });

  it('is JSON of the same value, whatever the order of keys', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(canonical(turned)).toBe(canonical(value));
        expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)));
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

  it('binds a call to its tool and arguments, whatever the order of keys', () => {
    expect(callHash('pay', { a: 1, b: 2 })).toBe(callHash('pay', { b: 2, a: 1 }));
    expect(callHash('pay', { a: 1 })).not.toBe(callHash('pay', { a: 2 }));
    expect(callHash('pay', { a: 1 })).not.toBe(callHash('refund', { a: 1 }));
  });
});

describe('requestKey', () => {
  const model = scriptedModel([]);
  const base = {
    model,
    messages: [userMessage('hi')],
    systemPrompt: 'p',
    tools: [],
    settings: { temperature: 0 },
  };

  it('is the same for the same question: ids, usage and metadata do not count', () => {
    const answer = assistantMessage('x', {
      usage: { inputTokens: 1, outputTokens: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 },
    });
    const one = {
      ...base,
      messages: [
        { ...userMessage('hi'), id: 'r1.1' },
        { ...answer, id: 'r1.2' },
      ],
    };
    const two = {
      ...base,
      messages: [
        { ...userMessage('hi', { synthetic: true }), id: 'r2.1' },
        { ...assistantMessage('x'), id: 'r2.2' },
      ],
    };
    expect(requestKey(one)).toBe(requestKey(two));
  });

  it('does not count call ids, which are made anew', () => {
    const calling = (id: string) => ({
      ...base,
      messages: [
        { ...assistantMessage([{ type: 'tool-call' as const, id, name: 'a', arguments: '{}' }]), id: 'x' },
      ],
    });
    expect(requestKey(calling('1'))).toBe(requestKey(calling('2')));
  });

  it.each([
    ['messages', { ...base, messages: [userMessage('ho')] }],
    ['prompt', { ...base, systemPrompt: 'q' }],
    ['settings', { ...base, settings: { temperature: 1 } }],
    ['model', { ...base, model: scriptedModel([], { id: 'other' }) }],
    ['tools', { ...base, tools: [{ name: 'a', description: 'a', inputSchema: {} }] }],
  ])('differs by %s', (_, other) => {
    expect(requestKey(other)).not.toBe(requestKey(base));
  });

  it('differs by scope', () => {
    expect(requestKey(base, 'tenant a')).not.toBe(requestKey(base, 'tenant b'));
  });
});
