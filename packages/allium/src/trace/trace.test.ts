import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  Agent,
  assistantMessage,
  type Message,
  type Middleware,
  type Model,
  memoryStore,
  type RunTrace,
  readTrace,
  syntheticUserMessage,
  type TraceRecord,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { fileStore } from 'allium/stores/file';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const add = tool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => `${a + b}`,
});
const broken = tool({
  name: 'broken',
  description: 'Breaks.',
  input: z.object({}),
  execute: () => {
    throw new TypeError('no such table');
  },
});

/** What was done, without times and differences. */
function acts(trace: RunTrace | undefined): string[] {
  return trace!.records.filter(({ by }) => by !== 'agent').map(({ by, hook, did }) => `${by} ${hook} ${did}`);
}

function recordOf(trace: RunTrace | undefined, by: string, hook?: string): TraceRecord {
  return trace!.records.find((one) => one.by === by && (hook === undefined || one.hook === hook))!;
}

function calls(trace: RunTrace | undefined): number[] {
  return trace!.records.filter(({ sent }) => sent).map(({ n }) => n);
}

function callsOf(trace: RunTrace | undefined): Record<string, number> {
  return Object.fromEntries(trace!.totals.map(({ by, hook, calls: count }) => [`${by} ${hook}`, count]));
}

const change = { trace: 'changes' } as const;
const passing = syntheticUserMessage('Go on.', { source: 'step' });

function spanOf(text: string, word: string): { start: number; end: number }[] {
  const start = text.indexOf(word);
  return start < 0 ? [] : [{ start, end: start + word.length }];
}

function shortened(message: Message): Message {
  return message.role === 'tool' ? { ...message, content: [{ type: 'text', text: '…' }] } : message;
}

