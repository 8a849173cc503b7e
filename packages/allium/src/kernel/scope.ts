/**
 * Cancellation as a tree: run → call → attempt. An `AbortController` costs more than a whole turn, so a scope
 * makes one only when somebody reads its signal, and links to its parent only while somebody listens.
 */

export class Scope {
  private own: unknown;
  private controller: AbortController | undefined;
  private listeners: Set<(reason: unknown) => void> | undefined;
  private unlink: (() => void) | undefined;

  constructor(private readonly parent?: Scope) {}

  get aborted(): boolean {
    return this.own !== undefined || (this.parent?.aborted ?? false);
  }

  /** Why it was aborted; undefined while it is not. */
  get reason(): unknown {
    return this.own ?? this.parent?.reason;
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

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.own = reason;
    this.tell(reason);
  }

  /** Calls `fn` once when the scope is aborted; at once if it already is. Returns what takes it back. */
  onAbort(fn: (reason: unknown) => void): () => void {
    if (this.aborted) {
      fn(this.reason);
      return nothing;
    }
    this.listeners ??= new Set();
    if (this.listeners.size === 0 && this.parent) this.unlink = this.parent.onAbort((reason) => this.tell(reason));
    this.listeners.add(fn);
    return () => this.forget(fn);
  }

  /** Whatever it guarded has ended: nobody will be told any more. */
  close(): void {
    this.listeners?.clear();
    this.unlink?.();
    this.unlink = undefined;
  }

  private forget(fn: (reason: unknown) => void): void {
    if (this.listeners?.delete(fn) && this.listeners.size === 0) {
      this.unlink?.();
      this.unlink = undefined;
    }
  }

  private tell(reason: unknown): void {
    const told = this.listeners;
    this.listeners = undefined;
    this.unlink?.();
    this.unlink = undefined;
    if (told) for (const fn of told) fn(reason);
  }
}

/** Settles like `promise`, or rejects with the scope's reason as soon as it aborts; what comes later is dropped. */
export function untilAborted<T>(promise: PromiseLike<T>, scope: Scope): Promise<T> {
  return new Promise((resolve, reject) => {
    const off = scope.onAbort(reject);
    promise.then(
      (value) => {
        off();
        resolve(value);
      },
      (error) => {
        off();
        reject(error);
      },
    );
  });
}

/**
 * Like `untilAborted`, but gives the work a moment to wind down by itself: its own cleanup usually settles it at
 * once, and only code that ignores its signal is left behind.
 */
export function supervised<T>(promise: PromiseLike<T>, scope: Scope, setTimer: (fn: () => void, ms: number) => () => void, graceMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancel: (() => void) | undefined;
    const off = scope.onAbort((reason) => {
      cancel = setTimer(() => reject(reason), graceMs);
    });
    promise.then(
      (value) => {
        off();
        cancel?.();
        resolve(value);
      },
      (error) => {
        off();
        cancel?.();
        reject(error);
      },
    );
  });
}

function nothing(): void {}
