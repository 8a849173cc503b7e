import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelPart } from '../messages/model.js';
import { ResponseAssembler, responseParts } from './assemble.js';

function assemble(...parts: readonly unknown[]) {
  const assembler = new ResponseAssembler('test/model');
  const blocks = parts.map((part) => assembler.add(part as ModelPart));
  return { assembler, blocks, content: assembler.content };
}

const finish: ModelPart = { type: 'finish', reason: 'stop' };
const text = (content: string, block?: string | number): ModelPart => ({
  type: 'text',
  text: content,
  ...(block !== undefined && { block }),
});
const thinking = (content: string, block?: string | number): ModelPart => ({
  type: 'thinking',
  text: content,
  ...(block !== undefined && { block }),
});

describe('blocks', () => {
  it('consecutive pieces of one type form one block', () => {
    const { blocks, content } = assemble(thinking('a'), thinking('b'), text('c'), text('d'), thinking('e'));
    expect(blocks).toEqual([0, 0, 1, 1, 2]);
    expect(content).toEqual([thinking('ab'), text('cd'), thinking('e')]);
  });

  it('pieces with a key go to the block of that key, so blocks may interleave', () => {
    const { blocks, content } = assemble(text('a', 1), text('b', 2), text('c', 1), text('d', 2));
    expect(blocks).toEqual([0, 1, 0, 1]);
    expect(content).toEqual([
      { type: 'text', text: 'ac' },
      { type: 'text', text: 'bd' },
    ]);
  });

  it('text, thinking and calls have separate keys', () => {
    const call: ModelPart = { type: 'tool-call', id: '0', name: 'f', arguments: '{' };
    const { blocks, content } = assemble(
      thinking('a', '0'),
      text('b', '0'),
      call,
      thinking('c', '0'),
      { type: 'tool-call-delta', id: '0', arguments: '}' },
      text('d', '0'),
    );
    expect(blocks).toEqual([0, 1, 2, 0, 2, 1]);
    expect(content.map((block) => block.text ?? block.arguments)).toEqual(['ac', 'bd', '{}']);
  });

  it('thinking keeps its last signature, and that it was redacted', () => {
    const { content } = assemble(
      { ...thinking('a'), signature: 's1' },
      { ...thinking('b'), signature: 's2', redacted: true },
    );
    expect(content).toEqual([{ type: 'thinking', text: 'ab', signature: 's2', redacted: true }]);
  });

  it('metadata of the pieces of a block is merged', () => {
    const { content } = assemble(
      { ...text('a'), metadata: { x: 1, y: 1 } },
      { ...text('b'), metadata: { y: 2 } },
    );
    expect(content).toEqual([{ type: 'text', text: 'ab', metadata: { x: 1, y: 2 } }]);
  });

  it('a call grows by deltas of its id; the latest call of an id that repeats is meant', () => {
    const call = (id: string, args: string): ModelPart => ({
      type: 'tool-call',
      id,
      name: 'f',
      arguments: args,
    });
    const { content } = assemble(
      call('a', '['),
      call('b', ''),
      { type: 'tool-call-delta', id: 'a', arguments: '1]' },
      call('a', '['),
      { type: 'tool-call-delta', id: 'a', arguments: '2]' },
    );
    expect(content.map((block) => block.arguments)).toEqual(['[1]', '', '[2]']);
  });

  it('any chunking of the same blocks gives the same content', () => {
    const pieces = fc.array(fc.tuple(fc.constantFrom(0, 1, 2), fc.string({ maxLength: 700 })), {
      maxLength: 40,
    });
    fc.assert(
      fc.property(pieces, (list) => {
        const { content } = assemble(...list.map(([block, piece]) => text(piece, block)));
        const wanted = new Map<number, string>();
        for (const [block, piece] of list) wanted.set(block, (wanted.get(block) ?? '') + piece);
        expect(content.map((block) => block.text)).toEqual([...wanted.values()]);
      }),
    );
  });

  it('content may be looked at while it grows', () => {
    const { assembler } = assemble(text('a'));
    expect(assembler.content[0]!.text).toBe('a');
    assembler.add(text('b'));
    expect(assembler.content[0]!.text).toBe('ab');
  });
});

