/** The values of state cells: written by contexts, staged for the next append, and committed. */

import { AlliumError, leaveAlone, messageOf, shown } from '../lib/errors.js';
import { toJson } from '../lib/frozen-json.js';
import { NOTHING } from '../messages/messages.js';
import {
  type CellChange,
  type CellHolder,
  type CellWrite,
  type StateAccess,
  type StateCell,
  type StateScope,
  storedIn,
} from '../protocol/state.js';
import { refuseForeignState } from './foreign-fields.js';

/** Live cells belong to the run and aren't journaled. Writes take effect at once and skip overlays. */
function isLive({ durable, scope }: StateCell<any>): boolean {
  return !durable && scope === 'run';
}

/** A write to a cell: a new value, or a function of the current one. */
export class Write implements CellWrite {
  constructor(
    readonly cell: StateCell<any>,
    /** The value written, or what `fn` returned for `seen`. */
    private readonly made: unknown,
    private readonly fn: ((value: any) => any) | undefined,
    private readonly seen: unknown,
  ) {}

  /** Usually nobody else wrote in between, so the value from before still holds. */
  apply(value: unknown): any {
    return this.fn === undefined || value === this.seen ? this.made : again(this.cell, this.fn, value);
  }
}

/** Where an overlay reads cells it hasn't written. All methods throw for an undeclared cell. */
interface Base {
  get<T>(cell: StateCell<T>): T;
  check(cell: StateCell<any>): void;
  /** Writes a live cell. */
  setLive<T>(cell: StateCell<T>, value: T): void;
}

/**
 * The writes of one context, on top of its base. Each attempt (`next()`) has its own overlay, which the parent adopts if
 * the attempt is chosen. Attempts never see each other's writes.
 */
export class Overlay implements StateAccess {
  private writes: (Write | Overlay)[] = [];
  private chosen: Overlay | undefined;

  constructor(private readonly base: Base) {}

  /** An overlay for an attempt, over the writes made so far. */
  fork(): Overlay {
    const count = this.writes.length;
    return new Overlay(this.seenAs((cell) => this.value(cell, count, false)));
  }

  /** Its base, with `get` replaced. */
  private seenAs(get: Base['get']): Base {
    const { base } = this;
    return { get, check: (cell) => base.check(cell), setLive: (cell, value) => base.setLive(cell, value) };
  }

  get<T>(cell: StateCell<T>): T {
    return this.value(cell, this.writes.length, true);
  }

  set<T>(cell: StateCell<T>, value: T): void {
    this.base.check(cell);
    if (isLive(cell)) this.base.setLive(cell, value);
    else {
      const kept = cell.durable ? toJson(value, cell.name) : value;
      if (kept instanceof Promise) leaveAlone(kept);
      this.writes.push(new Write(cell, kept, undefined, undefined));
    }
  }

  update<T>(cell: StateCell<T>, fn: (value: T) => T): void {
    const seen = this.value(cell, this.writes.length, true);
    if (typeof fn !== 'function')
      throw new AlliumError(
        'INVALID_STATE',
        `State cell "${cell.name}": update() takes a function, got ${shown(fn)}.`,
      );
    if (isLive(cell)) this.base.setLive(cell, fn(seen));
    else this.writes.push(new Write(cell, updated(cell, fn, seen), fn, seen));
  }

  /** Adopts the writes of an attempt in place of those adopted before; undefined if all attempts were abandoned. */
  adopt(attempt: Overlay | undefined): void {
    if (attempt !== undefined && !this.writes.includes(attempt)) this.writes.push(attempt);
    this.chosen = attempt;
  }

  /** An overlay for a call made from within this one. It sees everything except the `call` cells. */
  inner(): Overlay {
    return new Inner(this.seenAs((cell) => (cell.scope === 'call' ? cell.initial : this.get(cell))));
  }

  /** Adopts what such a call wrote. */
  join(inner: Overlay): void {
    this.writes.push(inner);
  }

  /** A point to return to with `restore`. */
  mark(): OverlayMark {
    return { count: this.writes.length, chosen: this.chosen };
  }

  /** Without a mark it goes back to the start. Writes of inner calls stay. */
  restore(mark?: OverlayMark): void {
    const count = mark?.count ?? 0;
    this.writes = this.writes.filter((write, i) => i < count || write instanceof Inner);
    this.chosen = mark?.chosen;
  }

  /** Its own writes since the mark, inner calls included. */
  since(mark: OverlayMark | undefined): readonly Write[] {
    return this.writes.slice(mark?.count ?? 0).flatMap((write) => {
      if (write instanceof Write) return write;
      return write instanceof Inner ? write.standing() : [];
    });
  }

  /** Removes and returns those writes. Writes to `call` cells are returned too, but stay. */
  takeSince(mark: OverlayMark | undefined): readonly Write[] {
    const taken = this.since(mark);
    const rest = taken.filter(({ cell }) => cell.scope === 'call');
    this.writes = [...this.writes.slice(0, mark?.count ?? 0), ...rest];
    return taken;
  }

