/** A conversation and the ways into it. */
import type { Agent, RunOptions } from './agent.js';
import { checkAnswer, checkEdit, firstAnswer, unknownRequest } from './answers.js';
import { Aborted, AlliumError, invalidOption, isOptions, isThenable, storeFailed } from './errors.js';
import { EventQueue } from './event-queue.js';
import type { AgentEvent } from './events.js';
import { posted } from './inbox.js';
import { ownMessage, toMessages } from './message-input.js';
import { freezeMessage, type Message, type MessageInput, userMessage } from './messages.js';
import type { RunResult } from './result.js';
import {
  checkRunOptions,
  type DeclaredOptions,
  declaredOptions,
  NONE_DECLARED,
  RESUME_OPTIONS,
  RUN_OPTIONS,
} from './run-options.js';
import { execute } from './runner.js';
import { Scope } from './scope.js';
import { catchUp, SessionState } from './session-state.js';
import type { Awaitable, Decision, PendingRequest, Queued, Store } from './store.js';

export interface SessionOptions {
  /** For whom it is opened. New runs belong to this tenant; a session of another one tells nothing and takes nothing: `TENANT_MISMATCH`. @default that of the agent */
  readonly tenant?: string;
}

export interface ResumeOptions extends RunOptions {
  /** Answers to pending requests, by request id. */
  readonly answers?: Readonly<Record<string, Decision>>;
  /** Go on although a middleware of the run is missing now. */
  readonly allowPlanChange?: boolean;
}

/** Events as they happen, for one reader, and the result. Not a promise: await `result`. */
export interface RunStream extends AsyncIterable<AgentEvent> {
  /** For one reader: whoever iterates a second time gets `STREAM_TAKEN`. */
  [Symbol.asyncIterator](): AsyncIterableIterator<AgentEvent, undefined>;
  /**
   * Settles when the run has ended. Once it was asked for, the run waits for no reader: where nobody iterates, events are
   * let go; where somebody does, all of them are kept until they are read.
   */
  readonly result: Promise<RunResult>;
}

export class Session {
  private state: SessionState;
  /** Of the run under way. */
  private control: Scope | undefined;

