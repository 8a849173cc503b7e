import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Agent, BaseMiddleware, defineMiddleware, type Middleware, memoryStore, tool } from 'allium';
import * as box from 'allium/middleware';
import {
  optionsSchemaOf,
  registered,
  registerMiddleware,
  registerModel,
  registerStore,
  registerTool,
  resolveMiddleware,
  resolveModel,
  resolveStore,
  resolveTool,
} from 'allium/registry';
import { scriptedModel } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { camelCase } from '../../../../scripts/layout.mjs';
import { alliumFolder } from '../../../../scripts/repository.mjs';
import { guardrailArguments } from '../../../../test/guardrail-arguments.js';
import { middlewareArguments } from '../../../../test/middleware-arguments.js';

const folders = readdirSync(join(alliumFolder, 'src/middleware'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);
/** Folders of @allium/guardrails that hold one. */
const guardrails = readdirSync(join(alliumFolder, '../guardrails/src')).filter((name) =>
  existsSync(join(alliumFolder, '../guardrails/src', name, 'README.md')),
);
const temporary = mkdtempSync(join(tmpdir(), 'allium-registry-'));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

const nothing = (name: string): Middleware => defineMiddleware({ name, beforeRun() {} });

describe('the middleware of the box', () => {
  it('are all registered, under the names of their folders and factories', () => {
    expect(
      registered('middleware')
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...folders, ...guardrails, 'mcp', 'otel'].sort());
    for (const name of folders) expect(box, name).toHaveProperty(camelCase(name));
  });

  it.each(folders)('%s is made by name', async (name) => {
    const options = (middlewareArguments[name]?.() ?? [{}])[0] as object;
    expect(await resolveMiddleware(name, options)).toMatchObject({ name });
  });

  it.each(['max-turns', 'maxTurns', 'MAX_TURNS', 'Maxturns'])('are found as %s', async (name) => {
    expect((await resolveMiddleware(name, { turns: 2 })).name).toBe('max-turns');
  });

  it('have a shape that names every option a file can hold', async () => {
    const { properties } = (await optionsSchemaOf('middleware', 'retry')) as { properties: object };
    expect(properties).toMatchObject({
      attempts: { type: 'integer', minimum: 1, maximum: 100 },
      jitter: { enum: ['full', 'none'] },
      retryOn: { required: ['import'] },
    });
    expect(properties).not.toHaveProperty('clock');
  });

  it('judge their options themselves', async () => {
    await expect(resolveMiddleware('retry', { attempts: 0 })).rejects.toThrow(
      'Expected `attempts` to be an integer from 1 to 100, got 0.',
    );
    await expect(resolveMiddleware('retry', { atempts: 1 })).rejects.toThrow('Did you mean `attempts`?');
  });
});

describe('the guardrails', () => {
  it.each(guardrails)('%s is made by name', async (name) => {
    const load = () => import('@allium/guardrails');
    const options = guardrailArguments[name] ?? {};
    expect(await resolveMiddleware(name, options, { load })).toMatchObject({ name });
    await expect(resolveMiddleware(name, { nosuchoption: 1 }, { load })).rejects.toThrow('nosuchoption');
  });

  it('say what to install if their package is missing', async () => {
    const load = (name: string) =>
      Promise.reject(
        Object.assign(new Error(`Cannot find package '${name}'`), { code: 'ERR_MODULE_NOT_FOUND' }),
      );
    await expect(resolveMiddleware('pii', {}, { load })).rejects.toMatchObject({
      code: 'MISSING_DEPENDENCY',
      message:
        '"pii" needs the package @allium/guardrails, which is not installed. Run `npm install @allium/guardrails`.',
    });
  });
});

