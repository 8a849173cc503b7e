/** Whatever comes in wrong is a coded error, or a result the model can act on: what was received, and what to do. */
import {
  Agent,
  AlliumError,
  assistantMessage,
  isSyntheticMessage,
  memoryStore,
  requestKey,
  syntheticUserMessage,
  textOf,
  toolCallsOf,
  userMessage,
} from 'allium';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { coded, echo } from '../../../../test/bad-input-setup.js';
import { watched } from '../../../../test/run-checks.js';

const model = scriptedModel([]);
const thrown = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
};

describe('options of an agent', () => {
  const cases: [string, object, string, RegExp][] = [
    [
      'an unknown name',
      { middlewares: [] },
      'INVALID_OPTION',
      /Unknown option `middlewares` of Agent\. Did you mean `middleware`\?/,
    ],
    ['no model', { model: undefined }, 'INVALID_OPTION', /`model`.*got undefined/],
    ['a model without stream()', { model: { provider: 'p', id: 'i' } }, 'INVALID_OPTION', /`model`/],
    ['a tool without a list', { tools: echo }, 'INVALID_OPTION', /`tools` to be a list.*Put it into a list/],
    [
      'tools of the AI SDK',
      { tools: { weather: { description: 'The weather.', inputSchema: {}, execute: () => 1 } } },
      'INVALID_OPTION',
      /`tools` to be a list.*`middleware: \[fromAiSdkTools\(/,
    ],
    [
      'a tool of LangChain',
      { tools: [{ name: 'search', schema: {}, invoke: () => 1 }] },
      'INVALID_TOOL',
      /`tools: fromLangChainTools\(/,
    ],
    [
      'a middleware instead of tools',
      { tools: { name: 'my-tools', tools: [echo] } },
      'INVALID_OPTION',
      /`tools` to be a list.*put it into `middleware/,
    ],
    [
      'a middleware among tools',
      { tools: [echo, { name: 'my-tools', tools: [] }] },
      'INVALID_TOOL',
      /put it into `middleware/,
    ],
    ['a tool among middleware', { middleware: [echo] }, 'INVALID_MIDDLEWARE', /Put it into `tools/],
    [
      'a tool that was not made by tool()',
      { tools: [{ name: 'x' }] },
      'INVALID_TOOL',
      /\{"name":"x"\} as a tool\. Make tools with tool\(.*fromAiSdkTools\(/,
    ],
    [
      'two tools of one name',
      { tools: [echo, echo] },
      'DUPLICATE_TOOL',
      /"echo" is brought by the agent twice/,
    ],
    [
      'a prompt that is no text',
      { systemPrompt: 5 },
      'INVALID_OPTION',
      /`systemPrompt` to be text, or a list .*, got 5/,
    ],
    ['middleware that is no list', { middleware: {} }, 'INVALID_MIDDLEWARE', /`middleware` to be a list/],
    [
      'a middleware that is no object',
      { middleware: ['retry'] },
      'INVALID_MIDDLEWARE',
      /middleware\[0\] is "retry"/,
    ],
    [
      'a factory that was not called',
      { middleware: [() => ({})] },
      'INVALID_MIDDLEWARE',
      /A factory has to be called/,
    ],
    [
      'a middleware with nothing in it that it knows',
      { middleware: [{ x: 1 }] },
      'INVALID_MIDDLEWARE',
      /it has no hook/,
    ],
    [
      'a misspelt hook',
      { middleware: [{ before_tool_call: () => {} }] },
      'INVALID_MIDDLEWARE',
      /Did you mean `beforeToolCall`\?/,
    ],
    [
      'a hook that is no function',
      { middleware: [{ beforeToolCall: true }] },
      'INVALID_MIDDLEWARE',
      /`beforeToolCall` must be a function, got true/,
    ],
    [
      'an explicit hook that is no function',
      { beforeToolCall: 'no' },
      'INVALID_OPTION',
      /`beforeToolCall` to be a function, got "no"/,
    ],
    [
      'a negative limit',
      { limits: { turns: -1 } },
      'INVALID_OPTION',
      /`limits\.turns` to be an integer ≥ 0, got -1/,
    ],
    ['half a turn', { limits: { turns: 1.5 } }, 'INVALID_OPTION', /an integer ≥ 0, got 1\.5/],
    [
      'a symbol of turns',
      { limits: { turns: Symbol('many') } },
      'INVALID_OPTION',
      /an integer ≥ 0, got Symbol/,
    ],
    [
      'a limit that is no number',
      { limits: { costUsd: '1' } },
      'INVALID_OPTION',
      /`limits\.costUsd` to be a number ≥ 0, got "1"/,
    ],
    ['a limit that is NaN', { limits: { tokens: Number.NaN } }, 'INVALID_OPTION', /got NaN/],
    ['an unknown limit', { limits: { steps: 3 } }, 'INVALID_OPTION', /Unknown option `steps` of limits/],
    ['limits that are no object', { limits: 5 }, 'INVALID_OPTION', /`limits` to be an object, got 5/],
    [
      'a limit a session has not',
      { sessionLimits: { depth: 1 } },
      'INVALID_OPTION',
      /Unknown option `depth` of sessionLimits/,
    ],
    [
      'a store that is none',
      { store: {} },
      'INVALID_OPTION',
      /`store` to be a store, such as fileStore\(\{ dir \}\) .*append\(\), read\(\), .*got \{\}/,
    ],
    [
      'an unknown way to run tools',
      { toolExecution: 'serial' },
      'INVALID_OPTION',
      /'parallel' or 'sequential', got "serial"/,
    ],
    ['a name that is no text', { name: 42 }, 'INVALID_OPTION', /`name` to be non-empty text, got 42/],
    ['an empty name', { name: '' }, 'INVALID_OPTION', /`name` to be non-empty text, got ""/],
    ['settings that are no object', { settings: 5 }, 'INVALID_OPTION', /`settings` to be an object, got 5/],
    ['null for settings', { settings: null }, 'INVALID_OPTION', /`settings` to be an object, got null/],
    [
      'settings that cannot be copied',
      { settings: { provider: { p: { fetch() {} } } } },
      'INVALID_OPTION',
      /`settings` to be plain data \(fetch\(\)/,
    ],
    ...(
      [
        [
          { max_tokens: 5 },
          /Unknown option `max_tokens` of settings\. Here that is `maxOutputTokens`\. It takes: maxOutputTokens, temperature/,
        ],
        [{ tempratur: 1 }, /of settings\. Did you mean `temperature`\?/],
        [{ constructor: 1 }, /Unknown option `constructor` of settings/],
        [{ maxOutputTokens: 0 }, /`settings\.maxOutputTokens` to be an integer ≥ 1, got 0/],
        [{ maxOutputTokens: 1.5 }, /an integer ≥ 1, got 1\.5/],
        [{ temperature: 'hot' }, /`settings\.temperature` to be a finite number ≥ 0, got "hot"/],
        [{ temperature: Number.NaN }, /a finite number ≥ 0, got NaN/],
        [{ topP: -1 }, /`settings\.topP` to be a finite number ≥ 0, got -1/],
        [{ stopSequences: 'END' }, /`settings\.stopSequences` to be a list of texts, got "END"/],
        [{ stopSequences: [5] }, /a list of texts, got \[5\]/],
        [{ seed: null }, /`settings\.seed` to be an integer, got null/],
        [{ toolChoice: 'any' }, /`settings\.toolChoice` to be 'auto', 'none', 'required' or \{ tool: '…' \}/],
        [{ toolChoice: { name: 'x' } }, /`settings\.toolChoice`.*got \{"name":"x"\}/],
        [{ toolChoice: { tool: 'x', force: true } }, /`settings\.toolChoice`/],
        [{ responseSchema: '{}' }, /`settings\.responseSchema` to be a JSON Schema as an object, got "\{\}"/],
        [{ provider: 'openai' }, /`settings\.provider` to be objects of options by the name.*got "openai"/],
        [{ provider: { openai: 'fast' } }, /`settings\.provider`.*got \{"openai":"fast"\}/],
        [{ systemMetadata: [] }, /`settings\.systemMetadata` to be an object, got \[\]/],
      ] as [object, RegExp][]
    ).map(([settings, message]): [string, object, string, RegExp] => [
      `the settings ${JSON.stringify(settings)}`,
      { settings },
      'INVALID_OPTION',
      message,
    ]),
    ['state that is no list', { state: 5 }, 'INVALID_OPTION', /`state` to be a list, got 5/],
    ['state that is no cell', { state: [5] }, 'INVALID_STATE', /lists 5 in `state`/],
    [
      'text for what is replaced',
      { replaces: 'x' },
      'INVALID_OPTION',
      /`replaces` to be a list of names, got "x"/,
    ],
    ['a tenant that is no text', { tenant: 5 }, 'INVALID_OPTION', /`tenant` to be text, got 5/],
    ['observers that are no list', { observers: {} }, 'INVALID_OPTION', /`observers` to be a list, got \{\}/],
    [
      'an observer that is none',
      { observers: [5] },
      'INVALID_OPTION',
      /`observers\[0\]` to be a function or an object with onEvent\(\), got 5/,
    ],
    ...['onRequest', 'onObserverError', 'newId'].map((name): [string, object, string, RegExp] => [
      `an ${name} that is no function`,
      { [name]: 5 },
      'INVALID_OPTION',
      new RegExp(`\`${name}\` to be a function, got 5`),
    ]),
    [
      'a clock that is none',
      { clock: {} },
      'INVALID_OPTION',
      /`clock` to be an object with now\(\), setTimer\(\), got \{\}/,
    ],
    ['a time that is text', { teardownTimeoutMs: '5' }, 'INVALID_OPTION', /a number ≥ 0, got "5"/],
  ];
  for (const [name, options, code, message] of cases) {
    it(`with ${name} are refused`, () => {
      expect(thrown(() => new Agent({ model, ...options } as never))).toEqual(coded(code, message));
    });
  }
  it('may have every setting, settings left undefined, and what providers take', () => {
    const settings = {
      maxOutputTokens: 1,
      temperature: 0,
      topP: 0.5,
      stopSequences: [],
      seed: -1,
      toolChoice: { tool: 'nope' },
      responseSchema: { type: 'object' },
      provider: { openai: { reasoning: { effort: 'low' } }, other: undefined as never },
      systemMetadata: { provider: {} },
    };
    expect(new Agent({ model, settings }).settings).toEqual(settings);
    const none = Object.fromEntries(Object.keys(settings).map((name) => [name, undefined]));
    expect(new Agent({ model, settings: none }).settings).toEqual({});
  });
  it.each([
    ['a promise', async () => 'x'],
    ['nothing', () => ''],
    ['a symbol', () => Symbol('x')],
  ])('with a newId() that returns %s fail the run', async (_, newId) => {
    await expect(new Agent({ model, newId: newId as never }).run('go')).rejects.toEqual(
      coded('INVALID_OPTION', /`newId\(\)` to be non-empty text, at once, got /),
    );
  });

  it('that are not an object are refused', () => {
    expect(thrown(() => new Agent(undefined as never))).toEqual(
      coded('INVALID_OPTION', /`options` to be an object with model, name, .* for Agent, got undefined/),
    );
  });
});

