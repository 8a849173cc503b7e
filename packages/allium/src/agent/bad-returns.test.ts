// Hooks, models and tools that return something else than they should, and contexts used wrongly.

import {
  Agent,
  assistantMessage,
  attribution,
  type Middleware,
  type Model,
  type ModelContext,
  memoryStore,
  RunError,
  type ToolContext,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { chunks, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { coded, echo } from '../../../../test/bad-input-setup.js';
import { expectValidHistory, watched } from '../../../../test/run-checks.js';

describe('a hook that returns the wrong shape', () => {
  /** In hooks about the run the run fails; in hooks about a call its result says so. */
  const failing: [keyof Middleware, unknown, RegExp][] = [
    [
      'acceptMessage',
      'text',
      /acceptMessage of "odd" returned "text"\. Return a message, \{ block: true, reason \}, or nothing\./,
    ],
    ['acceptMessage', { block: 'yes' }, /returned \{"block":"yes"\}/],
    ['acceptMessage', null, /returned null/],
    [
      'transformContext',
      null,
      /transformContext of "odd" returned null\. Return a list of messages, or nothing\./,
    ],
    ['transformContext', ['text'], /returned \["text"\]/],
    ['transformSystemPrompt', null, /Return the prompt as text, or nothing/],
    ['convertToLlm', {}, /convertToLlm of "odd" returned \{\}/],
    [
      'afterModelResponse',
      'stop',
      /returned "stop"\. Return \{ response\?, injectMessages\?: messages, decision\?: .natural/,
    ],
    ['afterModelResponse', { decision: 'end' }, /"end"/],
    ['afterModelResponse', { decisions: 'stop' }, /"decisions"/],
    ['afterModelResponse', { response: { content: [] } }, /afterModelResponse/],
    [
      'afterModelResponse',
      { response: { role: 'assistant', content: [{ type: 'text' }] } },
      /afterModelResponse/,
    ],
    [
      'afterModelResponse',
      {
        response: { role: 'assistant', content: [{ type: 'tool-call', id: 'x', name: 'y', arguments: {} }] },
      },
      /afterModelResponse/,
    ],
    ['afterModelResponse', { injectMessages: userMessage('x') }, /afterModelResponse/],
    [
      'afterModelResponse',
      { injectMessages: [{ role: 'tool', toolCallId: 'x', content: [] }] },
      /afterModelResponse/,
    ],
    ['shouldStopAfterTurn', 'yes', /Return true, false, or/],
    ['shouldStopAfterTurn', { reason: 'because' }, /returned \{"reason":"because"\}/],
    ['shouldStopAfterTurn', { reason: 'suspended' }, /returned \{"reason":"suspended"\}/],
    ['shouldStopAfterTurn', { reason: 'stopped', message: 5 }, /a message of text/],
    ['afterModelResponse', { injectMessages: new Array(1) }, /afterModelResponse of "odd" returned/],
    ['onRunEnd', new Array(1), /onRunEnd of "odd" returned \[null\]/],
    ['onRunEnd', 'go on', /Return a list of user messages/],
    [
      'onRunEnd',
      [assistantMessage([{ type: 'tool-call', id: 'x', name: 'y', arguments: '{}' }])],
      /onRunEnd of "odd"/,
    ],
    ['beforeModel', { response: 'x' }, /beforeModel of "odd" returned/],
    ['onRunEnd', [{ role: 'user', content: [{ type: 'text' }] }], /onRunEnd of "odd"/],
    ['onRunEnd', [{ role: 'user', content: [{ type: 'foo' }] }], /onRunEnd of "odd"/],
    ['acceptMessage', { role: 'user', content: [{ type: 'text' }] }, /acceptMessage of "odd"/],
    [
      'acceptMessage',
      { role: 'user', content: 'x' },
      /Expected a message \{ role: .*, content: \[\.\.\.\] \}\./,
    ],
    [
      'onRunEnd',
      [{ role: 'user', content: 'x' }],
      /\(at \[0\]: a message \{ role: .*, content: \[\.\.\.\] \}\)/,
    ],
    [
      'afterModelResponse',
      { injectMessages: [userMessage('x'), { role: 'user', content: 'x' }] },
      /\(at \[1\]: a message \{ role: .*, content: \[\.\.\.\] \}\)/,
    ],
  ];
  for (const [hook, answer, message] of failing) {
    it(`fails the run: ${hook} → ${JSON.stringify(answer)}`, async () => {
      const agent = new Agent({
        model: scriptedModel(['a']),
        middleware: [{ name: 'odd', [hook]: () => answer }],
      });
      const { error } = await watched(agent, 'go');
      expect(error).toBeInstanceOf(RunError);
      expect(error).toEqual(coded('INVALID_HOOK_RESULT', message));
    });
  }

  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const malformed: [string, object, RegExp][] = [
    ['no content', {}, /content: \[\.\.\.\] \}/],
    ['content that is text', { content: 'hello' }, /content: \[\.\.\.\] \}/],
    ['the role of another', { role: 'user', content: [] }, /a message \{ role: 'assistant'/],
    ['a part that is nothing', { content: [null] }, /every content part to have a `type`/],
    ['a part of an unknown type', { content: [{ type: 'foo' }] }, /to be text, thinking, tool-call/],
    ['an image', { content: [{ type: 'image', data: 'x', mimeType: 'image/png' }] }, /to be text, thinking/],
    ['a text part without text', { content: [{ type: 'text' }] }, /text content to have a `text`/],
    ['thinking that is no text', { content: [{ type: 'thinking', text: 5 }] }, /a `text` that is text/],
    ['a file without data', { content: [{ type: 'file' }] }, /a `data` that is text/],
    ['a call without a name', { content: [{ type: 'tool-call', arguments: '{}' }] }, /a `name` that is text/],
    ['a call without arguments', { content: [{ type: 'tool-call', name: 'f' }] }, /a `arguments` that is/],
    [
      'a call with arguments that are no text',
      { content: [{ type: 'tool-call', name: 'f', arguments: {} }] },
      /a `arguments` that is text/,
    ],
    [
      'a call with an id that is no text',
      { content: [{ type: 'tool-call', id: 5, name: 'f', arguments: '{}' }] },
      /a `id` that is text/,
    ],
    [
      'a reason to stop that is none',
      { content: [], stopReason: 'nope' },
      /a `stopReason` of stop, tool-calls/,
    ],
    ['circular metadata', { content: [], metadata: circular }, /a `metadata` that can be written as JSON/],
    ['a big integer', { content: [], metadata: { n: 1n } }, /a `metadata` that can be written as JSON/],
    [
      'circular metadata of a part',
      { content: [{ type: 'text', text: 'x', metadata: circular }] },
      /a `metadata` that can be written/,
    ],
    [
      'a circular value',
      { content: [{ type: 'provider', kind: 'k', value: circular }] },
      /a `value` that can be written/,
    ],
  ];
  const setting = (response: never) => (ctx: ModelContext) => {
    ctx.response = response;
  };
  const ways: [string, (response: never) => Middleware][] = [
    ['beforeModel', (response) => ({ beforeModel: setting(response) })],
    ['wrapModel', (response) => ({ wrapModel: setting(response) })],
    ['afterModel', (response) => ({ afterModel: setting(response) })],
    ['afterModelResponse', (response) => ({ afterModelResponse: () => ({ response }) })],
  ];
  describe.each(ways)('a response of %s that is malformed stays out of the history', (hook, middleware) => {
    it.each(malformed)('%s', async (_, response, message) => {
      const guard: Middleware = { name: 'guard', guard: { on: ['output', 'tool-args'], find: () => [] } };
      for (const around of [[], [guard]]) {
        const odd: Middleware = { name: 'odd', ...middleware({ role: 'assistant', ...response } as never) };
        const session = new Agent({ model: scriptedModel(['a']), middleware: [odd, ...around] }).session('s');
        const error = await session.run('go').catch((failure: unknown) => failure);
        expect(error).toEqual(coded('INVALID_HOOK_RESULT', message));
        expect(attribution(error)).toMatchObject({ middleware: 'odd', hook });
        expect((await session.messages()).map(({ role }) => role)).toEqual(['user']);
      }
    });
  });

  const answering: [keyof Middleware, unknown, RegExp][] = [
    ['resolveToolCall', { name: 'echo' }, /resolveToolCall of "odd" returned \{"name":"echo"\}/],
    [
      'resolveToolCall',
      { toolCall: { name: 'echo', arguments: {} } },
      /Return \{ toolCall: \{ name, arguments \}, tool\? \}/,
    ],
    [
      'resolveToolCall',
      { toolCall: { name: 'echo', arguments: '{}' }, tool: { name: 'x' } },
      /made by tool\(\)/,
    ],
    [
      'resolveToolCall',
      { toolCall: { name: 'echo', arguments: '{}', args: { text: 'mine' } } },
      /resolveToolCall of "odd" returned .*with arguments as JSON text/,
    ],
    ['beforeToolCall', true, /beforeToolCall of "odd" returned true/],
    ['beforeToolCall', { block: false }, /\{"block":false\}/],
    ['beforeToolCall', { ask: 'please' }, /\{"ask":"please"\}/],
    ['beforeToolCall', { ask: {}, block: true }, /beforeToolCall of "odd"/],
    ['beforeToolCall', { result: undefined }, /beforeToolCall of "odd"/],
    ['beforeToolCall', { result: 5n }, /BigInt/],
    ['afterToolCall', 'text', /afterToolCall of "odd" returned "text"/],
    ['afterToolCall', { content: 5 }, /\{"content":5\}/],
    ['afterToolCall', { content: [{ type: 'text' }] }, /content as text or a list/],
    ['afterToolCall', { content: new Array(1) }, /content as text or a list/],
    ['afterToolCall', { isError: 'no' }, /afterToolCall of "odd"/],
    ['afterToolCall', { result: 'x' }, /afterToolCall of "odd"/],
  ];
  for (const [hook, answer, message] of answering) {
    it(`answers the call: ${hook} → ${typeof (answer as { result?: unknown })?.result === 'bigint' ? 'a bigint' : JSON.stringify(answer)}`, async () => {
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'echo' }), text('end')]),
        tools: [echo],
        middleware: [{ name: 'odd', [hook]: () => answer }],
      });
      const { result } = await watched(agent, 'go');
      expect(result.status).toBe('done');
      expect(result.messages[2]).toMatchObject({ isError: true });
      expect(textOf(result.messages[2]!)).toMatch(message);
    });
  }
});