describe('what files can say in the place of objects', () => {
  it('names of models, in fallback and tool-emulator', async () => {
    const restore = registerModel('spare', () => scriptedModel(['spare'], { provider: 'test', id: 'spare' }));
    const agent = new Agent({
      model: { provider: 'test', id: 'down', stream: () => fail() },
      middleware: [await resolveMiddleware('fallback', { models: ['spare'] })],
    });
    expect((await agent.run('Hi')).text).toBe('spare');
    expect(await resolveMiddleware('tool-emulator', { model: { use: 'offline' } })).toHaveProperty(
      'name',
      'tool-emulator',
    );
    await expect(resolveMiddleware('fallback', { models: ['offlne'] })).rejects.toThrow(
      'Did you mean "offline"?',
    );
    restore();
  });

  it('paths, from the folder that was given', async () => {
    const mine = await resolveMiddleware('audit-log', { sink: { file: 'audit.log' } }, { dir: temporary });
    await new Agent({ model: scriptedModel(['Hi.']), middleware: [mine] }).run('Hi');
    expect(existsSync(join(temporary, 'audit.log'))).toBe(true);
    const tape = await resolveMiddleware('record', { to: 'tape.jsonl' }, { dir: temporary });
    await new Agent({ model: scriptedModel(['Hi.']), middleware: [tape] }).run('Hi');
    const replayed = await resolveMiddleware('replay', { from: 'tape.jsonl' }, { dir: temporary });
    expect((await new Agent({ model: scriptedModel([]), middleware: [replayed] }).run('Hi')).text).toBe(
      'Hi.',
    );
  });

  it('a store in memory, a JSON Schema', async () => {
    expect((await resolveMiddleware('idempotency', { store: 'memory' })).name).toBe('idempotency');
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const agent = new Agent({
      model: scriptedModel(['{"n":1}']),
      middleware: [await resolveMiddleware('structured-output', { schema })],
    });
    expect((await agent.run('Hi')).output).toEqual({ n: 1 });
  });

  it('leave wrong values to the factory', async () => {
    for (const [name, options] of [
      ['fallback', { models: 'offline' }],
      ['audit-log', { sink: 1 }],
      ['file-validator', { roots: 'x' }],
      ['record', {}],
      ['structured-output', {}],
    ] as const)
      await expect(resolveMiddleware(name, options), name).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
});

describe('registerMiddleware', () => {
  it('adds and replaces, and restores when removed', async () => {
    const first = registerMiddleware('My_own', () => nothing('first'));
    const second = registerMiddleware('my-own', () => nothing('second'));
    expect((await resolveMiddleware('myown')).name).toBe('second');
    second();
    expect((await resolveMiddleware('myown')).name).toBe('first');
    second();
    first();
    await expect(resolveMiddleware('my-own')).rejects.toMatchObject({ code: 'UNKNOWN_NAME' });
  });

  it('may stand in for one of the box', async () => {
    const restore = registerMiddleware('retry', () => nothing('mine'));
    expect((await resolveMiddleware('retry')).name).toBe('mine');
    expect(registered('middleware').filter(({ name }) => name === 'retry')).toMatchObject([
      { builtIn: false },
    ]);
    restore();
    expect((await resolveMiddleware('retry')).name).toBe('retry');
  });

  it('checks options with a Standard Schema, and passes on its output', async () => {
    const optionsSchema = z.object({ words: z.array(z.string()).default(['x']), n: z.number().optional() });
    const seen: unknown[] = [];
    const restore = registerMiddleware('filter', (options) => note(seen, options, nothing('filter')), {
      optionsSchema,
    });
    await resolveMiddleware('filter');
    expect(seen).toEqual([{ words: ['x'] }]);
    await expect(resolveMiddleware('filter', { words: ['a', 3] })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/Wrong `words\[1\]`: .* This is an option of middleware "filter"\./),
      data: { path: ['words', 1] },
    });
    restore();
  });

  it('refuses wrong names, factories and schemas, and factories that make nothing', async () => {
    expect(() => registerMiddleware('', () => nothing('x'))).toThrow('Expected `name` to be');
    expect(() => registerMiddleware('a b', () => nothing('x'))).toThrow('Expected `name` to be');
    expect(() => registerMiddleware('x', nothing('x') as never)).toThrow(
      'Expected `factory` to be a function',
    );
    class Polite extends BaseMiddleware {}
    expect(() => registerMiddleware('x', Polite as never)).toThrow('(options) => new Polite(options)');
    expect(() => registerMiddleware('x', () => nothing('x'), { optionsSchema: 1 as never })).toThrow(
      '`optionsSchema`',
    );
    const restore = registerMiddleware('empty', () => undefined as never);
    await expect(resolveMiddleware('empty')).rejects.toThrow(
      'a function that returns a middleware, got undefined',
    );
    await expect(resolveMiddleware('empty', [] as object)).rejects.toThrow(
      'Expected `options` to be an object',
    );
    restore();
  });
});

