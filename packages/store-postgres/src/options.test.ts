import { describe, expect, it } from 'vitest';
import { settingsOf } from './options.js';

const connectionString = 'postgres://127.0.0.1:1/none';

describe('wrong options of postgresStore()', () => {
  it.each<[string, unknown]>([
    ['`connectionString` to be postgres://', {}],
    ['`connectionString` to be postgres://', { connectionString: '' }],
    ['`pool` to be an object with query(), connect(), got null', { pool: null }],
    ['`pool` to be an object with query(), connect()', { pool: connectionString }],
    ['`maxConnections` to be an integer ≥ 1', { connectionString, maxConnections: 1e20 }],
    ['`schema` to be a name of lower-case letters', { connectionString, schema: null }],
    ['`schema` to be a name of lower-case letters', { connectionString, schema: 'My-Schema' }],
    ['`prepare` to be true or false', { connectionString, prepare: 'no' }],
    ['`notify` to be true with a `connectionString`', { connectionString, notify: null }],
    ['`setup` to be true or false, got "false"', { connectionString, setup: 'false' }],
    ['Unknown option `url` of postgresStore()', { url: connectionString }],
  ])('%s', (words, options) => {
    expect(() => settingsOf(options as never)).toThrow(words);
  });
});
