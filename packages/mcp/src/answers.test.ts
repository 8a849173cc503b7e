// Servers in other languages, and servers that are written by hand: what they answer isn't always what the protocol says.

import { InMemoryTransport } from '@modelcontextprotocol/client';
import { Agent, memoryStore, type RunResult } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { mcpOver } from './mcp.js';
import type { McpOptions } from './options.js';

type Message = { readonly id?: number; readonly method?: string; readonly params?: Record<string, unknown> };
type Reply = { readonly result?: unknown; readonly error?: unknown };

const ECHO = { name: 'echo', inputSchema: { type: 'object' } };
const told = (tools: unknown[], more = {}) => ({ result: { tools, ...more } });
const INFO = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'x', version: '1' },
};

/** A server of three lines: what it lists, and what it answers to each call. */
function server(
  list: Reply,
  call: (message: Message, n: number) => Reply,
  options: Partial<McpOptions> = {},
) {
  const seen: Message[] = [];
  const calls = () => seen.filter(({ method }) => method === 'tools/call');
  const middleware = mcpOver({ name: 'x', command: 'in this process', ...options }, () => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    theirs.onmessage = (message) => {
      const asked = message as Message;
      seen.push(asked);
      if (asked.id === undefined || asked.method === undefined) return;
      const replies: Record<string, () => Reply> = {
        initialize: () => ({ result: INFO }),
        'tools/list': () => list,
        'tools/call': () => call(asked, calls().length),
      };
      void theirs.send({ jsonrpc: '2.0', id: asked.id, ...replies[asked.method]!() } as never);
    };
    return ours;
  });
  return { middleware, calls };
}

function agentOf({ middleware }: ReturnType<typeof server>, store = memoryStore()) {
  const model = scriptedModel([toolCalls({ name: 'x_echo', args: {}, id: 'a' }), text('done')], {
    repeat: true,
  });
  return { model, agent: new Agent({ model, store, middleware: [middleware] }) };
}

const results = ({ messages }: Pick<RunResult, 'messages'>) =>
  messages.flatMap((message) => (message.role === 'tool' ? [message] : []));

const hi = { type: 'text', text: 'hi' };

it.each([
  [
    'null for what is absent',
    { content: [{ ...hi, annotations: null, _meta: null }], isError: null, structuredContent: null },
    ['hi'],
  ],
  ['no list', { content: null }, ['(no output)']],
  ['only text', { content: 'hi' }, ['hi']],
  [
    'a kind of content that nobody knows',
    { content: [{ type: 'json', json: { a: 1 } }, hi] },
    ['{"type":"json","json":{"a":1}}', 'hi'],
  ],
  [
    'text under another name',
    { content: [{ type: 'error', text: 'No such account.' }], isError: true },
    ['No such account.'],
  ],
  [
    'an image without its type',
    { content: [{ type: 'image', data: 'AAAA' }] },
    ['{"type":"image","data":"AAAA"}'],
  ],
])('reads a result with %s', async (_, result, wanted) => {
  const { agent } = agentOf(server(told([ECHO]), () => ({ result })));
  const [message] = results(await agent.run('go'));
  expect(message!.content.map((part) => (part.type === 'text' ? part.text : part))).toEqual(wanted);
  expect(message!.isError ?? false).toBe('isError' in result && result.isError === true);
});

it('leaves null alone in structured content', async () => {
  const structuredContent = { a: null };
  const { agent } = agentOf(server(told([ECHO]), () => ({ result: { content: [], structuredContent } })));
  expect(results(await agent.run('go'))[0]).toMatchObject({ details: structuredContent });
});

it('reads a list with null for what is absent', async () => {
  const properties = { a: { type: 'string', description: null, default: null, enum: ['b', null] } };
  const inputSchema = { type: 'object', properties, required: null };
  const tool = { ...ECHO, title: null, description: null, annotations: { readOnlyHint: null }, inputSchema };
  const { agent, model } = agentOf(
    server(told([tool], { nextCursor: null }), () => ({ result: { content: [hi] } })),
  );
  await agent.run('go');
  expect(model.requests[0]!.tools).toMatchObject([{ name: 'x_echo' }]);
  expect(model.requests[0]!.tools![0]!.inputSchema).toMatchObject({
    properties: { a: { type: 'string', default: null, enum: ['b', null] } },
  });
});

