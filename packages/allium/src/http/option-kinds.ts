/** The kinds of the options of `serve` and `eventHub`. */
import type { Store } from '../index.js';
import { type Fields, kinds } from '../kit/index.js';
import type { RunQueue } from './queued.js';

const { either, flag, func, integer, kind, listOf, names, required, shape } = kinds;

const PAUSES = kind<readonly [number, number]>(
  'the first pause and the longest one in milliseconds, such as [100, 2000]',
  (value) =>
    Array.isArray(value) && value.length === 2 && value.every((ms) => Number.isInteger(ms) && ms > 0),
);

/** As browsers send it: in lower case, without a path. */
const ORIGIN = kind<string>(
  "an origin such as 'https://app.example.com', in lower case and without a slash at its end",
  (value) =>
    value === 'null' || (typeof value === 'string' && /^[a-z][a-z\d+.-]*:\/\/[^/?#\sA-Z]+$/.test(value)),
);

const CORS = either(
  kind<false>('false', (value) => value === false),
  {
    ...shape({
      origins: required(
        either(
          listOf(ORIGIN, undefined, 1),
          kind<'*'>("'*' for all", (value) => value === '*'),
        ),
      ),
      credentials: flag,
    }),
    expected: "an object such as { origins: ['https://app.example.com'] }",
  },
);

export const HUB_OPTIONS = {
  store: kinds.methods<Store>('read', 'head'),
  show: shape({ thinking: flag, tools: either(flag, names), notices: names, synthetic: flag, usage: flag }),
  pollMs: PAUSES,
  watch: func(),
  silenceMs: integer(1),
  clock: kinds.clock(),
} satisfies Fields;

/** `agents` and `queue` are checked by those who read them. */
export const SERVE_OPTIONS = {
  agents: kinds.anything,
  queue: kinds.methods<RunQueue>(
    ...(['enqueue', 'continue', 'resume', 'cancel', 'stop', 'isBusy', 'reader', 'finished'] as const),
  ),
  authorize: required(
    kind(
      "a function that says who makes a request, or 'none'",
      (value) => value === 'none' || typeof value === 'function',
    ),
  ),
  basePath: kind(
    "a path such as '/api/agent', without a slash at its end",
    (value) => value === '' || (typeof value === 'string' && /^\/.*[^/]$/.test(value)),
  ),
  detached: flag,
  sdk: kind('5, 6 or 7', (value) => [5, 6, 7].includes(value)),
  maxBodyBytes: integer(1),
  cors: CORS,
  storeId: func(),
  clientId: func(),
  heartbeatMs: integer(1),
  onError: func(),
  ...HUB_OPTIONS,
  store: kinds.methods<Store>('append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'),
} satisfies Fields;
