/** A conversation and the ways into it. */

import type { Context } from '../context/context.js';
import { EventQueue } from '../events/event-queue.js';
import { EventStream, type RunStream } from '../events/event-stream.js';
import { ownDecision, ownDecisions } from '../inbox/answers.js';
import { type QueuedMessage, queued } from '../inbox/inbox.js';
import { post, reached } from '../inbox/posting.js';
import { type Allowance, listed } from '../journal/allowances.js';
import { BoundedStore } from '../journal/bounded-store.js';
import { catchUp, SessionState } from '../journal/session-state.js';
import { AlliumError, invalidOption, isOptions, isThenable } from '../lib/errors.js';
import { Scope } from '../lib/scope.js';
import { checkKeys } from '../lib/shapes.js';
import { ownMessages } from '../messages/message-input.js';
import type { Message, MessageInput } from '../messages/messages.js';
import { declaredOptions, NONE_DECLARED } from '../plan/run-options.js';
import type { DeclaredOptions, RunningAgent } from '../protocol/contexts.js';
import type { RunResult } from '../protocol/result.js';
import type { ResumeOptions, RunOptions } from '../protocol/run-options.js';
import { Aborted } from '../protocol/signals.js';
import type { StateCell } from '../protocol/state.js';
import type { Awaitable, Decision, PendingRequest, Queued, Store } from '../protocol/store.js';
import { execute } from '../run/execute-run.js';
import { storedState } from '../run/result-state.js';
import { runBehind } from '../run/start.js';
import { allowedIn, revoke } from './allowing.js';
import { giveAnswer } from './answering.js';
import { fork, type HistoryPoint, type Place, rewind } from './rewind.js';

export interface SessionOptions {
  /** For whom it is opened. New runs belong to this tenant; a session of another one tells nothing and takes nothing: `TENANT_MISMATCH`. @default that of the agent */
  readonly tenant?: string;
  /** Where the session is. @default the store of the agent */
  readonly store?: Store;
}

export interface ForkOptions {
  /** Of the new session, which must not exist yet. @default random */
  readonly id?: string;
}

export class Session {
  private known: SessionState;
  /** Of the run under way. */
  private control: Scope | undefined;

  /** @internal */
  constructor(
    readonly agent: RunningAgent,
    readonly id: string,
    private readonly forget: boolean,
    private readonly store: Store = agent.store,
    private readonly tenant?: string,
  ) {
    this.known = new SessionState(id);
  }

  run(input: MessageInput | readonly MessageInput[], options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    return this.start(() => ownMessages(input), options);
  }

  stream(input: MessageInput | readonly MessageInput[], options: RunOptions = NO_OPTIONS): RunStream {
    return this.streaming(() => ownMessages(input), options);
  }

  /** Goes on with a run that was suspended or broke off: the same run, with the same id, counters and state. */
  resume(options: ResumeOptions = {}): Promise<RunResult> {
    return this.start(undefined, options);
  }

  resumeStream(options: ResumeOptions = {}): RunStream {
    return this.streaming(undefined, options);
  }

  /**
   * Goes on without a new input: the model is asked about the history as it is, or about the messages that wait where the
   * history ends with an answer.
   */
  continue(options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    return this.start(() => [], options);
  }

  continueStream(options: RunOptions = NO_OPTIONS): RunStream {
    return this.streaming(() => [], options);
  }

  /**
   * Has the middleware that can compact the history do so now, in a run without turns: what it takes is in `usage` of the
   * result. The history stays as it is; later requests are shorter.
   */
  async compact(options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    if (isOptions(options) && this.agent.planFor(options.middleware).rules.compact.length === 0)
      throw new AlliumError(
        'NO_COMPACTION',
        'No middleware of the agent can compact a history. Add one with a `compact` hook, such as compaction().',
      );
    return this.start(() => [], options, undefined, undefined, true);
  }

  /**
   * Goes back: the history ends with this message again, or before it, and the cells of the session are as they were
   * there. The journal keeps everything, and usage and limits go on counting. A run that is open is ended.
   */
  async rewind(point: HistoryPoint): Promise<void> {
    this.claim();
    try {
      await reached(() => rewind(this.place, point));
    } finally {
      this.agent._busy.delete(this.id);
    }
  }

