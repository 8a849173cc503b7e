/** One run from its start to its end: session, limits, run layers around the loop, and what is told and written at the end. */
import type { Agent } from './agent.js';
import { checkAnswer, firstAnswers, unknownRequest } from './answers.js';
import { RunContext } from './context.js';
import {
  Aborted,
  AlliumError,
  attribute,
  controlKind,
  isKernelStop,
  isThenable,
  kernelStop,
  messageOf,
  RunError,
  type StopRun,
  shown,
} from './errors.js';
import type { EventQueue } from './event-queue.js';
import type { AgentEvent } from './events.js';
import { drain } from './inbox.js';
import { enter } from './layers.js';
import { Budget } from './limits.js';
import { converse } from './loop.js';
import { deepFreeze, type Message } from './messages.js';
import type { RunResult, RunStatus, Stop } from './result.js';
import { Run, type RunEvents } from './run.js';
import type { DeclaredOptions } from './run-options.js';
import { resultOf } from './run-result.js';
import { Scope } from './scope.js';
import type { ResumeOptions } from './session.js';
import { catchUp, Journal, type SessionState } from './session-state.js';
import { toJson } from './state.js';
import type { EntryBody, Store } from './store.js';
import { errorResult } from './tool.js';

export interface Control {
  abort(reason: Aborted): void;
}

export interface Start {
  readonly agent: Agent;
  /** Where the session is kept: for a sub-agent's, the store of its parent. */
  readonly store: Store;
  /** The session is deleted when the run has ended. */
  readonly forgets: boolean;
  readonly state: SessionState;
  /** Undefined for a resume. */
  readonly input: readonly Message[] | undefined;
  readonly options: ResumeOptions;
  /** Those of the options that belong to middleware. */
  readonly declared: DeclaredOptions;
  readonly queue: EventQueue | undefined;
  readonly control: (control: Control) => void;
}

/** Runs. Resolves when done, stopped or suspended; throws RunError otherwise, or a plain coded error if it could not begin. */
export async function execute(start: Start): Promise<RunResult> {
  const { options } = start;
  const scope = new Scope(options.parent?._scope);
  start.control({ abort: (reason) => scope.abort(reason) });
  const unlink = follow(options.signal, scope);
  try {
    const run = await begin(start, scope);
    const stopTimer = timeLimit(run, scope);
    try {
      return await supervise(run, start);
    } finally {
      stopTimer();
    }
  } finally {
    unlink?.();
    scope.close();
  }
}

/** Loads the session and writes the start of the run, or finds the run to go on with. */
async function begin(start: Start, scope: Scope): Promise<Run> {
  const { agent, store, state, options, input } = start;
  const parent = options.parent?._run;
  const tenant = options.tenant ?? parent?.tenant ?? agent.tenant;
  const plan = agent.planFor(options.middleware);
  const metadata = options.metadata && toJson(options.metadata, 'metadata');
  const limits = { ...agent.limits, ...options.limits };
  const depth = parent ? parent.depth + 1 : 0;
  await catchUp(store, state);
  if (state.seq > 0 && state.tenant !== tenant) {
    throw new AlliumError(
      'TENANT_MISMATCH',
      `Session "${state.sessionId}" belongs to tenant ${shown(state.tenant)}, not ${shown(tenant)}.`,
    );
  }
  const journal = new Journal(store, state, () => agent.clock.now());
  const names = plan.middleware.map(({ name }) => name);
  if (input) {
    if (state.open) await settleOpen(journal);
    journal.begin({
      type: 'run_start',
      runId: `r_${agent.newId()}`,
      plan: names,
      ...(tenant !== undefined && { tenant }),
      ...(parent && { parent: parent.runId }),
      ...(metadata && { metadata }),
    });
  } else await reopen(journal, names, start);
  const sessionBudget = new Budget(agent.sessionLimits, agent._priceOf, parent?.budget);
  sessionBudget.start(state.usage.snapshot(), state.costUsd);
  const budget = new Budget(limits, agent._priceOf, sessionBudget);
  budget.start(state.open!.usage.snapshot(), state.open!.costUsd);
  const events = eventsOf(start);
  const run = new Run({
    parent,
    agent,
    plan,
    store,
    forgets: start.forgets,
    allowPlanChange: options.allowPlanChange ?? false,
    journal,
    tenant,
    depth,
    scope,
    budget,
    limits,
    sessionLimits: agent.sessionLimits,
    metadata: metadata ?? {},
    options: start.declared,
    clock: agent.clock,
    resumed: !input,
    onRequest: options.onRequest ?? agent._onRequest,
    events,
  });
  const { depth: maxDepth = 8 } = limits;
  if (depth > Math.min(maxDepth, parent?.limits.depth ?? maxDepth))
    run.call.latch(kernelStop('max_depth', `Sub-agents may nest ${maxDepth} deep.`), 'kernel');
  return run;
}

