/** `defineState()`: cells of middleware, with the values that their scope allows. */

import { invalidOption } from '../kernel/lib/errors.js';
import { toJson } from '../kernel/lib/frozen-json.js';
import * as kinds from '../kernel/lib/kinds.js';
import { checkFields, type Fields } from '../kernel/lib/shapes.js';
import type { StateCell, StateScope } from '../kernel/protocol/state.js';

interface StateOptions<T> {
  readonly name: string;
  readonly version?: number;
  /** Keeps its value out of `state_change` events, if observers and traces must not see it. @default false */
  readonly hidden?: boolean;
  /**
   * What `session.rewind()` does to a cell of the session: it goes back with the history, or (false) keeps its value, as what
   * must never be counted or issued twice has to. @default true
   */
  readonly rewinds?: boolean;
  readonly migrate?: (old: unknown, version: number) => T;
}

/** The first value of a cell, by scope. */
type FirstValue<T> =
  | { readonly scope: 'call'; readonly initial: T; readonly durable?: false }
  | { readonly scope: StateScope; readonly initial: T & JsonOnly<T>; readonly durable?: true }
  | { readonly scope: 'run'; readonly durable: false; readonly initial: T; readonly create?: undefined }
  | {
      readonly scope: 'run';
      readonly durable: false;
      readonly initial?: undefined;
      readonly create: () => T;
    };

/**
 * Defines a cell. `call` lives for one model or tool call, `run` for a run and its resumes, `session` as long as
 * the session. Values are JSON, except in cells of a call, which are not journaled. When `version` grows, `migrate` turns
 * stored older values into new ones.
 *
 * With `durable: false` a cell of the run is live: it may hold anything (a timer, an open span), is never journaled, and ends
 * when the run ends or is suspended. Writes take effect at once for the whole run, whatever becomes of the attempt.
 *
 * @example
 * const span = defineState<Span | undefined>({ name: 'span', scope: 'run', durable: false, initial: undefined });
 * const seen = defineState({ name: 'seen', scope: 'run', durable: false, create: () => new Set<string>() });
 */
export function defineState<T>(options: StateOptions<T> & FirstValue<T>): StateCell<T> {
  checkFields('defineState()', OPTIONS, options);
  const given = options as StateOptions<T> & Given<T>;
  const { name, scope, version = 1, migrate, create, hidden = false, rewinds = true } = given;
  const durable = checkDurable(options);
  if (!rewinds && scope !== 'session')
    throw invalidOption('rewinds', `true for a cell of the ${scope}`, false);
  const initial = (durable ? toJson(options.initial, name) : options.initial) as T;
  return Object.freeze({ name, scope, version, migrate, durable, create, hidden, rewinds, initial });
}

const OPTIONS: Fields = {
  name: kinds.required(kinds.nonEmptyText),
  scope: kinds.required(kinds.oneOf('call', 'run', 'session')),
  initial: kinds.anything,
  durable: kinds.anything,
  create: kinds.func(),
  version: kinds.integer(1),
  migrate: kinds.func(),
  hidden: kinds.flag,
  rewinds: kinds.flag,
};

/** Says whether a cell is journaled. Throws if `durable` or `create` don't fit its scope. */
function checkDurable({ scope, durable = scope !== 'call', create, initial }: Given): boolean {
  const possible = scope === 'call' ? [false] : scope === 'run' ? [true, false] : [true];
  if (!possible.includes(durable as boolean))
    throw invalidOption('durable', `${possible.join(' or ')} for a cell of the ${scope}`, durable);
  if (create === undefined) return durable as boolean;
  if (durable || scope !== 'run' || initial !== undefined)
    throw invalidOption(
      'create',
      'left out, unless the cell has scope `run`, `durable: false` and no `initial`',
      create,
    );
  return false;
}

/** The options that depend on each other. */
interface Given<T = unknown> {
  readonly scope: StateScope;
  readonly durable?: unknown;
  readonly create?: () => T;
  readonly initial?: unknown;
}

/**
 * The part of `T` that JSON can hold; `T` itself if it is all JSON. Interfaces and recursive types are fine; dates, maps,
 * sets, functions and objects with methods are not.
 */
export type JsonOnly<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : T extends bigint | symbol | Date | RegExp | ReadonlyMap<any, any> | ReadonlySet<any> | AnyFunction
      ? NotJson
      : { readonly [K in keyof T]: JsonOnly<T[K]> };

type AnyFunction = (...args: never[]) => unknown;

/** In a compile error: this value cannot be journaled. Store plain data, such as `date.toISOString()`. */
interface NotJson {
  readonly '~not json': never;
}
