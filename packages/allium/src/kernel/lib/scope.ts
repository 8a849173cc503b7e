/**
 * Cancellation as a tree: run → call → attempt. An `AbortController` costs more than a whole turn, so a scope makes one
 * only when somebody reads its signal.
 */

/** Somebody who is told when a scope is aborted. */
export interface Listener {
  tell(reason: unknown): void;
}

export class Scope {
  /** Everyone who listens in this tree of scopes, in the order they came, and where. Most scopes have no listener. */
  private readonly listeners: Map<Listener, Scope>;
  private listening = 0;
  private own: unknown = undefined;
  private controller: AbortController | undefined = undefined;

  constructor(readonly parent?: Scope) {
    this.listeners = parent === undefined ? new Map() : parent.listeners;
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
    if (this.controller === undefined) {
      const controller = new AbortController();
      this.controller = controller;
      this.onAbort((reason) => controller.abort(reason));
    }
    return this.controller.signal;
  }

  /** Tells everyone in here and further in, in the order they came. Those taken back meanwhile are not told. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.own = reason;
    const inside = [...this.listeners].filter(([, at]) => at.isWithin(this));
    for (const [listener, at] of inside) if (at.remove(listener)) listener.tell(reason);
  }

  /** Calls `fn` once when the scope is aborted; at once if it already is. Returns what takes it back. */
  onAbort(fn: (reason: unknown) => void): () => void {
    const { reason } = this;
    if (reason !== undefined) {
      fn(reason);
      return nothing;
    }
    const listener = { tell: fn };
    this.add(listener);
    return () => this.remove(listener);
  }

  /** What it guarded has ended: nobody who listens here is told of a later abort. */
  close(): void {
    // Once it is aborted, everyone on the list is told, even if the first to hear of it closes the scope.
    if (this.listening === 0 || this.aborted) return;
    for (const listener of this.listeners.keys()) this.remove(listener);
  }

  /** The scope must not be aborted. */
  add(listener: Listener): void {
    if (this.listeners.has(listener)) return;
    this.listeners.set(listener, this);
    this.listening++;
  }

  /** Says whether it was listening here. */
  remove(listener: Listener): boolean {
    if (this.listeners.get(listener) !== this) return false;
    this.listeners.delete(listener);
    this.listening--;
    return true;
  }

  isWithin(scope: Scope): boolean {
    for (let at: Scope | undefined = this; at !== undefined; at = at.parent) if (at === scope) return true;
    return false;
  }
}

/**
 * Carries a signal to a model, which is aborted with the scope or alone. It is made when the model reads it, and is a
 * property of the object itself, so that `{ ...options }` has it.
 */
export class SignalCarrier {
  declare readonly signal: AbortSignal;
  #controller: AbortController | undefined = undefined;

  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
    Object.defineProperty(this, 'signal', SignalCarrier.#signal);
  }

  /** One getter for all of them: with one of its own, each would be a shape of its own to the engine. */
  static readonly #signal: PropertyDescriptor & ThisType<SignalCarrier> = {
    get() {
      return this.#made().signal;
    },
    enumerable: true,
  };

  /** Aborts this call only: the scope goes on. */
  abort(reason: unknown): void {
    this.#made().abort(reason);
  }

  #made(): AbortController {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#scope.onAbort((reason) => controller.abort(reason));
    }
    return this.#controller;
  }
}

type SetTimer = (fn: () => void, ms: number) => () => void;

/** Settles like `promise`, or rejects with the scope's reason as soon as it aborts; what comes later is dropped. */
export function untilAborted<T>(promise: PromiseLike<T>, scope: Scope): Promise<T> {
  return supervised(promise, scope);
}

/**
 * Like `untilAborted`, but gives the work `graceMs` to wind down by itself: its own cleanup usually settles it at once,
 * and only code that ignores its signal is left behind.
 */
export function supervised<T>(
  promise: PromiseLike<T>,
  scope: Scope,
  setTimer?: SetTimer,
  graceMs = 0,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel: (() => void) | undefined;
    const off = scope.onAbort((reason) => {
      if (setTimer === undefined) reject(reason);
      else cancel = setTimer(() => reject(reason), graceMs);
    });
    const over = (): void => {
      off();
      cancel?.();
    };
    promise.then(
      (value) => {
        over();
        resolve(value);
      },
      (error) => {
        over();
        reject(error);
      },
    );
  });
}

function nothing(): void {}
