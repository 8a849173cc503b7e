/**
 * A run inside a tool call: the only way for agents to call agents. The child has its own session under the parent's, in the
 * parent's store, named after the call that started it. If the call is repeated after a suspension or a crash, the child
 * continues or its result is found, and nothing is done twice.
 */

import { childId, endRun, placeOf } from '../kernel/calls/end-children.js';
import type { Call } from '../kernel/calls/tool-call.js';
import type { ToolContext } from '../kernel/context/context.js';
import { internal } from '../kernel/context/context.js';
import { isAllowed } from '../kernel/journal/allowances.js';
import type { OpenRun } from '../kernel/journal/journaled-run.js';
import { readHistory } from '../kernel/journal/read-session.js';
import type { SessionState } from '../kernel/journal/session-state.js';
import { codeOf, isStoreTrouble } from '../kernel/lib/errors.js';
import {
  deepFreeze,
  type Message,
  type MessageInput,
  textOf,
  toolCallsOf,
} from '../kernel/messages/messages.js';
import type { ToolContext as PublicToolContext, RunningAgent } from '../kernel/protocol/contexts.js';
import type { AgentEvent } from '../kernel/protocol/events.js';
import type { RunResult, StateReader } from '../kernel/protocol/result.js';
import { RunError } from '../kernel/protocol/result.js';
import type { RunOptions } from '../kernel/protocol/run-options.js';
import { controlKind, Suspension } from '../kernel/protocol/signals.js';
import type { RunStatus, Stop } from '../kernel/protocol/stop.js';
import type {
  Awaitable,
  Decision,
  PendingRequest,
  RequestContext,
  RequestHandler,
} from '../kernel/protocol/store.js';
import type { RunTrace } from '../kernel/protocol/trace.js';
import { keptState } from '../kernel/run/result-state.js';
import type { Run } from '../kernel/run/run.js';
import type { ToolBatch } from '../kernel/tools/tool-batch.js';

/** Which agent to run inside a tool call, and with what. */
export interface ChildRun {
  readonly agent: RunningAgent;
  readonly input: MessageInput | readonly MessageInput[];
  /**
   * Receives the events of the child, in order.
   *
   * Contract: it is awaited, so a slow one slows the child down. If it throws, the child ends and the call fails.
   */
  readonly onEvent?: ((event: AgentEvent, sessionId: string) => Awaitable<void>) | undefined;
  /** See `RunOptions.inheritGuards`. */
  readonly inheritGuards?: boolean;
}

type Session = ReturnType<RunningAgent['session']>;

/** How the run of a child ended. */
export interface ChildOutcome {
  readonly agent: RunningAgent;
  /** The id of its session. */
  readonly sessionId: string;
  readonly status: Exclude<RunStatus, 'suspended'>;
  readonly stop: Stop;
  /** Its last answer with a word in it: some models end with an empty one when they have said everything beside a call. */
  readonly text: string;
  /** Its error, if it failed in this process. */
  readonly error?: unknown;
}

/**
 * Runs an agent inside a tool call, in its own session under the parent's. If the call is repeated after a suspension or a
 * crash, the child continues or its result is found. Its questions suspend the parent; its failure is an outcome.
 *
 * @example
 * execute: async ({ task }, ctx) => childResult(await runChild(ctx, { agent: helper, input: task })),
 */
export async function runChild(ctx: PublicToolContext, child: ChildRun): Promise<ChildOutcome> {
  const own = internal(ctx);
  own._call.checkAsk();
  const call = new ChildCall(own, child);
  const { place } = call;
  const run = own._run as Run;
  run.children.running ??= new Map();
  const { running: children } = run.children;
  const work = call.after(children.get(place) as Promise<ChildOutcome> | undefined);
  children.set(place, work);
  try {
    return await work;
  } catch (error) {
    // A question ends the call and everything that still runs in it. Its other children finish first, like other calls.
    if (controlKind(error) === 'suspend') await Promise.allSettled(call.siblingsIn(children));
    throw error;
  } finally {
    if (children.get(place) === work) children.delete(place);
  }
}

function isFailure(status: RunStatus | undefined): boolean {
  return status === 'error' || status === 'aborted';
}

/** One child of one call. */
class ChildCall {
  private readonly run: Run;
  /** Identifies the child in the parent's session. */
  readonly place: string;

  /** Children of one execution are identified by their order, so a tool must start them in the same order each time. */
  constructor(
    private readonly ctx: ToolContext,
    private readonly child: ChildRun,
  ) {
    const { assistantMessage, toolCall } = ctx;
    const index = toolCallsOf(assistantMessage).findIndex(({ id }) => id === toolCall.id);
    this.run = ctx._run as Run;
    this.place = placeOf(assistantMessage.id, index, ++ctx._children);
  }

