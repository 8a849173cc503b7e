/** The code of every error, and what it means. `docs/reference/errors.md` is kept equal by a test. */

import { KERNEL_CODES } from '../kernel/lib/errors.js';

/** What each error code means. */
export const ERROR_CODES = {
  ...KERNEL_CODES,
  FALLBACK_EXHAUSTED:
    'Every model of a fallback failed. `cause` is the first error, `errors` are all of them.',
  RATE_LIMITED: 'A rate limit is used up. `data.retryAfterMs` says when to come back.',
  CONCURRENCY_LIMITED: 'Too many calls are under way, and no place became free in time.',
  CIRCUIT_OPEN: 'A model or tool failed too often and is not called for a while.',
  OUTPUT_INVALID:
    'The final answer does not fit the schema of `structuredOutput`, and the repairs are used up.',
  CASSETTE_MISS: 'A replay was asked something its cassette has no recording of.',
  CASSETTE_INVALID: 'A cassette cannot be read: its header or one of its lines is not what `record` writes.',
  MISSING_API_KEY: 'A model named by a string needs a key, and the environment variable for it is not set.',
  MISSING_BASE_URL: 'A model named by a string needs the address of its server.',
  SCRIPT_EXHAUSTED: 'A scripted model was called more often than its script has steps.',
  UNKNOWN_NAME: 'No middleware, model, store or tool of this name is registered or installed.',
  CONFIG_NOT_FOUND: 'There is no config file here or in a folder above.',
  CONFIG_INVALID: 'A config file cannot be read, or something in it is wrong.',
  CONFIG_UNTRUSTED: 'The config file that was found in a folder above belongs to somebody else.',
  CONFIG_VARIABLE: 'A config file names an environment variable that is not set and has no default.',
  PLUGIN_INVALID: 'An installed package is not a plugin, or not the kind of plugin it says it is.',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
