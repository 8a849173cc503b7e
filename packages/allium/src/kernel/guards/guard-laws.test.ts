/** What guards promise, as properties: any chunking, any stack of guards, every way a response can come. */

import {
  Agent,
  type AgentEvent,
  type AssistantMessage,
  defineMiddleware,
  type MessageDelta,
  type Middleware,
  type ModelPart,
  memoryStore,
  tool,
  window,
} from 'allium';
import { consoleLogger, fallback, retry } from 'allium/middleware';
import { chunks, collect, failWith, type ScriptStep, scriptedModel, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const find = (pattern: RegExp) => (text: string) =>
  [...text.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));

/** Matches are up to `longest` characters; look-around looks no further than that. */
const PATTERNS = [
  { pattern: /SECRET/g, longest: 6 },
  { pattern: /\bkey\b/g, longest: 3 },
  { pattern: /(?<=b)a(?!c)/g, longest: 3 },
  { pattern: /\d{2,6}/g, longest: 6 },
  { pattern: /aa/g, longest: 2 },
  { pattern: /a\[x\]|xx/g, longest: 4 },
  { pattern: /[😀é]/gu, longest: 2 },
  { pattern: /(?:ab){1,4}/g, longest: 8 },
] as const;
const WORDS = [
  'a',
  'b',
  'c',
  ' ',
  'ab',
  'aa',
  'SECRET',
  'SEC',
  'RET',
  'key',
  '12',
  '3',
  '😀',
  'é',
  'x',
  '\n',
];

const guardOf = fc.record({
  which: fc.constantFrom(...PATTERNS),
  more: fc.integer({ min: 0, max: 40 }),
  hold: fc.constantFrom<'window' | 'full'>('window', 'window', 'window', 'full'),
  judges: fc.constantFrom(false, false, false, true),
  replacement: fc.constantFrom('[x]', '', 'ab'),
});
type GuardSpec = typeof guardOf extends fc.Arbitrary<infer T> ? T : never;

function middlewareOf(specs: readonly GuardSpec[], on: ('output' | 'thinking' | 'final')[]): Middleware[] {
  return specs.map(({ which, more, hold, judges, replacement }, i) => ({
    name: `guard-${i}`,
    guard: {
      on,
      hold: hold === 'full' ? 'full' : window(which.longest + more),
      find: find(which.pattern),
      ...(judges && { judge: () => ({ type: 'allow' as const }) }),
      replacement,
    },
  }));
}

const wanted = (specs: readonly GuardSpec[], text: string): string =>
  specs.reduce((left, { which, replacement }) => left.replace(which.pattern, () => replacement), text);

/** The same for text in two blocks, which is read as one, and block by block. */
function wantedOfTwo(specs: readonly GuardSpec[], given: readonly [string, string]): readonly string[] {
  return specs.reduce<readonly [string, string]>(([first, second], { which, replacement }) => {
    const whole = first + second;
    const marked = new Array<number>(whole.length).fill(0);
    const starts = new Set<number>();
    const spans = [
      ...find(which.pattern)(whole),
      ...find(which.pattern)(first),
      ...find(which.pattern)(second).map(({ start, end }) => ({
        start: start + first.length,
        end: end + first.length,
      })),
    ].sort((a, b) => a.start - b.start || b.end - a.end);
    let reached = 0;
    for (const { start, end } of spans) {
      if (start >= reached) starts.add(start);
      reached = Math.max(reached, end);
      marked.fill(1, start, end);
    }
    const left = (from: number, to: number): string => {
      let out = '';
      for (let at = from; at < to; at++) {
        if (starts.has(at)) out += replacement;
        if (marked[at] === 0) out += whole[at];
      }
      return out;
    };
    return [left(0, first.length), left(first.length, whole.length)];
  }, given);
}

const texts = fc
  .array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 120 })
  .map((words) => words.join(''));
const sizes = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 6 });
const stacks = fc.array(guardOf, { minLength: 1, maxLength: 3 });

