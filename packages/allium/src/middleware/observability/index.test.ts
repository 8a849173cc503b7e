import { AsyncLocalStorage } from 'node:async_hooks';
import { Agent, defineMiddleware, memoryStore, systemClock, tool } from 'allium';
import {
  type Instrument,
  observability,
  type SpanHandle,
  type SpanStart,
} from 'allium/middleware/observability';
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

interface Line {
  name: string;
  parent?: string | undefined;
  status?: string;
  attributes: Record<string, unknown>;
}

function recorder() {
  const spans: Line[] = [];
  const metrics: [string, number, Record<string, unknown>][] = [];
  const lines = new Map<SpanHandle, Line>();
  const clock = fakeClock();
  const middleware = observability({
    span(name, attributes, parent) {
      const line: Line = { name, parent: parent && lines.get(parent)!.name, attributes: { ...attributes } };
      const handle: SpanHandle = {
        end({ status, attributes: more }) {
          expect(line.status).toBeUndefined();
          line.status = status;
          Object.assign(line.attributes, more);
        },
      };
      spans.push(line);
      lines.set(handle, line);
      return handle;
    },
    counter: (name, value, attributes) => metrics.push([name, value, attributes]),
    histogram: (name, value, attributes) => metrics.push([name, value, attributes]),
  });
  const outline = () => spans.map(({ name, parent, status }) => [name, parent, status]);
  return { spans, metrics, clock, middleware, outline };
}

const work = tool({
  name: 'work',
  description: 'Works.',
  input: z.object({ how: z.string().optional() }),
  async execute({ how }, ctx) {
    if (how === 'fail') throw Object.assign(new Error('secret'), { code: 'E_WORK' });
    if (how === 'stop') ctx.stop('stopped', 'Enough.');
    if (how === 'suspend') await ctx.suspend({});
    return 'ok';
  },
});
const RUN = 'invoke_agent agent';

function agentOf(script: readonly Script[], middleware: object, more: object[] = [], clock = systemClock) {
  const model = scriptedModel(script);
  return new Agent({ model, tools: [work], middleware: [middleware, ...more] as never, clock });
}

testMiddleware(() => observability(), { name: 'observability', describe, it });
testMiddleware(
  () =>
    observability({
      span: () => ({ end() {}, within: (inner) => inner() }),
      counter: () => {
        throw new Error('no');
      },
    }),
  { name: 'observability whose functions fail', describe, it },
);

