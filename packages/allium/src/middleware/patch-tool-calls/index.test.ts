import { Agent, defineMiddleware, type Message, textOf, userMessage } from 'allium';
import { patchToolCalls } from 'allium/middleware/patch-tool-calls';
import { collect, scriptedModel, testMiddleware } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const calls = (...ids: string[]): Message => ({
  id: '',
  role: 'assistant',
  content: ids.map((id) => ({ type: 'tool-call', id, name: 'look', arguments: '{}' })),
  stopReason: 'tool-calls',
});
const result = (id: string, text = `result of ${id}`): Message => ({
  id: '',
  role: 'tool',
  toolCallId: id,
  toolName: 'look',
  content: [{ type: 'text', text }],
  isError: false,
});
const hi = userMessage('hi');
const gone = 'No result: the call was interrupted.';

/** What the model is sent, in short. */
async function sent(input: readonly Message[], options?: Parameters<typeof patchToolCalls>[0]) {
  const model = scriptedModel(['ok']);
  await new Agent({ model, middleware: [patchToolCalls(options)] }).run(input);
  return short(model.requests[0]!.messages);
}

const short = (messages: readonly Message[]) =>
  messages.map((message) =>
    message.role === 'tool'
      ? `${message.toolCallId}: ${textOf(message)}`
      : message.role === 'user'
        ? textOf(message)
        : message.content.map((part) => (part.type === 'tool-call' ? part.id : '')).join(','),
  );

testMiddleware(() => patchToolCalls(), { name: 'patch-tool-calls', describe, it });

describe('patch-tool-calls', () => {
  it('is needed: without it such input is refused', async () => {
    const agent = new Agent({ model: scriptedModel(['ok']) });
    await expect(agent.run([calls('a'), hi])).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
  });

  it.each<[string, Message[], string[]]>([
    ['one missing', [hi, calls('a'), hi], ['hi', 'a', `a: ${gone}`, 'hi']],
    ['one missing at the end', [hi, calls('a')], ['hi', 'a', `a: ${gone}`]],
    [
      'some missing',
      [calls('a', 'b', 'c'), result('b'), hi],
      ['a,b,c', `a: ${gone}`, 'b: result of b', `c: ${gone}`, 'hi'],
    ],
    [
      'some displaced',
      [calls('a', 'b'), hi, result('b'), result('a')],
      ['a,b', 'a: result of a', 'b: result of b', 'hi'],
    ],
    ['one too many', [calls('a'), result('a'), result('a', 'again'), hi], ['a', 'a: result of a', 'hi']],
    ['one without a call', [result('x'), hi], ['hi']],
    ['one before its call', [result('a'), calls('a'), hi], ['a', `a: ${gone}`, 'hi']],
    ['nothing to repair', [hi, calls('a'), result('a'), hi], ['hi', 'a', 'a: result of a', 'hi']],
  ])('repairs input with %s', async (_, input, expected) => {
    expect(await sent(input)).toEqual(expected);
  });

  it('gives each of two calls with the same id its own result', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({ model, middleware: [patchToolCalls()] });
    await agent.run([calls('a'), calls('a'), result('a'), hi]);
    const texts = model.requests[0]!.messages.map(textOf);
    expect(texts).toEqual(['', gone, '', 'result of a', 'hi']);
  });

  it('marks what it fills in as synthetic, and as an error', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({ model, middleware: [patchToolCalls({ text: 'Lost.' })] });
    const { messages } = await agent.run([calls('a'), hi]);
    expect(messages[1]).toMatchObject({
      isError: true,
      toolName: 'look',
      content: [{ type: 'text', text: 'Lost.' }],
      metadata: { synthetic: true, source: 'patch-tool-calls' },
    });
  });

  it('repairs what other hooks leave in a request, before the kernel drops the call', async () => {
    const careless = defineMiddleware({
      name: 'careless',
      transformContext: (messages) => messages.filter(({ role }) => role !== 'tool'),
    });
    const request = async (middleware: Parameters<typeof defineMiddleware>[0][]) => {
      const model = scriptedModel(['ok']);
      await new Agent({ model, middleware }).run([calls('a'), result('a'), hi]);
      return short(model.requests[0]!.messages);
    };
    expect(await request([careless])).toEqual(['hi']);
    expect(await request([careless, patchToolCalls()])).toEqual(['a', `a: ${gone}`, 'hi']);
  });

  it('does not change a list that needs no repair', async () => {
    const input = Object.freeze([Object.freeze(hi)]);
    const { changes, messages } = await new Agent({
      model: scriptedModel(['ok']),
      middleware: [patchToolCalls()],
    }).run(input);
    expect(changes).toEqual([]);
    expect(messages).toHaveLength(2);
  });

  it('serves 100 concurrent runs, and stands twice in a list', async () => {
    const model = scriptedModel([({ messages }) => textOf(messages.at(-1)!)], { repeat: true });
    const agent = new Agent({ model, middleware: [patchToolCalls({ text: 'one' }), patchToolCalls()] });
    const runs = Array.from({ length: 100 }, (_, n) => agent.run([calls(`c${n}`), userMessage(`${n}`)]));
    const results = await Promise.all(runs);
    expect(results.map(({ messages }) => messages.map(textOf))).toEqual(
      results.map((_, n) => ['', 'one', `${n}`, `${n}`]),
    );
  });

  it('does the same when the run is streamed', async () => {
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [patchToolCalls()] });
    const { result: end } = await collect(agent.stream([calls('a'), hi]));
    expect(short(end!.messages)).toEqual(['a', `a: ${gone}`, 'hi', '']);
  });

  it.each([
    [{ text: '' }, 'Expected `text` to be non-empty text, got "".'],
    [{ texts: 'x' }, 'Unknown option `texts` of patchToolCalls(). Did you mean `text`?'],
  ])('refuses %j', (options, message) => {
    expect(() => patchToolCalls(options as never)).toThrow(message);
  });
});