function cut(text: string, lengths: readonly number[], part: (piece: string) => ModelPart): ModelPart[] {
  const parts: ModelPart[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    const length = lengths[i % lengths.length]!;
    parts.push(part(text.slice(at, at + length)));
    at += length;
  }
  return parts;
}

/** What a consumer that follows the events has on its screen, checked against every message that ends. */
function checkDeltas(events: readonly AgentEvent[]): void {
  const screen = new Map<string, Map<number, MessageDelta[]>>();
  for (const event of events) {
    if (event.type === 'message_start') screen.set(event.messageId, new Map());
    if (event.type === 'message_reset') screen.get(event.messageId)!.clear();
    if (event.type === 'message_update') {
      const blocks = screen.get(event.messageId)!;
      blocks.set(event.delta.block, [...(blocks.get(event.delta.block) ?? []), event.delta]);
    }
    if (event.type !== 'message_end') continue;
    const blocks = screen.get(event.messageId)!;
    if (event.discarded) {
      expect(blocks.size).toBe(0);
      continue;
    }
    if (event.message!.role !== 'assistant') continue;
    expect(onScreen(blocks)).toEqual(inMessage(event.message as AssistantMessage));
  }
}

function onScreen(blocks: ReadonlyMap<number, readonly MessageDelta[]>): Record<number, object> {
  const made: Record<number, object> = {};
  for (const [block, deltas] of blocks) {
    const [first] = deltas;
    const text = deltas.map((delta) => (delta.type === 'tool-call' ? delta.arguments : delta.text)).join('');
    made[block] =
      first!.type === 'tool-call'
        ? { type: first!.type, id: first!.id, name: first!.name, text }
        : { type: first!.type, text };
    expect(
      new Set(deltas.map((delta) => (delta.type === 'tool-call' ? `${delta.id} ${delta.name}` : delta.type)))
        .size,
    ).toBe(1);
  }
  return made;
}

function inMessage({ content }: AssistantMessage): Record<number, object> {
  const made: Record<number, object> = {};
  for (const [block, part] of content.entries()) {
    if ((part.type === 'text' || part.type === 'thinking') && part.text !== '')
      made[block] = { type: part.type, text: part.text };
    if (part.type === 'tool-call')
      made[block] = { type: part.type, id: part.id, name: part.name, text: part.arguments };
  }
  return made;
}

