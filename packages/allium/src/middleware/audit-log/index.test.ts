import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, defineMiddleware, memoryStore, type Store, type Tool, tool } from 'allium';
import { type AuditLogOptions, auditHead, auditLog, verifyAudit } from 'allium/middleware/audit-log';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

const KEY = 'a key for tests';
const work = tool({
  name: 'work',
  description: 'Works.',
  input: z.object({ how: z.string().optional() }),
  async execute({ how }, ctx) {
    if (how === 'fail') throw new Error('out of order');
    if (how === 'stop') ctx.stop('stopped', 'Enough.');
    if (how === 'suspend') return (await ctx.suspend({})).type;
    if (how === 'hang')
      await new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)));
    return `done ${how ?? ''}`;
  },
});

function setup(script: readonly Script[], options: Partial<AuditLogOptions> = {}, more: object[] = []) {
  const lines: string[] = [];
  const store = memoryStore();
  const model = scriptedModel(script);
  const audit = () =>
    auditLog({ sink: (line) => void lines.push(line), key: KEY, clock: fakeClock(0), ...options });
  const make = (tools: Tool[] = [work]) =>
    new Agent({ model, tools, store, middleware: [audit(), ...more] as never });
  return { lines, store, model, make, agent: make() };
}

const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line));
const outline = (lines: readonly string[]) =>
  parsed(lines).map(({ type, tool: name, outcome, blocked, isError }) =>
    type === 'tool' ? [name, blocked ? 'blocked' : isError ? 'error' : 'ok'] : [type, outcome],
  );
async function verify(lines: readonly string[], store: Store, session = 's') {
  return verifyAudit(lines, await auditHead(store, session), KEY);
}

type Entries = Parameters<Store['append']>[2];

/** A store as a crash leaves it: some entries are not written. */
function refusing(store: Store, refused: (entries: Entries) => boolean): Store {
  const methods = ['read', 'head', 'list', 'fork', 'delete', 'post', 'take'] as const;
  return {
    ...Object.fromEntries(methods.map((method) => [method, store[method].bind(store)])),
    append(id: string, seq: number, entries: Entries) {
      if (refused(entries)) throw new Error('crashed');
      return store.append(id, seq, entries);
    },
  } as Store;
}

testMiddleware(({ clock }) => auditLog({ sink: () => {}, key: KEY, clock }), {
  name: 'audit-log',
  changes: ['state'],
  describe,
  it,
});
testMiddleware(({ clock }) => auditLog({ sink: async () => {}, clock, content: false }), {
  name: 'audit-log with a slow sink',
  changes: ['state'],
  describe,
  it,
});

