import { Agent, AlliumError, attribution, defineMiddleware, StopRun, tool } from 'allium';
import { isTransient, type RetryOptions, retry } from 'allium/middleware/retry';
import {
  collect,
  failWith,
  fakeClock,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const status = (code: number, more: object = {}) =>
  Object.assign(new Error(`status ${code}`), { status: code, ...more });

/** An agent on a fake clock whose waits are not random. */
function setup(script: readonly Script[], options: RetryOptions = {}) {
  const clock = fakeClock(Date.parse('2026-01-01T00:00:00Z'));
  const model = scriptedModel(script);
  const agent = new Agent({ model, middleware: [retry({ jitter: 'none', clock, ...options })] });
  return { agent, clock, model };
}

testMiddleware(({ clock }) => retry({ clock }), {
  name: 'retry',
  scenarios: [{ name: 'a provider that is down', answers: [failWith(status(503), 'Hel')] }],
  describe,
  it,
});
testMiddleware(({ clock }) => retry({ clock, retryOn: () => true }), {
  name: 'retry of everything',
  describe,
  it,
});
testMiddleware(({ clock }) => retry({ clock, on: 'tool', retryOn: () => true }), {
  name: 'retry of tools',
  describe,
  it,
});

describe('retry', () => {
  it('calls again after a transient error and returns the good answer', async () => {
    const { agent, clock, model } = setup([failWith(status(503)), text('hello')]);
    const run = agent.run('hi');
    await clock.advance(500);
    expect(await run).toMatchObject({ status: 'done', text: 'hello', turns: 1 });
    expect(model.requests).toHaveLength(2);
    expect(model.requests[1]?.messages).toEqual(model.requests[0]?.messages);
  });

  it('gives up after the last attempt and rethrows the last error as it is', async () => {
    const [first, second, third] = [status(503), status(502), status(500)];
    const { agent, clock, model } = setup([failWith(first), failWith(second), failWith(third)]);
    const run = agent.run('hi').catch((error) => error);
    await clock.advance(10_000);
    const error = await run;
    expect(error).toMatchObject({ code: 'MODEL_ERROR' });
    expect(error.cause).toBe(third);
    expect(attribution(third)).toEqual({ hook: 'model', attempts: 3 });
    expect(model.requests).toHaveLength(3);
    expect(clock.pending).toBe(0);
  });

  it('waits longer each time, up to the longest wait', async () => {
    const options = { attempts: 6, minDelayMs: 100, factor: 3, maxDelayMs: 1000 };
    const script = [...Array.from({ length: 5 }, () => failWith(status(503))), text('hello')];
    const { agent, clock } = setup(script, options);
    const run = collect(agent.stream('hi'));
    await clock.advance(100_000);
    expect(delays(await run)).toEqual([100, 300, 900, 1000, 1000]);
  });

  it.each([() => Number.NaN, () => 2, () => Promise.reject(new Error('no luck'))])(
    'fails the run if the random part is none: %s',
    async (random) => {
      const { agent } = setup([failWith(status(503)), text('hello')], {
        jitter: 'full',
        random: random as never,
      });
      await expect(agent.run('hi')).rejects.toThrow('Expected `random()` to be a number from 0 to 1');
    },
  );

  it('waits a random part of the delay with full jitter', async () => {
    const { agent, clock } = setup([failWith(status(503)), failWith(status(503)), text('hello')], {
      jitter: 'full',
      random: () => 0.25,
    });
    const run = collect(agent.stream('hi'));
    await clock.advance(10_000);
    expect(delays(await run)).toEqual([125, 250]);
  });

  it('does not call before the wait is over', async () => {
    const { agent, clock, model } = setup([failWith(status(503)), text('hello')]);
    const run = agent.run('hi');
    await clock.advance(499);
    expect(model.requests).toHaveLength(1);
    await clock.advance(1);
    expect(model.requests).toHaveLength(2);
    await run;
  });

  it('makes one call only with attempts: 1', async () => {
    const { agent, model } = setup([failWith(status(503))], { attempts: 1 });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
    expect(model.requests).toHaveLength(1);
  });

  it('starts counting again with each model call', async () => {
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'ok' });
    const clock = fakeClock();
    const bad = failWith(status(503));
    const model = scriptedModel([bad, bad, toolCalls({ name: 'look' }), bad, bad, text('done')]);
    const agent = new Agent({ model, tools: [look], middleware: [retry({ clock })] });
    const run = agent.run('look');
    await clock.advance(100_000);
    expect(await run).toMatchObject({ status: 'done', turns: 2 });
  });

  it('takes back what was shown of the failed attempt', async () => {
    const { agent, clock } = setup([failWith(status(529), 'Hel'), text('Good day')]);
    const run = collect(agent.stream('hi'));
    await clock.advance(500);
    const { types, shown, result } = await run;
    expect(types.filter((type) => type.startsWith('message'))).toEqual([
      ...['message_start', 'message_end'],
      ...['message_start', 'message_update', 'message_reset', 'message_update', 'message_end'],
    ]);
    expect([...shown.values()]).toEqual(['Good day']);
    expect(result?.text).toBe('Good day');
  });

  it('resets nothing when nothing was shown', async () => {
    const { agent, clock } = setup([failWith(status(529)), text('Good day')]);
    const run = collect(agent.stream('hi'));
    await clock.advance(500);
    expect((await run).types).not.toContain('message_reset');
  });

  it('retries a stream that broke off without its end', async () => {
    const { agent, clock } = setup([{ parts: [{ type: 'text', text: 'Hel' }] }, text('Hello')]);
    const run = agent.run('hi');
    await clock.advance(500);
    expect((await run).text).toBe('Hello');
  });

  it('makes no further call and leaves no timer when aborted during the wait', async () => {
    const { agent, clock, model } = setup([failWith(status(503)), text('too late')]);
    const abort = new AbortController();
    const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
    await clock.advance(100);
    expect(clock.pending).toBe(1);
    abort.abort(new Error('bye'));
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(model.requests).toHaveLength(1);
  });

  it('says in an event that it waits, why and how long', async () => {
    const { agent, clock } = setup([failWith(status(503)), text('hello')]);
    const run = collect(agent.stream('hi'));
    await clock.advance(500);
    const event = (await run).events.find(({ type }) => type === 'custom');
    expect(event).toMatchObject({
      name: 'retry',
      by: 'retry',
      data: { seam: 'model', attempt: 1, delayMs: 500, error: 'status 503' },
    });
  });

  describe('Retry-After', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '4.838s' }];
    const GOOGLE = JSON.stringify({ error: { code: 429, status: 'RESOURCE_EXHAUSTED', details } }, null, 2);
    it.each<[string, object, number]>([
      ['seconds in a plain object', { headers: { 'Retry-After': '7' } }, 7000],
      ['parts of a second', { headers: { 'retry-after': '1.5' } }, 1500],
      ['Headers', { headers: new Headers({ 'retry-after': '3' }) }, 3000],
      ['milliseconds before seconds', { headers: { 'retry-after-ms': '250', 'retry-after': '9' } }, 250],
      ['a date', { responseHeaders: { 'retry-after': 'Thu, 01 Jan 2026 00:00:09 GMT' } }, 9000],
      ['the headers of its response', { response: { headers: { 'retry-after': '4' } } }, 4000],
      ['a field of the error', { retryAfterMs: 1234 }, 1234],
      ['the headers of its cause', { cause: { headers: { 'retry-after': '5' } } }, 5000],
      ["Google's, in the body of the answer", { responseBody: GOOGLE }, 4838],
      ["Google's, in the details of the error", { errorDetails: [{ retryDelay: '6s' }] }, 6000],
      ["Google's, in the message", { message: `got status: 429. ${GOOGLE}` }, 4838],
      ['a header before the body', { headers: { 'retry-after': '3' }, responseBody: GOOGLE }, 3000],
      ['a date that has passed', { headers: { 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' } }, 500],
      ['nonsense', { headers: { 'retry-after': 'soon' } }, 500],
      ['zero', { headers: { 'retry-after': '0' } }, 500],
    ])('understands %s', async (_, more, expected) => {
      const { agent, clock } = setup([failWith(status(429, more)), text('hello')]);
      const run = collect(agent.stream('hi'));
      await clock.advance(10_000);
      expect(delays(await run)).toEqual([expected]);
    });

    it('is not waited for when it is longer than the longest wait', async () => {
      const error = status(429, { headers: { 'retry-after': '31' } });
      const { agent, clock, model } = setup([failWith(error)]);
      await expect(agent.run('hi')).rejects.toMatchObject({ cause: error });
      expect(model.requests).toHaveLength(1);
      expect(clock.pending).toBe(0);
    });
  });

  describe('says in `changes` why it did not call again', () => {
    const asked = { headers: { 'retry-after': '31' } };
    it.each<[string, unknown, RetryOptions, string]>([
      ['not transient', status(400), {}, 'the error is not transient'],
      ['refused by `retryOn`', status(503), { retryOn: () => false }, '`retryOn` said no'],
      ['no attempt left', status(503), { attempts: 2 }, 'all 2 attempts failed'],
      ['one attempt', status(503), { attempts: 1 }, 'one attempt is all it may make'],
      [
        'too long a wait',
        status(429, asked),
        {},
        'it was asked to wait 31000 ms, longer than `maxDelayMs`, 30000',
      ],
    ])('%s', async (_, error, options, why) => {
      const { agent, clock } = setup([failWith(error), failWith(error)], options);
      const run = agent.run('hi').catch((thrown) => thrown);
      await clock.advance(10_000);
      const { changes } = (await run).result;
      const what = `did not call the model again: ${why} (${(error as Error).message})`;
      expect(changes).toContainEqual({ turn: 1, by: 'retry', what });
    });
  });

  describe('never retries', () => {
    it.each([400, 401, 403, 404, 413, 422])('a status of %i', async (code) => {
      const { agent, model } = setup([failWith(status(code))]);
      await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
      expect(model.requests).toHaveLength(1);
    });

    it('a stop, even when retryOn says yes to everything', async () => {
      const stop = defineMiddleware({ name: 'enough', beforeModel: (ctx) => ctx.stop('stopped', 'Enough.') });
      const model = scriptedModel(['hi']);
      const agent = new Agent({ model, middleware: [retry({ retryOn: () => true }), stop] });
      expect(await agent.run('hi')).toMatchObject({ status: 'stopped', stop: { by: 'enough' } });
      expect(model.requests).toHaveLength(0);
    });

    it('what a guard refused', async () => {
      const clock = fakeClock();
      const guard = defineMiddleware({
        name: 'no',
        guard: { on: ['output'], judge: () => ({ type: 'deny', reason: 'Not that.' }) },
      });
      const model = scriptedModel([text('secret'), text('secret')]);
      const agent = new Agent({ model, middleware: [retry({ clock, retryOn: () => true }), guard] });
      await agent.run('hi').catch(() => {});
      expect(model.requests).toHaveLength(1);
      expect(clock.pending).toBe(0);
    });

    it('an error of a middleware inside it', async () => {
      const broken = defineMiddleware({
        name: 'broken',
        beforeModel() {
          throw new Error('bug');
        },
      });
      const agent = new Agent({ model: scriptedModel([]), middleware: [retry(), broken] });
      await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MIDDLEWARE_ERROR' });
    });
  });

  it('passes an unreadable error on unchanged, and retries it if told to', async () => {
    const { proxy: untouchable, revoke } = Proxy.revocable({}, {});
    revoke();
    const { agent } = setup([failWith(untouchable)]);
    const error = await agent.run('hi').catch((thrown) => thrown);
    expect(error.code).toBe('MODEL_ERROR');
    expect(error.cause === untouchable).toBe(true);
    const told = setup([failWith(untouchable), text('hello')], { retryOn: () => true });
    const run = told.agent.run('hi');
    await told.clock.advance(500);
    expect((await run).text).toBe('hello');
  });

  describe('retryOn', () => {
    it('decides instead of the built-in rule', async () => {
      const { agent, clock } = setup([failWith(new Error('flaky')), text('hello')], {
        retryOn: (error) => (error as Error).message === 'flaky',
      });
      const run = agent.run('hi');
      await clock.advance(500);
      expect((await run).text).toBe('hello');
    });

    class Overloaded extends Error {}
    class Drowned extends Overloaded {}
    // How errors were made before there were classes.
    function Old(this: Error) {}
    Old.prototype = Object.create(Error.prototype);

    it.each([
      ['a class', Overloaded, new Overloaded('no'), new TypeError('no')],
      ['a class, for those of its subclasses', Overloaded, new Drowned('no'), new Error('no')],
      ['Error itself', Error, new Drowned('no'), 'no error'],
      ['a class of the language', TypeError, new TypeError('no'), new Error('no')],
      ['a class made by a function', Old, Reflect.construct(Old, []), new Error('no')],
      ['a class of something else', class Odd {}, 0, new Error('no')],
    ] as const)('may be %s', async (_, retryOn, error, other) => {
      const wanted = typeof error === 'object' ? error : new (retryOn as new () => object)();
      const again = setup([failWith(wanted), 'ok'], { retryOn: retryOn as never });
      const run = again.agent.run('hi');
      await again.clock.advance(1000);
      expect((await run).text).toBe('ok');
      const { agent } = setup([failWith(other), 'ok'], { retryOn: retryOn as never });
      await expect(agent.run('hi')).rejects.toMatchObject({ cause: other });
    });

    it('that throws does not hide the error it was asked about', async () => {
      const real = status(503);
      const { agent } = setup([failWith(real)], {
        retryOn: () => {
          throw new TypeError('x is not a function');
        },
      });
      const error = await agent.run('hi').catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: 'MIDDLEWARE_ERROR',
        message: `The run failed: x is not a function (in onError of "retry", handling: ${real.message})`,
      });
      expect(attribution(error)?.handling).toBe(real);
    });

    it('may be asynchronous and sees the context', async () => {
      const seen: unknown[] = [];
      const { agent } = setup([failWith(status(503))], {
        retryOn: async (_, ctx) => {
          seen.push(ctx.seam, ctx.attempt);
          return false;
        },
      });
      await expect(agent.run('hi')).rejects.toThrow();
      expect(seen).toEqual(['model', 1]);
    });
  });

  describe("on: 'tool'", () => {
    function tools(errors: unknown[]) {
      const clock = fakeClock();
      let calls = 0;
      const fetchIt = tool({
        name: 'fetch_it',
        description: 'Fetches.',
        input: z.object({}),
        idempotent: true,
        execute() {
          calls++;
          if (errors.length > 0) throw errors.shift();
          return 'fetched';
        },
      });
      const model = scriptedModel([toolCalls({ name: 'fetch_it' }), text('done')]);
      const agent = new Agent({ model, tools: [fetchIt], middleware: [retry({ on: 'tool', clock })] });
      return { agent, clock, model, calls: () => calls };
    }

    it('runs the tool again, and the model sees only the good result', async () => {
      const { agent, clock, model, calls } = tools([
        Object.assign(new Error('reset'), { code: 'ECONNRESET' }),
      ]);
      const run = agent.run('go');
      await clock.advance(10_000);
      expect((await run).status).toBe('done');
      expect(calls()).toBe(2);
      expect(model.requests[1]?.messages.at(-1)).toMatchObject({
        isError: false,
        content: [{ text: 'fetched' }],
      });
    });

    it('says in its event which call it tries again', async () => {
      const { agent, clock } = tools([Object.assign(new Error('reset'), { code: 'ECONNRESET' })]);
      const run = collect(agent.stream('go'));
      await clock.advance(10_000);
      const { events } = await run;
      const ended = events.find((event) => event.type === 'tool_execution_end');
      expect(events.find((event) => event.type === 'custom' && event.name === 'retry')).toMatchObject({
        data: { seam: 'tool', tool: 'fetch_it', callId: ended?.toolCall.id, attempt: 1, error: 'reset' },
      });
    });

    it('gives the model the last error when the attempts are used up', async () => {
      const reset = () => Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      const { agent, clock, model, calls } = tools([reset(), reset(), reset()]);
      const run = agent.run('go');
      await clock.advance(10_000);
      expect((await run).status).toBe('done');
      expect(calls()).toBe(3);
      expect(model.requests[1]?.messages.at(-1)).toMatchObject({ isError: true });
      const what = expect.stringMatching(/^did not call ".+" again: all 3 attempts failed \(reset\)$/);
      expect((await run).changes).toContainEqual({ turn: 1, by: 'retry', what });
    });

    it('leaves model errors alone', async () => {
      const model = scriptedModel([failWith(status(503))]);
      const agent = new Agent({ model, middleware: [retry({ on: 'tool' })] });
      await expect(agent.run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
      expect(model.requests).toHaveLength(1);
    });

    it('is a hazard around tools that are not idempotent, and none around those that are', () => {
      const make = (idempotent: boolean) =>
        tool({ name: 'pay', description: 'Pays.', input: z.object({}), idempotent, execute: () => 'paid' });
      const hazards = (idempotent: boolean) =>
        new Agent({
          model: scriptedModel([]),
          tools: [make(idempotent)],
          middleware: [retry({ on: 'tool' })],
        }).explain().hazards;
      expect(hazards(false).map(({ id }) => id)).toEqual(['retry-of-unsafe-tool']);
      expect(hazards(true)).toEqual([]);
    });
  });

  it.each([
    [{ attempts: 0 }, 'Expected `attempts` to be an integer from 1 to 100, got 0.'],
    [{ attempts: 1.5 }, 'Expected `attempts` to be an integer from 1 to 100, got 1.5.'],
    [{ attempts: 101 }, 'Expected `attempts` to be an integer from 1 to 100, got 101.'],
    [{ minDelayMs: -1 }, 'Expected `minDelayMs` to be a finite number ≥ 0, got -1.'],
    [{ minDelayMs: Number.NaN }, 'Expected `minDelayMs` to be a finite number ≥ 0, got NaN.'],
    [
      { minDelayMs: 50, maxDelayMs: 10 },
      'Expected `maxDelayMs` to be a number ≥ `minDelayMs`, which is 50, got 10.',
    ],
    [{ factor: 0.5 }, 'Expected `factor` to be a finite number ≥ 1, got 0.5.'],
    [{ jitter: 'some' }, "Expected `jitter` to be 'full' or 'none', got \"some\"."],
    [{ retryOn: [429] }, 'Expected `retryOn` to be a function or a class of errors, got [429].'],
    [{ on: 'run' }, "Expected `on` to be 'model' or 'tool', got \"run\"."],
    [{ clock: { now: 1 } }, 'Expected `clock` to be an object with now(), setTimer(), got {"now":1}.'],
    [{ random: 0.5 }, 'Expected `random` to be a function, got 0.5.'],
    [{ atempts: 3 }, 'Unknown option `atempts` of retry(). Did you mean `attempts`?'],
    [3, 'Expected `options` to be an object with attempts, '],
  ])('refuses %j', (options, message) => {
    expect(() => retry(options as never)).toThrow(message);
    expect(() => retry(options as never)).toThrow(AlliumError);
  });
});

