import { Agent, tool } from 'allium';
import { structuredOutput } from 'allium/middleware/structured-output';
import { resolveModel as byRegistry, registerModel } from 'allium/registry';
import { scriptedModel } from 'allium/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { partsOf } from '../test/ask.js';
import { fake, finish, text } from '../test/fakes.js';
import { type ModelScheme, registerModelScheme, resolveModel } from './index.js';
import { installed } from './schemes.js';

const VARIABLES = [
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_BASE_URL',
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'GEMINI_API_KEY',
  'OPENAI_COMPATIBLE_BASE_URL',
  'OPENAI_COMPATIBLE_API_KEY',
];

beforeEach(() => {
  for (const name of VARIABLES) vi.stubEnv(name, undefined);
});
afterEach(() => vi.unstubAllEnvs());

/** Notes the request and refuses it. */
function refusing() {
  const seen: { url: string; headers: Record<string, string>; body: Record<string, unknown> }[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const headers = Object.fromEntries(new Headers(init?.headers).entries());
    seen.push({ url: String(input), headers, body: JSON.parse(String(init?.body)) });
    return new Response('{}', { status: 400 });
  };
  return { seen, fetch };
}

describe('resolveModel', () => {
  it.each([
    ['openai/gpt-5', 'OPENAI_API_KEY', 'https://api.openai.com/v1/responses', 'authorization'],
    ['anthropic/claude-x', 'ANTHROPIC_API_KEY', 'https://api.anthropic.com/v1/messages', 'x-api-key'],
    [
      'google/gemini-x',
      'GOOGLE_GENERATIVE_AI_API_KEY',
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse',
      'x-goog-api-key',
    ],
  ])('makes %s with the key in %s', async (name, variable, url, header) => {
    vi.stubEnv(variable, 'secret-key');
    const { seen, fetch } = refusing();
    const model = resolveModel(name, { fetch, headers: { 'x-mine': '1' } });
    expect(`${model.provider}/${model.id}`).toBe(name);
    await expect(partsOf(model)).rejects.toMatchObject({ statusCode: 400 });
    expect(seen[0]).toMatchObject({
      url,
      headers: { [header]: expect.stringContaining('secret-key'), 'x-mine': '1' },
    });
  });

  it.each([
    ['google/gemini-2.5-flash', ['look', 'final_answer'], undefined],
    ['google/gemini-3-pro', ['look'], 'application/json'],
  ])('asks %s for JSON beside tools as it can', async (name, names, mime) => {
    const { seen, fetch } = refusing();
    const model = resolveModel(name, { apiKey: 'k', fetch });
    const input = z.object({});
    const look = tool({ name: 'look', description: 'Looks.', input, execute: () => 'seen' });
    const middleware = [structuredOutput({ schema: z.object({ x: z.number() }) })];
    await expect(new Agent({ model, tools: [look], middleware }).run('go')).rejects.toThrow();
    const { tools, generationConfig } = seen[0]!.body as Record<string, any>;
    expect(tools[0].functionDeclarations.map((one: { name: string }) => one.name)).toEqual(names);
    expect(generationConfig.responseMimeType).toBe(mime);
  });

  it.each([
    ['openai/gpt-5', 'No API key for the model "openai/gpt-5". Set OPENAI_API_KEY, or pass `apiKey`.'],
    ['anthropic/x', 'Set ANTHROPIC_API_KEY, or pass `apiKey`.'],
    ['google/x', 'Set GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY, or pass `apiKey`.'],
  ])('says at once which variable %s lacks', (name, message) => {
    expect(() => resolveModel(name)).toThrow(message);
    expect(() => resolveModel(name)).toThrow(expect.objectContaining({ code: 'MISSING_API_KEY' }));
    expect(() => resolveModel(name, { apiKey: 'k' })).not.toThrow();
  });

  it.each([
    ['openai-compatible/org/llama:3@http://localhost:1/v1', {}],
    ['openai-compatible/org/llama:3', { baseUrl: 'http://localhost:1/v1' }],
    ['openai-compatible/org/llama:3', {}],
  ])('makes %s with %j', async (name, options) => {
    vi.stubEnv('OPENAI_COMPATIBLE_BASE_URL', 'http://localhost:1/v1');
    const { seen, fetch } = refusing();
    const model = resolveModel(name, { fetch, ...options });
    expect([model.provider, model.id]).toEqual(['openai-compatible', 'org/llama:3']);
    await expect(partsOf(model)).rejects.toMatchObject({ statusCode: 400 });
    expect(seen[0]?.url).toBe('http://localhost:1/v1/chat/completions');
    expect(seen[0]?.headers.authorization).toBeUndefined();
    expect(seen[0]?.body).toMatchObject({ model: 'org/llama:3', stream_options: { include_usage: true } });
  });

  it('says how to give an address', () => {
    expect(() => resolveModel('openai-compatible/llama')).toThrow(
      'No address for the model "openai-compatible/llama". Write "openai-compatible/llama@http://localhost:11434/v1", pass `baseUrl`, or set OPENAI_COMPATIBLE_BASE_URL.',
    );
  });

  it('refuses other names, schemes and options', () => {
    expect(() => resolveModel('gpt-5')).toThrow(
      'Expected `name` to be the name of a model, such as "openai/gpt-5", got "gpt-5".',
    );
    expect(() => resolveModel('opnai/gpt-5')).toThrow(
      'No scheme "opnai" for the model "opnai/gpt-5". There are: offline, openai, anthropic, google, openai-compatible.',
    );
    expect(() => resolveModel('openai/gpt-5', { key: 'x' } as object)).toThrow(
      'Unknown option `key` of resolveModel().',
    );
  });

  it.each<[string, object, string]>([
    ['apiKey', { apiKey: 5 }, 'text, got 5'],
    ['baseUrl', { baseUrl: 5 }, 'text, got 5'],
    ['headers', { headers: 'x' }, 'an object of texts by name, got "x"'],
    ['headers.a', { headers: { a: 5 } }, 'text, got 5'],
    ['fetch', { fetch: {} }, 'a function, got {}'],
    ['providerTools.x', { providerTools: { x: 'y' } }, 'a tool that a provider defines'],
    ['acceptUnfinished', { acceptUnfinished: 'false' }, 'true or false, got "false"'],
  ])('refuses a wrong `%s` at once, also for registered schemes', async (option, options, expected) => {
    const remove = registerModelScheme('mine', () => async () => fake('v3', []).model);
    const error = expect.objectContaining({
      ...{ code: 'INVALID_OPTION', data: expect.objectContaining({ option }) },
      message: expect.stringContaining(`Expected \`${option}\` to be ${expected}`),
    });
    for (const name of ['openai/x', 'openai-compatible/x@http://localhost:1/v1', 'mine/x']) {
      const given = { ...(name === 'openai/x' && { apiKey: 'k' }), ...options };
      expect(() => resolveModel(name, given)).toThrow(error);
    }
    await expect(byRegistry('mine/x', options)).rejects.toThrow(error);
    remove();
  });
});

