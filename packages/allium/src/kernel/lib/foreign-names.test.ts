// Names that people bring from other libraries: the error says what the thing is called here.

import { Agent, defineMiddleware, tool } from 'allium';
import { compaction, fallback, goal, subagents, toolEmulator, toolSelector } from 'allium/middleware';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const model = scriptedModel(['ok']);
const message = (make: () => unknown): string => {
  try {
    make();
  } catch (error) {
    return `${(error as { code?: string }).code}: ${(error as Error).message}`;
  }
  return 'nothing was thrown';
};

describe('the agent', () => {
  it.each([
    ['system', 'systemPrompt'],
    ['instructions', 'systemPrompt'],
    ['prompt', 'systemPrompt'],
    ['maxSteps', 'limits: { turns: … }'],
    ['max_iterations', 'limits: { turns: … }'],
    ['stopWhen', 'limits: { turns: … }, or the hook shouldStopAfterTurn'],
    ['temperature', 'settings: { temperature: … }'],
    ['maxTokens', 'settings: { maxOutputTokens: … }'],
    ['hooks', 'middleware: [ … ]'],
    ['checkpointer', 'store'],
    ['modelSettings', 'settings'],
    ['initialState', 'systemPrompt, model and tools as options of their own'],
    ['onStepFinish', 'observers'],
    ['experimental_telemetry', 'observability() in middleware'],
    ['mcpServers', 'mcp( … ) of "@allium/mcp" in middleware'],
    ['abortSignal', 'agent.run( … , { signal })'],
    ['sessionId', 'agent.session(id).run( … )'],
    ['headers', 'options of fromAiSdk( … ) or resolveModel( … )'],
    ['debug', 'consoleLogger() in middleware'],
    ['toolApproval', 'approval() in middleware'],
    ['runtimeContext', 'metadata of a run, or runOptions of a middleware'],
  ])('says what `%s` is', (name, here) => {
    expect(message(() => new Agent({ model, [name]: 1 } as never))).toBe(
      `INVALID_OPTION: Unknown option \`${name}\` of Agent. Here that is \`${here}\`.`,
    );
  });

  it.each([
    ['a name', 'openai/gpt-5', 'resolveModel("openai/gpt-5") of "@allium/ai-sdk"'],
    ['a name of LangChain', 'openai:gpt-5', 'resolveModel("openai/gpt-5") of'],
    ['a name of LangChain', 'google_genai:gemini-3-pro', 'resolveModel("google/gemini-3-pro") of'],
    ['a name of OpenAI', 'gpt-5', 'resolveModel("openai/gpt-5") of'],
    ['a name of Anthropic', 'claude-sonnet-4-5', 'resolveModel("anthropic/claude-sonnet-4-5") of'],
    ['a name of nobody', 'llama3.2:3b', 'resolveModel("<provider>/llama3.2:3b") of'],
    [
      'a model of the AI SDK',
      { specificationVersion: 'v2', doStream() {}, doGenerate() {} },
      'fromAiSdk(model)',
    ],
    ['a provider of the AI SDK', () => {}, 'has to be called with the name of a model'],
    ['a model of LangChain', { lc_namespace: [], bindTools() {}, stream() {} }, 'a model of LangChain'],
    ['the client of a provider', { chat: {}, responses: {} }, 'the client of a provider'],
  ])('says what to do with %s in the place of a model', (_, given, advice) => {
    const told = message(() => new Agent({ model: given as never }));
    expect(told).toMatch(/^INVALID_OPTION: Expected `model` to be a model with/);
    expect(told).toContain(advice);
  });

  it.each([
    ['fallback', 'models[0]', (given: never) => fallback({ models: [given] })],
    ['compaction', 'summaryModel', (given: never) => compaction({ summaryModel: given, maxTokens: 9000 })],
    ['goal', 'evaluator', (given: never) => goal({ evaluator: given })],
    ['subagents', 'defaultModel', (given: never) => subagents({ defaultModel: given })],
    ['toolSelector', 'model', (given: never) => toolSelector({ model: given })],
    ['toolEmulator', 'model', (given: never) => toolEmulator({ model: given })],
  ])('so does %s', (_, option, make) => {
    for (const [given, advice] of [
      ['openai/gpt-5', 'resolveModel("openai/gpt-5") of "@allium/ai-sdk"'],
      [{ specificationVersion: 'v2', doStream() {}, doGenerate() {} }, 'fromAiSdk(model)'],
      [{ lc_namespace: [], bindTools() {}, stream() {} }, 'a model of LangChain'],
    ]) {
      const told = message(() => make(given as never));
      expect(told).toContain(`INVALID_OPTION: Expected \`${option}\` to be a model with`);
      expect(told).toContain(advice);
    }
  });

  it('says what limits and settings are called', () => {
    expect(message(() => new Agent({ model, limits: { maxSteps: 3 } as never }))).toContain(
      'Here that is `turns`.',
    );
    expect(message(() => new Agent({ model, settings: { maxTokens: 3 } as never }))).toContain(
      'Here that is `maxOutputTokens`.',
    );
  });
});

