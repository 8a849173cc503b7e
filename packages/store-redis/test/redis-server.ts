/** A real Redis server for the tests. */
export { startRedis } from '../../../scripts/redis.mjs';
export type RedisServer = import('../../../scripts/redis.mjs').RedisServer;
