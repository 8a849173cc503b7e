import { Agent, defineMiddleware, type Message, textOf, tool, userMessage } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { chunks, failWith, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BASE, long, setup, silent, summariser } from '../../../../../test/compaction-setup.js';
import { randomHistory, unpaired } from '../../../../../test/random-history.js';

describe('the circuit breaker of compaction', () => {
  const down = failWith(new Error('down'));

  it('sends everything while the summariser fails, and a fallback after the third time', async () => {
    const { session, summaryModel, sent, state } = setup([down]);
    for (let n = 1; n <= 3; n++) await session.run(long(n, 396));
    expect(summaryModel.requests).toHaveLength(2);
    expect(sent()).toHaveLength(5);
    expect(state()!.summary).toBe('');
    await session.run(`${'😀'.repeat(90)}\nsecond line`);
    expect(summaryModel.requests).toHaveLength(3);
    expect(state()!.isFallback).toBe(true);
    expect(sent()[0]).toContain('left out without being summarised');
    expect(sent()[0]!.split('\n')).toContain(`- ${long(3, 120)}`);
    expect((await session.messages()).map(textOf)).toContain(long(1, 396));
  });

  it('tries one call after five rounds without a summary, and closes if it works', async () => {
    let up = false;
    const { session, summaryModel, state } = setup([() => (up ? 'REAL' : down)]);
    const calls: number[] = [];
    let rounds = 0;
    let before = '';
    const next = async (n: number) => {
      const asked = summaryModel.requests.length;
      await session.run(long(n, 400));
      const now = JSON.stringify(state());
      if (now !== before || summaryModel.requests.length > asked) {
        rounds++;
        if (summaryModel.requests.length > asked) calls.push(rounds);
      }
      before = now;
    };
    await session.run('start');
    before = JSON.stringify(state());
    let n = 1;
    while (rounds < 9 && n < 40) await next(n++);
    expect(calls).toEqual([1, 2, 3, 9]);
    while (rounds < 14 && n < 40) await next(n++);
    expect(calls).toEqual([1, 2, 3, 9]);
    up = true;
    await next(n++);
    expect(calls).toEqual([1, 2, 3, 9, 15]);
    expect(state()).toMatchObject({ summary: 'REAL', isFallback: false });
    await next(n++);
    await next(n++);
    expect(calls.at(-1)).toBeGreaterThan(15);
  });

  it.each(['length', 'content-filter'] as const)(
    'keeps no summary that ended with %s, and gives the next try more room',
    async (reason) => {
      const cut = chunks('## Goal\nBuild a bo', { type: 'finish', reason });
      const { session, summaryModel, sent, state } = setup([cut, 'WHOLE']);
      for (let n = 1; n <= 3; n++) await session.run(long(n, 396));
      expect(summaryModel.requests.map(({ settings }) => settings.maxOutputTokens)).toEqual([1024, 4096]);
      expect(state()!.summary).toBe('WHOLE');
      expect(sent().join()).not.toContain('Build a bo');
    },
  );

  it('does not let fallbacks pile up', async () => {
    let up = true;
    const { session, summaryModel, state } = setup([() => (up ? 'REAL' : down)], { maxTokens: 2000 });
    for (let n = 1; n <= 6; n++) await session.run(long(n, 396));
    expect(state()!.summary).toBe('REAL');
    up = false;
    const lengths: number[] = [];
    let n = 7;
    for (let last = ''; lengths.length < 5 && n < 60; n++) {
      await session.run(long(n, 396));
      const { summary, isFallback } = state()!;
      if (isFallback && summary !== last) lengths.push(summary.length);
      last = summary;
    }
    expect(state()!.summary).toMatch(/^REAL\n\nThe messages since/);
    expect(Math.max(...lengths) - Math.min(...lengths)).toBeLessThan(400);
    expect(summaryModel.requests.length).toBeGreaterThan(3);
  });

  it('replaces fallbacks by a later summary of the messages, if they fit', async () => {
    let up = true;
    const script = () => (up ? 'REAL' : down);
    const input = z.object({});
    const read = tool({ name: 'read', description: 'Reads.', input, execute: () => 'r'.repeat(1000) });
    const model = scriptedModel([toolCalls({ name: 'read' }), silent], { repeat: true, usage: {} });
    const summaryModel = summariser(script);
    const made = compaction({ ...BASE, maxTokens: 4000, keepTailTokens: 1200, summaryModel });
    const session = new Agent({ model, tools: [read], middleware: [made] }).session('s');
    for (let n = 1; n <= 5; n++) await session.run(`${n} early`);
    expect(summaryModel.requests).toHaveLength(1);
    up = false;
    let n = 6;
    while (summaryModel.requests.length < 4) await session.run(`${n++} late`);
    expect(textOf(model.requests.at(-1)!.messages[0]!)).toContain('REAL\n\nThe messages since were left out');
    up = true;
    while (summaryModel.requests.length < 5) await session.run(`${n++} late`);
    const asked = textOf(summaryModel.requests.at(-1)!.messages[0]!);
    expect(asked).toMatch(/^Summary of what came before:\n\nREAL\n\nTranscript:/);
    expect(asked).toContain('user: 6 late');
    expect(textOf(model.requests.at(-1)!.messages[0]!)).not.toContain('left out');
  });

  it('counts an empty summary as a failure, and only failures in a row', async () => {
    const { session, state } = setup([text('  '), text(''), text('REAL'), text(''), text('AGAIN')]);
    for (let n = 1; n <= 7; n++) await session.run(long(n));
    expect(state()).toMatchObject({ summary: 'REAL', isFallback: false });
    for (let n = 8; n <= 12; n++) await session.run(long(n));
    expect(state()).toMatchObject({ summary: 'AGAIN', isFallback: false });
  });

  it('names the tools that were used in the fallback', async () => {
    const input = z.object({});
    const tools = ['read', 'write'].map((name) =>
      tool({ name, description: name, input, execute: () => long(0) }),
    );
    const answers = [toolCalls({ name: 'read' }, { name: 'write' }), toolCalls({ name: 'read' }), silent];
    const model = scriptedModel(answers, { repeat: true, usage: {} });
    const made = compaction({ ...BASE, summaryModel: summariser(down) });
    const session = new Agent({ model, tools, middleware: [made] }).session('s');
    for (let n = 1; n <= 3; n++) await session.run('Go on.');
    expect(textOf(model.requests.at(-1)!.messages[0]!)).toMatch(/- Go on\.\n\nTools used: read, write$/);
  });
});