describe('for any chunking of the same text any stack of guards gives the same final message', () => {
  it('text: streamed, unwatched and whole answers equal the guards applied one after the other', async () => {
    await fc.assert(
      fc.asyncProperty(stacks, texts, sizes, async (specs, text, lengths) => {
        const middleware = middlewareOf(specs, ['output']);
        const step = (pieces: readonly ModelPart[]): ScriptStep => chunks(...pieces);
        const live = await collect(
          new Agent({
            model: scriptedModel([step(cut(text, lengths, (piece) => ({ type: 'text', text: piece })))]),
            middleware,
          }).stream('hi'),
        );
        const quiet = await new Agent({
          model: scriptedModel([step(cut(text, [7], (piece) => ({ type: 'text', text: piece })))]),
          middleware,
        }).run('hi');
        const whole = await new Agent({ model: scriptedModel([text]), middleware }).run('hi');
        expect([live.result!.text, quiet.text, whole.text]).toEqual(Array(3).fill(wanted(specs, text)));
        checkDeltas(live.events);
      }),
      { numRuns: 150 },
    );
  });

  it('several points and interleaved blocks: the guards of a point judge its blocks as one text, and each alone', async () => {
    await fc.assert(
      fc.asyncProperty(
        stacks,
        stacks,
        fc.tuple(texts, texts, texts),
        sizes,
        async (output, thinking, [first, second, thought], lengths) => {
          const middleware = [
            ...middlewareOf(thinking, ['thinking']),
            ...middlewareOf(output, ['output']),
          ].map((one, i) => ({ ...one, name: `g${i}` }));
          const queues = [
            cut(thought, lengths, (piece) => ({ type: 'thinking', text: piece, block: 't', signature: 's' })),
            cut(first, lengths, (piece) => ({ type: 'text', text: piece, block: 1 })),
            cut(second, lengths, (piece) => ({ type: 'text', text: piece, block: 2 })),
          ];
          const parts: ModelPart[] = [];
          for (let i = 0; queues.some((queue) => i < queue.length); i++)
            for (const queue of queues) if (queue[i]) parts.push(queue[i]!);
          const { events, result } = await collect(
            new Agent({ model: scriptedModel([chunks(...parts)]), middleware }).stream('hi'),
          );
          const content = result!.messages.at(-1)!.content as readonly {
            type: string;
            text: string;
            signature?: string;
          }[];
          expect(content.map(({ text }) => text)).toEqual([
            wanted(thinking, thought),
            ...wantedOfTwo(output, [first, second]),
          ]);
          expect(content[0]!.signature).toBe(content[0]!.text === thought ? 's' : undefined);
          checkDeltas(events);
        },
      ),
      { numRuns: 80 },
    );
  });

  it('text without a key is one block, though pieces of earlier blocks come in between', async () => {
    const between: readonly ModelPart[] = [
      { type: 'thinking', text: 'so ', block: 't' },
      { type: 'text', text: 'so ', block: 'a' },
      { type: 'tool-call-delta', id: 'c', arguments: ' ' },
    ];
    const gaps = fc.array(fc.constantFrom(undefined, ...between), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(stacks, texts, sizes, gaps, async (specs, text, lengths, others) => {
        const pieces = cut(text, lengths, (piece) => ({ type: 'text', text: piece }));
        const parts = pieces.flatMap((piece, i) => [piece, others[i % others.length] ?? []].flat());
        const model = scriptedModel([
          chunks(
            between[1]!,
            between[0]!,
            { type: 'tool-call', id: 'c', name: 'nobody', arguments: '{}' },
            ...parts,
          ),
        ]);
        const middleware = middlewareOf(specs, ['output']);
        const { events, result } = await collect(
          new Agent({ model, middleware, limits: { turns: 1 } }).stream('hi'),
        );
        const said = result!.messages.find(({ role }) => role === 'assistant');
        expect(said!.content[3]).toMatchObject({ type: 'text', text: wanted(specs, text) });
        checkDeltas(events);
      }),
      { numRuns: 80 },
    );
  });

  it('a final guard holds the answer and judges it whole', async () => {
    await fc.assert(
      fc.asyncProperty(stacks, texts, sizes, async (specs, text, lengths) => {
        const middleware = middlewareOf(specs, ['final']);
        const step = chunks(...cut(text, lengths, (piece) => ({ type: 'text', text: piece })));
        const { events, result } = await collect(
          new Agent({ model: scriptedModel([step]), middleware }).stream('hi'),
        );
        expect(result!.text).toBe(wanted(specs, text));
        checkDeltas(events);
      }),
      { numRuns: 40 },
    );
  });
});

// ── What was removed is nowhere ──────────────────────────────────────────────────────────────────────────────