describe('options of explain()', () => {
  it('with an unknown name are refused', () => {
    expect(thrown(() => new Agent({ model }).explain({ midleware: [] } as never))).toEqual(
      coded('INVALID_OPTION', /Unknown option `midleware` of explain\(\)\. Did you mean `middleware`\?/),
    );
  });
});

describe('options of a run', () => {
  const cases: [string, unknown, string, RegExp][] = [
    ['an unknown name', { maxTurns: 3 }, 'INVALID_OPTION', /Unknown option `maxTurns` of run\(\)/],
    ['a negative limit', { limits: { timeoutMs: -5 } }, 'INVALID_OPTION', /`limits\.timeoutMs`.*got -5/],
    ['a signal that is none', { signal: {} }, 'INVALID_OPTION', /`signal` to be an AbortSignal/],
    ['a broken middleware', { middleware: [5] }, 'INVALID_MIDDLEWARE', /middleware\[0\] is 5/],
    ['no limits but null', { limits: null }, 'INVALID_OPTION', /`limits` to be an object, got null/],
    ['limits that are no object', { limits: 0 }, 'INVALID_OPTION', /`limits` to be an object, got 0/],
    ['a tenant that is no text', { tenant: 5 }, 'INVALID_OPTION', /`tenant` to be text, got 5/],
    ['metadata that is text', { metadata: 'x' }, 'INVALID_OPTION', /`metadata` to be an object, got "x"/],
    ['metadata that is a list', { metadata: [1] }, 'INVALID_OPTION', /`metadata` to be an object, got \[1\]/],
    [
      'metadata that is no JSON',
      { metadata: { at: new Date(0) } },
      'INVALID_OPTION',
      /`metadata` to be JSON, got a Date at \.at/,
    ],
    ['an onRequest that is none', { onRequest: 5 }, 'INVALID_OPTION', /`onRequest` to be a function, got 5/],
    ['a parent that is none', { parent: {} }, 'INVALID_OPTION', /`parent` to be the `ctx` of.*got \{\}/],
    ['a number for a parent', { parent: 5 }, 'INVALID_OPTION', /`parent` to be the `ctx` of.*got 5/],
    ['options that are no object', 'fast', 'INVALID_OPTION', /`options` to be an object, got "fast"/],
    [
      'a signal in the place of options',
      new AbortController().signal,
      'INVALID_OPTION',
      /`options` to be an object, got \[object AbortSignal\]/,
    ],
    ['a list for options', [], 'INVALID_OPTION', /`options` to be an object, got \[\]/],
    [
      'limits in a map',
      { limits: new Map([['turns', 1]]) },
      'INVALID_OPTION',
      /`limits` to be an object, got \[object Map\]/,
    ],
    ['null', null, 'INVALID_OPTION', /`options` to be an object, got null/],
  ];
  for (const [name, options, code, message] of cases) {
    it(`with ${name} reject, and write nothing`, async () => {
      const store = memoryStore();
      const session = new Agent({ model, store }).session('s');
      await expect(session.run('go', options as never)).rejects.toEqual(coded(code, message));
      await expect(session.stream('go', options as never).result).rejects.toEqual(coded(code, message));
      expect(await store.head('s')).toBe(0);
    });
  }
});

