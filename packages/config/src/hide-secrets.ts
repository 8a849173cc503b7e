/**
 * Keeps values of the environment out of what an agent writes: journal, errors, results of tools, errors of
 * observers.
 */
import {
  defineMiddleware,
  isControl,
  type Middleware,
  type NewEntry,
  type ObserverProblem,
  type Store,
  type ToolResult,
  terminalText,
} from 'allium';
import { describeValue } from 'allium/kit';
import { isTable } from './interpolate.js';
import { redactor, secretsIn } from './redact.js';
import { LONG } from './secret.js';
import type { Config } from './types.js';

const NAME = 'hide-secrets';
/** How many errors of observers are remembered, so that an observer with ever new ones takes no memory. */
const REMEMBERED = 1000;

export interface SecretsHidden {
  /** The innermost middleware: cleans what models throw, and what tools throw or return. */
  readonly inner: Middleware;
  /** A middleware that was given secrets, and now throws none. */
  middleware(middleware: Middleware): Middleware;
  /** The same store, which never gets a secret. */
  store<S extends Store>(store: S): S;
}

/** Undefined if there is nothing to hide. */
export function hideSecrets(config: Config): SecretsHidden | undefined {
  const secrets = keptSecrets(config);
  if (secrets.length === 0) return undefined;
  const redact = redactor(secrets);
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw redactThrown(error, redact);
    }
  };
  return {
    inner: defineMiddleware({
      name: NAME,
      wrapModel: (_, next) => guarded(next),
      wrapTool: async (_, next) => redactDeep(await guarded(next), redact) as ToolResult,
    }),
    middleware: (middleware) => withHooks(middleware, (hook) => redactingHook(hook, redact)),
    store: (store) => hidingStore(store, redact),
  };
}

/**
 * Values that must not be written. The tenant and names of models and stores are written by their nature, and the
 * model reads the system prompt. Short values, such as numbers, are in too many texts by chance.
 */
function keptSecrets({ tenant: _, systemPrompt: __, ...config }: Config): readonly string[] {
  const named = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(named);
    if (!isTable(value)) return value;
    const { use: ___, ...options } = value;
    return Object.fromEntries(Object.entries(options).map(([key, member]) => [key, named(member)]));
  };
  const { model, store, ...rest } = config;
  const tables = [model, store].filter(isTable);
  return secretsIn(named([...tables, rest])).filter((secret) => secret.length >= LONG);
}

type Hook = (this: unknown, ...args: unknown[]) => unknown;

function redactingHook(hook: Hook, redact: (text: string) => string): Hook {
  const fail = (error: unknown): never => {
    throw redactThrown(error, redact);
  };
  return function (...args) {
    try {
      const result = hook.apply(this, args);
      // What answers at once still does. Anything with a `then` is awaited, even if it isn't a promise.
      return isThenable(result) ? Promise.resolve(result).catch(fail) : result;
    } catch (error) {
      return fail(error);
    }
  };
}

function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/**
 * A middleware, or its guard, with other methods. Changed in place if possible: an instance of a class may have
 * private fields that a copy would lack.
 */
function withHooks<T>(owner: T, change: (hook: Hook) => Hook): T {
  const changed = isTable(owner) ? { ...owner } : owner;
  if (typeof changed !== 'object' || changed === null || !Object.isExtensible(changed)) return owner;
  const put = (key: string, value: unknown) =>
    Reflect.defineProperty(changed, key, { value, enumerable: true, writable: true, configurable: true });
  for (const key of methodsOf(changed)) put(key, change(Reflect.get(changed, key) as Hook));
  const guard: unknown = Reflect.get(changed, 'guard');
  if (typeof guard === 'object' && guard !== null) put('guard', withHooks(guard, change));
  return changed as T;
}

function methodsOf(value: object): string[] {
  const keys = new Set<string>();
  for (let at = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const key of Object.getOwnPropertyNames(at)) if (key !== 'constructor') keys.add(key);
  return [...keys].filter((key) => typeof Reflect.get(value, key) === 'function');
}

