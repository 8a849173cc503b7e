import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mcp, type McpOptions, mcp } from '@allium/mcp';
import { InMemoryTransport, type Transport } from '@modelcontextprotocol/client';
import { Agent, memoryStore, type RunResult, textOf } from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { written } from '../test/fixtures/written.mjs';
import { mcpOver } from './mcp.js';
import { samplingRequest } from './sampling.js';

const fixture = fileURLToPath(new URL('../test/fixtures/server.mjs', import.meta.url));
const { makeServer } = (await import(fixture)) as {
  makeServer(): { connect(transport: Transport): Promise<void> };
};
const open: Mcp[] = [];
const folder = mkdtempSync(join(tmpdir(), 'allium-mcp-'));
const log = join(folder, 'log');
const logged = () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []);

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
  rmSync(log, { force: true });
});

/** The server of the fixture, as a program of its own. */
function program(options: Partial<McpOptions> = {}): Mcp {
  const server = mcp({
    name: 'fx',
    command: process.execPath,
    args: [fixture],
    env: { LOG: log },
    ...options,
  });
  open.push(server);
  return server;
}

/** The same server in this process: quicker, where it is not the process that matters. */
function fixtureServer(options: Partial<McpOptions> = {}): Mcp {
  const server = mcpOver({ name: 'fx', command: 'in this process', ...options }, () => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    void makeServer().connect(theirs);
    return ours;
  });
  open.push(server);
  return server;
}

const call = (name: string, args: object = {}, id = name) => ({ name: `fx_${name}`, args, id });
const results = ({ messages }: Pick<RunResult, 'messages'>) =>
  messages.flatMap((message) => (message.role === 'tool' ? [textOf(message)] : []));

/** An agent that makes these calls in one turn and then ends, in any number of runs. */
function calling(server: Mcp, ...calls: ReturnType<typeof call>[]) {
  const model = scriptedModel([toolCalls(...calls), text('done')], { repeat: true });
  return { model, agent: new Agent({ model, middleware: [server] }) };
}

testMiddleware(() => fixtureServer(), { name: 'mcp', changes: ['tools', 'state'], describe, it });