  /**
   * A new session with the history up to this message, or before it; all of it if none is named. The two are
   * independent from then on, and what waits stays with this one.
   */
  async fork(point?: HistoryPoint, options: ForkOptions = {}): Promise<Session> {
    checkKeys('fork()', options, ['id']);
    const { agent, store, tenant } = this;
    const { id = `s_${agent.newId()}` } = options;
    checkSessionId(id);
    await reached(() => fork(this.place, point, id));
    return new Session(agent, id, false, store, tenant);
  }

  /** Says something while a run is under way: the model hears it before its next turn. */
  steer(message: MessageInput): Promise<void> {
    return this.post('steer', message);
  }

  /** Says something for when the run would end. */
  followUp(message: MessageInput): Promise<void> {
    return this.post('follow_up', message);
  }

  /** What `steer()` and `followUp()` said and no run has taken in yet, in the order it was said. */
  queued(): Promise<readonly QueuedMessage[]> {
    return reached(async () => queued(this.bounded, await this.look()));
  }

  /** Takes a message back. False if it does not wait any more: a run has taken it in, or somebody else took it back. */
  async removeQueued(id: string): Promise<boolean> {
    const waiting = await this.queued();
    if (!waiting.some((one) => one.id === id)) return false;
    await reached(() => post(this.bounded, this.id, { type: 'unqueue', n: Number(id) }));
    return true;
  }

  /**
   * Answers a pending request. A run that waits for it goes on, wherever it is; one that is suspended goes on with
   * `resume()`. The first answer counts: whoever comes later is told so with `REQUEST_UNKNOWN`.
   */
  async answer(requestId: string, given: Decision): Promise<void> {
    // Whoever changes the object after the call does not change what they said.
    const decision = ownDecision(requestId, given);
    const { agent, bounded: store, id } = this;
    await giveAnswer({ agent, store, id, look: () => this.look() }, requestId, decision);
  }

  /**
   * What was approved with `remember` and need not be asked again, oldest first. For tools of sub-agents too, if they were
   * answered in this session.
   */
  allowances(): Promise<readonly Allowance[]> {
    return reached(async () => listed(await allowedIn(this.bounded, await this.look())));
  }

  /**
   * Has it asked again, in every process: from the next question on where a run is under way. False if there is no such
   * allowance any more.
   */
  revoke(id: string): Promise<boolean> {
    return reached(async () => revoke(this.bounded, await this.look(), id));
  }

  /**
   * Aborts the run under way: at once where this agent runs it, whichever Session object it was started with, and
   * through the inbox where another does, which looks there between turns and while it waits for an answer.
   */
  async abort(reason?: string): Promise<void> {
    if (!this.control) await reached(() => this.look());
    const control = this.holder?.control;
    if (control) control.abort(new Aborted(reason));
    else
      await reached(() =>
        post(this.bounded, this.id, { type: 'cancel', ...(reason !== undefined && { reason }) }),
      );
  }

  async messages(): Promise<readonly Message[]> {
    return (await reached(() => this.look())).history.all();
  }

  /** Questions of a run that waits. One that was answered with `answer()` is listed until the run goes on. */
  async pending(): Promise<readonly PendingRequest[]> {
    return [...((await reached(() => this.look())).open?.requests.values() ?? [])];
  }

  /**
   * The value of a cell: of the session, or of its run under way or else the last one. `agentId`: of a sub-agent, by the id
   * of its session, which the result of its call has in `details.agentId`.
   */
  async state<T>(cell: StateCell<T>, agentId?: string): Promise<T> {
    const { agent, store, tenant } = this;
    const from = agentId === undefined ? this : new Session(agent, agentId, false, store, tenant);
    return storedState(await reached(() => from.look()), agent.plan.cells, cell);
  }

  /** What the session says to whoever opened it; another tenant is told nothing. */
  private look(): Awaitable<SessionState> {
    const tenant = this.tenant ?? this.agent.tenant;
    const state = this.peek();
    return isThenable(state) ? state.then((read) => read.checkTenant(tenant)) : state.checkTenant(tenant);
  }

  /**
   * @internal The state of the run under way, or a look at the journal that disturbs none. `store`: with the limits on waits
   * of whoever looks.
   */
  peek(store: Store = this.bounded): Awaitable<SessionState> {
    const { holder } = this;
    if (holder && holder.known.reading === 0) return holder.known;
    // A run of this object that just begins reads into its state by itself.
    const state = holder === this ? new SessionState(this.id) : this.known;
    const wait = catchUp(store, state);
    return wait ? wait.then(() => state) : state;
  }

