// Every factory says what it was given and what it takes, when that is no object of options; and no other function
// that is exported answers a careless first argument with an error of the language.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import * as allium from 'allium';
import { AlliumError } from 'allium';
import * as jsonSchema from 'allium/json-schema';
import * as middleware from 'allium/middleware';
import { offlineModel } from 'allium/models/offline';
import * as registry from 'allium/registry';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { sqliteStore } from 'allium/stores/sqlite';
import * as testing from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { alliumFolder } from '../scripts/repository.mjs';

/** What `allium/middleware` exports beside factories that take an object of options. */
const HELPERS = new Set(
  'ask auditHead cacheKey deny fileSpill isTransient mayFallBack policyFor verifyAudit'.split(' '),
);

type Factory = (options?: unknown) => unknown;

const functions = Object.entries(middleware).filter(([, one]) => typeof one === 'function');
const factories = Object.entries({
  ...Object.fromEntries(functions.filter(([name]) => !HELPERS.has(name))),
  offlineModel,
  fileStore,
  memoryStore,
  sqliteStore,
  postgresStore,
  redisStore,
}) as [string, Factory][];

const thrown = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

describe.each(factories)('%s()', (name, make) => {
  it.each([
    ['null', null],
    ['"x"', 'x'],
    ['5', 5],
    ['true', true],
    ['["x"]', ['x']],
    ['a function', () => {}],
  ])('refuses %s in place of its options', (shown, given) => {
    const error = thrown(() => make(given));
    expect(error).toBeInstanceOf(AlliumError);
    expect(error).toMatchObject({ code: 'INVALID_OPTION' });
    expect((error as Error).message).toMatch(/^Expected `options` to be (an object with \w|\{\} for)/);
    expect((error as Error).message).toContain(` for ${name}(), got ${shown}`);
  });

  it('refuses a name it does not know', () => {
    const error = thrown(() => make({ nosuchoption: 1 }));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', data: { option: 'nosuchoption' } });
    expect((error as Error).message).toContain(`Unknown option \`nosuchoption\` of ${name}().`);
  });
});

it.each(foldersOf('src/middleware'))(
  'allium/middleware has all that allium/middleware/%s has',
  async (folder) => {
    const { OPTIONS: _, ...own } = (await import(`allium/middleware/${folder}`)) as Record<string, unknown>;
    expect(middleware).toMatchObject(own);
  },
);

describe.each([
  ['fileStore', fileStore as Factory, 'dir, fsync'],
  ['sqliteStore', sqliteStore as Factory, 'path, database, fsync, exclusive, busyTimeoutMs'],
  [
    'postgresStore',
    postgresStore as Factory,
    'connectionString, pool, maxConnections, schema, prepare, notify, setup',
  ],
  ['redisStore', redisStore as Factory, 'url, client, prefix'],
])('%s()', (name, make, takes) => {
  it('says what it needs when it is given nothing', () => {
    expect(thrown(() => make())).toMatchObject({
      code: 'INVALID_OPTION',
      message: `Expected \`options\` to be an object with ${takes} for ${name}(), got undefined.`,
    });
  });
});

it('memoryStore() takes no options, and an empty object for none', () => {
  expect(thrown(() => (memoryStore as Factory)({ path: 'x' }))).toMatchObject({
    code: 'INVALID_OPTION',
    message: 'Unknown option `path` of memoryStore(). It takes none.',
  });
  expect(memoryStore({}).head('s')).toBe(0);
});

function foldersOf(folder: string): string[] {
  return readdirSync(join(alliumFolder, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** Those that define tests. */
const SUITES = new Set(['testMiddleware', 'testModel', 'testStore']);

const exported = Object.entries({
  allium,
  'allium/json-schema': jsonSchema,
  'allium/middleware': middleware,
  'allium/registry': registry,
  'allium/testing': testing,
}).flatMap(([path, all]) =>
  Object.entries(all)
    .filter(([name, one]) => typeof one === 'function' && !SUITES.has(name))
    .map(([name, one]) => [name, path, one as unknown as Callable] as const),
);

type Callable = { (...given: unknown[]): unknown; new (...given: unknown[]): unknown };

it.each(exported)('%s of %s works, or says what it takes, whatever it is given', async (_, __, called) => {
  const isClass = /^class\b/.test(String(called));
  for (const given of [[], [undefined], [null], [42], ['x'], [{}], [[]]]) {
    const call = async () => (isClass ? new called(...given) : called(...given));
    const error: unknown = await call().then(
      () => undefined,
      (raised) => raised,
    );
    if (error !== undefined)
      expect(error, JSON.stringify(given)).toMatchObject({ code: expect.stringMatching(/^[A-Z_]+$/) });
  }
});

it.each<[string, () => unknown, string]>([
  ['tool', () => allium.tool(undefined as never), 'Expected `options` to be one object'],
  ['modelName', () => allium.modelName(undefined as never), 'Expected `model` to be a model with provider'],
  ['cacheKey', () => middleware.cacheKey(undefined as never), 'Expected `ctx` to be the context of a model'],
  [
    'auditHead',
    () => middleware.auditHead(undefined as never, 's'),
    'Expected `store` to be an object with read()',
  ],
  [
    'auditHead',
    () => middleware.auditHead(memoryStore(), 5 as never),
    'Expected `session` to be text, got 5',
  ],
  [
    'collect',
    () => testing.collect(undefined as never),
    'Expected `stream` to be what agent.stream() returns',
  ],
  [
    'chunks',
    () => testing.chunks(undefined as never),
    "Expected `pieces` to be text, parts of a stream or 'tick'",
  ],
  [
    'toolCalls',
    () => testing.toolCalls('look' as never),
    'Expected `calls` to be objects such as { name, args, id',
  ],
  ['resolveTool', () => registry.resolveTool(undefined as never), 'No tool is called undefined. '],
  [
    'registered',
    () => registry.registered('tools' as never),
    "Expected `kind` to be 'middleware', 'model', 'store' or 'tool', got",
  ],
  [
    'checkOptionsSchema',
    () => registry.checkOptionsSchema(undefined as never, {}),
    'Expected `schema` to be a Standard Schema or a JSON Schema, got undefined',
  ],
])('%s() says what is wrong with its first arguments', async (_, call, message) => {
  const error: unknown = await Promise.resolve()
    .then(call)
    .catch((raised: unknown) => raised);
  expect(error).toBeInstanceOf(AlliumError);
  expect((error as Error).message).toContain(message);
});
