import { Ajv2020 } from 'ajv/dist/2020.js';
import { Agent, defineMiddleware, type ModelRequest, tool } from 'allium';
import { serve } from 'allium/http';
import { approval, ask as question } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { memoryStore } from 'allium/stores/memory';
import { type Answer, chunks, failWith, hang, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** Pays, waits or guesses if it is told to, and otherwise stumbles before it answers. */
function answerTo({ messages }: ModelRequest, call: number): Answer {
  const last = messages.at(-1)!;
  const said = JSON.stringify(last.content);
  if (last.role === 'user' && said.includes('pay'))
    return chunks(
      { type: 'thinking', text: 'Well.' },
      { type: 'tool-call', id: 'c1', name: 'pay', arguments: '{"amount":7}' },
    );
  if (said.includes('guess')) return 'Perhaps.';
  if (said.includes('wait')) return hang('One moment');
  return call % 2 === 1 ? failWith(Object.assign(new Error('busy'), { status: 503 }), 'I') : 'It is done.';
}

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  execute({ amount }, ctx) {
    ctx.update('Paying …');
    ctx.emit('progress', { percent: 50 });
    return [
      { type: 'text', text: `Paid ${amount}.` },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ];
  },
});

function setup() {
  const store = memoryStore();
  const agent = new Agent({
    name: 'clerk',
    model: scriptedModel([answerTo], { repeat: true }),
    tools: [pay],
    middleware: [
      approval({ policy: () => question({ why: 'bill' }, 600_000) }),
      defineMiddleware({
        name: 'no-guesses',
        guard: {
          on: ['output'],
          hold: 'full',
          judge: ({ text }) => (text.includes('Perhaps') ? { type: 'deny', reason: 'A guess.' } : undefined),
        },
      }),
      retry({ minDelayMs: 1, maxDelayMs: 1 }),
    ],
    store,
  });
  const show = { thinking: true, tools: true, notices: ['progress'], usage: true };
  const options = { agents: agent, authorize: 'none', show } as const;
  return { handler: serve(options), elsewhere: serve({ ...options, silenceMs: 1, pollMs: [1, 1] }) };
}

type Handler = ReturnType<typeof serve>;
type Json = any;

const documentOf = async (handler: Handler): Promise<Json> =>
  (await handler(new Request('http://x/openapi.json'))).json();

