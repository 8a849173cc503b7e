// `allium/http` in a process that runs no agents: it enqueues, and joins.

import { Agent, type Model, textOf, tool } from 'allium';
import { type Show, serve } from 'allium/http';
import { approval } from 'allium/middleware/approval';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred } from '../../../test/run-checks.js';
import { type Fleet, useFleets } from '../test/fleet.js';

const { fleet } = useFleets();
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const again = toolCalls({ name: 'look', args: {} });

function web({ queue }: Pick<Fleet, 'queue'>, show?: Show) {
  const handler = serve({
    agents: ['a'],
    queue,
    ...(show && { show }),
    authorize: () => ({ tenant: 'acme', user: 'ann' }),
  });
  return (method: string, path: string, body?: unknown, accept = 'application/json') =>
    handler(
      new Request(`http://localhost${path}`, {
        method,
        headers: { 'content-type': 'application/json', accept },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    );
}

const SSE = 'text/event-stream';

const jsonOf = (response: Response): Promise<any> => response.json();

const eventsOf = async (response: Response) =>
  (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)));

it('a request gets the result of a run on a worker, for the tenant of the caller', async () => {
  const one = fleet();
  const seen: unknown[] = [];
  const model = scriptedModel([({ messages }) => text(`re: ${textOf(messages.at(-1)!)}`)], { repeat: true });
  const agent = new Agent({ model, observers: [(event) => void seen.push(event.type)] });
  await one.work({ a: agent });
  const send = web(one);
  const first = await send('POST', '/sessions', { input: 'Hi.' });
  expect(await first.json()).toMatchObject({ status: 'done', text: 're: Hi.', questions: [] });
  const id = first.headers.get('x-session-id')!;
  const second = await send('POST', `/sessions/${id}/runs`, { input: 'More.' }, 'text/event-stream');
  const events = await eventsOf(second);
  expect(events[0]).toMatchObject({ type: 'agent_start' });
  expect(events.at(-1)).toMatchObject({ type: 'agent_end', status: 'done' });
  // The first run is not told again.
  expect(JSON.stringify(events)).not.toContain('re: Hi.');
  const { messages } = await jsonOf(await send('GET', `/sessions/${id}/messages`));
  expect(messages.length).toBe(4);
  expect((await one.store.list({ tenant: 'acme' })).sessions.length).toBe(1);
  expect((await send('POST', '/sessions', { input: 'Hi.', agent: 'nobody' })).status).toBe(404);
});

it('a run goes on on a worker when its question is answered', async () => {
  const one = fleet();
  const model = scriptedModel([again, text('Seen.')]);
  await one.work({
    a: new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] }),
  });
  const send = web(one);
  const asked = await jsonOf(await send('POST', '/sessions', { input: 'Look.', sessionId: 's' }));
  expect(asked).toMatchObject({ status: 'suspended', questions: [{ toolName: 'look' }] });
  const answers = { [asked.questions[0].id]: { type: 'approve' } };
  const done = await send('POST', '/sessions/s/answers', { answers }, 'text/event-stream');
  expect((await eventsOf(done)).at(-1)).toMatchObject({ type: 'agent_end', status: 'done' });
  expect((await send('POST', '/sessions/s/answers', { answers })).status).toBe(409);
  expect(await (await send('GET', '/sessions/s')).json()).toMatchObject({ questions: [] });
});

it('the end of an attempt that is retried is not sent', async () => {
  const one = fleet({ retry: { delayMs: 1 } });
  const model = scriptedModel([failWith(Object.assign(new Error('busy'), { status: 503 })), text('Back.')]);
  await one.work({ a: new Agent({ model }) });
  const response = await web(one)('POST', '/sessions', { input: 'Hi.' }, 'text/event-stream');
  const ends = (await eventsOf(response)).filter(({ type }) => type === 'agent_end');
  expect(ends).toMatchObject([{ status: 'done' }]);
});