  /** The writes that count, in order. */
  standing(): readonly Write[] {
    return this.writes.flatMap((write) => {
      if (write instanceof Write) return write;
      return write === this.chosen || write instanceof Inner ? write.standing() : [];
    });
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
refuseForeignState(Overlay.prototype);

/** The writes of a call made in the middle of another. Its `call` cells end with it. */
class Inner extends Overlay {
  override standing(): readonly Write[] {
    return super.standing().filter(({ cell }) => cell.scope !== 'call');
  }
}

/** Applies the writes of one cell to its value. */
function applied<T>(writes: readonly CellWrite[], cell: StateCell<T>, value: T): T {
  let now = value;
  for (const write of writes) if (write.cell === cell) now = write.apply(now);
  return now;
}

/** Runs an update. An unchanged value needs no check. */
function updated<T>(cell: StateCell<T>, fn: (value: T) => T, value: T): T {
  const made = fn(value);
  return !cell.durable || made === value ? made : toJson(made, cell.name);
}

/** Updates are pure, so this shouldn't fail for another value. If it does, the error names the cell. */
function again<T>(cell: StateCell<T>, fn: (value: T) => T, value: T): T {
  try {
    return updated(cell, fn, value);
  } catch (cause) {
    if (cause instanceof AlliumError) throw cause;
    throw new AlliumError(
      'INVALID_STATE',
      `The update function of state cell "${cell.name}" failed for ${shown(value)}, which another write had stored in the meantime: ${messageOf(cause)}`,
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
  private staged: readonly CellWrite[] = NOTHING;
  /** Cells that were written at the end of a turn: see `stageAtEnd`. */
  private waiting: Set<StateCell<any>> | undefined = undefined;
  /** The values of live cells. */
  private live: Map<StateCell<any>, unknown> | undefined = undefined;

  constructor(
    /** Durable name of each declared cell. */
    private readonly keys: ReadonlyMap<StateCell<any>, string>,
    private readonly session: CellHolder,
    private readonly run: CellHolder,
  ) {}

  overlay(): Overlay {
    return new Overlay(this);
  }

  setLive<T>(cell: StateCell<T>, value: T): void {
    this.live ??= new Map();
    this.live.set(cell, value);
    // It may fail before anybody awaits it, or nobody ever does.
    if (value instanceof Promise) leaveAlone(value);
  }

  /** A copy of the current values, without live cells. */
  copy(): Cells {
    return new Cells(this.keys, copyOf(this.session), copyOf(this.run));
  }

  check(cell: StateCell<any>): void {
    this.keyOf(cell);
  }

  get<T>(cell: StateCell<T>): T {
    return applied(this.staged, cell, this.committed(cell, this.keyOf(cell)));
  }

  /** Stages the writes of a finished phase for the next append. */
  stage(overlay: Overlay): void {
    this.stageAll(overlay.standing());
  }

  stageAll(writes: readonly CellWrite[]): void {
    const lasting = writes.filter(({ cell }) => cell.scope !== 'call');
    if (lasting.length > 0) this.staged = [...this.staged, ...lasting];
  }

  /**
   * Stages what hooks at the end of a turn wrote. A resume asks them again as long as the journal has nothing that comes
   * after the turn. So it waits for that, or it would count twice.
   */
  stageAtEnd(overlay: Overlay): void {
    const before = this.staged.length;
    this.stage(overlay);
    for (const { cell } of this.staged.slice(before)) {
      this.waiting ??= new Set();
      this.waiting.add(cell);
    }
  }

  get dirty(): boolean {
    return this.staged.length > 0;
  }

  /** Applies what is staged and returns the cells that changed. `pastTurn`: they are written together with what comes after the turn. */
  commit(pastTurn = true): readonly CellChange[] {
    if (this.staged.length === 0) return NOTHING;
    const staged = this.due(pastTurn);
    const changes: CellChange[] = [];
    for (const cell of new Set(staged.map((write) => write.cell))) {
      const key = this.keyOf(cell);
      const committed = this.committed(cell, key);
      const value = applied(staged, cell, committed);
      if (value === committed) continue;
      const { version, scope, hidden, rewinds } = cell;
      const how = { ...(hidden && { hidden }), ...(rewinds === false && { stays: true as const }) };
      changes.push({ key, version, scope: scope as 'run' | 'session', value, ...how });
    }
    for (const change of changes) storedIn(this.holderOf(change)).set(change.key, change);
    return changes;
  }

  /** Takes out the writes to commit. First, because one that fails must not block all later commits. */
  private due(pastTurn: boolean): readonly CellWrite[] {
    const { staged, waiting } = this;
    if (waiting === undefined || pastTurn) {
      this.staged = NOTHING;
      this.waiting = undefined;
      return staged;
    }
    this.staged = staged.filter(({ cell }) => waiting.has(cell));
    return staged.filter(({ cell }) => !waiting.has(cell));
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

  private liveValue(cell: StateCell<any>): any {
    if (cell.create && !this.live?.has(cell)) this.setLive(cell, cell.create());
    return this.live?.has(cell) ? this.live.get(cell) : cell.initial;
  }

  private committed(cell: StateCell<any>, key: string): any {
    if (!cell.durable) return cell.scope === 'run' ? this.liveValue(cell) : cell.initial;
    const { cells } = this.holderOf(cell);
    const stored = cells?.get(key);
    if (stored === undefined) return cell.initial;
    if (stored.version === cell.version) return stored.value;
    if (stored.version > cell.version || !cell.migrate) {
      throw new AlliumError(
        'STATE_VERSION',
        `State cell "${key}" is stored as version ${stored.version}, but this code reads version ${cell.version}${cell.migrate ? '' : ' and has no `migrate`'}.`,
        { data: { cell: key, stored: stored.version, wanted: cell.version } },
      );
    }
    const value = toJson(cell.migrate(stored.value, stored.version), cell.name);
    cells!.set(key, { version: cell.version, value });
    return value;
  }
}

const NONE: CellHolder = { cells: undefined };

function copyOf({ cells }: CellHolder): CellHolder {
  return cells ? { cells: new Map(cells) } : NONE;
}
