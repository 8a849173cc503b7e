import { Agent, BaseMiddleware, pipeline, type RunContext, textOf } from 'allium';
import { failWith, scriptedModel, text } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';

interface Chat {
  readonly question: string;
  readonly log: string[];
  readonly metadata: Record<string, unknown>;
  result?: string;
}

const chat = (question = 'q'): Chat => ({ question, log: [], metadata: {} });

class RateLimiter {
  calls = 0;
  async process(ctx: Chat, next: () => Promise<void>): Promise<void> {
    if (++this.calls > 2) throw new Error('slow down');
    ctx.log.push('limit');
    await next();
  }
}

class Cache {
  readonly name = 'cache';
  readonly stored = new Map<string, string>();
  async process(ctx: Chat, next: () => Promise<void>): Promise<void> {
    const hit = this.stored.get(ctx.question);
    if (hit !== undefined) {
      ctx.log.push('hit');
      ctx.result = hit;
      return;
    }
    await next();
    this.stored.set(ctx.question, ctx.result!);
    ctx.log.push('stored');
  }
}

const retry = (attempts: number) =>
  async function retrying(ctx: Chat, next: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await next();
      } catch (error) {
        ctx.log.push(`attempt ${attempt} failed`);
        if (attempt === attempts) throw error;
      }
    }
  };

const schemaValidator = {
  async process(ctx: Chat, next: () => Promise<void>): Promise<void> {
    await next();
    ctx.metadata.parsed = JSON.parse(ctx.result!);
  },
};