describe('audit-log', () => {
  it('writes a line per model call, tool call and run, in order', async () => {
    const { agent, lines, store } = setup([
      toolCalls({ name: 'work', args: { how: 'well' } }),
      text('Done.'),
    ]);
    await agent.session('s').run('Go.');
    expect(parsed(lines)).toMatchObject([
      {
        v: 1,
        seq: 1,
        session: 's',
        type: 'model',
        turn: 1,
        model: 'test/scripted',
        messages: 1,
        outcome: 'ok',
        prev: '',
      },
      {
        seq: 2,
        type: 'tool',
        tool: 'work',
        call: 'call_1',
        args: '{"how":"well"}',
        result: 'done well',
        isError: false,
      },
      { seq: 3, type: 'model', turn: 2, text: 'Done.', usage: { totalTokens: 15 }, calls: [] },
      { seq: 4, type: 'run', outcome: 'done', reason: 'final', input: ['Go.'], text: 'Done.', turns: 2 },
    ]);
    expect(parsed(lines)[0]).toMatchObject({
      time: '1970-01-01T00:00:00.000Z',
      calls: [{ name: 'work', args: '{"how":"well"}' }],
    });
    expect(await verify(lines, store)).toEqual({ ok: true, problems: [], verified: 4, unanchored: 0 });
  });

  it('logs calls that were refused, unknown, malformed or failed', async () => {
    const refuse = defineMiddleware({
      name: 'refuse',
      beforeToolCall: (ctx) => (ctx.args.how === 'no' ? { block: true, reason: 'No.' } : undefined),
    });
    const step = toolCalls(
      { name: 'work', args: { how: 'no' }, id: 'a' },
      { name: 'nowhere', id: 'b' },
      { name: 'work', args: '{', id: 'c' },
      { name: 'work', args: { how: 'fail' }, id: 'd' },
      { name: 'work', id: 'e' },
    );
    const { agent, lines, store } = setup([step, text('Done.')], {}, [refuse]);
    await agent.session('s').run('Go.');
    const tools = parsed(lines).filter(({ type }) => type === 'tool');
    const byCall = Object.fromEntries(tools.map(({ call, blocked, isError }) => [call, [blocked, isError]]));
    expect(byCall).toEqual({
      a: [true, true],
      b: [true, true],
      c: [true, true],
      d: [false, true],
      e: [false, false],
    });
    expect((await verify(lines, store)).ok).toBe(true);
  });

  it.each<[string, Script, string[][]]>([
    [
      'an error of the model',
      failWith(Object.assign(new Error('x'), { code: 'E_X' })),
      [
        ['model', 'error'],
        ['run', 'error'],
      ],
    ],
    [
      'a stop in a tool beside others',
      toolCalls({ name: 'work', id: 'a' }, { name: 'work', args: { how: 'stop' }, id: 'b' }),
      [
        ['model', 'ok'],
        ['work', 'ok'],
        ['work', 'error'],
        ['run', 'stopped'],
      ],
    ],
    [
      'a suspension',
      toolCalls({ name: 'work', args: { how: 'suspend' } }),
      [
        ['model', 'ok'],
        ['run', 'suspended'],
      ],
    ],
  ])('logs %s and anchors it', async (_, step, expected) => {
    const { agent, lines, store } = setup([step]);
    await agent
      .session('s')
      .run('Go.')
      .catch(() => {});
    expect(outline(lines)).toEqual(expected);
    expect(await verify(lines, store)).toMatchObject({ ok: true, verified: expected.length });
  });

  it('logs an abort in mid-answer, and one while a tool runs', async () => {
    for (const [step, expected] of [
      [
        hang('Hel'),
        [
          ['model', 'aborted'],
          ['run', 'aborted'],
        ],
      ],
      [
        toolCalls({ name: 'work', args: { how: 'hang' } }),
        [
          ['model', 'ok'],
          ['work', 'error'],
          ['run', 'aborted'],
        ],
      ],
    ] as const) {
      const { agent, lines, store, model } = setup([step]);
      const abort = new AbortController();
      const run = agent
        .session('s')
        .run('Go.', { signal: abort.signal })
        .catch((error) => error);
      while (model.requests.length === 0 || (lines.length === 0 && step.parts.length > 1))
        await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
      expect(outline(lines)).toEqual(expected);
      expect((await verify(lines, store)).ok).toBe(true);
    }
  });

  it('marks only calls that did not begin as blocked when an abort cuts a batch off', async () => {
    const abort = new AbortController();
    const lines: string[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'send' }, { name: 'send' })]),
      tools: [
        tool({
          name: 'send',
          description: 'Sends.',
          input: z.object({}),
          sequential: true,
          execute: () => {
            abort.abort();
            return new Promise(() => {});
          },
        }),
      ],
      middleware: [auditLog({ sink: (line) => void lines.push(line) })],
    });
    await expect(agent.run('Go.', { signal: abort.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(outline(lines)).toEqual([
      ['model', 'ok'],
      ['send', 'error'],
      ['send', 'blocked'],
      ['run', 'aborted'],
    ]);
  });

  const peek = tool({
    name: 'peek',
    description: '',
    input: z.object({}),
    idempotent: true,
    execute: () => 'seen',
  });
  it.each([
    ['had begun', work, /^In doubt/],
    ['may have run', peek, /^May have run/],
  ])('does not mark a call as blocked that %s before a crash', async (_, used, said) => {
    const { lines, store, make, model } = setup([toolCalls({ name: used.name }), text('Done.')]);
    const dead = refusing(store, (entries) => entries.some(({ type }) => type === 'tool_finished'));
    const audit = auditLog({ sink: () => {} });
    const crashing = new Agent({ model, tools: [used], store: dead, middleware: [audit] });
    await expect(crashing.session('s').run('Go.')).rejects.toThrow('crashed');
    await expect(make([used]).session('s').resume({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'ABORTED',
    });
    expect(parsed(lines)[0]).toMatchObject({ blocked: false, isError: true });
    expect(parsed(lines)[0].result).toMatch(said);
  });

  it('goes on with the chain in later runs, and after a resume in another process', async () => {
    const { make, lines, store } = setup([
      text('One.'),
      toolCalls({ name: 'work', args: { how: 'suspend' } }, { name: 'work', id: 'b' }),
      text('Two.'),
    ]);
    await make().session('s').run('1');
    const { pending } = await make().session('s').run('2');
    await make()
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(parsed(lines).map(({ seq }) => seq)).toEqual(lines.map((_, i) => i + 1));
    expect(outline(lines).filter(([what]) => what === 'work')).toEqual([
      ['work', 'ok'],
      ['work', 'ok'],
    ]);
    expect(await verify(lines, store)).toMatchObject({ ok: true, verified: lines.length });
  });

  it('begins a new chain in a fork, and continues that of the source', async () => {
    const { make, lines, store } = setup([text('One.'), text('Two.'), text('Three.'), text('Four.')]);
    await make().session('s').run('1');
    await store.fork('s', await store.head('s'), 'f');
    expect(await verify(lines, store, 'f')).toEqual({ ok: true, problems: [], verified: 0, unanchored: 0 });
    for (const session of ['f', 's', 'f']) await make().session(session).run('more');
    expect(parsed(lines).map(({ session, seq }) => `${session}${seq}`)).toEqual(
      's1 s2 f1 f2 s3 s4 f3 f4'.split(' '),
    );
    for (const session of ['s', 'f'])
      expect(await verify(lines, store, session)).toMatchObject({ ok: true, verified: 4, unanchored: 0 });
    expect((await verify(lines.slice(0, -1), store, 'f')).problems).toEqual([{ kind: 'cut-off', seq: 4 }]);
  });

  it('continues after a rewind: what happened stays in the log, and a line of it that is missing is noticed', async () => {
    const { make, lines, store } = setup([text('One.'), text('Two.'), text('Three.')]);
    await make().session('s').run('1');
    const { messages } = await make().session('s').run('2');
    await make().session('s').rewind({ before: messages[0]!.id });
    await make().session('s').run('3');
    expect(parsed(lines).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(await verify(lines, store)).toMatchObject({ ok: true, verified: 6 });
    lines.splice(2, 2);
    expect((await verify(lines, store)).ok).toBe(false);
  });

  it('keeps a run and its fork apart if both are resumed at once, and logs no earlier call again', async () => {
    const { agent, lines, store } = setup([
      toolCalls({ name: 'work', args: { how: 'suspend' } }, { name: 'work', id: 'b' }),
      text('Done.'),
      text('Done.'),
    ]);
    const { pending } = await agent.session('s').run('Go.');
    await store.fork('s', await store.head('s'), 'f');
    const before = lines.length;
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    await Promise.all(['s', 'f'].map((session) => agent.session(session).resume({ answers })));
    const since = (session: string) =>
      outline(lines.slice(before).filter((line) => JSON.parse(line).session === session));
    for (const session of ['s', 'f']) {
      expect(since(session)).toEqual([
        ['work', 'ok'],
        ['model', 'ok'],
        ['run', 'done'],
      ]);
      expect((await verify(lines, store, session)).problems).toEqual([]);
    }
    expect(await verify(lines, store, 'f')).toMatchObject({ verified: 3, unanchored: 0 });
  });

  it('contains nothing that a guard has taken out', async () => {
    const guard = defineMiddleware({
      name: 'guard',
      guard: {
        on: ['input', 'output', 'tool-args', 'tool-result'],
        find: (given) =>
          [...given.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 'secret'.length })),
      },
    });
    for (const before of [true, false]) {
      const step = toolCalls({ name: 'work', args: { how: 'secret' }, text: 'a secret' });
      const { agent, lines } = setup([step, chunks('the sec', 'tick', 'ret')], {}, before ? [guard] : []);
      const final = before
        ? agent
        : new Agent({
            ...{ model: agent.model, tools: [work] },
            middleware: [guard, auditLog({ sink: (line) => void lines.push(line) })],
          });
      await collect(final.session('s').stream('my secret'));
      expect(lines).toHaveLength(4);
      expect(lines.join('\n')).not.toContain('secret');
      expect(lines.join('\n')).toContain('[redacted]');
    }
  });

  it('logs an answer that a guard refused without its text', async () => {
    const guard = defineMiddleware({
      name: 'guard',
      guard: { on: ['output'], judge: () => ({ type: 'deny', reason: 'Not that.' }) },
    });
    const { agent, lines } = setup(['something bad'], {}, [guard]);
    await agent
      .session('s')
      .run('Go.')
      .catch(() => {});
    expect(outline(lines).at(-1)?.[0]).toBe('run');
    expect(lines.join()).not.toContain('something bad');
  });

  it('leaves out texts on demand', async () => {
    const { agent, lines } = setup([toolCalls({ name: 'work', args: { how: 'private' } }), text('private')], {
      content: false,
    });
    await agent.session('s').run('private');
    expect(lines).toHaveLength(4);
    expect(lines.join()).not.toContain('private');
  });

  it('fails closed when the sink fails', async () => {
    const oh = new Error('disk full');
    const bad = () => Promise.reject(oh);
    await expect(setup(['hi'], { sink: bad }).agent.run('Go.')).rejects.toMatchObject({ cause: oh });
    const boom = new Error('boom');
    const { events, error } = await collect(setup([failWith(boom)], { sink: bad }).agent.stream('Go.'));
    expect(error?.cause).toBe(boom);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({ name: 'audit_failed' });
  });

  it('keeps lines in order however long a write takes', async () => {
    const lines: string[] = [];
    let n = 0;
    const slow = async (line: string) => {
      for (let i = n++ % 3; i > 0; i--) await new Promise((resolve) => setImmediate(resolve));
      lines.push(line);
    };
    const step = toolCalls(...['a', 'b', 'c', 'd'].map((id) => ({ name: 'work', id })));
    const { agent, store } = setup([step, text('Done.')], { sink: slow });
    await agent.session('s').run('Go.');
    expect(parsed(lines).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await verify(lines, store)).ok).toBe(true);
  });

  it('keeps lines in order when only some writes are waited for', async () => {
    const lines: string[] = [];
    let n = 0;
    const sink = (line: string): void | Promise<void> => {
      if (n++ % 2 === 1) return void lines.push(line);
      return new Promise((resolve) => setImmediate(resolve)).then(() => void lines.push(line));
    };
    const step = toolCalls(...['a', 'b', 'c', 'd'].map((id) => ({ name: 'work', id })));
    const { agent, store } = setup([step, text('Done.')], { sink });
    await agent.session('s').run('Go.');
    expect(parsed(lines).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await verify(lines, store)).ok).toBe(true);
  });

  it('fails closed when a sink throws at once, and goes on with the next line', async () => {
    const lines: string[] = [];
    const oh = new Error('disk full');
    let n = 0;
    const sink = (line: string): void => {
      if (++n === 2) throw oh;
      lines.push(line);
    };
    const { agent } = setup([toolCalls({ name: 'work' }), text('Done.')], { sink });
    const { messages } = await agent.session('s').run('Go.');
    expect(messages[2]).toMatchObject({ role: 'tool', isError: true });
    expect(parsed(lines).map(({ seq }) => seq)).toEqual([1, 3, 4]);
  });

  it('keeps the chains of 100 concurrent runs and of two instances apart', async () => {
    const [one, two]: [string[], string[]] = [[], []];
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel(['hi'], { repeat: true }),
      store,
      middleware: [
        auditLog({ sink: (line) => void one.push(line), key: KEY }),
        auditLog({ sink: (line) => void two.push(line), key: 'other', name: 'second' }),
      ],
    });
    const sessions = Array.from({ length: 100 }, (_, n) => `s${n}`);
    await Promise.all(sessions.map((id) => agent.session(id).run('Go.')));
    for (const id of sessions) {
      expect(await verify(one, store, id)).toEqual({ ok: true, problems: [], verified: 2, unanchored: 0 });
      const head = await auditHead(store, id, 'second');
      expect(verifyAudit(two, head, 'other')).toMatchObject({ ok: true, verified: 2 });
    }
  });

  it('keeps apart the chains of agents that share it and have sessions of one name', async () => {
    const lines: string[] = [];
    const audit = auditLog({ sink: (line) => void lines.push(line), key: KEY });
    const agents = [2, 5].map((turns) => {
      const script = Array.from({ length: turns }, () => toolCalls({ name: 'work' }));
      const model = scriptedModel([...script, text('Done.')]);
      return new Agent({ model, tools: [work], store: memoryStore(), middleware: [audit] });
    });
    await Promise.all(agents.map((agent) => agent.session('s').run('Go.')));
    for (const { store } of agents) expect((await verify(lines, store)).problems).toEqual([]);
    expect(lines).toHaveLength(2 * 2 + 2 + (2 * 5 + 2));
  });

  it('does not fail a run because another runner of its session gives up', async () => {
    const { lines, store } = setup([]);
    const audit = auditLog({ sink: (line) => void lines.push(line), key: KEY });
    const runner = (...script: Script[]) =>
      new Agent({ model: scriptedModel(script), tools: [work], store, middleware: [audit] }).session('s');
    const suspended = await runner(toolCalls({ name: 'work', args: { how: 'suspend' } })).run('Go.');
    await runner().answer(suspended.pending[0]!.id, { type: 'approve' });
    const ends = await Promise.allSettled([
      runner(toolCalls({ name: 'work' }), toolCalls({ name: 'work' }), text('Done.')).resume(),
      runner(toolCalls({ name: 'work' }), text('Done.')).resume(),
    ]);
    const codes = ends.map((end) => (end.status === 'fulfilled' ? end.value.status : end.reason.code));
    expect(codes.sort()).toEqual(['SESSION_CONFLICT', 'done']);
    expect((await verify(lines, store)).problems).toEqual([]);
  });

  it('ignores model calls made before the run begins', async () => {
    const helper = scriptedModel(['before']);
    const outer = defineMiddleware({
      name: 'outer',
      beforeRun: async (ctx) => void (await ctx.generate(helper, { messages: '?' })),
    });
    const lines: string[] = [];
    const middleware = [outer, auditLog({ sink: (line) => void lines.push(line), key: KEY })];
    const agent = new Agent({ model: scriptedModel(['hi']), middleware, store: memoryStore() });
    await agent.session('s').run('Go.');
    expect(outline(lines)).toEqual([
      ['model', 'ok'],
      ['run', 'done'],
    ]);
    expect((await verify(lines, agent.store)).ok).toBe(true);
  });

  it('writes the same when the run is streamed', async () => {
    const script = [toolCalls({ name: 'work' }), text('Done.')];
    const [plain, streamed] = [setup(script), setup(script)];
    await plain.agent.session('s').run('Go.');
    await collect(streamed.agent.session('s').stream('Go.'));
    const essence = (lines: readonly string[]) =>
      parsed(lines).map(({ run: _, prev: __, hash: ___, ...rest }) => rest);
    expect(essence(streamed.lines)).toEqual(essence(plain.lines));
  });

  describe('verifyAudit', () => {
    async function logged() {
      const script = [toolCalls({ name: 'work' }), text('One.'), toolCalls({ name: 'work' }), text('Two.')];
      const { agent, lines, store } = setup(script);
      await agent.session('s').run('1');
      await agent.session('s').run('2');
      return { lines, head: await auditHead(store, 's') };
    }

    it('takes a log as text, too', async () => {
      const { lines, head } = await logged();
      expect(verifyAudit(`${lines.join('\n')}\n`, head, KEY)).toMatchObject({ ok: true, verified: 8 });
      expect(verifyAudit(`${lines.join('\r\n')}\r\n`, head, KEY).ok).toBe(true);
    });

    it('names every line that is missing, edited, moved or cut off', async () => {
      const { lines, head } = await logged();
      for (let i = 0; i < lines.length; i++) {
        const [seq, line] = [i + 1, i + 1];
        const without = lines.filter((_, at) => at !== i);
        const kind = i === lines.length - 1 ? 'cut-off' : 'missing';
        expect(verifyAudit(without, head, KEY).problems).toEqual([{ kind, seq }]);
        const edited = lines.with(i, lines[i]!.replace('"type"', '"typo"'));
        expect(verifyAudit(edited, head, KEY).problems).toEqual([{ kind: 'edited', seq, line }]);
        const cut = lines.slice(0, i);
        expect(verifyAudit(cut, head, KEY).problems).toEqual(
          lines.slice(i).map((_, n) => ({ kind: 'cut-off', seq: i + n + 1 })),
        );
        const twice = [...lines, lines[i]!];
        expect(verifyAudit(twice, head, KEY).problems).toEqual([
          { kind: 'moved', seq, line: lines.length + 1 },
        ]);
      }
      const swapped = [lines[1]!, lines[0]!, ...lines.slice(2)];
      expect(verifyAudit(swapped, head, KEY).problems).toEqual([{ kind: 'moved', seq: 2, line: 1 }]);
    });

    it('notices any change of any character, any loss and any cut', async () => {
      const { lines, head } = await logged();
      const whole = lines.join('\n');
      await fc.assert(
        fc.property(fc.nat(whole.length - 1), fc.string({ minLength: 0, maxLength: 2 }), (at, put) => {
          const changed = whole.slice(0, at) + put + whole.slice(at + 1);
          // A line break more or less between whole lines changes none of them.
          const same =
            changed
              .split('\n')
              .filter((one) => one.trim() !== '')
              .join('\n') === whole;
          expect(verifyAudit(changed, head, KEY).ok).toBe(same);
        }),
        { numRuns: 500, seed: 1 },
      );
    });

    it('notices a log that was rewritten without the key', async () => {
      const { lines, head } = await logged();
      const other = setup([text('Forged.')], { key: 'guess' });
      await other.agent.session('s').run('1');
      expect(verifyAudit(other.lines, head, KEY).ok).toBe(false);
      expect(verifyAudit(lines, head, 'wrong key').problems).toHaveLength(lines.length);
    });

    it('notices a forged end by the head alone when there is no key', async () => {
      const { agent, lines, store } = setup(['hi'], { key: undefined });
      await agent.session('s').run('1');
      const head = await auditHead(store, 's');
      expect(verifyAudit(lines, head)).toMatchObject({ ok: true });
      const forged = setup(['forged'], { key: undefined });
      await forged.agent.session('s').run('1');
      expect(verifyAudit(forged.lines, head).problems[0]).toMatchObject({ kind: 'edited', seq: 2 });
    });

    it('looks past lines of other sessions', async () => {
      const { lines, head } = await logged();
      const other = setup(['hi'], { key: 'another' });
      await other.agent.session('t').run('1');
      const mixed = [other.lines[0]!, ...lines, other.lines[1]!];
      expect(verifyAudit(mixed, head, KEY)).toMatchObject({ ok: true, verified: 8 });
    });

    it('counts lines that a crash kept from being anchored', async () => {
      const { lines, head, store, make } = await crashed();
      expect(verifyAudit(lines, head, KEY)).toEqual({ ok: true, problems: [], verified: 2, unanchored: 1 });
      await make().session('s').run('again');
      expect(await verify(lines, store)).toMatchObject({ ok: true, verified: 4, unanchored: 1 });
    });

    /** A run whose journal stops taking anything after its model has answered. */
    async function crashed() {
      const { lines, store, model, make } = setup([text('One.'), text('Two.'), text('Three.')]);
      await make().session('s').run('first');
      const head = await auditHead(store, 's');
      const dead = refusing(
        store,
        (entries) => entries.some(({ type }) => type === 'message') && lines.length > 2,
      );
      const audit = auditLog({ sink: (line) => void (lines.length < 3 && lines.push(line)), key: KEY });
      await new Agent({ model, store: dead, middleware: [audit] })
        .session('s')
        .run('second')
        .catch(() => {});
      return { lines, head, store, make };
    }

    it('accepts an empty log of a session that never ran', async () => {
      const head = await auditHead(memoryStore(), 'never');
      expect(verifyAudit('', head, KEY)).toEqual({ ok: true, problems: [], verified: 0, unanchored: 0 });
    });

    it('refuses a malformed head', () => {
      expect(() => verifyAudit('', undefined as never)).toThrow('Expected `head` to be an object');
    });
  });

  describe('a file', () => {
    let folder: string;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'audit-log-'));
    });
    afterAll(() => rmSync(folder, { recursive: true }));

    it.each(['line', 'run', 'never'] as const)('is appended to (fsync: %s)', async (fsync) => {
      const file = join(folder, `${fsync}.log`);
      const { agent, store } = setup([text('One.'), text('Two.')], { sink: { file, fsync } });
      await agent.session('s').run('1');
      await agent.session('s').run('2');
      const log = readFileSync(file, 'utf8');
      expect(log.endsWith('\n')).toBe(true);
      expect(verifyAudit(log, await auditHead(store, 's'), KEY)).toMatchObject({ ok: true, verified: 4 });
    });

    it('is shared by many runs at once', async () => {
      const file = join(folder, 'shared.log');
      const store = memoryStore();
      const model = scriptedModel(['hi'], { repeat: true });
      const agent = new Agent({ model, store, middleware: [auditLog({ sink: { file, fsync: 'never' } })] });
      await Promise.all(Array.from({ length: 20 }, (_, n) => agent.session(`s${n}`).run('Go.')));
      const log = readFileSync(file, 'utf8');
      for (let n = 0; n < 20; n++)
        expect(verifyAudit(log, await auditHead(store, `s${n}`))).toMatchObject({ ok: true, verified: 2 });
    });

    it('gets a new line after half a line that a crash left', async () => {
      const file = join(folder, 'torn.log');
      writeFileSync(file, '{"v":1,"session":"s","ru');
      const { agent, store } = setup(['hi'], { sink: { file } });
      await agent.session('s').run('Go.');
      const report = verifyAudit(readFileSync(file, 'utf8'), await auditHead(store, 's'), KEY);
      expect(report).toMatchObject({ verified: 2, problems: [{ kind: 'edited', line: 1 }] });
    });

    it('that cannot be written fails the run', async () => {
      const { agent } = setup(['hi'], { sink: { file: join(folder, 'no', 'such', 'folder.log') } });
      await expect(agent.run('Go.')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    });
  });

  it('needs names when two stand in one list', () => {
    const two = [auditLog({ sink: () => {} }), auditLog({ sink: () => {} })];
    expect(() => new Agent({ model: scriptedModel([]), middleware: two })).toThrow(
      'Two middleware named "audit-log"',
    );
  });

  it.each([
    [{}, 'Expected `sink` to be a function, or an object with `file`, got undefined.'],
    [{ sink: { file: '' } }, 'Expected `sink` to be a function, or an object with `file`'],
    [
      { sink: { file: 'x', fsync: 'always' } },
      "Expected `sink.fsync` to be 'line', 'run' or 'never', got \"always\".",
    ],
    [{ sink: { file: 'x', sync: true } }, 'Unknown option `sync` of sink.'],
    [{ sink: () => {}, key: '' }, 'Expected `key` to be non-empty text or bytes, got "string".'],
    [{ sink: () => {}, name: '' }, 'Expected `name` to be non-empty text, got "".'],
    [{ sink: () => {}, content: 'no' }, 'Expected `content` to be true or false, got "no".'],
    [{ sinks: [] }, 'Unknown option `sinks` of auditLog(). Did you mean `sink`?'],
  ])('refuses options %#', (options, message) => {
    expect(() => auditLog(options as never)).toThrow(message);
  });
});
