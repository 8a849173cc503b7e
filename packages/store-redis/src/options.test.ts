import { describe, expect, it } from 'vitest';
import { redisStore } from './index.js';

describe('wrong options of redisStore()', () => {
  it.each<[string, unknown]>([
    ['`url` to be redis://', {}],
    ['`url` to be redis://', { url: '' }],
    ['`client` to be an object with eval(), evalsha(), got null', { client: null }],
    ['`client` to be an object with eval(), evalsha(), got {} without', { client: { evalsha() {} } }],
    ['`prefix` to be text without braces', { client: { eval() {}, evalsha() {} }, prefix: '{a}' }],
    ['Unknown option `connectionString` of redisStore()', { connectionString: 'redis://x' }],
  ])('%s', (words, options) => {
    expect(() => redisStore(options as never)).toThrow(words);
  });
});