  /** The other children of the same call that have not ended. */
  siblingsIn(children: ReadonlyMap<string, Promise<unknown>>): readonly Promise<unknown>[] {
    const first = this.place.replace(/\+\d+$/, '');
    return [...children]
      .filter(([place]) => place !== this.place && (place === first || place.startsWith(`${first}+`)))
      .map(([, work]) => work);
  }

  /** Overlapping attempts of one call run one after the other and share the outcome of the first. */
  async after(before: Promise<ChildOutcome> | undefined): Promise<ChildOutcome> {
    const outcome = await before?.catch(() => {});
    this.checkAbort();
    if (outcome && !isFailure(outcome.status)) return outcome;
    return this.goOn(await this.find());
  }

  /** The session of the child. A failed child is final, unless a layer retries the tool right away: a retry gets a new session. */
  private async find(): Promise<Session> {
    const { sessionId, forgets, store } = this.run;
    const again = this.ctx._call.attempts > 1;
    const idOf = (n: number): string => childId(sessionId, this.place, n);
    for (let n = 1; ; n++) {
      const session = this.child.agent._childSession(idOf(n), forgets, store.raw);
      const { open, ended } = await this.reached(() => session.peek(store));
      const failed = !open && isFailure(ended?.status);
      if (!failed || (!again && (await this.reached(() => store.head(idOf(n + 1)))) === 0)) return session;
    }
  }

  private async goOn(session: Session): Promise<ChildOutcome> {
    const of = { agent: this.child.agent, sessionId: session.id };
    // The parent waits here, so its limits apply, however long the child might wait.
    const state = await this.reached(() => session.peek(this.run.store));
    this.run.bookSpent(state);
    if (!state.open && state.ended) {
      await this.closeOthers([]);
      await this.reached(() => readHistory(this.run.store, state));
      this.keep(session, keptState(state));
      return { ...of, ...stored(state, state.ended) };
    }
    let result: RunResult;
    let failure: { readonly error: unknown } | undefined;
    try {
      result = await this.execute(session, state.open);
    } catch (error) {
      this.checkAbort();
      if (isLost(error, state)) throw this.run.surrender(error);
      const failed = error instanceof RunError ? error.result : undefined;
      // It may have failed with a question open. The parent goes on without it, so nobody could answer that.
      await endRun(this.run, session.id, failed).catch((cause) => {
        throw this.run.surrender(this.run.ofStore(cause));
      });
      if (!failed) throw error;
      result = failed;
      failure = { error: (error as RunError).cause ?? error };
    }
    this.checkAbort();
    this.keep(session, result.state, result.trace);
    const { status, stop, messages, pending } = result;
    const text = isBlank(result.text) ? lastWords(messages) : result.text;
    const open = status === 'suspended' ? pending.map((one) => this.lifted(one, session)) : [];
    await this.closeOthers(open);
    if (status !== 'suspended') return { ...of, status, stop, text, ...failure };
    // All its questions were answered in its own session meanwhile.
    if (open.length === 0) return this.goOn(session);
    const [first, ...more] = open;
    const signal = new Suspension(first!, ...more);
    this.ctx._latch(signal);
    throw signal;
  }

  private keep({ id }: Session, state: StateReader, trace?: RunTrace): void {
    const { children } = this.run;
    if (trace) {
      children.traces ??= new Map();
      children.traces.set(id, trace);
    }
    children.states ??= new Map();
    children.states.set(id, state);
  }

  private checkAbort(): void {
    const { _scope: scope } = this.ctx;
    if (scope.aborted) throw scope.reason;
  }