describe('a model that yields malformed parts', () => {
  it.each([
    ['undefined', undefined],
    ['null', null],
    ['text', 'hello'],
    ['an unknown type', { type: 'delta', text: 'x' }],
    ['text without text', { type: 'text' }],
    ['thinking that is a number', { type: 'thinking', text: 5 }],
    ['a call without a name', { type: 'tool-call', id: 'a', arguments: '{}' }],
    ['a call with an empty name', { type: 'tool-call', id: 'a', name: '', arguments: '{}' }],
    ['a call with parsed arguments', { type: 'tool-call', id: 'a', name: 'f', arguments: {} }],
    ['more of a call that was not begun', { type: 'tool-call-delta', id: 'a', arguments: '' }],
    ['more of a call without an id', { type: 'tool-call-delta', arguments: '' }],
    ['a file without data', { type: 'file', mimeType: 'image/png' }],
    ['an unknown reason to finish', { type: 'finish', reason: 'done' }],
  ])('%s is MODEL_STREAM_INVALID and names the model', (_, part) => {
    expect(() => assemble(part)).toThrowError(
      expect.objectContaining({
        code: 'MODEL_STREAM_INVALID',
        message: expect.stringContaining('test/model'),
      }),
    );
  });

  it('a delta of a call whose arguments are not text is refused', () => {
    const call = { type: 'tool-call', id: 'a', name: 'f', arguments: '' };
    expect(() => assemble(call, { type: 'tool-call-delta', id: 'a', arguments: 5 })).toThrowError(
      /`arguments` must be text/,
    );
  });

  it('nothing may come after finish', () => {
    expect(() => assemble(finish, text('more'))).toThrowError(/after `finish`/);
    expect(() => assemble(finish, finish)).toThrowError(/after `finish`/);
  });

  it('a stream without finish is MODEL_STREAM_CUT', () => {
    const { assembler } = assemble(text('half'));
    expect(() => assembler.response()).toThrowError(expect.objectContaining({ code: 'MODEL_STREAM_CUT' }));
  });

  it.each([
    { inputTokens: -1 },
    { outputTokens: Number.NaN },
    { inputTokens: '5' },
    { cacheRead: null },
    { totalTokens: Number.POSITIVE_INFINITY },
  ])('usage %o is refused', (usage) => {
    const { assembler } = assemble({ ...finish, usage });
    expect(() => assembler.response()).toThrowError(/usage that is not made of numbers/);
  });
});

describe('usage', () => {
  it('a total that is not reported is the sum', () => {
    const { assembler } = assemble({
      ...finish,
      usage: { inputTokens: 1, outputTokens: 2, cacheRead: 3, cacheWrite: 4 },
    });
    expect(assembler.response().usage).toMatchObject({ totalTokens: 10 });
  });
});

describe('partsOf', () => {
  it('streams a response so that assembling it gives it again', () => {
    const parts: ModelPart[] = [
      { ...thinking('hm'), signature: 's' } as ModelPart,
      text('a'),
      { type: 'tool-call', id: 'c', name: 'f', arguments: '{}' },
      text('b'),
      { type: 'file', data: 'AA', mimeType: 'image/png' },
      { type: 'provider', kind: 'source', value: { url: 'u' } },
      { type: 'finish', reason: 'tool-calls', usage: { inputTokens: 1 }, metadata: { m: 1 } },
    ];
    const response = assemble(...parts).assembler.response();
    expect(assemble(...responseParts(response)).assembler.response()).toEqual(response);
  });

  it('keeps text blocks that stand side by side apart', () => {
    const response = assemble(text('a', 1), text('b', 2), finish).assembler.response();
    expect(assemble(...responseParts(response)).assembler.response().content).toHaveLength(2);
  });
});
