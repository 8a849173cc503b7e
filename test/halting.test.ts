/** After a stop, a suspension or an abort nothing begins any more, and whoever waits to begin stops waiting. */
import {
  Agent,
  type AgentOptions,
  type Context,
  type Middleware,
  type Model,
  memoryStore,
  StopRun,
  type ToolContext,
  textOf,
  tool,
} from 'allium';
import { concurrency } from 'allium/middleware/concurrency';
import { rateLimit } from 'allium/middleware/rate-limit';
import { retry } from 'allium/middleware/retry';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred, expectValidHistory, settle } from './run-checks.js';

const input = z.object({ n: z.number().optional() });
type Execute = (args: { n?: number | undefined }, ctx: ToolContext) => unknown;

const make = (name: string, execute: Execute, more: object = {}) =>
  tool({ name, description: '', input, execute, ...more });

const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));

const results = (messages: readonly { role: string; content: unknown }[]) =>
  messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

/** A model that does the same each time. */
const always = (act: () => ReturnType<typeof text>): Model => ({
  provider: 'test',
  id: 'always',
  stream: (request, options) => scriptedModel([act()]).stream(request, options),
});

/** How a tool ends the run. */
const SIGNALS: Record<string, Execute> = {
  'ctx.stop()': (_, ctx) => ctx.stop('stopped', 'Enough.'),
  'a thrown StopRun': async () => {
    throw new StopRun('stopped', 'Enough.');
  },
  'a swallowed ctx.stop()': (_, ctx) => {
    try {
      ctx.stop('stopped', 'Enough.');
    } catch {
      throw new Error('something else');
    }
  },
  'ctx.suspend()': (_, ctx) => ctx.suspend({ title: 'May I?' }),
};

/** Layers that try again, whatever comes out of the call inside. */
const LOOPS: Record<string, Middleware> = {
  wrapTool: {
    wrapTool: async (_, next) => {
      for (let i = 0; ; i++)
        try {
          return await next();
        } catch (error) {
          if (i === 3) throw error;
        }
    },
  },
  process: {
    seams: ['tool'],
    process: async (_, next) => {
      for (let i = 0; ; i++)
        try {
          return await next();
        } catch (error) {
          if (i === 3) throw error;
        }
    },
  },
  onError: { onError: () => 'retry' },
  'retry()': retry({ on: 'tool', retryOn: () => true, minDelayMs: 0, attempts: 4 }),
};

describe.each(Object.entries(SIGNALS))('after %s of a tool', (_, execute) => {
  it.each(Object.entries(LOOPS))('%s does not run it again', async (_, loop) => {
    let runs = 0;
    let inner = 0;
    const counting = make('ends', (args, ctx) => {
      runs++;
      return execute(args, ctx);
    });
    const further: Middleware = { name: 'further in', beforeTool: () => void inner++ };
    for (const streamed of [false, true]) {
      runs = inner = 0;
      const agent = new Agent({
        model: scriptedModel([calls('ends')]),
        tools: [counting],
        middleware: [{ name: 'loop', ...loop }, further],
      });
      const result = await (streamed ? agent.stream('go').result : agent.run('go'));
      expect(['stopped', 'suspended']).toContain(result.status);
      expect({ runs, inner }).toEqual({ runs: 1, inner: 1 });
    }
  });

  it('it asks no model and starts no sub-agent', async () => {
    let asked = 0;
    const model = always(() => {
      asked++;
      return text('hello');
    });
    const sub = new Agent({ model, name: 'sub' }).asTool({ name: 'sub', description: '' });
    const agent = new Agent({
      model: scriptedModel([calls('ends')]),
      tools: [
        make('ends', async (args, ctx) => {
          try {
            await execute(args, ctx);
          } catch (error) {
            await ctx.generate(model, { messages: 'Hi' }).catch(() => {});
            await Promise.resolve(sub.execute({ prompt: 'Hi' }, ctx as never)).catch(() => {});
            throw error;
          }
        }),
      ],
    });
    const { status } = await agent.run('go');
    expect(['stopped', 'suspended', 'done']).toContain(status);
    // A thrown StopRun is known to the kernel only once it leaves the tool.
    if (execute !== SIGNALS['a thrown StopRun']) expect(asked).toBe(0);
  });
});