  /** @internal */
  constructor(
    readonly agent: Agent,
    readonly id: string,
    private readonly forget: boolean,
    private readonly store: Store = agent.store,
    private readonly tenant?: string,
  ) {
    this.state = new SessionState(id);
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

  /** Says something while a run is under way: the model hears it before its next turn. */
  steer(message: MessageInput): Promise<void> {
    return this.post('steer', message);
  }

  /** Says something for when the run would end. */
  followUp(message: MessageInput): Promise<void> {
    return this.post('follow_up', message);
  }

  /** Answers a pending request; a run that is suspended goes on with `resume()`. */
  async answer(requestId: string, decision: Decision): Promise<void> {
    const state = await reached(() => this.look());
    const { open } = state;
    const request = open?.requests.get(requestId);
    const now = this.agent.clock.now();
    const items = await reached(() => posted(this.store, state));
    if (!request || firstAnswer(items, request, now))
      throw unknownRequest(
        requestId,
        [...(open?.requests.values() ?? [])].filter(({ id }) => id !== requestId),
      );
    const checked = checkAnswer(request, decision, now);
    await checkEdit(this.agent.plan, open!, request, checked);
    const item = { type: 'answer', requestId, decision: checked, at: now } as const;
    await reached(() => this.store.post(this.id, item));
  }

  /**
   * Aborts the run under way: at once where this agent runs it, whichever Session object it was started with, and
   * through the inbox where another does, which looks there between turns.
   */
  async abort(reason?: string): Promise<void> {
    if (!this.control) await reached(() => this.look());
    const control = this.holder?.control;
    if (control) control.abort(new Aborted(reason));
    else
      await reached(() =>
        this.store.post(this.id, { type: 'cancel', ...(reason !== undefined && { reason }) }),
      );
  }

  async messages(): Promise<readonly Message[]> {
    return (await reached(() => this.look())).history.all();
  }

  /** Questions of a run that waits. One that was answered with `answer()` is listed until the run goes on. */
  async pending(): Promise<readonly PendingRequest[]> {
    return [...((await reached(() => this.look())).open?.requests.values() ?? [])];
  }

  /** What the session says to whoever opened it; another tenant is told nothing. */
  private look(): Awaitable<SessionState> {
    const tenant = this.tenant ?? this.agent.tenant;
    const state = this.peek();
    return isThenable(state) ? state.then((read) => read.checkTenant(tenant)) : state.checkTenant(tenant);
  }

  /** @internal The state of the run under way, or a look at the journal that disturbs none. */
  peek(): Awaitable<SessionState> {
    const { holder } = this;
    if (holder && holder.state.reading === 0) return holder.state;
    // A run of this object that just begins reads into its state by itself.
    const state = holder === this ? new SessionState(this.id) : this.state;
    const wait = catchUp(this.store, state);
    return wait ? wait.then(() => state) : state;
  }

  /** What holds the run under way, if this agent runs one: this object or another of the same session. */
  private get holder(): Session | undefined {
    const holder = this.agent._busy.get(this.id);
    return holder?.store === this.store ? holder : undefined;
  }

  /** Without a wait where nothing has to be waited for: what is said in a tool is heard in the turn after it. */
  private async post(type: Queued['type'], given: MessageInput): Promise<void> {
    for (const one of toMessages(given)) {
      const message = ownMessage(one);
      await reached(async () => {
        const looked = this.look();
        if (isThenable(looked)) await looked;
        await this.store.post(this.id, { type, message });
      });
    }
  }

  private streaming(input: (() => Message[]) | undefined, options: ResumeOptions): RunStream {
    const queue = new EventQueue();
    const scope = new Scope(options?.parent?._scope);
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
    const declared = declaredOptions(
      resumes ? 'resume()' : 'run()',
      options,
      resumes ? RESUME_OPTIONS : RUN_OPTIONS,
      () => this.agent.planFor(options.middleware).runOptions,
    );
    checkRunOptions(options);
    return declared;
  }

  private async start(
    input: (() => Message[]) | undefined,
    options: ResumeOptions,
    queue?: EventQueue,
    scope = new Scope(options?.parent?._scope),
  ): Promise<RunResult> {
    const { agent } = this;
    const declared = options === NO_OPTIONS ? NONE_DECLARED : this.declared(options, !input);
    const messages = input?.();
    if (agent._busy.has(this.id)) {
      throw new AlliumError(
        'SESSION_BUSY',
        `Session "${this.id}" already has a run under way. Use steer() to speak into it, followUp() to speak after it, or await it first.`,
      );
    }
    // A look at the journal that is still under way goes on with the state it has.
    if (this.state.reading > 0) this.state = new SessionState(this.id);
    agent._busy.set(this.id, this);
    this.control = scope;
    let waits = false;
    try {
      return await execute({
        agent,
        store: this.store,
        forgets: this.forget,
        state: this.state,
        input: messages,
        tenant: options.tenant ?? this.tenant ?? options.parent?.tenant ?? agent.tenant,
        options,
        declared,
        queue,
        scope,
      });
    } catch (error) {
      // A run that failed around a question can be gone on with.
      waits = this.state.open !== undefined;
      // What is in memory may be ahead of the journal: the next look starts from it again.
      this.state = new SessionState(this.id);
      throw error;
    } finally {
      this.control = undefined;
      agent._busy.delete(this.id);
      if (this.forget && !waits && this.state.open === undefined) {
        const wait = this.store.delete(this.id);
        if (wait) await wait;
      }
    }
  }
}

/** What the store says, or that it failed. */
async function reached<T>(ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw storeFailed(error);
  }
}

/** Of most runs: nothing in it has to be looked at. */
const NO_OPTIONS: RunOptions = Object.freeze({});

/** One class, not an object literal: a getter of its own would give each stream a hidden class of its own. */
class EventStream implements RunStream {
  readonly #queue: EventQueue;
  readonly #result: Promise<RunResult>;
  readonly #scope: Scope;
  #taken = false;

  constructor(queue: EventQueue, result: Promise<RunResult>, scope: Scope) {
    this.#queue = queue;
    this.#result = result;
    this.#scope = scope;
  }

  get result(): Promise<RunResult> {
    this.#queue.detach();
    return this.#result;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<AgentEvent, undefined> {
    if (this.#taken)
      throw new AlliumError(
        'STREAM_TAKEN',
        'This stream has a reader already, and hands each event out once: a second reader would take events from the first. Pass them on from one loop, or watch runs with `observers` of the agent.',
      );
    this.#taken = true;
    this.#queue.attach();
    return new EventReader(this.#queue, () => {
      this.#scope.abort(new Aborted('The consumer stopped reading.'));
      return this.#result.catch(ignore);
    });
  }
}

/** Whoever iterates. Methods of a class: functions made for every stream would cost more to call. */
class EventReader implements AsyncIterableIterator<AgentEvent, undefined> {
  readonly #queue: EventQueue;
  readonly #endRun: () => Promise<unknown>;

  constructor(queue: EventQueue, endRun: () => Promise<unknown>) {
    this.#queue = queue;
    this.#endRun = endRun;
  }

  /** Whoever read some by hand reads the rest in a loop over this. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<AgentEvent, undefined>> {
    return this.#queue.next();
  }

  /** Ends the run this was the stream of, if it is still under way. */
  async return(): Promise<IteratorResult<AgentEvent, undefined>> {
    this.#queue.leave();
    await this.#endRun();
    return { done: true, value: undefined };
  }
}

function ignore(): void {}

function ownMessages(input: MessageInput | readonly MessageInput[]): Message[] {
  if (typeof input === 'string') return [freezeMessage(userMessage(input))];
  return toMessages(input).map(ownMessage);
}