describe('a trace', () => {
  it('is not there unless it is asked for', async () => {
    const agent = new Agent({ model: scriptedModel([text('a'), text('b')]) });
    expect((await agent.run('x')).trace).toBeUndefined();
    expect((await agent.run('x', change)).trace!.records).toHaveLength(1);
  });

  it('leaves out steps that changed nothing, but counts them', async () => {
    const idle: Middleware = { name: 'idle', beforeModel() {}, wrapTool: (_, next) => next() };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]),
      tools: [add],
      middleware: [idle],
      ...change,
    });
    const { trace } = await agent.run('x');
    expect(acts(trace)).toEqual(['model stream called', 'tool execute called', 'model stream called']);
    expect(trace!.totals.map(({ by, hook, seam, calls }) => [by, hook, seam, calls])).toEqual([
      ['idle', 'beforeModel', 'model', 2],
      ['idle', 'wrapTool', 'tool', 1],
    ]);
  });

  it('shows each step at each hook, with what it changed', async () => {
    const busy: Middleware = {
      name: 'busy',
      acceptMessage: (message) => ({ ...message, content: [{ type: 'text', text: 'taken in' }] }) as never,
      transformContext: (messages) => [...messages, userMessage('by the way')],
      transformSystemPrompt: (prompt) => `${prompt} Be kind.`,
      beforeModel(ctx) {
        ctx.settings = { ...ctx.settings, temperature: 0.5 };
        ctx.tools = ctx.tools.filter(({ name }) => name !== 'broken');
      },
      beforeToolCall: ({ args, revision }) => (revision === 0 ? { args: { ...args, b: 5 } } : undefined),
      afterToolCall: () => ({ content: [{ type: 'text', text: 'changed' }] }),
      afterModelResponse: (response) =>
        textOf(response) === 'done'
          ? { response: { ...response, content: [{ type: 'text', text: 'Done.' }] } }
          : undefined,
      shouldStopAfterTurn: ({ turn }) => turn === 2 && { reason: 'stopped', message: 'Enough.' },
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('done')]),
      systemPrompt: 'You add.',
      tools: [add, broken],
      middleware: [busy],
      ...change,
    });
    const { trace, changes } = await agent.run('hello');
    expect(acts(trace)).toEqual([
      'busy acceptMessage rewrote',
      'busy transformContext rewrote',
      'busy transformSystemPrompt rewrote',
      'busy beforeModel rewrote',
      'model stream called',
      'busy beforeToolCall rewrote',
      'tool execute called',
      'busy afterToolCall rewrote',
      'busy transformContext rewrote',
      'busy transformSystemPrompt rewrote',
      'busy beforeModel rewrote',
      'model stream called',
      'busy afterModelResponse rewrote',
      'busy shouldStopAfterTurn stopped',
    ]);
    expect(recordOf(trace, 'busy', 'beforeToolCall')).toMatchObject({
      toolName: 'add',
      what: 'rewrote the arguments of add',
      changes: { args: [{ path: ['b'], from: 2, to: 5 }] },
    });
    expect(recordOf(trace, 'busy', 'beforeModel').changes).toEqual({
      tools: { added: [], removed: ['broken'] },
      settings: [{ path: ['temperature'], to: 0.5 }],
    });
    expect(recordOf(trace, 'busy', 'afterToolCall').changes!.result).toEqual([
      { path: ['content', 0, 'text'], from: '6', to: 'changed' },
    ]);
    expect(recordOf(trace, 'busy', 'afterModelResponse').changes!.response).toEqual([
      { path: ['content', 0, 'text'], from: 'done', to: 'Done.' },
    ]);
    expect(recordOf(trace, 'busy', 'shouldStopAfterTurn').changes!.decision).toEqual({
      type: 'stopped',
      why: 'Enough.',
    });
    // Every change has its record, in the same words.
    const words = trace!.records.map(({ what }) => what).join('\n');
    for (const { what } of changes) expect(words).toContain(what);
  });

  it('has retries, abandoned attempts, answers and refusals', async () => {
    const again: Middleware = {
      name: 'again',
      async wrapModel(_, next) {
        try {
          return await next();
        } catch {
          return await next();
        }
      },
    };
    const guard: Middleware = { name: 'no', beforeToolCall: () => ({ block: true, reason: 'Not that.' }) };
    const cached: Middleware = {
      name: 'cached',
      wrapModel: (ctx, next) => (ctx.turn === 2 ? assistantMessage('from the cache') : next()),
    };
    const agent = new Agent({
      model: scriptedModel([
        failWith(new Error('overloaded')),
        toolCalls({ name: 'add', args: { a: 1, b: 2 } }),
      ]),
      tools: [add],
      middleware: [again, guard, cached],
      ...change,
    });
    const { trace } = await agent.run('x');
    expect(acts(trace)).toEqual([
      'model stream failed',
      'again wrapModel retried',
      'model stream called',
      'no beforeToolCall blocked',
      'cached wrapModel answered',
    ]);
    const [first, second] = trace!.records.filter(({ sent }) => sent);
    expect([first!.attempt, second!.attempt]).toEqual([1, 2]);
    expect(first!.error).toMatchObject({ name: 'Error', message: 'overloaded' });
    expect(recordOf(trace, 'again')).toMatchObject({ attempt: 2, error: { message: 'overloaded' } });
  });

  it('counts only its own time for a layer', async () => {
    let now = 1000;
    const clock = { now: () => now, setTimer: () => () => {} };
    const slow: Middleware = {
      name: 'slow',
      async wrapModel(ctx, next) {
        now += 3;
        ctx.systemPrompt = 'slow';
        const answer = await next();
        now += 4;
        return { ...answer, metadata: { slow: true } };
      },
    };
    const inner: Middleware = {
      name: 'inner',
      async wrapModel(_, next) {
        now += 100;
        return next();
      },
    };
    const { trace } = await new Agent({
      model: scriptedModel([text('a')]),
      middleware: [slow, inner],
      clock,
      ...change,
    }).run('x');
    expect(trace!.totals).toEqual([
      { by: 'slow', hook: 'wrapModel', seam: 'model', calls: 1, ms: 7 },
      { by: 'inner', hook: 'wrapModel', seam: 'model', calls: 1, ms: 100 },
    ]);
    expect(trace!.records.filter(({ by }) => by === 'slow').map(({ ms }) => ms)).toEqual([3, 4]);
  });

  it('keeps the stack of a tool that threw, which the model does not read', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'broken', args: {} }), text('ok')]),
      tools: [broken],
      ...change,
    });
    const { trace, messages } = await agent.run('x');
    const { error, callId } = recordOf(trace, 'tool');
    expect(error).toMatchObject({ name: 'TypeError', message: 'no such table' });
    expect(error!.stack).toContain('trace.test.ts');
    expect(callId).toBeTypeOf('string');
    expect(JSON.stringify(messages)).not.toContain('trace.test.ts');
  });
});