  /** What holds the run under way, if this agent runs one: this object or another of the same session. */
  private get holder(): Session | undefined {
    const holder = this.agent._busy.get(this.id);
    return holder?.store === this.store ? holder : undefined;
  }

  /** For what is not part of a run. */
  private get bounded(): Store {
    return new BoundedStore(this.store, this.agent.clock, this.agent.storeTimeoutMs);
  }

  /** Without a wait where nothing has to be waited for: what is said in a tool is heard in the turn after it. */
  private async post(type: Queued['type'], given: MessageInput): Promise<void> {
    for (const message of ownMessages(given)) {
      await reached(async () => {
        const looked = this.look();
        if (isThenable(looked)) await looked;
        await post(this.bounded, this.id, { type, message });
      });
    }
  }

  private streaming(input: (() => Message[]) | undefined, options: ResumeOptions): RunStream {
    const queue = new EventQueue();
    const scope = new Scope(scopeOf(options));
    const result = this.start(input, options, queue, scope);
    result.then(
      () => queue.end(),
      (error) => queue.end({ error }),
    );
    return new EventStream(queue, result, scope);
  }

  /** The options that belong to middleware; all of them are checked. */
  private declared(options: ResumeOptions, resumes: boolean): DeclaredOptions {
    if (!isOptions(options)) throw invalidOption('options', 'an object', options);
    return declaredOptions(options, resumes, () => this.agent.planFor(options.middleware).runOptions);
  }

  private get place(): Place {
    const { agent, bounded: store, id: sessionId, tenant = agent.tenant } = this;
    return { agent, store, sessionId, tenant };
  }

  /** From here on nobody else of this agent runs the session, until it is given back. */
  private claim(): void {
    const { _busy: busy } = this.agent;
    if (busy.has(this.id)) {
      throw new AlliumError(
        'SESSION_BUSY',
        `Session "${this.id}" already has a run under way. Use steer() to speak into it, followUp() to speak after it, or await it first.`,
      );
    }
    // A look at the journal that is still under way goes on with the state it has.
    if (this.known.reading > 0) this.known = new SessionState(this.id);
    busy.set(this.id, this);
  }

  private async start(
    input: (() => Message[]) | undefined,
    given: ResumeOptions,
    queue?: EventQueue,
    scope = new Scope(scopeOf(given)),
    compacts = false,
  ): Promise<RunResult> {
    const { agent } = this;
    const declared = given === NO_OPTIONS ? NONE_DECLARED : this.declared(given, !input);
    const options = given.answers ? { ...given, answers: ownDecisions(given.answers) } : given;
    const messages = input?.();
    this.claim();
    this.control = scope;
    const parent = runBehind(options.parent);
    const store = new BoundedStore(this.store, agent.clock, agent.storeTimeoutMs, {
      scope,
      graceMs: agent.teardownTimeoutMs,
      above: parent?.store,
    });
    let waits = false;
    try {
      return await execute({
        agent,
        store,
        forgets: this.forget,
        state: this.known,
        input: messages,
        tenant: options.tenant ?? this.tenant ?? parent?.tenant ?? agent.tenant,
        compacts,
        options,
        parent,
        declared,
        queue,
        scope,
      });
    } catch (error) {
      // A run that failed around a question can be gone on with.
      waits = this.known.open !== undefined;
      // What is in memory may be ahead of the journal: the next look starts from it again.
      this.known = new SessionState(this.id);
      throw error;
    } finally {
      this.control = undefined;
      agent._busy.delete(this.id);
      if (this.forget && !waits && this.known.open === undefined) {
        const wait = store.delete(this.id);
        if (wait) await wait;
      }
    }
  }
}

/** Of most runs: nothing in it has to be looked at. */
const NO_OPTIONS: RunOptions = Object.freeze({});

export function checkSessionId(id: unknown): void {
  if (typeof id !== 'string' || id === '') throw invalidOption('session id', 'non-empty text', id);
}

/** A run inside a tool or hook ends with the call it is made in. */
function scopeOf(options: RunOptions | undefined): Scope | undefined {
  return (options?.parent as Context | undefined)?._scope;
}