describe('registerModelScheme', () => {
  const greeting = () => fake('v3', [[...text('Hi.'), finish('v3')]]).model;

  it('adds a scheme for AI SDK models, our models and promises of either, until it is removed', async () => {
    const own: ModelScheme = (id) => ({ ...greeting(), modelId: id });
    for (const scheme of [own, (id: string) => async () => own(id, {}) as never] as ModelScheme[]) {
      const remove = registerModelScheme('mine', scheme);
      const model = resolveModel('mine/a/b', { price: { input: 1, output: 1 } });
      expect(model).toMatchObject({ id: 'a/b', price: { input: 1 } });
      for (let i = 0; i < 2; i++)
        expect(await partsOf(model)).toMatchObject([{ text: 'Hi.' }, { type: 'finish' }]);
      remove();
      expect(() => resolveModel('mine/a')).toThrow('No scheme "mine"');
    }
    const remove = registerModelScheme('again', () => resolveModel('openai/x', { apiKey: 'k' }));
    expect(resolveModel('again/y')).toMatchObject({ provider: 'openai', id: 'x' });
    remove();
  });

  it('replaces a scheme and restores it when removed', () => {
    const remove = registerModelScheme('openai', () => greeting());
    expect(resolveModel('openai/x').provider).toBe('fake');
    remove();
    expect(() => resolveModel('openai/x')).toThrow('OPENAI_API_KEY');
    remove();
    expect(() => resolveModel('openai/x')).toThrow('OPENAI_API_KEY');
  });

  it('loads once for simultaneous calls, and tries again after a failed load', async () => {
    let loads = 0;
    const remove = registerModelScheme('flaky', () => async () => {
      loads++;
      if (loads === 1) throw new Error('not now');
      return greeting();
    });
    const model = resolveModel('flaky/x');
    await expect(partsOf(model)).rejects.toThrow('not now');
    await Promise.all([partsOf(model), partsOf(model)]);
    expect(loads).toBe(2);
    remove();
  });

  it('shares its names with allium/registry, in both directions', async () => {
    const undo = [
      registerModelScheme('theirs', (id) => ({ ...greeting(), modelId: id })),
      registerModel('ours', (_, { id }) => scriptedModel([`I am ${id}.`], { provider: 'ours', id })),
      registerModel('later', async () => scriptedModel(['Late.'], { provider: 'later', id: 'x' })),
    ];
    expect(await byRegistry('theirs/a')).toMatchObject({ provider: 'fake', id: 'a' });
    expect(resolveModel('ours/polly')).toMatchObject({ provider: 'ours', id: 'polly' });
    expect(await partsOf(resolveModel('later/x'))).toMatchObject([{ text: 'Late.' }, { type: 'finish' }]);
    expect(resolveModel('later/x', { price: { input: 1, output: 2 } }).price).toEqual({
      input: 1,
      output: 2,
    });
    const { provider, id, price } = await byRegistry('offline');
    expect(resolveModel('offline')).toMatchObject({ provider, id, price });
    expect((await partsOf(resolveModel('offline'))).at(-1)).toMatchObject({ metadata: { offline: true } });
    const load = () => import('./index.js');
    await expect(byRegistry('openai/gpt-5', {}, { load })).rejects.toMatchObject({ code: 'MISSING_API_KEY' });
    expect(await byRegistry('openai/gpt-5', { apiKey: 'k' }, { load })).toMatchObject({
      provider: 'openai',
      id: 'gpt-5',
    });
    for (const one of undo) one();
  });

  it('fails the first request with the error of an async factory of allium/registry', async () => {
    const remove = registerModel('fails', () => Promise.reject(new Error('no luck')));
    const model = resolveModel('fails/x');
    // A rejection that nobody handles would end the process meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
    await expect(partsOf(model)).rejects.toThrow('no luck');
    remove();
  });

  it('refuses a name that cannot stand before a slash, and a factory that makes no model', () => {
    expect(() => registerModelScheme('a/b', () => greeting())).toThrow('Expected `scheme` to be a name');
    expect(() => registerModelScheme('ok', 1 as never)).toThrow(
      'Expected `make` to be a function that makes a model',
    );
  });
});

describe('a package that is not installed', () => {
  const failing = (message: string, code?: string) => () =>
    Promise.reject(Object.assign(new Error(message), { code }));

  it('is an error with the command that installs it', async () => {
    const load = failing("Cannot find package '@ai-sdk/openai' imported from here", 'ERR_MODULE_NOT_FOUND');
    await expect(installed('@ai-sdk/openai', load)).rejects.toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message: 'The package @ai-sdk/openai is needed but not installed. Run: npm install @ai-sdk/openai',
    });
  });

  it('is not confused with a package that fails itself or lacks a dependency', async () => {
    for (const load of [failing('Boom.'), failing("Cannot find package 'zod'", 'ERR_MODULE_NOT_FOUND')])
      await expect(installed('@ai-sdk/openai', load)).rejects.not.toHaveProperty('data');
  });
});
