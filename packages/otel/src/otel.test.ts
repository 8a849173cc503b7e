import { type Context, context, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import * as semconv from '@opentelemetry/semantic-conventions/incubating';
import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  type Message,
  memoryStore,
  type Tool,
  tool,
  window,
} from 'allium';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import { failWith, hang, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type ReceivedSpan, startCollector } from '../test/collector.js';
import { otel } from './index.js';

let collector: Awaited<ReturnType<typeof startCollector>>;
beforeEach(async () => {
  collector = await startCollector();
});
afterEach(() => collector.close());

const traced = (content = false) => {
  const { tracerProvider, meterProvider } = collector;
  return otel({ tracerProvider, meterProvider, content });
};
const agentWith = (options: AgentOptions, content = false): Agent =>
  new Agent({ ...options, middleware: [options.middleware ?? [], traced(content)] });

const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ say: z.string() }),
  execute: ({ say }) => say,
}) as Tool;
const callEcho = (say: string) => toolCalls({ name: 'echo', args: { say }, id: 'c1' });
const usage = { inputTokens: 10, outputTokens: 4, cacheRead: 7, cacheWrite: 2 };

/** Name → what it is below, for all spans. */
function tree(spans: readonly ReceivedSpan[]): string[] {
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  return spans
    .map(({ name, parentSpanId }) => `${byId.get(parentSpanId ?? '')?.name ?? '-'} > ${name}`)
    .sort();
}
const named = (spans: readonly ReceivedSpan[], name: string): ReceivedSpan[] =>
  spans.filter((span) => span.name === name);

