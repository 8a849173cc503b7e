import { once } from 'node:events';
import { createServer, Agent as HttpAgent, request as sendRequest } from 'node:http';
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { Agent, defineMiddleware, type Store, tool, window } from 'allium';
import {
  type Caller,
  eventHub,
  type ServeHandler,
  type ServeOptions,
  serve,
  toNodeListener,
} from 'allium/http';
import {
  alliumClient,
  applyEvent,
  EMPTY_VIEW,
  HttpError,
  messageText,
  type SentEvent,
} from 'allium/http/client';
import { approval, ask } from 'allium/middleware/approval';
import { memoryStore } from 'allium/stores/memory';
import { chunks, failWith, hang, type ScriptStep, scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../../test/run-checks.js';

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  execute: ({ amount }) => `Paid ${amount}.`,
});

interface Setup extends Partial<ServeOptions> {
  readonly script?: readonly (ScriptStep | string)[];
  readonly agent?: Partial<ConstructorParameters<typeof Agent>[0]>;
}

function setup({ script = [], agent = {}, ...options }: Setup = {}) {
  const store: Store = options.store ?? memoryStore();
  const made = new Agent({ model: scriptedModel([...script]), tools: [pay], store, ...agent });
  const errors: unknown[] = [];
  const handler = serve({
    agents: made,
    authorize: (request): Caller | false => {
      const tenant = request.headers.get('x-tenant');
      return tenant !== null && { tenant, user: `${tenant}-user` };
    },
    onError: (error) => void errors.push(error),
    ...options,
  });
  return { store, agent: made, handler, errors, ...callers(handler) };
}