it('gives tools with similar names names of their own, in whatever order they are listed', async () => {
  const names = ['a.b', '日本', 'a_b', '中国', 'a/b', 'x'.repeat(70), `${'x'.repeat(70)}y`, 'c.d'];
  const tools = names.map((name) => ({ ...ECHO, name }));
  const offered = async (listed: object[]) => {
    const { tools: found } = await server(told(listed), () => ({})).middleware.connect();
    return Object.fromEntries(found.map(({ serverName, name }) => [serverName, name]));
  };
  const first = await offered(tools);
  expect(first).toMatchObject({
    'a.b': expect.stringMatching(/^x_a_b_[\w-]{8}$/),
    'a/b': expect.stringMatching(/^x_a_b_[\w-]{8}$/),
    a_b: 'x_a_b',
    'c.d': 'x_c_d',
  });
  expect(new Set(Object.values(first)).size).toBe(names.length);
  for (const name of Object.values(first)) expect(name).toMatch(/^[\w-]{1,64}$/);
  expect(await offered(tools.toReversed())).toEqual(first);
});

/** The JSON of objects and lists inside each other, deeper than anybody can follow. */
const deep = (): unknown => JSON.parse(`${'{"a":['.repeat(20_000)}1${']}'.repeat(20_000)}`);

it('leaves out a tool that is nested too deep, and offers the others', async () => {
  const one = server(
    told([{ ...ECHO, name: 'deep', inputSchema: { type: 'object', properties: deep() } }, ECHO]),
    () => ({ result: { content: [hi] } }),
  );
  expect(results(await agentOf(one).agent.run('go'))).toMatchObject([{ content: [{ text: 'hi' }] }]);
  expect(one.middleware.status.leftOut).toMatchObject([{ name: 'deep' }]);
});

it.each([
  ['content', { content: [deep()] }],
  ['structured content', { content: [], structuredContent: deep() }],
  ['anything else', { content: [], _meta: deep() }],
])('a result whose %s is nested too deep is an error, and does not end the process', async (_, result) => {
  const { agent } = agentOf(server(told([ECHO]), () => ({ result })));
  expect(results(await agent.run('go'))).toMatchObject([{ isError: true }]);
});

describe('a call that needs a person to visit an address first', () => {
  const VISIT = {
    mode: 'url',
    elicitationId: 'e',
    message: 'Sign in.',
    url: 'https://example.org/sign-in?state=1',
  };
  const refused = (elicitation: object): Reply => ({
    error: { code: -32042, message: 'You are not signed in.', data: { elicitations: [elicitation] } },
  });
  const visiting = (elicitation: object = VISIT, options: Partial<McpOptions> = {}) =>
    server(told([ECHO]), (_, n) => (n === 1 ? refused(elicitation) : { result: { content: [hi] } }), options);

  it('is made again when the person has been there', async () => {
    const one = visiting();
    const asked: unknown[] = [];
    const result = await agentOf(one).agent.run('go', {
      onRequest: ({ details }) => {
        asked.push(details);
        return { type: 'approve' };
      },
    });
    expect(asked).toMatchObject([{ message: 'Sign in.', url: VISIT.url }]);
    expect(results(result)).toMatchObject([{ content: [{ text: 'hi' }] }]);
    expect(one.calls()).toHaveLength(2);
  });

  it('suspends the run if nobody can be asked, and needs no second visit after that', async () => {
    let n = 0;
    const url = () => `https://example.org/sign-in?state=${++n}`;
    const one = server(told([ECHO]), (_, calls) =>
      calls <= 2 ? refused({ ...VISIT, url: url() }) : { result: { content: [hi] } },
    );
    const session = agentOf(one).agent.session('s');
    const { pending } = await session.run('go');
    const result = await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(results(result)).toMatchObject([{ content: [{ text: 'hi' }] }]);
  });

  it('suspends it again if the address is another one by then', async () => {
    const one = server(told([ECHO]), (_, n) => refused({ ...VISIT, url: `https://example.org/${n}` }));
    const session = agentOf(one).agent.session('s');
    const first = await session.run('go');
    const second = await session.resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second.pending).toMatchObject([{ details: { url: 'https://example.org/2' } }]);
  });

  it.each([
    ['the person declines', { type: 'reject' }, VISIT, {}, 'You are not signed in. A person declined.'],
    [
      'the address is none',
      { type: 'approve' },
      { ...VISIT, url: 'javascript:alert(1)' },
      {},
      'not a web address',
    ],
    ['nobody may be asked', { type: 'approve' }, VISIT, { elicitation: false }, 'You are not signed in.'],
  ] as const)('fails if %s', async (_, decision, elicitation, options, message) => {
    const one = visiting(elicitation, options);
    const [result] = results(await agentOf(one).agent.run('go', { onRequest: () => decision }));
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(message) }] });
    expect(one.calls()).toHaveLength(1);
  });
});