describe('the spans of a run', () => {
  it('have the names, kinds and attributes of the conventions', async () => {
    const model = scriptedModel([callEcho('x'), text('done')], { usage, id: 'gpt-5', provider: 'openai' });
    const settings = { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['END'] };
    const agent = agentWith({ name: 'clerk', model, tools: [echo], settings });
    const { runId } = await agent.session('chat-1').run('hi');
    const spans = await collector.spans();
    expect(tree(spans)).toEqual([
      '- > invoke_agent clerk',
      'invoke_agent clerk > chat gpt-5',
      'invoke_agent clerk > chat gpt-5',
      'invoke_agent clerk > execute_tool echo',
    ]);
    expect(spans.every(({ ended }) => ended)).toBe(true);
    // OTLP counts kinds from 1.
    expect(named(spans, 'invoke_agent clerk')[0]).toMatchObject({
      kind: SpanKind.INTERNAL + 1,
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-5',
        'gen_ai.agent.name': 'clerk',
        'gen_ai.conversation.id': 'chat-1',
        'gen_ai.usage.input_tokens': 38,
        'gen_ai.usage.output_tokens': 8,
        'allium.run.id': runId,
        'allium.outcome': 'done',
        'allium.turns': 2,
      },
    });
    expect(named(spans, 'chat gpt-5')[0]).toMatchObject({
      kind: SpanKind.CLIENT + 1,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'gpt-5',
        'gen_ai.response.model': 'gpt-5',
        'gen_ai.response.finish_reasons': ['tool_call'],
        'gen_ai.request.stream': true,
        'gen_ai.request.temperature': 0.5,
        'gen_ai.request.max_tokens': 100,
        'gen_ai.request.stop_sequences': ['END'],
        'gen_ai.usage.input_tokens': 19,
        'gen_ai.usage.output_tokens': 4,
        'gen_ai.usage.cache_read.input_tokens': 7,
        'gen_ai.usage.cache_creation.input_tokens': 2,
        'gen_ai.response.time_to_first_chunk': expect.any(Number),
        'gen_ai.conversation.id': 'chat-1',
      },
    });
    expect(named(spans, 'execute_tool echo')[0]).toMatchObject({
      kind: SpanKind.INTERNAL + 1,
      attributes: {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'echo',
        'gen_ai.tool.call.id': 'c1',
        'gen_ai.tool.type': 'function',
        'gen_ai.tool.description': 'Says it again.',
      },
    });
  });

  it('use no word of gen_ai that the conventions do not have', async () => {
    const model = scriptedModel([callEcho('x'), text('done')], { usage });
    await agentWith({ model, tools: [echo] }, true).run('hi');
    const known = new Set<unknown>(Object.values(semconv));
    const spans = await collector.spans();
    const used = spans.flatMap(({ attributes, events }) => [
      ...Object.keys(attributes),
      ...events.flatMap((event) => Object.keys(event.attributes)),
    ]);
    const metrics = (await collector.metrics()).map(({ name }) => name);
    const ours = [...used, ...metrics].filter((key) => key.startsWith('gen_ai.'));
    expect(ours.length).toBeGreaterThan(20);
    expect(ours.filter((key) => !known.has(key))).toEqual([]);
  });

  it('take the words of the provider for id, model and finish reason', async () => {
    const aiSdk = {
      response: { id: 'resp_1', modelId: 'gpt-5-2026-01-01' },
      finishReason: 'end_turn',
      reasoningTokens: 3,
    };
    const model = scriptedModel([
      {
        parts: [
          { type: 'text', text: 'hi' },
          { type: 'finish', reason: 'stop', metadata: { aiSdk } },
        ],
      },
    ]);
    await agentWith({ model: { ...model, provider: 'google', id: 'gemini-3' } }).run('hi');
    expect(named(await collector.spans(), 'chat gemini-3')[0]!.attributes).toMatchObject({
      'gen_ai.provider.name': 'gcp.gemini',
      'gen_ai.response.id': 'resp_1',
      'gen_ai.response.model': 'gpt-5-2026-01-01',
      'gen_ai.response.finish_reasons': ['end_turn'],
      'gen_ai.usage.reasoning.output_tokens': 3,
    });
  });

  it.each(['run', 'stream'])('are the same for %s()', async (how) => {
    const agent = agentWith({ model: scriptedModel([callEcho('x'), text('done')]), tools: [echo] });
    if (how === 'run') await agent.run('hi');
    else for await (const _ of agent.stream('hi'));
    expect(tree(await collector.spans())).toEqual([
      '- > invoke_agent agent',
      'invoke_agent agent > chat scripted',
      'invoke_agent agent > chat scripted',
      'invoke_agent agent > execute_tool echo',
    ]);
  });

  it('of a sub-agent are inside the call that asked it, also of two at once', async () => {
    const child = (name: string) => agentWith({ name, model: scriptedModel([text(`I am ${name}`)]) });
    const model = scriptedModel([
      toolCalls({ name: 'ann', args: { prompt: 'who?' } }, { name: 'bob', args: { prompt: 'who?' } }),
      text('done'),
    ]);
    const tools = ['ann', 'bob'].map((name) => child(name).asTool({ name, description: name }) as Tool);
    await agentWith({ name: 'boss', model, tools }).run('hi');
    const spans = await collector.spans();
    expect(tree(spans)).toEqual([
      '- > invoke_agent boss',
      'execute_tool ann > invoke_agent ann',
      'execute_tool bob > invoke_agent bob',
      'invoke_agent ann > chat scripted',
      'invoke_agent bob > chat scripted',
      'invoke_agent boss > chat scripted',
      'invoke_agent boss > chat scripted',
      'invoke_agent boss > execute_tool ann',
      'invoke_agent boss > execute_tool bob',
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it('of a sub-agent are in the trace of its caller, also where nothing carries the active span', async () => {
    const shared = traced();
    const child = new Agent({
      name: 'child',
      model: scriptedModel([text('a'), text('b')]),
      middleware: [shared],
    });
    const elsewhere = trace.setSpan(
      ROOT_CONTEXT,
      collector.tracerProvider.getTracer('theirs').startSpan('another request'),
    );
    const asking = (name: string, within: Context) =>
      tool({
        name,
        description: '',
        input: z.object({}),
        looksBack: 0,
        execute: async (_args, ctx) =>
          (await context.with(within, () => child.run('hi', { parent: ctx }))).text,
      }) as Tool;
    const model = scriptedModel([toolCalls({ name: 'lost' }, { name: 'pooled' }), text('done')]);
    const tools = [asking('lost', ROOT_CONTEXT), asking('pooled', elsewhere)];
    await new Agent({ name: 'boss', model, tools, middleware: [shared] }).run('hi');
    const spans = await collector.spans();
    expect(tree(spans).filter((line) => line.endsWith('> invoke_agent child'))).toEqual([
      'invoke_agent boss > invoke_agent child',
      'invoke_agent boss > invoke_agent child',
    ]);
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  });

  it('are the parents of what a tool and a model client start themselves', async () => {
    const inner = (name: string) => collector.tracerProvider.getTracer('theirs').startSpan(name).end();
    const fetches = tool({
      name: 'fetches',
      description: '',
      input: z.object({}),
      async execute() {
        await Promise.resolve();
        inner('GET /weather');
        return trace.getActiveSpan() === undefined ? 'lost' : 'inside';
      },
    }) as Tool;
    const scripted = scriptedModel([toolCalls({ name: 'fetches' }), text('done')]);
    const model = {
      ...scripted,
      stream: (...args: Parameters<typeof scripted.stream>) => {
        inner('POST /v1/chat');
        return scripted.stream(...args);
      },
    };
    await agentWith({ model, tools: [fetches] }).run('hi');
    expect(tree(await collector.spans())).toEqual(
      expect.arrayContaining(['chat scripted > POST /v1/chat', 'execute_tool fetches > GET /weather']),
    );
  });

  it('show each attempt of a retry, and that it retried', async () => {
    const down = Object.assign(new Error('the key sk-123 was refused'), { status: 503 });
    const model = scriptedModel([failWith(down), text('done')]);
    await agentWith({ model, middleware: [retry({ minDelayMs: 0, maxDelayMs: 0 })] }).run('hi');
    const spans = await collector.spans();
    expect(tree(spans)).toEqual([
      '- > invoke_agent agent',
      'invoke_agent agent > chat scripted',
      'invoke_agent agent > chat scripted',
      'invoke_agent agent > middleware retry',
    ]);
    expect(
      named(spans, 'chat scripted').map(({ status, attributes }) => [status.code, attributes['error.type']]),
    ).toEqual(
      expect.arrayContaining([
        [2, expect.any(String)],
        [0, undefined],
      ]),
    );
    expect(named(spans, 'middleware retry')[0]!.events.length).toBeGreaterThan(0);
    // The message of an error may quote anything.
    expect(collector.text()).not.toContain('sk-123');
  });

  it('of a middleware are as long as its own work took', async () => {
    let now = Date.UTC(2030, 0, 1);
    const clock = { now: () => now, setTimer: () => () => {} };
    const model = scriptedModel([text('done')]);
    const slow = defineMiddleware({
      name: 'slow',
      async wrapModel(ctx, next) {
        now += 250;
        ctx.systemPrompt = 'Be slow.';
        return next();
      },
    });
    const inner = defineMiddleware({
      name: 'inner',
      wrapModel(_, next) {
        now += 4000;
        return next();
      },
    });
    await agentWith({ model, middleware: [slow, inner], clock }).run('hi');
    const spans = await collector.spans();
    const [span] = named(spans, 'middleware slow');
    expect(span!.took).toBe(250);
    expect(span!.attributes).toMatchObject({ 'allium.middleware.hook': 'wrapModel', 'allium.turn': 1 });
    // Nobody else acted.
    expect(named(spans, 'middleware inner')).toEqual([]);
  });

  it('of a failed run are all there, with the kind of error', async () => {
    const model = scriptedModel([callEcho('x'), failWith(new TypeError('bad'))]);
    const agent = agentWith({
      model,
      tools: [echo],
      middleware: [fallback({ models: [scriptedModel([])] })],
    });
    await expect(agent.run('hi')).rejects.toMatchObject({ name: 'RunError' });
    const spans = await collector.spans();
    const [run] = named(spans, 'invoke_agent agent');
    expect(run).toMatchObject({ status: { code: 2 }, attributes: { 'error.type': expect.any(String) } });
    expect(tree(spans)).toContain('invoke_agent agent > execute_tool echo');
    expect(named(spans, 'chat scripted').length).toBeGreaterThan(1);
  });

  it('of an aborted run end, and do not count as errors', async () => {
    const controller = new AbortController();
    const agent = agentWith({ model: scriptedModel([hang('half')]) });
    const stream = agent.stream('hi', { signal: controller.signal });
    stream.result.catch(() => {});
    const read = async () => {
      for await (const event of stream) if (event.type === 'message_update') controller.abort();
    };
    await expect(read()).rejects.toMatchObject({ code: 'ABORTED' });
    const spans = await collector.spans();
    expect(tree(spans)).toEqual(['- > invoke_agent agent', 'invoke_agent agent > chat scripted']);
    for (const { attributes, status } of spans) {
      expect(attributes['allium.outcome']).toBe('aborted');
      expect(status.code ?? 0).toBe(0);
    }
  });

  it('of a resumed run are linked to those before the suspension', async () => {
    const asks = defineMiddleware({ name: 'asks', beforeToolCall: () => ({ ask: { title: 'Sure?' } }) });
    const make = () =>
      agentWith({
        model: scriptedModel([({ messages }) => (messages.length === 1 ? callEcho('x') : text('done'))], {
          repeat: true,
        }),
        tools: [echo],
        middleware: [asks],
        store,
      });
    const store = memoryStore();
    const { pending } = await make().session('s').run('hi');
    await make()
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    const runs = named(await collector.spans(), 'invoke_agent agent');
    expect(runs.map(({ attributes }) => attributes['allium.outcome']).sort()).toEqual(['done', 'suspended']);
    const [before, after] = ['suspended', 'done'].map(
      (outcome) => runs.find(({ attributes }) => attributes['allium.outcome'] === outcome)!,
    );
    expect(after!.links).toMatchObject([{ traceId: before!.traceId, spanId: before!.spanId }]);
    expect(before!.links).toEqual([]);
  });

  it('say which middleware made a model call of its own', async () => {
    const judge = scriptedModel([text('fine')], { id: 'judge' });
    const asks = defineMiddleware({
      name: 'second-opinion',
      extraLlmCalls: () => [judge],
      async wrapModel(ctx, next) {
        const answer = await next();
        await ctx.generate(judge, { messages: 'Is it fine?' });
        return answer;
      },
    });
    await agentWith({ model: scriptedModel([text('done')]), middleware: [asks] }).run('hi');
    const spans = await collector.spans();
    expect(named(spans, 'chat judge')[0]!.attributes['allium.middleware.name']).toBe('second-opinion');
    expect(named(spans, 'chat scripted')[0]!.attributes['allium.middleware.name']).toBeUndefined();
  });

  it('show a call that was refused, and a tool that failed', async () => {
    const fails = tool({
      name: 'fails',
      description: '',
      input: z.object({}),
      execute: () => {
        throw new Error('secret words');
      },
    }) as Tool;
    const blocks = defineMiddleware({
      name: 'blocks',
      beforeToolCall: ({ toolCall }) =>
        toolCall.name === 'echo' ? { block: true, reason: 'No.' } : undefined,
    });
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { say: 'x' } }, { name: 'fails' }),
      text('done'),
    ]);
    await agentWith({ model, tools: [echo, fails], middleware: [blocks] }).run('hi');
    const spans = await collector.spans();
    expect(named(spans, 'execute_tool echo')[0]).toMatchObject({
      attributes: { 'allium.outcome': 'blocked' },
    });
    expect(named(spans, 'execute_tool fails')[0]!.status.code).toBe(2);
    expect(collector.text()).not.toContain('secret words');
  });
});