function callers(handler: ServeHandler, tenant = 'acme') {
  const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    handler(
      new Request(`http://x${path}`, {
        method,
        headers: {
          'x-tenant': tenant,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
  const json = async (method: string, path: string, body?: unknown) => {
    const response = await send(method, path, body);
    const said = await response.text();
    return { status: response.status, body: said === '' ? undefined : JSON.parse(said) };
  };
  const client = alliumClient({
    baseUrl: 'http://x',
    headers: { 'x-tenant': tenant },
    fetch: (url, init) => handler(new Request(url as string, init)),
    backoffMs: [1, 1],
  });
  return { send, json, client };
}

const nothingWorks = (): never => {
  throw new Error('Nothing works.');
};

const viewOf = (sent: readonly SentEvent[]) =>
  sent.reduce((view, { event }) => applyEvent(view, event), EMPTY_VIEW);

async function all(events: AsyncIterable<SentEvent>): Promise<SentEvent[]> {
  const sent: SentEvent[] = [];
  for await (const one of events) sent.push(one);
  return sent;
}

describe('runs', () => {
  it('start a session and go on with it, answered as JSON', async () => {
    const { json } = setup({ script: ['Hello Ann.', 'Ann.'] });
    const first = await json('POST', '/sessions', { input: 'I am Ann.' });
    expect(first).toMatchObject({
      status: 200,
      body: { status: 'done', text: 'Hello Ann.', stop: { reason: 'final' }, questions: [] },
    });
    const { sessionId } = first.body;
    const second = await json('POST', `/sessions/${sessionId}/runs`, { input: 'Who am I?' });
    expect(second.body).toMatchObject({ sessionId, text: 'Ann.' });
    expect(second.body).not.toHaveProperty('usage');
    const { body } = await json('GET', `/sessions/${sessionId}/messages?limit=3`);
    expect(body.messages.map(messageText)).toEqual(['Hello Ann.', 'Who am I?', 'Ann.']);
    const before = await json('GET', `/sessions/${sessionId}/messages?before=${body.previous}`);
    expect(before.body).toEqual({ messages: [expect.objectContaining({ role: 'user' })] });
  });

  it('take an id and parts, and refuse an id that is taken', async () => {
    const { json } = setup({ script: ['A cat.'], show: { usage: true } });
    const input = [
      { type: 'text', text: 'What is it?' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ];
    const { body } = await json('POST', '/sessions', { input, sessionId: 'cats' });
    expect(body).toMatchObject({
      sessionId: 'cats',
      text: 'A cat.',
      usage: { totalTokens: expect.any(Number) },
    });
    expect(await json('POST', '/sessions', { input, sessionId: 'cats' })).toMatchObject({
      status: 409,
      body: { error: { code: 'SESSION_EXISTS' } },
    });
  });

  it('tell hooks who asks', async () => {
    const seen: unknown[] = [];
    const watching = defineMiddleware({
      name: 'watching',
      beforeRun: (ctx) => void seen.push(ctx.tenant, ctx.runMetadata),
    });
    const { json } = setup({ script: ['Hi.'], agent: { middleware: [watching], name: 'clerk' } });
    await json('POST', '/sessions', { input: 'Hi' });
    expect(seen).toEqual(['acme', { user: 'acme-user', agent: 'clerk' }]);
  });

  it('are answered once the store has the session, so any process can continue it', async () => {
    let write = (): void => {};
    const writing = new Promise<void>((resolve) => {
      write = resolve;
    });
    const inner = memoryStore();
    const store = storeWith(inner, {
      append: async (...entries) => {
        await writing;
        return inner.append(...entries);
      },
    });
    const { client, send } = setup({ script: ['Hi.'], store });
    const run = client.run('Hi', { sessionId: 'new', create: true });
    let answered = false;
    const known = run.sessionId.then(() => {
      answered = true;
    });
    const turns = async () => {
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    await turns();
    const joined = send('GET', '/sessions/new/events');
    const stopped = send('POST', '/chat/new/stop');
    await turns();
    expect(answered).toBe(false);
    write();
    await known;
    expect(await store.head('acme/new')).toBeGreaterThan(0);
    expect((await joined).status).toBe(200);
    expect((await stopped).status).toBe(204);
    const told = await all(run);
    expect(told[0]).toMatchObject({ id: '1.0', event: { type: 'agent_start' } });
  });

  it('stream events, and the client reads them', async () => {
    const { client } = setup({ script: [chunks('One ', 'two.')] });
    const run = client.run('Count', { sessionId: undefined });
    const sent = await all(run);
    expect(viewOf(sent)).toMatchObject({ status: 'done' });
    expect(viewOf(sent).messages.map(messageText)).toEqual(['Count', 'One two.']);
    expect(await run.result).toMatchObject({
      status: 'done',
      text: 'One two.',
      sessionId: await run.sessionId,
    });
  });

  it('that fail do not show the client what went wrong', async () => {
    const secret = new Error('connect postgres://root:hunter2@db failed');
    const { json, send, store } = setup({ script: [failWith(secret, 'Half'), failWith(secret)] });
    const { body } = await json('POST', '/sessions', { input: 'Hi', sessionId: 'a' });
    expect(body).toMatchObject({ status: 'error', stop: { reason: 'error' } });
    expect(JSON.stringify(body)).not.toContain('hunter2');
    const events = await send('POST', '/sessions', { input: 'Hi' }, { accept: 'text/event-stream' });
    expect(await events.text()).not.toContain('hunter2');
    const joined = await send('GET', '/sessions/a/events');
    const told = await joined.text();
    expect(told).toContain('agent_end');
    expect(told).not.toContain('hunter2');
    expect(await store.head('acme/a')).toBeGreaterThan(0);
  });

  it('of an attached client end when it leaves; a detached one goes on', async () => {
    for (const detached of [false, true]) {
      let go!: () => void;
      const gate = new Promise<void>((resolve) => {
        go = resolve;
      });
      const model = {
        provider: 'test',
        id: 'gated',
        async *stream(_: unknown, { signal }: { signal: AbortSignal } = {} as never) {
          yield { type: 'text' as const, text: 'Half ' };
          await Promise.race([gate, new Promise((resolve) => signal?.addEventListener('abort', resolve))]);
          yield { type: 'text' as const, text: 'done.' };
          yield { type: 'finish' as const, reason: 'stop' as const };
        },
      };
      const { client, agent } = setup({ agent: { model } });
      const run = client.run('Hi', { detached });
      for await (const { event } of run) if (event.type === 'message_update') break;
      const id = await run.sessionId;
      const joined = all(client.join(id, { after: 'run' }));
      go();
      const { status, messages } = viewOf(await joined);
      expect(status).toBe(detached ? 'done' : 'aborted');
      if (detached) expect(messages.map(messageText).at(-1)).toBe('Half done.');
      expect(agent).toBeDefined();
    }
  });

  it('of an attached client that has left before it could be answered end', async () => {
    for (const accept of ['application/json', 'text/event-stream']) {
      const { handler, client } = setup({ script: [hang()] });
      const left = new AbortController();
      const headers = { 'x-tenant': 'acme', 'content-type': 'application/json', accept };
      const body = JSON.stringify({ input: 'Hi', sessionId: 'a' });
      const request = new Request('http://x/sessions', {
        method: 'POST',
        headers,
        body,
        signal: left.signal,
      });
      const answered = handler(request).then((response) => response.text());
      left.abort();
      await answered;
      expect(viewOf(await all(client.join('a'))), accept).toMatchObject({ status: 'aborted' });
    }
  });

  it('can be steered, followed up and cancelled', async () => {
    const { client, json } = setup({ script: [hang()] });
    const run = client.run('Hi');
    const id = await run.sessionId;
    await client.steer(id, 'Faster.');
    await client.followUp(id, 'And then?');
    expect((await json('GET', `/sessions/${id}`)).body).toMatchObject({
      running: true,
      queued: [{ kind: 'steer' }, { kind: 'follow_up' }],
    });
    expect(await json('POST', `/sessions/${id}/runs`, { input: 'x' })).toMatchObject({
      status: 409,
      body: { error: { code: 'SESSION_BUSY' } },
    });
    expect((await json('DELETE', `/sessions/${id}`)).status).toBe(409);
    await client.cancel(id, 'enough');
    expect(await run.result).toMatchObject({
      status: 'aborted',
      stop: { reason: 'aborted', message: 'enough' },
    });
  });
});

describe('questions', () => {
  const script = [toolCalls({ name: 'pay', args: { amount: 500 } }), text('It is paid.')];
  const agent = { middleware: [approval()] };

  it('come with what they are about, and the run goes on when they are answered', async () => {
    const { client, json } = setup({ script, agent });
    const asked = await client.run('Pay 500').result;
    expect(asked).toMatchObject({
      status: 'suspended',
      questions: [{ toolName: 'pay', arguments: '{"amount":500}' }],
    });
    expect(JSON.stringify(asked)).not.toContain('hash');
    const [question] = await client.questions(asked.sessionId);
    expect(
      await json('POST', `/sessions/${asked.sessionId}/answers`, { answers: { nope: { type: 'approve' } } }),
    ).toMatchObject({ status: 409 });
    const answered = await client.answer(asked.sessionId, { [question!.id]: { type: 'approve' } }).result;
    expect(answered).toMatchObject({ status: 'done', text: 'It is paid.' });
  });

  it('show what the model wrote beside what the tool gets; an edit replaces the former', async () => {
    const paid: number[] = [];
    const cents = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({ amount: z.string().transform((euros) => Number(euros) * 100) }),
      execute: ({ amount }) => void paid.push(amount),
    });
    const { client } = setup({
      script: [toolCalls({ name: 'pay', args: { amount: '5' } }), text('It is paid.')],
      agent: { middleware: [approval()], tools: [cents] },
    });
    const { sessionId, questions } = await client.run('Pay 5').result;
    expect(questions).toMatchObject([{ arguments: '{"amount":500}', rawArguments: '{"amount":"5"}' }]);
    await client.answer(sessionId, { [questions[0]!.id]: { type: 'edit', args: { amount: '4' } } }).result;
    expect(paid).toEqual([400]);
  });

  it.each([true, false])('take only the answers they name (resume: %s)', async (resume) => {
    const policy = () => ask(undefined, undefined, { decisions: ['approve', 'reject'], remember: false });
    const { client, json } = setup({ script, agent: { middleware: [approval({ policy })] } });
    const { sessionId, questions } = await client.run('Pay 500').result;
    expect(questions).toMatchObject([{ decisions: ['approve', 'reject'], remember: false }]);
    const { id } = questions[0]!;
    for (const decision of [
      { type: 'respond', text: 'Paid.' },
      { type: 'approve', remember: 'tool' },
    ])
      expect(
        await json('POST', `/sessions/${sessionId}/answers`, { answers: { [id]: decision }, resume }),
      ).toMatchObject({ status: 409, body: { error: { code: 'DECISION_NOT_ALLOWED' } } });
    expect(await client.questions(sessionId)).toEqual(questions);
    expect(await client.session(sessionId)).toEqual({ sessionId, running: false, questions, queued: [] });
    expect(await client.answer(sessionId, { [id]: { type: 'approve' } }).result).toMatchObject({
      status: 'done',
    });
  });

  it('are not asked again once they are allowed, until that is revoked', async () => {
    const pay = (amount: number) => toolCalls({ name: 'pay', args: { amount } });
    const { client, json } = setup({ script: [pay(500), text('Paid.'), pay(500), pay(7)], agent });
    const { sessionId, questions } = await client.run('Pay 500').result;
    expect(await client.allowances(sessionId)).toEqual([]);
    await client.answer(sessionId, { [questions[0]!.id]: { type: 'approve', remember: 'arguments' } }).result;
    const [allowance] = await client.allowances(sessionId);
    expect(allowance).toEqual({
      id: expect.any(String),
      toolName: 'pay',
      scope: 'arguments',
      arguments: '{"amount":500}',
      at: expect.any(Number),
    });
    // The same arguments pass; others are asked about.
    const other = await client.run('Again, and 7', { sessionId }).result;
    expect(other.questions).toMatchObject([{ arguments: '{"amount":7}' }]);
    await client.revoke(sessionId, allowance!.id);
    expect(await client.allowances(sessionId)).toEqual([]);
    await expect(client.revoke(sessionId, allowance!.id)).rejects.toMatchObject({
      status: 404,
      code: 'ALLOWANCE_UNKNOWN',
    });
    expect(await json('GET', '/openapi.json')).toMatchObject({
      body: {
        paths: {
          '/sessions/{sessionId}/allowances': { get: { operationId: 'listAllowances' } },
          '/sessions/{sessionId}/allowances/{allowanceId}': { delete: { operationId: 'revokeAllowance' } },
        },
      },
    });
  });

  it('are asked again after a revocation; another tenant can neither see nor revoke', async () => {
    const again = toolCalls({ name: 'pay', args: { amount: 500 } });
    const { client, handler } = setup({ script: [again, text('Paid.'), again], agent });
    const { sessionId, questions } = await client.run('Pay 500').result;
    await client.answer(sessionId, { [questions[0]!.id]: { type: 'approve', remember: 'tool' } }).result;
    const { id } = (await client.allowances(sessionId))[0]!;
    const { send } = callers(handler, 'other');
    expect((await send('GET', `/sessions/${sessionId}/allowances`)).status).toBe(404);
    expect((await send('DELETE', `/sessions/${sessionId}/allowances/${id}`)).status).toBe(404);
    expect(await client.allowances(sessionId)).toHaveLength(1);
    await client.revoke(sessionId, id);
    expect(await client.run('Again', { sessionId }).result).toMatchObject({
      status: 'suspended',
      questions: [{ toolName: 'pay' }],
    });
  });

  it('can be answered without going on, and resumed later', async () => {
    const { client, json } = setup({ script, agent });
    const { sessionId, questions } = await client.run('Pay 500').result;
    const answers = { [questions[0]!.id]: { type: 'reject', reason: 'No.' } };
    expect((await json('POST', `/sessions/${sessionId}/answers`, { answers, resume: false })).status).toBe(
      204,
    );
    expect((await json('POST', `/sessions/${sessionId}/resume`, {})).body).toMatchObject({ status: 'done' });
  });
});

describe('going back', () => {
  it('regenerates and edits in a copy, or in place', async () => {
    const { client } = setup({ script: ['One.', 'Two.', 'Three.', 'Four.'] });
    const { sessionId } = await client.run('Say').result;
    const { messages } = await client.messages(sessionId);
    const copy = await client.regenerate(sessionId, messages[1]!.id).result;
    expect(copy).toMatchObject({ text: 'Two.' });
    expect(copy.sessionId).not.toBe(sessionId);
    expect((await client.messages(sessionId)).messages.map(messageText)).toEqual(['Say', 'One.']);
    const edited = await client.edit(sessionId, messages[0]!.id, 'Shout', { fork: false }).result;
    expect(edited).toMatchObject({ text: 'Three.', sessionId });
    expect((await client.messages(sessionId)).messages.map(messageText)).toEqual(['Shout', 'Three.']);
    expect(viewOf(await all(client.join(sessionId))).messages.map(messageText)).toEqual(['Shout', 'Three.']);
    await expect(client.regenerate(sessionId, 'nope').result).rejects.toMatchObject({ status: 404 });
  });
});

describe('joining', () => {
  it('gets 204 if no event is left, and 400 for an id that was never sent', async () => {
    const { client, send } = setup({ script: ['Hi.'] });
    const run = client.run('Hi');
    const sent = await all(run);
    const id = await run.sessionId;
    const response = await send('GET', `/sessions/${id}/events`, undefined, {
      'last-event-id': sent.at(-1)!.id,
    });
    expect(response.status).toBe(204);
    expect((await send('GET', `/sessions/${id}/events?after=nonsense`)).status).toBe(400);
  });

  it('goes on by itself when the connection breaks, at every event', async () => {
    const script = () => [toolCalls({ name: 'pay', args: { amount: 5 } }), chunks('It ', 'is ', 'paid.')];
    const whole = await all(setup({ script: script() }).client.run('Pay'));
    for (let cut = 1; cut < whole.length; cut++) {
      const { handler } = setup({ script: script() });
      let breaks = true;
      const client = alliumClient({
        baseUrl: 'http://x',
        headers: { 'x-tenant': 'acme' },
        backoffMs: [1, 1],
        fetch: async (url, init) => {
          const response = await handler(new Request(url as string, init));
          if (!breaks || response.body === null) return response;
          breaks = false;
          return new Response(response.body.pipeThrough(cutAfter(cut)), response);
        },
      });
      const run = client.run('Pay');
      const sent = await all(run);
      expect(new Set(sent.map(({ id }) => id)).size, `cut ${cut}`).toBe(sent.length);
      const texts = viewOf(sent).messages.map(messageText);
      expect(texts, `cut ${cut}`).toEqual(viewOf(whole).messages.map(messageText));
      expect(await run.result).toMatchObject({ status: 'done', text: 'It is paid.' });
      let said = '';
      for (const { event } of sent) {
        if (event.type === 'message_reset') said = '';
        if (event.type === 'message_update' && event.delta.type === 'text') said += event.delta.text;
      }
      expect(said, `cut ${cut}`).toBe('It is paid.');
    }
  });
});

/** Breaks a stream off after so many events. */
function cutAfter(events: number): TransformStream<Uint8Array, Uint8Array> {
  let left = events;
  return new TransformStream({
    transform(chunk, controller) {
      const blocks = new TextDecoder().decode(chunk).split('\n\n').slice(0, -1);
      const kept = blocks.slice(0, left);
      if (kept.length > 0)
        controller.enqueue(new TextEncoder().encode(kept.map((one) => `${one}\n\n`).join('')));
      left -= kept.length;
      if (left === 0) controller.error(new TypeError('network error'));
    },
  });
}

describe('what clients see', () => {
  const thinking = {
    parts: [
      { type: 'thinking' as const, text: 'Hmm.' },
      { type: 'tool-call' as const, id: 'c1', name: 'pay', arguments: '{"amount":7}' },
    ],
  };
  const noting = defineMiddleware({
    name: 'noting',
    beforeModel(ctx) {
      ctx.emit('progress', { percent: 50 });
      ctx.emit('internal', { hunter: 2 });
    },
  });
  const steps = () =>
    [
      { ...thinking, parts: [...thinking.parts, { type: 'finish' as const, reason: 'tool-calls' as const }] },
      'Done.',
    ] as ScriptStep[];

  it('is text, tool names and the end, unless more is listed', async () => {
    const { send } = setup({ script: steps(), agent: { middleware: [noting] } });
    const response = await send(
      'POST',
      '/sessions',
      { input: 'Hi', sessionId: 'a' },
      { accept: 'text/event-stream' },
    );
    const told = await response.text();
    for (const hidden of [
      'Hmm.',
      'amount',
      'Paid 7',
      'internal',
      'progress',
      'state',
      'hash',
      'usage',
      'metadata',
    ])
      expect(told, hidden).not.toContain(hidden);
    const history = await (await send('GET', '/sessions/a/messages')).text();
    for (const hidden of ['Hmm.', 'amount', 'Paid 7', 'usage']) expect(history, hidden).not.toContain(hidden);
    expect(told).toContain('"toolName":"pay"');
  });

  it('includes more if it is listed', async () => {
    const show = { thinking: true, tools: ['pay'], notices: ['progress'] };
    const { send } = setup({ script: steps(), agent: { middleware: [noting] }, show });
    const told = await (
      await send('POST', '/sessions', { input: 'Hi' }, { accept: 'text/event-stream' })
    ).text();
    for (const seen of ['Hmm.', '{\\"amount\\":7}', 'Paid 7', 'progress']) expect(told, seen).toContain(seen);
    expect(told).not.toContain('internal');
  });

  it('never includes what guards removed', async () => {
    const guard = defineMiddleware({
      name: 'no-cards',
      guard: {
        on: ['input', 'output', 'tool-args', 'tool-result', 'thinking'],
        hold: window(19),
        replacement: '[card]',
        find: (said) => [...said.matchAll(/4111/g)].map((m) => ({ start: m.index, end: m.index + 4 })),
      },
    });
    const show = { thinking: true, tools: true };
    const script = [
      {
        parts: [
          { type: 'thinking', text: 'It is 4111.' },
          { type: 'tool-call', id: 'c', name: 'pay', arguments: '{"amount":4111}' },
          { type: 'finish', reason: 'tool-calls' },
        ],
      } as ScriptStep,
      chunks('Card 41', '11, paid.'),
    ];
    const { send } = setup({ script, agent: { middleware: [guard] }, show });
    const live = await send(
      'POST',
      '/sessions',
      { input: 'My card is 4111.', sessionId: 'a' },
      { accept: 'text/event-stream' },
    );
    const told = [await live.text()];
    for (const path of ['/sessions/a/events', '/sessions/a/messages', '/chat/a'])
      told.push(await (await send('GET', path)).text());
    for (const one of told) {
      expect(one).not.toContain('4111');
      expect(one).toContain('[card]');
    }
  });
});

describe('the owner of a session', () => {
  it('is checked everywhere: sessions of others answer exactly like unknown ones', async () => {
    const { handler, client, store } = setup({ script: ['Hi.', 'Hi.', 'Hi.'] });
    const { sessionId } = await client.run('Hi').result;
    const head = await store.head(`acme/${sessionId}`);
    const { send } = callers(handler, 'other');
    const asked: [string, string, unknown?][] = [
      ['GET', ''],
      ['GET', '/messages'],
      ['GET', '/events'],
      ['GET', '/questions'],
      ['GET', '/allowances'],
      ['DELETE', '/allowances/x'],
      ['DELETE', ''],
      ['POST', '/runs', { input: 'x' }],
      ['POST', '/resume', {}],
      ['POST', '/answers', { answers: { x: { type: 'approve' } } }],
      ['POST', '/steer', { input: 'x' }],
      ['POST', '/follow-up', { input: 'x' }],
      ['POST', '/cancel', {}],
      ['POST', '/regenerate', { messageId: 'x' }],
      ['POST', '/edit', { messageId: 'x', input: 'x' }],
    ];
    for (const [method, path, body] of asked) {
      const mine = await send(method, `/sessions/${sessionId}${path}`, body);
      const none = await send(method, `/sessions/nobody${path}`, body);
      expect(mine.status, path).toBe(404);
      expect(mine.status).toBe(none.status);
      expect(await mine.text()).toBe(await none.text());
      expect([...mine.headers]).toEqual([...none.headers]);
    }
    expect((await (await send('GET', `/chat/${sessionId}`)).json()) as unknown).toEqual({
      messages: [],
      running: false,
    });
    expect((await send('GET', `/chat/${sessionId}/stream`)).status).toBe(204);
    expect(((await (await send('GET', '/sessions')).json()) as { sessions: [] }).sessions).toEqual([]);
    // Even the same id is another session.
    const own = await send('POST', '/sessions', { input: 'Hi', sessionId });
    expect(own.status).toBe(200);
    expect(await store.head(`acme/${sessionId}`)).toBe(head);
  });

  it('is also checked by the kernel if ids contain no tenant', async () => {
    const { handler, client } = setup({ script: ['Hi.'], storeId: (id) => id });
    const { sessionId } = await client.run('Hi').result;
    const { json } = callers(handler, 'other');
    for (const path of ['/sessions/ID/messages', '/chat/ID', '/chat/ID/stream'])
      expect(await json('GET', path.replace('ID', sessionId)), path).toEqual(
        await json('GET', path.replace('ID', 'none')),
      );
    // Its id is taken, which is all that anybody else learns.
    const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }];
    expect((await json('POST', '/chat', { id: sessionId, messages })).status).toBe(404);
    expect((await json('POST', '/sessions', { sessionId, input: 'Hi' })).status).toBe(404);
  });

  it('lists and deletes its sessions, without those of sub-agents', async () => {
    const clerk = new Agent({ name: 'clerk', model: scriptedModel(['Filed.']) });
    const tools = [clerk.asTool({ name: 'ask', description: 'Asks.' })];
    const script = [toolCalls({ name: 'ask', args: { prompt: 'x' } }), text('Done.'), text('Again.')];
    const { client, store } = setup({ script, agent: { tools } });
    const first = await client.run('Hi').result;
    const second = await client.run('Hi').result;
    expect((await client.sessions()).sessions.map(({ sessionId }) => sessionId).sort()).toEqual(
      [first.sessionId, second.sessionId].sort(),
    );
    await client.delete(first.sessionId);
    expect(await store.head(`acme/${first.sessionId}`)).toBe(0);
    await expect(client.messages(first.sessionId)).rejects.toBeInstanceOf(HttpError);
  });
});

describe('a list of sessions', () => {
  /** All pages of a caller, and everything that was said about them. */
  async function pages(
    handler: (request: Request) => Promise<Response>,
    limit: number,
    headers: Record<string, string>,
  ) {
    const ids: string[] = [];
    let said = '';
    let cursor: string | undefined;
    do {
      const more = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const response = await handler(new Request(`http://x/sessions?limit=${limit}${more}`, { headers }));
      const text = await response.text();
      const page = JSON.parse(text);
      said += text;
      ids.push(...page.sessions.map(({ sessionId }: { sessionId: string }) => sessionId));
      expect(page.sessions.length).toBeLessThanOrEqual(limit);
      cursor = page.next;
    } while (cursor !== undefined);
    return { ids, said };
  }
  const tenantOf = (request: Request) => {
    const tenant = request.headers.get('x-tenant');
    return tenant === null ? {} : { tenant };
  };

  it('says nothing of tenants, not even in its cursors', async () => {
    const owners = ['acme', 'zeta', 'zeta', '', 'acme', 'zeta', '', '', 'acme', 'zeta', 'zeta', 'zeta'];
    const { handler } = setup({ authorize: tenantOf, script: owners.map(() => 'Hi.') });
    for (const [i, tenant] of owners.entries()) {
      const headers = { 'content-type': 'application/json', ...(tenant !== '' && { 'x-tenant': tenant }) };
      const body = JSON.stringify({ input: 'Hi', sessionId: `${tenant[0] ?? 'o'}${i}` });
      await handler(new Request('http://x/sessions', { method: 'POST', headers, body }));
    }
    for (const limit of [1, 2, 3, 100]) {
      const nobody = await pages(handler, limit, {});
      expect(nobody.ids.sort()).toEqual(['o3', 'o6', 'o7']);
      expect(nobody.said).not.toMatch(/acme|zeta/);
      const acme = await pages(handler, limit, { 'x-tenant': 'acme' });
      expect(acme.ids.sort()).toEqual(['a0', 'a4', 'a8']);
      expect(acme.said).not.toMatch(/acme|zeta/);
    }
  });

  it('has the ids of clients, also if ids in the store are made by you', async () => {
    const script = ['One.', 'Two.'];
    const storeId = (id: string) => `secret:${id}`;
    const clientId = (id: string) => id.slice('secret:'.length);
    const { client, handler } = setup({ script, storeId, clientId });
    for (const sessionId of ['a', 'b']) await client.run('Hi', { sessionId, create: true }).result;
    const { ids, said } = await pages(handler, 1, { 'x-tenant': 'acme' });
    expect(ids.sort()).toEqual(['a', 'b']);
    expect(said).not.toContain('secret');
    for (const id of ids) expect((await client.messages(id)).messages).toHaveLength(2);
  });

  it('leaves out ids that lead nowhere', async () => {
    const { client } = setup({ script: ['One.'], storeId: (id) => `secret:${id}` });
    await client.run('Hi', { sessionId: 'a', create: true }).result;
    expect((await client.sessions()).sessions).toEqual([]);
  });
});

describe('what is refused', () => {
  it('wrong options of serve(), first of all a missing `authorize`', () => {
    const agents = new Agent({ model: scriptedModel([]) });
    for (const authorize of [undefined, true, 'all'])
      expect(() => serve({ agents, authorize } as never)).toThrow(/`authorize` .*or 'none'/);
    expect(() => serve({ agents, authorize: 'none', basePath: 'api/' })).toThrow('basePath');
    expect(() => serve({ agents: {}, authorize: 'none' })).toThrow('agents');
    expect(() =>
      serve({ agents: { a: agents, b: new Agent({ model: scriptedModel([]) }) }, authorize: 'none' }),
    ).toThrow('store');
    expect(() => serve({ agents, authorize: 'none', cros: true } as never)).toThrow('cros');
    expect(() => serve({ agents, authorize: 'none', clientId: (id) => id })).toThrow('storeId');
  });

  it.each<[string, unknown]>([
    ['`detached` to be true or false', { detached: 'false' }],
    ['`onError` to be a function', { onError: 'stderr' }],
    ['`clock` to be', { clock: {} }],
    ['`store` to be', { store: {} }],
    ['`queue` to be', { queue: null }],
    ['`show` to be an object', { show: null }],
    ['`show.thinking` to be true or false', { show: { thinking: 'no' } }],
    ['`show.tools` to be true or false or a list of names', { show: { tools: 'search' } }],
    ['`show.notices` to be a list of names', { show: { notices: 'progress' } }],
    ['`cors` to be', { cors: true }],
    ['`cors` to be', { cors: 'https://app.example.com' }],
    ['`cors.origins` to be', { cors: { credentials: true } }],
    ['`cors.origins` to be', { cors: { origins: 'https://app.example.com' } }],
    ['`cors.origins` to be', { cors: { origins: [] } }],
    ['`cors.origins[0]` to be', { cors: { origins: ['*'] } }],
    ['`cors.origins[0]` to be', { cors: { origins: ['app.example.com'] } }],
    ['`cors.origins[1]` to be', { cors: { origins: ['https://a.example', 'https://b.example/'] } }],
    ['Did you mean `origins`', { cors: { origin: '*' } }],
    ['`cors.credentials` to be', { cors: { origins: '*', credentials: 'yes' } }],
    [
      "`cors.origins` to be a list of origins: with `credentials`, '*'",
      { cors: { origins: '*', credentials: true } },
    ],
  ])('wrong options: %s', (words, options) => {
    const agents = new Agent({ model: scriptedModel([]) });
    expect(() => serve({ agents, authorize: 'none', ...(options as object) })).toThrow(words);
  });

  it('wrong options of eventHub()', () => {
    expect(() => eventHub({} as never)).toThrow('`store` to be');
    expect(() => eventHub({ store: {} } as never)).toThrow('`store` to be');
    expect(() => eventHub({ store: memoryStore(), show: null } as never)).toThrow('`show` to be an object');
    expect(() => eventHub({ store: memoryStore(), pollMs: [100] } as never)).toThrow('`pollMs` to be');
    expect(() => eventHub({ store: memoryStore(), clock: 1 } as never)).toThrow('`clock` to be');
  });

  it.each([undefined, null, 42])('everybody, if authorize makes a tenant of %s', async (tenant) => {
    const { json, errors } = setup({ authorize: () => ({ tenant }) as never });
    for (const path of ['/sessions', '/agents', '/chat/c'])
      expect(await json('GET', path)).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL' } } });
    expect(String(errors[0])).toContain('Expected `tenant` to be text');
  });

  it('an unauthorised caller gets 401, or the response that authorize returns', async () => {
    const { handler } = setup();
    expect((await handler(new Request('http://x/sessions'))).status).toBe(401);
    const teapot = setup({ authorize: () => new Response('tea', { status: 418 }) });
    expect((await teapot.json('GET', '/sessions').catch(() => ({ status: 418 }))).status).toBe(418);
    const broken = setup({
      authorize: () => {
        throw new Error('ldap://secret');
      },
    });
    const { status, body } = await broken.json('GET', '/sessions');
    expect(status).toBe(500);
    expect(JSON.stringify(body)).not.toContain('ldap');
    expect(broken.errors).toHaveLength(1);
  });

  it.each(['application/json', 'text/event-stream'])(
    'onError hears why a run failed, the client does not: %s',
    async (accept) => {
      const { handler, errors } = setup({ script: [failWith(new Error('no key for vault://secret'))] });
      const headers = { 'x-tenant': 'acme', 'content-type': 'application/json', accept };
      const response = await handler(
        new Request('http://x/sessions', { method: 'POST', headers, body: JSON.stringify({ input: 'Hi' }) }),
      );
      const said = await response.text();
      expect(said).toContain('"status":"error"');
      expect(said).not.toContain('vault');
      expect(errors).toEqual([
        expect.objectContaining({ message: expect.stringContaining('vault://secret') }),
      ]);
    },
  );

  it('onError does not hear of cancelled runs', async () => {
    const { client, errors } = setup({ script: [hang()] });
    const run = client.run('Hi');
    await client.cancel(await run.sessionId);
    expect((await run.result).status).toBe('aborted');
    expect(errors).toEqual([]);
  });

  it.each<[string, () => void | Promise<void>]>([
    ['throws', () => nothingWorks()],
    ['rejects', async () => nothingWorks()],
  ])('onError that %s is told on stderr, and harms nothing', async (_, onError) => {
    const told = vi.spyOn(globalThis.console, 'error').mockImplementation(() => {});
    const { json } = setup({ script: [failWith(new Error('No.'))], onError });
    expect((await json('POST', '/sessions', { input: 'Hi' })).body.status).toBe('error');
    const refused = setup({ authorize: () => nothingWorks(), onError });
    expect((await refused.json('GET', '/sessions')).status).toBe(500);
    expect(told).toHaveBeenCalledTimes(2);
    told.mockRestore();
  });

  it('authorize is given the operation and the session of each request', async () => {
    const seen: unknown[] = [];
    const { json } = setup({
      authorize: (_, aim) => {
        seen.push(aim);
        return { tenant: 'acme' };
      },
    });
    await json('GET', '/sessions');
    await json('POST', '/sessions/a/steer', { input: 'x' });
    expect(seen).toEqual([{ operation: 'listSessions' }, { operation: 'steer', sessionId: 'a' }]);
  });

  it.each<[string, number, RequestInit]>([
    ['a body that is no JSON', 400, { body: '{', headers: { 'content-type': 'application/json' } }],
    ['a form', 415, { body: 'input=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['plain text', 415, { body: '{"input":"x"}' }],
    [
      'a body that is too large',
      413,
      { body: JSON.stringify({ input: 'x'.repeat(3000) }), headers: { 'content-type': 'application/json' } },
    ],
    [
      'an unknown field',
      400,
      { body: '{"input":"x","tenant":"y"}', headers: { 'content-type': 'application/json' } },
    ],
    ['no input', 400, { body: '{}', headers: { 'content-type': 'application/json' } }],
    [
      'an address instead of a file',
      400,
      {
        body: '{"input":[{"type":"image","data":"http://169.254.169.254/","mimeType":"image/png"}]}',
        headers: { 'content-type': 'application/json' },
      },
    ],
    [
      'an agent nobody has',
      404,
      { body: '{"input":"x","agent":"y"}', headers: { 'content-type': 'application/json' } },
    ],
  ])('is %s', async (_, status, init) => {
    const { handler } = setup({ maxBodyBytes: 2000 });
    const headers = { 'x-tenant': 'acme', ...(init.headers as object) };
    const response = await handler(new Request('http://x/sessions', { ...init, method: 'POST', headers }));
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { code: expect.any(String) } });
  });

  it('is an id that no address can have', async () => {
    const { json, errors, store } = setup({ script: ['Hi.'] });
    const wrong = { status: 400, body: { error: { code: 'INVALID_SESSION_ID' } } };
    for (const sessionId of ['\ud800', 'a\udc00b', '..', 'a\nb'])
      expect(await json('POST', '/sessions', { input: 'Hi', sessionId })).toMatchObject(wrong);
    expect((await store.list()).sessions).toEqual([]);
    expect(await json('POST', '/sessions', { input: 'Hi', sessionId: '😀' })).toMatchObject({ status: 200 });
    expect(await json('GET', `/sessions/${encodeURIComponent('😀')}`)).toMatchObject({ status: 200 });
    expect(errors).toEqual([]);
  });

  it('is the cursor of no page', async () => {
    const { json, errors } = setup();
    const { status, body } = await json('GET', '/sessions?cursor=x');
    expect([status, body.error]).toEqual([
      400,
      { code: 'INVALID_REQUEST', message: '`cursor` has to be the `next` of an earlier page.' },
    ]);
    expect(errors).toEqual([]);
  });

  it('is an edit that the tool does not take, and the question stays open', async () => {
    const script = [toolCalls({ name: 'pay', args: { amount: 5 } }), 'Paid.'];
    const { client, json, errors } = setup({ script, agent: { middleware: [approval()] } });
    const { sessionId, questions } = await client.run('Pay').result;
    const { id } = questions[0]!;
    const deep = JSON.parse(`${'['.repeat(2000)}${']'.repeat(2000)}`);
    for (const resume of [true, false])
      for (const args of ['all', null, { amount: 'five' }, { amount: deep }]) {
        const answers = { [id]: { type: 'edit', args } };
        const { status, body } = await json('POST', `/sessions/${sessionId}/answers`, { answers, resume });
        expect([status, body.error.code]).toEqual([400, 'INVALID_REQUEST']);
        expect(body.error.message).toMatch(/still open/);
      }
    const { text } = await client.answer(sessionId, { [id]: { type: 'edit', args: { amount: 6 } } }).result;
    expect([text, errors]).toEqual(['Paid.', []]);
  });

  it('is not a slash at the end of a path', async () => {
    const { send } = setup({ basePath: '/api', script: ['Hi.'] });
    expect((await send('GET', '/api/agents/')).status).toBe(200);
    const said = await send('POST', '/api/sessions/?x=/', { input: 'Hi', sessionId: 's' });
    expect(said.status).toBe(200);
    expect((await send('GET', '/api/sessions/s/messages/')).status).toBe(200);
    expect((await send('GET', '/api/sessions/s//')).status).toBe(404);
    expect((await send('GET', '/api/')).status).toBe(404);
  });

  it('is other methods and paths', async () => {
    const { send } = setup({ basePath: '/api' });
    expect((await send('GET', '/sessions')).status).toBe(404);
    expect((await send('DELETE', '/api/sessions')).status).toBe(405);
    expect((await send('DELETE', '/api/sessions')).headers.get('allow')).toBe('GET, POST');
    expect((await send('GET', '/api/agents')).status).toBe(200);
    const head = await send('HEAD', '/api/openapi.json');
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET']);
  });

  it('is no answers at all', async () => {
    const { client, json } = setup({ script: ['Hi.'] });
    await client.run('Hi', { sessionId: 's', create: true }).result;
    const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] };
    for (const [path, body] of [
      ['/sessions/s/answers', {}],
      ['/chat', { id: 's', messages: [message] }],
    ] as const)
      expect(await json('POST', path, { ...body, answers: {} })).toEqual({
        status: 400,
        body: { error: { code: 'INVALID_REQUEST', message: '`answers` must not be empty.' } },
      });
  });

  it('is other origins, unless they are named', async () => {
    const origin = 'https://app.example';
    const closed = await setup().send('GET', '/agents', undefined, { origin });
    expect(closed.headers.get('access-control-allow-origin')).toBeNull();
    const { send } = setup({ cors: { origins: [origin], credentials: true } });
    const open = await send('OPTIONS', '/sessions', undefined, { origin });
    expect([open.status, open.headers.get('access-control-allow-origin')]).toEqual([204, origin]);
    expect(
      (await send('GET', '/agents', undefined, { origin: 'https://evil.example' })).headers.get(
        'access-control-allow-origin',
      ),
    ).toBeNull();
  });

  it('is not what the client needs on a page of another origin', async () => {
    const origin = 'https://app.example';
    const { send } = setup({ cors: { origins: [origin] }, script: ['Hi.'] });
    const asks = { origin, 'access-control-request-headers': 'content-type,x-api-key' };
    const allowed = await send('OPTIONS', '/sessions', undefined, asks);
    expect(allowed.headers.get('access-control-allow-headers')).toBe('content-type,x-api-key');
    const started = await send('POST', '/sessions', { input: 'Hi' }, { origin });
    expect(started.headers.get('access-control-expose-headers')).toBe('x-session-id');
  });

  it('may be a redirect, whose headers nobody can change', async () => {
    const authorize = () => Response.redirect('https://login.example', 302);
    const { send } = setup({ cors: { origins: '*' }, authorize });
    const response = await send('GET', '/agents', undefined, { origin: 'https://app.example' });
    expect([response.status, response.headers.get('location')]).toEqual([302, 'https://login.example/']);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
  });

  it('is a cache that keeps answers for somebody else', async () => {
    const { send } = setup();
    for (const path of ['/agents', '/sessions', '/sessions/nobody'])
      expect((await send('GET', path)).headers.get('cache-control'), path).toBe('no-store');
  });
});

