import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
  Agent,
  type AgentOptions,
  type Decision,
  type Middleware,
  type ModelRequest,
  type Request as Question,
  textOf,
  tool,
} from 'allium';
import { objectInput } from 'allium/kit';
import { approval } from 'allium/middleware/approval';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { mcpOver } from './mcp.js';
import { type McpServerOptions, mcpServer } from './server.js';

const paid: number[] = [];
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: objectInput<{ amount: string }>({ amount: { type: 'text', description: 'How much.' } }),
  execute: ({ amount }) => `paid ${paid.push(Number(amount))}`,
});

function agentWith(middleware: Middleware[] = [], answers = [text('Hello.')]): Agent {
  return new Agent({ model: scriptedModel(answers, { repeat: true }), tools: [pay], middleware });
}

/** `legacy` speaks the protocol of 2025, as this client does by default and older ones always do. */
const MODES = ['auto', 'legacy'] as const;

/** A client of the official library that talks to the server by HTTP requests, without a network. */
async function clientOf(
  options: McpServerOptions,
  answer?: object,
  headers: Record<string, string> = {},
  mode: (typeof MODES)[number] = 'auto',
  server = mcpServer(options),
) {
  const client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode }, ...(answer && { capabilities: { elicitation: { form: {} } } }) },
  );
  const asked: string[] = [];
  if (answer)
    client.setRequestHandler('elicitation/create', (request) => {
      asked.push(request.params.message);
      return answer as never;
    });
  const transport = new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
    fetch: (url, init) => server.fetch(new Request(url, init as RequestInit)),
    requestInit: { headers },
  });
  await client.connect(transport);
  return { client, asked, server, transport };
}

const description = 'Helps.';

/** A call as a client of 2025 sends it. */
function callOf(sessionId: string, headers: Record<string, string> = {}): Request {
  return new Request('http://127.0.0.1/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': sessionId,
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { name: 'help', arguments: { message: 'Pay 5' } },
    }),
  });
}

/** An agent whose model answers when it is told to stop. */
function waiting() {
  let begun: () => void = () => {};
  const started = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let aborted: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    aborted = resolve;
  });
  const wait: Middleware = {
    name: 'wait',
    wrapModel(ctx) {
      begun();
      return new Promise((_, reject) =>
        ctx.signal.addEventListener('abort', () => {
          aborted();
          reject(ctx.signal.reason);
        }),
      );
    },
  };
  return { agent: agentWith([wait]), started, ended };
}

const asking = () =>
  agentWith([approval()], [toolCalls({ name: 'pay', args: { amount: '5' } }), text('Paid.')]);