describe('a failure that throws nothing, as Promise.reject() does,', () => {
  it('is recorded as one, of a tool and of a model', async () => {
    const model = scriptedModel([toolCalls({ name: 'rejects', args: {} }), text('ok')]);
    let down = true;
    const flaky: Model = {
      provider: 'p',
      id: 'm',
      stream(...args) {
        if (!down) return model.stream(...args);
        down = false;
        return Promise.reject() as never;
      },
    };
    const rejects = tool({
      name: 'rejects',
      description: '',
      input: z.object({}),
      execute: () => Promise.reject(),
    });
    const again: Middleware = {
      name: 'again',
      onError: (ctx) => (ctx.seam === 'model' ? 'retry' : undefined),
    };
    const agent = new Agent({ model: flaky, tools: [rejects], middleware: [again] });
    const { trace } = await agent.run('x', change);
    expect(acts(trace)).toEqual(
      expect.arrayContaining(['model stream failed', 'model stream called', 'tool execute failed']),
    );
    expect(recordOf(trace, 'tool').error).toMatchObject({ message: 'undefined' });
  });
});

describe('requestAt()', () => {
  const wordy: Middleware = {
    name: 'wordy',
    transformSystemPrompt: (prompt, ctx) => `${prompt}\nTurn ${ctx.turn}.`,
  };
  const cutting: Middleware = {
    name: 'cutting',
    transformContext: (messages) => (messages.length > 3 ? [messages[0]!, ...messages.slice(-2)] : messages),
  };
  const masking: Middleware = {
    name: 'masking',
    wrapModel(ctx, next) {
      return next({
        messages: ctx.messages.map((message) =>
          message.role === 'tool' ? { ...message, content: [{ type: 'text', text: '(cleared)' }] } : message,
        ),
      });
    },
  };
  const converting: Middleware = {
    name: 'converting',
    convertToLlm: (messages) => [...messages, syntheticUserMessage('now', { source: 'converting' })],
  };
  const guarding: Middleware = {
    name: 'guarding',
    guard: {
      on: ['request'],
      action: 'redact',
      find: (words) => [...words.matchAll(/hello/g)].map(({ index }) => ({ start: index, end: index + 5 })),
    },
  };

  it.each([
    ['nothing', []],
    ['all of them', [wordy, cutting, masking, converting, guarding]],
    ['all of them, the other way round', [guarding, converting, masking, cutting, wordy]],
  ])('is what the model received, with %s between', async (_, middleware) => {
    const received: unknown[] = [];
    const model = scriptedModel([
      toolCalls({ name: 'add', args: { a: 1, b: 2 } }),
      toolCalls({ name: 'add', args: { a: 3, b: 4 } }),
      toolCalls({ name: 'add', args: { a: 5, b: 6 } }),
      text('done'),
      text('again'),
    ]);
    const watched = {
      ...model,
      stream(request: Parameters<typeof model.stream>[0], options: Parameters<typeof model.stream>[1]) {
        received.push(structuredClone({ ...request, settings: request.settings }));
        return model.stream(request, options);
      },
    };
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-trace-'));
    const store = fileStore({ dir: folder });
    const agent = new Agent({
      model: watched,
      systemPrompt: 'You add.',
      tools: [add],
      middleware,
      store,
      ...change,
    });
    const session = agent.session('s');
    const first = await session.run('hello');
    const second = await session.run('once more, hello');
    const stored = [await session.trace(first.runId), await session.trace()];
    for (const [one, two] of [
      [first.trace, second.trace],
      [stored[0], stored[1]],
    ]) {
      const requests = [one, two].flatMap((trace) => calls(trace).map((n) => trace!.requestAt(n)));
      expect(
        requests.map(({ messages, systemPrompt, tools, settings }) => ({
          messages: messages.map(({ message }) => message),
          systemPrompt,
          tools,
          settings,
        })),
      ).toEqual(JSON.parse(JSON.stringify(received)));
    }
    fs.rmSync(folder, { recursive: true });
  });

  it('names who rewrote or left out each message', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'add', args: { a: 1, b: 2 } }),
        toolCalls({ name: 'add', args: { a: 3, b: 4 } }),
        text('done'),
      ]),
      systemPrompt: 'You add.',
      tools: [add],
      middleware: [wordy, cutting, masking, guarding],
      ...change,
    });
    const { trace } = await agent.run('hello');
    const last = trace!.requestAt(calls(trace).at(-1)!);
    expect(last.messages.map(({ by }) => by)).toEqual(['guarding', undefined, 'masking']);
    expect(last.messages[0]!.original).toMatchObject({ content: [{ text: 'hello' }] });
    expect(last.leftOut.map(({ by }) => by)).toEqual(['cutting', 'cutting']);
    expect(last.systemPromptBy).toEqual(['wordy']);
    expect(last.steps.map(({ by }) => by)).toEqual(expect.arrayContaining(['cutting', 'masking', 'wordy']));
    expect(() => trace!.requestAt(999)).toThrow('Record 999');
  });

  it.each<[string, Middleware, string]>([
    ['nobody', {}, 'kernel'],
    ['a transform', { transformContext: (messages) => [...messages, passing] }, 'kernel'],
    ['a layer', { wrapModel: (ctx, next) => next({ messages: [...ctx.messages, passing] }) }, 'kernel'],
    ['a guard', { guard: { on: ['request'], find: (said) => spanOf(said, 'secret') } }, 'kernel'],
    ['a step that replaces it', { transformContext: (messages) => messages.map(shortened) }, 'step'],
  ])('names the kernel for what it notes on a changed call, beside %s', async (_, step, by) => {
    const model = scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('5.')]);
    const asking: Middleware = { name: 'asking', beforeToolCall: () => ({ ask: { title: 'Sure?' } }) };
    const agent = new Agent({ model, tools: [add], middleware: [{ name: 'step', ...step }, asking] });
    const { trace } = await agent.run('A secret.', {
      ...change,
      onRequest: () => ({ type: 'edit', args: { a: 2, b: 3 } }),
    });
    const result = trace!.requestAt(calls(trace).at(-1)!).messages[2]!;
    expect([result.by, textOf(result.message).slice(0, 5)]).toEqual([by, 'Note:']);
  });

  it('costs as much in the last turn as in the first, however much of the history is rewritten', async () => {
    const turns = 60;
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([
        ...Array.from({ length: turns }, (_, i) => toolCalls({ name: 'add', args: { a: i, b: 1 } })),
        text('done'),
      ]),
      tools: [add],
      middleware: [masking],
      store,
      ...change,
    });
    await agent.session('s').run('count');
    const bytes = (await store.read('s', 1)).flatMap((entry) =>
      entry.type === 'trace' ? [JSON.stringify(entry.records).length] : [],
    );
    expect(bytes.at(-3)!).toBeLessThan(bytes[2]! * 1.3);
  });
});

