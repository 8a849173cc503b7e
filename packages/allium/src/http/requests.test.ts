/** Requests as people make them by hand: without a body, and with ids of all kinds. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, type Store, tool } from 'allium';
import { type ServeOptions, serve, toNodeListener } from 'allium/http';
import { alliumClient } from 'allium/http/client';
import { approval, ask } from 'allium/middleware/approval';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { type ScriptStep, scriptedModel, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  execute: ({ amount }) => `Paid ${amount}.`,
});

function setup(script: readonly (ScriptStep | string)[], options: Partial<ServeOptions> = {}) {
  const { store = memoryStore() } = options;
  const agent = new Agent({
    model: scriptedModel([...script]),
    tools: [pay],
    store,
    middleware: [approval({ policy: { pay: ask } })],
  });
  const handler = serve({ agents: agent, authorize: () => ({ tenant: 'acme' }), ...options });
  const client = alliumClient({
    baseUrl: 'http://x',
    fetch: (url, init) => handler(new Request(url as string, init)),
  });
  /** As `curl -X POST` does. */
  const post = async (path: string, headers: Record<string, string> = {}, body?: string) => {
    const response = await handler(
      new Request(`http://x${path}`, { method: 'POST', headers, ...(body !== undefined && { body }) }),
    );
    const said = await response.text();
    return { status: response.status, body: said === '' ? undefined : JSON.parse(said) };
  };
  return { agent, store, handler, client, post };
}