describe('observability', () => {
  it('reports a span for the run, each model call and each tool call', async () => {
    const { middleware, outline, spans } = recorder();
    await agentOf([toolCalls({ name: 'work' }), text('done')], middleware).run('hi');
    expect(outline()).toEqual([
      [RUN, undefined, 'ok'],
      ['chat scripted', RUN, 'ok'],
      ['execute_tool work', RUN, 'ok'],
      ['chat scripted', RUN, 'ok'],
    ]);
    expect(spans[1]?.attributes).toMatchObject({
      'gen_ai.provider.name': 'test',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.response.finish_reasons': ['tool_call'],
      'allium.turn': 1,
    });
    expect(spans[0]?.attributes).toMatchObject({ 'allium.stop.reason': 'final', 'allium.turns': 2 });
  });

  it('measures durations in seconds and counts tokens, without ids', async () => {
    const { middleware, metrics, clock } = recorder();
    const slow = defineMiddleware({ name: 'slow', beforeModel: () => clock.advance(1500) });
    await agentOf(['hi'], middleware, [slow], clock).run('hi');
    const about = { 'gen_ai.provider.name': 'test', 'gen_ai.request.model': 'scripted' };
    const chat = { ...about, 'gen_ai.operation.name': 'chat', 'gen_ai.agent.name': 'agent' };
    const answer = { ...chat, 'gen_ai.response.model': 'scripted' };
    const run = { ...about, 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'agent' };
    expect(metrics).toEqual([
      ['gen_ai.client.operation.time_to_first_chunk', 1.5, answer],
      ['gen_ai.client.token.usage', 10, { ...answer, 'gen_ai.token.type': 'input' }],
      ['gen_ai.client.token.usage', 5, { ...answer, 'gen_ai.token.type': 'output' }],
      ['gen_ai.client.operation.duration', 1.5, answer],
      ['allium.model.calls', 1, { ...chat, 'allium.status': 'ok' }],
      ['gen_ai.client.operation.duration', 1.5, run],
      ['allium.runs', 1, { ...run, 'allium.status': 'ok' }],
    ]);
  });

  it('gives the kind of each span, and the unit and buckets of each metric', async () => {
    const starts: SpanStart[] = [];
    const units = new Map<string, Instrument>();
    const middleware = observability({
      span: (_name, _attributes, _parent, start) => void starts.push(start),
      counter: (name, _value, _attributes, instrument) => void units.set(name, instrument),
      histogram: (name, _value, _attributes, instrument) => void units.set(name, instrument),
    });
    await agentOf([toolCalls({ name: 'work' }), text('done')], middleware).run('hi');
    expect(starts.map(({ of, kind }) => `${of} ${kind}`)).toEqual([
      'run internal',
      'model client',
      'tool internal',
      'model client',
    ]);
    expect([...units].map(([name, { unit, buckets }]) => `${name} ${unit} ${buckets?.length}`)).toEqual([
      'gen_ai.client.operation.time_to_first_chunk s 14',
      'gen_ai.client.token.usage {token} 14',
      'gen_ai.client.operation.duration s 14',
      'allium.model.calls {call} undefined',
      'allium.tool.calls {call} undefined',
      'allium.runs {run} undefined',
    ]);
  });

  it('gives the acts of a middleware the time they took, also in a run that failed', async () => {
    const clock = fakeClock(1000);
    const lines: unknown[] = [];
    const middleware = observability({
      span: (name, _attributes, _parent, { of, at }) =>
        of === 'middleware'
          ? {
              event: (what, _about, when) => lines.push(['event', what, when]),
              end: ({ at: end }) => lines.push([name, at, end]),
            }
          : undefined,
    });
    const slow = defineMiddleware({
      name: 'slow',
      async transformSystemPrompt(prompt) {
        await clock.advance(250);
        return `${prompt} Hurry.`;
      },
    });
    await agentOf([failWith(new Error('oh'))], middleware, [slow], clock)
      .run('hi')
      .catch(() => {});
    expect(lines).toEqual([
      ['event', 'rewrote the system prompt of the request', 1000],
      ['middleware slow', 1000, 1250],
    ]);
  });

  it('reports what was said only when asked to', async () => {
    const said: unknown[] = [];
    const span = (): SpanHandle => ({ end() {}, event: (...one) => said.push(one) });
    const script = [toolCalls({ name: 'work' }), text('done')];
    await agentOf(script, observability({ span })).run('hello');
    expect(said).toEqual([]);
    await agentOf(script, observability({ span, content: true })).run('hello');
    expect(said.map((one) => (one as [string])[0])).toEqual([
      'gen_ai.client.inference.operation.details',
      'gen_ai.execute_tool.details',
      'gen_ai.client.inference.operation.details',
    ]);
    expect(JSON.stringify(said)).toContain('hello');
  });

  it.each<[string, Script, string[]]>([
    ['an error of the model', failWith(new TypeError('secret')), ['error', 'error']],
    ['an error of a tool', toolCalls({ name: 'work', args: { how: 'fail' } }), ['ok', 'ok', 'error', 'ok']],
    ['a stop', toolCalls({ name: 'work', args: { how: 'stop' } }), ['stopped', 'ok', 'stopped']],
    ['a suspension', toolCalls({ name: 'work', args: { how: 'suspend' } }), ['suspended', 'ok', 'suspended']],
    ['an unknown tool', toolCalls({ name: 'nowhere' }), ['ok', 'ok', 'blocked', 'ok']],
  ])('distinguishes %s, and quotes nothing of it', async (_, step, statuses) => {
    const { middleware, spans, metrics } = recorder();
    await agentOf([step, text('done')], middleware)
      .run('hi')
      .catch(() => {});
    expect(spans.map(({ status }) => status)).toEqual(statuses);
    expect(JSON.stringify([spans, metrics])).not.toContain('secret');
  });

  it('names the kind of an error', async () => {
    const { middleware, spans } = recorder();
    const step = toolCalls({ name: 'work', args: { how: 'fail' } });
    await agentOf([step, failWith('text')], middleware)
      .run('hi')
      .catch(() => {});
    expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual([
      'string',
      undefined,
      'E_WORK',
      'string',
    ]);
  });

  it('reports the middleware that acted, without what they quote', async () => {
    const { middleware, outline, metrics, clock } = recorder();
    const busy = Object.assign(new Error('secret'), { status: 503 });
    const again = retry({ clock, minDelayMs: 0, jitter: 'none' });
    const agent = agentOf([failWith(busy), text('done')], again, [middleware]);
    const run = agent.run('hi');
    await clock.advance(1000);
    await run;
    expect(outline()).toEqual([
      [RUN, undefined, 'ok'],
      ['chat scripted', RUN, 'error'],
      ['chat scripted', RUN, 'ok'],
      ['middleware retry', RUN, 'ok'],
    ]);
    expect(metrics.filter(([name]) => name === 'allium.middleware.actions')).toEqual([
      [
        'allium.middleware.actions',
        1,
        { 'allium.middleware.name': 'retry', 'allium.middleware.action': 'retry after' },
      ],
    ]);
  });

  it('calls the work inside the span where the handle can', async () => {
    const active = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const middleware = observability({
      span: (name) => ({ end() {}, within: (inner) => active.run(name, inner) }),
    });
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      execute: () => `${seen.push(active.getStore())}`,
    });
    const step = (answer: Script) => () => {
      seen.push(active.getStore());
      return answer as string;
    };
    const model = scriptedModel([step(toolCalls({ name: 'look' })), step('done')]);
    await new Agent({ model, tools: [look], middleware: [middleware] }).run('hi');
    expect(seen).toEqual(['chat scripted', 'execute_tool look', 'chat scripted']);
  });

  it('ends every span of an aborted run', async () => {
    const { middleware, outline } = recorder();
    const model = scriptedModel([hang('Hel')]);
    const abort = new AbortController();
    const run = new Agent({ model, middleware: [middleware] })
      .run('hi', { signal: abort.signal })
      .catch((e) => e);
    while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(outline()).toEqual([
      [RUN, undefined, 'aborted'],
      ['chat scripted', RUN, 'aborted'],
    ]);
  });

  it('gives a resumed run a span of its own, linked to the one before', async () => {
    const { middleware, outline } = recorder();
    const links: unknown[] = [];
    const linking = observability({
      name: 'linking',
      span: (_name, _attributes, _parent, start) => {
        if (start.of === 'run') links.push(start.links);
        return { end() {}, link: { id: links.length } };
      },
    });
    const model = scriptedModel([toolCalls({ name: 'work', args: { how: 'suspend' } }), text('done')]);
    const agent = new Agent({
      model,
      tools: [work],
      middleware: [middleware, linking],
      store: memoryStore(),
    });
    const session = agent.session('s');
    const { pending } = await session.run('hi');
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(links).toEqual([[], [{ id: 1 }]]);
    expect(outline().filter(([name]) => name === RUN)).toEqual([
      [RUN, undefined, 'suspended'],
      [RUN, undefined, 'ok'],
    ]);
  });

  it('lets the run go on when it fails, and says so', async () => {
    const bad = () => {
      throw new Error('exporter down');
    };
    for (const options of [
      { span: bad },
      { counter: bad },
      { histogram: bad },
      { span: () => ({ end: bad }) },
    ]) {
      const agent = agentOf([toolCalls({ name: 'work' }), text('done')], observability(options));
      const result = await agent.run('hi');
      expect(result).toMatchObject({ status: 'done', text: 'done', usage: { totalTokens: 30 } });
      expect(
        result.changes.some(({ by, what }) => by === 'observability' && what.includes('exporter down')),
      ).toBe(true);
    }
  });

  it('says so in an event when it fails beside a call that failed', async () => {
    const broken = observability({
      counter: () => {
        throw new Error('exporter down');
      },
    });
    const oh = new Error('oh');
    const { events, error } = await collect(agentOf([failWith(oh)], broken).stream('hi'));
    expect((error as Error).cause).toBe(oh);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'observability_failed',
      data: { error: 'exporter down' },
    });
  });

  it('keeps the spans of 100 concurrent runs and of two instances apart', async () => {
    const [one, two] = [recorder(), recorder()];
    const agent = new Agent({
      model: scriptedModel(['hi'], { repeat: true }),
      middleware: [one.middleware, two.middleware],
    });
    const results = await Promise.all(Array.from({ length: 100 }, () => agent.run('hi')));
    for (const { spans } of [one, two]) {
      expect(spans).toHaveLength(200);
      expect(spans.every(({ status }) => status === 'ok')).toBe(true);
      const ids = new Set(spans.map(({ attributes }) => attributes['allium.run.id']));
      expect(ids).toEqual(new Set(results.map(({ runId }) => runId)));
    }
  });

  it('reports the same when the run is streamed', async () => {
    const [plain, streamed] = [recorder(), recorder()];
    const script = [toolCalls({ name: 'work' }), text('done')];
    await agentOf(script, plain.middleware).run('hi');
    await collect(agentOf(script, streamed.middleware).stream('hi'));
    expect(streamed.outline()).toEqual(plain.outline());
    const untimed = ({ metrics }: typeof plain) => metrics.map(([name, , about]) => [name, about]);
    expect(untimed(streamed)).toEqual(untimed(plain));
  });

  it.each([
    [{ span: true }, 'Expected `span` to be a function, got true.'],
    [{ content: 'all' }, 'Expected `content` to be true or false, got "all".'],
    [{ counters: () => {} }, 'Unknown option `counters` of observability(). Did you mean `counter`?'],
  ])('refuses %j', (options, message) => {
    expect(() => observability(options as never)).toThrow(message);
  });
});
