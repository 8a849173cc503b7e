// What a client does when its connection breaks. The server is a list of answers.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  alliumClient,
  applyEvent,
  type ClientEvent,
  type ClientOptions,
  EMPTY_VIEW,
  type SentEvent,
} from './index.js';

const start = { type: 'agent_start', runId: 'r' } as const;
const said = (text: string) =>
  ({ type: 'message_update', messageId: 'm', delta: { type: 'text', block: 0, text } }) as const;
const end = { type: 'agent_end', runId: 'r', status: 'done', stop: { reason: 'end_turn' } } as const;

/** A stream of these events, numbered from `from`. It ends in order, or breaks. */
function stream(events: readonly object[], { from = 1, breaks = false } = {}): Response {
  const text = events.map((event, i) => `id: ${from + i}.0\ndata: ${JSON.stringify(event)}\n\n`).join('');
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      if (!breaks) controller.close();
    },
    // What was sent is read first.
    pull(controller) {
      if (breaks) controller.error(new Error('reset'));
    },
  });
  return new Response(body, { headers: { 'x-session-id': 's' } });
}

const refused = (status: number, code: string): Response =>
  Response.json({ error: { code, message: code } }, { status });

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly after: string | null;
  readonly body: unknown;
}

/** A client whose requests get these answers, one after the other. Errors are thrown. */
function clientOf(answers: readonly (Response | Error)[], options: Partial<ClientOptions> = {}) {
  const asked: Asked[] = [];
  const left = [...answers];
  const fetching = async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    asked.push({
      method: init.method ?? 'GET',
      path: String(url).replace('http://x', ''),
      after: headers.get('last-event-id'),
      body: init.body === undefined ? undefined : JSON.parse(String(init.body)),
    });
    const answer = left.shift();
    if (!answer) throw new Error('There are no more answers.');
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = alliumClient({ baseUrl: 'http://x', fetch: fetching as typeof fetch, ...options });
  return { client, asked };
}

/** Reads to the end, with all pauses let pass; tells how long each of them was. */
async function readAll(events: AsyncIterable<SentEvent>) {
  const sent: SentEvent[] = [];
  const pauses: number[] = [];
  const reading = (async () => {
    for await (const one of events) sent.push(one);
  })();
  let over = false;
  let error: unknown;
  reading.then(
    () => {
      over = true;
    },
    (why) => {
      over = true;
      error = why;
    },
  );
  while (!over) {
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (over || vi.getTimerCount() === 0) continue;
    const before = Date.now();
    vi.advanceTimersToNextTimer();
    pauses.push(Date.now() - before);
  }
  return { sent, pauses, error, types: sent.map(({ event }) => event.type) };
}