/** Two calls: `ends` ends the run when `go` is called, `other` is the one beside it. */
function pair(
  execute: Execute,
  other: Execute,
  middleware: () => readonly Middleware[],
  more: Partial<AgentOptions> & { idempotent?: boolean } = {},
) {
  const start = deferred<void>();
  const { idempotent = false, ...options } = more;
  const clock = fakeClock();
  const make2 = (script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({
      model: scriptedModel(script),
      clock,
      tools: [
        make('ends', async (args, ctx) => {
          await start.promise;
          return execute(args, ctx);
        }),
        make('other', other, { idempotent }),
      ],
      middleware: [...middleware()],
      ...options,
    });
  return {
    agent: make2([calls('other', 'ends'), text('done')]),
    make: make2,
    clock,
    go: () => start.resolve(),
  };
}

const stop: Execute = (_, ctx) => ctx.stop('stopped', 'Enough.');
const suspend: Execute = async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type;

const WAITS: Record<string, Middleware> = {
  'retry()': retry({
    on: 'tool',
    retryOn: () => true,
    minDelayMs: 60_000,
    maxDelayMs: 60_000,
    jitter: 'none',
  }),
  'a loop in wrapTool': {
    wrapTool: async (ctx, next) => {
      for (;;)
        try {
          return await next();
        } catch {
          await aborted(ctx);
        }
    },
  },
  'a loop in process': {
    seams: ['tool'],
    process: async (ctx, next) => {
      for (;;)
        try {
          return await next();
        } catch {
          await aborted(ctx);
        }
    },
  },
  'a wait in onError': {
    onError: async (ctx) => {
      await aborted(ctx);
      return 'retry';
    },
  },
};

/** Waits for ever, or until the signal of the context aborts. */
function aborted({ signal }: Context): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}

describe.each(Object.entries(WAITS))('%s around a call that failed', (_, middleware) => {
  it.each([
    ['waits no longer when another call stops the run', 'before'],
    ['does not begin to wait once another call has stopped the run', 'after'],
  ])('%s', async (_, when) => {
    let runs = 0;
    const fails = deferred<void>();
    const { agent, go } = pair(
      stop,
      async () => {
        runs++;
        await fails.promise;
        throw new Error('busy');
      },
      () => [middleware],
    );
    const running = agent.stream('go').result;
    if (when === 'before') fails.resolve();
    await settle();
    go();
    await settle();
    fails.resolve();
    const result = await running;
    expect(result).toMatchObject({ status: 'stopped', stop: { message: 'Enough.' } });
    expect(results(result.messages)).toEqual(['"other" failed: busy', 'Stopped: Enough.']);
    expect(runs).toBe(1);
    expectValidHistory(result.messages);
  });

  it('stops waiting when another call asks a person; its failure is its result', async () => {
    let runs = 0;
    const store = memoryStore();
    const other = async () => {
      runs++;
      throw new Error('busy');
    };
    const { agent, make, go } = pair(suspend, other, () => [middleware], { store });
    const running = agent.session('s').run('go');
    await settle();
    go();
    const result = await running;
    expect(result.status).toBe('suspended');
    const resumed = await make([text('done')])
      .session('s')
      .resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
    expect(results(resumed.messages)).toEqual(['"other" failed: busy', 'approve']);
    expect([resumed.status, runs]).toEqual(['done', 1]);
  });
});

const QUEUES: Record<string, () => Middleware> = {
  'rateLimit()': () => rateLimit({ limit: 1, perMs: 60_000, scope: 'tool' }),
  'concurrency()': () => concurrency({ max: 1, scope: 'tool' }),
};