describe('options of a resume', () => {
  const cases: [string, unknown, RegExp][] = [
    ['answers that are no object', { answers: 5 }, /`answers` to be an object, got 5/],
    [
      'answers in a map',
      { answers: new Map([['q', { type: 'approve' }]]) },
      /`answers` to be an object, got \[object Map\]/,
    ],
    ['a word for a yes', { allowPlanChange: 'no' }, /`allowPlanChange` to be true or false, got "no"/],
    ['a tenant that is no text', { tenant: 5 }, /`tenant` to be text, got 5/],
  ];
  for (const [name, options, message] of cases) {
    it(`with ${name} reject`, async () => {
      const session = new Agent({ model }).session('s');
      await expect(session.resume(options as never)).rejects.toEqual(coded('INVALID_OPTION', message));
    });
  }
});

describe('input of a run', () => {
  const cases: [string, unknown, RegExp][] = [
    ['nothing', undefined, /Expected text, content or a message, got undefined/],
    ['null', null, /got null/],
    ['a number', 5, /got 5/],
    ['an empty list', [], /Expected at least one message, got \[\]/],
    ['an object without a role', { text: 'x' }, /a role of user, assistant, tool, got \{"text":"x"\}/],
    ['an unknown role', { role: 'system', content: 'x' }, /a role of user, assistant, tool/],
    ['a role every object has', { role: 'constructor', content: 'x' }, /a role of user/],
    ['content that is no list', { role: 'user', content: 5 }, /content to be text or a list/],
    [
      'a part without a type',
      { role: 'user', content: [{ text: 'x' }] },
      /every content part to have a `type`/,
    ],
    ['a part that is null', { role: 'user', content: [null] }, /every content part to have a `type`/],
    ['text that is no text', [{ type: 'text', text: 5 }], /text content to have a `text` that is text/],
    ['an image without data', [{ type: 'image', mimeType: 'image/png' }], /image content to have a `data`/],
    [
      'a part no user can send',
      { role: 'user', content: [{ type: 'tool-call', id: 'x', name: 'y', arguments: '{}' }] },
      /role user to be text, image, file/,
    ],
    ['an unknown part', [{ type: 'video', data: '' }], /role user to be text, image, file/],
    [
      'a result without its call',
      { role: 'tool', toolCallId: 'x', toolName: 'y', content: 'z' },
      /the result of call "x" does not follow its call/,
    ],
    ['a result of nothing', { role: 'tool', content: 'z' }, /`toolCallId` and a `toolName`/],
    [
      'a call without its result',
      assistantMessage([{ type: 'tool-call', id: 'x', name: 'y', arguments: '{}' }]),
      /call "x" has no result/,
    ],
    ['a bad message among good ones', ['fine', { role: 'nobody' }], /a role of user/],
    [
      'a function in the metadata of a message',
      { role: 'user', content: 'x', metadata: { deep: [{ f() {} }] } },
      /metadata of a message to be an object of JSON values, got a function \(f\) at \.deep\[0\]\.f/,
    ],
    [
      'a function in the metadata of content',
      [{ type: 'text', text: 'x', metadata: { f() {} } }],
      /JSON values, got a function \(f\) at \.f/,
    ],
    ['metadata no journal can hold', { role: 'user', content: 'x', metadata: { n: 5n } }, /got 5n at \.n/],
    ['metadata that is text', { role: 'user', content: 'x', metadata: 'x' }, /JSON values, got "x"/],
    [
      'details no journal can hold',
      [
        assistantMessage([{ type: 'tool-call', id: 'x', name: 'y', arguments: '{}' }]),
        { role: 'tool', toolCallId: 'x', toolName: 'y', content: 'z', details: { n: 5n } },
      ],
      /a `details` that can be written as JSON/,
    ],
    ['a function beside the content', { role: 'user', content: 'x', f() {} }, /a message of plain data/],
  ];
  for (const [name, input, message] of cases) {
    it(`that is ${name} is refused, and nothing is appended`, async () => {
      const agent = new Agent({ model, store: memoryStore() });
      const error = await agent
        .session('s')
        .run(input as never)
        .catch((reason) => reason);
      expect(error).toEqual(coded('INVALID_MESSAGE', message));
      expect(await agent.session('s').messages()).toEqual([]);
    });
  }
  it('of steer() and followUp() is checked at the call', async () => {
    const session = new Agent({ model }).session('s');
    await expect(session.steer(undefined as never)).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
    await expect(session.followUp({ role: 'user' } as never)).rejects.toMatchObject({
      code: 'INVALID_MESSAGE',
    });
    for (const metadata of [{ f() {} }, { n: 5n }, 'text']) {
      const message = { role: 'user', content: 'x', metadata } as never;
      await expect(session.steer(message)).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
      await expect(session.followUp(message)).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
    }
  });
  it("stays the caller's object, also when it is sent into a run", async () => {
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }], metadata: {} };
    const session = new Agent({ model, store: memoryStore() }).session('s');
    await session.steer(message);
    await session.followUp(message);
    expect(Object.isFrozen(message) || Object.isFrozen(message.metadata)).toBe(false);
  });
  it('that came through the inbox and would break the history is left out, visibly', async () => {
    const agent = new Agent({ model: scriptedModel(['a']), store: memoryStore() });
    await agent.store.post('s', {
      type: 'steer',
      message: { ...assistantMessage([{ type: 'tool-call', id: 'x', name: 'y', arguments: '{}' }]), id: '' },
    });
    const { result, events } = await watched(agent.session('s'), 'go');
    expect(result.status).toBe('done');
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'message_refused',
      data: { reason: 'call "x" has no result.' },
    });
  });
  it('may be text, content, a message or a list of them', async () => {
    for (const input of [
      'go',
      [{ type: 'text', text: 'go' }],
      userMessage('go'),
      { role: 'user', content: 'go' },
      ['go'],
      [userMessage('go')],
    ]) {
      const { result } = await watched(new Agent({ model: scriptedModel(['ok']) }), input as never);
      expect(textOf(result.messages[0]!)).toBe('go');
    }
  });
  it('for a session without a name is refused', () => {
    for (const id of ['', undefined, 5])
      expect(thrown(() => new Agent({ model }).session(id as never))).toMatchObject({
        code: 'INVALID_OPTION',
      });
  });
});

