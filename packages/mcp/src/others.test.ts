// With servers and clients that others made, in processes of their own.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { type Mcp, type McpOptions, mcp } from '@allium/mcp';
import { Agent, type PendingRequest, textOf } from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';

const require = createRequire(import.meta.url);
const packageFolder = (name: string) => dirname(require.resolve(`${name}/package.json`));
const everything = join(packageFolder('@modelcontextprotocol/server-everything'), 'dist/index.js');
const filesystem = join(packageFolder('@modelcontextprotocol/server-filesystem'), 'dist/index.js');

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function server(options: Omit<McpOptions, 'name'>): Mcp {
  const made = mcp({ name: 'x', ...options });
  ends.push(() => made.close());
  return made;
}

/** The results of these calls, made in one turn. */
async function called(middleware: Mcp, ...calls: { name: string; args?: object }[]): Promise<string[]> {
  const named = calls.map(({ name, args = {} }, i) => ({ name: `x_${name}`, args, id: `c${i}` }));
  const model = scriptedModel([toolCalls(...named), text('done')]);
  const onRequest = () => ({ type: 'edit' as const, args: { name: 'Ann' } });
  const { messages } = await new Agent({ model, middleware: [middleware] }).run('go', { onRequest });
  return messages.flatMap((message) => (message.role === 'tool' ? [textOf(message)] : []));
}

async function listening(port: number): Promise<{ url: string; process: ChildProcess }> {
  const child = spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  ends.push(() => child.kill('SIGKILL'));
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr!.on('data', (chunk) => {
      said += chunk;
      if (said.includes('listening on port')) resolve();
    });
    child.once('exit', () => reject(new Error(said)));
  });
  return { url: `http://127.0.0.1:${port}/mcp`, process: child };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

describe('server-everything', () => {
  it('works over standard input and output', async () => {
    const results = await called(
      server({ command: process.execPath, args: [everything] }),
      { name: 'echo', args: { message: 'hi' } },
      { name: 'get-sum', args: { a: 19, b: 23 } },
      { name: 'get-structured-content', args: { location: 'New York' } },
    );
    expect(results[0]).toBe('Echo: hi');
    expect(results[1]).toContain('42');
    expect(results[2]).toContain('temperature');
  });

  it('works over HTTP, and again after it was killed and started anew', async () => {
    const port = await freePort();
    const first = await listening(port);
    const everywhere = server({ url: first.url });
    expect(await called(everywhere, { name: 'echo', args: { message: 'one' } })).toEqual(['Echo: one']);
    first.process.kill('SIGKILL');
    await new Promise((resolve) => first.process.once('exit', resolve));
    await listening(port);
    expect(await called(everywhere, { name: 'echo', args: { message: 'two' } })).toEqual(['Echo: two']);
  });

  it('has a tool that only runs as a task, which is left out', async () => {
    const made = server({ command: process.execPath, args: [everything] });
    const { tools, leftOut } = await made.connect();
    expect(leftOut).toMatchObject([
      { name: 'simulate-research-query', why: expect.stringContaining('task') },
    ]);
    expect(tools.map(({ serverName }) => serverName)).not.toContain('simulate-research-query');
  });

  it('asks a person to visit an address, before a call and in the middle of it', async () => {
    const made = server({ command: process.execPath, args: [everything] });
    const args = { url: 'https://example.org/pay', errorPath: true };
    const model = scriptedModel([toolCalls({ name: 'x_trigger-url-elicitation', args }), text('done')]);
    const session = new Agent({ model, middleware: [made] }).session('s');
    const asked: unknown[] = [];
    let result = await session.run('go');
    for (; result.status === 'suspended'; ) {
      const [{ id, details }] = result.pending as [PendingRequest];
      asked.push((details as { url: string }).url);
      result = await session.resume({ answers: { [id]: { type: 'approve' } } });
    }
    expect(asked).toEqual(['https://modelcontextprotocol.io', args.url]);
    expect(result.messages.some((message) => textOf(message).includes('User completed'))).toBe(true);
  });

  it('asks the person behind the run', async () => {
    const [answer] = await called(server({ command: process.execPath, args: [everything] }), {
      name: 'trigger-elicitation-request',
    });
    expect(answer).toContain('Ann');
  });

  it('asks several people at once over HTTP, each about their own call', async () => {
    const { url } = await listening(await freePort());
    const everywhere = server({ url });
    const asking = { name: 'x_trigger-elicitation-request', args: {} };
    const answers = await Promise.all(
      ['Ann', 'Bob'].map(async (user) => {
        const model = scriptedModel([
          toolCalls({ ...asking, id: 'a' }, { ...asking, id: 'b' }),
          text('done'),
        ]);
        const { messages } = await new Agent({ model, middleware: [everywhere] }).run('go', {
          onRequest: ({ callId }) => ({ type: 'edit', args: { name: `${user}-${callId}` } }),
        });
        return messages.flatMap((message) => /\w+-[ab]\b/.exec(textOf(message))?.[0] ?? []);
      }),
    );
    expect(answers).toEqual([
      ['Ann-a', 'Ann-b'],
      ['Bob-a', 'Bob-b'],
    ]);
  });

  it('asks the model that it is given', async () => {
    const sampling = scriptedModel(['I am the model.']);
    const [answer] = await called(server({ command: process.execPath, args: [everything], sampling }), {
      name: 'trigger-sampling-request',
      args: { prompt: 'Who are you?' },
    });
    expect(answer).toContain('I am the model.');
  });

  it('is killed in the middle of a call, which fails', async () => {
    const { url, process: child } = await listening(await freePort());
    const model = scriptedModel([
      toolCalls({ name: 'x_trigger-long-running-operation', args: { duration: 60, steps: 600 } }),
      text('done'),
    ]);
    const stream = new Agent({ model, middleware: [server({ url })] }).stream('go');
    for await (const event of stream) if (event.type === 'tool_execution_update') child.kill('SIGKILL');
    expect((await stream.result).messages[2]).toMatchObject({ role: 'tool', isError: true });
  });
});