describe('compaction that saves little', () => {
  it('is skipped after two poor rounds, unless the request is half as long again', async () => {
    // Every round replaces two short messages by a summary that is as long: nothing is saved.
    const { session, summaryModel } = setup([() => 'w'.repeat(300)], {
      maxTokens: 300,
      keepTailTokens: 250,
      minMessages: 1,
    });
    await session.run('a'.repeat(100));
    await session.run('b'.repeat(100));
    const before = summaryModel.requests.length;
    expect(before).toBe(0);
    await session.run('c'.repeat(100));
    await session.run('.');
    expect(summaryModel.requests).toHaveLength(2);
    await session.run('.');
    await session.run('.');
    expect(summaryModel.requests).toHaveLength(2);
    await session.run('d'.repeat(150));
    expect(summaryModel.requests).toHaveLength(3);
  });

  it('runs again after eight new messages, and starts counting again after a round that saved more', async () => {
    let wordyNow = true;
    const script = () => (wordyNow ? 'w'.repeat(300) : 'short');
    const { session, summaryModel, state } = setup([script], {
      maxTokens: 300,
      keepTailTokens: 250,
      minMessages: 1,
    });
    for (const letter of ['a', 'b', 'c']) await session.run(letter.repeat(100));
    await session.run('.');
    for (let n = 0; n < 3; n++) await session.run('.');
    expect(summaryModel.requests).toHaveLength(2);
    expect(state()!.summary).toBe('');
    wordyNow = false;
    await session.run('.');
    expect(summaryModel.requests).toHaveLength(3);
    expect(state()!.summary).toBe('short');
  });
});

describe('an abort while the summary is written', () => {
  it('changes nothing: no failure is counted, and the next run tries again', async () => {
    let call = 0;
    const { agent, session, summaryModel, state } = setup([() => (++call <= 4 ? hang('half a ') : 'REAL')]);
    for (let n = 1; n <= 4; n++) await session.run(long(n));
    for (let n = 1; n <= 4; n++) {
      const abort = new AbortController();
      const run = session.run(n === 1 ? long(5) : '.', { signal: abort.signal }).catch((error) => error);
      while (summaryModel.requests.length < n) await new Promise((resolve) => setImmediate(resolve));
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
    }
    expect(summaryModel.aborted).toBe(4);
    expect((await session.messages()).map(textOf)).toContain(long(1));
    expect((await agent.session('s').run('.')).status).toBe('done');
    expect(state()).toMatchObject({ summary: 'REAL', isFallback: false });
  });

  it('works even if the summariser ignores the signal', async () => {
    let release: (() => void) | undefined;
    const deaf = {
      provider: 'test',
      id: 'deaf',
      async *stream() {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        yield { type: 'text' as const, text: 'LATE' };
        yield { type: 'finish' as const, reason: 'stop' as const };
      },
    };
    const { session, state } = setup([], { summaryModel: deaf });
    for (let n = 1; n <= 4; n++) await session.run(long(n));
    const abort = new AbortController();
    const run = session.run(long(5), { signal: abort.signal }).catch((error) => error);
    while (!release) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    release();
    await new Promise((resolve) => setImmediate(resolve));
    expect(state()!.summary).toBe('');
  });

  it('lets a stop through', async () => {
    const limit = defineMiddleware({
      name: 'limit',
      wrapModel: (ctx, next) => (ctx.model.id === 'summariser' ? ctx.stop('max_cost', 'dear') : next()),
    });
    const made = compaction({ ...BASE, summaryModel: summariser('S') });
    const model = scriptedModel([silent], { repeat: true });
    const session = new Agent({ model, middleware: [made, limit] }).session('s');
    for (let n = 1; n <= 4; n++) await session.run(long(n));
    expect(await session.run(long(5))).toMatchObject({ status: 'stopped', stop: { reason: 'max_cost' } });
  });
});