describe('pipeline() standing alone', () => {
  it('threads layers from the outside in: rate limiter, cache, retry, schema validator', async () => {
    const boxes = pipeline<Chat>([new RateLimiter(), new Cache(), retry(3), schemaValidator]);
    const answers = ['not json', '{"a":1}'];
    const final = vi.fn(async (ctx: Chat) => {
      ctx.result = answers.shift();
    });
    const first = await boxes.execute(chat(), final);
    expect(first).toMatchObject({
      result: '{"a":1}',
      log: ['limit', 'attempt 1 failed', 'stored'],
      metadata: { parsed: { a: 1 } },
    });
    const second = await boxes.execute(chat(), final);
    expect(second).toMatchObject({ result: '{"a":1}', log: ['limit', 'hit'] });
    expect(final).toHaveBeenCalledTimes(2);
    await expect(boxes.execute(chat(), final)).rejects.toThrow('slow down');
  });

  it('returns the context, which layers and final read and write', async () => {
    const ctx = chat();
    expect(
      await pipeline<Chat>([]).execute(ctx, (inner) => {
        inner.result = 'sync';
      }),
    ).toBe(ctx);
    expect(ctx.result).toBe('sync');
  });

  it('passes errors through as the same object', async () => {
    const inside = new Error('inside');
    const seen: unknown[] = [];
    const looking = pipeline<Chat>([
      (_, next) =>
        next().catch((error: unknown) => {
          seen.push(error);
          throw error;
        }),
    ]);
    await expect(
      looking.execute(chat(), () => {
        throw inside;
      }),
    ).rejects.toBe(inside);
    expect(seen).toEqual([inside]);
  });

  it('detects a missing await, names the layer, and has nothing running when it ends', async () => {
    let ended = false;
    const forgetful = pipeline<Chat>([
      async function forgetful(_, next) {
        void next();
      },
    ]);
    const final = async (): Promise<void> => {
      await new Promise((resolve) => setImmediate(resolve));
      ended = true;
    };
    await expect(forgetful.execute(chat(), final)).rejects.toMatchObject({
      code: 'MISSING_AWAIT',
      message: expect.stringContaining('Layer 1 of the pipeline ("forgetful")'),
    });
    expect(ended).toBe(true);
  });

  it('has no unhandled rejection when what nobody awaited fails', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const forgetful = pipeline<Chat>([(_, next) => void next()]);
    await expect(
      forgetful.execute(chat(), async () => Promise.reject(new Error('lost'))),
    ).rejects.toMatchObject({ code: 'MISSING_AWAIT' });
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('lets no layer call inward after it has ended', async () => {
    let late: (() => Promise<void>) | undefined;
    const keeping = pipeline<Chat>([
      async function keeping(_, next) {
        late = next;
        await next();
      },
    ]);
    const final = vi.fn();
    await keeping.execute(chat(), final);
    await expect(late!()).rejects.toMatchObject({
      code: 'MISSING_AWAIT',
      message: expect.stringContaining('("keeping") called next() after it had ended'),
    });
    expect(final).toHaveBeenCalledTimes(1);
  });

  it('nests', async () => {
    const log = (name: string) => (ctx: Chat, next: () => Promise<void>) => {
      ctx.log.push(name);
      return next();
    };
    const ctx = await pipeline<Chat>([log('a'), pipeline([log('b'), log('c')]), log('d')]).execute(
      chat(),
      () => {},
    );
    expect(ctx.log).toEqual(['a', 'b', 'c', 'd']);
  });

  it('runs one pipeline for many contexts at once', async () => {
    const one = pipeline<Chat>([
      async (ctx, next) => {
        ctx.log.push('in');
        await next();
        ctx.log.push('out');
      },
    ]);
    const all = await Promise.all(
      ['a', 'b'].map((question) =>
        one.execute(chat(question), async (ctx) => void ctx.log.push(ctx.question)),
      ),
    );
    expect(all.map(({ log }) => log)).toEqual([
      ['in', 'a', 'out'],
      ['in', 'b', 'out'],
    ]);
  });

  it('refuses anything but a layer before anything runs', async () => {
    expect(() => pipeline(5 as never)).toThrow('Expected a list of layers, got 5');
    expect(() => pipeline([5 as never])).toThrow('Layer 1 of the pipeline is 5');
    const first = vi.fn();
    const mixed = pipeline<Chat>([first, { name: 'agents-only', beforeModel() {} }]);
    await expect(mixed.execute(chat(), () => {})).rejects.toMatchObject({
      code: 'INVALID_MIDDLEWARE',
      message: expect.stringContaining('Layer 2 of the pipeline ("agents-only") has no process(ctx, next)'),
    });
    expect(first).not.toHaveBeenCalled();
    await expect(pipeline<Chat>([]).execute(chat(), undefined as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
  });
});

describe('pipeline() inside an agent', () => {
  class Recording extends BaseMiddleware {
    override readonly name = 'recording';
    constructor(private readonly log: string[]) {
      super();
    }
    override async process(ctx: { seam: string }, next: () => Promise<unknown>): Promise<void> {
      this.log.push(`${ctx.seam} in`);
      await next();
      this.log.push(`${ctx.seam} out`);
    }
  }

  it('is taken as `middleware`: its layers wrap run, model and tool calls', async () => {
    const log: string[] = [];
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: pipeline([new Recording(log)]) });
    await agent.run('go');
    expect(log).toEqual(['run in', 'model in', 'model out', 'run out']);
  });

  it('may hold functions and middleware of any kind, also in nested lists', async () => {
    const log: string[] = [];
    const model = scriptedModel([failWith(new Error('down')), text('ok')]);
    const inner = pipeline([
      async function timing(ctx: RunContext, next: () => Promise<void>) {
        log.push(`timing ${ctx.seam}`);
        await next();
      },
      { name: 'retry', seams: ['model'], onError: () => 'retry' as const },
      {
        name: 'shout',
        afterModel: (ctx) => {
          ctx.response = {
            ...ctx.response!,
            content: [{ type: 'text', text: textOf(ctx.response!).toUpperCase() }],
          };
        },
      },
    ]);
    const agent = new Agent({ model, middleware: [[inner]] });
    expect((await agent.run('go')).text).toBe('OK');
    expect(log).toEqual(['timing run', 'timing model']);
    expect(agent.explain().middleware.map(({ name }) => name)).toEqual(['timing', 'retry', 'shout']);
  });
});
