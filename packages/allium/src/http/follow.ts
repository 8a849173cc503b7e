/** Follows a session from any process: past events from its journal, new ones live if this process runs it. */
import {
  type AgentEvent,
  AlliumError,
  type Clock,
  type RunStream,
  type Store,
  systemClock,
} from '../index.js';
import { checkFields, checkOptions, isThenable, kinds } from '../kit/index.js';
import type { SentEvent } from './events.js';
import { FromStart } from './from-start.js';
import { LiveRun, type LiveSource } from './live-run.js';
import { HUB_OPTIONS } from './option-kinds.js';
import { Projection, type Show } from './projection.js';
import { type EventReader, type FollowOptions, type Place, SessionReader } from './reader.js';

export interface EventHubOptions {
  /** Where the sessions are. */
  readonly store: Store;
  /** What readers see in addition to texts, the names and states of tools, questions and the end. */
  readonly show?: Show;
  /** Milliseconds between two looks at the journal of a run that another process runs: the first pause, doubled up to the last. @default [100, 2000] */
  readonly pollMs?: readonly [number, number];
  /**
   * If your store can notice changes, as `postgresStore` with `notify` can: call `wake` whenever the session changes, until the
   * returned function is called.
   */
  readonly watch?: (sessionId: string, wake: () => void) => () => void;
  /**
   * Milliseconds without a write after which a run of another process counts as dead: its readers get `stalled`, and
   * their streams end. Make it longer than anything a run waits for silently, such as a model's answer or a tool.
   * @default 900000
   */
  readonly silenceMs?: number;
  /** @default the time of the system */
  readonly clock?: Clock;
}

export type { EventReader, FollowOptions } from './reader.js';

/** Events of sessions for any number of readers. */
export interface EventHub {
  /**
   * Passes the events of a run to readers. Settles with the first event, in a new session as soon as the store has it;
   * rejects like `stream.result` if the run can't begin. The run continues without its readers. `isNew`: the id was just
   * made, so the store need not be asked how far the session is.
   */
  publish(
    sessionId: string,
    start: () => RunStream,
    options?: { readonly isNew?: boolean },
  ): Promise<PublishedRun>;
  /**
   * The events of a session, each once, wherever its run is. Ends when the run has ended, waits for answers, or seems
   * to have died with its process.
   */
  follow(sessionId: string, options?: FollowOptions): AsyncIterableIterator<SentEvent>;
  /** Like `follow`, but many events at a time: for servers. */
  reader(sessionId: string, options?: FollowOptions): EventReader;
  /**
   * Passes on the events of a run in another process, in order. Readers who have read the journal up to entry `seq`
   * continue with them. An event only has to name a fact: what it says is read from the journal. If `events` ends
   * before the run does, or another mirror of the session begins, readers continue with the journal.
   */
  mirror(sessionId: string, seq: number, events: AsyncIterable<AgentEvent>): MirroredRun;
  /** Does this process run the session? */
  isLive(sessionId: string): boolean;
  /** Does what ends with `publish`, such as taking back an answer before there is another one: `begun` waits for all of it. */
  begin<T>(sessionId: string, work: () => Promise<T>): Promise<T>;
  /** Waits for a run that is being published in this process, until it has begun or could not. Never rejects. */
  begun(sessionId: string): Promise<void>;
}

export interface PublishedRun {
  readonly stream: RunStream;
  /** A reader that gets everything from the start of this run. */
  reader(): EventReader;
  /** Settles when everything was sent. */
  readonly ended: Promise<void>;
}

export interface MirroredRun {
  /** Settles when everything was sent, or nothing more comes. */
  readonly ended: Promise<void>;
}

/**
 * Passes events of sessions to readers in this and other processes. They reconnect with the id of the last event they
 * got.
 *
 * @example
 * const hub = eventHub({ store });
 * for await (const { id, event } of hub.follow('ann', { after: lastEventId })) console.log(id, event.type);
 */
export function eventHub(options: EventHubOptions): EventHub {
  checkFields('eventHub()', { ...HUB_OPTIONS, store: kinds.required(HUB_OPTIONS.store) }, options);
  const { store, show, pollMs = [100, 2000], watch, silenceMs = 900_000, clock = systemClock } = options;
  const projection = new Projection(show);
  const live = new Map<string, LiveRun>();
  const beginning = new Map<string, Promise<unknown>>();
  const place: Place = { store, projection, live, clock, pollMs, silenceMs, watch };
  const reader = (sessionId: string, follow: FollowOptions = {}): EventReader => {
    checkOptions('follow', follow, ['after', 'stay', 'signal']);
    return new SessionReader(place, sessionId, follow);
  };
  const begin = (sessionId: string, source: LiveSource): LiveRun => {
    const run: LiveRun = new LiveRun(store, sessionId, projection, source, () => {
      if (live.get(sessionId) === run) live.delete(sessionId);
    });
    live.set(sessionId, run);
    return run;
  };
  const publish: EventHub['publish'] = async (sessionId, start, { isNew = false } = {}) => {
    const head = isNew ? 0 : store.head(sessionId);
    const seq = isThenable(head) ? await head : head;
    const stream = start().detach();
    const events = stream[Symbol.asyncIterator]();
    const first = await events.next();
    if (first.done) throw new AlliumError('SESSION_UNKNOWN', 'The run ended before its first event.');
    const run = begin(sessionId, { seq, events, first: first.value, isNew });
    await run.written();
    const { type, runId } = first.value;
    // A resumed run began earlier; a new session has nothing before its run.
    const isWhole = isNew || (type === 'agent_start' && first.value.resumed);
    const reader = (): EventReader => {
      const session = new SessionReader(place, sessionId, {}, run, seq);
      return isWhole ? session : new FromStart(session, runId);
    };
    return { stream, ended: run.ended, reader };
  };
  const during = async <T>(sessionId: string, work: Promise<T>): Promise<T> => {
    // Several may try at once: one of them begins.
    const all = Promise.allSettled([work, beginning.get(sessionId)]);
    beginning.set(sessionId, all);
    try {
      return await work;
    } finally {
      if (beginning.get(sessionId) === all) beginning.delete(sessionId);
    }
  };
  return {
    reader,
    publish: (sessionId, start, options) => during(sessionId, publish(sessionId, start, options)),
    begin: (sessionId, work) => during(sessionId, work()),
    async begun(sessionId) {
      await beginning.get(sessionId);
    },
    isLive: (sessionId) => live.get(sessionId)?.isMirror === false,
    async *follow(sessionId, follow) {
      const events = reader(sessionId, follow);
      try {
        for (let batch = await events.next(); batch; batch = await events.next()) yield* batch;
      } finally {
        events.leave();
      }
    },
    mirror(sessionId, seq, events) {
      const { ended } = begin(sessionId, { seq, events: events[Symbol.asyncIterator](), isMirror: true });
      return { ended };
    },
  };
}