describe('a stored trace', () => {
  it('goes on after a resume, and takes no append of its own', async () => {
    const appends: string[][] = [];
    const memory = memoryStore();
    const store = {
      ...methods(memory),
      append: (id: string, seq: number, entries: never[]) => {
        appends.push(entries.map(({ type }: { type: string }) => type));
        return memory.append(id, seq, entries);
      },
    };
    const asking: Middleware = {
      name: 'asking',
      suspends: true,
      beforeToolCall: ({ toolCall }) => (toolCall.name === 'add' ? { ask: { title: 'May I?' } } : undefined),
    };
    const make = (answers: Parameters<typeof scriptedModel>[0]) =>
      new Agent({ model: scriptedModel(answers), tools: [add], middleware: [asking], store, ...change });
    const first = await make([toolCalls({ name: 'add', args: { a: 1, b: 2 } })])
      .session('s')
      .run('x');
    expect(first.status).toBe('suspended');
    const { id } = first.pending[0]!;
    const after = make([text('3')]).session('s');
    const second = await after.resume({ answers: { [id]: { type: 'approve' } }, trace: undefined });
    expect(second.status).toBe('done');
    const stored = await after.trace(second.runId);
    expect(acts(stored)).toEqual(acts(second.trace));
    expect(acts(stored).slice(0, 2)).toEqual(['model stream called', 'asking beforeToolCall asked']);
    const numbers = stored!.records.map(({ n }) => n);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(stored!.totals).toEqual(second.trace!.totals);
    expect(appends.filter((types) => types.every((type) => type === 'trace')).length).toBeLessThanOrEqual(1);
    expect(readTrace('s', await store.read('s', 1))!.records).toEqual(stored!.records);
  });

  it('counts the calls of all parts of the run', async () => {
    const asking: Middleware = {
      name: 'asking',
      suspends: true,
      beforeToolCall: ({ toolCall }) => (toolCall.name === 'add' ? { ask: { title: 'May I?' } } : undefined),
    };
    const idle: Middleware = { name: 'idle', beforeModel() {} };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]),
      tools: [add],
      middleware: [asking, idle],
      store: memoryStore(),
      ...change,
    });
    const session = agent.session('s');
    const first = await session.run('x');
    const before = callsOf(first.trace);
    expect(before).toEqual({ 'asking beforeToolCall': 1, 'idle beforeModel': 1 });
    expect(callsOf(await session.trace())).toEqual(before);
    const second = await session.resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    const after = callsOf(second.trace);
    expect(after['idle beforeModel']).toBe(2);
    expect(after['asking beforeToolCall']).toBeGreaterThanOrEqual(1);
    expect(callsOf(await session.trace())).toEqual(after);
  });

  it('includes the traces of sub-agents', async () => {
    const rude: Middleware = { name: 'rude', transformSystemPrompt: () => 'Be rude.' };
    const clerk = new Agent({ name: 'clerk', model: scriptedModel([text('no')]), middleware: [rude] });
    const store = memoryStore();
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask', args: { prompt: 'well?' } }), text('he said no')]),
      tools: [clerk.asTool({ name: 'ask', description: 'Asks.' })],
      store,
      ...change,
    });
    const session = boss.session('s');
    const { trace } = await session.run('x');
    const { agentId } = recordOf(trace, 'tool');
    for (const one of [trace, await session.trace()])
      expect(acts(one!.of(agentId!))).toEqual(['rude transformSystemPrompt rewrote', 'model stream called']);
  });

  it('is kept in memory only for a middleware that reads it', async () => {
    let seen: RunTrace | undefined;
    const reading: Middleware = {
      name: 'reading',
      traces: true,
      async wrapRun(_, next) {
        const result = await next();
        seen = result.trace;
        return result;
      },
    };
    const store = memoryStore();
    const agent = new Agent({ model: scriptedModel([text('a')]), middleware: [reading], store });
    await agent.session('s').run('x');
    expect(acts(seen)).toEqual(['model stream called']);
    expect((await store.read('s', 1)).map(({ type }) => type)).not.toContain('trace');
  });
});