describe('a broken stream', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is joined again after the last event, with pauses that double up to a maximum', async () => {
    const { client, asked } = clientOf(
      [
        stream([start, said('a')], { breaks: true }),
        new TypeError('fetch failed'),
        refused(503, 'STORE_FAILED'),
        refused(429, 'RATE_LIMITED'),
        stream([said('b')], { from: 3, breaks: true }),
        stream([end], { from: 4 }),
      ],
      { backoffMs: [100, 300] },
    );
    const { types, pauses, error } = await readAll(client.join('s'));
    expect(error).toBeUndefined();
    expect(types).toEqual(['agent_start', 'message_update', 'message_update', 'agent_end']);
    // An event in between starts the pauses anew.
    expect(pauses).toEqual([100, 200, 300, 300, 100]);
    expect(asked.map(({ after }) => after)).toEqual([null, '2.0', '2.0', '2.0', '2.0', '3.0']);
  });

  it('is given up after a number of attempts in a row, with the last error', async () => {
    const { client, asked } = clientOf(
      [stream([start], { breaks: true }), new TypeError('down'), new TypeError('still down')],
      { backoffMs: [1, 1], attempts: 2 },
    );
    const { error } = await readAll(client.join('s'));
    expect(error).toMatchObject({ code: 'UNREACHABLE', cause: { message: 'still down' } });
    expect(asked).toHaveLength(3);
  });

  it('is given up also if the server ends every stream at once', async () => {
    const empty = () => stream([]);
    const { client } = clientOf([empty(), empty(), empty()], { backoffMs: [1, 1], attempts: 2 });
    expect((await readAll(client.join('s'))).error).toMatchObject({ code: 'STREAM_ENDED' });
  });

  it('is joined as often as it takes while the server is there, as behind a proxy that ends quiet streams', async () => {
    const quiet = (): Response => new Response(':\n\n');
    const { client, asked } = clientOf([...Array.from({ length: 5 }, quiet), stream([end])], {
      backoffMs: [1, 1],
      attempts: 2,
    });
    expect((await readAll(client.join('s'))).types).toEqual(['agent_end']);
    expect(asked).toHaveLength(6);
  });

  it('is not joined again if the server refuses', async () => {
    const { client, asked } = clientOf([stream([start], { breaks: true }), refused(404, 'NOT_FOUND')], {
      backoffMs: [1, 1],
    });
    expect((await readAll(client.join('s'))).error).toMatchObject({ status: 404, code: 'NOT_FOUND' });
    expect(asked).toHaveLength(2);
  });

  it('of a run that broke before its first event begins with that run, not with the session', async () => {
    const { client, asked } = clientOf([stream([], { breaks: true }), stream([start, end])], {
      backoffMs: [1, 1],
    });
    const { types } = await readAll(client.run('Hi', { sessionId: 's' }));
    expect(types).toEqual(['agent_start', 'agent_end']);
    expect(asked[1]).toMatchObject({ method: 'GET', path: '/sessions/s/events', after: 'run' });
  });

  it('is given up during a pause if the caller aborts', async () => {
    const abort = new AbortController();
    const { client } = clientOf([new TypeError('down')]);
    const events = client.join('s', { signal: abort.signal });
    const next = events.next();
    next.catch(() => undefined);
    while (vi.getTimerCount() === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    abort.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a run', () => {
  it('starts a session under a given id', async () => {
    const { client, asked } = clientOf([stream([start, end]), refused(409, 'SESSION_EXISTS')]);
    await expect(client.run('Hi', { sessionId: 'ann', create: true }).result).resolves.toMatchObject({
      status: 'done',
    });
    expect(asked[0]).toMatchObject({ path: '/sessions', body: { input: 'Hi', sessionId: 'ann' } });
    await expect(client.run('Hi', { sessionId: 'ann', create: true }).result).rejects.toMatchObject({
      status: 409,
      code: 'SESSION_EXISTS',
    });
  });

  it('whose process died ends with an error code and can be resumed', async () => {
    const stalled = { type: 'stalled', runId: 'r', since: 0 };
    const { client, asked } = clientOf([stream([start, stalled]), stream([end])]);
    await expect(client.run('Hi', { sessionId: 's' }).result).rejects.toMatchObject({ code: 'RUN_STALLED' });
    await expect(client.resume('s').result).resolves.toMatchObject({ status: 'done' });
    expect(asked[1]).toMatchObject({ method: 'POST', path: '/sessions/s/resume' });
  });

  it('says which address could not be reached', async () => {
    const { client } = clientOf([new TypeError('fetch failed')]);
    await expect(client.run('Hi').result).rejects.toMatchObject({
      name: 'HttpError',
      status: 0,
      code: 'UNREACHABLE',
      message: expect.stringContaining('http://x/sessions could not be reached'),
      cause: { message: 'fetch failed' },
    });
  });
});

describe('what a screen shows', () => {
  it('has no call that waits once another run has begun, only when the same one continues', () => {
    const call = { toolCallId: 'c', toolName: 'pay' };
    const question = { id: 'q', ...call, kind: 'ask', arguments: '{}', createdAt: 0 } as const;
    const asked = [
      start,
      { type: 'tool_execution_start', toolCallId: 'a', toolName: 'look' },
      { type: 'tool_execution_end', toolCallId: 'a', toolName: 'look', isError: false },
      { type: 'tool_execution_start', ...call },
      { type: 'tool_execution_waiting', ...call, question },
    ] as const;
    const states = (...more: readonly ClientEvent[]) =>
      [...asked, ...more].reduce(applyEvent, EMPTY_VIEW).tools.map(({ state }) => state);
    expect(states()).toEqual(['done', 'waiting']);
    expect(states({ ...start, resumed: true })).toEqual(['done', 'waiting']);
    expect(states({ ...start, runId: 'r2' })).toEqual(['done', 'failed']);
  });
});

describe('wrong options of the client', () => {
  it.each<[string, unknown]>([
    ['Expected `options` to be an object with baseUrl, headers', undefined],
    ['Expected `options` to be an object with baseUrl, headers', 'http://x'],
    ["`baseUrl` to be an address such as 'https://example.com/api/agent', or a path, got undefined", {}],
    ['Unknown option `url` of alliumClient(). It takes: baseUrl', { url: 'http://x' }],
    ['`headers` to be an object of texts, or a function', { baseUrl: '', headers: 'Bearer x' }],
    ['`fetch` to be a function, got null', { baseUrl: '', fetch: null }],
    ['`backoffMs` to be the first pause and the longest one', { baseUrl: '', backoffMs: 250 }],
    ['`attempts` to be an integer ≥ 0, got Infinity', { baseUrl: '', attempts: Number.POSITIVE_INFINITY }],
  ])('%s', (words, options) => {
    expect(() => alliumClient(options as never)).toThrow(
      expect.objectContaining({
        name: 'HttpError',
        code: 'INVALID_OPTION',
        message: expect.stringContaining(words),
      }),
    );
  });
});
