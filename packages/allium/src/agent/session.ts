/** A conversation and the ways into it. */

import { declaredOptions } from '../compose/run-options.js';
import type { Context } from '../kernel/context/context.js';
import { EventQueue } from '../kernel/events/event-queue.js';
import { ownDecision, ownDecisions } from '../kernel/inbox/answers.js';
import { type QueuedMessage, queued } from '../kernel/inbox/inbox.js';
import { post, reached } from '../kernel/inbox/posting.js';
import { BoundedStore } from '../kernel/journal/bounded-store.js';
import { allMessages, catchUp } from '../kernel/journal/read-session.js';
import { SessionState } from '../kernel/journal/session-state.js';
import { AlliumError, invalidOption, isOptions, isThenable } from '../kernel/lib/errors.js';
import { Scope } from '../kernel/lib/scope.js';
import { checkKeys } from '../kernel/lib/shapes.js';
import type { Message, MessageInput } from '../kernel/messages/messages.js';
import type { DeclaredOptions, RunningAgent } from '../kernel/protocol/contexts.js';
import type { RunResult } from '../kernel/protocol/result.js';
import { NONE_DECLARED, type ResumeOptions, type RunOptions } from '../kernel/protocol/run-options.js';
import { Aborted } from '../kernel/protocol/signals.js';
import type { StateCell } from '../kernel/protocol/state.js';
import type { Awaitable, Decision, PendingRequest, Queued, Store } from '../kernel/protocol/store.js';
import type { RunTrace } from '../kernel/protocol/trace.js';
import { execute } from '../kernel/run/execute-run.js';
import { storedState } from '../kernel/run/result-state.js';
import { runBehind } from '../kernel/run/run.js';
import { ownMessages } from '../kit/own-messages.js';
import type { Agent } from './agent.js';
import { cancel, endWaiting } from './cancel-run.js';
import { EventStream, type RunStream } from './event-stream.js';
import { giveAnswer } from './post-answer.js';
import { checkSessionId, type ForkOptions, fork, type HistoryPoint, type Place, rewind } from './rewind.js';
import { type Allowance, allowedIn, listed, revoke } from './session-allowances.js';

export class Session {
  private known: SessionState;
  /** The scope of the run in progress. */
  private control: Scope | undefined;

  /** @internal */
  constructor(
    private readonly host: Agent,
    readonly id: string,
    private readonly forget: boolean,
    private readonly store: Store = host.store,
    private readonly tenant?: string,
  ) {
    this.known = new SessionState(id);
  }

  get agent(): RunningAgent {
    return this.host;
  }

  run(input: MessageInput | readonly MessageInput[], options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    return this.start(() => ownMessages(input), options);
  }

  stream(input: MessageInput | readonly MessageInput[], options: RunOptions = NO_OPTIONS): RunStream {
    return this.streaming(() => ownMessages(input), options);
  }

  /** Resumes a run that was suspended or broke off: the same run, with the same id, counters and state. */
  resume(options: ResumeOptions = {}): Promise<RunResult> {
    return this.start(undefined, options);
  }

  resumeStream(options: ResumeOptions = {}): RunStream {
    return this.streaming(undefined, options);
  }

  /**
   * Continues without new input: the model answers the history as it is, or the waiting messages if the history ends with an
   * answer.
   */
  continue(options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    return this.start(() => [], options);
  }

  continueStream(options: RunOptions = NO_OPTIONS): RunStream {
    return this.streaming(() => [], options);
  }

  /**
   * Makes middleware compact the history now, in a run without turns. What it costs is in `usage` of the result. The history
   * stays as it is; later requests are shorter.
   */
  async compact(options: RunOptions = NO_OPTIONS): Promise<RunResult> {
    if (isOptions(options) && this.host.planFor(options.middleware).rules.compact.length === 0)
      throw new AlliumError(
        'NO_COMPACTION',
        'No middleware of the agent can compact a history. Add one with a `compact` hook, such as compaction().',
      );
    return this.start(() => [], options, undefined, undefined, true);
  }

  /**
   * Goes back: the history ends with this message again, or before it, and the cells of the session are as they were then.
   * The journal keeps everything, and usage and limits keep counting. An open run is ended.
   */
  async rewind(point: HistoryPoint): Promise<void> {
    this.claim();
    try {
      await reached(() => rewind(this.place, point));
    } finally {
      this.host._busy.delete(this.id);
    }
  }

  /**
   * Makes a new session with the history up to this message, or before it; with all of it if you name none. The two are
   * independent from then on, and waiting messages stay with this one.
   */
  async fork(point?: HistoryPoint, options: ForkOptions = {}): Promise<Session> {
    checkKeys('fork()', options, ['id']);
    const { host, store, tenant } = this;
    const { id = `s_${host.newId()}` } = options;
    checkSessionId(id);
    await reached(() => fork(this.place, point, id));
    return new Session(host, id, false, store, tenant);
  }

  /** Sends a message into a running run: the model reads it before its next turn. */
  steer(message: MessageInput): Promise<void> {
    return this.post('steer', message);
  }

  /** Sends a message for when the run would end. */
  followUp(message: MessageInput): Promise<void> {
    return this.post('follow_up', message);
  }

  /** Messages of `steer()` and `followUp()` that no run has taken in yet, oldest first. */
  queued(): Promise<readonly QueuedMessage[]> {
    return reached(async () => queued(this.bounded, await this.look()));
  }

  /** Takes a message back. False if it isn't waiting any more: a run has taken it in, or somebody else took it back. */
  async removeQueued(id: string): Promise<boolean> {
    const waiting = await this.queued();
    if (!waiting.some((one) => one.id === id)) return false;
    await reached(() => post(this.bounded, this.id, { type: 'unqueue', n: Number(id) }));
    return true;
  }