/** Checks that a run can be resumed here and takes the answers that came with it. */
async function reopen(
  journal: Journal,
  names: readonly string[],
  { options, agent, store }: Start,
): Promise<void> {
  const { open, sessionId, inboxCursor } = journal.state;
  if (!open)
    throw new AlliumError(
      'SESSION_UNKNOWN',
      `Session "${sessionId}" has no run to resume. Start one with run().`,
    );
  const missing = open.plan.filter((name) => !names.includes(name));
  if (missing.length > 0 && !options.allowPlanChange) {
    throw new AlliumError(
      'PLAN_MISMATCH',
      `Run "${open.runId}" was started with ${missing.map((name) => `"${name}"`).join(', ')}, which this agent lacks. Add it, or resume with allowPlanChange: true.`,
    );
  }
  const taken = store.take(sessionId, inboxCursor);
  const posted = (isThenable(taken) ? await taken : taken).map(({ item }) => item);
  const now = agent.clock.now();
  const answers = firstAnswers(posted, open.requests, now);
  for (const [requestId, decision] of Object.entries(options.answers ?? {})) {
    const request = open.requests.get(requestId);
    if (!request || answers.has(requestId)) throw unknownRequest(requestId, [...open.requests.values()]);
    // What comes through the parent of a sub-agent was in time when the parent took it.
    checkAnswer(request, decision, options.parent ? request.createdAt : now);
    answers.set(requestId, decision);
  }
  // All of them or none: a wrong answer beside good ones changes nothing.
  if (answers.size > 0)
    await journal.append(
      [...answers].map(([requestId, decision]) => ({
        type: 'answer',
        runId: open.runId,
        requestId,
        decision,
      })),
    );
}

/** A new message ends what was left open: every pending call is answered, visibly, before the history goes on. */
async function settleOpen(journal: Journal): Promise<void> {
  const { open } = journal.state;
  if (!open) return;
  const { runId, batch } = open;
  if (batch) {
    const first = open.count + 1;
    const unanswered = [...batch.calls.entries()].filter(([index]) => !batch.results[index]);
    await journal.append(
      unanswered.map(([index, call]) => {
        const { content, isError } = errorResult('Not run: a new message came before this call was settled.');
        return {
          type: 'tool_finished',
          runId,
          message: deepFreeze({
            id: `${runId}.${first + index}`,
            role: 'tool',
            toolCallId: call.id,
            toolName: call.name,
            content,
            isError,
          }),
        };
      }),
    );
  }
  await journal.append([
    {
      type: 'run_end',
      runId,
      status: 'stopped',
      stop: { reason: 'stopped', message: 'A new message came.' },
      turns: open.turns,
    },
  ]);
}

function eventsOf({ agent, queue }: Start): RunEvents {
  const feeds = agent._feeds;
  return {
    watched: queue !== undefined || feeds.length > 0,
    emit(event: AgentEvent) {
      if (feeds.length > 0) {
        deepFreeze(event);
        for (const feed of feeds) feed.push(event);
      }
      queue?.push(event);
    },
    pressure: () => queue?.pressure(),
  };
}

/** The run layers around the loop, then the end of the run, whatever it is. */
async function supervise(run: Run, start: Start): Promise<RunResult> {
  if (run.watched)
    run.emit({ type: 'agent_start', runId: run.runId, sessionId: run.sessionId, resumed: run.resumed });
  const ctx = new RunContext(run, run.scope, start.input ?? []);
  let result: RunResult;
  let failure: { error: unknown } | undefined;
  try {
    const work = enter(run.plan.layers.run, 0, ctx, (inner: RunContext) => core(run, inner, start));
    // Twice the time of what is further in, which has to be over first: it answers the calls that are still open.
    result = (
      isThenable(work) ? await run.supervise(work, 2 * run.agent.teardownTimeoutMs) : work
    ) as RunResult;
    if (run.call.latched !== undefined && result.status === 'done')
      result = resultOf(run, 'stopped', stopOf(run, run.call.latched));
  } catch (error) {
    const kind = controlKind(error);
    if (kind === 'stop') result = resultOf(run, 'stopped', stopOf(run, error));
    else {
      failure = { error };
      result = resultOf(run, kind === 'abort' ? 'aborted' : 'error', {
        reason: kind === 'abort' ? 'aborted' : 'error',
        message: messageOf(error),
      });
    }
  }
  // A sub-agent whose call was given up may still be winding down: it does not outlive the run.
  if (run.children) await Promise.allSettled(run.children.values());
  let unwritten: RunError | undefined;
  try {
    result = await close(run, result, start, ctx);
  } catch (error) {
    unwritten = error as RunError;
    result = unwritten.result;
  }
  if (run.watched) run.emit({ type: 'agent_end', runId: run.runId, sessionId: run.sessionId, result });
  if (unwritten) throw unwritten;
  if (failure) throw toRunError(run, failure.error, result);
  return result;
}