describe('a function of messages given something else', () => {
  const cases: [string, () => unknown, string, RegExp][] = [
    [
      'userMessage()',
      () => userMessage(undefined as never),
      'INVALID_MESSAGE',
      /a list of content, got \{\}/,
    ],
    ['userMessage(5)', () => userMessage(5 as never), 'INVALID_MESSAGE', /got \{"content":5\}/],
    ['assistantMessage(5)', () => assistantMessage(5 as never), 'INVALID_MESSAGE', /got \{"content":5\}/],
    ['textOf()', () => textOf(undefined as never), 'INVALID_MESSAGE', /a list of content, got undefined/],
    ['textOf("x")', () => textOf('x' as never), 'INVALID_MESSAGE', /a list of content, got "x"/],
    ['toolCallsOf(null)', () => toolCallsOf(null as never), 'INVALID_MESSAGE', /got null/],
    [
      'syntheticUserMessage() without a source',
      () => syntheticUserMessage('x', undefined as never),
      'INVALID_OPTION',
      /an object with source for syntheticUserMessage\(\), got undefined/,
    ],
    [
      'syntheticUserMessage() with a misspelt one',
      () => syntheticUserMessage('x', { sorce: 'me' } as never),
      'INVALID_OPTION',
      /Unknown option `sorce`/,
    ],
    [
      'syntheticUserMessage() with a source that is no text',
      () => syntheticUserMessage('x', { source: 5 } as never),
      'INVALID_OPTION',
      /`source` to be text, got 5/,
    ],
    [
      'requestKey()',
      () => requestKey(undefined as never),
      'INVALID_OPTION',
      /`request` to be.*got undefined/,
    ],
    ['requestKey({})', () => requestKey({} as never), 'INVALID_OPTION', /its `model: \{ provider, id \}`/],
  ];
  for (const [name, work, code, message] of cases) {
    it(`says so: ${name}`, () => {
      expect(thrown(work)).toEqual(coded(code, message));
    });
  }
  it('says that undefined is not a synthetic message', () => {
    expect(isSyntheticMessage(undefined as never)).toBe(false);
  });
});

it('every coded error carries its code and is an AlliumError', () => {
  const error = thrown(() => new Agent({ model, nope: 1 } as never));
  expect(error).toBeInstanceOf(AlliumError);
  expect(error).toMatchObject({ name: 'AlliumError', code: 'INVALID_OPTION', data: { option: 'nope' } });
});