describe('a model that yields malformed events', () => {
  const yields = (...parts: unknown[]): Model => ({
    provider: 'test',
    id: 'odd',
    async *stream() {
      yield* parts as never[];
    },
  });
  const finish = { type: 'finish', reason: 'stop' };
  const cases: [string, Model, string, RegExp][] = [
    ['something that is no part', yields('text'), 'MODEL_STREAM_INVALID', /test\/odd yielded "text"/],
    ['null', yields(null), 'MODEL_STREAM_INVALID', /yielded null/],
    [
      'an unknown type',
      yields({ type: 'sound' }),
      'MODEL_STREAM_INVALID',
      /its `type` must be text, thinking, /,
    ],
    [
      'text that is no text',
      yields({ type: 'text', text: 5 }),
      'MODEL_STREAM_INVALID',
      /`text` must be a string/,
    ],
    [
      'a call without a name',
      yields({ type: 'tool-call', id: 'x', arguments: '{}' }),
      'MODEL_STREAM_INVALID',
      /`name` must be non-empty text/,
    ],
    [
      'a call with parsed arguments',
      yields({ type: 'tool-call', id: 'x', name: 'y', arguments: {} }),
      'MODEL_STREAM_INVALID',
      /`arguments` must be JSON text/,
    ],
    [
      'a piece of no call',
      yields({ type: 'tool-call-delta', id: 'x', arguments: '{' }),
      'MODEL_STREAM_INVALID',
      /no tool-call with id "x" was begun/,
    ],
    ['no finish', yields({ type: 'text', text: 'half' }), 'MODEL_STREAM_CUT', /ended without a finish part/],
    ['nothing at all', yields(), 'MODEL_STREAM_CUT', /ended without a finish part/],
    [
      'more after finish',
      yields(finish, { type: 'text', text: 'x' }),
      'MODEL_STREAM_INVALID',
      /it came after `finish`/,
    ],
    [
      'an unknown finish reason',
      yields({ type: 'finish', reason: 'tired' }),
      'MODEL_STREAM_INVALID',
      /`reason` must be one of/,
    ],
    [
      'negative usage',
      yields({ type: 'finish', reason: 'stop', usage: { inputTokens: -1 } }),
      'MODEL_STREAM_INVALID',
      /numbers ≥ 0/,
    ],
    [
      'usage of NaN',
      yields({ type: 'finish', reason: 'stop', usage: { inputTokens: 4, outputTokens: Number.NaN } }),
      'MODEL_STREAM_INVALID',
      /numbers ≥ 0/,
    ],
    [
      'usage that is no number',
      yields({ type: 'finish', reason: 'stop', usage: { inputTokens: 'many' } }),
      'MODEL_STREAM_INVALID',
      /numbers ≥ 0/,
    ],
    [
      'usage in big integers',
      yields({ type: 'finish', reason: 'stop', usage: { inputTokens: 4n } }),
      'MODEL_STREAM_INVALID',
      /numbers ≥ 0/,
    ],
    [
      'a signature that is no text',
      yields({ type: 'thinking', text: 'Hm.', signature: 5n }, finish),
      'MODEL_STREAM_INVALID',
      /`signature` must be text/,
    ],
    [
      'metadata of a text that is none',
      yields({ type: 'text', text: '', metadata: 'abc' }, finish),
      'MODEL_STREAM_INVALID',
      /`metadata` must be an object/,
    ],
    [
      'metadata of a call that is none',
      yields({ type: 'tool-call', id: 'x', name: 'y', arguments: '{}', metadata: [1] }, finish),
      'MODEL_STREAM_INVALID',
      /Expected test\/odd to yield parts with `metadata` that is an object/,
    ],
    [
      'metadata of the end that is none',
      yields({ ...finish, metadata: 5 }),
      'MODEL_STREAM_INVALID',
      /`metadata` that is an object/,
    ],
    [
      'content of a provider without its kind',
      yields({ type: 'provider', value: 1 }, finish),
      'MODEL_STREAM_INVALID',
      /`kind` must be text/,
    ],
    [
      'a promise instead of a stream',
      { ...yields(), stream: async () => [] } as never,
      'MODEL_STREAM_INVALID',
      /do not make stream\(\) an async function/,
    ],
    [
      'nothing instead of a stream',
      { ...yields(), stream: () => undefined } as never,
      'MODEL_STREAM_INVALID',
      /returned undefined, which cannot be iterated/,
    ],
  ];
  for (const [name, odd, code, message] of cases) {
    it(`fails the run: ${name}`, async () => {
      const agent = new Agent({ model: odd, store: memoryStore() });
      const { error } = await watched(agent.session('s'), 'go');
      expect(error).toEqual(coded(code, message));
      const messages = await agent.session('s').messages();
      expectValidHistory(messages);
      expect(messages.map(({ role }) => role)).toEqual(['user']);
      const next = new Agent({ model: scriptedModel(['fine']), store: agent.store });
      expect((await next.session('s').run('again')).text).toBe('fine');
    });
  }
});