describe('mcpServer()', () => {
  it('makes each agent a tool', async () => {
    const agents = {
      help: { agent: agentWith(), description },
      more: { agent: agentWith(), description: 'More.' },
    };
    const { client } = await clientOf({ agents, authorize: 'none' });
    expect((await client.listTools()).tools.map(({ name, description }) => [name, description])).toEqual([
      ['help', 'Helps.'],
      ['more', 'More.'],
    ]);
    expect(await client.callTool({ name: 'help', arguments: { message: 'Hi' } })).toMatchObject({
      content: [{ type: 'text', text: 'Hello.' }],
    });
  });

  it('goes on with a conversation by its name', async () => {
    const agent = agentWith();
    const { client } = await clientOf({ agents: { help: { agent, description } }, authorize: 'none' });
    for (const message of ['one', 'two'])
      await client.callTool({ name: 'help', arguments: { message, session: 's' } });
    expect(await agent.session('s').messages()).toHaveLength(4);
  });

  it('reports progress', async () => {
    const agent = agentWith([], [toolCalls({ name: 'pay', args: { amount: '1' } }), text('Done.')]);
    const { client } = await clientOf({ agents: { help: { agent, description } }, authorize: 'none' });
    const seen: unknown[] = [];
    await client.callTool(
      { name: 'help', arguments: { message: 'Hi' } },
      { onprogress: ({ message }) => void seen.push(message) },
    );
    expect(seen).toContain('turn 1');
    expect(seen).toContain('calls pay');
  });

  it.each(MODES)('aborts the run when the call is cancelled (%s)', async (mode) => {
    const { agent, started, ended } = waiting();
    const { client } = await clientOf(
      { agents: { help: { agent, description } }, authorize: 'none' },
      undefined,
      {},
      mode,
    );
    const abort = new AbortController();
    const call = client.callTool({ name: 'help', arguments: { message: 'Hi' } }, { signal: abort.signal });
    call.catch(() => {});
    await started;
    abort.abort();
    await expect(call).rejects.toThrow();
    await ended;
  });

  it.each(MODES)('aborts the run when the client leaves (%s)', async (mode) => {
    const { agent, started, ended } = waiting();
    const { client } = await clientOf(
      { agents: { help: { agent, description } }, authorize: 'none' },
      undefined,
      {},
      mode,
    );
    // Asking for progress makes the answer a stream, in both.
    client.callTool({ name: 'help', arguments: { message: 'Hi' } }, { onprogress: () => {} }).catch(() => {});
    await started;
    await client.close();
    await ended;
  });

  it.each(
    MODES.flatMap(
      (mode) =>
        [
          [{ action: 'accept', content: { decision: 'approve' } }, 'Paid.', 1, mode],
          [{ action: 'accept', content: { decision: 'reject' } }, 'Paid.', 0, mode],
          [{ action: 'decline' }, 'Paid.', 0, mode],
        ] as const,
    ),
  )('puts questions to the user of the client: %j', async (answer, wanted, payments, mode) => {
    paid.length = 0;
    const { client, asked } = await clientOf(
      { agents: { help: { agent: asking(), description } }, authorize: 'none' },
      answer,
      {},
      mode,
    );
    const result = await client.callTool({ name: 'help', arguments: { message: 'Pay 5' } });
    expect(result).toMatchObject({ content: [{ text: wanted }] });
    expect(asked).toEqual([expect.stringContaining('May "pay" be called with {"amount":"5"}?')]);
    expect(paid).toHaveLength(payments);
  });

  it.each(MODES)('reports progress that only grows, also over a question (%s)', async (mode) => {
    const { client } = await clientOf(
      { agents: { help: { agent: asking(), description } }, authorize: 'none' },
      { action: 'accept', content: { decision: 'approve' } },
      {},
      mode,
    );
    const seen: number[] = [];
    await client.callTool(
      { name: 'help', arguments: { message: 'Pay 5' } },
      // The client adds a report of its own between its rounds.
      { onprogress: ({ progress, message }) => void (/^(turn|calls)/.test(message!) && seen.push(progress)) },
    );
    expect(seen.length).toBeGreaterThan(2);
    expect(seen).toEqual(seen.map((_, i) => i + 1));
  });

  it.each(MODES)('says so if the client cannot ask (%s)', async (mode) => {
    paid.length = 0;
    const { client } = await clientOf(
      { agents: { help: { agent: asking(), description } }, authorize: 'none' },
      undefined,
      {},
      mode,
    );
    const result = await client.callTool({ name: 'help', arguments: { message: 'Pay 5' } });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('cannot ask its user') }],
    });
    expect(paid).toEqual([]);
  });

  it.each(MODES)('asks the user of an agent that calls it over HTTP: %s', async (protocol) => {
    // The question is asked again when the call is repeated, and answered at once.
    const answer = ({ messages }: ModelRequest) =>
      messages.at(-1)!.role === 'user' ? toolCalls({ name: 'pay', args: { amount: '5' } }) : text('Paid.');
    const clerk = new Agent({
      model: scriptedModel([answer], { repeat: true }),
      tools: [pay],
      middleware: [approval()],
    });
    const server = mcpServer({ agents: { help: { agent: clerk, description } }, authorize: 'none' });
    // A call waits until the client knows that the stream of the one before has ended.
    let ended: Promise<void> = Promise.resolve();
    const fetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
      if (protocol === 'auto') await ended;
      const response = await server.fetch(new Request(url, init));
      if (response.body === null || !String(init?.body).includes('tools/call')) return response;
      const { readable, writable } = new TransformStream();
      ended = response.body.pipeTo(writable).then(() => new Promise((resolve) => setImmediate(resolve)));
      return new Response(readable, response);
    };
    const options = { name: 'office', url: 'http://127.0.0.1/mcp', protocol };
    const office = mcpOver(
      options,
      () =>
        new StreamableHTTPClientTransport(new URL(options.url), { fetch: fetch as typeof globalThis.fetch }),
    );
    const model = scriptedModel([toolCalls({ name: 'office_help', args: { message: 'Pay 5' } }), 'Thanks.']);
    const session = new Agent({ model, middleware: [office] }).session('s');
    const { status, pending } = await session.run('Let them pay 5.');
    expect([status, pending[0]?.title]).toEqual(['suspended', expect.stringContaining('Run "pay"?')]);
    const answers = { [pending[0]!.id]: { type: 'edit', args: { decision: 'approve' } } } as const;
    const { text: said, messages } = await session.resume({ answers });
    expect([textOf(messages.at(-2)!), said]).toEqual(['Paid.', 'Thanks.']);
    await office.close();
    await server.close();
  });

  it("keeps the sessions of tenants apart, and reveals nothing of others'", async () => {
    const heard: ModelRequest['messages'][] = [];
    const answer = ({ messages }: ModelRequest) => {
      heard.push(messages);
      return text('Hello.');
    };
    const agent = new Agent({ model: scriptedModel([answer], { repeat: true }) });
    const agents = { help: { agent, description } };
    const authorize = (request: Request) => {
      const tenant = request.headers.get('x-tenant');
      return tenant === null ? {} : { tenant };
    };
    const a = await clientOf({ agents, authorize }, undefined, { 'x-tenant': 'a' });
    const b = await clientOf({ agents, authorize }, undefined, { 'x-tenant': 'b' });
    const nobody = await clientOf({ agents, authorize });
    // Everybody may use the same names, and those that somebody else uses look like new ones.
    for (const session of ['s', 'a/s', 'b/s', 'a%2Fs']) {
      const call = { name: 'help', arguments: { message: `Hi, ${session}`, session } };
      for (const { client } of [a, b, nobody, a])
        expect(await client.callTool(call)).toMatchObject({ content: [{ text: 'Hello.' }] });
    }
    expect(heard.map((said) => said.length)).toEqual([1, 1, 1, 3, 1, 1, 1, 3, 1, 1, 1, 3, 1, 1, 1, 3]);
    expect(await agent.session('a/s', { tenant: 'a' }).messages()).toHaveLength(4);
  });

  it.each(['none', () => ({ tenant: 'a' })] as const)(
    'does not lead into sessions of sub-agents: %s',
    async (authorize) => {
      const agent = agentWith();
      const { client } = await clientOf({ agents: { help: { agent, description } }, authorize });
      const call = (session: string) =>
        client.callTool({ name: 'help', arguments: { message: 'Hi', session } });
      expect(await call('s')).toMatchObject({ content: [{ text: 'Hello.' }] });
      expect(await call('s/r_x.2.0')).toMatchObject({
        isError: true,
        content: [{ text: 'No session can have this name.' }],
      });
      expect((await agent.store.list({})).sessions).toHaveLength(1);
    },
  );

  it('does not let a tenant use the connection of another', async () => {
    const options: McpServerOptions = {
      agents: { help: { agent: asking(), description } },
      authorize: (request) => ({ tenant: request.headers.get('x-tenant')! }),
    };
    const accept = { action: 'accept', content: { decision: 'approve' } };
    const { asked, server, transport } = await clientOf(options, accept, { 'x-tenant': 'a' }, 'legacy');
    const called = await server.fetch(callOf(transport.sessionId!, { 'x-tenant': 'b' }));
    expect(await called.text()).toContain('cannot ask its user');
    expect(asked).toEqual([]);
  });

  it('serves a client whose connection another process has, without questions', async () => {
    const options: McpServerOptions = {
      agents: { help: { agent: agentWith(), description } },
      authorize: 'none',
    };
    const { transport } = await clientOf(options, undefined, {}, 'legacy');
    expect(await (await mcpServer(options).fetch(callOf(transport.sessionId!))).text()).toContain('Hello.');
  });

  it('forgets the connection of a client that says goodbye', async () => {
    const options: McpServerOptions = {
      agents: { help: { agent: asking(), description } },
      authorize: 'none',
    };
    const { server, transport } = await clientOf(options, { action: 'decline' }, {}, 'legacy');
    const id = transport.sessionId!;
    await transport.terminateSession();
    expect(await (await server.fetch(callOf(id))).text()).toContain('cannot ask its user');
  });

  it('refuses requests that are not authorized', async () => {
    const serverFor = (who: unknown) =>
      mcpServer({ agents: { help: { agent: agentWith(), description } }, authorize: () => who as object });
    for (const who of [new Response('no', { status: 401 }), false, null, undefined])
      expect((await serverFor(who).fetch(callOf('s'))).status).toBe(401);
    for (const who of [{ tenant: undefined }, { tenant: 5 }])
      await expect(serverFor(who).fetch(callOf('s'))).rejects.toThrow('`tenant`');
    const open = mcpServer({ agents: { help: { agent: agentWith(), description } } });
    await expect(open.fetch(new Request('http://127.0.0.1/mcp'))).rejects.toThrow('authorize');
  });

  it('reports the code of a failure, and nothing internal', async () => {
    const broken: Middleware = {
      name: 'broken',
      beforeModel() {
        throw new Error('password is 12345');
      },
    };
    const { client } = await clientOf({
      agents: { help: { agent: agentWith([broken]), description } },
      authorize: 'none',
    });
    expect(await client.callTool({ name: 'help', arguments: { message: 'Hi' } })).toMatchObject({
      isError: true,
      content: [{ text: 'The agent could not answer (MIDDLEWARE_ERROR).' }],
    });
  });

  it.each([
    [{ agents: {} }, 'Expected `agents` to be an object with at least one agent'],
    [{ agents: { 'a b': {} } }, 'named with letters'],
    [
      { agents: { a: { agent: 5 } } },
      'Expected `agents.a` to be { agent, description }, an Agent and a text',
    ],
  ])('refuses options %#', (options, message) => {
    expect(() => mcpServer(options as never)).toThrow(message);
  });
});

