import { assistantMessage, type Message, userMessage } from 'allium';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { causedBy, dropOrphans } from './orphans.js';

const asks = (...ids: string[]): Message => ({
  ...assistantMessage(ids.map((id) => ({ type: 'tool-call', id, name: 't', arguments: '{}' }))),
  id: '',
});
const answers = (id: string): Message => ({
  id: '',
  role: 'tool',
  toolCallId: id,
  toolName: 't',
  content: [],
  isError: false,
});
const says = (text: string): Message => userMessage(text);

describe('dropOrphans', () => {
  it('returns the very list where nothing is wrong', () => {
    const messages = [says('x'), asks('a', 'b'), answers('a'), answers('b')];
    expect(dropOrphans(messages)).toEqual({ kept: messages, dropped: [] });
    expect(dropOrphans(messages).kept).toBe(messages);
    expect(dropOrphans([]).kept).toEqual([]);
  });
  it('drops a result without its call, a call without its result, and results that come before their call or twice', () => {
    expect(dropOrphans([answers('a'), says('x')])).toEqual({ kept: [says('x')], dropped: ['a'] });
    expect(dropOrphans([asks('a')])).toEqual({ kept: [], dropped: ['a'] });
    expect(dropOrphans([answers('a'), asks('a')])).toEqual({ kept: [], dropped: ['a'] });
    expect(dropOrphans([asks('a'), answers('a'), answers('a')])).toEqual({
      kept: [asks('a'), answers('a')],
      dropped: ['a'],
    });
  });
  it('keeps what else an assistant message says', () => {
    const mixed = {
      ...asks('a', 'b'),
      content: [{ type: 'text' as const, text: 'hm' }, ...(asks('a', 'b').content as never[])],
    } as Message;
    const { kept } = dropOrphans([mixed, answers('b')]);
    expect(kept[0]!.content).toMatchObject([{ text: 'hm' }, { id: 'b' }]);
  });
  it('leaves a request in which every call has one result after it, whatever it is given, and changes nothing twice', () => {
    const id = fc.constantFrom('a', 'b', 'c');
    const message = fc.oneof(
      fc.constant(says('x')),
      id.map(answers),
      fc.uniqueArray(id, { minLength: 1 }).map((ids) => asks(...ids)),
    );
    fc.assert(
      fc.property(fc.array(message), (messages) => {
        const { kept } = dropOrphans(messages);
        const open = new Map<string, number>();
        for (const one of kept) {
          if (one.role === 'assistant')
            for (const part of one.content)
              if (part.type === 'tool-call') open.set(part.id, (open.get(part.id) ?? 0) + 1);
          if (one.role === 'tool') {
            expect(open.get(one.toolCallId) ?? 0).toBeGreaterThan(0);
            open.set(one.toolCallId, open.get(one.toolCallId)! - 1);
          }
        }
        expect(kept.filter(({ role }) => role === 'user')).toHaveLength(
          messages.filter(({ role }) => role === 'user').length,
        );
      }),
    );
  });
});

describe('causedBy', () => {
  const given = [asks('a', 'b'), answers('a'), answers('b')];
  it('blames the step after which a call or result was alone', () => {
    const steps = [
      { by: 'fine', messages: [says('x'), ...given] },
      { by: 'cuts a', messages: [says('x'), given[0]!, given[2]!] },
      { by: 'fine too', messages: [given[0]!, given[2]!] },
      { by: 'cuts b', messages: [given[0]!] },
    ];
    expect(causedBy(steps, given)).toEqual(['cuts a', 'cuts b']);
  });
  it('names the only step without looking', () => {
    expect(causedBy([{ by: 'one', messages: [] }], given)).toEqual(['one']);
  });
});