describe('mcp()', () => {
  it('offers the tools of a program under a prefix, with their own schemas', async () => {
    const { agent, model } = calling(program(), call('echo', { text: 'hi' }));
    const result = await agent.run('go');
    expect(results(result)).toEqual(['echo: hi']);
    expect(model.requests[0]!.tools.find(({ name }) => name === 'fx_echo')).toEqual({
      name: 'fx_echo',
      description: 'Says it again.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    });
  });

  it('connects when a run first needs it, once for many runs', async () => {
    const server = program();
    const { agent } = calling(server, call('echo', { text: 'hi' }));
    expect(server.status).toMatchObject({ connected: false, tools: [] });
    await Promise.all([agent.run('a'), agent.run('b'), agent.run('c')]);
    expect(logged()).toEqual(['start']);
    expect(server.status.connected).toBe(true);
  });

  it('tells the model what is wrong with arguments, without asking the server', async () => {
    const { agent } = calling(fixtureServer(), call('echo', { text: 5 }));
    expect(results(await agent.run('go'))[0]).toContain('text');
  });

  it('passes images, resources, structured content and errors through unchanged', async () => {
    const { agent } = calling(fixtureServer(), call('picture'), call('data'), call('fail'));
    const { messages } = await agent.run('go');
    expect(messages.slice(2, 5)).toMatchObject([
      {
        content: [
          { type: 'text', text: 'Here.' },
          { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
          { type: 'text', text: 'note://1\na note' },
          { type: 'text', text: 'x: https://example.org/x' },
        ],
      },
      { content: [{ type: 'text', text: '{"sum":42}' }], details: { sum: 42 } },
      { content: [{ type: 'text', text: 'It did not work.' }], isError: true },
    ]);
  });

  it('leaves out empty texts, which some providers refuse', async () => {
    const { agent } = calling(fixtureServer(), call('blank'), call('silence'));
    expect((await agent.run('go')).messages.slice(2, 4)).toMatchObject([
      { content: [{ type: 'image' }] },
      { content: [{ type: 'text', text: '(no output)' }] },
    ]);
  });

  it.each([program, fixtureServer])('shows progress as updates of the call (%o)', async (make) => {
    const { agent } = calling(make(), call('steps'));
    const updates: object[] = [];
    for await (const event of agent.stream('go'))
      if (event.type === 'tool_execution_update') updates.push(event);
    expect(updates).toMatchObject([
      { update: [{ text: 'step (1 of 2)' }], details: { progress: 1, total: 2 } },
      { update: [{ text: 'step (2 of 2)' }], details: { progress: 2, total: 2 } },
    ]);
  });

  it('sends a program more at once than it reads, without a warning of Node', async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error) => warnings.push(warning);
    process.on('warning', warned);
    const value = 'a'.repeat(100_000);
    const calls = Array.from({ length: 20 }, (_, i) => call('echo', { text: value }, `c${i}`));
    const { agent } = calling(program(), ...calls);
    expect(results(await agent.run('go'))).toEqual(calls.map(() => `echo: ${value}`));
    process.off('warning', warned);
    expect(warnings).toEqual([]);
  });

  it('cancels the call at the server when the run is aborted', async () => {
    const { agent } = calling(program(), call('hang'));
    const abort = new AbortController();
    const failed = agent.run('go', { signal: abort.signal }).catch((error) => error);
    await written(log, 'hang');
    abort.abort();
    expect(await failed).toMatchObject({ code: 'ABORTED' });
    await written(log, 'cancelled');
  });

  it('reports a server that dies during a call, and starts it again for the next', async () => {
    const server = program();
    const first = await calling(server, call('die')).agent.run('go');
    expect(results(first)[0]).toContain(
      'MCP server "fx" went away during the call of "die". Nobody knows whether it ran.',
    );
    expect(results(await calling(server, call('echo', { text: 'again' })).agent.run('go'))).toEqual([
      'echo: again',
    ]);
    expect(logged()).toEqual(['start', 'start']);
  });

  it('reports a server that dies while a helper of it lives on, and starts it again', async () => {
    const server = program({ timeoutMs: 5000 });
    const first = await calling(server, call('orphan')).agent.run('go');
    expect(results(first)[0]).toContain('went away during the call of "orphan"');
    expect(results(await calling(server, call('echo', { text: 'again' })).agent.run('go'))).toEqual([
      'echo: again',
    ]);
  });

  it('says so if a program sends too much, in an answer or before', async () => {
    const tooMuch = /The server sent more than \d+ bytes at once\. .*raise `maxAnswerBytes`/;
    const server = program({ maxAnswerBytes: 65_536 });
    const { messages } = await calling(server, call('much'), call('hang')).agent.run('go');
    expect(results({ messages })).toEqual([expect.stringMatching(tooMuch), expect.stringMatching(tooMuch)]);
    expect(results(await calling(server, call('echo', { text: 'hi' })).agent.run('go'))).toEqual([
      'echo: hi',
    ]);
    const small = program({ maxAnswerBytes: 100 });
    await expect(small.connect()).rejects.toMatchObject({
      code: 'MCP_UNAVAILABLE',
      message: expect.stringMatching(tooMuch),
    });
  });

  it('says what is wrong with a program that does not start, and tries again with the next run', async () => {
    const server = mcp({
      name: 'no',
      command: process.execPath,
      args: ['-e', 'console.error("no such thing"); process.exit(3)'],
    });
    const agent = new Agent({ model: scriptedModel(['hi'], { repeat: true }), middleware: [server] });
    for (let i = 0; i < 2; i++)
      await expect(agent.run('go')).rejects.toMatchObject({
        cause: {
          code: 'MCP_UNAVAILABLE',
          message: expect.stringMatching(/"no" cannot be reached: .*\nIt said: no such thing/),
        },
      });
  });

  it.each([
    [
      'writes more than messages',
      {
        args: ['-e', 'process.stdout.write("Ready. "); process.stdin.pipe(process.stdout)'],
        connectTimeoutMs: 1000,
      },
      'Its standard output has to carry messages only, but has: Ready. {"',
    ],
    [
      'starts in a folder that is not there',
      { cwd: join(folder, 'none') },
      `There is no folder "${join(folder, 'none')}".`,
    ],
  ])('explains a program that %s', async (_, options, message) => {
    await expect(program(options).connect()).rejects.toThrow(message);
  });

  it('goes on without an optional server, and notes it', async () => {
    const server = mcp({ name: 'no', command: 'allium-no-such-program', optional: true });
    const { changes, text: answer } = await new Agent({
      model: scriptedModel(['hi']),
      middleware: [server],
    }).run('go');
    expect(answer).toBe('hi');
    expect(changes).toContainEqual(
      expect.objectContaining({ by: 'mcp-no', what: expect.stringContaining('goes on without its tools') }),
    );
  });

  it('offers only the tools that are wanted', async () => {
    const { agent, model } = calling(
      fixtureServer({ only: ['echo', 'data'], except: ['data'], prefix: '' }),
      call('echo'),
    );
    await agent.run('go');
    expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['echo']);
  });

  it('says which tools are named in its options and not there', async () => {
    const server = fixtureServer({
      only: ['echo', 'ehco'],
      except: ['remove'],
      pins: { old: 'x', echo: 'y' },
    });
    const { leftOut } = await server.connect();
    expect(leftOut.map(({ name }) => name)).toEqual(['ehco', 'remove', 'old']);
  });

  it('notices new tools', async () => {
    const model = scriptedModel([toolCalls(call('grow')), toolCalls(call('late')), text('done')]);
    const agent = new Agent({ model, middleware: [fixtureServer()] });
    expect(results(await agent.run('go'))).toEqual(['grown', 'late']);
  });
});

