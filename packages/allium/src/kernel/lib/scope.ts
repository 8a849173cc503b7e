/**
 * Cancellation as a tree: run → call → attempt. An `AbortController` costs more than a whole turn, so a scope makes one
 * only when somebody reads its signal.
 */

import { type Linked, LinkedList } from './linked-list.js';

/** A listener for the abort of a scope. */
export interface Listener extends Linked<Listener> {
  /** Where it listens. */
  at: Scope | undefined;
  onAborted(reason: unknown): void;
}

export class Scope {
  /** All listeners in this tree of scopes, oldest first. */
  private readonly listeners: LinkedList<Listener>;
  /** How many of them listen here. Usually none. */
  private listening = 0;
  private own: unknown = undefined;
  private controller: AbortController | undefined = undefined;

  constructor(readonly parent?: Scope) {
    this.listeners = parent === undefined ? new LinkedList() : parent.listeners;
  }

  get aborted(): boolean {
    return this.reason !== undefined;
  }

  /** Why it was aborted; undefined until then. */
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

  /** Calls all listeners here and further in, oldest first, except those removed meanwhile. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.own = reason;
    const inside: Listener[] = [];
    for (let one = this.listeners.first; one !== undefined; one = one.after)
      if (one.at!.isWithin(this)) inside.push(one);
    for (const one of inside) if (one.at?.remove(one)) one.onAborted(reason);
  }

  /** Calls `fn` once when the scope is aborted; at once if it already is. The returned function removes it. */
  onAbort(fn: (reason: unknown) => void): () => void {
    const listener = new Callback(fn);
    this.listen(listener);
    return () => this.remove(listener);
  }

  /** Calls the listener once when the scope is aborted; at once if it already is. */
  listen(listener: Listener): void {
    const { reason } = this;
    if (reason === undefined) this.add(listener);
    else listener.onAborted(reason);
  }

  /** The work in this scope has ended: its listeners don't hear of a later abort. */
  close(): void {
    // Once it is aborted, all listeners are called, even if the first one closes the scope.
    if (this.listening === 0 || this.aborted) return;
    for (let one = this.listeners.first; one !== undefined; ) {
      const { after } = one;
      this.remove(one);
      one = after;
    }
  }

  private add(listener: Listener): void {
    this.listeners.add(listener);
    listener.at = this;
    this.listening++;
  }

  /** Returns whether it was listening here. */
  remove(listener: Listener): boolean {
    if (listener.at !== this) return false;
    this.listeners.remove(listener);
    listener.at = undefined;
    this.listening--;
    return true;
  }

  isWithin(scope: Scope): boolean {
    for (let at: Scope | undefined = this; at !== undefined; at = at.parent) if (at === scope) return true;
    return false;
  }
}

class Callback implements Listener {
  at = undefined;
  before = undefined;
  after = undefined;

  constructor(private readonly fn: (reason: unknown) => void) {}

  onAborted(reason: unknown): void {
    this.fn(reason);
  }
}

/** Carries a signal to a model, which aborts with the scope or alone. The signal is created when the model reads it. */
export class SignalCarrier {
  /** What a debugger shows of it. */
  protected readonly signal = 'created when it is read';
  #controller: AbortController | undefined = undefined;
  readonly #scope: Scope;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /**
   * What the model gets. The signal is its own property, so that `{ ...options }` has it. As a getter on the object it
   * would cost ten times as much as the proxy.
   */
  get options(): { readonly signal: AbortSignal } {
    return new Proxy(this, SignalCarrier.#read) as never;
  }

  static readonly #read: ProxyHandler<SignalCarrier> = {
    get: (carrier, key) => (key === 'signal' ? carrier.#made().signal : Reflect.get(carrier, key)),
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  };

  /** Aborts this call only, not the scope. */
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

/** Waits for work until its scope is aborted. A later outcome is dropped. */
export class Wait<T, R = T> implements Listener {
  at = undefined;
  before = undefined;
  after = undefined;
  private resolve: ((value: R | PromiseLike<R>) => void) | undefined = undefined;
  private reject: ((error: unknown) => void) | undefined = undefined;

  constructor(private readonly scope: Scope) {}

  on(work: PromiseLike<T>): Promise<R> {
    const promise = new Promise<R>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    this.scope.listen(this);
    work.then(
      (value) => this.settle(value),
      (error) => this.fail(error),
    );
    return promise;
  }

  onAborted(reason: unknown): void {
    this.fail(reason);
  }

  /** What it resolves with. */
  protected mapValue(value: T): R | PromiseLike<R> {
    return value as never;
  }

  /** What it rejects with. */
  protected mapError(error: unknown): unknown {
    return error;
  }

  private settle(value: T): void {
    const { resolve, reject } = this;
    if (resolve === undefined) return;
    // First: `mapValue` may abort the scope, and the work has settled before that.
    this.over();
    try {
      resolve(this.mapValue(value));
    } catch (error) {
      reject!(this.mapError(error));
    }
  }

  protected fail(error: unknown): void {
    const { reject } = this;
    if (reject === undefined) return;
    this.over();
    reject(this.mapError(error));
  }

  protected over(): void {
    this.resolve = this.reject = undefined;
    this.scope.remove(this);
  }
}

/** Settles like `work`, or rejects with the scope's reason as soon as it aborts. */
export function untilAborted<T>(work: PromiseLike<T>, scope: Scope): Promise<T> {
  return new Wait<T>(scope).on(work);
}

/**
 * Like `untilAborted`, but gives the work `graceMs` to finish by itself: usually its cleanup settles it at once, and only code
 * that ignores its signal is left behind.
 */
export function supervised<T>(
  work: PromiseLike<T>,
  scope: Scope,
  setTimer: SetTimer,
  graceMs: number,
): Promise<T> {
  return new PatientWait<T>(scope, setTimer, graceMs).on(work);
}

class PatientWait<T> extends Wait<T> {
  private cancel: (() => void) | undefined = undefined;

  constructor(
    scope: Scope,
    private readonly setTimer: SetTimer,
    private readonly graceMs: number,
  ) {
    super(scope);
  }

  override onAborted(reason: unknown): void {
    const { setTimer } = this;
    this.cancel = setTimer(() => this.fail(reason), this.graceMs);
  }

  protected override over(): void {
    super.over();
    this.cancel?.();
  }
}