describe('a history', () => {
  it('is never cut between a call and its result, and every message is in the summary or in the request', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomHistory({ whole: true }),
        fc.integer({ min: 1, max: 3000 }),
        fc.integer({ min: 0, max: 3000 }),
        async (history, maxTokens, keepTailTokens) => {
          const { session, model, agent, state } = setup(['S'], {
            maxTokens,
            keepTailTokens,
            minMessages: 1,
          });
          const dropped: unknown[] = [];
          const stream = agent.session('s').stream([...history, userMessage('Go.')]);
          for await (const event of stream)
            if (event.type === 'custom' && event.name === 'orphans_dropped') dropped.push(event.data);
          await session.run('On.');
          expect(dropped).toEqual([]);
          for (const { messages } of model.requests)
            expect(unpaired(messages)).toEqual({ calls: [], results: [] });
          const all = await session.messages();
          expect(all).toHaveLength(history.length + 4);
          const sent = new Set(model.requests.at(-1)!.messages.map(({ id }) => id));
          const summed = new Set(state()!.summarizedMessageIds);
          for (const { id, metadata } of all.slice(0, -1)) {
            expect([id, sent.has(id) !== summed.has(id)]).toEqual([id, true]);
            if (metadata?.pinned) expect(sent.has(id)).toBe(true);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('of five thousand messages costs no more counting per turn than one of fifty', async () => {
    const counts = async (messages: number, usage: object) => {
      let counted = 0;
      const counter = (said: string) => {
        counted++;
        return said.length;
      };
      const made = compaction({ summaryModel: summariser('S'), maxTokens: 1e9, tokenCounter: counter });
      const input = z.object({});
      const look = tool({ name: 'look', description: 'Looks.', input, execute: () => 'seen' });
      const marks: number[] = [];
      const model = scriptedModel(
        [
          ...Array.from({ length: 10 }, () => () => {
            marks.push(counted);
            return toolCalls({ name: 'look' });
          }),
          'done',
        ],
        { usage },
      );
      const agent = new Agent({ model, tools: [look], middleware: [made] });
      const history = Array.from(
        { length: messages },
        (_, i): Message =>
          i % 2 === 0
            ? userMessage(long(i))
            : { id: '', role: 'assistant', content: [{ type: 'text', text: 'ok' }], stopReason: 'stop' },
      );
      await agent.session('s').run([...history, userMessage('Go.')]);
      return marks.slice(1).map((mark, i) => mark - marks[i]!);
    };
    for (const usage of [{}, { inputTokens: 10, outputTokens: 5 }]) {
      const few = await counts(50, usage);
      expect(few).toHaveLength(9);
      expect(Math.max(...few)).toBeLessThanOrEqual(3);
      expect(await counts(5000, usage)).toEqual(few);
    }
  });
});

it('a round writes as much in a long session as in a short one', async () => {
  const { session, agent, state } = setup(['S'], { maxTokens: 500, keepTailTokens: 150, minMessages: 2 });
  for (let n = 1; n <= 200; n++) await session.run(long(n));
  const written = (await agent.store.read('s', 1))
    .map((entry) => JSON.stringify(entry))
    .filter((json) => json.includes('summarizedMessageIds'))
    .map((json) => json.length);
  expect(written.length).toBeGreaterThan(50);
  expect(Math.max(...written.slice(-10))).toBeLessThan(written[0]! * 1.2);
  const all = await session.messages();
  const last = all.findIndex(({ id }) => id === state()!.lastSummarizedMessageId);
  expect(last).toBeGreaterThan(300);
  expect(state()!.summarizedMessageIds).toEqual(all.slice(0, last + 1).map(({ id }) => id));
});

describe('two sessions at once', () => {
  it('have summaries of their own', async () => {
    const echo = ({ messages }: { messages: readonly Message[] }) =>
      `S ${/who-\w/.exec(textOf(messages[0]!))![0]}`;
    const { agent, model } = setup([echo]);
    await Promise.all(
      ['a', 'b'].map(async (name) => {
        for (let n = 1; n <= 6; n++) await agent.session(name).run(`who-${name} ${long(n, 90)}`);
      }),
    );
    const last = model.requests.slice(-2).map(({ messages }) => messages.map(textOf).join(' '));
    for (const said of last) expect(new Set(said.match(/who-\w/g))).toHaveProperty('size', 1);
    expect(last.every((said) => said.includes('S who-'))).toBe(true);
  });
});