  /** Asks the store about a child. If the store fails, the parent fails too: that is no result of the call. */
  private async reached<T>(ask: () => Awaitable<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      if (codeOf(error) !== undefined && !isStoreTrouble(error)) throw error;
      throw this.run.surrender(this.run.ofStore(error));
    }
  }

  private async execute(session: Session, open: OpenRun | undefined): Promise<RunResult> {
    const { input, onEvent } = this.child;
    const options = this.optionsOf(session);
    const { allowPlanChange = false } = this.run.start.options;
    const resuming = open && { ...options, allowPlanChange, answers: this.answersFor(open) };
    if (!onEvent) return resuming ? session.resume(resuming) : session.run(input, options);
    const stream = resuming ? session.resumeStream(resuming) : session.stream(input, options);
    for await (const event of stream) {
      const wait = onEvent(event, session.id);
      if (wait) await wait;
    }
    return stream.result;
  }

  private optionsOf(session: Session): RunOptions {
    const { metadata, limits, onRequest } = this.run;
    const { agent, inheritGuards = true } = this.child;
    const { allowed } = this.run.state;
    // What is allowed in the parent's session isn't asked here either.
    const handler = agent._onRequest ?? onRequest ?? (allowed && nobody);
    const depth = Math.min(limits.depth ?? Number.POSITIVE_INFINITY, agent.limits.depth ?? 8);
    return {
      parent: this.ctx,
      inheritGuards,
      limits: { depth },
      ...(Object.keys(metadata).length > 0 && { metadata }),
      ...(handler && {
        onRequest: (request, answering) => this.relay(handler, this.lifted(request, session), answering),
      }),
    };
  }

  // ── Its questions ────────────────────────────────────────────────────────────────────────────────────────────

  /** A question of the child as a question of the parent: with an id of its own, about the same tool and arguments. */
  private lifted(request: PendingRequest, session: Session): PendingRequest {
    const { runId, callId } = request;
    const from = request.from ?? { agent: this.child.agent.name, sessionId: session.id, runId, callId };
    const id = `${this.place}/${request.id}`;
    return deepFreeze({ ...request, id, runId: this.run.runId, callId: this.ctx.toolCall.id, from });
  }

  /**
   * A handler of the parent answers in the parent's session, so the parent's guards judge the answer, as they do after a
   * resume, and people can answer there. A handler of the child answers directly.
   */
  private async relay(
    handler: RequestHandler,
    request: PendingRequest,
    answering: RequestContext,
  ): Promise<Decision | undefined> {
    if (this.child.agent._onRequest) return handler(request, answering);
    if (handler === nobody && !isAllowed(this.run.state.allowed, request)) return undefined;
    const { signal } = answering;
    const call = this.ctx._call as Call;
    const { questions } = (call.batch as ToolBatch).approval;
    const decision = await questions.relay(call, this.ctx, request, handler, signal);
    if (signal.aborted) await this.close([request.id]);
    return decision;
  }

  /** Answers that the parent got and the child hasn't received yet. */
  private answersFor({ requests }: OpenRun): Record<string, Decision> {
    const answers: Record<string, Decision> = {};
    for (const id of requests.keys()) {
      const answer = this.run.open.decided?.answers.get(`${this.place}/${id}`);
      if (answer) answers[id] = answer.decision;
    }
    return answers;
  }

  /**
   * Closes questions that the child no longer asks: they lapsed, or were answered in its own session. Those with a `key` it may
   * ask again; until then, the questions that it asks instead replace them.
   */
  private async closeOthers(open: readonly PendingRequest[]): Promise<void> {
    const { open: parent } = this.run;
    const closed = [...parent.requests.values()].filter(
      ({ id, key }) =>
        (key === undefined || open.length === 0) &&
        id.startsWith(`${this.place}/`) &&
        !open.some((request) => request.id === id),
    );
    await this.close(closed.map(({ id }) => id));
  }

  private async close(ids: readonly string[]): Promise<void> {
    const { runId, open } = this.run;
    const decision: Decision = { type: 'reject', reason: 'Settled inside the sub-agent.' };
    const closed = ids.filter((id) => open.requests.has(id));
    if (closed.length === 0) return;
    await this.run.append(closed.map((requestId) => ({ type: 'answer', runId, requestId, decision })));
  }
}

/** The handler of a parent that has none. */
function nobody(): undefined {}

/**
 * Must the parent give up too? Yes if another process runs the child, and so the parent; if the store fails, so that nobody
 * knows how far the child got; or if the child is open but can't be resumed here, perhaps because a middleware is missing.
 * A tool result would end it for good.
 */
function isLost(error: unknown, { open }: SessionState): boolean {
  if (codeOf(error) === 'SESSION_CONFLICT' || isStoreTrouble(error)) return true;
  return open !== undefined && !(error instanceof RunError);
}

function stored(
  { history }: SessionState,
  { status, stop }: { readonly status: RunStatus; readonly stop: Stop },
): Pick<ChildOutcome, 'status' | 'stop' | 'text'> {
  return { status: status as ChildOutcome['status'], stop, text: lastWords(history.from(0)) };
}

function lastWords(messages: readonly Message[]): string {
  const said = messages.findLast((message) => message.role === 'assistant' && !isBlank(textOf(message)));
  return said ? textOf(said) : '';
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}