describe('two messages for one session at a time', () => {
  /** Its tool waits until it is let go, or its run is ended. */
  async function busy(one: Fleet) {
    const [begun, go] = [deferred(), deferred()];
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      async execute(_args, { signal }) {
        begun.resolve();
        await Promise.race([go.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))]);
        return 'waited';
      },
    });
    const model = scriptedModel([
      toolCalls({ name: 'wait', args: {} }),
      ({ messages }) => text(`re: ${messages.flatMap((m) => (m.role === 'user' ? textOf(m) : [])).at(-1)}`),
      ({ messages }) => text(`re: ${textOf(messages.at(-1)!)}`),
    ]);
    await one.work({ a: new Agent({ model, tools: [wait] }) });
    const send = web(one);
    const first = await send('POST', '/sessions', { input: 'One.', sessionId: 's' }, 'text/event-stream');
    await begun.promise;
    return { send, first, go };
  }

  it('each get their own answer, one after the other', async () => {
    const one = fleet();
    const { send, first, go } = await busy(one);
    const second = await send('POST', '/sessions/s/runs', { input: 'Two.' }, 'text/event-stream');
    go.resolve();
    for (const [response, said, other] of [
      [first, 'One.', 'Two.'],
      [second, 'Two.', 'One.'],
    ] as const) {
      const events = await eventsOf(response);
      expect(events[0]).toMatchObject({ type: 'agent_start' });
      expect(events.at(-1)).toMatchObject({ type: 'agent_end', status: 'done' });
      expect(events.filter(({ type }) => type === 'agent_end')).toHaveLength(1);
      const told = JSON.stringify(events);
      expect(told).toContain(`re: ${said}`);
      expect(told).not.toContain(other);
    }
  });

  it('a client who leaves ends its own', async () => {
    const one = fleet();
    const { send, first, go } = await busy(one);
    const second = await send('POST', '/sessions/s/runs', { input: 'Two.' }, 'text/event-stream');
    await second.body!.cancel();
    await expect.poll(async () => (await one.queue.metrics()).ended).toMatchObject({ aborted: 1 });
    go.resolve();
    expect((await eventsOf(first)).at(-1)).toMatchObject({ type: 'agent_end', status: 'done' });
    expect(await one.queue.metrics()).toMatchObject({ waiting: 0, running: 0 });
  });
});

it('the end of a job without a run is sent', async () => {
  const one = fleet();
  await one.work({ other: new Agent({ model: scriptedModel([]) }) });
  const response = await web(one)('POST', '/sessions', { input: 'Hi.' }, 'text/event-stream');
  expect(await eventsOf(response)).toMatchObject([
    { type: 'agent_end', status: 'error', stop: { reason: 'error' } },
  ]);
  const json = await web(one)('POST', '/sessions', { input: 'Hi.' });
  expect(await json.json()).toMatchObject({ status: 'error', stop: { reason: 'error' } });
});

it('clients see what serve() shows, whatever the queue shows to its own readers', async () => {
  const thinking = { type: 'thinking' as const, text: 'Hm.' };
  const call = { type: 'tool-call' as const, id: '1', name: 'look', arguments: '{"at":"harbour"}' };
  const looking = tool({
    name: 'look',
    description: 'Looks.',
    input: z.object({ at: z.string() }),
    execute: () => 'seen',
  });
  for (const [shown, hidden] of [[true], [undefined, true]]) {
    const one = fleet(hidden ? { show: { thinking: true, tools: true } } : {});
    const model = scriptedModel([[thinking, call], text('Seen.')]);
    await one.work({ a: new Agent({ model, tools: [looking] }) });
    const send = web(one, shown ? { thinking: true, tools: true } : undefined);
    const live = await (await send('POST', '/sessions', { input: 'Look.', sessionId: 's' }, SSE)).text();
    const later = await (await send('GET', '/sessions/s/events', undefined, SSE)).text();
    const chat = await (await send('GET', '/chat/s')).text();
    for (const said of [live, later, chat])
      for (const secret of ['Hm.', 'harbour', 'seen'])
        expect(said.includes(secret), secret).toBe(shown === true);
  }
});