describe('several agents', () => {
  it('are listed with their tools, and a session stays with its own', async () => {
    const store = memoryStore();
    const a = new Agent({ model: scriptedModel(['A.', 'A again.']), store, tools: [pay] });
    const b = new Agent({ model: scriptedModel(['B.', 'B again.']), store });
    const { client } = callers(serve({ agents: { a, b }, authorize: () => ({ tenant: 'acme' }) }));
    expect(await client.agents()).toEqual([
      { name: 'a', tools: [{ name: 'pay', description: 'Pays.' }] },
      { name: 'b', tools: [] },
    ]);
    const { sessionId, text: said } = await client.run('Hi', { agent: 'b' }).result;
    expect(said).toBe('B.');
    expect((await client.run('Hi', { sessionId }).result).text).toBe('B again.');
  });
});

describe('on node:http', () => {
  const raw = (port: number, text: string) =>
    new Promise<string>((resolve, reject) => {
      let said = '';
      const socket = connect(port, '127.0.0.1', () => socket.write(text));
      socket.on('data', (chunk) => {
        said += chunk;
      });
      socket.on('error', reject).on('close', () => resolve(said));
    });

  it.each([
    ['a host that is none', 'GET /agents HTTP/1.1\r\nHost: ::::'],
    ['a port that is none', 'GET /agents HTTP/1.1\r\nHost: x:99999'],
    ['a method that nobody may use', 'TRACE /agents HTTP/1.1\r\nHost: x'],
  ])('refuses %s', async (_, head) => {
    const { handler } = setup();
    const server = createServer(toNodeListener(handler));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const said = await raw(port, `${head}\r\nConnection: close\r\n\r\n`);
    expect(said).toMatch(/^HTTP\/1.1 400 .*"INVALID_REQUEST"/s);
  });

  it('knows the host of a request of HTTP/2', async () => {
    const hosts: string[] = [];
    const { handler } = setup({
      authorize: ({ url }) => {
        hosts.push(new URL(url).host);
        return {};
      },
    });
    const server = createHttp2(toNodeListener(handler));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const asked = client.request({ ':path': '/agents', ':authority': 'acme.example.com' });
    await once(asked.resume(), 'end');
    client.close();
    server.close();
    expect(hosts).toEqual(['acme.example.com']);
  });

  it('tells you about a handler that throws', async () => {
    const told = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    const server = createServer(toNodeListener(nothingWorks));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(500);
    expect(told.mock.calls).toEqual([['[allium] a request failed:', new Error('Nothing works.')]]);
    told.mockRestore();
  });

  it('sends every cookie of an answer', async () => {
    const login = new Response('Log in.', { status: 401 });
    for (const cookie of ['a=1; Path=/', 'b=2']) login.headers.append('set-cookie', cookie);
    const { handler } = setup({ authorize: () => login });
    const server = createServer(toNodeListener(handler));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { headers } = await fetch(`http://127.0.0.1:${port}/agents`);
    expect(headers.getSetCookie()).toEqual(['a=1; Path=/', 'b=2']);
  });

  const servers: ReturnType<typeof createServer>[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  it('reads the rest of a body that it refuses, so that the connection can be used again', async () => {
    const { handler } = setup();
    const server = createServer(toNodeListener(handler));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const ask = (method: string, path: string, body: string, headers: Record<string, string> = {}) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = sendRequest({ port, agent, method, path, headers }, (answer) => {
          answer.resume().on('end', () => resolve(answer.statusCode));
        });
        sent.on('error', reject).end(body);
      });
    const input = (length: number) => JSON.stringify({ input: 'x'.repeat(length) });
    const type = { 'content-type': 'application/json' };
    const chunked = { ...type, 'x-tenant': 'acme', 'transfer-encoding': 'chunked' };
    for (const [path, body, headers, status] of [
      ['/sessions', input(2_000_000), { ...type, 'x-tenant': 'acme' }, 413],
      ['/sessions', input(2_000_000), chunked, 413],
      ['/sessions', input(200_000), type, 401],
      ['/nowhere', input(200_000), type, 404],
    ] as const) {
      expect(await ask('POST', path, body, headers)).toBe(status);
      expect(await ask('GET', '/agents', '', { 'x-tenant': 'acme' }), String(status)).toBe(200);
    }
    agent.destroy();
  });

  it('ends a request whose client leaves before its body is read', async () => {
    let asked = (_: void): void => {};
    const began = new Promise<void>((resolve) => {
      asked = resolve;
    });
    let go = (): void => {};
    const errors: unknown[] = [];
    const { handler } = setup({
      authorize: (request) =>
        new Promise((resolve) => {
          go = () => resolve({});
          request.signal.addEventListener('abort', go);
          asked();
        }),
      onError: (error) => errors.push(error),
    });
    let over: Promise<void> | undefined;
    const listener = toNodeListener(handler);
    const server = createServer((request, response) => {
      over = listener(request, response);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const headers = { 'content-type': 'application/json', 'content-length': '200000' };
    const sent = sendRequest({ port, method: 'POST', path: '/sessions', headers });
    sent.on('error', () => {}).write('{');
    await began;
    sent.destroy();
    await over;
    expect(errors).toHaveLength(1);
  });

  it('streams, reconnects and stops with its client', async () => {
    const { handler } = setup({ script: [chunks('Over ', 'the ', 'wire.'), hang()] });
    const server = createServer(toNodeListener(handler));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = alliumClient({ baseUrl, headers: { 'x-tenant': 'acme' } });
    const { sessionId, text: said } = await client.run('Hi').result;
    expect(said).toBe('Over the wire.');
    const left = new AbortController();
    const run = client.run('More', { sessionId, detached: false, signal: left.signal });
    const reading = all(run);
    await run.sessionId;
    left.abort();
    await expect(reading).rejects.toThrow();
    expect(viewOf(await all(client.join(sessionId))).status).toBe('aborted');
    const unknown = { status: 404, code: 'NOT_FOUND', message: expect.stringContaining('POST /sessions') };
    await expect(client.messages('nobody')).rejects.toMatchObject(unknown);
    await expect(client.run('Hi', { sessionId: 'nobody' }).result).rejects.toMatchObject(unknown);
  });
});