it.each(MODES)(
  'serves a client of the official library in another process, over standard input and output (%s)',
  async (mode) => {
    const agent = fileURLToPath(new URL('../test/fixtures/agent.mjs', import.meta.url));
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode }, capabilities: { elicitation: {} } },
    );
    const asked: string[] = [];
    client.setRequestHandler('elicitation/create', (request) => {
      asked.push(request.params.message);
      return { action: 'accept', content: { decision: 'approve' } };
    });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [agent], stderr: 'ignore' }),
    );
    const answerTo = (message: string) => client.callTool({ name: 'help', arguments: { message } });
    try {
      expect(await answerTo('Hello?')).toMatchObject({
        content: [{ text: expect.stringContaining('You said: Hello?') }],
      });
      expect(await answerTo('Send the report')).toMatchObject({
        content: [{ text: expect.stringContaining('It was sent.') }],
      });
      expect(asked).toEqual([expect.stringContaining('May "send_report" be called')]);
    } finally {
      await client.close();
    }
  },
);

it.each(MODES)('puts questions to the user in the form in which they can be answered (%s)', async (mode) => {
  const deciding = asker({ title: 'Delete?', decisions: ['approve', 'reject'] });
  const { client } = await clientOf(
    { authorize: 'none', agents: { help: { agent: deciding.agent, description } } },
    { action: 'accept', content: { decision: 'approve' } },
    {},
    mode,
  );
  await client.callTool({ name: 'help', arguments: { message: 'go' } });
  expect(deciding.said).toEqual([{ type: 'approve' }]);
  await client.close();
});