  /**
   * Answers a pending request. A run that waits for it continues, in whichever process; a suspended one continues with
   * `resume()`. The first answer counts; later ones fail with `REQUEST_UNKNOWN`.
   */
  async answer(requestId: string, given: Decision): Promise<void> {
    const { host: agent, bounded: store, id } = this;
    // A copy: changing the object after the call doesn't change the answer.
    await giveAnswer({ agent, store, id, look: () => this.look() }, requestId, ownDecision(requestId, given));
  }

  /**
   * What was approved with `remember` and won't be asked again, oldest first. Includes tools of sub-agents that were approved
   * in this session.
   */
  allowances(): Promise<readonly Allowance[]> {
    return reached(async () => listed(await allowedIn(this.bounded, await this.look())));
  }

  /**
   * Revokes an allowance in every process; a running run asks again from its next question on. False if there is no such
   * allowance any more.
   */
  revoke(id: string): Promise<boolean> {
    return reached(async () => revoke(this.bounded, await this.look(), id));
  }

  /**
   * Aborts the run in progress: at once if this agent runs it or it is suspended; otherwise through the inbox, which the
   * other process checks between turns and while it waits for an answer.
   */
  async abort(reason?: string): Promise<void> {
    if (!this.control) await reached(() => this.look());
    const control = this.holder?.control;
    if (control) return control.abort(new Aborted(reason));
    await cancel(this.bounded, this.id, reason);
    await endWaiting(await reached(() => this.look()), reason, (scope) =>
      this.start(undefined, { allowPlanChange: true }, undefined, scope),
    );
  }

  messages(): Promise<readonly Message[]> {
    return reached(async () => allMessages(this.bounded, await this.look()));
  }

  /** Questions of a waiting run. One answered with `answer()` is listed until the run continues. */
  async pending(): Promise<readonly PendingRequest[]> {
    return [...((await reached(() => this.look())).open?.requests.values() ?? [])];
  }

  /**
   * The value of a cell of the session, or of its current or last run. `agentId`: reads it from a sub-agent, by its session id,
   * which is `details.agentId` of the call's result.
   */
  async state<T>(cell: StateCell<T>, agentId?: string): Promise<T> {
    const { host, store, tenant } = this;
    const from = agentId === undefined ? this : new Session(host, agentId, false, store, tenant);
    return storedState(await reached(() => from.look()), host.plan.cells, cell);
  }

  /** What was recorded of a run that is traced, with its sub-agents; of the last such run if you name none. */
  async trace(runId?: string): Promise<RunTrace | undefined> {
    await reached(() => this.look());
    return reached(() => this.host._tracer.load(this.bounded, this.id, runId));
  }

  /** The state of the session. Throws for another tenant. */
  private look(): Awaitable<SessionState> {
    const tenant = this.tenant ?? this.host.tenant;
    const state = this.peek();
    return isThenable(state) ? state.then((read) => read.checkTenant(tenant)) : state.checkTenant(tenant);
  }

  /**
   * @internal The state of the run in progress, or what the journal says, without disturbing a run. `store`: carries the
   * caller's time limits.
   */
  peek(store: Store = this.bounded): Awaitable<SessionState> {
    const { holder } = this;
    if (holder && holder.known.reading === 0) return holder.known;
    // A run of this object that is just starting reads into its own state.
    const state = holder === this ? new SessionState(this.id) : this.known;
    const wait = catchUp(store, state);
    return wait ? wait.then(() => state) : state;
  }

  /** The Session object whose run is in progress, if this agent runs one. */
  private get holder(): Session | undefined {
    const holder = this.host._busy.get(this.id);
    return holder?.store === this.store ? holder : undefined;
  }

  /** The store with its time limit, for everything outside a run. */
  private get bounded(): Store {
    return new BoundedStore(this.store, this.host.clock, this.host.storeTimeoutMs);
  }

  /** Doesn't wait unless the store does, so that a message sent by a tool is read in the next turn. */
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
    return new EventStream(queue, result, scope, this.host._partialsOf);
  }

  /** Checks all options and returns those that belong to middleware. */
  private declared(options: ResumeOptions, resumes: boolean): DeclaredOptions {
    if (!isOptions(options)) throw invalidOption('options', 'an object', options);
    return declaredOptions(options, resumes, () => this.host.planFor(options.middleware).runOptions);
  }

  private get place(): Place {
    const { host: agent, bounded: store, id: sessionId, tenant = agent.tenant } = this;
    return { agent, store, sessionId, tenant };
  }

  /** Reserves the session: nobody else runs it with this agent until it is released. */
  private claim(): void {
    const { _busy: busy } = this.host;
    if (busy.has(this.id)) {
      throw new AlliumError(
        'SESSION_BUSY',
        `Session "${this.id}" already has a run under way. Use steer() to send a message into that run, followUp() to send one after it, or await it first.`,
      );
    }
    // A read of the journal that is still in progress keeps the old state object.
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
    const { host: agent } = this;
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
      // A run that failed with a question open can be resumed.
      waits = this.known.open !== undefined;
      // Memory may be ahead of the journal, so the next read starts from scratch.
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

/** Most runs have no options, so there is nothing to check. */
const NO_OPTIONS: RunOptions = Object.freeze({});

/** A run inside a tool or hook ends with the call that made it. */
function scopeOf(options: RunOptions | undefined): Scope | undefined {
  return (options?.parent as Context | undefined)?._scope;
}
