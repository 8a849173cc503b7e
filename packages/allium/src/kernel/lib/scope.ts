/**
 * Cancellation as a tree: run → call → attempt. An `AbortController` costs more than a whole turn, so a scope
 * makes one only when somebody reads its signal, and links to its parent only while somebody listens.
 */

/** Somebody who is told when a scope is aborted. */
export abstract class Link {
  /** Where it listens; undefined while it does not. */
  declare at: Scope | undefined;
  declare before: Link | undefined;
  declare after: Link | undefined;

  constructor() {
    this.at = undefined;
    this.before = undefined;
    this.after = undefined;
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

/** Everyone who listens in a tree of scopes, in the order they came. One list: a scope is made for every attempt. */
class Links {
  first: Link | undefined = undefined;
  last: Link | undefined = undefined;

  add(link: Link): void {
    link.before = this.last;
    link.after = undefined;
    if (this.last) this.last.after = link;
    else this.first = link;
    this.last = link;
  }

  remove(link: Link): void {
    if (link.before) link.before.after = link.after;
    else this.first = link.after;
    if (link.after) link.after.before = link.before;
    else this.last = link.before;
  }
}

export class Scope {
  declare readonly parent: Scope | undefined;
  declare private readonly links: Links;
  declare private own: unknown;
  /** Whoever listens right here, or has ever done so; most scopes have nobody. */
  declare private ears: { listening: number; controller: AbortController | undefined } | undefined;

  constructor(parent?: Scope) {
    this.parent = parent;
    this.links = parent === undefined ? new Links() : parent.links;
    this.own = undefined;
    this.ears = undefined;
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
    this.ears ??= { listening: 0, controller: undefined };
    if (!this.ears.controller) {
      const controller = new AbortController();
      this.ears.controller = controller;
      if (this.aborted) controller.abort(this.reason);
      else this.onAbort((reason) => controller.abort(reason));
    }
    return this.ears.controller.signal;
  }

  /** Tells everyone in here and further in, in the order they came; whoever is taken back meanwhile is not told. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.own = reason;
    const inside: Link[] = [];
    for (let link = this.links.first; link !== undefined; link = link.after)
      if (link.at!.isWithin(this)) inside.push(link);
    for (const link of inside) {
      if (link.at === undefined) continue;
      link.at.remove(link);
      link.tell(reason);
    }
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

  /** Whatever it guarded has ended: of those who listen here nobody will be told of a later abort. */
  close(): void {
    if (this.ears !== undefined) this.deafen(this.ears);
  }

  private deafen({ listening }: { readonly listening: number }): void {
    // Once it is aborted, everyone on the list is told, even if the first to hear of it closes the scope.
    if (listening === 0 || this.aborted) return;
    for (let link = this.links.first; link !== undefined; link = link.after) this.remove(link);
  }

  /** Lists somebody to be told. The scope must not be aborted. */
  add(link: Link): void {
    if (link.at !== undefined) return;
    link.at = this;
    this.ears ??= { listening: 0, controller: undefined };
    this.ears.listening++;
    this.links.add(link);
  }

  remove(link: Link): void {
    if (link.at !== this) return;
    link.at = undefined;
    this.ears!.listening--;
    this.links.remove(link);
  }

  isWithin(scope: Scope): boolean {
    for (let at: Scope | undefined = this; at !== undefined; at = at.parent) if (at === scope) return true;
    return false;
  }
}

/**
 * What carries a signal to a model that may want it: it is aborted with the scope, or alone. A property of the object
 * itself, so that `{ ...options }` has it; made when somebody reads it.
 */
export class SignalCarrier {
  declare readonly signal: AbortSignal;
  #scope: Scope;
  #controller: AbortController | undefined = undefined;

  constructor(scope: Scope) {
    this.#scope = scope;
    Object.defineProperty(this, 'signal', SignalCarrier.#signal);
  }

  /** One for this scope. An earlier one whose signal nobody wanted is used again: making one costs as much as a layer. */
  static of(scope: Scope, earlier: SignalCarrier | undefined): SignalCarrier {
    if (earlier === undefined || earlier.isTaken(scope)) return new SignalCarrier(scope);
    earlier.#scope = scope;
    return earlier;
  }

  /** Has a model a signal of it that is of no use for another call? */
  private isTaken(scope: Scope): boolean {
    const controller = this.#controller;
    return controller !== undefined && (this.#scope !== scope || controller.signal.aborted);
  }

  /** This call only: the scope goes on. */
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

  static readonly #signal: PropertyDescriptor = {
    get(this: SignalCarrier) {
      let carrier: SignalCarrier = this;
      // Somebody may have made an object that inherits from it.
      while (!(#scope in carrier)) carrier = Object.getPrototypeOf(carrier);
      return carrier.#made().signal;
    },
    enumerable: true,
  };
}

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