describe('a tool call', () => {
  it.each([5, undefined, null, {}])('does not run when its schema answers %j', async (answer) => {
    for (const validate of [() => answer, async () => answer]) {
      const ran: unknown[] = [];
      const jsonSchema = { input: () => ({ type: 'object' }) };
      const odd = tool({
        name: 'odd',
        description: '',
        input: { '~standard': { version: 1, vendor: 'own', validate, jsonSchema } } as never,
        execute: (args) => ran.push(args),
      });
      const agent = new Agent({ model: scriptedModel([toolCalls({ name: 'odd' }), 'end']), tools: [odd] });
      const { error } = await watched(agent, 'go');
      expect(error).toEqual(
        coded('INVALID_TOOL', /Tool "odd" .* validate\(\) returned .*Return \{ value \}/),
      );
      expect(ran).toEqual([]);
    }
  });

  it('may have arguments that a schema turns into nothing', async () => {
    const none = tool({
      name: 'none',
      description: '',
      input: z.object({}).transform(() => undefined),
      execute: (args) => typeof args,
    });
    const agent = new Agent({ model: scriptedModel([toolCalls({ name: 'none' }), 'end']), tools: [none] });
    expect(textOf((await agent.run('go')).messages[2]!)).toBe('undefined');
  });

  it('with arguments that are not a JSON object gets a result the model can act on', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls(
          ...['{', 'text', '5', 'null', '"x"', '{}}'].map((args, n) => ({ name: 'echo', args, id: `${n}` })),
        ),
        text('end'),
      ]),
      tools: [echo],
    });
    const { result } = await watched(agent, 'go');
    const answers = result.messages.filter(({ role }) => role === 'tool');
    expect(answers).toHaveLength(6);
    for (const answer of answers)
      expect(answer).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/not valid JSON|Invalid arguments/) }],
      });
  });
  it('with huge, deep or strange arguments does no harm', async () => {
    const deep = `${'['.repeat(5000)}${']'.repeat(5000)}`;
    const any = tool({
      name: 'echo',
      description: '',
      input: z.object({}).loose(),
      execute: (args) => Object.keys(args).length,
    });
    const agent = new Agent({
      model: scriptedModel([
        chunks(
          { type: 'tool-call', id: '1', name: 'echo', arguments: '{"__proto__":{"polluted":1}}' },
          { type: 'tool-call', id: '2', name: 'echo', arguments: deep },
        ),
        text('end'),
      ]),
      tools: [any],
    });
    const { result } = await watched(agent, 'go');
    expect(result.status).toBe('done');
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe('a context used wrongly', () => {
  const inTool = async (act: (ctx: ToolContext) => unknown) => {
    const one = tool({ name: 'one', description: '', input: z.object({}), execute: (_, ctx) => act(ctx) });
    const { result } = await watched(
      new Agent({ model: scriptedModel([toolCalls({ name: 'one' }), text('end')]), tools: [one] }),
      'go',
    );
    return textOf(result.messages[2]!);
  };
  it('says so: update()', async () => {
    expect(await inTool((ctx) => ctx.update(5 as never))).toContain('ctx.update() takes text or a list');
  });
  it('says so: timeoutMs, and who set it', async () => {
    for (const timeoutMs of [Number.NaN, -5, {}, '50', null] as never[]) {
      const setting: Middleware[] = [
        {
          beforeTool(ctx) {
            ctx.timeoutMs = timeoutMs;
          },
        },
        { wrapTool: (_, next) => next({ timeoutMs }) },
      ];
      for (const middleware of setting) {
        const agent = new Agent({
          model: scriptedModel([toolCalls({ name: 'echo' }), text('end')]),
          tools: [echo],
          middleware: [{ name: 'hasty', ...middleware }],
        });
        const { result } = await watched(agent, 'go');
        expect(textOf(result.messages[2]!)).toMatch(
          /middleware "hasty" failed: Expected `(ctx\.)?timeoutMs` to be a number ≥ 0, got (NaN|-5|\{\}|"50"|null)\./,
        );
      }
    }
  });
  it('says so: generate() without messages', async () => {
    expect(await inTool((ctx) => ctx.generate(scriptedModel(['x']), { messages: [] }))).toContain(
      'Expected at least one message',
    );
  });
});
