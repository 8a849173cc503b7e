/** Every middleware of the box. Each is also at `allium/middleware/<name>`. */
export { type CacheEntry, type CacheOptions, type CacheStore, cache, cacheKey } from './cache/index.js';
export { type CircuitBreakerOptions, circuitBreaker } from './circuit-breaker/index.js';
export { type ConcurrencyOptions, concurrency } from './concurrency/index.js';
export { type ConsoleLoggerOptions, consoleLogger } from './console-logger/index.js';
export { type FallbackError, type FallbackOptions, fallback, mayFallBack } from './fallback/index.js';
export {
  type IdempotencyEntry,
  type IdempotencyOptions,
  type IdempotencyStore,
  idempotency,
} from './idempotency/index.js';
export { type MaxTurnsOptions, maxTurns } from './max-turns/index.js';
export { type RateLimitOptions, rateLimit, type SharedLimiter } from './rate-limit/index.js';
export { type RecordOptions, record } from './record/index.js';
export { type ReplayOptions, replay } from './replay/index.js';
export { isTransient, type RetryOptions, retry } from './retry/index.js';
export { type StopwatchOptions, stopwatch } from './stopwatch/index.js';
export { type TimeoutOptions, timeout } from './timeout/index.js';
export {
  type ToolCacheEntry,
  type ToolCacheOptions,
  type ToolCacheStore,
  toolCache,
} from './tool-cache/index.js';
