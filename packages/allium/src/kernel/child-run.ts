/**
 * A run inside a tool call: the one way in which agents call agents. The child has a session of its own under the
 * parent's, in the parent's store, named by the call that started it. So when the call is made again, after a
 * suspension or a crash, the child goes on, or its result is found, and nothing is done twice.
 */
import { childId, endRun, placeOf } from './abandoned.js';
import type { Agent, RunOptions } from './agent.js';
import type { ToolContext } from './context.js';
import { AlliumError, RunError, Suspension } from './errors.js';
import type { AgentEvent } from './events.js';
import { deepFreeze, type MessageInput, textOf, toolCallsOf } from './messages.js';
import type { OpenRun } from './open-run.js';
import type { RunResult, RunStatus, Stop } from './result.js';
import type { Run } from './run.js';
import { Session } from './session.js';
import type { SessionState } from './session-state.js';
import type { Awaitable, Decision, PendingRequest } from './store.js';
import { type ToolResult, toolResult } from './tool.js';

/** How the run of a child ended. */
export interface ChildOutcome {
  readonly agent: Agent;
  /** The id of its session. */
  readonly sessionId: string;
  readonly status: Exclude<RunStatus, 'suspended'>;
  readonly stop: Stop;
  readonly text: string;
}

export interface ChildRun {
  readonly agent: Agent;
  readonly input: MessageInput | readonly MessageInput[];
  /**
   * Told what the child does, in order.
   *
   * Contract: it is awaited, so a slow one slows the child down. What it throws ends the child and fails the call.
   */
  readonly onEvent?: ((event: AgentEvent, sessionId: string) => Awaitable<void>) | undefined;
}

/** Starts the next child of this call, or goes on with it. Its questions suspend the parent; its failure is an outcome. */
export async function runChild(ctx: ToolContext, child: ChildRun): Promise<ChildOutcome> {
  const run = ctx._run;
  const place = nextPlace(ctx);
  run.children ??= new Map();
  const { children } = run;
  const work = after(children.get(place), ctx, child, place);
  children.set(place, work);
  try {
    return await work;
  } finally {
    if (children.get(place) === work) children.delete(place);
  }
}

/** Attempts of one call that overlap are one after the other here, and share what the first comes to. */
async function after(
  before: Promise<ChildOutcome> | undefined,
  ctx: ToolContext,
  child: ChildRun,
  place: string,
): Promise<ChildOutcome> {
  const outcome = await before?.catch(() => {});
  if (ctx._scope.aborted) throw ctx._scope.reason;
  if (outcome && !isFailure(outcome.status)) return outcome;
  return goOn(ctx, child, await find(ctx, child.agent, place), place);
}

function isFailure(status: RunStatus | undefined): boolean {
  return status === 'error' || status === 'aborted';
}

/** What the model, and in `details` the application, is told. */
export function childResult(outcome: ChildOutcome, events?: readonly unknown[]): ToolResult {
  const { agent, sessionId: agentId, status, stop, text } = outcome;
  const why = stop.message ?? stop.reason;
  const error =
    status === 'done'
      ? undefined
      : `Sub-agent "${agent.name}" ${HOW[status]} (${status === 'stopped' ? stop.reason : status}): ${why}`;
  const last = error && text ? `\nIts last answer was: ${text}` : '';
  return toolResult({
    content: error === undefined ? text || '(no output)' : error + last,
    isError: error !== undefined,
    details: { agentId, text, ...(events && { events }), ...(error !== undefined && { error }) },
  });
}

const HOW = { stopped: 'did not finish', error: 'failed', aborted: 'was cancelled' } as const;

/**
 * Puts events of a child into the parent's stream, as updates of the call. Pieces of messages stay out: the whole
 * message follows, and what a parent tells about a child grows with its turns, not with its words.
 */
export function forward(ctx: ToolContext, event: AgentEvent, sessionId: string): Awaitable<void> {
  if (event.type === 'message_update' || event.type === 'message_reset') return;
  return ctx.update(event.type, { agentId: sessionId, event });
}

// ── Where the child is ───────────────────────────────────────────────────────────────────────────────────────

/**
 * The children of one execution are told apart by their order, so a tool that has several starts them in the same order
 * each time.
 */
function nextPlace(ctx: ToolContext): string {
  const { assistantMessage, toolCall } = ctx;
  const index = toolCallsOf(assistantMessage).findIndex(({ id }) => id === toolCall.id);
  return placeOf(assistantMessage.id, index, ++ctx._children);
}

/**
 * The session of the child. A failed child is the last word about its call, unless a layer calls the tool again in
 * the same breath: that is a new try, and gets a session of its own.
 */
async function find({ _run: run, _call }: ToolContext, agent: Agent, place: string): Promise<Session> {
  const again = _call.attempts > 1;
  const idOf = (n: number): string => childId(run.sessionId, place, n);
  for (let n = 1; ; n++) {
    const session = new Session(agent, idOf(n), run.forgets, run.store);
    const { open, ended } = await session.peek();
    const failed = !open && isFailure(ended?.status);
    if (!failed || (!again && (await run.store.head(idOf(n + 1))) === 0)) return session;
  }
}

// ── Its run ──────────────────────────────────────────────────────────────────────────────────────────────────