const SECRET = /S\W*E\W*C\W*R\W*E\W*T/;
const answer = (text: string) =>
  ({ role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop' }) as const;

/** Every way text can get into a response, all of them with the secret. */
const WAYS: Record<
  string,
  { script: (step: ScriptStep) => ScriptStep[]; middleware: (text: string) => Middleware[] }
> = {
  live: { script: (step) => [step, step], middleware: () => [] },
  'preset in beforeModel': {
    script: () => [],
    middleware: (text) => [
      {
        name: 'preset',
        beforeModel(ctx) {
          ctx.response = answer(text);
        },
      },
    ],
  },
  'cached by wrapModel': {
    script: () => [],
    middleware: (text) => [{ name: 'cache', wrapModel: () => answer(text) }],
  },
  'replaced in afterModel': {
    script: () => [chunks('fine'), chunks('fine')],
    middleware: (text) => [
      {
        name: 'after',
        afterModel(ctx) {
          ctx.response = answer(text);
        },
      },
    ],
  },
  'replaced in afterModelResponse': {
    script: () => [chunks('fine'), chunks('fine')],
    middleware: (text) => [{ name: 'replace', afterModelResponse: () => ({ response: answer(text) }) }],
  },
  'retried after it was shown': {
    script: (step) => [failWith(new Error('cut'), ...(step.parts.slice(0, -1) as ModelPart[])), step, step],
    middleware: () => [{ name: 'again', wrapModel: (_, next) => next().catch(() => next()) }],
  },
  'one of two that overlap': {
    script: (step) => [step, step, step, step],
    middleware: () => [
      { name: 'both', wrapModel: async (_, next) => (await Promise.all([next(), next()]))[1] },
    ],
  },
  'made by a transform': {
    script: () => [chunks('x'), chunks('x')],
    middleware: (text) => [
      {
        name: 'transform',
        beforeModel: (ctx) =>
          ctx.transform(() => ({
            part: (part, emit) => emit(part.type === 'text' ? { ...part, text } : part),
          })),
      },
    ],
  },
};

describe('what a guard removed is in no event, message, journal entry, later request, sink view or result', () => {
  describe.each(Object.entries(WAYS))('%s', (_, { script, middleware }) => {
    it.each([
      ['window', { hold: window(64) }],
      ['full', { hold: 'full' }],
      [
        'a judge that rewrites',
        {
          judge: ({ text }: { text: string }) => ({ type: 'rewrite', text: text.replace(/SECRET/g, '[x]') }),
        },
      ],
    ])('%s', async (_name, how) => {
      await fc.assert(
        fc.asyncProperty(sizes, fc.boolean(), fc.boolean(), async (lengths, inside, watched) => {
          const text = 'It is SECRET, so SECRET it stays: nobody says SECRET.';
          const views: unknown[] = [];
          const sink: Middleware = {
            name: 'sink',
            sink: true,
            async wrapModel(ctx, next) {
              const response = await next();
              views.push(response, ctx.response);
              return response;
            },
          };
          const guard = defineMiddleware({
            name: 'guard',
            guard: { on: ['output'], ...('judge' in how ? {} : { find: find(/SECRET/g) }), ...how } as never,
          });
          const ways = middleware(text);
          const store = memoryStore();
          const step = chunks(...cut(text, lengths, (piece) => ({ type: 'text', text: piece })));
          const model = scriptedModel(script(step));
          const agent = new Agent({
            model,
            store,
            middleware: inside ? [sink, ...ways, guard] : [guard, sink, ...ways],
          });
          const session = agent.session('s');
          const told: unknown[] = [];
          for (const input of ['one', 'two']) {
            if (watched) {
              const { events, result, error } = await collect(session.stream(input));
              expect(error).toBeUndefined();
              checkDeltas(events);
              told.push(events, result);
              // Not even when the pieces of a message are read one after the other, across resets.
              expect(
                events
                  .map((one) => (one.type === 'message_update' && 'text' in one.delta ? one.delta.text : ''))
                  .join(''),
              ).not.toMatch(SECRET);
            } else told.push(await session.run(input));
          }
          const all = [told, views, await store.read('s', 0), model.requests.map(({ messages }) => messages)];
          expect(JSON.stringify(all)).not.toMatch(SECRET);
          expect(JSON.stringify(told)).toContain('nobody says');
        }),
        { numRuns: 12 },
      );
    });
  });

  it('tool arguments, results, updates, details and errors', async () => {
    const executed: unknown[] = [];
    const views: unknown[] = [];
    const leak = tool({
      name: 'leak',
      description: 'Leaks.',
      input: z.object({ q: z.any() }),
      execute(args, ctx) {
        executed.push(args);
        ctx.update('progress SECRET', { at: { deep: ['SECRET'] } });
        ctx.update([{ type: 'text', text: 'SECRET' }]);
        if (JSON.stringify(args).includes('throw')) throw new Error('SECRET failed');
        return { rows: ['SECRET', 'fine'] };
      },
    });
    const sink: Middleware = {
      name: 'sink',
      sink: true,
      async wrapTool(ctx, next) {
        views.push(ctx.args, ctx.toolCall, await next(), ctx.result);
      },
      async wrapModel(_ctx, next) {
        const response = await next();
        views.push(response);
        return response;
      },
      afterToolCall: (ctx) => void views.push(ctx.result),
    };
    const guard = defineMiddleware({
      name: 'guard',
      guard: { on: ['tool-args', 'tool-result', 'output'], hold: window(20), find: find(/SECRET/g) },
    });
    const call = (id: string, args: string): ModelPart => ({
      type: 'tool-call',
      id,
      name: 'leak',
      arguments: args,
    });
    const delta = (id: string, args: string): ModelPart => ({ type: 'tool-call-delta', id, arguments: args });
    const model = scriptedModel([
      chunks(
        'calling',
        call('a', '{"q":{"deep":['),
        delta('a', '"SEC'),
        delta('a', 'RET"]}}'),
        call('b', '{"q":"throw \\u0053ECRET"}'),
      ),
      chunks(
        call('a', '{"q":"SECRET","q":"twice"}'),
        call('c', '{"q":1,"SECRET":2}'),
        call('d', 'not json: SECRET'),
      ),
      'end',
    ]);
    const store = memoryStore();
    const agent = new Agent({ model, store, tools: [leak], middleware: [sink, guard] });
    const { events, result } = await collect(agent.session('s').stream('hi'));
    checkDeltas(events);
    expect(
      JSON.stringify([
        events,
        result,
        views,
        executed,
        await store.read('s', 0),
        model.requests.map(({ messages }) => messages),
      ]),
    ).not.toMatch(SECRET);
    expect(executed).toEqual([
      { q: { deep: ['[redacted]'] } },
      { q: 'throw [redacted]' },
      { q: 'twice' },
      { q: 1 },
    ]);
    const updates = events.filter((one) => one.type === 'tool_execution_update');
    expect(updates[0]).toMatchObject({
      update: [{ text: 'progress [redacted]' }],
      details: { at: { deep: ['[redacted]'] } },
    });
    expect(result!.text).toBe('end');
  });

  describe('errors in notes, events and log lines', () => {
    const failure = () => Object.assign(new Error('no login with SECRET'), { code: 'ECONNRESET' });
    const fails = () => {
      throw failure();
    };
    const login = tool({ name: 'login', description: '', input: z.any(), idempotent: true, execute: fails });
    /** Everything that is told of a run in which `login` and the first model fail. */
    async function told(middleware: readonly Middleware[], guard: Partial<Middleware>) {
      const lines: string[] = [];
      const log = (line: string) => void lines.push(line);
      const agent = new Agent({
        model: scriptedModel([failWith(failure()), toolCalls({ name: 'login' }), 'end']),
        tools: [login],
        middleware: [
          { name: 'guard', ...guard },
          consoleLogger({ console: { error: log, info: log, debug: log } }),
          { name: 'model', onError: ({ seam }) => (seam === 'model' ? 'retry' : undefined) },
          ...middleware,
        ],
      });
      const { events, result } = await collect(agent.stream('hi'));
      expect(result?.status).toBe('done');
      const custom = events.filter(({ type }) => type === 'custom');
      return { lines, custom, changes: result!.changes, events };
    }
    const judges: Partial<Middleware> = { guard: { on: ['tool-result'], find: find(/SECRET/g) } };

    it.each<[string, string, Middleware]>([
      [
        'onError',
        'retry after: ECONNRESET',
        { onError: ({ attempt }) => (attempt < 2 ? 'retry' : undefined) },
      ],
      [
        'a layer that passes on what it caught in words of its own',
        'wrapTool failed for login: Error',
        {
          wrapTool: (_, next) =>
            next().catch((error) => {
              throw new Error(`again: ${error.message}`);
            }),
        },
      ],
      [
        'a layer that fails open',
        'wrapModel failed and was skipped: ECONNRESET',
        { onFail: 'open', wrapModel: fails },
      ],
      [
        'a hook of a layer',
        'beforeTool failed and was skipped: ECONNRESET',
        { onFail: 'open', beforeTool: fails },
      ],
      [
        'a rule',
        'shouldStopAfterTurn failed and was skipped: ECONNRESET',
        { onFail: 'open', shouldStopAfterTurn: fails },
      ],
      [
        'a guard',
        'failed and was skipped: ECONNRESET',
        { onFail: 'open', guard: { on: ['output'], find: fails } },
      ],
      ['afterRun', 'afterRun failed: ECONNRESET', { onFail: 'open', afterRun: fails }],
    ])('show only the kind of an error if anything is guarded: %s', async (_, what, middleware) => {
      const { lines, changes, events } = await told([{ name: 'one', ...middleware }], judges);
      expect(changes).toContainEqual({ turn: expect.any(Number), by: 'one', what });
      expect(JSON.stringify([events, lines])).not.toMatch(SECRET);
      expect(lines.join()).toContain('login: failed: ');
    });

    it('show only the kind in the events of built-in middleware, and the message if nothing is guarded', async () => {
      const box = () => [
        retry({ on: 'tool', attempts: 2, minDelayMs: 0, maxDelayMs: 0 }),
        fallback({ models: [scriptedModel([toolCalls({ name: 'login' }), 'end'])], sticky: true }),
      ];
      const errors = async (guard: Partial<Middleware>) => {
        const { custom, events } = await told(box(), guard);
        return { told: custom.map((event) => (event as { data: { error: string } }).data.error), events };
      };
      const guarded = await errors(judges);
      expect(guarded.told).toEqual(['ECONNRESET', 'ECONNRESET']);
      expect(JSON.stringify(guarded.events)).not.toMatch(SECRET);
      const { message } = failure();
      expect((await errors({ onRunEnd: () => {} })).told).toEqual([message, message]);
    });
  });
});

describe('deltas since the last reset concatenate to the final message', () => {
  it('text, thinking and calls with ids that repeat or are missing, with and without guards, with retries', async () => {
    const echo = tool({ name: 'echo', description: 'Echoes.', input: z.any(), execute: () => 'ok' });
    const part = fc.oneof(
      texts.map((text): ModelPart => ({ type: 'text', text })),
      texts.map((text): ModelPart => ({ type: 'thinking', text })),
      fc
        .constantFrom('', 'a', 'b')
        .map((id): ModelPart => ({ type: 'tool-call', id, name: 'echo', arguments: '{"q":"12 SECRET"}' })),
    );
    const answers = fc.array(part, { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(answers, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        fc.subarray(['output', 'thinking', 'tool-args'] as const),
        async (turns, fails, on) => {
          const script = turns.flatMap((parts) =>
            fails ? [failWith(new Error('cut'), ...parts), chunks(...parts)] : [chunks(...parts)],
          );
          const again: Middleware = { name: 'again', wrapModel: (_, next) => next().catch(() => next()) };
          const guards: Middleware[] =
            on.length > 0
              ? [{ name: 'guard', guard: { on: [...on], hold: window(8), find: find(/SECRET|12/g) } }]
              : [];
          const agent = new Agent({
            model: scriptedModel([...script, 'end', 'end'], { repeat: true }),
            tools: [echo],
            middleware: [again, ...guards],
            limits: { turns: turns.length },
          });
          const { events } = await collect(agent.stream('hi'));
          checkDeltas(events);
          const ids = events.flatMap((one) =>
            one.type === 'message_end' && one.message?.role === 'assistant'
              ? one.message.content.flatMap((block) => (block.type === 'tool-call' ? block.id : []))
              : [],
          );
          expect(new Set(ids).size).toBe(ids.length);
        },
      ),
      { numRuns: 80 },
    );
  });
});
