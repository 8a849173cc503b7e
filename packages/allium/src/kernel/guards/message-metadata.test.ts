/** Metadata that user code puts on a message is written and sent like its text, so guards search it. */
import { Agent, type Message, memoryStore, userMessage } from 'allium';
import { scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';

const SECRET = 'ann@x.org';
const guard = (on: 'input' | 'request') => ({
  name: 'mail',
  guard: {
    on: [on],
    find: (said: string) =>
      [...said.matchAll(/ann@x\.org/g)].map(({ index }) => ({ start: index, end: index + SECRET.length })),
  },
});
const noted: Message = userMessage('hello', { note: `by ${SECRET}`, page: 3 });
const parted = {
  ...userMessage('hello'),
  content: [{ type: 'text' as const, text: 'hello', metadata: { provider: { user: SECRET } } }],
};

describe.each(['run', 'steer', 'followUp'] as const)('metadata of a message that comes by %s', (way) => {
  it.each([
    ['of the message', noted],
    ['of a part', parted],
  ])('is neither written nor sent with what a guard removes: %s', async (_, message) => {
    const store = memoryStore();
    const model = scriptedModel([text('ok')], { repeat: true });
    const session = new Agent({ store, model, middleware: [guard('input')] }).session('s');
    if (way !== 'run') await session[way](message);
    await session.run(way === 'run' ? message : 'go');
    expect(JSON.stringify(await store.read('s', 1))).not.toContain(SECRET);
    expect(JSON.stringify(model.requests.map(({ messages }) => messages))).not.toContain(SECRET);
  });
});

it('a guard leaves the rest of the metadata alone', async () => {
  const session = new Agent({ model: scriptedModel([text('ok')]), middleware: [guard('input')] }).session(
    's',
  );
  const { messages } = await session.run(noted);
  expect(messages[0]!.metadata).toEqual({ note: 'by [redacted]', page: 3 });
});

it('metadata is searched before it is sent if the guard judges requests', async () => {
  const model = scriptedModel([text('ok')]);
  await new Agent({ model, middleware: [guard('request')] }).run(noted);
  expect(JSON.stringify(model.requests[0]!.messages)).not.toContain(SECRET);
});