describe('explain()', () => {
  it('tells the story of a message in words', async () => {
    const again: Middleware = { name: 'again', onError: () => 'retry' };
    const cutting: Middleware = {
      name: 'cutting',
      transformContext: (messages) => messages.slice(-3),
    };
    const agent = new Agent({
      model: scriptedModel([
        failWith(new Error('overloaded')),
        toolCalls({ name: 'add', args: { a: 1, b: 2 } }),
        toolCalls({ name: 'add', args: { a: 3, b: 4 } }),
        text('The sums are 3 and 7.'),
      ]),
      systemPrompt: 'You add.',
      tools: [add],
      middleware: [again, cutting],
      ...change,
    });
    const { trace, messages } = await agent.run('Add 1 and 2, then 3 and 4.');
    const stories = messages.map(({ id }) => plain(trace!.explain(id)));
    expect(stories[0]).toContain('came from outside: “Add 1 and 2, then 3 and 4.”.');
    expect(stories[0]).toContain('the model got it unchanged');
    expect(stories[1]).toContain('Attempt 1: test/scripted was sent 1 message and 1 tool.');
    expect(stories[1]).toContain('It failed after T: overloaded.');
    expect(stories[1]).toContain('"again" (onError');
    expect(stories[1]).toContain('Attempt 2');
    expect(stories[2]).toContain('is the result of add');
    expect(stories[2]).toContain('The tool ran for T.');
    expect(plain(trace!.explain('nobody'))).toBe(`Run ${trace!.runId} has no message nobody.`);
  });

  it.each([
    [{ type: 'approve' }, 'allowed', 'The question was answered: approved.'],
    [
      { type: 'edit', args: { a: 5, b: 5 } },
      'rewrote',
      'answered: with edited arguments: a “1” became “5”; b “2” became “5”.',
    ],
    [{ type: 'reject', reason: 'too much' }, 'blocked', 'The question was answered: rejected: “too much”.'],
    [{ type: 'respond', text: '4' }, 'answered', 'answered: with a text.'],
  ] as const)('tells how a question was answered: %j', async (decision, did, words) => {
    const asking: Middleware = {
      name: 'asking',
      suspends: true,
      beforeToolCall: () => ({ ask: { title: 'May I?' } }),
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('ok')]),
      tools: [add],
      middleware: [asking],
      store: memoryStore(),
      ...change,
    });
    const session = agent.session('s');
    const first = await session.run('x');
    const second = await session.resume({ answers: { [first.pending[0]!.id]: decision } });
    const { id } = (await session.messages()).find(({ role }) => role === 'tool')!;
    for (const trace of [second.trace, await session.trace()]) {
      const human = trace!.records.filter(({ by }) => by === 'human');
      expect(human).toMatchObject([{ did, toolName: 'add' }]);
      expect(trace!.explain(id)).toContain(words);
      expect(trace!.explain(id).split('asked somebody')).toHaveLength(2);
    }
  });

  it('tells retries of a tool with its result, not with the answer that called it', async () => {
    let failures = 1;
    const flaky = tool({
      name: 'flaky',
      description: 'Fails once.',
      input: z.object({}),
      idempotent: true,
      execute: () => {
        if (failures-- > 0) throw new Error('ECONNRESET');
        return 'fine';
      },
    });
    const again: Middleware = { name: 'again', onError: () => 'retry' };
    const agent = new Agent({
      model: scriptedModel([
        toolCalls({ name: 'flaky', args: {} }),
        toolCalls({ name: 'flaky', args: {} }),
        text('ok'),
      ]),
      tools: [flaky],
      middleware: [again],
      ...change,
    });
    const { trace, messages } = await agent.run('x');
    expect(trace!.explain(messages[1]!.id)).not.toContain('again');
    expect(trace!.explain(messages[2]!.id)).toMatch(/"again" \(onError.*\) tried again after: ECONNRESET/);
    expect(trace!.explain(messages[0]!.id)).toContain('In turns 1 to 3 the model got it unchanged.');
  });
});

