/** Answers that come twice, at once or while the run is about to wait: one run goes on with them, and nobody misses anything. */
import { Agent, type Clock, type Middleware, memoryStore, type Store, textOf, tool } from 'allium';
import { type ClientEvent, type Question, type Show, serve } from 'allium/http';
import { alliumClient, type ClientRun } from 'allium/http/client';
import { approval } from 'allium/middleware/approval';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';
import { UiChunks } from './ui-chunks.js';

interface Part {
  readonly type: string;
  readonly delta?: string;
  readonly output?: unknown;
  readonly messageId?: string;
  readonly approvalId?: string;
}

function setup({
  store = memoryStore() as Store,
  middleware = [] as Middleware[],
  show = { tools: true } as Show,
  clock = undefined as Clock | undefined,
  calls = ['a'],
} = {}) {
  let paid = 0;
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({}),
    execute: () => `Paid ${++paid} times.`,
  });
  const asked = toolCalls(...calls.map((id) => ({ name: 'pay', args: {}, id })));
  const model = scriptedModel([asked, text('Done.'), text('Hello.')]);
  const agent = new Agent({
    model,
    store,
    ...(clock && { clock }),
    tools: [pay],
    middleware: middleware.some(({ name }) => name === 'asks')
      ? middleware
      : [...middleware, approval({ policy: { pay: 'ask' } })],
  });
  const handler = serve({ agents: agent, authorize: () => ({}), sdk: 6, show });
  const work: Promise<unknown>[] = [];
  const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    handler(
      new Request(`http://x${path}`, {
        method,
        ...(body && {
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify(body),
        }),
      }),
      { waitUntil: (one) => void work.push(one) },
    );
  const say = (id: string, said: string) =>
    send('POST', '/chat', {
      id: 'c',
      messages: [{ id, role: 'user', parts: [{ type: 'text', text: said }] }],
    });
  const approve = (id: string, approved = true, reason?: string, sdk = 6) => {
    const part = { type: 'tool-pay', state: 'approval-responded', approval: { id, approved, reason } };
    return send('POST', `/chat?sdk=${sdk}`, {
      id: 'c',
      messages: [{ id: 'a', role: 'assistant', parts: [part] }],
    });
  };
  return { model, send, say, approve, work, session: agent.session('c') };
}

