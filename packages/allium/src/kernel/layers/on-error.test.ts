// onError: what becomes of a failed call.

import { Agent, attribution, defineState, type Middleware, type Model, memoryStore } from 'allium';
import { failWith, scriptedModel, text } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';
import { CALL_SEAMS, HANG, layerAt, trial } from '../../../../../test/seams.js';

const errors = (count: number): Error[] =>
  Array.from({ length: count }, (_, i) => new Error(`failure ${i + 1}`));

describe.each(CALL_SEAMS)('onError at the %s seam', (seam) => {
  const catching = (name: string, onError: Middleware['onError'] & {}): Middleware => ({
    name,
    seams: [seam],
    onError,
  });

  it("calls inward again on 'retry', with the context and the error", async () => {
    const asked: unknown[] = [];
    const inside = errors(2);
    const one = trial(
      seam,
      [
        catching('retry', (ctx, error) => {
          asked.push([ctx.seam, ctx.attempt, error]);
          return 'retry';
        }),
      ],
      [...inside, 'third'],
    );
    const { text: answer, result } = await one.run();
    expect(answer).toBe('third');
    expect(asked).toEqual([
      [seam, 1, inside[0]],
      [seam, 2, inside[1]],
    ]);
    expect(result.changes.map(({ what }) => what)).toEqual([
      'retry after: failure 1',
      'retry after: failure 2',
    ]);
  });

  it('asks inner ones first; void rethrows outward as the same object', async () => {
    const asked: unknown[] = [];
    const inside = new Error('inside');
    const voicing = (name: string) => catching(name, (_, error) => void asked.push([name, error]));
    const { cause, failed } = await trial(seam, [voicing('outer'), voicing('inner')], [inside]).run();
    expect(failed).toBe(true);
    expect(asked).toEqual([
      ['inner', inside],
      ['outer', inside],
    ]);
    if (seam === 'model') expect(cause).toBe(inside);
  });

  it("makes the error final on 'fail': outer ones are not asked", async () => {
    const outer = vi.fn();
    for (const thrown of [new Error('inside'), 'just text']) {
      const throwing = layerAt(seam, 'throwing', {
        wrap() {
          throw thrown;
        },
      });
      const { failed } = await trial(seam, [
        catching('outer', outer),
        catching('inner', () => 'fail'),
        throwing,
      ]).run();
      expect(failed).toBe(true);
    }
    expect(outer).not.toHaveBeenCalled();
  });

  it("does not remember 'fail' for another call that throws the same object", async () => {
    const shared = new Error('shared');
    await trial(seam, [catching('failing', () => 'fail')], [shared]).run();
    expect(attribution(shared)?.final).toBe(true);
    const one = trial(seam, [catching('retry', () => 'retry')], [shared, 'ok']);
    expect((await one.run()).text).toBe('ok');
  });

  it('catches errors from inside its own layer only, not those of its own wrap', async () => {
    const log: string[] = [];
    const both: Middleware = {
      ...layerAt(seam, 'both', {
        async wrap(_, next) {
          log.push('wrap in');
          await next();
          log.push('wrap out');
        },
      }),
      seams: [seam],
      onError: () => {
        log.push('onError');
        return 'retry';
      },
    };
    expect((await trial(seam, [both], [...errors(1), 'ok']).run()).text).toBe('ok');
    expect(log).toEqual(['wrap in', 'onError', 'wrap out']);
  });

  it('fails with its own error when it throws, or is skipped when it fails open', async () => {
    const own = new Error('own');
    const throwing = (onFail: 'open' | 'closed'): Middleware => ({
      ...catching('throwing', () => {
        throw own;
      }),
      onFail,
    });
    const inside = new Error('inside');
    expect((await trial(seam, [throwing('closed')], [inside]).run()).text).toContain('own');
    expect(attribution(own)).toEqual({ middleware: 'throwing', hook: 'onError', handling: inside });
    expect((await trial(seam, [throwing('open')], [inside]).run()).text).toContain('inside');
  });

  it('may rethrow the error it was given', async () => {
    const inside = new Error('inside');
    await trial(
      seam,
      [
        catching('rethrowing', (_, error) => {
          throw error;
        }),
      ],
      [inside],
    ).run();
    expect(attribution(inside)).toEqual({ hook: seam, attempts: 1 });
  });

  it('rejects an answer it does not know', async () => {
    const { text: shown } = await trial(seam, [catching('odd', () => 'again' as never)], errors(1)).run();
    expect(shown).toContain(
      `onError of "odd" returned "again". Return 'retry', 'fallback', 'restart', 'fail' or nothing.`,
    );
  });

  it('is not asked once the run is aborted, whatever error follows', async () => {
    const controller = new AbortController();
    const onError = vi.fn(() => 'retry' as const);
    const inner = layerAt(seam, 'inner', {
      wrap() {
        controller.abort();
        throw new Error('connection closed');
      },
    });
    const { agent } = trial(seam, [catching('retry', onError), inner]);
    await expect(agent.run('go', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
    expect(onError).not.toHaveBeenCalled();
  });

  it('is not given the abort of an attempt that was given up', async () => {
    const onError = vi.fn(() => 'retry' as const);
    const hedging = layerAt(seam, 'hedging', { wrap: (_, next) => Promise.race([next(), next()]) });
    const one = trial(seam, [hedging, catching('retry', onError)], [HANG, 'fast']);
    expect((await one.run()).text).toBe('fast');
    expect(onError).not.toHaveBeenCalled();
    expect(one.calls).toBe(2);
  });
});

describe('onError at the model seam', () => {
  const retry = (attempts: number): Middleware => ({
    name: 'retry',
    onError: (ctx) => (ctx.attempt < attempts ? 'retry' : undefined),
  });
  const fallback = (...models: Model[]): Middleware => {
    return {
      name: 'fallback',
      seams: ['model'],
      onError(ctx) {
        if (ctx.seam !== 'model') return;
        const next = models[models.indexOf(ctx.model) + 1];
        if (!next) return;
        ctx.model = next;
        return 'fallback';
      },
    };
  };

  it("calls another model on 'fallback'", async () => {
    const [first, second] = [
      scriptedModel([failWith(new Error('down'))], { id: 'first' }),
      scriptedModel(['ok'], { id: 'second' }),
    ];
    const result = await new Agent({ model: first, middleware: [fallback(second)] }).run('go');
    expect(result.text).toBe('ok');
    expect(result.messages[1]).toMatchObject({ model: 'test/second' });
  });

  it("requires ctx.model to be set for 'fallback'", async () => {
    const inside = new Error('down');
    const { cause } = await trial('model', [{ name: 'lazy', onError: () => 'fallback' }], [inside]).run();
    expect(cause).toMatchObject({
      code: 'INVALID_HOOK_RESULT',
      cause: inside,
      message: expect.stringContaining('without setting ctx.model'),
    });
  });

  it("requires it also where 'fallback' comes with other changes to the request", async () => {
    const inside = new Error('down');
    const lazy: Middleware = {
      name: 'lazy',
      seams: ['model'],
      onError(ctx) {
        if (ctx.seam === 'model') ctx.settings = { temperature: 0 };
        return 'fallback';
      },
    };
    const failing = new Agent({ model: scriptedModel([failWith(inside)]), middleware: [lazy] }).run('go');
    await expect(failing).rejects.toMatchObject({
      code: 'INVALID_HOOK_RESULT',
      message: expect.stringContaining('without setting ctx.model'),
    });
  });

  it("treats 'fallback' to the model that just failed as no opinion: the error goes on", async () => {
    const [first, second] = [new Error('first is down'), new Error('second is down')];
    const spare = scriptedModel([failWith(second)], { id: 'spare', repeat: true });
    const always = (name: string): Middleware => ({
      name,
      seams: ['model'],
      onError(ctx) {
        if (ctx.seam === 'model') ctx.model = spare;
        return 'fallback';
      },
    });
    for (const stack of [[always('one')], [always('outer'), always('inner')]]) {
      const model = scriptedModel([failWith(first)], { id: 'first' });
      const agent = new Agent({ model, middleware: stack });
      await expect(agent.run('go')).rejects.toMatchObject({ code: 'MODEL_ERROR', cause: second });
    }
  });

  it.each([
    ['retry outside fallback', (models: Model[]) => [retry(2), fallback(...models)]],
    ['fallback outside retry', (models: Model[]) => [fallback(...models), retry(2)]],
  ])('composes: exhausted means void, %s', async (_, stack) => {
    const down = () => failWith(new Error('down'));
    const first = scriptedModel([down(), down()], { id: 'first' });
    const second = scriptedModel([down(), down()], { id: 'second' });
    const third = scriptedModel([down(), text('ok')], { id: 'third' });
    const result = await new Agent({ model: first, middleware: stack([first, second, third]) })
      .run('go')
      .catch((error: Error) => error);
    expect([first, second, third].map(({ requests }) => requests.length)).toEqual([2, 2, 2]);
    expect(result).toMatchObject({ text: 'ok' });
  });

  it("starts the turn again at transformContext on 'restart', once per middleware and turn", async () => {
    const transforms: number[] = [];
    const asked: number[] = [];
    const restarting: Middleware = {
      name: 'restarting',
      seams: ['model'],
      transformContext(messages, ctx) {
        transforms.push(ctx.turn);
        return messages;
      },
      onError(ctx) {
        asked.push(ctx.turn);
        return 'restart';
      },
    };
    const inside = errors(2);
    const { text: answer } = await trial('model', [restarting], [inside[0]!, 'ok']).run();
    expect(answer).toBe('ok');
    expect(transforms).toEqual([1, 1]);
    const { cause } = await trial('model', [restarting], inside).run();
    expect(cause).toBe(inside[1]);
    expect(asked).toEqual([1, 1, 1]);
  });

  it('does not commit what was written before a restart', async () => {
    const cell = defineState({ name: 'tries', scope: 'session', initial: 0 });
    const counting: Middleware = {
      name: 'counting',
      state: [cell],
      beforeModel: (ctx) => ctx.state.update(cell, (tries) => tries + 1),
      onError: () => 'restart',
    };
    const store = memoryStore();
    const { agent } = trial('model', [counting], [...errors(1), 'ok'], { store });
    await agent.session('s').run('go');
    expect(
      (await store.read('s', 1)).flatMap((entry) => (entry.type === 'state' ? [entry.value] : [])),
    ).toEqual([1]);
  });

  it('commits what onError itself wrote before a restart, and the next try sees it', async () => {
    const learnt = defineState<readonly string[]>({ name: 'learnt', scope: 'session', initial: [] });
    const seen: (readonly string[])[] = [];
    const learning: Middleware = {
      name: 'learning',
      seams: ['model'],
      state: [learnt],
      transformContext(messages, ctx) {
        seen.push(ctx.state.get(learnt));
        return messages;
      },
      beforeModel: (ctx) => ctx.state.update(learnt, (all) => [...all, 'asked']),
      onError(ctx, error) {
        ctx.state.update(learnt, (all) => [...all, (error as Error).message]);
        return 'restart';
      },
    };
    const [failure] = errors(1);
    const store = memoryStore();
    const { agent } = trial('model', [learning], [failure!, 'ok'], { store });
    await agent.session('s').run('go');
    expect(seen).toEqual([[], [failure!.message]]);
    const states = (await store.read('s', 1)).filter((entry) => entry.type === 'state');
    expect(states.map(({ value }) => value)).toEqual([[failure!.message, 'asked']]);
  });

  it('commits nothing of onError if there is no turn to start again', async () => {
    const learnt = defineState({ name: 'learnt', scope: 'session', initial: 0 });
    const asking: Middleware = {
      name: 'asking',
      onRunEnd: (ctx) =>
        ctx.generate(scriptedModel([failWith(errors(1)[0]!)]), { messages: 'x' }).then(
          () => [],
          () => {},
        ),
    };
    const learning: Middleware = {
      name: 'learning',
      state: [learnt],
      onError(ctx) {
        ctx.state.set(learnt, 1);
        return 'restart';
      },
    };
    const store = memoryStore();
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [asking, learning], store });
    await agent.session('s').run('go');
    expect((await store.read('s', 1)).filter((entry) => entry.type === 'state')).toEqual([]);
  });
});

describe('onError at the tool seam', () => {
  it.each(['fallback', 'restart'] as const)("rejects '%s', which has no meaning there", async (action) => {
    const { text: shown, result } = await trial(
      'tool',
      [{ name: 'lost', seams: ['tool'], onError: () => action }],
      errors(1),
    ).run();
    expect(shown).toContain(
      `returned "${action}" at the tool seam. There it may return 'retry', 'fail' or nothing.`,
    );
    expect(result.status).toBe('done');
  });
});
