// One of several processes that share a backend: node backends-child.mjs <backend> <url> <prefix> <runs>. It says `ready`,
// waits for a byte on its input, makes its runs, and prints what came of them as one line of JSON.

import fs from 'node:fs';
import { Agent } from 'allium';
import { budget } from 'allium/middleware/budget';
import { cache } from 'allium/middleware/cache';
import { rateLimit } from 'allium/middleware/rate-limit';
import { scriptedModel, text } from 'allium/testing';
import { Redis } from 'ioredis';
import { Keyv } from 'keyv';
import { RateLimiterRedis } from 'rate-limiter-flexible';

const [backend = '', url = '', prefix = '', runs = '0'] = process.argv.slice(2);
const redis = new Redis(url);

/** @param {number} points @param {number} duration */
const limiter = (points, duration) =>
  new RateLimiterRedis({ storeClient: redis, keyPrefix: prefix, points, duration });

/** @type {Record<string, () => import('allium').Middleware>} */
const BACKENDS = {
  'rate-limit': () => rateLimit({ limiter: limiter(10, 3600), mode: 'reject' }),
  'rate-limit that waits': () => rateLimit({ limiter: limiter(5, 1) }),
  budget: () =>
    budget({
      usd: 1,
      per: 'tenant',
      name: prefix,
      store: { increment: async (key, by) => Number(await redis.incrbyfloat(key, by)) },
    }),
  cache: () =>
    cache({
      store: new Keyv({
        namespace: prefix,
        store: {
          get: (/** @type {string} */ key) => redis.get(key),
          set: (/** @type {string} */ key, /** @type {string} */ value) => redis.set(key, value),
          delete: (/** @type {string} */ key) => redis.del(key),
          clear: () => redis.flushdb(),
        },
      }),
    }),
};

// A call costs $0.10, and no more than 100 tokens may be set aside for it.
const usage = { inputTokens: 0, outputTokens: 100 };
const model = scriptedModel([text('Hello.', usage)], { repeat: true, price: { input: 0, output: 1000 } });
const agent = new Agent({
  model,
  settings: { maxOutputTokens: 100 },
  tenant: 'acme',
  middleware: [/** @type {() => import('allium').Middleware} */ (BACKENDS[backend])()],
});

await redis.ping();
fs.writeSync(1, 'ready\n');
fs.readSync(0, Buffer.alloc(1));

/** @type {Record<string, number>} */
const ends = {};
let waits = 0;
await Promise.all(
  Array.from({ length: Number(runs) }, async () => {
    const stream = agent.stream('Hi.');
    let end = '';
    try {
      for await (const event of stream) if (event.type === 'custom' && event.name === 'rate-limit') waits++;
      end = (await stream.result).stop.reason;
    } catch (error) {
      const { code, cause } = /** @type {{ code: string, cause?: { code?: string } }} */ (error);
      end = cause?.code ?? code;
    }
    ends[end] = (ends[end] ?? 0) + 1;
  }),
);
fs.writeSync(1, `${JSON.stringify({ calls: model.requests.length, ends, waits })}\n`);
await redis.quit();