function plain(story: string): string {
  return story.replace(/\d+(\.\d+)? m?s\b/g, 'T');
}

/** The store as a plain object, so that a method can be replaced. */
function methods(store: ReturnType<typeof memoryStore>) {
  const { read, head, list, fork, delete: remove, post, take } = store;
  const bound = { read, head, list, fork, delete: remove, post, take };
  return Object.fromEntries(
    Object.entries(bound).map(([name, method]) => [name, (method as () => unknown).bind(store)]),
  ) as never as typeof store;
}

describe('what a trace keeps until it is read', () => {
  it('stays as it was, even if its owner changes the object later', async () => {
    const details = { at: new Date(0), list: ['one'] };
    const content = [{ type: 'text' as const, text: 'changed' }];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]),
      tools: [add],
      middleware: [
        { name: 'wrapping', wrapTool: async (_, next) => ({ ...(await next()), content }) },
        { name: 'noting', afterToolCall: () => ({ details }) },
      ],
      ...change,
    });
    const { trace } = await agent.run('x');
    details.at.setFullYear(2000);
    expect(() => content.push({ type: 'text', text: 'more' })).toThrow(TypeError);
    expect(recordOf(trace, 'wrapping').changes!.result).toEqual([
      { path: ['content', 0, 'text'], from: '3', to: 'changed' },
    ]);
    expect(recordOf(trace, 'noting').changes!.result).toEqual([
      { path: ['details'], to: { at: '1970-01-01T00:00:00.000Z', list: ['one'] } },
    ]);
  });

  it('is in entries of the journal, in copies of them and in their JSON', async () => {
    const store = memoryStore();
    const append = store.append.bind(store);
    const written: object[] = [];
    store.append = (...args) => {
      written.push(...args[2].filter(({ type }) => type === 'trace'));
      return append(...args);
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]),
      tools: [add],
      store,
      ...change,
    });
    const { trace } = await agent.session('s1').run('x');
    const stored = store.read('s1', 1).filter((entry) => entry.type === 'trace');
    const copies = [stored, written.map((one) => ({ ...one })), JSON.parse(JSON.stringify(written))];
    for (const entries of [...copies, written.map((one) => structuredClone(one))])
      expect(entries.flatMap(({ records }: { records: unknown[] }) => records)).toEqual(trace!.records);
  });

  it('is stored with the last result of a turn, before the next model call ends', async () => {
    const store = memoryStore();
    let seen: string[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')]),
      middleware: [
        {
          name: 'waiting',
          async beforeModel({ turn }) {
            if (turn === 1) return;
            // By then the process has waited, and late entries are written.
            for (let i = 0; i < 3; i++) await new Promise(setImmediate);
            seen = acts(readTrace('s1', store.read('s1', 1)));
          },
        },
      ],
      tools: [add],
      store,
      ...change,
    });
    await agent.session('s1').run('x');
    expect(seen).toEqual(['model stream called', 'tool execute called']);
  });
});