it('useChat works, and a run that the user stops ends', async () => {
  const one = fleet();
  const model = scriptedModel([text('Hello.')]);
  await one.work({ a: new Agent({ model }) });
  const send = web(one);
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }];
  const response = await send('POST', '/chat', { id: 'c', messages });
  expect(await response.text()).toContain('Hello.');
  const waiting = await one.queue.enqueue('nobody', 'Later.', { sessionId: 'acme/w', delayMs: 0 });
  await one.queue.finished(waiting.runId);
  expect((await send('POST', '/chat/c/stop', {})).status).toBe(204);
});

it('useChat continues its message with an approval, also if the attempt that began it failed', async () => {
  const one = fleet({ retry: { delayMs: 1 } });
  const shown = deferred();
  const rest = scriptedModel([again, text('Done.')]);
  let calls = 0;
  const model: Model = {
    provider: 'test',
    id: 'breaks',
    async *stream(request, options) {
      if (calls++ > 0) return yield* rest.stream(request, options);
      yield { type: 'text', text: 'Half ' };
      await shown.promise;
      throw Object.assign(new Error('busy'), { status: 503 });
    },
  };
  await one.work({
    a: new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] }),
  });
  const send = web(one);
  const post = async (message: object): Promise<any[]> => {
    const { body } = await send('POST', '/chat', { id: 'c', messages: [message] });
    let lines = '';
    for await (const piece of body!) {
      lines += new TextDecoder().decode(piece);
      if (lines.includes('Half ')) shown.resolve();
    }
    return eventsOf(new Response(lines.replace('data: [DONE]', '')));
  };
  const first = await post({ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] });
  const { messageId } = first.find(({ type }) => type === 'start');
  const { approvalId: id } = first.find(({ type }) => type === 'tool-approval-request');
  const parts = [{ type: 'tool-look', state: 'approval-responded', approval: { id, approved: true } }];
  const second = await post({ id: messageId, role: 'assistant', parts });
  expect(second[0]).toEqual({ type: 'start', messageId });
  expect(second.map(({ delta }) => delta).join('')).toBe('Done.');
});

it('useChat goes on reading after a reload while an attempt is repeated', async () => {
  const one = fleet({ retry: { delayMs: 1 } });
  const busy = Object.assign(new Error('busy'), { status: 503 });
  const [begun, go] = [deferred(), deferred()];
  const wait = tool({
    name: 'wait',
    description: 'Waits.',
    input: z.object({}),
    async execute() {
      begun.resolve();
      await go.promise;
      return 'waited';
    },
  });
  const model = scriptedModel([failWith(busy), toolCalls({ name: 'wait', args: {} }), text('Done.')]);
  await one.work({ a: new Agent({ model, tools: [wait] }) });
  const send = web(one);
  const messages = [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }];
  const first = await send('POST', '/chat', { id: 'c', messages });
  await begun.promise;
  const loaded = await jsonOf(await send('GET', '/chat/c'));
  const resumed = await send('GET', '/chat/c/stream');
  go.resolve();
  await first.text();
  expect(loaded.running).toBe(true);
  expect(await resumed.text()).toMatch(/Done\..*"finish"/s);
  expect(await jsonOf(await send('GET', '/chat/c'))).toMatchObject({ running: false });
});

it('a missing option is named', () => {
  const { queue, another } = fleet();
  const authorize = 'none';
  expect(() => serve({ agents: {} as never, queue, authorize })).toThrow('names of the agents');
  expect(() => serve({ agents: ['a'], queue: another({ store: undefined as never }), authorize })).toThrow(
    '`store`',
  );
  expect(() => serve({ agents: ['a'], queue: {} as never, authorize })).toThrow('`queue`');
});