describe('an unknown name', () => {
  it('gets an error with the known names and the nearest one', async () => {
    await expect(resolveMiddleware('rety')).rejects.toThrow(
      /^No middleware is called "rety". Did you mean "retry"\? There are: approval, audit-log, .*retry, .*tool-selector, topics\.$/,
    );
    await expect(resolveMiddleware('zzz')).rejects.toThrow(/called "zzz"\. There are/);
    await expect(resolveStore('sqllite')).rejects.toThrow(
      'Did you mean "sqlite"? There are: file, memory, postgres, redis, sqlite.',
    );
    await expect(resolveModel('opnai/gpt-5')).rejects.toThrow('No model is called "opnai/gpt-5".');
    await expect(resolveTool('hammer')).rejects.toThrow('No tool is called "hammer". None is installed.');
  });
});

describe('models', () => {
  it('are found by the part before the slash, or by the whole name', async () => {
    const made: string[] = [];
    const restore = [
      registerModel('parrot', (_, { id, name }) => note(made, `${name} ${id}`, scriptedModel([]))),
      registerModel('parrot/special', () => note(made, 'special', scriptedModel([]))),
    ];
    await resolveModel('parrot/polly/2');
    await resolveModel('Parrot');
    await resolveModel('parrot/special');
    expect(made).toEqual(['parrot/polly/2 polly/2', 'Parrot ', 'special']);
    for (const undo of restore) undo();
  });

  it('offline is one of them', async () => {
    expect(await resolveModel('offline')).toMatchObject({ provider: 'allium', id: 'offline' });
  });

  it('of the AI SDK come from its package, and if that is missing the error has the command to install it', async () => {
    const asked: unknown[] = [];
    const load = async (specifier: string) => ({
      resolveModel: (...args: unknown[]) => note(asked, [specifier, ...args], scriptedModel([])),
    });
    await resolveModel('OpenAI/gpt-5', { apiKey: 'k' }, { load });
    expect(asked).toEqual([['@allium/ai-sdk', 'openai/gpt-5', { apiKey: 'k' }]]);
    const missing = Object.assign(new Error("Cannot find package '@allium/ai-sdk'"), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
    await expect(resolveModel('openai/x', {}, { load: () => Promise.reject(missing) })).rejects.toMatchObject(
      {
        code: 'MISSING_DEPENDENCY',
        message: expect.stringContaining('npm install @allium/ai-sdk'),
      },
    );
    const broken = new Error('boom');
    await expect(resolveModel('openai/x', {}, { load: () => Promise.reject(broken) })).rejects.toBe(broken);
  });
});

describe('stores', () => {
  it('keep their data below the folder that was given', async () => {
    for (const [name, options] of [
      ['file', { dir: 'sessions' }],
      ['sqlite', { path: 'deep/sessions.db' }],
    ] as const) {
      const store = await resolveStore(name, options, { dir: temporary });
      await new Agent({ model: scriptedModel(['Hi.']), store }).session('a').run('Hi');
      expect(await store.head('a')).toBeGreaterThan(0);
      await store.close?.();
    }
    expect(readdirSync(temporary)).toEqual(expect.arrayContaining(['sessions', 'deep']));
    expect(resolve(temporary, 'deep/sessions.db')).toSatisfy(existsSync);
  });

  it('can be registered; others come from their packages', async () => {
    const restore = registerStore('mine', () => memoryStore());
    expect(await resolveStore('mine')).toHaveProperty('append');
    restore();
    const load = async () => ({
      redisStore: (options: object) => ({ ...memoryStore(), append() {}, options }),
    });
    expect(await resolveStore('redis', { url: 'u' }, { load })).toMatchObject({ options: { url: 'u' } });
    await expect(resolveStore('postgres', {}, { load })).rejects.toThrow(
      'has no postgresStore(). Update it.',
    );
    await expect(resolveStore('file', { dir: '' })).rejects.toThrow('Expected `dir` to be a path');
  });
});

describe('tools', () => {
  it('are registered themselves or as a function that makes one or several', async () => {
    const hammer = tool({ name: 'hammer', description: '', input: z.object({}), execute: () => 'bang' });
    const restore = [
      registerTool('hammer', hammer),
      registerTool('box', ({ n = 1 }: { n?: number }) => Array.from({ length: n }, () => hammer)),
      registerTool('nail', () => 'nail' as never),
    ];
    expect(await resolveTool('Hammer')).toEqual([hammer]);
    expect(await resolveTool('box', { n: 3 })).toHaveLength(3);
    await expect(resolveTool('nail')).rejects.toMatchObject({ code: 'INVALID_TOOL' });
    for (const undo of restore) undo();
  });
});

/** Keeps `value` in `list`, and returns `result`. */
function note<T, R>(list: T[], value: T, result: R): R {
  list.push(value);
  return result;
}

function fail(): never {
  throw Object.assign(new Error('down'), { status: 503 });
}
