/** Every middleware of the box. Each is also at `allium/middleware/<name>`. */
export { type ConsoleLoggerOptions, consoleLogger } from './console-logger/index.js';
export { type MaxTurnsOptions, maxTurns } from './max-turns/index.js';
export { isTransient, type RetryOptions, retry } from './retry/index.js';
export { type StopwatchOptions, stopwatch } from './stopwatch/index.js';
