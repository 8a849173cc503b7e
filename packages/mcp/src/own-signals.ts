/** A `fetch` for clients that pass the same signal to all of their requests. */

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Requests that share a signal. */
const SHARED = 32;

/**
 * Gives every few requests their own signal. Node's fetch adds a listener to the signal it is given and leaves it
 * there until the garbage is collected: with one signal for all requests, every call would look through the listeners
 * of earlier ones, and after 1,500 of them Node warns of a leak.
 */
export function withOwnSignals(send: Fetch = fetch): Fetch {
  const groups = new WeakMap<AbortSignal, OpenRequests>();
  return async (url, init = {}) => {
    const { signal } = init;
    if (!signal) return send(url, init);
    let open = groups.get(signal);
    if (open === undefined) {
      open = new OpenRequests(signal);
      groups.set(signal, open);
    }
    const own = open.begin();
    const response = await send(url, { ...init, signal: own.signal });
    open.keepWith(response, own);
    return response;
  };
}

/** The requests that one signal ends. They are forgotten with their answers. */
class OpenRequests {
  private open: WeakRef<AbortController>[] = [];
  private sweepAt = 64;
  private latest: AbortController | undefined;
  private uses = 0;
  private readonly kept = new WeakMap<object, AbortController>();

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => {
      for (const one of this.open) one.deref()?.abort(signal.reason);
      this.open = [];
    });
  }

  begin(): AbortController {
    if (this.latest === undefined || this.uses === SHARED) {
      this.latest = this.make();
      this.uses = 0;
    }
    this.uses++;
    return this.latest;
  }

  private make(): AbortController {
    const own = new AbortController();
    if (this.signal.aborted) own.abort(this.signal.reason);
    if (this.open.length >= this.sweepAt) {
      this.open = this.open.filter((one) => one.deref() !== undefined);
      this.sweepAt = 2 * this.open.length + 64;
    }
    this.open.push(new WeakRef(own));
    return own;
  }

  /** As long as anybody reads the answer, it can be aborted. */
  keepWith({ body }: Response, own: AbortController): void {
    if (body) this.kept.set(body, own);
  }
}
