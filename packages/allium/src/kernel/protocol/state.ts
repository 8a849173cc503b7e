/** Typed cells of state that middleware own. Durable ones are journaled with the fact they belong to. */
import { AlliumError, invalidOption, messageOf, shown } from '../lib/errors.js';
import { type JsonOnly, toJson } from '../lib/json-copy.js';
import { checkFunction, checkInteger, checkOptions } from './options.js';

export type StateScope = 'call' | 'run' | 'session';

export interface StateCell<T> {
  readonly name: string;
  readonly scope: StateScope;
  readonly initial: T;
  readonly version: number;
  readonly migrate?: (old: unknown, version: number) => T;
}

export interface StateAccess {
  get<T>(cell: StateCell<T>): T;
  set<T>(cell: StateCell<T>, value: T): void;
  /** `fn` runs now for this context and again at commit, on what is then the current value: keep it pure. */
  update<T>(cell: StateCell<T>, fn: (value: T) => T): void;
}

interface StateOptions<T> {
  readonly name: string;
  readonly version?: number;
  readonly migrate?: (old: unknown, version: number) => T;
}

/**
 * Defines a cell. `call` lives for one model or tool call, `run` for a run and its resumes, `session` as long as
 * the session. Values are JSON, except in cells of a call, which are not journaled. When `version` grows, `migrate` turns stored older values into new ones.
 */
export function defineState<T>(
  options: StateOptions<T> &
    (
      | { readonly scope: 'call'; readonly initial: T }
      | { readonly scope: StateScope; readonly initial: T & JsonOnly<T> }
    ),
): StateCell<T> {
  checkOptions('defineState', options, ['name', 'scope', 'initial', 'version', 'migrate']);
  const { name, scope, version = 1, migrate } = options;
  if (typeof name !== 'string' || name === '') throw invalidOption('name', 'non-empty text', name);
  if (scope !== 'call' && scope !== 'run' && scope !== 'session')
    throw invalidOption('scope', "'call', 'run' or 'session'", scope);
  checkInteger('version', version, 1);
  if (migrate !== undefined) checkFunction('migrate', migrate);
  return Object.freeze({
    ...options,
    version,
    initial: scope === 'call' ? options.initial : toJson(options.initial, name),
  });
}

/** A value, or what makes one of the value that is there. */
export class Write {
  constructor(
    readonly cell: StateCell<any>,
    /** What was written, if `fn` is undefined; otherwise what `fn` made of `seen`. */
    private readonly made: unknown,
    private readonly fn: ((value: any) => any) | undefined,
    private readonly seen: unknown,
  ) {}

  /** Mostly nobody else has written meanwhile, and what was made of the same value stands. */
  apply(value: unknown): any {
    return this.fn === undefined || value === this.seen ? this.made : again(this.cell, this.fn, value);
  }
}

/** Where an overlay reads what it has not written itself. Both throw for a cell that is not declared. */
interface Base {
  get<T>(cell: StateCell<T>): T;
  check(cell: StateCell<any>): void;
}

/**
 * The writes of one context, over what it was made from. An attempt (a `next()`) has an overlay of its own, which
 * its parent adopts if the attempt is chosen; attempts never see each other's writes.
 */
export class Overlay implements StateAccess {
  private writes: (Write | Overlay)[] = NONE;
  private chosen: Overlay | undefined;

  constructor(private readonly base: Base) {}

  /** An overlay for an attempt, over the writes made so far. */
  fork(): Overlay {
    const count = this.writes.length;
    return new Overlay({
      get: (cell) => this.value(cell, count, false),
      check: (cell) => this.base.check(cell),
    });
  }

  get<T>(cell: StateCell<T>): T {
    return this.value(cell, this.writes.length, true);
  }

  set<T>(cell: StateCell<T>, value: T): void {
    this.base.check(cell);
    const kept = cell.scope === 'call' ? value : toJson(value, cell.name);
    this.write(new Write(cell, kept, undefined, undefined));
  }

  update<T>(cell: StateCell<T>, fn: (value: T) => T): void {
    const seen = this.value(cell, this.writes.length, true);
    if (typeof fn !== 'function')
      throw new AlliumError(
        'INVALID_STATE',
        `State cell "${cell.name}": update() takes a function, got ${shown(fn)}.`,
      );
    this.write(new Write(cell, updated(cell, fn, seen), fn, seen));
  }

  private write(one: Write | Overlay): void {
    this.writes = added(this.writes, one);
  }