async function partsOf(response: Response): Promise<readonly Part[]> {
  const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: {'));
  return lines.map((line) => JSON.parse(line.slice('data: '.length)) as Part);
}

/** What a page shows of it. */
const shown = (parts: readonly Part[]) => ({
  outputs: parts.filter(({ type }) => type === 'tool-output-available').map(({ output }) => output),
  text: parts.map(({ type, delta }) => (type === 'text-delta' ? delta : '')).join(''),
  last: parts.at(-1)?.type,
});
const WHOLE = { outputs: ['Paid 1 times.'], text: 'Done.', last: 'finish' };

it('approvals that are sent twice at once count once, and both requests get the outcome', async () => {
  const { model, say, approve, session } = setup();
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  const both = await Promise.all([approve(request!.id), approve(request!.id)]);
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  for (const response of both) expect(shown(await partsOf(response))).toEqual(WHOLE);
  expect(model.requests).toHaveLength(2);
});

it('approvals that are sent again later get the same events, up to the end of that answer', async () => {
  const { model, say, approve, session } = setup();
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  const first = await partsOf(await approve(request!.id));
  const again = await partsOf(await approve(request!.id));
  expect(shown(again)).toEqual(WHOLE);
  expect(again.find(({ type }) => type === 'start')).toEqual(first.find(({ type }) => type === 'start'));
  expect(model.requests).toHaveLength(2);
  // Somebody has said something else since: the answer is not the last one any more.
  await (await say('2', 'Hi')).text();
  expect((await approve(request!.id)).status).toBe(409);
});

it('a second, different decision is refused', async () => {
  const { say, approve, session } = setup();
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  await (await approve(request!.id)).text();
  const late = await approve(request!.id, false);
  expect([late.status, ((await late.json()) as { error: { code: string } }).error.code]).toEqual([
    409,
    'REQUEST_UNKNOWN',
  ]);
});

/**
 * A store and a middleware: the last look that the first run takes at its inbox lasts until it is released, and misses
 * what comes meanwhile.
 */
function lateLook() {
  const store: Store = memoryStore();
  const take = store.take.bind(store);
  const looking = gate();
  const released = gate();
  let runs = 0;
  let isLast = false;
  store.take = async (sessionId, after) => {
    const items = await take(sessionId, after);
    if (!isLast) return items;
    isLast = false;
    looking.open();
    await released.opened;
    return items;
  };
  const arms: Middleware = {
    name: 'arms',
    afterRun: () => {
      isLast = runs++ === 0;
    },
  };
  return { store, arms, looking: looking.opened, release: released.open };
}

function gate() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

it.each(['chat', 'chat, and the client leaves', 'answers', 'events', 'events, and the client leaves'])(
  'a run that was about to wait when it was answered goes on (%s)',
  async (route) => {
    const { store, arms, looking, release } = lateLook();
    const { model, say, approve, send, session, work } = setup({ store, middleware: [arms] });
    const asked = await say('1', 'Pay');
    await looking;
    const [request] = await session.pending();
    const body = { answers: { [request!.id]: { type: 'approve' } } };
    const accept = { accept: route === 'answers' ? 'application/json' : 'text/event-stream' };
    const answered = route.startsWith('chat')
      ? await approve(request!.id)
      : await send('POST', '/sessions/c/answers', body, accept);
    if (route.endsWith('leaves')) {
      const reader = answered.body!.getReader();
      void reader.read();
      await reader.cancel();
    }
    release();
    if (route === 'chat') expect(shown(await partsOf(answered))).toEqual(WHOLE);
    else if (route === 'events') expect((await partsOf(answered)).at(-1)).toMatchObject({ status: 'done' });
    else await Promise.all(work);
    await asked.text();
    expect((await session.messages()).map((one) => textOf(one))).toEqual([
      'Pay',
      '',
      'Paid 1 times.',
      'Done.',
    ]);
    expect(model.requests).toHaveLength(2);
  },
);

it('an approval that comes too late continues the run, with a call that nobody allowed', async () => {
  const clock = fakeClock();
  const asks = { name: 'asks', beforeToolCall: () => ({ ask: { timeoutMs: 1000 } }) };
  for (const [sdk, outcome] of [
    [5, 'tool-output-error'],
    [6, 'tool-output-denied'],
    [7, 'tool-output-denied'],
  ] as const) {
    const { say, approve, session, model } = setup({ middleware: [asks], clock });
    await (await say('1', 'Pay')).text();
    const [request] = await session.pending();
    await clock.advance(1001);
    const parts = await partsOf(await approve(request!.id, true, undefined, sdk));
    expect(parts.map(({ type }) => type)).toContain(outcome);
    expect(shown(parts)).toEqual({ outputs: [], text: 'Done.', last: 'finish' });
    expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain('within 1000 ms');
  }
});

it('an approval in time counts beside one that is too late', async () => {
  const clock = fakeClock();
  const asks: Middleware = {
    name: 'asks',
    beforeToolCall: ({ toolCall }) => ({ ask: toolCall.id === 'b' ? {} : { timeoutMs: 1000 } }),
  };
  const { send, say, session } = setup({ middleware: [asks], clock, calls: ['a', 'b'] });
  await (await say('1', 'Pay')).text();
  const requests = await session.pending();
  await clock.advance(1001);
  const parts = requests.map(({ id }) => ({
    type: 'tool-pay',
    state: 'approval-responded',
    approval: { id, approved: true },
  }));
  const said = await partsOf(
    await send('POST', '/chat', { id: 'c', messages: [{ role: 'assistant', parts }] }),
  );
  expect(shown(said)).toEqual(WHOLE);
  expect(said.filter(({ type }) => type === 'tool-output-denied')).toHaveLength(1);
});

it('the stream of an answer ends with that answer, however late it is read', async () => {
  const { say, approve, send, session } = setup();
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  const [first, again] = await Promise.all([approve(request!.id), approve(request!.id)]);
  await first.text();
  await (await say('2', 'Hi')).text();
  expect(shown(await partsOf(again))).toEqual(WHOLE);
  expect(((await (await send('GET', '/chat/c')).json()) as { messages: [] }).messages).toHaveLength(4);
});

it('a message that is sent again gets the answer it already had', async () => {
  const { model, say, approve, session } = setup();
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  await (await approve(request!.id)).text();
  expect(shown(await partsOf(await say('1', 'Pay')))).toEqual(WHOLE);
  expect(model.requests).toHaveLength(2);
});

it('the history says whether an answer is being written', async () => {
  const { say, approve, send, session } = setup();
  const running = async () => ((await (await send('GET', '/chat/c')).json()) as { running: boolean }).running;
  expect(await running()).toBe(false);
  const asked = await say('1', 'Pay');
  await asked.text();
  // It waits for the user, so there is nothing to read.
  expect(await running()).toBe(false);
  const [request] = await session.pending();
  const answered = await approve(request!.id);
  expect(await running()).toBe(true);
  await answered.text();
  expect(await running()).toBe(false);
});

it('what was answered still shows when the history is loaded', async () => {
  const callIn = async (approved: boolean, sdk: number) => {
    const { say, approve, send, session } = setup();
    await (await say('1', 'Pay')).text();
    const [request] = await session.pending();
    await (await approve(request!.id, approved, approved ? undefined : 'Too much.')).text();
    const { messages } = (await (await send('GET', `/chat/c?sdk=${sdk}`)).json()) as {
      messages: { parts: { type: string }[] }[];
    };
    return { id: request!.id, part: messages[1]!.parts.find(({ type }) => type === 'tool-pay') };
  };
  for (const sdk of [6, 7]) {
    const denied = await callIn(false, sdk);
    const said = { id: denied.id, approved: false, reason: 'Too much.' };
    expect(denied.part).toMatchObject({ state: 'output-denied', approval: said });
    const allowed = await callIn(true, sdk);
    expect(allowed.part).toMatchObject({
      state: 'output-available',
      approval: { id: allowed.id, approved: true },
    });
  }
  expect((await callIn(false, 5)).part).toMatchObject({ state: 'output-error' });
  expect((await callIn(true, 5)).part).not.toHaveProperty('approval');
});

it('thinking that a provider keeps to itself is no empty part of the history', async () => {
  const thinking = { type: 'thinking' as const, text: '', signature: 's' };
  const model = scriptedModel([[thinking, { type: 'text', text: 'Hello.' }]]);
  const agent = new Agent({ model, store: memoryStore() });
  await agent.session('c').run('Hi');
  const handler = serve({ agents: agent, authorize: 'none', show: { thinking: true } });
  const { messages } = (await (await handler(new Request('http://x/chat/c'))).json()) as {
    messages: { parts: { type: string }[] }[];
  };
  expect(messages[1]!.parts.map(({ type }) => type)).toEqual(['step-start', 'text']);
});

it('the reason of a no is hidden where results are', async () => {
  const { say, approve, send, session } = setup({ show: {} });
  await (await say('1', 'Pay')).text();
  const [request] = await session.pending();
  await (await approve(request!.id, false, 'Too much.')).text();
  expect(await (await send('GET', '/chat/c')).text()).not.toContain('Too much.');
});

it('AI SDK 7 is told what others answered, unless it knows another question about the call by then', () => {
  const asked = (id: string) => ({ id, toolCallId: 'a' }) as Question;
  const waiting = (id: string): ClientEvent => ({
    type: 'tool_execution_waiting',
    toolCallId: 'a',
    toolName: 'pay',
    question: asked(id),
  });
  const answered = (questionId: string): ClientEvent => ({
    type: 'answered',
    questionId,
    decision: 'reject',
  });
  for (const sdk of [5, 6, 7] as const) {
    const chunks = new UiChunks(sdk);
    const told = (id: string) =>
      chunks.of(answered(id)).find(({ type }) => type === 'tool-approval-response');
    chunks.know([asked('0')]);
    expect(told('0')).toBeUndefined();
    chunks.of(waiting('1'));
    chunks.of(waiting('2'));
    expect(told('1')).toBeUndefined();
    const response = { type: 'tool-approval-response', approvalId: '2', approved: false };
    expect(told('2')).toEqual(sdk === 7 ? response : undefined);
  }
});

it("a new message while a question waits gets no events of the previous message's calls", async () => {
  const { say, send, session } = setup();
  await (await say('1', 'Pay')).text();
  const parts = await partsOf(await say('2', 'Never mind'));
  // `useChat` fails if it hears of a call that isn't in the message.
  expect(parts.map(({ type }) => type).filter((type) => type.startsWith('tool-'))).toEqual([]);
  expect(shown(parts)).toEqual({ outputs: [], text: 'Done.', last: 'finish' });
  expect(await session.pending()).toEqual([]);
  expect((await send('GET', '/chat/c/stream')).status).toBe(204);
  const history = await (await send('GET', '/chat/c')).text();
  expect(history).toContain('"state":"output-denied"');
});

it('a new message while a question waits is answered with the events of its own run', async () => {
  const { send, model } = setup();
  const first = await send('POST', '/sessions', { input: 'Pay', sessionId: 's' });
  const { runId } = (await first.json()) as { runId: string };
  const accept = { accept: 'text/event-stream' };
  const response = await send('POST', '/sessions/s/runs', { input: 'Never mind' }, accept);
  const events = (await partsOf(response)) as unknown as { type: string; runId: string; status: string }[];
  expect(events[0]?.type).toBe('agent_start');
  expect(events[0]?.runId).not.toBe(runId);
  expect(events.at(-1)).toMatchObject({ type: 'agent_end', status: 'done', runId: events[0]!.runId });
  expect(model.requests).toHaveLength(2);
});

it('a client that answers a run under way reads on to its end', async () => {
  const handler = () => new Promise<undefined>(() => {});
  const asking: Middleware = {
    name: 'asking',
    beforeToolCall: () => ({ ask: { title: 'Pay?', onRequest: handler } }),
  };
  const { send, session } = setup({ middleware: [asking] });
  const client = alliumClient({
    baseUrl: 'http://x',
    fetch: (url, init) =>
      send(init!.method!, (url as string).slice('http://x'.length), JSON.parse(init!.body as string), {
        ...(init!.headers as Record<string, string>),
      }),
  });
  let asked = '';
  let answered: ClientRun | undefined;
  for await (const { event } of client.run('Pay', { sessionId: 'c', create: true })) {
    if (event.type !== 'tool_execution_waiting') continue;
    asked = event.question.id;
    answered = client.answer('c', { [asked]: { type: 'approve' } });
    void answered.result;
  }
  expect(await answered!.result).toMatchObject({ status: 'done', text: 'Done.', questions: [] });
  expect(await session.pending()).toEqual([]);
});