describe('a POST without a body', () => {
  it('continues, cancels, regenerates and resumes', async () => {
    const { client, post, agent } = setup(['One.', 'Two.', toolCalls({ name: 'pay', args: { amount: 1 } })]);
    await client.run('Count', { sessionId: 's', create: true }).result;
    expect(await post('/sessions/s/runs')).toMatchObject({
      status: 409,
      body: { error: { code: 'NOTHING_TO_CONTINUE' } },
    });
    const again = await post('/sessions/s/regenerate');
    expect(again).toMatchObject({ status: 200, body: { text: 'Two.', status: 'done' } });
    expect(again.body.sessionId).not.toBe('s');
    expect(await post('/sessions/s/cancel')).toEqual({ status: 204, body: undefined });
    expect(await post('/chat/s/stop')).toEqual({ status: 204, body: undefined });
    await client.run('Pay', { sessionId: 's' }).result;
    expect(await post('/sessions/s/resume')).toMatchObject({ status: 200, body: { status: 'suspended' } });
    expect(await agent.session('acme/s', { tenant: 'acme' }).pending()).toHaveLength(1);
  });

  it.each([
    ['a JSON type and nothing', { 'content-type': 'application/json' }, undefined],
    ['a JSON type and an empty body', { 'content-type': 'application/json' }, ''],
    ['a page of the same origin', { origin: 'http://x', 'sec-fetch-site': 'same-origin' }, undefined],
  ])('may have %s', async (_, headers, body) => {
    const { client, post } = setup(['One.']);
    await client.run('Count', { sessionId: 's', create: true }).result;
    expect((await post('/sessions/s/cancel', headers, body)).status).toBe(204);
  });

  it.each([
    ['a page of another site', { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }],
    ['a page that does not say which', { origin: 'null' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['plain text', { 'content-type': 'text/plain' }],
  ])('is refused from %s', async (_, headers) => {
    const { client, post } = setup(['One.']);
    await client.run('Count', { sessionId: 's', create: true }).result;
    expect(await post('/sessions/s/cancel', headers)).toMatchObject({
      status: 415,
      body: { error: { code: 'JSON_ONLY' } },
    });
  });

  it('says which field is missing', async () => {
    expect(await setup([]).post('/sessions')).toMatchObject({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST', message: 'The body needs `input`.' } },
    });
  });

  it('is the same on node:http, and behind a parser that made an empty object of it', async () => {
    const { client, handler } = setup(['One.', 'Two.']);
    await client.run('Count', { sessionId: 's', create: true }).result;
    const listener = toNodeListener(handler);
    const server = createServer((request, response) => {
      if (request.url?.endsWith('cancel')) Object.assign(request, { body: {} });
      void listener(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const at = (path: string) => fetch(`http://127.0.0.1:${port}/sessions/s/${path}`, { method: 'POST' });
    expect((await at('cancel')).status).toBe(204);
    expect(await (await at('regenerate')).json()).toMatchObject({ text: 'Two.' });
    server.close();
  });
});

describe('a body that node:http has read', () => {
  const json = { 'content-type': 'application/json' };
  async function send(body: string, options: Partial<ServeOptions> = {}) {
    const server = createServer(toNodeListener(setup(['One.'], options).handler));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/sessions`;
    const response = await fetch(url, { method: 'POST', headers: json, body });
    server.close();
    return { status: response.status, body: (await response.json()) as unknown };
  }

  it('is not read again from a stream', async () => {
    const text = vi.spyOn(Request.prototype, 'text');
    expect(await send('{"input":"Zürich 🚲"}')).toMatchObject({ status: 200, body: { text: 'One.' } });
    expect(text).not.toHaveBeenCalled();
    text.mockRestore();
  });

  it('can be read by authorize first, from a clone', async () => {
    const seen: string[] = [];
    const authorize = async (request: Request) => {
      seen.push(await request.clone().text());
      return { tenant: 'acme' };
    };
    expect((await send('{"input":"Hi"}', { authorize })).status).toBe(200);
    expect(seen).toEqual(['{"input":"Hi"}']);
  });

  it('must not be read by others before; who runs the server is told', async () => {
    const errors: unknown[] = [];
    const { handler } = setup(['One.'], { onError: (error) => errors.push(error) });
    const request = new Request('http://x/sessions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"input":"Hi"}',
    });
    await request.json();
    expect((await handler(request)).status).toBe(500);
    expect(String(errors[0])).toContain('`clone()`');
  });

  it('must not be read by a parser that keeps it to itself: the request is answered all the same', async () => {
    const errors: unknown[] = [];
    const { handler } = setup(['One.'], { onError: (error) => errors.push(error) });
    const listener = toNodeListener(handler);
    const server = createServer(async (request, response) => {
      for await (const _ of request);
      await listener(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    for (const length of [2, 100_000]) {
      const body = JSON.stringify({ input: 'x'.repeat(length) });
      const response = await fetch(`http://127.0.0.1:${port}/sessions`, {
        method: 'POST',
        headers: json,
        body,
      });
      expect(response.status).toBe(500);
    }
    expect(errors.map(String)).toEqual(Array(2).fill(expect.stringContaining('`body`')));
    server.close();
  });

  it('may begin with a byte order mark, and may not be longer than allowed', async () => {
    expect((await send('\ufeff{"input":"Hi"}')).status).toBe(200);
    expect(await send('{"input":"Hi"}', { maxBodyBytes: 10 })).toMatchObject({
      status: 413,
      body: { error: { code: 'TOO_LARGE' } },
    });
  });
});

describe('a body with something wrong in it', () => {
  const about = (decision: unknown) => ({ answers: { q: decision } });
  it.each([
    ['/sessions', { input: 5 }, '`input` has to be text or a list.'],
    ['/sessions', { input: '' }, '`input` must not be empty.'],
    ['/sessions', { input: [{ type: 'text', text: 5 }] }, '`text` has to be text.'],
    [
      '/sessions',
      { input: [{ type: 'video' }] },
      '`input`, item 1, needs `type`: one of "text", "image", "file".',
    ],
    ['/sessions', { input: [{ type: 'image' }] }, '`input`, item 1, needs `data`.'],
    ['/sessions', { input: ['hi'] }, '`input`, item 1, has to be an object.'],
    [
      '/sessions/s/answers',
      about({ type: 'maybe' }),
      '`q` needs `type`: one of "approve", "edit", "reject", "respond".',
    ],
    ['/sessions/s/answers', about({ type: 'edit' }), '`q` needs `args`.'],
    ['/sessions/s/answers', about({ type: 'reject', reason: 5 }), '`reason` has to be text.'],
  ])('%s with %j: is told what is wrong', async (path, body, message) => {
    const { post, client } = setup(['One.']);
    await client.run('Hi', { sessionId: 's', create: true }).result;
    const json = { 'content-type': 'application/json' };
    expect(await post(path, json, JSON.stringify(body))).toEqual({
      status: 400,
      body: { error: { code: 'INVALID_REQUEST', message } },
    });
  });
});

describe('a resume of nothing', () => {
  it('says that the run has ended', async () => {
    const { client, post } = setup(['One.']);
    await client.run('Count', { sessionId: 's', create: true }).result;
    const answer = { code: 'NOTHING_TO_RESUME', message: expect.stringContaining('has ended') };
    expect(await post('/sessions/s/resume')).toEqual({ status: 409, body: { error: answer } });
    await expect(client.resume('s').result).rejects.toMatchObject({ status: 409, ...answer });
  });

  it('of an unknown session gets "not found"', async () => {
    expect(await setup([]).post('/sessions/none/resume')).toMatchObject({
      status: 404,
      body: { error: { code: 'NOT_FOUND' } },
    });
  });
});

describe('session ids', () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });
  const inFolder = async (): Promise<Store> => {
    const folder = await mkdtemp(join(tmpdir(), 'allium-ids-'));
    folders.push(folder);
    return fileStore({ dir: join(folder, 'sessions') });
  };
  const ODD = ['team/ann', '../up', 'a%2Fb', '100%', 'Ünï ✓', 'a?b#c', '...', 'r_x.1.2x', '/', 'a//b'];
  const CALLERS: Record<string, ServeOptions['authorize']> = {
    'a tenant': () => ({ tenant: 'acme/eu' }),
    'no tenant': () => ({}),
    'no authorization': 'none',
  };

  for (const [name, authorize] of Object.entries(CALLERS))
    it.each(ODD)(`go from the client to the store and back: %s, ${name}`, async (sessionId) => {
      const store = await inFolder();
      const { client } = setup(['One.', 'Two.'], { store, authorize });
      const started = client.run('Hi', { sessionId, create: true });
      expect(await started.sessionId).toBe(sessionId);
      expect(await started.result).toMatchObject({ sessionId, text: 'One.' });
      expect(await client.run('More', { sessionId }).result).toMatchObject({ sessionId, text: 'Two.' });
      expect((await client.messages(sessionId)).messages).toHaveLength(4);
      expect((await client.sessions()).sessions).toMatchObject([{ sessionId }]);
      const seen: string[] = [];
      for await (const { event } of client.join(sessionId)) seen.push(event.type);
      expect(seen.at(-1)).toBe('agent_end');
      await client.delete(sessionId);
      expect((await client.sessions()).sessions).toEqual([]);
      expect(await readdir(folders[0]!)).toEqual(['sessions']);
    });

  it.each([
    ['r_x.1.2', 'is that of a sub-agent below a tenant'],
    ['s/r_x.1.2', 'is that of a sub-agent'],
    ['a\u0000', 'has a control character'],
    ['a\nb', 'has a line break'],
    ['x'.repeat(201), 'is too long'],
  ])('%j is refused: it %s', async (sessionId) => {
    const { client } = setup([]);
    await expect(client.messages(sessionId)).rejects.toMatchObject({
      status: 400,
      code: 'INVALID_SESSION_ID',
    });
  });

  it.each(['.', '..'])('%s cannot be written in an address, so it is refused at once', async (sessionId) => {
    await expect(setup([]).client.run('Hi', { sessionId, create: true }).result).rejects.toMatchObject({
      code: 'INVALID_SESSION_ID',
    });
  });

  it('of a caller without a tenant never mean a session of a tenant', async () => {
    const store = memoryStore();
    const { client } = setup(['Mine.'], { store, authorize: () => ({}) });
    await client.run('Hi', { sessionId: 'acme/ann', create: true }).result;
    const { client: ann } = setup(['Hers.'], { store });
    expect(await ann.run('Hi', { sessionId: 'ann', create: true }).result).toMatchObject({ text: 'Hers.' });
    expect((await client.sessions()).sessions).toMatchObject([{ sessionId: 'acme/ann' }]);
    expect((await client.messages('acme/ann')).messages.at(-1)!.content).toMatchObject([{ text: 'Mine.' }]);
  });

  it('chosen by your code can be reached if nobody has a tenant', async () => {
    const { agent, client } = setup(['One.'], { authorize: 'none' });
    await agent.session('team/ann').run('Hi');
    expect((await client.messages('team/ann')).messages).toHaveLength(2);
  });
});
