/** Every error the kernel raises has a code from this table. `kit/error-codes.ts` has those of what stands around it. */
export const KERNEL_CODES = {
  INVALID_OPTION: 'An option has an unknown name, a wrong type or a value out of range.',
  INVALID_MIDDLEWARE: 'Something in a middleware list is not a middleware, or a member of it is misspelt.',
  INVALID_TOOL: 'A tool definition is incomplete, or its schema cannot be shown to a model.',
  DUPLICATE_TOOL: 'Two tools of one agent, or of one request, have the same name.',
  DUPLICATE_STATE: 'Two middleware own a durable cell under the same name.',
  ORDER_IMPOSSIBLE: 'The list order breaks an `order` constraint, or two constraints contradict each other.',
  REQUIRED_MIDDLEWARE_MISSING: 'A middleware requires another one that is not in the list.',
  GUARD_REPLACED: 'A hook given to the agent would replace the hook of a middleware that guards.',
  INVALID_HOOK_RESULT: 'A hook returned something other than its contract allows.',
  MISSING_AWAIT:
    'A layer ended while its `next()` was still pending, without a result of its own, or code called `next()` or `ctx.generate()` when it was too late.',
  NO_RESULT:
    'A layer ended without a result: it neither called `next()` nor set one, or it swallowed an error.',
  NEXT_TWICE: 'A layer at the run seam called `next()` more than once.',
  TOO_MANY_ATTEMPTS: 'The layers around one call called inward more than 100 times.',
  INVALID_MESSAGE: 'A message has a role, content or id that cannot be used.',
  INVALID_STATE: 'A state cell was given a value that is not JSON, or is not declared by any middleware.',
  STATE_VERSION: 'A stored cell has a version this code cannot read.',
  MODEL_ERROR: 'The model failed. `cause` is the error of its client.',
  MODEL_STREAM_INVALID:
    'A model yielded something that is not a stream part, or parts that contradict each other.',
  MODEL_STREAM_CUT: 'A model stream ended without its `finish` part: the answer is incomplete.',
  MODEL_STREAM_FAILED: "A model ended its answer with `finish` and the reason 'error': the call has failed.",
  MIDDLEWARE_ERROR:
    'A middleware threw, or a handler such as `onRequest`. `cause` is what it threw; `attribution(error)` tells which one.',
  GUARD_FAILED: 'A guard threw while judging, so nothing more was released.',
  TOOL_OUTPUT_INVALID: 'A tool returned something that does not fit its `output` schema.',
  TOOL_TIMEOUT: 'A tool did not finish within its time.',
  PRICE_UNKNOWN: 'A cost limit is set, but the price of the model is not known.',
  ABORTED: 'The run was aborted by its caller.',
  STREAM_TAKEN: 'A stream of events is read a second time. It hands each event out once, to one reader.',
  SESSION_BUSY:
    'The session already has a run under way in this process. For one in another process, see SESSION_CONFLICT.',
  NOTHING_TO_CONTINUE:
    'The history ends with an answer, and no message waits, so `continue()` has nothing to do.',
  RUN_OPEN: 'A run of the session has not ended. Resume it or cancel it first.',
  MESSAGE_UNKNOWN: 'The history of the session has no message with this id.',
  CALLS_UNANSWERED:
    'A history cannot end between tool calls and their results. The message names the nearest points where it can.',
  NO_COMPACTION: 'No middleware of the agent can do what `session.compact()` asks for.',
  SESSION_CONFLICT: 'Another runner appended to the session meanwhile. Nothing was written.',
  SESSION_UNKNOWN:
    'The session does not exist, or its last run has ended: there is nothing to resume. The message says which.',
  SESSION_CORRUPT: 'The journal of a session holds something this code cannot read.',
  STORE_FAILED:
    'A store threw, returned something invalid, or wrote only part of a record, as on a full disk (that part is ignored).',
  STORE_TIMEOUT:
    'A store did not answer in time. The operation may still complete; the session can be resumed.',
  TENANT_MISMATCH: 'The session belongs to another tenant.',
  PLAN_MISMATCH:
    'A run is resumed without a middleware it was started with, or it is not clear which middleware its state belongs to.',
  REQUEST_UNKNOWN: 'An answer names a question that is not open: never asked, already answered or lapsed.',
  REQUEST_MISMATCH: 'An answer was given for other arguments than those that were asked about.',
  DECISION_NOT_ALLOWED:
    'The question does not take an answer of this type, or its answer may not be remembered.',
  MODEL_TIMEOUT: 'A model did not answer in time, or stopped sending.',
  MISSING_DEPENDENCY: 'An optional package is needed and not installed.',
} as const;

