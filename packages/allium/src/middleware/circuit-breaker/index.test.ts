import { Agent, defineMiddleware, tool } from 'allium';
import { type CircuitBreakerOptions, circuitBreaker } from 'allium/middleware/circuit-breaker';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import {
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
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(({ clock }) => circuitBreaker({ clock }), { name: 'circuit-breaker', describe, it });
testMiddleware(({ clock }) => circuitBreaker({ clock, failures: 1 }), {
  name: 'circuit-breaker that opens at once',
  scenarios: [{ name: 'a provider that is down', answers: [failWith(status(503), 'Hel')] }],
  skip: { 'no-shared-state': 'that a model is down is true for every run' },
  describe,
  it,
});
testMiddleware(({ clock }) => circuitBreaker({ clock, on: 'tool', failures: 10 }), {
  name: 'circuit-breaker of tools',
  describe,
  it,
});

function status(code: number): Error {
  return Object.assign(new Error(`status ${code}`), { status: code });
}

const down = failWith(status(503));
const refusedByModel = failWith(status(400));

function setup(script: readonly Script[], options: CircuitBreakerOptions = {}) {
  const clock = fakeClock();
  const model = scriptedModel(script);
  const agent = new Agent({
    model,
    clock,
    middleware: [circuitBreaker({ failures: 2, cooldownMs: 1000, ...options })],
  });
  /** Runs as often as told; the answers and the codes of the errors. */
  const ends = async (count: number) => {
    const all: string[] = [];
    for (let i = 0; i < count; i++)
      all.push(
        await agent.run('hi').then(
          ({ text: answer }) => answer,
          ({ code }) => code,
        ),
      );
    return all;
  };
  return { agent, clock, model, ends };
}

describe('circuit-breaker', () => {
  it('opens after failures in a row and then fails at once, without a call', async () => {
    const { ends, model } = setup([down, down]);
    expect(await ends(4)).toEqual(['MODEL_ERROR', 'MODEL_ERROR', 'CIRCUIT_OPEN', 'CIRCUIT_OPEN']);
    expect(model.requests).toHaveLength(2);
  });

  it('opens after five failures unless told otherwise', async () => {
    const model = scriptedModel([down], { repeat: true });
    const agent = new Agent({ model, middleware: [circuitBreaker()] });
    for (let i = 0; i < 8; i++) await agent.run('hi').catch(() => {});
    expect(model.requests).toHaveLength(5);
  });

  it('says what opened it and when to come back', async () => {
    const { agent, clock, ends } = setup([down, down]);
    await ends(2);
    await clock.advance(300);
    const error = await agent.run('hi').catch((thrown) => thrown);
    expect(error.cause).toMatchObject({
      code: 'CIRCUIT_OPEN',
      message: 'The circuit of "test/scripted" is open. Try again in 700 ms. The last failure: status 503',
      data: { key: 'test/scripted', retryAfterMs: 700 },
      cause: { status: 503 },
    });
  });

  it('starts counting again after a success', async () => {
    const { ends, model } = setup([down, 'ok', down, 'ok', down, down]);
    await ends(7);
    expect(model.requests).toHaveLength(6);
  });

  it('forgets failures after windowMs', async () => {
    const { ends, clock, model } = setup([down, down, down], { windowMs: 100 });
    await ends(1);
    await clock.advance(100);
    expect(await ends(3)).toEqual(['MODEL_ERROR', 'MODEL_ERROR', 'CIRCUIT_OPEN']);
    expect(model.requests).toHaveLength(3);
  });

  it('lets one call try after the cooldown, and closes when it works', async () => {
    const { ends, clock } = setup([down, down, 'ok', down, 'ok']);
    await ends(2);
    await clock.advance(999);
    expect(await ends(1)).toEqual(['CIRCUIT_OPEN']);
    await clock.advance(1);
    expect(await ends(3)).toEqual(['ok', 'MODEL_ERROR', 'ok']);
  });

  it('stays open for another cooldown when the try fails', async () => {
    const { ends, clock } = setup([down, down, down, 'ok']);
    await ends(2);
    await clock.advance(1000);
    expect(await ends(2)).toEqual(['MODEL_ERROR', 'CIRCUIT_OPEN']);
    await clock.advance(999);
    expect(await ends(1)).toEqual(['CIRCUIT_OPEN']);
    await clock.advance(1);
    expect(await ends(1)).toEqual(['ok']);
  });

  it('lets only one of many concurrent calls try', async () => {
    const { agent, ends, clock, model } = setup([
      down,
      down,
      { parts: ['tick', { type: 'text', text: 'ok' }, { type: 'finish', reason: 'stop' }] },
    ]);
    await ends(2);
    await clock.advance(1000);
    const runs = await Promise.allSettled(Array.from({ length: 100 }, () => agent.run('hi')));
    expect(runs.map((run) => (run.status === 'fulfilled' ? 'ok' : run.reason.code))).toEqual([
      'ok',
      ...Array(99).fill('CIRCUIT_OPEN'),
    ]);
    expect((runs[1] as PromiseRejectedResult).reason.cause.message).toContain('Another call is trying it.');
    expect(model.requests).toHaveLength(3);
  });

  it('lets another call try when the one that tried was aborted', async () => {
    const { agent, ends, clock } = setup([down, down, hang('Hel'), 'ok']);
    await ends(2);
    await clock.advance(1000);
    const abort = new AbortController();
    const run = agent.run('hi', { signal: abort.signal }).catch(({ code }) => code);
    await clock.advance(0);
    expect(await ends(1)).toEqual(['CIRCUIT_OPEN']);
    abort.abort();
    expect(await run).toBe('ABORTED');
    expect(await ends(1)).toEqual(['ok']);
  });

  it('closes when a trial call fails with an error that does not count', async () => {
    const { ends, clock } = setup([down, down, refusedByModel, 'ok']);
    await ends(2);
    await clock.advance(1000);
    expect(await ends(2)).toEqual(['MODEL_ERROR', 'ok']);
  });

  it('ignores calls that began before it opened', async () => {
    const clock = fakeClock();
    const gate: (() => void)[] = [];
    let calls = 0;
    const model = {
      provider: 'test',
      id: 'gated',
      async *stream() {
        const call = ++calls;
        if (call === 1 || call === 2) await new Promise<void>((resolve) => gate.push(resolve));
        if (call === 1) {
          yield { type: 'text' as const, text: 'late' };
          yield { type: 'finish' as const, reason: 'stop' as const };
          return;
        }
        throw status(503);
      },
    };
    const agent = new Agent({
      model,
      clock,
      middleware: [circuitBreaker({ failures: 2, cooldownMs: 1000 })],
    });
    const early = [agent.run('hi'), agent.run('hi').catch(() => {})];
    await clock.advance(0);
    for (let i = 0; i < 2; i++) await agent.run('hi').catch(() => {});
    await clock.advance(500);
    for (const open of gate) open();
    await Promise.all(early);
    await expect(agent.run('hi')).rejects.toMatchObject({
      code: 'CIRCUIT_OPEN',
      cause: { data: { retryAfterMs: 500 } },
    });
    expect(calls).toBe(4);
  });

  describe('does not count', () => {
    it('errors of the request', async () => {
      const { ends } = setup([refusedByModel, refusedByModel, refusedByModel, 'ok']);
      expect((await ends(4)).at(-1)).toBe('ok');
    });

    it('stops and aborts', async () => {
      const clock = fakeClock();
      const model = scriptedModel([hang(), hang(), hang(), 'ok']);
      const breaker = circuitBreaker({ failures: 1, failsOn: () => true });
      const agent = new Agent({ model, clock, middleware: [breaker] });
      for (let i = 0; i < 3; i++) {
        const abort = new AbortController();
        const run = agent.run('hi', { signal: abort.signal }).catch(() => {});
        await clock.advance(0);
        abort.abort();
        await run;
      }
      const stop = defineMiddleware({ name: 'stop', beforeModel: (ctx) => ctx.stop() });
      await new Agent({ model, clock, middleware: [breaker, stop] }).run('hi');
      expect((await agent.run('hi')).text).toBe('ok');
    });

    it('errors for which failsOn is false, instead of the built-in rule', async () => {
      const { ends } = setup([down, down, down, refusedByModel, refusedByModel], {
        failsOn: (error) => (error as { status: number }).status === 400,
      });
      expect(await ends(6)).toEqual([...Array(5).fill('MODEL_ERROR'), 'CIRCUIT_OPEN']);
    });

    it('errors for which an async failsOn is false', async () => {
      const { ends } = setup([down, down, down, refusedByModel, refusedByModel], {
        failsOn: async (error) => (error as { status: number }).status === 400,
      });
      expect(await ends(6)).toEqual([...Array(5).fill('MODEL_ERROR'), 'CIRCUIT_OPEN']);
    });

    it('a failsOn that throws: it fails the run, not the process', async () => {
      const { ends } = setup([down, down, 'ok'], {
        failures: 1,
        failsOn: () => Promise.reject(new Error('no idea')),
      });
      expect(await ends(3)).toEqual(['MIDDLEWARE_ERROR', 'MIDDLEWARE_ERROR', 'ok']);
    });
  });

  it('has a circuit for each model', async () => {
    const breaker = circuitBreaker({ failures: 1 });
    const [a, b] = ['a', 'b'].map(
      (id) => new Agent({ model: scriptedModel([id === 'a' ? down : 'ok'], { id }), middleware: [breaker] }),
    );
    await a!.run('hi').catch(() => {});
    await expect(a!.run('hi')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    expect((await b!.run('hi')).text).toBe('ok');
  });

  it('has a circuit for each tool, and the model is told', async () => {
    const calls: string[] = [];
    const make = (name: string, fails: boolean) =>
      tool({
        name,
        description: name,
        input: z.object({}),
        execute() {
          calls.push(name);
          if (fails) throw new Error('disk full');
          return 'fine';
        },
      });
    const model = scriptedModel([
      toolCalls({ name: 'save' }),
      toolCalls({ name: 'save', id: 'x' }, { name: 'load', id: 'y' }),
      'done',
    ]);
    const agent = new Agent({
      model,
      tools: [make('save', true), make('load', false)],
      middleware: [circuitBreaker({ on: 'tool', failures: 1 })],
    });
    const { messages } = await agent.run('hi');
    expect(calls).toEqual(['save', 'load']);
    expect(JSON.stringify(messages.filter(({ role }) => role === 'tool')[1]?.content)).toContain(
      'The last failure: disk full',
    );
  });

  it('counts the failures of a sub-agent, whose call returns them', async () => {
    const clerk = scriptedModel([down], { repeat: true });
    const call = toolCalls({ name: 'clerk', args: { prompt: 'go' } });
    const agent = new Agent({
      model: scriptedModel([call, call, call, 'done']),
      tools: [new Agent({ name: 'clerk', model: clerk }).asTool({ name: 'clerk', description: '' })],
      middleware: [circuitBreaker({ on: 'tool', failures: 2 })],
    });
    const { messages } = await agent.run('hi');
    expect(clerk.requests).toHaveLength(2);
    expect(JSON.stringify(messages.at(-2)!.content)).toContain('The circuit of \\"clerk\\" is open.');
  });

  it('reports every change of the circuit in events', async () => {
    const { agent, clock, ends } = setup([down, down, 'ok']);
    await ends(1);
    const states = async () =>
      (await collect(agent.stream('hi'))).events.flatMap((event) =>
        event.type === 'custom' ? [event.data] : [],
      );
    expect(await states()).toEqual([{ key: 'test/scripted', state: 'open' }]);
    await clock.advance(1000);
    expect(await states()).toEqual(['half-open', 'closed'].map((state) => ({ key: 'test/scripted', state })));
  });

  describe('with fallback', () => {
    const agents = () => {
      const clock = fakeClock();
      const a = scriptedModel([failWith(status(503), 'Hel'), down, text('back')], { id: 'a' });
      const b = scriptedModel(['spare'], { id: 'b', repeat: true });
      const middleware = [fallback({ models: [b] }), circuitBreaker({ failures: 2, cooldownMs: 1000 })];
      return { clock, a, b, agent: new Agent({ model: a, clock, middleware }) };
    };

    it('goes to the next model without a call while the circuit is open, and back after it closed', async () => {
      const { agent, clock, a, b } = agents();
      for (let i = 0; i < 5; i++) expect((await agent.run('hi')).text).toBe('spare');
      expect([a.requests.length, b.requests.length]).toEqual([2, 5]);
      await clock.advance(1000);
      expect((await agent.run('hi')).text).toBe('back');
    });

    it('shows the same streamed', async () => {
      const { agent } = agents();
      for (let i = 0; i < 3; i++)
        expect([...(await collect(agent.stream('hi'))).shown.values()]).toEqual(['spare']);
    });
  });

  describe('with retry', () => {
    it('inside, counts attempts and ends the retries when it opens', async () => {
      const clock = fakeClock();
      const model = scriptedModel([down], { repeat: true });
      const agent = new Agent({
        model,
        clock,
        middleware: [retry({ attempts: 10, clock }), circuitBreaker({ failures: 2 })],
      });
      const run = agent.run('hi').catch((error) => error);
      await clock.advance(100_000);
      expect(await run).toMatchObject({ code: 'CIRCUIT_OPEN' });
      expect(model.requests).toHaveLength(2);
    });

    it('outside, counts calls whose retries were used up', async () => {
      const clock = fakeClock();
      const model = scriptedModel([down], { repeat: true });
      const agent = new Agent({
        model,
        clock,
        middleware: [circuitBreaker({ failures: 2 }), retry({ attempts: 3, clock, minDelayMs: 0 })],
      });
      for (let i = 0; i < 3; i++) {
        const run = agent.run('hi').catch(() => {});
        await clock.advance(10_000);
        await run;
      }
      expect(model.requests).toHaveLength(6);
    });
  });

  describe('with a guard that asks the same model', () => {
    const guarded = (script: readonly Script[]) => {
      const clock = fakeClock();
      const model = scriptedModel(script);
      const asking = defineMiddleware({
        name: 'asking',
        guard: {
          on: ['request'],
          judge: async (_, { context }) => {
            await context.generate(model, { messages: 'May it?' });
            return { type: 'allow' };
          },
        },
      });
      const breaker = circuitBreaker({ failures: 2, cooldownMs: 1000 });
      const agent = new Agent({ model, clock, middleware: [asking, breaker] });
      const end = () =>
        agent.run('hi').then(
          ({ text: answer }) => answer,
          ({ code }) => code,
        );
      return { agent, clock, model, end };
    };

    it('lets the question through while the call tries, and closes', async () => {
      const { agent, clock, model, end } = guarded([down, down, 'yes', 'hello', 'yes', 'again']);
      expect([await end(), await end()]).toEqual(['GUARD_FAILED', 'GUARD_FAILED']);
      await clock.advance(1000);
      const { events, result } = await collect(agent.stream('hi'));
      expect(result?.text).toBe('hello');
      const states = events.flatMap((event) => (event.type === 'custom' ? [event.data] : []));
      expect(states.map((data) => (data as { state: string }).state)).toEqual(['half-open', 'closed']);
      expect(await end()).toBe('again');
      expect(model.requests).toHaveLength(6);
    });

    it('opens again when the question fails, and others are refused meanwhile', async () => {
      const { clock, model, end } = guarded([down, down, down, 'yes', 'hello']);
      await end();
      await end();
      await clock.advance(1000);
      expect(await Promise.all([end(), end()])).toEqual(['GUARD_FAILED', 'CIRCUIT_OPEN']);
      expect(await end()).toBe('CIRCUIT_OPEN');
      expect(model.requests).toHaveLength(3);
      await clock.advance(1000);
      expect(await end()).toBe('hello');
    });
  });

  it.each([
    [{ failures: 0 }, 'Expected `failures` to be an integer ≥ 1, got 0.'],
    [{ windowMs: 0 }, 'Expected `windowMs` to be a finite number ≥ 1, got 0.'],
    [{ cooldownMs: '30s' }, 'Expected `cooldownMs` to be a finite number ≥ 1, got "30s".'],
    [{ on: 'run' }, "Expected `on` to be 'model' or 'tool', got \"run\"."],
    [{ key: 'model' }, 'Expected `key` to be a function, got "model".'],
    [{ failsOn: [503] }, 'Expected `failsOn` to be a function or a class of errors, got [503].'],
    [{ clock: 5 }, 'Expected `clock` to be an object with now(), setTimer(), got 5.'],
    [{ failure: 3 }, 'Unknown option `failure` of circuitBreaker(). Did you mean `failures`?'],
    [5, 'Expected `options` to be an object with failures,'],
  ])('refuses %j', (options, message) => {
    expect(() => circuitBreaker(options as never)).toThrow(message);
  });
});