describe('content', () => {
  const script = () => scriptedModel([callEcho('call ann@example.org'), text('Asked ann@example.org.')]);
  const noMail = defineMiddleware({
    name: 'no-mail',
    guard: {
      on: ['input', 'request', 'output', 'tool-args', 'tool-result'],
      hold: window(40),
      find: (said) =>
        [...said.matchAll(/\w+@[\w.]+\w/g)].map(({ index, 0: { length } }) => ({
          start: index,
          end: index + length,
        })),
    },
  });

  it('is not recorded unless it is asked for', async () => {
    await agentWith({ model: script(), tools: [echo], systemPrompt: 'Be kind.' }).run(
      'Write to ann@example.org',
    );
    await collector.spans();
    expect(collector.text()).toContain('execute_tool echo');
    for (const said of ['ann@example.org', 'Be kind', 'Write to'])
      expect(collector.text()).not.toContain(said);
  });

  it('is an event of the span, in the form of the conventions', async () => {
    await agentWith({ model: script(), tools: [echo], systemPrompt: 'Be kind.' }, true).run(
      'Write to ann@example.org',
    );
    const spans = await collector.spans();
    const chats = named(spans, 'chat scripted').map(({ events }) => events[0]!);
    const second = chats.find(({ attributes }) =>
      String(attributes['gen_ai.output.messages']).includes('Asked'),
    )!;
    expect(second.name).toBe('gen_ai.client.inference.operation.details');
    const read = (key: string) => JSON.parse(String(second.attributes[key]));
    expect(read('gen_ai.system_instructions')).toEqual([{ type: 'text', content: 'Be kind.' }]);
    expect(read('gen_ai.input.messages')).toEqual([
      { role: 'user', parts: [{ type: 'text', content: 'Write to ann@example.org' }] },
      {
        role: 'assistant',
        parts: [{ type: 'tool_call', id: 'c1', name: 'echo', arguments: { say: 'call ann@example.org' } }],
      },
      { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'call ann@example.org' }] },
    ]);
    expect(read('gen_ai.output.messages')).toEqual([
      {
        role: 'assistant',
        parts: [{ type: 'text', content: 'Asked ann@example.org.' }],
        finish_reason: 'stop',
      },
    ]);
    const [call] = named(spans, 'execute_tool echo')[0]!.events;
    expect(call!.attributes['gen_ai.tool.call.arguments']).toBe('{"say":"call ann@example.org"}');
  });

  it.each([0, 1])('has nothing that a guard removed, wherever the guard stands (%i)', async (place) => {
    const middleware = [traced(true)];
    middleware.splice(place, 0, noMail);
    const agent = new Agent({ model: script(), tools: [echo], middleware });
    const { text: said } = await agent.run('Write to ann@example.org');
    expect(said).toBe('Asked [redacted].');
    await collector.spans();
    expect(collector.text()).toContain('[redacted]');
    expect(collector.text()).not.toContain('ann@example.org');
  });
});