/** An error with a stable code. The message says what happened, what was received and what to do. */
export class AlliumError extends Error {
  override readonly name: string = 'AlliumError';
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(
    code: keyof typeof KERNEL_CODES | (string & {}),
    message: string,
    options: { cause?: unknown; data?: Record<string, unknown> } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.code = code;
    this.data = options.data ?? {};
  }
}

/** Shows a received value in an error message. */
export function shown(value: unknown): string {
  leaveAlone(value);
  if (typeof value === 'string')
    return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}...` : value);
  if (typeof value === 'function') {
    const name = readOr<unknown>(undefined, () => value.name);
    return `a function${typeof name === 'string' && name ? ` (${name})` : ''}`;
  }
  if (typeof value === 'bigint') return `${value}n`;
  if (value === null || typeof value !== 'object') return String(value);
  const json = jsonOr(value);
  return json.length > 120 ? `${json.slice(0, 117)}...` : json;
}

/** An object as JSON, or by its kind if JSON leaves it empty. */
function jsonOr(value: object): string {
  const json = readOr(undefined, () => JSON.stringify(value));
  if (json !== undefined && json !== '{}') return json;
  const kind = readOr('an object that cannot be read', () => Object.prototype.toString.call(value));
  return json !== undefined && kind === PLAIN ? json : kind;
}

const PLAIN = '[object Object]';

/** Reads a value from outside. Some throw at any question: proxies, getters, cycles. */
function readOr<T>(otherwise: T, read: () => T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/**
 * Makes the `INVALID_OPTION` error for a wrong option: its name, what it takes, what it was given.
 *
 * @example
 * if (!(ratio > 0)) throw invalidOption('ratio', 'a number above 0', ratio);
 */
export function invalidOption(
  option: string,
  expected: string,
  value: unknown,
  lacks: readonly string[] = [],
): AlliumError {
  const got = lacks.length > 0 ? `${shown(value)} without ${lacks.join(', ')}` : shown(value);
  return new AlliumError('INVALID_OPTION', `Expected \`${option}\` to be ${expected}, got ${got}.`, {
    data: { option, value },
  });
}

/**
 * Nobody will wait for this value. If it is a promise that fails, or holds one, that must not end the process. Looks into
 * plain objects and lists.
 */
export function leaveAlone(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  const all = new Set<object>([value]);
  // The set grows while we walk it, so there is no recursion, and a cycle is walked once.
  for (const one of all) {
    // Some throw at any question: a revoked proxy can't even be asked what it is.
    const inside = readOr([], () => heldBy(one));
    for (const item of inside) if (typeof item === 'object' && item !== null) all.add(item);
  }
}

/** What a plain object or a list holds. A promise holds nothing, and somebody has looked at it now. */
function heldBy(value: object): readonly unknown[] {
  // Only promises: calling `then` of anything else, such as a query, might start it.
  if (value instanceof Promise) value.then(undefined, () => {});
  if (Array.isArray(value)) return value;
  return isPlainObject(value) ? Object.values(value) : [];
}

/** Is it an object without a class, as JSON makes them? */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const proto = Object.getPrototypeOf(value);
  return proto === Object.prototype || proto === null;
}

/** Is it an object, and not a list? */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Like `isRecord`, but without maps, dates and signals: they have no keys and would pass for empty options. */
export function isOptions(value: unknown): boolean {
  return (
    isRecord(value) && (Object.keys(value).length > 0 || Object.prototype.toString.call(value) === PLAIN)
  );
}

/** The candidate that differs from `word` by at most two letters, for a "Did you mean …?". Case, dashes and underscores do not count. */
export function closestName(word: string, candidates: Iterable<string>): string | undefined {
  const flat = (text: string) => text.replace(/[-_]/g, '').toLowerCase();
  const wanted = flat(word);
  let best: string | undefined;
  let least = wanted.length < 5 ? 2 : 3;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, flat(candidate), least);
    if (distance < least) [least, best] = [distance, candidate];
  }
  return best;
}

function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(change, row[j]! + 1, next[j - 1]! + 1);
    }
    row = next;
  }
  return row[b.length]!;
}

// ── Attribution ──────────────────────────────────────────────────────────────────────────────────────────────