async function goOn(
  ctx: ToolContext,
  child: ChildRun,
  session: Session,
  place: string,
): Promise<ChildOutcome> {
  const { agent } = child;
  const of = { agent, sessionId: session.id };
  const state = await session.peek();
  if (!state.open && state.ended) {
    await closeOthers(ctx._run, place, []);
    return { ...of, ...stored(state, state.ended) };
  }
  let result: RunResult;
  try {
    result = await execute(ctx, child, session, state.open, place);
  } catch (error) {
    if (ctx._scope.aborted) throw ctx._scope.reason;
    if (isLost(error, state)) throw surrendered(ctx, error);
    const failed = error instanceof RunError ? error.result : undefined;
    // It may have failed around a question: the parent goes on without it, so nobody could answer that.
    await endRun(ctx._run, session.id, failed).catch((cause) => {
      throw surrendered(ctx, cause);
    });
    if (!failed) throw error;
    result = failed;
  }
  if (ctx._scope.aborted) throw ctx._scope.reason;
  const { status, stop, text, pending } = result;
  const open = status === 'suspended' ? pending.map((one) => lifted(one, ctx, of, place)) : [];
  await closeOthers(ctx._run, place, open);
  if (status !== 'suspended') return { ...of, status, stop, text };
  // Everything it asked was answered to it alone meanwhile.
  if (open.length === 0) return goOn(ctx, child, session, place);
  const [first, ...more] = open;
  const signal = new Suspension(first!, ...more);
  ctx._latch(signal);
  throw signal;
}

/** The parent fails, too, and can be gone on with as far as it got. */
function surrendered(ctx: ToolContext, error: unknown): unknown {
  ctx._run.surrender(error);
  return error;
}

/**
 * The child has another runner, and so has the parent: whoever that is goes on with both. Or it is under way and cannot
 * be gone on with here, for want of a middleware perhaps: an answer of the tool would end it for good.
 */
function isLost(error: unknown, { open }: SessionState): boolean {
  if (error instanceof AlliumError && error.code === 'SESSION_CONFLICT') return true;
  return open !== undefined && !(error instanceof RunError);
}

function stored(
  { history }: SessionState,
  { status, stop }: { readonly status: RunStatus; readonly stop: Stop },
): Pick<ChildOutcome, 'status' | 'stop' | 'text'> {
  const last = history.lastAnswer(0);
  return { status: status as ChildOutcome['status'], stop, text: last ? textOf(last) : '' };
}

async function execute(
  ctx: ToolContext,
  { agent, input, onEvent }: ChildRun,
  session: Session,
  open: OpenRun | undefined,
  place: string,
): Promise<RunResult> {
  const options = optionsOf(ctx, agent, session.id, place);
  const { allowPlanChange } = ctx._run;
  const resuming = open && { ...options, allowPlanChange, answers: answersFor(ctx._run, open, place) };
  if (!onEvent) return resuming ? session.resume(resuming) : session.run(input, options);
  const stream = resuming ? session.resumeStream(resuming) : session.stream(input, options);
  for await (const event of stream) {
    const wait = onEvent(event, session.id);
    if (wait) await wait;
  }
  return stream.result;
}

function optionsOf(ctx: ToolContext, agent: Agent, sessionId: string, place: string): RunOptions {
  const { metadata, limits, onRequest } = ctx._run;
  const handler = agent._onRequest ?? onRequest;
  const depth = Math.min(limits.depth ?? Number.POSITIVE_INFINITY, agent.limits.depth ?? 8);
  return {
    parent: ctx,
    limits: { depth },
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(handler && {
      onRequest: (request) => handler(lifted(request, ctx, { agent, sessionId }, place)),
    }),
  };
}

// ── Its questions ────────────────────────────────────────────────────────────────────────────────────────────

/** A question of the child as one of the parent: unlike any other of its session, about the same tool and arguments. */
function lifted(
  request: PendingRequest,
  { _run: { runId }, toolCall }: ToolContext,
  { agent, sessionId }: { readonly agent: Agent; readonly sessionId: string },
  place: string,
): PendingRequest {
  const from = request.from ?? {
    agent: agent.name,
    sessionId,
    runId: request.runId,
    callId: request.callId,
  };
  return deepFreeze({ ...request, id: `${place}/${request.id}`, runId, callId: toolCall.id, from });
}

/** What the parent was answered and the child has not heard yet. */
function answersFor(run: Run, { requests }: OpenRun, place: string): Record<string, Decision> {
  const answers: Record<string, Decision> = {};
  for (const id of requests.keys()) {
    const answer = run.open.decided?.answers.get(`${place}/${id}`);
    if (answer) answers[id] = answer.decision;
  }
  return answers;
}

/** Questions the child no longer asks, because they lapsed or were answered to it alone, are closed here as well. */
async function closeOthers(run: Run, place: string, open: readonly PendingRequest[]): Promise<void> {
  const { runId } = run;
  const closed = [...run.open.requests.keys()].filter(
    (id) => id.startsWith(`${place}/`) && !open.some((request) => request.id === id),
  );
  if (closed.length === 0) return;
  const decision: Decision = { type: 'reject', reason: 'Settled inside the sub-agent.' };
  await run.append(closed.map((requestId) => ({ type: 'answer', runId, requestId, decision })));
}