describe.each(Object.entries(QUEUES))('a call that waits for its turn with %s', (_, queue) => {
  it('does not begin when the run is stopped', async () => {
    let runs = 0;
    const { make, go } = pair(
      stop,
      () => runs++,
      () => [queue()],
    );
    const result = make([calls('ends', 'other')]).run('go');
    await settle();
    go();
    const { status, messages } = await result;
    expect([status, runs]).toEqual(['stopped', 0]);
    expect(results(messages)).toEqual(['Stopped: Enough.', 'Not run: the run was stopped: Enough.']);
  });

  it.each([true, false])(
    'begins after the answer when another call asks a person (idempotent: %s)',
    async (idempotent) => {
      let runs = 0;
      const store = memoryStore();
      const { make, go, clock } = pair(
        suspend,
        () => `run ${++runs}`,
        () => [queue()],
        { store, idempotent },
      );
      const running = make([calls('ends', 'other')])
        .session('s')
        .run('go');
      await settle();
      go();
      const result = await running;
      expect([result.status, runs]).toEqual(['suspended', 0]);
      const resuming = make([text('done')])
        .session('s')
        .resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
      await settle();
      await clock.advance(60_000);
      expect(results((await resuming).messages)).toEqual(['approve', 'run 1']);
    },
  );
});

it('a tool that runs finishes when another one asks somebody, models and sub-agents of its own included', async () => {
  const store = memoryStore();
  const helper = scriptedModel([text('helped')]);
  const sub = new Agent({ model: scriptedModel([text('from the sub-agent')]), name: 'sub' }).asTool({
    name: 'sub',
    description: '',
  });
  const goOn = deferred<void>();
  const { agent, go } = pair(
    suspend,
    async (_, ctx) => {
      await goOn.promise;
      const answer = await ctx.generate(helper, { messages: 'Help.' });
      const told = (await sub.execute({ prompt: 'Hi' }, ctx as never)) as { content: unknown };
      return `${textOf(answer)}, ${textOf(told as never)}`;
    },
    () => [{ name: 'around', wrapTool: (_, next) => next() }],
    { store },
  );
  const running = agent.session('s').run('go');
  await settle();
  go();
  await settle();
  goOn.resolve();
  const { status, messages } = await running;
  expect(status).toBe('suspended');
  const written = (await store.read('s', 1)).flatMap((entry) =>
    entry.type === 'tool_finished' ? [textOf(entry.message)] : [],
  );
  expect(written).toEqual(['helped, from the sub-agent']);
  expect(messages.length).toBeGreaterThan(0);
});

it('a question that a tool waits for is dropped when another call stops the run, and none is asked after it', async () => {
  const asked: string[] = [];
  const goOn = deferred<void>();
  const { agent, go } = pair(
    stop,
    async (_, ctx) => {
      const first = await ctx.suspend({ title: 'First?' }).catch((error) => error);
      await ctx.suspend({ title: 'Second?' }).catch(() => {});
      throw first;
    },
    () => [],
    {
      onRequest: ({ title }) => {
        asked.push(title!);
        return goOn.promise as never;
      },
    },
  );
  const running = agent.run('go');
  await settle();
  go();
  const { status, messages } = await running;
  expect([status, asked]).toEqual(['stopped', ['First?']]);
  expect(results(messages)).toEqual(['Stopped: Enough.', 'Stopped: Enough.']);
});

it('a stop also holds in a resumed run', async () => {
  const store = memoryStore();
  let runs = 0;
  const { make, go } = pair(
    async (_, ctx) => {
      if ((await ctx.suspend({ title: 'May I?' })).type === 'approve') ctx.stop('stopped', 'Enough.');
    },
    async (_, ctx) => {
      await ctx.suspend({ title: 'May I, too?' });
      runs++;
      throw new Error('busy');
    },
    () => [WAITS['retry()']!],
    { store },
  );
  go();
  const { pending } = await make([calls('other', 'ends')])
    .session('s')
    .run('go');
  const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
  const { status, messages } = await make([]).session('s').resume({ answers });
  expect([status, runs]).toEqual(['stopped', 1]);
  expect(results(messages)).toEqual(['"other" failed: busy', 'Stopped: Enough.']);
});

