import { type AlliumError, attribution, defineState, type Middleware, memoryStore, textOf } from 'allium';
import { fakeClock } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { answerAt, CALL_SEAMS, HANG, layerAt, type Step, trial } from '../../../../../test/seams.js';

const errors = (count: number): Error[] =>
  Array.from({ length: count }, (_, i) => new Error(`failure ${i + 1}`));

describe.each(CALL_SEAMS)('next() at the %s seam', (seam) => {
  const retrying = (attempts: number) =>
    layerAt(seam, 'retrying', {
      async wrap(_, next) {
        for (let attempt = 1; ; attempt++) {
          try {
            return await next();
          } catch (error) {
            if (attempt === attempts) throw error;
          }
        }
      },
    });

  it("returns that attempt's result and stores it in the context", async () => {
    const same: boolean[] = [];
    const looking = layerAt(seam, 'looking', {
      async wrap(ctx, next) {
        const first = await next();
        same.push(ctx.result === first);
        const second = await next();
        same.push(ctx.result === second, first !== second);
      },
    });
    expect((await trial(seam, [looking], ['one', 'two']).run()).text).toBe('two');
    expect(same).toEqual([true, true, true]);
  });

  it('short-circuits when it is called zero times', async () => {
    for (const wrap of [
      (ctx: any) => {
        ctx.result = answerAt(seam, 'mine');
      },
      () => answerAt(seam, 'mine'),
    ]) {
      const one = trial(seam, [layerAt(seam, 'cache', { wrap })]);
      const { text: answer, result } = await one.run();
      expect(answer).toBe('mine');
      expect(one.calls).toBe(0);
      expect(result.changes).toContainEqual({
        turn: 1,
        by: 'cache',
        what: `answered the ${seam} call itself`,
      });
    }
  });

  it('called again is a retry', async () => {
    const one = trial(seam, [retrying(3)], [...errors(2), 'third']);
    expect((await one.run()).text).toBe('third');
    expect(one.calls).toBe(3);
  });

  it('called several times is sampling: the chosen result goes on', async () => {
    const sampling = layerAt(seam, 'sampling', {
      async wrap(_, next) {
        const results = [await next(), await next(), await next()];
        return results.sort((a, b) => textOf(b).length - textOf(a).length)[0];
      },
    });
    expect((await trial(seam, [sampling], ['aa', 'aaaa', 'a']).run()).text).toBe('aaaa');
  });

  it('called while another is pending is hedging: the loser is aborted through its own signal and awaited', async () => {
    const order: string[] = [];
    const hedging = layerAt(seam, 'hedging', {
      async wrap(_, next) {
        return Promise.race([next(), next()]);
      },
    });
    const inner = layerAt(seam, 'inner', {
      async wrap(ctx, next) {
        try {
          return await next();
        } finally {
          order.push(`${ctx.attempt} ${ctx.signal.aborted ? 'aborted' : 'done'}`);
        }
      },
    });
    const outer = layerAt(seam, 'outer', { after: () => void order.push('outer after') });
    const one = trial(seam, [outer, hedging, inner], [HANG, 'fast']);
    expect((await one.run()).text).toBe('fast');
    expect(one.aborted).toBe(1);
    expect(order).toEqual(['2 done', '1 aborted', 'outer after']);
  });

  it('does not take the late result of an attempt that was given up', async () => {
    let release = (): void => {};
    const stubborn = layerAt(seam, 'stubborn', {
      async wrap(ctx, next) {
        if (ctx.attempt === 2) return next();
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        ctx.metadata.late = true;
        return answerAt(seam, 'late');
      },
    });
    const seen: unknown[] = [];
    const hedging = layerAt(seam, 'hedging', {
      async wrap(ctx, next) {
        const slow = next();
        const fast = await next();
        ctx.signal.addEventListener('abort', () => {});
        slow.then(() => {});
        queueMicrotask(() => queueMicrotask(() => release()));
        return fast;
      },
      after: (ctx) => void seen.push(ctx.metadata.late, textOf(ctx.result)),
    });
    expect((await trial(seam, [hedging, stubborn], ['fast']).run()).text).toBe('fast');
    expect(seen).toEqual([undefined, 'fast']);
  });

  it('does not wait for ever for an attempt that ignores its signal', async () => {
    const clock = fakeClock();
    const deaf = layerAt(seam, 'deaf', {
      wrap: (ctx, next) => (ctx.attempt === 2 ? next() : new Promise(() => {})),
    });
    const hedging = layerAt(seam, 'hedging', { wrap: (_, next) => Promise.race([next(), next()]) });
    const run = trial(seam, [hedging, deaf], ['fast'], { clock, teardownTimeoutMs: 50 }).run();
    await clock.advance(50);
    expect((await run).text).toBe('fast');
    expect(clock.pending).toBe(0);
  });

  it('forks: what a failed attempt wrote is invisible to the next one', async () => {
    const seen: unknown[] = [];
    const writing = layerAt(seam, 'writing', {
      before(ctx) {
        seen.push(ctx.metadata.mark, seam === 'model' ? ctx.systemPrompt : ctx.timeoutMs);
        ctx.metadata.mark = `attempt ${ctx.attempt}`;
        if (seam === 'model') ctx.systemPrompt = 'changed';
        else ctx.timeoutMs = 1;
      },
    });
    await trial(seam, [retrying(2), writing], [...errors(1), 'ok'], { clock: fakeClock() }).run();
    const untouched = seam === 'model' ? '' : undefined;
    expect(seen).toEqual([undefined, untouched, undefined, untouched]);
  });

  it('forks: attempts that overlap do not see each other', async () => {
    const seen: unknown[] = [];
    const hedging = layerAt(seam, 'hedging', {
      wrap: async (_, next) => (await Promise.all([next(), next()]))[0],
    });
    const writing = layerAt(seam, 'writing', {
      async wrap(ctx, next) {
        ctx.metadata.who = ctx.attempt;
        if (seam === 'model') ctx.systemPrompt += ctx.attempt;
        await next();
        seen.push([ctx.attempt, ctx.metadata.who, seam === 'model' ? ctx.systemPrompt : '']);
      },
    });
    await trial(seam, [hedging, writing], ['a', 'b']).run();
    expect(seen).toEqual([
      [1, 1, seam === 'model' ? '1' : ''],
      [2, 2, seam === 'model' ? '2' : ''],
    ]);
  });

  it('takes an override for that attempt only', async () => {
    const seen: unknown[] = [];
    const overriding = layerAt(seam, 'overriding', {
      async wrap(ctx, next) {
        await next(seam === 'model' ? { systemPrompt: 'once' } : { timeoutMs: 7777 });
        await next();
        seen.push(seam === 'model' ? ctx.systemPrompt : ctx.timeoutMs);
      },
    });
    const inner = layerAt(seam, 'inner', {
      before: (ctx) => void seen.push(seam === 'model' ? ctx.systemPrompt : ctx.timeoutMs),
    });
    await trial(seam, [overriding, inner], ['a', 'b'], { clock: fakeClock() }).run();
    expect(seen).toEqual(seam === 'model' ? ['once', '', ''] : [7777, undefined, undefined]);
  });

  it('rejects unknown override keys, naming the nearest one, and calls nothing', async () => {
    const one = trial(seam, [
      layerAt(seam, 'overriding', {
        wrap: (_, next) => next({ [seam === 'model' ? 'mesages' : 'arg']: [] }),
      }),
    ]);
    const { text: shown, failed } = await one.run();
    expect(failed).toBe(true);
    expect(shown).toContain(
      `Unknown option \`${seam === 'model' ? 'mesages' : 'arg'}\` of next() at the ${seam} seam. Did you mean \`${seam === 'model' ? 'messages' : 'args'}\`?`,
    );
    expect(one.calls).toBe(0);
  });

  it('rejects an override that is not an object', async () => {
    const { text: shown } = await trial(seam, [
      layerAt(seam, 'overriding', { wrap: (_, next) => next(5) }),
    ]).run();
    expect(shown).toContain(`next() at the ${seam} seam takes an object of overrides, got 5`);
  });

  it('ignores override keys that are undefined', async () => {
    const wrap = (_: unknown, next: (override: object) => Promise<unknown>) =>
      next({ [seam === 'model' ? 'messages' : 'args']: undefined });
    expect((await trial(seam, [layerAt(seam, 'overriding', { wrap })]).run()).text).toBe('ok');
  });

  it('is called at most 100 times inward in one call, however many layers there are', async () => {
    const endless: Step[] = errors(500);
    for (const layers of [1, 3]) {
      const stack = Array.from({ length: layers }, (_, i) =>
        layerAt(seam, `endless-${i}`, {
          async wrap(_, next) {
            for (;;) {
              try {
                return await next();
              } catch (error) {
                if ((error as AlliumError).code === 'TOO_MANY_ATTEMPTS') throw error;
              }
            }
          },
        }),
      );
      const one = trial(seam, stack, endless);
      const { failed, text: shown } = await one.run();
      expect(failed).toBe(true);
      expect(shown).toContain(`tried to call next() for the 101st time in one ${seam} call`);
      expect(one.calls).toBe(100);
    }
  });

  it('counts retries of onError among the 100', async () => {
    const one = trial(
      seam,
      [{ name: 'stubborn', seams: [seam], onError: () => 'retry' }, retrying(5)],
      errors(500),
    );
    const { text: shown } = await one.run();
    expect(shown).toContain('tried to call next() for the 101st time');
    expect(one.calls).toBe(100);
  });

  describe('returned as it is, by several layers in a row', () => {
    const through = (name: string) => layerAt(seam, name, { wrap: (_, next) => next() });

    it('brings the result to each layer further out', async () => {
      const seen: unknown[] = [];
      const outer = layerAt(seam, 'outer', {
        async wrap(ctx, next) {
          const result = await next();
          seen.push(ctx.result === result);
        },
      });
      const stack = [through('a'), outer, through('b'), through('c')];
      expect((await trial(seam, stack, ['one']).run()).text).toBe('one');
      expect(seen).toEqual([true]);
    });

    it('brings the same error, which can be tried again', async () => {
      const [failure] = errors(1);
      const caught: unknown[] = [];
      const outer = layerAt(seam, 'outer', {
        async wrap(_, next) {
          await next().catch((error: unknown) => caught.push(error));
          return next();
        },
      });
      const one = trial(seam, [outer, through('a'), through('b')], [failure!, 'two']);
      expect((await one.run()).text).toBe('two');
      expect(caught).toEqual([failure]);
      expect(one.calls).toBe(2);
    });

    it('does not hide that an outer layer forgot to await', async () => {
      const forgetful = layerAt(seam, 'forgetful', { wrap: async (_, next) => void next() });
      const { failed, text: shown } = await trial(seam, [forgetful, through('a')], ['one']).run();
      expect(failed).toBe(true);
      expect(shown).toContain('"forgetful" ended while its next() was still pending');
    });
  });

  it('detects a missing await and names the layer', async () => {
    const forgetful = [
      async (_: unknown, next: () => Promise<unknown>) => void next(),
      (_: unknown, next: () => Promise<unknown>) => void next(),
    ];
    for (const wrap of forgetful) {
      const { failed, text: shown } = await trial(seam, [layerAt(seam, 'forgetful', { wrap })]).run();
      expect(failed).toBe(true);
      expect(shown).toContain(
        `wrap${seam === 'model' ? 'Model' : 'Tool'} of "forgetful" ended while its next() was still pending. Write \`await next()\` or \`return next()\`.`,
      );
    }
  });

  it('aborts what a missing await left running', async () => {
    const one = trial(seam, [layerAt(seam, 'forgetful', { wrap: async (_, next) => void next() })], [HANG]);
    expect((await one.run()).failed).toBe(true);
    expect(one.aborted).toBe(1);
  });

  it('refuses to be called after its layer has ended', async () => {
    let late: Promise<unknown> | undefined;
    let kept: (() => Promise<unknown>) | undefined;
    const leaking = layerAt(seam, 'leaking', {
      wrap(_, next) {
        kept = next;
        return next();
      },
    });
    const outer = layerAt(seam, 'outer', {
      after: () => {
        late = kept!();
      },
    });
    const one = trial(seam, [outer, leaking]);
    await one.run();
    await expect(late).rejects.toMatchObject({
      code: 'MISSING_AWAIT',
      message: expect.stringContaining('"leaking" called next() after'),
    });
    expect(one.calls).toBe(1);
  });

  it('reports a swallowed error without a result as NO_RESULT with its cause', async () => {
    const inside = new Error('inside');
    const swallowing = layerAt(seam, 'swallowing', { wrap: (_, next) => next().catch(() => {}) });
    const seen: AlliumError[] = [];
    const outer = layerAt(seam, 'outer', {
      wrap: (_, next) =>
        next().catch((error: AlliumError) => {
          seen.push(error);
          throw error;
        }),
    });
    await trial(seam, [outer, swallowing], [inside]).run();
    expect(seen).toMatchObject([
      {
        code: 'NO_RESULT',
        cause: inside,
        message: expect.stringContaining('"swallowing" swallowed an error'),
      },
    ]);
    expect(attribution(seen[0])).toMatchObject({ middleware: 'swallowing' });
  });

  it('reports a layer that neither called it nor set a result as NO_RESULT', async () => {
    const { text: shown } = await trial(seam, [layerAt(seam, 'idle', { wrap() {} })]).run();
    expect(shown).toContain('"idle" neither called next() nor set a result');
  });

  it('may fail unnoticed while its layer is busy elsewhere: no unhandled rejection', async () => {
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    const busy = layerAt(seam, 'busy', {
      async wrap(_, next) {
        const first = next();
        await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
        return first.catch(() => next());
      },
    });
    expect((await trial(seam, [busy], [...errors(1), 'second']).run()).text).toBe('second');
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
  });

  it('passes errors through as the same object and records who raised it', async () => {
    const inside = new Error('inside');
    const seen: unknown[] = [];
    const looking = (name: string) =>
      layerAt(seam, name, {
        async wrap(_, next) {
          try {
            return await next();
          } catch (error) {
            seen.push(error);
            throw error;
          }
        },
      });
    const { cause } = await trial(seam, [looking('a'), retrying(2), looking('b')], [inside, inside]).run();
    expect(seen).toEqual([inside, inside, inside]);
    if (seam === 'model') expect(cause).toBe(inside);
    expect(attribution(inside)).toEqual({ hook: seam, attempts: 2 });
  });

  it('keeps thrown values that are not errors as they are', async () => {
    const seen: unknown[] = [];
    const outer = layerAt(seam, 'outer', {
      wrap: (_, next) =>
        next().catch((error: unknown) => {
          seen.push(error);
          return answerAt(seam, 'saved');
        }),
    });
    const throwing = layerAt(seam, 'throwing', {
      wrap() {
        throw 'just text';
      },
    });
    expect((await trial(seam, [outer, throwing]).run()).text).toBe('saved');
    expect(seen).toEqual(['just text']);
  });

  it('tells which attempt it is', async () => {
    const seen: number[] = [];
    const inner = layerAt(seam, 'inner', { before: (ctx) => void seen.push(ctx.attempt) });
    await trial(seam, [retrying(3), inner], [...errors(2), 'ok']).run();
    expect(seen).toEqual([1, 2, 3]);
  });

  describe('state of attempts', () => {
    const cell = defineState({ name: 'log', scope: 'session' as const, initial: [] as string[] });
    const stored = async (middleware: Middleware[], steps: Step[]): Promise<unknown> => {
      const store = memoryStore();
      const one = trial(seam, middleware, steps, { store, state: [cell] });
      await one.agent.session('s').run('go');
      const entries = await store.read('s', 1);
      return entries.flatMap((entry) => (entry.type === 'state' ? [entry.value] : []));
    };
    const logging = layerAt(seam, 'logging', {
      async wrap(ctx, next) {
        ctx.state.update(cell, (log: string[]) => [...log, `attempt ${ctx.attempt} of ${log.length}`]);
        return next();
      },
    });

    it('drops the writes of an abandoned attempt', async () => {
      expect(await stored([retrying(2), logging], [...errors(1), 'ok'])).toEqual([['attempt 2 of 0']]);
    });

    it('commits the writes of the attempt whose result was chosen', async () => {
      const choosing = (index: number, derived = false) =>
        layerAt(seam, 'choosing', {
          async wrap(_, next) {
            const results = [await next(), await next(), await next()];
            return derived ? { ...results[index] } : results[index];
          },
        });
      expect(await stored([choosing(0), logging], ['a', 'b', 'c'])).toEqual([['attempt 1 of 0']]);
      expect(await stored([choosing(1), logging], ['a', 'b', 'c'])).toEqual([['attempt 2 of 0']]);
      expect(await stored([choosing(1, true), logging], ['a', 'b', 'c'])).toEqual([['attempt 2 of 0']]);
    });

    it('commits the attempt whose result was returned, even if several returned the same object', async () => {
      let known: unknown;
      const same = layerAt(seam, 'same', {
        async wrap(_, next) {
          known ??= await next();
          return known;
        },
      });
      const choosing = (index: number, overlap: boolean, derived = false) =>
        layerAt(seam, 'choosing', {
          async wrap(_, next) {
            const results = overlap
              ? await Promise.all([next(), next(), next()])
              : [await next(), await next(), await next()];
            return derived ? { ...results[index] } : results[index];
          },
        });
      for (const overlap of [false, true])
        for (const derived of [false, true])
          for (const index of [0, 1, 2]) {
            known = undefined;
            const wanted = [[`attempt ${index + 1} of 0`]];
            const layers = [choosing(index, overlap, derived), logging, same];
            expect(await stored(layers, ['a', 'b', 'c'])).toEqual(wanted);
          }
    });

    it('commits the chosen one of attempts that overlapped, whichever ended last', async () => {
      let release = (): void => {};
      const slowFirst = layerAt(seam, 'slow-first', {
        async wrap(ctx, next) {
          const result = await next();
          if (ctx.attempt === 1)
            await new Promise<void>((resolve) => {
              release = resolve;
            });
          else queueMicrotask(() => release());
          return result;
        },
      });
      const choosing = layerAt(seam, 'choosing', {
        wrap: async (_, next) => (await Promise.all([next(), next()]))[1],
      });
      expect(await stored([choosing, slowFirst, logging], ['a', 'b'])).toEqual([['attempt 2 of 0']]);
    });

    it('keeps what the layer itself wrote, whichever attempt is chosen', async () => {
      const counting = layerAt(seam, 'counting', {
        async wrap(ctx, next) {
          ctx.state.update(cell, (log: string[]) => [...log, 'before']);
          const result = await next().catch(() => next());
          ctx.state.update(cell, (log: string[]) => [...log, 'after']);
          return result;
        },
      });
      expect(await stored([counting, logging], [...errors(1), 'ok'])).toEqual([
        ['before', 'attempt 2 of 1', 'after'],
      ]);
    });

    it('rolls back the writes of a hook that fails open and keeps those of what is inside it', async () => {
      const failing = (hook: 'before' | 'after' | 'wrap') =>
        layerAt(seam, 'failing', {
          onFail: 'open',
          [hook]: async (ctx: any, next?: () => Promise<unknown>) => {
            ctx.state.update(cell, (log: string[]) => [...log, 'too early']);
            await next?.();
            ctx.state.update(cell, (log: string[]) => [...log, 'too late']);
            throw new Error('broken');
          },
        });
      for (const hook of ['before', 'after', 'wrap'] as const) {
        expect(await stored([failing(hook), logging], ['ok'])).toEqual([['attempt 1 of 0']]);
      }
    });
  });
});