describe('the designs that this one unites', () => {
  it.each<[string, () => unknown, string]>([
    ['a provider', () => new Agent({ provider: model } as never), 'Here that is `model`.'],
    [
      'hitl',
      () => new Agent({ model, middleware: [{ name: 'x', hitl: true } as never] }),
      'Did you mean `suspends`?',
    ],
    [
      'extra_llm_calls',
      () => new Agent({ model, middleware: [{ name: 'x', extra_llm_calls: () => [] } as never] }),
      'Did you mean `extraLlmCalls`?',
    ],
    [
      'max_tokens_before_compact',
      () => compaction({ summaryModel: model, max_tokens_before_compact: 9000 } as never),
      'Here that is `maxTokens`.',
    ],
    [
      'min_compact_messages',
      () => compaction({ summaryModel: model, maxTokens: 9000, min_compact_messages: 4 } as never),
      'Here that is `minMessages`.',
    ],
    ['event_mapper', () => subagents({ event_mapper: () => {} } as never), 'Here that is `mapEvent`.'],
    ['event_handler', () => subagents({ event_handler: () => {} } as never), 'Here that is `onEvent`.'],
    [
      'inherited_middleware',
      () => subagents({ inherited_middleware: [] } as never),
      'Here that is `inheritMiddleware`.',
    ],
    [
      'excluded_tool_names',
      () => subagents({ excluded_tool_names: [] } as never),
      'Here that is `excludeTools`.',
    ],
  ])('%s is told what it is here', (_, make, here) => {
    expect(message(make)).toContain(here);
  });
});

describe('a run', () => {
  it.each([
    ['abortSignal', 'signal'],
    ['maxSteps', 'limits: { turns: … }'],
    ['threadId', 'agent.session(id).run( … )'],
    ['context', 'metadata'],
    ['toolChoice', 'new Agent({ settings })'],
    ['output', 'structuredOutput({ schema }) in middleware'],
    ['prompt', 'the first argument: agent.run(input)'],
    ['images', "parts of the input: agent.run([{ type: 'image', … }])"],
  ])('says what `%s` is', async (name, here) => {
    const agent = new Agent({ model: scriptedModel(['ok', 'ok']) });
    const given = { [name]: 1 } as never;
    const told = [
      await agent.run('go', given).catch((error: Error) => error.message),
      await agent
        .session('ann')
        .run('go', given)
        .catch((error: Error) => error.message),
      await agent.stream('go', given).result.catch((error: Error) => error.message),
    ];
    for (const one of told) expect(one).toContain(`Here that is \`${here}\`.`);
  });
});

describe('an input', () => {
  it.each([
    ['a system message', [{ role: 'system', content: 'Be brief.' }], 'new Agent({ systemPrompt })'],
    ['messages in an object', { messages: [{ role: 'user', content: 'Hi' }] }, 'run(messages)'],
    ['a prompt in an object', { prompt: 'Hi' }, 'run(prompt)'],
    ['a message of a chat', { role: 'user', parts: [{ type: 'text', text: 'Hi' }] }, '`content`'],
  ])('says what to do with %s', async (_, given, advice) => {
    await expect(new Agent({ model }).run(given as never)).rejects.toMatchObject({
      code: 'INVALID_MESSAGE',
      message: expect.stringContaining(advice),
    });
  });
});

describe('a tool', () => {
  const own = { name: 'add', description: 'Adds.', execute: () => 1 };

  it.each(['inputSchema', 'parameters', 'schema', 'args_schema'])('says what `%s` is', (name) => {
    expect(message(() => tool({ ...own, [name]: z.object({}) } as never))).toContain(
      `Unknown option \`${name}\` of tool "add". Here that is \`input\`.`,
    );
  });

  it('says what a handler is, and that it takes one object', () => {
    expect(message(() => tool({ ...own, input: z.object({}), handler() {} } as never))).toContain(
      'Here that is `execute`.',
    );
    expect(message(() => tool((() => 1) as never))).toContain(
      'one object with name, description, input and execute',
    );
  });
});

describe('a middleware', () => {
  it.each([
    ['wrapModelCall', 'wrapModel'],
    ['wrapToolCall', 'wrapTool'],
    ['beforeAgent', 'beforeRun'],
    ['after_agent', 'afterRun'],
    ['wrapGenerate', 'wrapModel'],
    ['wrapStream', 'wrapModel'],
    ['transformParams', 'beforeModel'],
    ['processInput', 'acceptMessage'],
    ['processOutputResult', 'afterModelResponse'],
    ['onAgentStart', 'beforeRun'],
    ['beforeInvocation', 'beforeRun'],
  ])('says what `%s` is', (name, here) => {
    const foreign = defineMiddleware({ name: 'mine', [name]: () => {} } as never);
    expect(message(() => new Agent({ model, middleware: [foreign] }))).toBe(
      `INVALID_MIDDLEWARE: Middleware "mine": \`${name}\` is not a hook. Did you mean \`${here}\`?`,
    );
  });

  it('says what a schema of state is', () => {
    const foreign = { name: 'mine', stateSchema: z.object({}), beforeModel() {} } as never;
    expect(message(() => new Agent({ model, middleware: [foreign] }))).toContain('Did you mean `state`?');
  });
});
