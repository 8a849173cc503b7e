/** A middleware with every hook observed from outside: what it is given, what comes back through `next()`, how it ends. */

import { type Middleware, RULES } from '../../index.js';
import { isThenable } from '../../kit/index.js';
export interface Watch {
  /** A hook is about to be called. */
  called?(hook: string, args: readonly unknown[]): void;
  /** A hook threw. */
  threw?(hook: string, error: unknown): void;
  /** `next()` rejected while the hook was under way. */
  nextRejected?(hook: string, error: unknown, call: object): void;
  /** The hook called `next()`. */
  nextCalled?(hook: string, call: object): void;
  /** The hook ended; `error` is set if it threw. `call` is the same object for one call of the hook. */
  ended?(hook: string, call: object, error?: { readonly error: unknown }): void;
}

type Hook = (...args: unknown[]) => unknown;

const WRAPS = ['process', 'wrapRun', 'wrapModel', 'wrapTool'];
const HOOKS = new Set<string>([
  ...Object.keys(RULES),
  ...['Run', 'Model', 'Tool'].flatMap((seam) => [`wrap${seam}`, `before${seam}`, `after${seam}`]),
  'process',
  'onError',
]);

export function watched(middleware: Middleware, watch: Watch): Middleware {
  const copy = boundCopy(middleware);
  for (const name of HOOKS) {
    const hook = copy[name];
    if (typeof hook === 'function') copy[name] = observed(name, hook as Hook, watch);
  }
  const { guard } = middleware;
  if (guard?.judge) {
    const judge = observed('guard.judge', guard.judge.bind(guard) as Hook, watch);
    copy.guard = { ...boundCopy(guard), judge };
  }
  return copy;
}

/** With the members of its class, private fields still in reach of its methods. */
function boundCopy(source: object): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of membersOf(source)) {
    let value: unknown;
    try {
      value = (source as Readonly<Record<string, unknown>>)[name];
    } catch {
      // A getter of its own, which its methods still find.
      continue;
    }
    copy[name] = typeof value === 'function' ? value.bind(source) : value;
  }
  return copy;
}

function observed(name: string, hook: Hook, watch: Watch): Hook {
  return (...args) => {
    const call = {};
    watch.called?.(name, args);
    const given = WRAPS.includes(name) ? [args[0], watchedNext(name, args[1] as Hook, call, watch)] : args;
    const failed = (error: unknown): never => {
      watch.threw?.(name, error);
      watch.ended?.(name, call, { error });
      throw error;
    };
    const passed = (value: unknown): unknown => {
      watch.ended?.(name, call);
      return value;
    };
    let answer: unknown;
    try {
      answer = hook(...given);
    } catch (error) {
      return failed(error);
    }
    return isThenable(answer) ? answer.then(passed, failed) : passed(answer);
  };
}

function watchedNext(name: string, next: Hook, call: object, watch: Watch): Hook {
  return (...args) => {
    watch.nextCalled?.(name, call);
    const answer = next(...args) as Promise<unknown>;
    answer.catch((error) => watch.nextRejected?.(name, error, call));
    return answer;
  };
}

/** Own members and those of its class. */
function membersOf(value: object): Set<string> {
  const names = new Set<string>();
  for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const name of Object.getOwnPropertyNames(at)) if (name !== 'constructor') names.add(name);
  }
  return names;
}
