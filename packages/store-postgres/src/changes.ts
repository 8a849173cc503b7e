/**
 * Tells other processes which sessions have changed, and hears it from them, by `NOTIFY` and `LISTEN`.
 *
 * It is a hint and may get lost with a connection. So as long as we can't be sure that we hear anything, everybody who
 * watches is woken from time to time.
 */
import { createHash } from 'node:crypto';
import pg from 'pg';

export interface ChangesOptions {
  /** The channel of all processes that use the same tables. */
  readonly channel: string;
  /** Where to listen: the server itself, since a pooler hands its connections round. */
  readonly address: string;
  /** Sends a text to the channel. */
  send(text: string): Promise<unknown>;
  /** How often to wake everybody while we hear nothing. @default 1000 */
  readonly deafMs?: number;
  /** How often to check that we still hear. A check that isn't heard until the next one has failed. @default 10000 */
  readonly checkMs?: number;
  /** How long to keep listening when nobody watches any more. @default 10000 */
  readonly idleMs?: number;
}

/** A text may have 8000 bytes. */
const MOST = 500;

export class Changes {
  readonly #options: ChangesOptions;
  /** By mark of the session. */
  readonly #watching = new Map<string, Set<() => void>>();
  #changed = new Set<string>();
  #telling: Promise<void> | undefined;
  #listener: Listener | undefined;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  /**
   * Tells the others. Nobody waits for it, and it is a statement of its own: a `NOTIFY` locks out all others of the server
   * until its transaction is on the disk, and this one writes nothing there.
   */
  tell(sessionId: string): void {
    this.#changed.add(markOf(sessionId));
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = undefined;
    });
  }

  async #tellAll(): Promise<void> {
    // What changes while a message is under way goes with the next.
    while (this.#changed.size > 0) {
      const marks = [...this.#changed];
      this.#changed = new Set(marks.slice(MOST));
      // Those who watch look by themselves now and then.
      await this.#options.send(marks.slice(0, MOST).join()).catch(() => undefined);
    }
  }

  /** Calls `wake` after every change of the session, and perhaps more often, until the returned function is called. */
  watch(sessionId: string, wake: () => void): () => void {
    if (this.#isClosed) return () => undefined;
    const mark = markOf(sessionId);
    const wakes = this.#watching.get(mark) ?? new Set();
    this.#watching.set(mark, wakes);
    // The same function may watch twice.
    const own = (): void => wake();
    wakes.add(own);
    clearTimeout(this.#idle);
    this.#listener ??= new Listener(this.#options, (marks) => this.#wake(marks));
    return () => {
      if (!wakes.delete(own) || wakes.size > 0) return;
      if (this.#watching.get(mark) === wakes) this.#watching.delete(mark);
      if (this.#watching.size > 0) return;
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.#stopListening(), this.#options.idleMs ?? 10_000).unref();
    };
  }

  #wake(marks: readonly string[] | undefined): void {
    for (const mark of marks ?? [...this.#watching.keys()])
      for (const wake of [...(this.#watching.get(mark) ?? [])]) wake();
  }

  #stopListening(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    this.#stopListening();
    await this.#telling;
  }
}

/** A connection that listens, and is opened again when it breaks. */
class Listener {
  readonly #options: ChangesOptions;
  /** Called with the sessions that changed, or with nothing if any of them may have. */
  readonly #hear: (marks: readonly string[] | undefined) => void;
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #check = `?${Math.random().toString(36).slice(2)}`;
  #client: pg.Client | undefined;
  /** Has the last check been heard? */
  #hears = false;

  constructor(options: ChangesOptions, hear: (marks: readonly string[] | undefined) => void) {
    this.#options = options;
    this.#hear = hear;
    const { deafMs = 1000, checkMs = 10_000 } = options;
    const look = (): void => {
      if (!this.#hears) this.#hear(undefined);
    };
    this.#timers = [
      setInterval(look, deafMs).unref(),
      setInterval(() => this.#checkAgain(), checkMs).unref(),
    ];
    void this.#listen();
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#drop(this.#client);
  }

  async #listen(): Promise<void> {
    const client = new pg.Client({ connectionString: this.#options.address, keepAlive: true });
    this.#client = client;
    client.on('error', () => this.#drop(client));
    client.on('end', () => this.#drop(client));
    client.on('notification', ({ payload = '' }) => this.#heard(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${pg.escapeIdentifier(this.#options.channel)}`);
      await this.#options.send(this.#check);
    } catch {
      this.#drop(client);
    }
  }

  #heard(payload: string): void {
    const isCheck = payload === this.#check;
    // Something may have changed before.
    if (!isCheck || !this.#hears) this.#hear(isCheck ? undefined : payload.split(','));
    this.#hears ||= isCheck;
  }

  #checkAgain(): void {
    if (this.#hears) {
      this.#hears = false;
      this.#options.send(this.#check).catch(() => undefined);
      return;
    }
    this.#drop(this.#client);
    void this.#listen();
  }

  /** It is gone, or of no use. Another one is opened at the next check. */
  #drop(client: pg.Client | undefined): void {
    client?.removeAllListeners('notification');
    client?.end().catch(() => undefined);
    if (client !== this.#client) return;
    this.#client = undefined;
    this.#hears = false;
  }
}

/** Short, and of characters that any channel takes. Two sessions with the same mark wake each other, which does no harm. */
function markOf(sessionId: string): string {
  return createHash('sha1').update(sessionId).digest('base64url').slice(0, 12);
}