/** Who raised an error, recorded beside it: the error itself passes through every layer unchanged. */
export interface Attribution {
  /** Absent when a model, a tool or the store raised it. */
  readonly middleware?: string;
  /** The hook, or `model`, `tool` or `store`. */
  readonly hook: string;
  /** How many calls of that model or tool were made in the same seam call, up to and including this one. */
  readonly attempts?: number;
  /** An `onError` hook declared it final. */
  readonly final?: boolean;
  /** The error from further in that the hook dealt with when it threw this one instead. */
  readonly handling?: unknown;
}

/** By error, with the run that noted it: another run may raise the same object again. */
const attributions = new WeakMap<object, { readonly by: Attribution; readonly runId: string | undefined }>();

/** A thrown value that is not an object, and who raised it. Nothing can be recorded beside such a value. */
export interface Raised {
  readonly value: unknown;
  readonly by: Attribution;
}

/** Where the attribution of such a value is kept: the run, or one of its contexts. */
export interface Raiser {
  readonly runId: string;
  _raised(value: unknown, by: Attribution): void;
}

/** Which middleware and hook (or model, or tool) raised this error, if it passed through a run. */
export function attribution(error: unknown): Attribution | undefined {
  return typeof error === 'object' && error !== null ? attributions.get(error)?.by : undefined;
}

/**
 * Notes who raised `error`; `more` is added to it. The first note stands, except that a model or tool that throws
 * the same object once more has raised it anew.
 */
export function attribute(
  error: unknown,
  first: Attribution,
  within?: Raiser,
  more?: Partial<Attribution>,
): void {
  if (typeof error !== 'object' || error === null) {
    within?._raised(error, first);
    return;
  }
  const before = attributions.get(error);
  const runId = within?.runId ?? before?.runId;
  const noted = before?.runId === runId ? before?.by : undefined;
  const anew = first.attempts !== undefined && noted?.middleware === undefined;
  attributions.set(error, { by: { ...(anew ? first : (noted ?? first)), ...more }, runId });
}

/** The error of a store whose session has moved on: shared by all stores. */
export function sessionConflict(sessionId: string, expectedSeq: number, actualSeq: number): AlliumError {
  return new AlliumError(
    'SESSION_CONFLICT',
    `Session ${shown(sessionId)} is at entry ${actualSeq}, not ${expectedSeq}: another runner wrote to it. Nothing was written; load it again and retry.`,
    { data: { sessionId, expectedSeq, actualSeq } },
  );
}

/** The error of a store that returned something its contract does not allow. */
export function storeAnswered(method: string, answer: unknown, wanted: string): AlliumError {
  return new AlliumError(
    'STORE_FAILED',
    `${method}() of the store returned ${shown(answer)} instead of ${wanted}. testStore() of allium/testing finds such mistakes.`,
  );
}

/** An error of the store as `STORE_FAILED`; coded errors stay as they are. `when` begins with a space. */
export function storeFailed(error: unknown, when = ''): AlliumError {
  if (codeOf(error) !== undefined) return error as AlliumError;
  return new AlliumError('STORE_FAILED', `The store failed${when}: ${messageOf(error)}`, { cause: error });
}

/** Did the store fail or not answer, so that nobody knows what it holds? */
export function isStoreTrouble(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'STORE_FAILED' || code === 'STORE_TIMEOUT';
}

/** The message of anything that was thrown. It is not shortened, so that guards can still find secrets in it. */
export function messageOf(error: unknown): string {
  if (typeof error === 'string') return error;
  return readOr('an object that cannot be read', () => {
    if (error instanceof Error) return error.message;
    return typeof error === 'object' && error !== null ? jsonOr(error) : shown(error);
  });
}

/** The code of an `AlliumError`; undefined for any other error. */
export function codeOf(error: unknown): string | undefined {
  return readOr(undefined, () => (error instanceof AlliumError ? error.code : undefined));
}

/** Does it name what caused it? */
export function hasCause(error: unknown): boolean {
  return readOr(false, () => (error as Partial<Error> | null | undefined)?.cause !== undefined);
}

/** The code of an error, or its name: safe to log. */
export function errorKind(error: unknown): string {
  if (typeof error !== 'object' || error === null) return typeof error;
  return readOr('object', () => {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
    return typeof code === 'string' ? code : typeof name === 'string' ? name : 'object';
  });
}

/** Is it a promise, or something else with `then()`? */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  if (typeof value !== 'object' || value === null) return false;
  // Nearly all thenables are promises, and asking all kinds of objects for `then` is slow.
  return value instanceof Promise || typeof (value as { then?: unknown }).then === 'function';
}

/** Is it an object with no other keys than these? */
export function hasOnly(value: unknown, keys: readonly string[]): boolean {
  return isRecord(value) && Object.keys(value).every((key) => keys.includes(key));
}