/** Objects have no fields but those that the document names. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const all = Object.fromEntries(Object.entries(schema).map(([name, inner]) => [name, closed(inner)]));
  return 'properties' in all && !('additionalProperties' in all)
    ? { ...all, additionalProperties: false }
    : all;
}

/** Compares answers with the document, and remembers which there were. */
async function checkerOf(handler: Handler) {
  const document = await documentOf(handler);
  const ajv = new Ajv2020({ strict: false }).addSchema(closed(document), 'api');
  const seen = new Set<string>();
  const events = new Set<string>();
  const pathOf = (url: string): string => {
    const parts = new URL(url).pathname.split('/');
    return Object.keys(document.paths).find((path) => {
      const named = path.split('/');
      return (
        named.length === parts.length &&
        named.every((part, i) => part === parts[i] || (part.startsWith('{') && parts[i] !== ''))
      );
    })!;
  };
  const check = (at: readonly string[], value: unknown): void => {
    const place = at.map((one) => encodeURIComponent(one.replaceAll('~', '~0').replaceAll('/', '~1')));
    const validate = ajv.getSchema(`api#/${place.join('/')}`)!;
    const fits = validate(value);
    expect(fits, `${at.join(' ')}\n${JSON.stringify(value)}\n${ajv.errorsText(validate.errors)}`).toBe(true);
  };
  /** The text of an answer. */
  async function look({ method, url }: Request, response: Response): Promise<string> {
    const body = await response.text();
    const operation = ['paths', pathOf(url), method.toLowerCase()];
    const { operationId, responses } = operation.reduce((from, name) => from[name], document);
    const status = response.ok ? String(response.status) : 'default';
    const { content, headers } = responses[status] ?? {};
    const [type = ''] = (response.headers.get('content-type') ?? '').split(';');
    seen.add(`${operationId} ${status} ${type}`);
    expect(Object.keys(content ?? { '': 1 }), `${operationId} ${status}`).toContain(type);
    for (const name of Object.keys(headers ?? {})) expect(response.headers.has(name), name).toBe(true);
    const at = [...operation, 'responses', status, 'content', type, 'schema'];
    if (type === 'application/json') check(at, JSON.parse(body));
    for (const [, data] of type === 'text/event-stream' ? body.matchAll(/^data: (\{.*)$/gm) : []) {
      const event = JSON.parse(data!);
      check(at, event);
      if (operationId.includes('hat')) continue;
      for (const field of Object.keys(event)) events.add(`${event.type}.${field}`);
    }
    return body;
  }
  return { document, look, seen, events };
}

describe('the OpenAPI document', () => {
  it('describes every answer that there is, and every event', async () => {
    const { handler, elsewhere } = setup();
    const { document, look, seen, events } = await checkerOf(handler);
    const ask = async (to: Handler, method: string, path: string, body?: unknown, more = {}) => {
      const request = new Request(`http://x${path}`, {
        method,
        headers: { ...more, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return look(request, await to(request));
    };
    const get = async (path: string): Promise<Json> => {
      const body = await ask(handler, 'GET', path);
      return body === '' ? undefined : body.startsWith('{') ? JSON.parse(body) : body;
    };
    const post = async (path: string, body: unknown = {}): Promise<Json> => {
      const said = await ask(handler, 'POST', path, body);
      return said === '' ? undefined : said.startsWith('{') ? JSON.parse(said) : said;
    };
    const stream = (path: string, body: unknown = {}) =>
      ask(handler, 'POST', path, body, { accept: 'text/event-stream' });
    const live = async (path: string): Promise<void> => {
      while (!(await get(path)).running) await new Promise((resolve) => setImmediate(resolve));
    };

    // Questions, answers, allowances.
    await stream('/sessions', { input: 'pay', sessionId: 'a' });
    await stream('/sessions/a/resume');
    expect((await post('/sessions/a/resume')).status).toBe('suspended');
    const { questions } = await get('/sessions/a/questions');
    expect((await get('/sessions/a')).questions).toEqual(questions);
    const yes = { [questions[0].id]: { type: 'approve', remember: 'arguments' } };
    await stream('/sessions/a/answers', { answers: yes });
    const { allowances } = await get('/sessions/a/allowances');
    await ask(handler, 'DELETE', `/sessions/a/allowances/${allowances[0].id}`);
    for (const resume of [true, false]) {
      const { questions: open } = await post('/sessions/a/runs', { input: 'pay' });
      await post('/sessions/a/answers', { answers: { [open[0].id]: { type: 'approve' } }, resume });
    }
    await post('/sessions/a/resume');

    // Other answers, and other questions.
    const { messages } = await get('/sessions/a/messages');
    const asked = messages.find((one: Json) => one.role === 'user').id;
    await post('/sessions/a/regenerate');
    await stream('/sessions/a/regenerate', { fork: false });
    await post('/sessions/a/edit', { messageId: asked, input: 'Hi' });
    await stream('/sessions/a/edit', { messageId: asked, input: 'Hi', fork: false });
    await ask(handler, 'GET', '/sessions/a/events');
    await ask(handler, 'GET', '/sessions/a/events?after=now');
    await stream('/sessions/a/runs', { input: 'guess' });

    // A run under way, and one whose process seems to have died.
    await post('/sessions', { input: 'Hi', sessionId: 'b' });
    const waiting = stream('/sessions/b/runs', { input: 'wait' });
    await live('/sessions/b');
    await post('/sessions/b/steer', { input: 'Faster' });
    await post('/sessions/b/follow-up', { input: 'And then?' });
    expect((await get('/sessions/b')).queued).toHaveLength(2);
    await ask(elsewhere, 'GET', '/sessions/b/events');
    await post('/sessions/b/cancel');
    await waiting;
    expect((await get('/sessions?limit=1')).next).toBeDefined();
    await ask(handler, 'DELETE', '/sessions/b');

    // For the AI SDK.
    const said = (text: string) => ({
      id: 'c',
      messages: [{ role: 'user', parts: [{ type: 'text', text }] }],
    });
    await post('/chat', said('pay'));
    const chat = post('/chat', said('wait'));
    await live('/chat/c');
    const resumed = get('/chat/c/stream');
    await post('/chat/c/stop');
    await Promise.all([chat, resumed]);
    await get('/chat/c/stream');
    await get('/agents');

    const described = Object.values<Json>(document.paths).flatMap((methods) =>
      Object.values<Json>(methods).flatMap(({ operationId, responses }) =>
        Object.entries<Json>(responses).flatMap(([status, { content = { '': {} } }]) =>
          status === 'default' ? [] : Object.keys(content).map((type) => `${operationId} ${status} ${type}`),
        ),
      ),
    );
    expect([...seen].sort()).toEqual(described.sort());
    const fields = document.components.schemas.Event.oneOf.flatMap(({ properties }: Json) =>
      Object.keys(properties).map((field) => `${properties.type.const}.${field}`),
    );
    expect([...events].sort()).toEqual(fields.sort());
  });

  it('names every route that there is, and what it takes', async () => {
    const { handler } = setup();
    const { document, look } = await checkerOf(handler);
    expect(document.openapi).toBe('3.1.0');
    let operations = 0;
    for (const [path, methods] of Object.entries<Json>(document.paths)) {
      for (const [method, { operationId, requestBody, responses, parameters = [] }] of Object.entries<Json>(
        methods,
      )) {
        operations++;
        expect(operationId).toMatch(/^[a-z]\w+$/);
        expect(Object.keys(responses)).toContain('default');
        expect(parameters.filter((one: Json) => one.in === 'path').map((one: Json) => one.name)).toEqual(
          [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
        );
        const url = `http://x${path.replaceAll(/\{\w+\}/g, 'nobody')}`;
        const given = async (body?: unknown) => {
          const request = new Request(url, {
            method: method.toUpperCase(),
            headers: { ...(body !== undefined && { 'content-type': 'application/json' }) },
            ...(body !== undefined && { body: JSON.stringify(body) }),
          });
          const response = await handler(request);
          return { status: response.status, text: await look(request, response) };
        };
        // A body is needed where the document says so, is checked, and its required fields are.
        if (requestBody) {
          const { schema } = requestBody.content['application/json'];
          // Nothing is as good as `{}`.
          expect(requestBody.required, operationId).toBe((schema.required ?? []).length > 0);
          expect((await given()).status, operationId).toBe(requestBody.required ? 400 : 404);
          expect((await given([])).status, operationId).toBe(400);
          for (const name of schema.required ?? []) {
            expect(JSON.parse((await given({})).text).error.message, operationId).toContain(
              schema.required[0],
            );
            expect(schema.properties).toHaveProperty(name);
          }
          if (schema.additionalProperties === false) {
            const full = Object.fromEntries(
              (schema.required ?? []).map((name: string) => [name, exampleOf(name)]),
            );
            const { status } = await given({ ...full, surprise: 1 });
            expect(status, operationId).toBe(400);
          }
        } else expect([200, 204, 404], operationId).toContain((await given()).status);
      }
    }
    expect(operations).toBe(22);
  });
});

function exampleOf(name: string): unknown {
  return name === 'answers' ? {} : name === 'messages' ? [] : 'x';
}
