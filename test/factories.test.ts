// Every factory says what it was given and what it takes, when that is no object of options.

import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import { AlliumError } from 'allium';
import * as middleware from 'allium/middleware';
import { offlineModel } from 'allium/models/offline';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { sqliteStore } from 'allium/stores/sqlite';
import { describe, expect, it } from 'vitest';

/** What `allium/middleware` exports beside factories that take an object of options. */
const HELPERS = new Set(
  'ask auditHead cacheKey deny fileSpill isTransient mayFallBack verifyAudit'.split(' '),
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

describe.each([
  ['fileStore', fileStore as Factory, 'dir, fsync'],
  ['sqliteStore', sqliteStore as Factory, 'path, database, fsync, exclusive, busyTimeoutMs'],
  ['postgresStore', postgresStore as Factory, 'connectionString, pool, maxConnections, schema, setup'],
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