  /** Takes over the writes of an attempt instead of those of the one taken over before; of none if all were abandoned. */
  adopt(attempt: Overlay | undefined): void {
    if (attempt !== undefined && !this.writes.includes(attempt)) this.write(attempt);
    this.chosen = attempt;
  }

  /** An overlay for a call of its own that whoever has this one makes: over all it sees, but for cells of the call. */
  inner(): Overlay {
    return new Inner({
      get: (cell) => (cell.scope === 'call' ? cell.initial : this.get(cell)),
      check: (cell) => this.base.check(cell),
    });
  }

  /** Takes over what such a call wrote. */
  join(inner: Overlay): void {
    this.write(inner);
  }

  /** Where the overlay stands, to come back to with `restore`. */
  mark(): OverlayMark {
    return { count: this.writes.length, chosen: this.chosen };
  }

  /** Without a mark: to where it began. What inner calls wrote stays. */
  restore(mark?: OverlayMark): void {
    const count = mark?.count ?? 0;
    this.writes = this.writes.filter((write, i) => i < count || write instanceof Inner);
    this.chosen = mark?.chosen;
  }

  /** What it wrote itself since then, inner calls included. */
  since(mark: OverlayMark | undefined): readonly Write[] {
    return this.writes.slice(mark?.count ?? 0).flatMap((write) => {
      if (write instanceof Write) return write;
      return write instanceof Inner ? write.standing() : [];
    });
  }

  /** The same, and takes it out; cells of the call stay where they are. */
  take(mark: OverlayMark | undefined): readonly Write[] {
    const taken = this.since(mark);
    const rest = taken.filter(({ cell }) => cell.scope === 'call');
    this.writes = [...this.writes.slice(0, mark?.count ?? 0), ...rest];
    return taken;
  }

  /** The writes that stand, in order. */
  standing(): readonly Write[] {
    const { writes, chosen } = this;
    const only = writes[0];
    // Around most calls one layer writes once, and everybody further out has nothing but its overlay.
    if (writes.length === 1 && only instanceof Write) return writes as readonly Write[];
    if (writes.length === 1 && only instanceof Overlay)
      return only === chosen || only instanceof Inner ? only.standing() : NONE;
    const all: Write[] = [];
    for (const write of writes) {
      if (!(write instanceof Overlay)) all.push(write);
      else if (write === chosen || write instanceof Inner) all.push(...write.standing());
    }
    return all;
  }

  private value<T>(cell: StateCell<T>, count: number, withAttempt: boolean): T {
    let value = this.base.get(cell);
    for (let i = 0; i < count; i++) {
      const write = this.writes[i]!;
      if (!(write instanceof Overlay)) {
        if (write.cell === cell) value = write.apply(value);
      } else if ((withAttempt && write === this.chosen) || write instanceof Inner) {
        value = applied(write.standing(), cell, value);
      }
    }
    return value;
  }
}

/** Of a call that somebody made in the middle of another. Its cells of a call went with it. */
class Inner extends Overlay {
  override standing(): readonly Write[] {
    return super.standing().filter(({ cell }) => cell.scope !== 'call');
  }
}

/** What the writes of a cell make of its value. An indexed loop: one with `of` over a frozen list costs several times more. */
function applied<T>(writes: readonly Write[], cell: StateCell<T>, value: T, from = 0): T {
  let now = value;
  for (let i = from; i < writes.length; i++) if (writes[i]!.cell === cell) now = writes[i]!.apply(now);
  return now;
}

/** Nothing yet; never added to. */
const NONE: never[] = Object.freeze([]) as never;

/** The list with one more. Most hold one thing or nothing, and the first `push` makes room for 17. */
function added<T>(list: T[], one: T): T[] {
  if (list.length === 0) return [one];
  list.push(one);
  return list;
}

/** What an update makes of a value. One that leaves it as it is leaves nothing to check. */
function updated<T>(cell: StateCell<T>, fn: (value: T) => T, value: T): T {
  const made = fn(value);
  return cell.scope === 'call' || made === value ? made : toJson(made, cell.name);
}

/** An update is pure, so it should not fail for another value; if it does, the cell is what people look for. */
function again<T>(cell: StateCell<T>, fn: (value: T) => T, value: T): T {
  try {
    return updated(cell, fn, value);
  } catch (cause) {
    if (cause instanceof AlliumError) throw cause;
    throw new AlliumError(
      'INVALID_STATE',
      `An update of state cell "${cell.name}" failed for ${shown(value)}, which another write had left there: ${messageOf(cause)}`,
      { cause, data: { cell: cell.name } },
    );
  }
}