function hidingStore<S extends Store>(store: S, redact: (text: string) => string): S {
  const own = {
    append: (sessionId: string, expectedSeq: number, entries: readonly NewEntry[]) =>
      store.append(
        sessionId,
        expectedSeq,
        entries.map((entry) => redactEntry(entry, redact)),
      ),
    post: (sessionId: string, item: Parameters<Store['post']>[1]) =>
      store.post(sessionId, redactDeep(item, redact) as typeof item),
  };
  // Everything else is the store's, and called on it: it may have private fields.
  const bound = new Map<PropertyKey, unknown>(Object.entries(own));
  return new Proxy(store, {
    get(target, key) {
      if (bound.has(key)) return bound.get(key);
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      const method: unknown = member.bind(target);
      bound.set(key, method);
      return method;
    },
  });
}

function redactEntry(entry: NewEntry, redact: (text: string) => string): NewEntry {
  if (entry.type !== 'run_start') return redactDeep(entry, redact) as NewEntry;
  // Whether there are secrets may change from run to run, so a resume must not miss the middleware that hides them.
  const plan = entry.plan.filter((name) => name !== NAME);
  return { ...entry, plan, ...('metadata' in entry && { metadata: redactDeep(entry.metadata, redact) }) };
}

/** Returns the value itself if it has no secret, as most do. */
function redactDeep(value: unknown, redact: (text: string) => string): unknown {
  if (typeof value === 'string') return redact(value);
  if (Array.isArray(value)) {
    const items = value.map((item) => redactDeep(item, redact));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isTable(value)) return value;
  let changed = false;
  const members = Object.entries(value).map(([key, member]) => {
    const pair = [redact(key), redactDeep(member, redact)] as const;
    changed ||= pair[0] !== key || pair[1] !== member;
    return pair;
  });
  return changed ? Object.fromEntries(members) : value;
}

/** The same error, so that others still recognise it, with another message. */
function redactThrown(error: unknown, redact: (text: string) => string, seen = new Set<unknown>()): unknown {
  if (isControl(error)) return error;
  if (!(error instanceof Error)) return redactDeep(error, redact);
  if (seen.has(error)) return error;
  seen.add(error);
  for (const key of new Set([...Object.getOwnPropertyNames(error), 'message', 'stack'])) {
    const before: unknown = Reflect.get(error, key);
    const after =
      before instanceof Error || Array.isArray(before)
        ? redactedCauses(before, redact, seen)
        : redactDeep(before, redact);
    if (after === before) continue;
    const { enumerable = false } = Object.getOwnPropertyDescriptor(error, key) ?? {};
    const value = { value: after, enumerable, writable: true, configurable: true };
    // An error that can't be changed can't be passed on either.
    if (!Reflect.defineProperty(error, key, value)) return new Error(redact(error.message));
  }
  return error;
}

function redactedCauses(
  value: Error | readonly unknown[],
  redact: (text: string) => string,
  seen: Set<unknown>,
): unknown {
  if (value instanceof Error) return redactThrown(value, redact, seen);
  const items = value.map((item) => redactThrown(item, redact, seen));
  return items.every((item, index) => item === value[index]) ? value : items;
}

/** What observers throw, without secrets. If the caller has no `report`, it is printed, each error once. */
export function observerReport(
  redact: (text: string) => string,
  report: ((problem: ObserverProblem) => void) | undefined,
): (problem: ObserverProblem) => void {
  const said = new Set<string>();
  return (problem) => {
    if (report)
      return report(
        'error' in problem ? { ...problem, error: redactThrown(problem.error, redact) } : problem,
      );
    const { observer, error, dropped } = problem;
    const thrown = error instanceof Error ? error.message : error;
    const what =
      'error' in problem
        ? `threw: ${describeValue(typeof thrown === 'string' ? redact(thrown) : redactDeep(thrown, redact))}`
        : `is too slow: ${dropped} events dropped`;
    const line = `[allium] observer "${observer}" ${what}`;
    if (said.has(line) || said.size >= REMEMBERED) return;
    said.add(line);
    console.warn(terminalText(line));
  };
}