describe('metrics', () => {
  it('have the units and buckets of the conventions', async () => {
    const model = scriptedModel([callEcho('x'), text('done')], { usage });
    await agentWith({ model, tools: [echo] }).run('hi');
    const metrics = Object.fromEntries((await collector.metrics()).map((metric) => [metric.name, metric]));
    const tokens = metrics['gen_ai.client.token.usage']!;
    expect(tokens.unit).toBe('{token}');
    expect(tokens.points[0]!.bounds).toEqual([
      1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
    ]);
    const total = (type: string) =>
      tokens.points.find(({ attributes }) => attributes['gen_ai.token.type'] === type)!.sum;
    expect([total('input'), total('output')]).toEqual([38, 8]);
    const duration = metrics['gen_ai.client.operation.duration']!;
    expect(duration.unit).toBe('s');
    expect(duration.points[0]!.bounds[0]).toBe(0.01);
    const operations = duration.points.map(({ attributes, count }) => [
      attributes['gen_ai.operation.name'],
      count,
    ]);
    expect(operations.sort()).toEqual([
      ['chat', 2],
      ['execute_tool', 1],
      ['invoke_agent', 1],
    ]);
    expect(metrics['gen_ai.client.operation.time_to_first_chunk']!.points[0]!.count).toBe(2);
    // An id would make a series of every run.
    const keys = Object.values(metrics).flatMap(({ points }) =>
      points.flatMap((one) => Object.keys(one.attributes)),
    );
    expect(keys).not.toContain('allium.run.id');
    expect(keys).not.toContain('gen_ai.conversation.id');
  });
});

describe('when it cannot report', () => {
  it('the run goes on', async () => {
    const broken = {
      getTracer: () => ({
        startSpan: () => {
          throw new Error('no tracer');
        },
      }),
    };
    const agent = new Agent({
      model: scriptedModel([callEcho('x'), text('done')]),
      tools: [echo],
      middleware: [otel({ tracerProvider: broken as never })],
    });
    expect(await agent.run('hi')).toMatchObject({ status: 'done', text: 'done' });
  });

  it('without an SDK it does nothing', async () => {
    const agent = new Agent({ model: scriptedModel([text('done')]), middleware: [otel()] });
    const { messages } = await agent.run('hi');
    expect(messages.map(({ role }: Message) => role)).toEqual(['user', 'assistant']);
  });

  it.each([
    [{ content: 'yes' }, 'content'],
    [{ tracerProvider: {} }, 'tracerProvider'],
    [{ tracer: 1 }, 'tracer'],
  ])('wrong options are refused (%j)', (options, named) => {
    expect(() => otel(options as never)).toThrow(named);
  });
});

testMiddleware(() => otel(), { name: 'otel', describe, it });
testMiddleware(() => otel({ content: true }), { name: 'otel with content', describe, it });
