/** What `useChat` gets when something went wrong, and what it sends then: again, instead, or from the start. */
import { Agent, type AgentOptions, memoryStore, type Store } from 'allium';
import { serve } from 'allium/http';
import { visibleParts } from 'allium/http/client';
import { retry } from 'allium/middleware/retry';
import { chunks, failWith, hang, type ScriptStep, scriptedModel } from 'allium/testing';
import { expect, it } from 'vitest';
import { settle, storeWith } from '../../../../test/run-checks.js';

interface Chunk {
  readonly type: string;
  readonly delta?: string;
}
interface UiMessage {
  readonly role: string;
  readonly parts: readonly { readonly type: string; readonly text?: string }[];
}

function setup(script: readonly (ScriptStep | string)[], options: Partial<AgentOptions> = {}) {
  const agent = new Agent({ model: scriptedModel([...script]), store: memoryStore(), ...options });
  const handler = serve({ agents: agent, authorize: () => ({ tenant: 'acme' }) });
  const send = (method: string, path: string, body?: object) =>
    handler(
      new Request(`http://x${path}`, {
        method,
        ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      }),
    );
  const post = (said: string, more: object = {}) => {
    const message = { id: said.slice(0, 2), role: 'user', parts: [{ type: 'text', text: said }] };
    return send('POST', '/chat', { id: 'c', messages: [message], ...more });
  };
  /** The messages of the history, and their texts. */
  const history = async (): Promise<readonly string[]> => {
    const { messages } = (await (await send('GET', '/chat/c')).json()) as { messages: UiMessage[] };
    return messages.map(({ role, parts }) => `${role}: ${parts.map((part) => part.text ?? '').join('')}`);
  };
  return { send, post, history };
}

async function chunksOf(response: Response): Promise<readonly Chunk[]> {
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice('data: '.length)) as Chunk);
}
const textOf = (all: readonly Chunk[]): string => all.map(({ delta = '' }) => delta).join('');

const again = { trigger: 'regenerate-message' };

it('a wish for another answer to a message that never arrived is answered', async () => {
  const { post, history } = setup(['One.']);
  expect(textOf(await chunksOf(await post('Q1', again)))).toBe('One.');
  expect(await history()).toEqual(['user: Q1', 'assistant: One.']);
});

it.each<[string, string, object]>([
  ['another answer', 'Q1', again],
  ['an edited message', 'Q1, please', { messageId: 'Q1' }],
])('%s takes the place of the answer that is being written', async (_, said, more) => {
  const { post, history } = setup([hang('Half '), 'Another.']);
  const first = await post('Q1');
  const reading = chunksOf(first);
  expect(textOf(await chunksOf(await post(said, more)))).toBe('Another.');
  expect((await reading).at(-1)?.type).toBe('finish');
  expect(await history()).toEqual([`user: ${said}`, 'assistant: Another.']);
});

it('another answer streams', async () => {
  const { post, send } = setup(['First.', hang('Half ')]);
  await chunksOf(await post('Q1'));
  let read = '';
  for await (const piece of (await post('Q1', again)).body!) {
    read += new TextDecoder().decode(piece);
    if (read.includes('Half ')) await send('POST', '/chat/c/stop', {});
  }
  expect(read).toContain('"type":"abort"');
  expect(read).not.toContain('"type":"reset-step"');
});

it('another answer can be read after a reload, and is what its message gets when it is sent again', async () => {
  const { post, send } = setup(['First.', hang('Half ')]);
  await chunksOf(await post('Q1'));
  const reading = chunksOf(await post('Q1', again));
  const loaded = (await (await send('GET', '/chat/c')).json()) as { running: boolean };
  const resumed = await send('GET', '/chat/c/stream');
  const repeated = await post('Q1');
  await send('POST', '/chat/c/stop', {});
  await reading;
  expect(loaded.running).toBe(true);
  expect(resumed.status).toBe(200);
  expect(textOf(await chunksOf(resumed))).toBe('Half ');
  expect(textOf(await chunksOf(repeated))).toBe('Half ');
  expect((await send('GET', '/chat/c/stream')).status).toBe(204);
});

it('a page that goes on reading an answer that has ended meanwhile can ask for its end', async () => {
  const { post, send } = setup(['Whole.']);
  expect((await send('GET', '/chat/c/stream?ended=true')).status).toBe(204);
  await chunksOf(await post('Q1'));
  expect((await send('GET', '/chat/c/stream')).status).toBe(204);
  const chunks = await chunksOf(await send('GET', '/chat/c/stream?ended=true'));
  expect(textOf(chunks)).toBe('Whole.');
  expect(chunks.at(-1)).toEqual({ type: 'finish' });
});

it('a page that is loaded between an answer and the one that takes its place waits for the latter', async () => {
  const inner = memoryStore();
  let loading: Promise<Response> | undefined;
  const append: Store['append'] = async (id, seq, entries) => {
    // Time enough to load the page.
    if (loading) for (let i = 0; i < 20; i++) await settle();
    const head = await inner.append(id, seq, entries);
    if (entries.some(({ type }) => type === 'rewind')) loading = send('GET', '/chat/c');
    return head;
  };
  const { post, send } = setup(['First.', hang('Half ')], { store: storeWith(inner, { append }) });
  await chunksOf(await post('Q1'));
  const reading = chunksOf(await post('Q1', again));
  const { running } = (await (await loading!).json()) as { running: boolean };
  await send('POST', '/chat/c/stop', {});
  await reading;
  expect(running).toBe(true);
});