describe('isTransient', () => {
  const error = (more: object) => Object.assign(new Error('oh'), more);
  const cycle = error({});
  cycle.cause = cycle;
  class APIConnectionTimeoutError extends Error {}

  it.each<[string, unknown]>([
    ['status 408', status(408)],
    ['status 409', status(409)],
    ['status 425', status(425)],
    ['status 429', status(429)],
    ['status 500', status(500)],
    ['status 529', status(529)],
    ['statusCode', error({ statusCode: 503 })],
    ['the status of the response', error({ response: { status: 502 } })],
    ['a status as code', error({ code: 503 })],
    ['a connection that was reset', error({ code: 'ECONNRESET' })],
    ['a stream of HTTP/2 that was reset', error({ code: 'ERR_HTTP2_STREAM_ERROR' })],
    ['a connection that timed out', error({ code: 'ETIMEDOUT' })],
    ['a broken pipe', error({ code: 'EPIPE' })],
    ['a socket of undici', error({ code: 'UND_ERR_SOCKET' })],
    ['a timeout of undici', error({ code: 'UND_ERR_HEADERS_TIMEOUT' })],
    ['a failed fetch without a cause', new TypeError('fetch failed')],
    [
      'a failed fetch with its cause',
      new TypeError('fetch failed', { cause: error({ code: 'ECONNREFUSED' }) }),
    ],
    [
      'a connection lost in the middle',
      new TypeError('terminated', { cause: error({ code: 'UND_ERR_SOCKET' }) }),
    ],
    ['a session of HTTP/2 that has ended', error({ code: 'ERR_HTTP2_INVALID_SESSION' })],
    [
      'a request of HTTP/2 without an answer',
      new Error('Unexpected error: http2 request did not get a response'),
    ],
    ['a connection lost, in the words of a runtime', new Error('Network connection lost.')],
    ['what its runtime calls retryable', error({ retryable: true })],
    ['a stream that a model of Bedrock broke off', error({ name: 'ModelStreamErrorException' })],
    ['a timeout signal', new DOMException('late', 'TimeoutError')],
    ['a timeout of a client', new APIConnectionTimeoutError('Request timed out.')],
    ['a timeout of a tool', new AlliumError('TOOL_TIMEOUT', 'late')],
    ['a stream that broke off', new AlliumError('MODEL_STREAM_CUT', 'cut')],
    [
      'an overloaded provider in the stream',
      error({ error: { type: 'error', error: { type: 'overloaded_error' } } }),
    ],
    ['a throttled one', error({ name: 'ThrottlingException' })],
    ['what its client calls retryable', error({ isRetryable: true, statusCode: 400 })],
    ['what its server calls retryable', status(400, { headers: { 'x-should-retry': 'true' } })],
    [
      'a wrapped error',
      new Error('call failed', { cause: new Error('request failed', { cause: status(503) }) }),
    ],
    ['a model error with its cause', new AlliumError('MODEL_ERROR', 'oh', { cause: status(503) })],
  ])('is true for %s', (_, value) => {
    expect(isTransient(value)).toBe(true);
  });

  it.each<[string, unknown]>([
    ['status 400', status(400)],
    ['status 401', status(401)],
    ['what its runtime calls final', error({ retryable: false, statusCode: 503 })],
    ['an account without money', status(429, { code: 'insufficient_quota' })],
    ['what its client calls final', error({ isRetryable: false, statusCode: 503 })],
    ['what its server calls final', status(503, { headers: new Headers({ 'x-should-retry': 'false' }) })],
    ['a bad certificate', new TypeError('fetch failed', { cause: error({ code: 'CERT_HAS_EXPIRED' }) })],
    ['an abort', new DOMException('stop', 'AbortError')],
    [
      'an abort as the cause',
      new TypeError('fetch failed', { cause: new DOMException('stop', 'AbortError') }),
    ],
    ['a stop', new StopRun()],
    ['a guard that failed', new AlliumError('GUARD_FAILED', 'oh', { cause: status(503) })],
    ['a limit of our own', new AlliumError('RATE_LIMITED', 'wait', { data: { retryAfterMs: 5 } })],
    ['a bug', new TypeError('x is not a function')],
    ['a plain error', new Error('503')],
    ['a cause that leads back to itself', cycle],
    ['text', 'ECONNRESET'],
    ['nothing', undefined],
    ['null', null],
  ])('is false for %s', (_, value) => {
    expect(isTransient(value)).toBe(false);
  });
});

function delays({ events }: Awaited<ReturnType<typeof collect>>): unknown[] {
  return events.flatMap((event) =>
    event.type === 'custom' && event.name === 'retry' ? [(event.data as { delayMs: number }).delayMs] : [],
  );
}