export interface OverlayMark {
  readonly count: number;
  readonly chosen: Overlay | undefined;
}

/** The committed values of a session and its run, and the writes that wait for the next append. */
export class Cells implements Base {
  private staged: Write[] = NONE;

  constructor(
    /** Durable name of each declared cell. */
    private readonly keys: ReadonlyMap<StateCell<any>, string>,
    private readonly session: CellHolder,
    private readonly run: CellHolder,
  ) {}

  overlay(): Overlay {
    return new Overlay(this);
  }

  /** The values as they are now. */
  copy(): Cells {
    return new Cells(this.keys, copyOf(this.session), copyOf(this.run));
  }

  check(cell: StateCell<any>): void {
    this.keyOf(cell);
  }

  get<T>(cell: StateCell<T>): T {
    return applied(this.staged, cell, this.committed(cell, this.keyOf(cell)));
  }

  /** Keeps the writes of a finished phase for the next append. */
  stage(overlay: Overlay): void {
    this.stageAll(overlay.standing());
  }

  stageAll(writes: readonly Write[]): void {
    for (let i = 0; i < writes.length; i++)
      if (writes[i]!.cell.scope !== 'call') this.staged = added(this.staged, writes[i]!);
  }

  get dirty(): boolean {
    return this.staged.length > 0;
  }

  /** Applies what is staged and returns the cells that changed. */
  commit(): readonly CellChange[] {
    const { staged } = this;
    let changes: CellChange[] = NONE;
    try {
      for (let i = 0; i < staged.length; i++) {
        const { cell } = staged[i]!;
        if (!isFirst(staged, i)) continue;
        const key = this.keyOf(cell);
        const committed = this.committed(cell, key);
        const value = applied(staged, cell, committed, i);
        if (value === committed) continue;
        const { version, scope } = cell;
        changes = added(changes, { key, version, scope: scope as 'run' | 'session', value });
      }
    } finally {
      // Also after a failure: what cannot be applied must not stand in the way of everything later.
      this.staged = NONE;
    }
    for (let i = 0; i < changes.length; i++) {
      const change = changes[i]!;
      storedIn(this.holderOf(change)).set(change.key, change);
    }
    return changes;
  }

  private keyOf(cell: StateCell<any>): string {
    const key = this.keys.get(cell);
    if (key !== undefined) return key;
    throw new AlliumError(
      'INVALID_STATE',
      `State cell ${shown((cell as { name?: unknown })?.name ?? cell)} is not declared. Add it to the \`state\` of its middleware, or of the agent.`,
    );
  }

  private holderOf({ scope }: { readonly scope: StateScope }): CellHolder {
    return scope === 'session' ? this.session : this.run;
  }

  private committed(cell: StateCell<any>, key: string): any {
    if (cell.scope === 'call') return cell.initial;
    const { cells } = this.holderOf(cell);
    const stored = cells?.get(key);
    if (stored === undefined) return cell.initial;
    if (stored.version === cell.version) return stored.value;
    if (stored.version > cell.version || !cell.migrate) {
      throw new AlliumError(
        'STATE_VERSION',
        `State cell "${key}" is stored in version ${stored.version}, this code has version ${cell.version}${cell.migrate ? '' : ' and no `migrate`'}.`,
        { data: { cell: key, stored: stored.version, wanted: cell.version } },
      );
    }
    const value = toJson(cell.migrate(stored.value, stored.version), cell.name);
    cells!.set(key, { version: cell.version, value });
    return value;
  }
}

/** Is its cell written here for the first time? */
function isFirst(writes: readonly Write[], place: number): boolean {
  for (let i = 0; i < place; i++) if (writes[i]!.cell === writes[place]!.cell) return false;
  return true;
}

/** A session or run with cells that were written. */
export interface CellHolder {
  /** By durable name; undefined until there is one: most runs have none, and maps are dear. */
  cells: Map<string, StoredCell> | undefined;
}

function copyOf({ cells }: CellHolder): CellHolder {
  return { cells: cells && new Map(cells) };
}

export function storedIn(holder: CellHolder): Map<string, StoredCell> {
  holder.cells ??= new Map();
  return holder.cells;
}

export interface StoredCell {
  readonly version: number;
  readonly value: unknown;
}

export interface CellChange {
  readonly key: string;
  readonly version: number;
  readonly scope: 'run' | 'session';
  readonly value: unknown;
}
