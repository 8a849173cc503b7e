import type { NewEntry } from 'allium';
import { fileStore } from 'allium/stores/file';
import { memoryStore } from 'allium/stores/memory';
import { sqliteStore } from 'allium/stores/sqlite';
import { describe, expect, it } from 'vitest';

describe('wrong options of the stores', () => {
  it.each<[string, unknown]>([
    ['`path` to be the path of a file, or `:memory:`, got undefined', {}],
    ['`path` to be the path of a file, or `:memory:`, got ""', { path: '' }],
    ['`database` to be an object with exec(), prepare(), got null', { database: null }],
    ['`database` to be an object with exec(), prepare(), got "a.db"', { database: 'a.db' }],
    ["`fsync` to be 'always' or 'checkpoint'", { path: ':memory:', fsync: 'never' }],
    ['`exclusive` to be true or false, got "no"', { path: ':memory:', exclusive: 'no' }],
    ['`busyTimeoutMs` to be an integer from 0', { path: ':memory:', busyTimeoutMs: 1e20 }],
    ['Unknown option `file` of sqliteStore()', { file: 'a.db' }],
    ['Expected `options` to be an object with path', undefined],
  ])('sqliteStore: %s', (words, options) => {
    expect(() => sqliteStore(options as never)).toThrow(words);
  });

  it.each<[string, unknown]>([
    ['`dir` to be the path of a directory, got undefined', {}],
    ['`dir` to be the path of a directory, got 7', { dir: 7 }],
    ["`fsync` to be 'always', 'run-end' or 'never', got true", { dir: 'sessions', fsync: true }],
    ['Unknown option `path` of fileStore()', { path: 'sessions' }],
    ['Expected `options` to be an object with dir', 'sessions'],
  ])('fileStore: %s', (words, options) => {
    expect(() => fileStore(options as never)).toThrow(words);
  });
});

it.each([
  ['memory', () => memoryStore()],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('a fork without an id is refused: nothing could open it (%s)', async (_, open) => {
  const store = open();
  const message = { id: 'a', role: 'user', content: [] } as const;
  const entry: NewEntry = { v: 1, at: 7, type: 'message', runId: 'r', message };
  await store.append('s', 0, [entry]);
  await expect(async () => store.fork('s', 1, '')).rejects.toThrow('`newId` to be non-empty text');
  expect(await store.head('')).toBe(0);
});
