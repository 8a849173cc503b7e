import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { Agent, type Middleware, type Store, tool, userMessage } from 'allium';
import { approval } from 'allium/middleware/approval';
import { retry } from 'allium/middleware/retry';
import { memoryStore } from 'allium/stores/memory';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { build } from '../../../scripts/build.mjs';
import { root } from '../../../scripts/repository.mjs';
import { runCommand } from '../../../scripts/run-command.mjs';
import { duration } from '../web/src/format.js';
import { startDemo } from './demo.js';
import { type Studio, type StudioOptions, startStudio } from './start.js';
import type { OnionView, ReceivedView, RunPage, RunRow, RunView, SpendPage } from './wire.js';

let studio: Studio;
let store: Store;
let cookie = '';

const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number() }),
  execute: ({ amount }) => `Paid ${amount}.`,
});

async function open(options: Partial<StudioOptions> = {}): Promise<void> {
  await studio?.close();
  studio = await startStudio({ port: 0, store, ...options });
  const answer = await fetch(studio.url, { redirect: 'manual' });
  cookie = answer.headers.get('set-cookie')!.split(';')[0]!;
}

const origin = () => `http://127.0.0.1:${studio.port}`;

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${origin()}${path}`, { redirect: 'manual', ...init, headers: { cookie, ...init.headers } });
}

async function read<T>(path: string): Promise<T> {
  const answer = await ask(path);
  expect(answer.status, await answer.clone().text()).toBe(200);
  return (await answer.json()) as T;
}

const post = (path: string, body: unknown, headers: Record<string, string> = { origin: origin() }) =>
  ask(path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  });

/** `fetch` doesn't let one write the Host header. */
function withHost(path: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: studio.port, path, headers: { host, cookie } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    }).on('error', reject);
  });
}

function agent(...answers: Parameters<typeof scriptedModel>[0]): Agent {
  return new Agent({
    model: scriptedModel(answers, { price: { input: 1, output: 2 } }),
    store,
    tools: [pay],
  });
}

beforeEach(async () => {
  store = memoryStore();
  await open();
});
afterEach(() => studio.close());

describe('its options', () => {
  it.each<[string, unknown]>([
    ['Expected `options` to be an object with store', undefined],
    ['`store` to be an object with append(), read()', {}],
    ['`store` to be an object with append(), read()', { store: '.allium' }],
    ['`agents` to be a list', { agents: {} }],
    ['`agents[0]` to be an agent, got {}', { agents: [{}] }],
    ['`allowAnswers` to be true or false, got "no"', { allowAnswers: 'no' }],
    ['`port` to be an integer from 0 to 65535, got 70000', { port: 70_000 }],
    ['`token` to be non-empty text, got ""', { token: '' }],
    ['Unknown option `host` of startStudio()', { host: '0.0.0.0' }],
  ])('are refused if they are wrong: %s', async (words, options) => {
    const all = options && { ...(Object.keys(options).length > 0 && { store: memoryStore() }), ...options };
    await expect(startStudio(all as never)).rejects.toThrow(words);
  });
});

describe('who may talk to it', () => {
  it('listens on the loopback interface, and turns the token into a cookie that scripts cannot read', async () => {
    const answer = await fetch(studio.url, { redirect: 'manual' });
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe('/');
    expect(answer.headers.get('set-cookie')).toMatch(/HttpOnly; SameSite=Strict/);
    expect(studio.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\?token=[\w-]{32}$/);
  });

  it.each(['/', '/api/info', '/api/runs', '/assets/index.js', '/?token=wrong', '/?token='])(
    'refuses %s without the token',
    async (path) => {
      const answer = await fetch(`${origin()}${path}`, { redirect: 'manual' });
      expect(answer.status).toBe(401);
      expect(await answer.text()).toContain('allium studio');
    },
  );

  it('refuses other hosts, even with the cookie', async () => {
    expect(await withHost('/api/info', `127.0.0.1:${studio.port}`)).toBe(200);
    expect(await withHost('/api/info', `localhost:${studio.port}`)).toBe(200);
    expect(await withHost('/api/info', 'evil.example')).toBe(403);
    expect(await withHost('/api/info', `evil.example:${studio.port}`)).toBe(403);
  });

  it('refuses other origins, and changes without one', async () => {
    await open({ allowAnswers: true });
    expect((await ask('/api/info', { headers: { origin: 'http://evil.example' } })).status).toBe(403);
    expect((await ask('/api/runs', { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403);
    const body = { sessionId: 's', requestId: 'r', decision: { type: 'approve' } };
    expect((await post('/api/answer', body, {})).status).toBe(403);
    expect((await post('/api/answer', body, { origin: 'null' })).status).toBe(403);
    expect((await post('/api/answer', body)).status).toBe(409);
  });

  it('sends a policy that lets nothing run but its own script, with every answer', async () => {
    for (const path of ['/api/info', '/nothing', '/api/run']) {
      const policy = (await ask(path)).headers.get('content-security-policy');
      expect(policy, path).toContain("default-src 'none'");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy).not.toContain('unsafe');
    }
  });

  it.each(['/assets/../../package.json', '/assets/..%2f..%2fpackage.json', '/assets/%2e%2e%2findex.html'])(
    'serves no other files: %s',
    async (path) => expect((await ask(path)).status).toBe(404),
  );

  it('changes nothing unless it is allowed to', async () => {
    const answer = await post('/api/answer', {
      sessionId: 's',
      requestId: 'r',
      decision: { type: 'approve' },
    });
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('--allow-answers');
  });
});

describe('runs', () => {
  it('lists an empty store', async () => {
    expect(await read('/api/runs')).toEqual({ rows: [], scanned: 0, damaged: [] });
  });

  it('names sessions that cannot be read, and says why', async () => {
    await agent(text('Hello.')).session('good').run('Hi');
    await agent(text('Hello.')).session('bad').run('Hi');
    const { read: readAll } = store;
    Object.assign(store, {
      read: (id: string, from: number) => {
        if (id === 'bad') throw new Error('Line 3 is not JSON.');
        return readAll.call(store, id, from);
      },
    });
    const { rows, damaged } = await read<RunPage>('/api/runs');
    expect(rows).toHaveLength(1);
    expect(damaged).toEqual([{ sessionId: 'bad', problem: 'Line 3 is not JSON.' }]);
  });

  it('shows what each run asked, did, took and cost, newest first', async () => {
    await agent(toolCalls({ name: 'pay', args: { amount: 3 } }), text('Done.'))
      .session('a', { tenant: 'acme' })
      .run('Pay 3');
    await agent(failWith(new Error('away')))
      .session('b')
      .run('Hello')
      .catch(() => {});
    const { rows } = await read<RunPage>('/api/runs');
    expect(rows.map(({ sessionId, status, input }) => ({ sessionId, status, input }))).toEqual(
      expect.arrayContaining([
        { sessionId: 'b', status: 'error', input: 'Hello' },
        { sessionId: 'a', status: 'done', input: 'Pay 3' },
      ]),
    );
    expect(rows.find(({ sessionId }) => sessionId === 'a')).toMatchObject({
      ...{ tenant: 'acme', turns: 2, toolCalls: 1, toolErrors: 0, models: ['test/scripted'] },
      ...{ usage: { totalTokens: 30 }, costUsd: 0.00004 },
    });
  });

  it.each([
    ['status=error', ['b']],
    ['status=done,error', ['a', 'b']],
    ['tenant=acme', ['a']],
    ['minCostUsd=0.00003', ['a']],
    ['minSeconds=3600', []],
    ['guard=any', []],
    ['text=PAID+3', ['a']],
    ['text=hello', ['b']],
    ['text=nowhere', []],
  ])('filters by %s', async (query, expected) => {
    await agent(toolCalls({ name: 'pay', args: { amount: 3 } }), text('Done.'))
      .session('a', { tenant: 'acme' })
      .run('Pay 3');
    await agent(failWith(new Error('away')))
      .session('b')
      .run('Hello')
      .catch(() => {});
    const { rows } = await read<RunPage>(`/api/runs?${query}`);
    expect(rows.map(({ sessionId }) => sessionId).sort()).toEqual(expected);
  });

  it('reads many sessions in pages, and each journal once', async () => {
    for (let n = 0; n < 250; n++) await agent(text('ok')).session(`s${n}`).run('hi');
    const reads: string[] = [];
    await open({
      store: counted(store, reads),
    });
    const rows: RunRow[] = [];
    let cursor: string | undefined;
    do {
      const page: RunPage = await read(`/api/runs${cursor ? `?cursor=${encodeURIComponent(cursor)}` : ''}`);
      rows.push(...page.rows);
      cursor = page.next;
      if (rows.length === page.rows.length) expect(reads.length).toBeLessThan(250);
    } while (cursor);
    expect(new Set(rows.map(({ sessionId }) => sessionId)).size).toBe(250);
    expect(reads).toHaveLength(250);
    await read('/api/runs');
    expect(reads).toHaveLength(250);
  });

  it('reports running runs by server-sent events', async () => {
    const answer = await ask('/api/live');
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let heard = '';
    const until = async (wanted: string) => {
      while (!heard.includes(wanted)) heard += (await reader.read()).value ?? '';
    };
    await until('event: hello');
    await agent(text('ok')).session('later').run('What now?');
    await until('What now?');
    expect(heard).toContain('"sessionId":"later"');
    await reader.cancel();
  });

  it('says hello to a page after the first look at the store, so that no run is missed', async () => {
    const order: string[] = [];
    let look = (): void => {};
    const looking = new Promise<void>((resolve) => {
      look = resolve;
    });
    const list: Store['list'] = async (options) => {
      await looking;
      return store.list(options);
    };
    await open({ store: { ...counted(store, []), list } });
    const reader = (await ask('/api/live')).body!.pipeThrough(new TextDecoderStream()).getReader();
    const greeted = reader.read().then(({ value }) => order.push(value!.split('\n')[0]!));
    for (let turn = 0; turn < 5; turn++) await read('/api/info');
    order.push('looks');
    look();
    await greeted;
    expect(order).toEqual(['looks', 'event: hello']);
    await reader.cancel();
  });
});

describe('a run', () => {
  it('has a bar for each turn, model call and tool call, and its conversation', async () => {
    const { runId } = await agent(toolCalls({ name: 'pay', args: { amount: 3 } }), text('Done.'))
      .session('a')
      .run('Pay 3');
    const { spans, items } = await read<RunView>(`/api/run?session=a&run=${runId}`);
    expect(spans.map(({ kind, label }) => `${kind} ${label}`)).toEqual([
      ...['turn Turn 1', 'model test/scripted', 'tool pay'],
      ...['turn Turn 2', 'model test/scripted'],
    ]);
    expect(items.map(({ role, text: said }) => `${role}: ${said}`)).toEqual([
      ...['user: Pay 3', 'assistant: ', 'tool: Paid 3.', 'assistant: Done.'],
    ]);
  });

  it('shows the attempts of a tool call that was tried again below it', async () => {
    let tries = 0;
    const flaky = tool({
      name: 'flaky',
      description: 'Works the second time.',
      input: z.object({}),
      execute() {
        if (++tries === 1) throw Object.assign(new Error('The service is busy.'), { status: 503 });
        return 'worked';
      },
    });
    const again = retry({ on: 'tool', minDelayMs: 0, jitter: 'none' });
    const model = scriptedModel([toolCalls({ name: 'flaky' }), text('Done.')]);
    const traced = new Agent({ model, store, tools: [flaky], middleware: [again], trace: 'changes' });
    const { runId } = await traced.session('s').run('Go');
    const { spans } = await read<RunView>(`/api/run?session=s&run=${runId}`);
    const shown = spans.map(({ kind, label, depth, status, note }) => [kind, label, depth, status, note]);
    expect(shown.slice(2, 5)).toEqual([
      ['tool', 'flaky', 1, 'ok', '{}'],
      ['attempt', 'Attempt 1', 2, 'error', 'The service is busy.'],
      ['attempt', 'Attempt 2', 2, 'ok', undefined],
    ]);
  });

  it('shows which words of the system prompt are new, also where judges keep texts out of the trace', async () => {
    const judge: Middleware = {
      name: 'judge',
      guard: { on: ['input'], judge: () => ({ type: 'allow' }), action: 'stop' },
    };
    const adding: Middleware = { name: 'adding', transformSystemPrompt: (prompt) => `${prompt} Be brief.` };
    const model = scriptedModel(['Hello.']);
    const middleware = [judge, adding];
    const traced = new Agent({ model, store, systemPrompt: 'You help.', middleware, trace: 'changes' });
    const { runId } = await traced.session('s').run('Hi');
    const { calls } = await read<RunView>(`/api/run?session=s&run=${runId}`);
    const { systemPrompt } = await read<ReceivedView>(
      `/api/received?session=s&run=${runId}&call=${calls[0]!.n}`,
    );
    expect(systemPrompt).toEqual({ text: 'You help. Be brief.', was: 'You help.', by: ['adding'] });
  });

  it('shows the run of a sub-agent below its call', async () => {
    const clerk = new Agent({ name: 'clerk', model: scriptedModel([text('Twelve.')]), store });
    const boss = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'ask_clerk', args: { prompt: 'How many?' } }),
        text('Twelve it is.'),
      ]),
      tools: [clerk.asTool({ name: 'ask_clerk', description: 'Asks.' })],
      store,
    });
    const { runId } = await boss.session('a').run('Count');
    const { spans } = await read<RunView>(`/api/run?session=a&run=${runId}`);
    expect(spans.map(({ kind, depth }) => `${depth} ${kind}`)).toEqual([
      ...['0 turn', '1 model', '1 tool', '2 turn', '3 model', '0 turn', '1 model'],
    ]);
    const { rows } = await read<RunPage>('/api/runs');
    expect(rows).toHaveLength(1);
    expect((await read<RunPage>('/api/runs?children=1')).rows).toHaveLength(2);
  });

  it('says so if the run does not exist', async () => {
    const answer = await ask('/api/run?session=a&run=b');
    expect(answer.status).toBe(404);
    expect(await answer.json()).toEqual({ error: 'Session "a" has no run "b".' });
  });

  it('sends the beginning of a line of 10 MB, and all of it only when asked', async () => {
    const long = 'x'.repeat(10_000_000);
    const { runId } = await agent(text('ok')).session('a').run(long);
    const answer = await ask(`/api/run?session=a&run=${runId}`);
    const body = await answer.text();
    expect(body.length).toBeLessThan(10_000);
    const [item] = (JSON.parse(body) as RunView).items;
    expect(item).toMatchObject({ cut: 10_000_000 });
    expect((await (await ask(`/api/message?session=a&id=${item!.id}`)).text()).length).toBeGreaterThan(
      10_000_000,
    );
    expect(JSON.stringify(await read('/api/runs')).length).toBeLessThan(2000);
  });
});

describe('approvals', () => {
  const asking = (...answers: Parameters<typeof scriptedModel>[0]) =>
    new Agent({ model: scriptedModel(answers), store, tools: [pay], middleware: [approval()] });
  const calls = toolCalls({ name: 'pay', args: { amount: 3 } });

  it('lists what waits, with the schema of the tool', async () => {
    const payer = asking(calls);
    await payer.session('a', { tenant: 'acme' }).run('Pay');
    await open({ agents: [payer] });
    const { questions } = await read<{ questions: any[] }>('/api/approvals');
    expect(questions).toMatchObject([
      {
        sessionId: 'a',
        tenant: 'acme',
        request: { toolName: 'pay' },
        schema: { properties: { amount: { type: 'number' } } },
      },
    ]);
  });

  it('answers, and says that nobody waits; the resumed run has the answer', async () => {
    const payer = asking(calls, text('Paid.'));
    const { pending } = await payer.session('a', { tenant: 'acme' }).run('Pay');
    await open({ agents: [payer], allowAnswers: true });
    const body = {
      sessionId: 'a',
      requestId: pending[0]!.id,
      decision: { type: 'edit', args: { amount: 4 } },
    };
    expect(await (await post('/api/answer', body)).json()).toMatchObject({ taken: false });
    expect(await read('/api/approvals')).toMatchObject({ questions: [{ answered: 'edit' }] });
    const result = await payer.session('a', { tenant: 'acme' }).resume();
    expect(result.messages.map((message) => JSON.stringify(message.content)).join()).toContain('Paid 4.');
    expect((await post('/api/answer', body)).status).toBe(409);
  });

  it('approves for the rest of the session; what is allowed is listed and revoked', async () => {
    const payer = asking(calls, text('Paid.'), calls, text('Paid again.'), calls);
    const session = payer.session('a', { tenant: 'acme' });
    const { pending } = await session.run('Pay');
    await open({ agents: [payer], allowAnswers: true });
    expect(await read('/api/allowances?session=a')).toEqual({ allowances: [] });
    expect(await read('/api/allowances?session=nobody')).toEqual({ allowances: [] });
    const decision = { type: 'approve', remember: 'arguments' };
    await post('/api/answer', { sessionId: 'a', requestId: pending[0]!.id, decision });
    await session.resume();
    const { allowances } = await read<{ allowances: { id: string }[] }>('/api/allowances?session=a');
    expect(allowances).toMatchObject([{ toolName: 'pay', scope: 'arguments', arguments: '{"amount":3}' }]);
    expect(await session.run('Pay')).toMatchObject({ text: 'Paid again.' });
    const revocation = { sessionId: 'a', id: allowances[0]!.id };
    expect(await (await post('/api/revoke', revocation)).json()).toEqual({ allowances: [] });
    expect((await post('/api/revoke', revocation)).status).toBe(409);
    expect((await post('/api/revoke', { ...revocation, sessionId: 'nobody' })).status).toBe(409);
    expect(await session.run('Pay')).toMatchObject({ status: 'suspended' });
  });

  it('does not revoke when it is read-only', async () => {
    const payer = asking(calls);
    await payer
      .session('a')
      .run('Pay', { onRequest: () => ({ type: 'approve', remember: 'tool' }) })
      .catch(() => {});
    const [allowance] = await payer.session('a').allowances();
    await open({ agents: [payer] });
    expect((await post('/api/revoke', { sessionId: 'a', id: allowance!.id })).status).toBe(403);
    expect(await payer.session('a').allowances()).toHaveLength(1);
  });

  it('refuses arguments that do not fit, before the question is used up', async () => {
    const payer = asking(calls);
    const { pending } = await payer.session('a').run('Pay');
    await open({ agents: [payer], allowAnswers: true });
    const body = {
      sessionId: 'a',
      requestId: pending[0]!.id,
      decision: { type: 'edit', args: { amount: 'much' } },
    };
    const answer = await post('/api/answer', body);
    expect(answer.status).toBe(409);
    expect(await answer.text()).toContain('amount');
    expect(await read('/api/approvals')).toMatchObject({ questions: [{ request: { id: pending[0]!.id } }] });
  });

  it('says so when a waiting run has taken the answer', async () => {
    const payer = asking(calls, text('Paid.'));
    const running = payer.session('a').run('Pay', { onRequest: () => new Promise(() => {}) });
    await open({ agents: [], allowAnswers: true });
    let questions: any[] = [];
    while (questions.length === 0) ({ questions } = await read<{ questions: any[] }>('/api/approvals'));
    const body = { sessionId: 'a', requestId: questions[0].request.id, decision: { type: 'approve' } };
    expect(await (await post('/api/answer', body)).json()).toEqual({ taken: true });
    expect((await running).text).toBe('Paid.');
  });
});

describe('what else it tells', () => {
  const paid = () => agent(toolCalls({ name: 'pay', args: { amount: 3 } }), text('Done.'));

  it('adds up what was spent, and counts sub-agents once, under their own models', async () => {
    const clerk = new Agent({
      name: 'clerk',
      model: scriptedModel([text('Twelve.')], { id: 'small', price: { input: 1, output: 1 } }),
      store,
    });
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask', args: { prompt: '?' } }), text('Twelve.')], {
        id: 'big',
        price: { input: 2, output: 2 },
      }),
      tools: [clerk.asTool({ name: 'ask', description: '' })],
      store,
    });
    const { usage, costUsd } = await boss.session('a', { tenant: 'acme' }).run('Count');
    for (const by of ['model', 'tenant', 'session']) {
      const { points } = await read<SpendPage>(`/api/money?by=${by}`);
      const sum = (field: 'inputTokens' | 'outputTokens' | 'costUsd') =>
        points.reduce((all, one) => all + one[field], 0);
      expect(sum('inputTokens') + sum('outputTokens')).toBe(usage.totalTokens);
      expect(sum('costUsd')).toBeCloseTo(costUsd!, 12);
      const keys = points.map(({ key }) => key).sort();
      expect(keys).toEqual({ model: ['test/big', 'test/small'], tenant: ['acme'], session: ['a'] }[by]);
    }
  });

  it('explains the onion of a configured agent, and names the plan of others', async () => {
    const known = new Agent({
      name: 'known',
      model: scriptedModel([text('ok')]),
      store,
      middleware: [approval()],
    });
    const { runId } = await known.session('a').run('Hi');
    const path = `/api/onion?session=a&run=${runId}`;
    expect(await read(path)).toMatchObject({ plan: ['approval'], runs: 1 });
    expect(await read(path)).not.toHaveProperty('explanation');
    await open({ agents: [known] });
    expect(await read(path)).toMatchObject({
      agent: 'known',
      explanation: { rules: [{ hook: 'beforeToolCall' }] },
    });
    expect(await read('/api/onion?last=10')).toMatchObject({ agent: 'known', runs: 1 });
  });

  it('counts the verdicts of a guard at each point, and questions apart from blocks', async () => {
    const words = {
      name: 'words',
      guard: {
        on: ['input', 'output', 'tool-args'] as const,
        find: (said: string) =>
          [...said.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    };
    const one = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay', args: { amount: 3 } })]),
      ...{ store, tools: [pay], middleware: [words, approval()], trace: 'changes' as const },
    });
    const { runId } = await one.session('a').run('secret, secret');
    const { figures } = await read<OnionView>(`/api/onion?session=a&run=${runId}`);
    const of = (name: string) => figures.find((ring) => ring.name === name);
    expect(of('words')).toMatchObject({ verdicts: { input: 2 }, changes: 2, blocks: 0, asks: 0 });
    expect(of('words')!.verdicts).toEqual({ input: 2 });
    expect(of('approval')).toMatchObject({ verdicts: {}, blocks: 0, asks: 1 });
  });

  it('shows the history before an answer where nothing was traced, and the raw messages', async () => {
    const { runId } = await paid().session('a').run('Pay 3');
    const path = `session=a&run=${runId}&call=2`;
    const received = await read<ReceivedView>(`/api/received?${path}`);
    expect(received.basis).toBe('history');
    expect(received.messages.map(({ text: said }) => said)).toEqual(['Pay 3', 'pay {"amount":3}', 'Paid 3.']);
    expect(await read(`/api/raw?${path}`)).toMatchObject({
      messages: [{ role: 'user' }, {}, { role: 'tool' }],
    });
    expect((await ask(`/api/received?session=a&run=${runId}&call=9`)).status).toBe(404);
  });

  it('exports a run, and opens it under an id of its own beside the real one', async () => {
    const { runId } = await paid().session('a').run('Pay 3');
    const exported = await (await ask(`/api/export?session=a&run=${runId}`)).text();
    const opened = await post('/api/open', JSON.parse(exported));
    expect(await opened.json()).toEqual({ sessionId: 'opened:a', runId });
    const { items } = await read<RunView>(`/api/run?session=opened:a&run=${runId}`);
    expect(items.at(-1)).toMatchObject({ text: 'Done.' });
    expect(await store.head('opened:a')).toBe(0);
    expect((await read<RunPage>('/api/runs')).rows.map(({ sessionId }) => sessionId).sort()).toEqual([
      'a',
      'opened:a',
    ]);
  });

  it.each([
    '',
    'no JSON',
    '{}',
    '{"allium":"trace","version":2}',
    '{"allium":"trace","version":1,"sessions":[]}',
  ])('opens nothing else: %s', async (body) => {
    const answer = await ask('/api/open', { method: 'POST', body, headers: { origin: origin() } });
    expect(answer.status).toBe(400);
  });

  it('plays an agent without some of its middleware, and leaves its store alone', async () => {
    const shout = {
      name: 'shout',
      afterModelResponse: (response: any) => ({
        response: { ...response, content: [{ type: 'text' as const, text: 'LOUD' }] },
      }),
    };
    const player = new Agent({
      name: 'p',
      model: scriptedModel(['quiet'], { repeat: true }),
      store,
      middleware: [shout],
    });
    await open({ agents: [player], allowAnswers: true });
    const play = async (off: string[]) => {
      const answer = await post('/api/play', {
        agent: 'p',
        sessionId: `play-${off.length}`,
        input: 'Hi',
        off,
      });
      return (await answer.text())
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    };
    expect((await play([])).at(-1)).toMatchObject({ type: 'end', status: 'done', text: 'LOUD', turns: 1 });
    expect((await play(['shout'])).at(-1)).toMatchObject({ type: 'end', text: 'quiet' });
    expect((await store.list()).sessions).toEqual([]);
    expect((await read<RunPage>('/api/runs')).rows).toHaveLength(2);
  });

  it('makes a test of a run that was steered and failed a call', async () => {
    const broken = tool({
      name: 'broken',
      description: '',
      input: z.object({}),
      execute: () => Promise.reject(new Error('no')),
    });
    const nudge = {
      name: 'nudge',
      onRunEnd: (ctx: any) => (ctx.turn === 2 ? [userMessage('And now?')] : undefined),
    };
    const steered = new Agent({
      model: scriptedModel([toolCalls({ name: 'broken' }), text('It failed.'), text('Still nothing.')]),
      tools: [broken],
      store,
      middleware: [nudge],
    });
    await paid().session('a').run('Pay 3');
    const { runId } = await steered.session('a').run('Break it');
    const { code } = await read<{ code: string }>(`/api/test?session=a&run=${runId}&runner=node`);
    expect(code).toContain('"broken failed: ');
    expect(code).toContain('And now?');
    const suspended = await new Agent({
      model: scriptedModel([toolCalls({ name: 'pay', args: { amount: 1 } })]),
      ...{ store, tools: [pay], middleware: [approval()] },
    })
      .session('b')
      .run('Pay');
    expect((await ask(`/api/test?session=b&run=${suspended.runId}`)).status).toBe(409);
    await passes(code);
    await passes(
      (await read<{ code: string }>(`/api/test?session=a&run=${runId}&runner=vitest`)).code,
      'vitest',
    );
  });
});

/** Pastes a test into a file and runs it. */
async function passes(code: string, runner: 'node' | 'vitest' = 'node'): Promise<void> {
  await build();
  const folder = mkdtempSync(join(root, 'packages/studio/test/pasted-'));
  try {
    const file = join(folder, runner === 'node' ? 'run.test.mjs' : 'run.test.ts');
    writeFileSync(file, code);
    // Without the repository's own config, whose tests run the sources.
    const config = join(folder, 'vitest.config.mjs');
    writeFileSync(config, 'export default {};');
    const args =
      runner === 'node'
        ? ['--test', file]
        : [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config];
    const { code: status, stdout, stderr } = await runCommand(process.execPath, args, { cwd: folder });
    expect(status, stdout + stderr).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

it('has a demo with runs of every kind, without keys', async () => {
  await studio.close();
  studio = await startDemo({ port: 0 });
  cookie = (await fetch(studio.url, { redirect: 'manual' })).headers.get('set-cookie')!.split(';')[0]!;
  const { rows } = await read<RunPage>('/api/runs');
  expect(new Set(rows.map(({ status }) => status))).toEqual(
    new Set(['done', 'stopped', 'suspended', 'error']),
  );
  expect(rows.some(({ verdicts }) => verdicts.length > 0)).toBe(true);
  expect(Math.max(...rows.map(({ updatedAt }) => updatedAt))).toBeGreaterThan(Date.now() - 120_000);
});

function counted(inner: Store, reads: string[]): Store {
  return {
    append: (...args) => inner.append(...args),
    read: (sessionId, from) => {
      reads.push(sessionId);
      return inner.read(sessionId, from);
    },
    head: (id) => inner.head(id),
    list: (options) => inner.list(options),
    fork: (...args) => inner.fork(...args),
    delete: (id) => inner.delete(id),
    post: (...args) => inner.post(...args),
    take: (...args) => inner.take(...args),
  };
}

it.each([
  [0, '0 ms'],
  [999.7, '1.00 s'],
  [59_970, '1 min 0 s'],
  [179_600, '3 min 0 s'],
  [3_599_700, '1 h 0 min'],
  [86_399_000, '1 d 0 h'],
])('writes %d ms as %s', (ms, words) => expect(duration(ms)).toBe(words));
