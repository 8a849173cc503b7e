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

it('says which server cannot be reached, and why', async () => {
  const store = redisStore({ url: 'redis://:secret@127.0.0.1:1/2' });
  await expect(store.head('s')).rejects.toMatchObject({
    code: 'STORE_FAILED',
    message:
      'Redis at 127.0.0.1:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1. Check that it runs and that `url` is its address.',
  });
  await store.close?.();
});