it.each([1, 2, 3, 4, 5])(
  'an answer that begins during read %i of the history counts as being written',
  async (n) => {
    const inner = memoryStore();
    let meanwhile = async (): Promise<void> => {};
    let reads = 0;
    const read: Store['read'] = async (...given) => {
      const entries = inner.read(...given);
      await meanwhile();
      return entries;
    };
    const store = storeWith(inner, { read });
    const { post, send } = setup(['First.', hang('Half ')], { store });
    await chunksOf(await post('Q1'));
    let reading: Promise<unknown> | undefined;
    meanwhile = async () => {
      if (++reads === n) reading = chunksOf(await post('Q2'));
    };
    const loaded = await send('GET', '/chat/c');
    const { messages, running } = (await loaded.json()) as { messages: UiMessage[]; running: boolean };
    await send('POST', '/chat/c/stop', {});
    await reading;
    expect(reading).toBeDefined();
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(running).toBe(true);
  },
);

it('an edited message that nobody can read changes nothing', async () => {
  const { post, history, send } = setup(['One.']);
  await (await post('Q1')).text();
  const empty = { id: 'Q1', role: 'user', parts: [] };
  const response = await send('POST', '/chat', { id: 'c', messages: [empty], messageId: 'Q1' });
  expect(response.status).toBe(400);
  expect(await history()).toEqual(['user: Q1', 'assistant: One.']);
});

it('files keep their whole type, such as that of a recording', async () => {
  const { send } = setup(['I hear.']);
  const url = 'data:audio/webm;codecs=opus;base64,AAAA';
  const file = { type: 'file', mediaType: 'audio/webm;codecs=opus', url };
  const message = { id: 'm', role: 'user', parts: [file] };
  expect(textOf(await chunksOf(await send('POST', '/chat', { id: 'c', messages: [message] })))).toBe(
    'I hear.',
  );
  const { messages } = (await (await send('GET', '/chat/c')).json()) as { messages: UiMessage[] };
  expect(messages[0]!.parts).toEqual([file]);
});

it('a message that is sent again gets its own answer, even if others came after it', async () => {
  const { post } = setup([chunks('One', '.'), 'Two.']);
  const first = await chunksOf(await post('Q1'));
  await (await post('Q2')).text();
  const second = await chunksOf(await post('Q1'));
  expect(textOf(second)).toBe('One.');
  expect(second.find(({ type }) => type === 'start')).toEqual(first.find(({ type }) => type === 'start'));
});

it('an answer that is sent from its start hides what the page has of it, before AI SDK 7', async () => {
  const { post, send } = setup([hang('Half ')]);
  const first = await post('Q1', { detached: true });
  await first.body!.cancel();
  for (const sdk of [5, 6, 7]) {
    const response = await send('GET', `/chat/c/stream?sdk=${sdk}`);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let read = '';
    while (!read.includes('Half')) read += (await reader.read()).value;
    await reader.cancel();
    const sent = read.split('\n').filter((line) => line.startsWith('data: {'));
    const types = sent.map((line) => (JSON.parse(line.slice('data: '.length)) as Chunk).type);
    const start = sdk === 7 ? ['start', 'start-step'] : ['start', 'data-reset', 'start-step'];
    expect(types).toEqual([...start, 'text-start', 'text-delta']);
  }
  await send('POST', '/chat/c/stop');
});

it('a run that was stopped says why', async () => {
  const { post, history } = setup(['One.'], { limits: { tokens: 1 } });
  const sent = await chunksOf(await post('Q1'));
  const data = { reason: 'max_tokens', message: expect.stringContaining('tokens') };
  expect(sent.slice(-2)).toEqual([{ type: 'data-stop', data }, { type: 'finish' }]);
  expect(await history()).toEqual(['user: Q1']);
});

it('files that the model makes are shown at once, those of the attempt that counts', async () => {
  const file = (data: string) => ({ type: 'file' as const, data, mimeType: 'image/png' });
  const lost = failWith(Object.assign(new Error('Away.'), { status: 503 }), 'Wait. ', file('AAAA'));
  const { post } = setup([lost, chunks('Here: ', file('BBBB'), ' Done.')], {
    middleware: [retry({ minDelayMs: 1, maxDelayMs: 1 })],
  });
  const sent = await chunksOf(await post('Draw'));
  expect(sent.filter(({ type }) => type === 'file')).toEqual([
    { type: 'file', url: 'data:image/png;base64,BBBB', mediaType: 'image/png' },
  ]);
});

it('visibleParts leaves out the step that was taken back, or everything before a new start', () => {
  const step = { type: 'step-start' };
  const text = (said: string) => ({ type: 'text', text: said });
  const reset = { type: 'data-reset', data: { messageId: 'm' } };
  const restart = { type: 'data-reset', data: { messageId: 'm', all: true } };
  const seen = (...parts: { type: string; text?: string; data?: unknown }[]) =>
    visibleParts({ parts }).map((part) => part.text ?? part.type);
  expect(seen(step, text('a'))).toEqual(['step-start', 'a']);
  expect(seen(step, text('a'), step, text('b'), reset, step, text('c'))).toEqual([
    'step-start',
    'a',
    'step-start',
    'c',
  ]);
  expect(seen(step, text('a'), step, text('b'), restart, step, text('a'))).toEqual(['step-start', 'a']);
});
