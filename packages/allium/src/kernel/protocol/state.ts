/** Typed state cells, owned by middleware. Durable cells are journaled with the entries they belong to; live ones never are. */

import { invalidOption } from '../lib/errors.js';
import { type JsonOnly, toJson } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, type Fields } from '../lib/shapes.js';

export type StateScope = 'call' | 'run' | 'session';

export interface StateCell<T> {
  readonly name: string;
  readonly scope: StateScope;
  readonly initial: T;
  /** Is it journaled? Otherwise it may hold anything and ends with its run or call. */
  readonly durable: boolean;
  /** Makes the first value of a live cell, once per run. */
  readonly create?: () => T;
  readonly version: number;
  readonly migrate?: (old: unknown, version: number) => T;
  /** Its value is kept out of events. */
  readonly hidden: boolean;
}

export interface StateAccess {
  get<T>(cell: StateCell<T>): T;
  set<T>(cell: StateCell<T>, value: T): void;
  /** `fn` runs now for this context, and again at commit if the value has changed since. Keep it pure. */
  update<T>(cell: StateCell<T>, fn: (value: T) => T): void;
}

interface StateOptions<T> {
  readonly name: string;
  readonly version?: number;
  /** Keeps its value out of `state_change` events, if observers and traces must not see it. @default false */
  readonly hidden?: boolean;
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
  const { name, scope, version = 1, migrate, create, hidden = false } = options as StateOptions<T> & Given<T>;
  const durable = checkDurable(options);
  const initial = durable ? toJson(options.initial, name) : options.initial;
  return Object.freeze({ name, scope, version, migrate, durable, create, hidden, initial: initial as T });
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

/** A write to a cell that is not committed yet. */
export interface CellWrite {
  readonly cell: StateCell<any>;
  /** Returns the new value for the current one. */
  apply(value: unknown): any;
}

/** A session or run that holds cells. */
export interface CellHolder {
  /** By durable name; undefined until the first write, and most runs never write. */
  cells: Map<string, StoredCell> | undefined;
}

export function storedIn(holder: CellHolder): Map<string, StoredCell> {
  holder.cells ??= new Map();
  return holder.cells;
}

export interface StoredCell {
  readonly version: number;
  readonly value: unknown;
}

export interface CellChange extends StoredCell {
  readonly key: string;
  readonly scope: 'run' | 'session';
  /** It is kept out of events. */
  readonly hidden?: boolean;
}