it('server-filesystem reads what it may, and nothing else', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'allium-mcp-files-')));
  ends.push(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'a.txt'), 'the text');
  const [inside, outside] = await called(
    server({ command: process.execPath, args: [filesystem, folder] }),
    { name: 'read_text_file', args: { path: join(folder, 'a.txt') } },
    { name: 'read_text_file', args: { path: '/etc/hostname' } },
  );
  expect(inside).toBe('the text');
  expect(outside).toContain('Access denied');
});

it('sends each run its own headers, on connections of their own', async () => {
  const seen = new Set<string>();
  const { url } = await listening(await freePort());
  const proxy = createServer(async (request, response) => {
    seen.add(`${request.headers.authorization} ${request.headers['mcp-session-id'] ?? ''}`.trim());
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const {
      host: _,
      connection: __,
      'content-length': ___,
      ...headers
    } = request.headers as Record<string, string>;
    const body = chunks.length > 0 ? Buffer.concat(chunks) : null;
    const answer = await fetch(url, { method: request.method!, headers, body });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    // A stream that stays open is cut off when the test ends.
    await answer.body?.pipeTo(Writable.toWeb(response) as never).catch(() => {});
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  ends.push(
    () => proxy.closeAllConnections(),
    () => proxy.close(),
  );
  const { port } = proxy.address() as AddressInfo;
  const middleware = server({
    url: `http://127.0.0.1:${port}/mcp`,
    headers: (ctx) => ({
      authorization: `Bearer ${ctx.tenant}-${(ctx.options.mcp as { token: string }).token}`,
    }),
  });
  const model = scriptedModel([toolCalls({ name: 'x_echo', args: { message: 'hi' } }), text('done')], {
    repeat: true,
  });
  const agent = new Agent({ model, middleware: [middleware] });
  await Promise.all(['a', 'b'].map((tenant) => agent.run('go', { tenant, mcp: { token: `of-${tenant}` } })));
  const sessions = [...seen].map((line) => line.split(' ')).filter(([, , id]) => id);
  expect(new Set(sessions.map(([, token]) => token))).toEqual(new Set(['a-of-a', 'b-of-b']));
  // No session of the server was used with both tokens.
  expect(new Set(sessions.map(([, , id]) => id)).size).toBe(sessions.length);
});
