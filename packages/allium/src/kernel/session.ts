/** A conversation and the ways into it. */
import type { Agent, RunOptions } from './agent.js';
import { checkAnswer, firstAnswers, unknownRequest } from './answers.js';
import { Aborted, AlliumError, invalidOption } from './errors.js';
import { EventQueue } from './event-queue.js';
import type { AgentEvent } from './events.js';
import { ownMessage, toMessages } from './message-input.js';
import { freezeMessage, type Message, type MessageInput, userMessage } from './messages.js';
import type { RunResult } from './result.js';
import { checkRunOptions, declaredOptions, RESUME_OPTIONS, RUN_OPTIONS } from './run-options.js';
import { type Control, execute } from './runner.js';
import { catchUp, SessionState } from './session-state.js';
import type { Decision, PendingRequest, Store } from './store.js';

export interface ResumeOptions extends RunOptions {
  /** Answers to pending requests, by request id. */
  readonly answers?: Readonly<Record<string, Decision>>;
  /** Go on although a middleware of the run is missing now. */
  readonly allowPlanChange?: boolean;
}

/** Events as they happen, and the result. Not a promise: await `result`. */
export interface RunStream extends AsyncIterable<AgentEvent> {
  /** Settles when the run has ended. Where nobody iterates, events are let go instead of waiting to be read. */
  readonly result: Promise<RunResult>;
}

export class Session {
  private state: SessionState;
  private control: Control | undefined;

  /** @internal */
  constructor(
    readonly agent: Agent,
    readonly id: string,
    private readonly forget: boolean,
    private readonly store: Store = agent.store,
  ) {
    this.state = new SessionState(id);
  }

  run(input: MessageInput | readonly MessageInput[], options: RunOptions = {}): Promise<RunResult> {
    return this.start(() => ownMessages(input), options);
  }

  stream(input: MessageInput | readonly MessageInput[], options: RunOptions = {}): RunStream {
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
  async steer(message: MessageInput): Promise<void> {
    for (const one of toMessages(message))
      await this.store.post(this.id, { type: 'steer', message: ownMessage(one) });
  }

  /** Says something for when the run would end. */
  async followUp(message: MessageInput): Promise<void> {
    for (const one of toMessages(message))
      await this.store.post(this.id, { type: 'follow_up', message: ownMessage(one) });
  }

  /** Answers a pending request; a run that is suspended goes on with `resume()`. */
  async answer(requestId: string, decision: Decision): Promise<void> {
    const pending = await this.pending();
    const request = pending.find(({ id }) => id === requestId);
    const now = this.agent.clock.now();
    const posted = (await this.store.take(this.id, this.state.inboxCursor)).map(({ item }) => item);
    const given = request && firstAnswers(posted, new Map([[requestId, request]]), now);
    if (!request || given?.has(requestId)) throw unknownRequest(requestId, pending);
    const checked = checkAnswer(request, decision, now);
    await this.store.post(this.id, { type: 'answer', requestId, decision: checked, at: now });
  }

  /** Aborts the run under way, in this process or, through the inbox, in another. */
  async abort(reason?: string): Promise<void> {
    if (this.control) this.control.abort(new Aborted(reason));
    else await this.store.post(this.id, { type: 'cancel', ...(reason !== undefined && { reason }) });
  }

  async messages(): Promise<readonly Message[]> {
    return (await this.peek()).history.all();
  }

  /** Questions that wait for an answer. */
  async pending(): Promise<readonly PendingRequest[]> {
    return [...((await this.peek()).open?.requests.values() ?? [])];
  }

  /** @internal A look at the journal that disturbs no run. */
  async peek(): Promise<SessionState> {
    if (!this.agent._busy.has(this.id)) await catchUp(this.store, this.state);
    return this.state;
  }

  private streaming(input: (() => Message[]) | undefined, options: ResumeOptions): RunStream {
    const queue = new EventQueue();
    const result = this.start(input, options, queue);
    result.then(
      () => queue.end(),
      (error) => queue.end({ error }),
    );
    return new EventStream(queue, result, () =>
      this.control?.abort(new Aborted('The consumer stopped reading.')),
    );
  }

  private async start(
    input: (() => Message[]) | undefined,
    options: ResumeOptions,
    queue?: EventQueue,
  ): Promise<RunResult> {
    const { agent } = this;
    if (typeof options !== 'object' || options === null) throw invalidOption('options', 'an object', options);
    const declared = declaredOptions(
      input ? 'run()' : 'resume()',
      options,
      input ? RUN_OPTIONS : RESUME_OPTIONS,
      () => agent.planFor(options.middleware).runOptions,
    );
    checkRunOptions(options);
    const messages = input?.();
    if (agent._busy.has(this.id)) {
      throw new AlliumError(
        'SESSION_BUSY',
        `Session "${this.id}" already has a run under way. Use steer() to speak into it, followUp() to speak after it, or await it first.`,
      );
    }
    agent._busy.add(this.id);
    try {
      return await execute({
        agent,
        store: this.store,
        forgets: this.forget,
        state: this.state,
        input: messages,
        options,
        declared,
        queue,
        control: (control) => {
          this.control = control;
        },
      });
    } catch (error) {
      // What is in memory may be ahead of the journal: the next look starts from it again.
      this.state = new SessionState(this.id);
      throw error;
    } finally {
      this.control = undefined;
      agent._busy.delete(this.id);
      if (this.forget && this.state.open === undefined) {
        const wait = this.store.delete(this.id);
        if (wait) await wait;
      }
    }
  }
}

/** One class, not an object literal: a getter of its own would give each stream a hidden class of its own. */
class EventStream implements RunStream {
  readonly #queue: EventQueue;
  readonly #result: Promise<RunResult>;
  readonly #abort: () => void;

  constructor(queue: EventQueue, result: Promise<RunResult>, abort: () => void) {
    this.#queue = queue;
    this.#result = result;
    this.#abort = abort;
  }

  get result(): Promise<RunResult> {
    this.#queue.detach();
    return this.#result;
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentEvent, undefined> {
    const queue = this.#queue;
    queue.attach();
    return {
      next: () => queue.next(),
      return: async () => {
        queue.leave();
        this.#abort();
        await this.#result.catch(ignore);
        return { done: true, value: undefined };
      },
    };
  }
}

function ignore(): void {}

function ownMessages(input: MessageInput | readonly MessageInput[]): Message[] {
  if (typeof input === 'string') return [freezeMessage(userMessage(input))];
  return toMessages(input).map(ownMessage);
}
