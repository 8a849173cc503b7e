/** Typed state cells, owned by middleware. Durable cells are journaled with the entries they belong to; live ones never are. */

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
  /** Does a rewind of the session give it the value it had there? */
  readonly rewinds: boolean;
}

export interface StateAccess {
  get<T>(cell: StateCell<T>): T;
  set<T>(cell: StateCell<T>, value: T): void;
  /** `fn` runs now for this context, and again at commit if the value has changed since. Keep it pure. */
  update<T>(cell: StateCell<T>, fn: (value: T) => T): void;
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
  /** A rewind leaves it as it is. */
  readonly stays?: true;
}

export interface CellChange extends StoredCell {
  readonly key: string;
  readonly scope: 'run' | 'session';
  /** It is kept out of events. */
  readonly hidden?: boolean;
}