describe('a sub-agent beside a call that stops the run', () => {
  it('ends at its next step, and its waits at once', async () => {
    let asked = 0;
    const seen = deferred<void>();
    const busy = always(() => {
      asked++;
      seen.resolve();
      throw Object.assign(new Error('busy'), { status: 503 });
    });
    const sub = new Agent({
      model: busy,
      name: 'sub',
      clock: fakeClock(),
      middleware: [retry({ retryOn: () => true, minDelayMs: 1000 })],
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'sub', args: { prompt: 'Hi' } }, { name: 'ends', args: {} })]),
      tools: [
        sub.asTool({ name: 'sub', description: '' }),
        make('ends', async (_, ctx) => {
          await seen.promise;
          await settle();
          ctx.stop('stopped', 'Enough.');
        }),
      ],
    });
    const { status, messages } = await agent.run('go');
    expect([status, asked]).toEqual(['stopped', 1]);
    expect(results(messages)[0]).toContain('Enough.');
    expectValidHistory(messages);
  });
});

describe('at the model', () => {
  it('an attempt beside one that stops the run stops waiting', async () => {
    let calls = 0;
    const waits: Middleware = {
      name: 'waits',
      wrapModel: async (ctx, next) => {
        if (++calls === 1) return aborted(ctx);
        await Promise.resolve();
        return ctx.stop('stopped', 'Enough.') ?? next();
      },
    };
    const hedge: Middleware = {
      name: 'hedge',
      wrapModel: async (_, next) => {
        const [first] = await Promise.allSettled([next(), next()]);
        if (first.status === 'rejected') throw first.reason;
        return first.value;
      },
    };
    const agent = new Agent({ model: scriptedModel([text('never')]), middleware: [hedge, waits] });
    expect(await agent.run('go')).toMatchObject({ status: 'stopped', stop: { by: 'waits' } });
  });

  it('model calls of a hook side by side: one that stops the run ends the waits of the others', async () => {
    let asked = 0;
    const helper = always(() => {
      asked++;
      throw new Error('busy');
    });
    const asks: Middleware = {
      name: 'asks',
      transformContext: async (messages, ctx) => {
        await Promise.allSettled([1, 2, 3].map(() => ctx.generate(helper, { messages: 'Hi' })));
        return messages;
      },
    };
    const stops: Middleware = {
      name: 'stops',
      onError: async (ctx) => {
        if (asked === 3 && ctx.attempt === 1 && ++asked) {
          await settle();
          ctx.stop('stopped', 'Enough.');
        }
      },
    };
    const agent = new Agent({
      model: scriptedModel([text('never')]),
      clock: fakeClock(),
      middleware: [asks, retry({ retryOn: () => true, minDelayMs: 60_000, maxDelayMs: 60_000 }), stops],
    });
    expect(await agent.run('go')).toMatchObject({ status: 'stopped', stop: { message: 'Enough.' } });
    expect(asked).toBe(4);
  });

  it('hooks further in do not begin, and no model is asked afterwards', async () => {
    const begun: string[] = [];
    const further: Middleware = {
      name: 'further in',
      beforeRun: () => void begun.push('beforeRun'),
      wrapRun: (_, next) => {
        begun.push('wrapRun');
        return next();
      },
      beforeModel: () => void begun.push('beforeModel'),
    };
    const helper = always(() => {
      begun.push('generate');
      return text('hello');
    });
    for (const seam of ['run', 'model'] as const) {
      const outer: Middleware = {
        name: 'outer',
        seams: [seam],
        process: async (ctx, next) => {
          try {
            ctx.stop('stopped', 'Enough.');
          } catch {
            // Swallowed.
          }
          await ctx.generate(helper, { messages: 'Hi' }).catch(() => {});
          return next() as never;
        },
        afterRun: async (ctx) => {
          await ctx.generate(helper, { messages: 'Hi' }).catch(() => {});
        },
      };
      const agent = new Agent({ model: scriptedModel([text('never')]), middleware: [outer, further] });
      const result = await agent.run('go');
      expect(result).toMatchObject({ status: 'stopped', stop: { message: 'Enough.', by: 'outer' } });
    }
    expect(begun).toEqual(['beforeRun', 'wrapRun']);
  });
});