/** Inside all run layers: the loop. Control signals become results here; errors and aborts go on outward. */
async function core(run: Run, ctx: RunContext, { store }: Start): Promise<RunResult> {
  let stop: Stop;
  let status: RunStatus;
  try {
    run.call.check();
    stop = await converse(run, ctx.input, { store });
    status = stop.reason === 'suspended' ? 'suspended' : stop.reason === 'final' ? 'done' : 'stopped';
  } catch (error) {
    if (controlKind(error) !== 'stop') throw error;
    [stop, status] = [stopOf(run, error), 'stopped'];
  }
  return resultOf(run, status, stop);
}

function stopOf(run: Run, signal: unknown): Stop {
  const { reason, message } = signal as StopRun;
  const latched = run.call.latched === signal ? run.call.latchedBy : undefined;
  const by = isKernelStop(signal) ? 'kernel' : latched;
  return { reason, message, ...(by && { by }) };
}

/** Writes the end. A suspended run stays open. What was posted and not taken is kept with the session. */
async function close(run: Run, result: RunResult, { store }: Start, ctx: RunContext): Promise<RunResult> {
  const { status, stop } = result;
  if (ctx._state) run.cells.stage(ctx._state);
  try {
    const due = await drain(run, { store }, 'none');
    const end =
      status === 'suspended'
        ? pause(run)
        : [{ type: 'run_end' as const, runId: run.runId, status, stop, turns: run.open.turns }];
    if (due || end.length > 0 || run.hasUnwritten) await run.append([...(due?.entries ?? []), ...end]);
    if (status === 'suspended' && run.watched)
      run.emit({ type: 'suspended', runId: run.runId, sessionId: run.sessionId, pending: result.pending });
    return result;
  } catch (error) {
    // The journal refused: the run ends as it is; what failed first is what the caller hears of.
    if (status === 'error' || status === 'aborted') return result;
    throw toRunError(run, error, {
      ...result,
      status: 'error',
      stop: { reason: 'error', message: messageOf(error) },
    });
  }
}

/** What a suspended run has to remember. */
function pause(run: Run): EntryBody[] {
  if (run.limits.timeoutMs === undefined) return [];
  return [{ type: 'active', runId: run.runId, ms: activeMs(run, run.started) }];
}

function toRunError(run: Run, error: unknown, result: RunResult): RunError {
  if (controlKind(error) === 'abort') {
    const cause = (error as Aborted).cause ?? error;
    return new RunError('ABORTED', `The run was aborted: ${messageOf(cause)}`, result, cause);
  }
  const raisedBy = run.call.raisedBy(error);
  const { middleware, hook } = raisedBy ?? {};
  const code =
    error instanceof AlliumError ? error.code : hook === 'model' ? 'MODEL_ERROR' : 'MIDDLEWARE_ERROR';
  const where = middleware ? ` (in ${hook} of "${middleware}")` : hook === 'onRequest' ? ` (in ${hook})` : '';
  // Of a guard that broke, the cause is what the guard threw.
  const cause = code === 'GUARD_FAILED' ? ((error as AlliumError).cause ?? error) : error;
  const failure = new RunError(code, `The run failed: ${messageOf(error)}${where}`, result, cause);
  // A cause that is no object has nothing beside it, so whoever asks may ask the error itself.
  if (raisedBy) attribute(failure, raisedBy);
  return failure;
}

function follow(signal: AbortSignal | undefined, scope: Scope): (() => void) | undefined {
  if (!signal) return undefined;
  const abort = (): void =>
    scope.abort(signal.reason instanceof Aborted ? signal.reason : new Aborted(signal.reason));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return () => signal.removeEventListener('abort', abort);
}

/** Over all parts of a run that was suspended. */
function activeMs(run: Run, started: number): number {
  return run.before + (run.clock.now() - started - run.pausedMs);
}

/** `timeoutMs` counts active time: when it fires early because of pauses, it is set again for the rest. */
function timeLimit(run: Run, scope: Scope): () => void {
  const { timeoutMs } = run.limits;
  if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return () => {};
  const { started } = run;
  let cancel = (): void => {};
  const check = (): void => {
    const left = timeoutMs - activeMs(run, started);
    if (left > 0) cancel = run.clock.setTimer(check, left);
    else scope.abort(kernelStop('timeout', `The run took longer than ${timeoutMs} ms.`));
  };
  cancel = run.clock.setTimer(check, Math.max(0, timeoutMs - run.open.activeMs));
  return () => cancel();
}