it.each(MODES)('goes on if the user answers too late (%s)', async (mode) => {
  const clock = fakeClock();
  const hasty = asker({ title: 'Color?', timeoutMs: 1000 }, { clock });
  const answer = { action: 'accept', content: { answer: 'blue' } };
  const late = {
    get action() {
      void clock.advance(2000);
      return answer.action;
    },
    content: answer.content,
  };
  const options = { authorize: 'none', agents: { help: { agent: hasty.agent, description } } } as const;
  const { client } = await clientOf(options, late, {}, mode);
  const { isError } = await client.callTool({ name: 'help', arguments: { message: 'go' } });
  expect(isError ?? false).toBe(false);
  expect(hasty.said).toMatchObject([{ type: 'reject', reason: expect.stringContaining('Nobody answered') }]);
  await client.close();
});

/** An agent whose tool asks this, and what it is told. */
function asker(request: Question, options: Partial<AgentOptions> = {}) {
  const said: Decision[] = [];
  const ask = tool({
    name: 'ask',
    description: 'Asks.',
    input: objectInput({}),
    async execute(_, ctx) {
      said.push(await ctx.suspend(request));
      return 'heard';
    },
  });
  const model = scriptedModel([toolCalls({ name: 'ask', args: {} }), text('Thanks.')]);
  return { said, agent: new Agent({ model, tools: [ask], ...options }) };
}

it('does not put a form to a client that can only open addresses', async () => {
  const server = mcpServer({ agents: { help: { agent: asking(), description } }, authorize: 'none' });
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { url: {} } } });
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept' }));
  await client.connect(
    new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
      fetch: (url, init) => server.fetch(new Request(url, init as RequestInit)),
    }),
  );
  expect(await client.callTool({ name: 'help', arguments: { message: 'Pay 5' } })).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('cannot ask its user') }],
  });
});
