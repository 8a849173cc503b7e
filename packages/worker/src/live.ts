/** Runs of workers, for those who follow them in this process. */
import type { AgentEvent } from 'allium';
import type { EventHub } from 'allium/http';
import type { Connections } from './connection.js';
import type { Turns } from './turns.js';
import { type WireMessage, WireReader } from './wire.js';

/** After this long without a message, a worker is asked again: messages of Redis get lost with a connection. */
const ASK_MS = 5000;
/** After this many times without an answer, only the journal is left. */
const ASK_TIMES = 3;

/** The sessions that are followed in this process, each once, however many readers it has. */
export class LiveSessions {
  private readonly sessions = new Map<string, LiveSession>();
  private readonly unlisten: () => void;

  constructor(
    private readonly hub: EventHub,
    private readonly turns: Turns,
    private readonly connections: Connections,
  ) {
    this.unlisten = connections.onReconnect(() => {
      for (const session of this.sessions.values()) session.ask();
    });
  }

  /** Listens until the returned function is called. `wake` is called when a run can be followed. */
  follow(sessionId: string, wake: () => void): () => void {
    const { hub, turns, connections, sessions } = this;
    let session = sessions.get(sessionId);
    if (session === undefined) {
      session = new LiveSession(sessionId, hub, turns, connections);
      sessions.set(sessionId, session);
    }
    const { wakes } = session;
    wakes.add(wake);
    return () => {
      if (!wakes.delete(wake) || wakes.size > 0) return;
      session.close();
      if (sessions.get(sessionId) === session) sessions.delete(sessionId);
    };
  }

  close(): void {
    this.unlisten();
    for (const session of this.sessions.values()) session.close();
    this.sessions.clear();
  }
}

class LiveSession {
  readonly wakes = new Set<() => void>();
  private readonly unlisten: () => void;
  private readonly timer: NodeJS.Timeout;
  private run: RemoteRun | undefined;
  private silent = 0;
  private asking = false;

  constructor(
    private readonly sessionId: string,
    private readonly hub: EventHub,
    private readonly turns: Turns,
    private readonly connections: Connections,
  ) {
    this.unlisten = connections.listen(turns.liveChannel(sessionId), (message) => this.heard(message));
    this.timer = setInterval(() => this.look(), ASK_MS).unref();
    this.ask();
  }

  /** Asks the worker that has the session, if there is one, to send everything so far. */
  ask(): void {
    if (this.asking) return;
    this.asking = true;
    const { connections, turns, sessionId } = this;
    connections
      .listening(turns.liveChannel(sessionId))
      .then(() => turns.listen(sessionId))
      // It is asked again later.
      .catch(() => undefined)
      .finally(() => {
        this.asking = false;
      });
  }

  close(): void {
    clearInterval(this.timer);
    this.unlisten();
    this.forget();
  }

  private look(): void {
    if (++this.silent > ASK_TIMES) this.forget();
    this.ask();
  }

  private heard(text: string): void {
    // From a worker that has just begun: more follows.
    if (text === '') return;
    this.silent = 0;
    const [epoch, n, events, seq] = JSON.parse(text) as WireMessage;
    const { run } = this;
    const known = run?.epoch === epoch;
    if (events === null) {
      if (known) this.forget();
    } else if (seq !== undefined) {
      if (known && run.n === n) return;
      this.forget();
      this.begin(new RemoteRun(epoch, n, events), seq);
    } else if (known && n <= run.n) {
      run.tell(events.slice(run.n - n));
      if (run.ended) this.run = undefined;
    } else if (known) {
      // Something got lost.
      this.forget();
      this.ask();
    }
  }

  private begin(run: RemoteRun, seq: number): void {
    this.run = run;
    this.hub.mirror(this.sessionId, seq, run);
    for (const wake of this.wakes) wake();
  }

  private forget(): void {
    this.run?.end();
    this.run = undefined;
  }
}

/** The events of a run as they come in. */
class RemoteRun implements AsyncIterable<AgentEvent>, AsyncIterator<AgentEvent, undefined> {
  ended = false;
  private readonly reader = new WireReader();
  private queue: AgentEvent[] = [];
  private at = 0;
  private wake: (() => void) | undefined;

  constructor(
    readonly epoch: string,
    /** How many events came so far, including those before this. */
    public n: number,
    soFar: NonNullable<WireMessage[2]>,
  ) {
    this.push(soFar);
  }

  tell(events: NonNullable<WireMessage[2]>): void {
    this.n += events.length;
    this.push(events);
  }

  end(): void {
    this.ended = true;
    this.wake?.();
  }

  async next(): Promise<IteratorResult<AgentEvent, undefined>> {
    while (this.at === this.queue.length) {
      if (this.ended) return { done: true, value: undefined };
      this.queue = [];
      this.at = 0;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    return { done: false, value: this.queue[this.at++]! };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  private push(events: NonNullable<WireMessage[2]>): void {
    for (const event of events) {
      const read = this.reader.read(event);
      if (read.type === 'agent_end') this.ended = true;
      this.queue.push(read);
    }
    this.wake?.();
  }
}
