/**
 * Cancellation as a tree: run → call → attempt. An `AbortController` costs more than a whole turn, so a scope
 * makes one only when somebody reads its signal, and links to its parent only while somebody listens.
 */

/** A place in the list of those who are told when a scope is aborted: a listener, or a scope further in. */
export abstract class Link {
  declare before: Link | undefined;
  declare after: Link | undefined;
  declare listed: boolean;

  constructor() {
    this.before = undefined;
    this.after = undefined;
    this.listed = false;
  }

  abstract tell(reason: unknown): void;
}

class Listener extends Link {
  constructor(private readonly fn: (reason: unknown) => void) {
    super();
  }

  tell(reason: unknown): void {
    this.fn(reason);
  }
}

export class Scope extends Link {
  declare private readonly parent: Scope | undefined;
  declare private own: unknown;
  declare private controller: AbortController | undefined;
  declare private first: Link | undefined;
  declare private last: Link | undefined;
  declare private carrier: SignalCarrier | undefined;

  constructor(parent?: Scope) {
    super();
    this.parent = parent;
    this.own = undefined;
    this.controller = undefined;
    this.first = undefined;
    this.last = undefined;
    this.carrier = undefined;
  }

  get aborted(): boolean {
    return this.reason !== undefined;
  }

  /** Why it was aborted; undefined while it is not. */
  get reason(): unknown {
    for (let at: Scope | undefined = this; at !== undefined; at = at.parent)
      if (at.own !== undefined) return at.own;
    return undefined;
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      const controller = new AbortController();
      this.controller = controller;
      if (this.aborted) controller.abort(this.reason);
      else this.onAbort((reason) => controller.abort(reason));
    }
    return this.controller.signal;
  }

  /** What carries the signal to whoever may want it: the same object for everyone in this scope. */
  get options(): { readonly signal: AbortSignal } {
    this.carrier ??= new SignalCarrier(this);
    return this.carrier;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.own = reason;
    this.parent?.remove(this);
    this.tell(reason);
  }

  /** Calls `fn` once when the scope is aborted; at once if it already is. Returns what takes it back. */
  onAbort(fn: (reason: unknown) => void): () => void {
    const { reason } = this;
    if (reason !== undefined) {
      fn(reason);
      return nothing;
    }
    const listener = new Listener(fn);
    this.add(listener);
    return () => this.remove(listener);
  }

  /** Whatever it guarded has ended: nobody will be told of a later abort. */
  close(): void {
    // Once it is aborted, everyone on the list is told, even if the first to hear of it closes the scope.
    if (this.first === undefined || this.aborted) return;
    for (let at = this.first as Link | undefined; at; at = at.after) at.listed = false;
    this.first = undefined;
    this.last = undefined;
    this.parent?.remove(this);
  }

  /** Tells everyone, in the order they came; whoever is taken back meanwhile is not told. */
  tell(reason: unknown): void {
    while (this.first !== undefined) {
      const { first } = this;
      this.unlist(first);
      first.tell(reason);
    }
  }

  /** Lists somebody to be told. The scope must not be aborted. */
  add(link: Link): void {
    if (link.listed) return;
    if (this.first === undefined) this.parent?.add(this);
    link.listed = true;
    link.before = this.last;
    link.after = undefined;
    if (this.last) this.last.after = link;
    else this.first = link;
    this.last = link;
  }

  remove(link: Link): void {
    if (!link.listed) return;
    this.unlist(link);
    if (this.first === undefined) this.parent?.remove(this);
  }

  private unlist(link: Link): void {
    link.listed = false;
    if (link.before) link.before.after = link.after;
    else this.first = link.after;
    if (link.after) link.after.before = link.before;
    else this.last = link.before;
  }
}

const SCOPE = Symbol('scope');

/** A property of the object itself, so that `{ ...options }` has it; made when somebody reads it. */
class SignalCarrier {
  declare readonly signal: AbortSignal;
  // Assigned and not hidden, which would cost as much again: a carrier is made for every model call.
  declare readonly [SCOPE]: Scope;

  constructor(scope: Scope) {
    this[SCOPE] = scope;
    Object.defineProperty(this, 'signal', SIGNAL);
  }
}

const SIGNAL: PropertyDescriptor = {
  get(this: SignalCarrier) {
    return this[SCOPE].signal;
  },
  enumerable: true,
};

/** Settles like `promise`, or rejects with the scope's reason as soon as it aborts; what comes later is dropped. */
export function untilAborted<T>(promise: PromiseLike<T>, scope: Scope): Promise<T> {
  return new Promise((resolve, reject) => new Wait(promise, scope, resolve, reject, undefined, 0));
}

type SetTimer = (fn: () => void, ms: number) => () => void;

/**
 * Like `untilAborted`, but gives the work a moment to wind down by itself: its own cleanup usually settles it at
 * once, and only code that ignores its signal is left behind.
 */
export function supervised<T>(
  promise: PromiseLike<T>,
  scope: Scope,
  setTimer: SetTimer,
  graceMs: number,
): Promise<T> {
  return new Promise((resolve, reject) => new Wait(promise, scope, resolve, reject, setTimer, graceMs));
}

/** `supervised` for a run that waits for one thing after the other: one object serves them all. */
export class Supervisor extends Link {
  private work: PromiseLike<unknown> = undefined as never;
  private reject: (error: unknown) => void = nothing;
  private readonly executor = (resolve: (value: any) => void, reject: (error: unknown) => void): void => {
    this.reject = reject;
    this.work.then(resolve, reject);
  };

  constructor(
    private readonly scope: Scope,
    private readonly setTimer: SetTimer,
    private readonly graceMs: number,
  ) {
    super();
  }

  wait<T>(work: PromiseLike<T>): Promise<T> {
    const { scope } = this;
    if (scope.aborted) return supervised(work, scope, this.setTimer, this.graceMs);
    scope.add(this);
    this.work = work;
    return new Promise(this.executor);
  }

  tell(reason: unknown): void {
    const { work, reject } = this;
    const cancel = this.setTimer(() => reject(reason), this.graceMs);
    work.then(cancel, cancel);
  }
}

/** Somebody waits for work in a scope. */
class Wait<T> extends Link {
  private cancel: (() => void) | undefined = undefined;

  constructor(
    promise: PromiseLike<T>,
    private readonly scope: Scope,
    resolve: (value: T) => void,
    private readonly reject: (error: unknown) => void,
    private readonly setTimer: SetTimer | undefined,
    private readonly graceMs: number,
  ) {
    super();
    const { reason } = scope;
    if (reason === undefined) scope.add(this);
    else this.tell(reason);
    promise.then(
      (value) => {
        this.over();
        resolve(value);
      },
      (error) => {
        this.over();
        reject(error);
      },
    );
  }

  tell(reason: unknown): void {
    if (this.setTimer === undefined) this.reject(reason);
    else this.cancel = this.setTimer(() => this.reject(reason), this.graceMs);
  }

  private over(): void {
    this.scope.remove(this);
    this.cancel?.();
  }
}

function nothing(): void {}