it('ends its program with this process, even if the program would stay', async () => {
  const pidFile = join(folder, 'pid');
  const script = fileURLToPath(new URL('../test/fixtures/leaves.mjs', import.meta.url));
  const leaving = spawn(process.execPath, [script, pidFile]);
  await new Promise((resolve) => leaving.once('exit', resolve));
  const pid = Number(readFileSync(pidFile, 'utf8'));
  await expect.poll(() => isAlive(pid)).toBe(false);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('what a server says of its tools', () => {
  it('is shortened, and loses invisible characters', async () => {
    const server = fixtureServer({ maxDescriptionChars: 10 });
    const { tools } = await server.connect();
    expect(tools.find(({ serverName }) => serverName === 'dotted.name')).toMatchObject({
      name: 'fx_dotted_name',
      description: 'Strange na … (cut, 3 characters more)',
    });
  });

  it('of their arguments is treated in the same way', async () => {
    const { agent, model } = calling(fixtureServer({ maxDescriptionChars: 3 }), call('told'));
    await agent.run('go');
    const told = 'Who … (cut, 1 characters more)';
    expect(model.requests[0]!.tools.find(({ name }) => name === 'fx_told')?.inputSchema).toMatchObject({
      properties: {
        description: { description: told, default: 'Who.\u200b\u{E0041}' },
        list: { items: { anyOf: [{ title: told }, { $comment: told }] } },
      },
    });
  });

  it('is shown by explain()', async () => {
    const server = fixtureServer({ only: ['echo'] });
    const agent = new Agent({ model: scriptedModel(['hi']), middleware: [server] });
    expect(String(agent.explain())).toContain('"fx" describes its tools itself, and is not connected yet');
    expect(agent.explain().hazards[0]?.fix).toContain('`allium doctor` lists them');
    const { tools } = await server.connect();
    expect(String(agent.explain())).toContain(`fx_echo (${tools[0]!.fingerprint}): Says it again.`);
  });

  it('is nothing to warn of if it offers no tools', async () => {
    const server = fixtureServer({ only: [] });
    const agent = new Agent({ model: scriptedModel(['hi']), middleware: [server] });
    expect(agent.explain().hazards).toHaveLength(1);
    await server.connect();
    expect(agent.explain().hazards).toEqual([]);
  });

  it('may not change in a session', async () => {
    const { agent } = calling(fixtureServer(), call('change'));
    await expect(agent.session('s').run('go')).rejects.toMatchObject({
      cause: { code: 'MCP_TOOL_CHANGED', data: { server: 'fx', tool: 'echo' } },
    });
  });

  it('may not change by way of a rewind to before it was first seen', async () => {
    const server = fixtureServer();
    const { agent } = calling(server, call('echo', { text: 'hi' }));
    const { messages } = await agent.session('s').run('go');
    await calling(server, call('change'))
      .agent.run('go')
      .catch(() => {});
    await agent.session('s').rewind({ before: messages[0]!.id });
    await expect(agent.session('s').run('go')).rejects.toMatchObject({ cause: { code: 'MCP_TOOL_CHANGED' } });
  });

  it("may not change between a person's approval and the call", async () => {
    const server = fixtureServer();
    const model = scriptedModel([toolCalls(call('echo', { text: 'hi' })), text('done')]);
    const agent = new Agent({ model, middleware: [approval({ policy: { fx_echo: ask() } }), server] });
    const onRequest = async () => {
      await calling(server, call('change'))
        .agent.run('go')
        .catch(() => {});
      return { type: 'approve' as const };
    };
    const { messages } = await agent.run('go', { onRequest }).catch((error) => error.result);
    expect(results({ messages })[0]).toContain('changed the description of its tool "echo"');
  });

  it('may change if that is allowed, and in another session', async () => {
    const server = fixtureServer({ onChange: 'allow' });
    const { agent } = calling(server, call('change'));
    await agent.session('s').run('go');
    expect((await agent.session('s').run('go')).status).toBe('done');
  });

  it('may not differ from its pin, and tools without a pin are not offered', async () => {
    const first = fixtureServer();
    const { tools } = await first.connect();
    const { fingerprint } = tools.find(({ serverName }) => serverName === 'echo')!;
    const pinned = calling(fixtureServer({ pins: { echo: fingerprint } }), call('echo', { text: 'hi' }));
    expect(results(await pinned.agent.run('go'))).toEqual(['echo: hi']);
    expect(pinned.model.requests[0]!.tools).toHaveLength(1);
    await expect(
      calling(fixtureServer({ pins: { echo: 'x' } }), call('echo')).agent.run('go'),
    ).rejects.toMatchObject({
      cause: { code: 'MCP_TOOL_CHANGED' },
    });
  });
});

describe('questions of a server', () => {
  it.each(['legacy', 'auto'] as const)(
    'suspend the run, which goes on with the answer (%s)',
    async (protocol) => {
      const store = memoryStore();
      const make = () => {
        const model = scriptedModel([toolCalls(call('ask')), text('done')], { repeat: true });
        return new Agent({ model, store, middleware: [program({ protocol })] });
      };
      const waiting = await make().session('s').run('go');
      expect(waiting).toMatchObject({
        status: 'suspended',
        pending: [{ title: 'MCP server "fx" asks: Which color?', details: { server: 'fx', tool: 'ask' } }],
      });
      const { id } = waiting.pending[0]!;
      const ended = await make()
        .session('s')
        .resume({ answers: { [id]: { type: 'respond', text: 'blue' } } });
      expect(results(ended)).toEqual(['accept: {"color":"blue"}']);
    },
  );

  it.each([
    [{ type: 'edit', args: { color: 'red' } }, 'accept: {"color":"red"}'],
    [{ type: 'reject' }, 'decline: null'],
    [{ type: 'approve' }, 'accept: {}'],
  ] as const)('are answered in place if somebody can: %j', async (decision, wanted) => {
    const { agent } = calling(fixtureServer(), call('ask'));
    expect(results(await agent.run('go', { onRequest: () => decision }))[0]).toContain(wanted.split(':')[0]);
  });

  it('wait until it is clear whose they are', async () => {
    const { agent } = calling(fixtureServer(), call('ask'), call('echo', { text: 'hi' }));
    const { messages } = await agent.run('go', { onRequest: () => ({ type: 'respond', text: 'green' }) });
    expect(results({ messages })).toEqual(['accept: {"color":"green"}', 'echo: hi']);
  });

  it('are asked one after the other if the calls run that way', async () => {
    const { agent } = calling(fixtureServer({ sequential: true }), call('ask'), call('ask', {}, 'b'));
    let n = 0;
    const { messages } = await agent.run('go', {
      onRequest: () => ({ type: 'respond', text: `color ${++n}` }),
    });
    expect(results({ messages })).toEqual(['accept: {"color":"color 1"}', 'accept: {"color":"color 2"}']);
  });

  it('reach a model only if one is given', async () => {
    const { agent } = calling(fixtureServer(), call('think'));
    expect((await agent.run('go')).messages[2]).toMatchObject({ isError: true });
    const sampling = scriptedModel(['Deep.']);
    const allowed = await calling(fixtureServer({ sampling }), call('think')).agent.run('go');
    expect(results(allowed)[0]).toContain('thought: Deep. by');
    expect(sampling.requests[0]).toMatchObject({ settings: { maxOutputTokens: 50 } });
    expect(allowed.usage.totalTokens).toBe(45);
  });

  it('reach that model with all that they say', () => {
    const said = (content: object) => ({ role: 'user', content });
    const audio = { type: 'audio', data: 'AAAA', mimeType: 'audio/wav' };
    const request = samplingRequest({
      messages: [said({ type: 'text', text: 'Hear!' }), said(audio)],
      systemPrompt: 'Be brief.',
      stopSequences: ['END'],
      temperature: 0.5,
    });
    expect(request).toMatchObject({
      messages: [{ content: [{ text: 'Hear!' }] }, { content: [{ ...audio, type: 'file' }] }],
      systemPrompt: 'Be brief.',
      settings: { stopSequences: ['END'], temperature: 0.5 },
    });
  });
});

it('composes with approval, also over a resume in another process', async () => {
  const store = memoryStore();
  const make = () => {
    const model = scriptedModel([toolCalls(call('echo', { text: 'hi' })), text('done')]);
    return new Agent({
      model,
      store,
      middleware: [approval({ policy: { fx_echo: ask() } }), fixtureServer()],
    });
  };
  const { pending } = await make().session('s').run('go');
  const ended = await make()
    .session('s')
    .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
  expect(results(ended)).toEqual(['echo: hi']);
});

describe('options', () => {
  it.each([
    [{}, 'Expected `name` to be 1 to 32 letters'],
    [
      { name: 'x' },
      'mcp() needs `command`, for a program, or `url`, for a server on the network: neither was given for "x".',
    ],
    [{ name: 'x', command: 'a', url: 'http://x' }, 'both were given'],
    [{ name: 'x', url: 'ftp://x' }, 'Expected `url` to be an address that begins with http:// or https://'],
    [{ name: 'x', command: 'a', headers: {} }, '`headers` are for servers with a `url`'],
    [{ name: 'x', url: 'http://me:secret@x' }, '`url` of MCP server "x" has a user name in it. Put it'],
    [{ name: 'x', command: 'a', args: 'b' }, 'Expected `args` to be a list of texts'],
    [{ name: 'x', command: 'a', timeoutMs: 0 }, 'Expected `timeoutMs` to be an integer'],
    [{ name: 'x', command: 'a', onchange: 'error' }, 'Did you mean `onChange`?'],
    // As the AI SDK, LangChain, Mastra and OpenAI Agents call them.
    [{ name: 'x', transport: { url: 'http://x' } }, 'Here that is `url`.'],
    [{ name: 'x', serverUrl: 'http://x' }, 'Here that is `url`.'],
    [{ name: 'x', url: 'http://x', requestInit: {} }, 'Here that is `headers`.'],
    [{ name: 'x', url: 'http://x', toolFilter: [] }, 'Here that is `only`.'],
    [{ name: 'x', url: 'http://x', disabledTools: [] }, 'Here that is `except`.'],
    [{ name: 'x', url: 'http://x', timeout: 5 }, 'Here that is `timeoutMs`.'],
    [{ name: 'x', url: 'http://x', prefixToolNameWithServerName: true }, 'Here that is `prefix`.'],
  ])('refuses %j', (options, message) => {
    expect(() => mcp(options as never)).toThrow(message);
  });
});
