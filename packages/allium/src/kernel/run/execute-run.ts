/**
 * One run from start to end: session, limits, run layers around the loop, and how its end is written and reported.
 */

import { endChildren, waiting } from '../calls/end-children.js';
import { tellUnanswered } from '../calls/tool-results.js';
import { unanswered } from '../calls/unanswered.js';
import { RunContext } from '../context/context.js';
import { outOfTime } from '../context/stop-checks.js';
import { safeValue } from '../guards/safe-values.js';
import { type Due, drain } from '../inbox/inbox.js';
import { judgeOptions } from '../inbox/incoming.js';
import { answersAll, leaveAnswers } from '../inbox/judge-answers.js';
import { afterActive } from '../journal/active-time.js';
import { Onion } from '../layers/onion.js';
import {
  AlliumError,
  type Attribution,
  attribute,
  codeOf,
  errorKind,
  hasCause,
  messageOf,
  sessionConflict,
} from '../lib/errors.js';
import type { Scope } from '../lib/scope.js';
import { NOTHING } from '../messages/messages.js';
import type { RunResult } from '../protocol/result.js';
import { RunError } from '../protocol/result.js';
import { NONE_DECLARED } from '../protocol/run-options.js';
import { Aborted, controlKind, isControl } from '../protocol/signals.js';
import type { RunStatus, Stop } from '../protocol/stop.js';
import { type Awaitable, ENTRY_VERSION, type EntryDraft } from '../protocol/store.js';
import { converse } from './loop.js';
import type { Run } from './run.js';
import { type Ended, endedBy, failedWith } from './run-outcome.js';
import { finalResult, resultOf, shownResult, withLatest } from './run-result.js';
import type { Start } from './start.js';
import { beginRun } from './start-run.js';

/** Runs. Resolves when done, stopped or suspended; throws RunError otherwise, or a plain coded error if it could not begin. */
export async function execute(start: Start): Promise<RunResult> {
  const { options, scope } = start;
  const unlink = follow(options.signal, scope);
  // Aborted before it began: hooks and observers hear of it, and nothing is written.
  const stillborn = start.input !== undefined && options.signal?.aborted;
  let stopTimer: (() => void) | undefined;
  try {
    const begun = beginRun(start);
    const run = begun instanceof Promise ? await inTime(begun, start) : begun;
    stopTimer = timeLimit(run, scope);
    if (run.watched)
      run.emit({ type: 'agent_start', runId: run.runId, sessionId: run.sessionId, resumed: run.resumed });
    // If every question is answered when the end is written, it goes through the layers again.
    for (let input = start.input ?? []; ; input = []) {
      const ctx = new RunContext(run, scope, input, { input: undefined });
      let ended: Ended;
      try {
        const judges = run.options !== NONE_DECLARED && run.plan.guards.input.length > 0;
        if (judges && run.loop === 'to come') await judgeOptions(run, ctx);
        const result = await inLayers(run, ctx);
        const { latched } = run.call;
        // A signal that a layer swallowed still counts.
        ended = latched !== undefined && result.status === 'done' ? endedBy(run, latched, ctx) : { result };
      } catch (error) {
        // An error that an abort caused counts as the abort.
        const aborted = scope.aborted && run.loop !== 'given up' && !isControl(error);
        ended = endedBy(run, aborted ? scope.reason : error, ctx);
      }
      // A sub-agent whose call was given up may still be winding down. It must not outlive the run.
      if (run.children.running) await Promise.allSettled(run.children.running.values());
      if (stillborn) return conclude(run, endedBy(run, abortOf(options.signal!), ctx));
      const closing = closeRun(run, ended, ctx);
      const closed = closing instanceof Promise ? await closing : closing;
      if (closed) return conclude(run, closed);
    }
  } finally {
    stopTimer?.();
    unlink?.();
    scope.close();
  }
}

/** Reports the end and returns the result that the caller reads, or throws. */
function conclude(run: Run, { result: given, failure }: Ended): RunResult {
  const result = finalResult(run, given);
  const shown = shownResult(run, result);
  if (run.watched) {
    const end = { type: 'agent_end', runId: run.runId, sessionId: run.sessionId, result } as const;
    run.events.emit(end, shown === result ? end : { ...end, result: shown });
  }
  run.end();
  if (failure) throw toRunError(run, failure.error, shown);
  return shown;
}

/** The time limit counts from here, so it also holds for a store that is slow to open the session. */
async function inTime(begun: Promise<Run>, { agent, options, scope }: Start): Promise<Run> {
  const { timeoutMs = Number.POSITIVE_INFINITY } = { ...agent.limits, ...options.limits };
  const expire = (): void => scope.abort(outOfTime(timeoutMs));
  const cancel = timeoutMs === Number.POSITIVE_INFINITY ? undefined : agent.clock.setTimer(expire, timeoutMs);
  try {
    return await begun;
  } catch (error) {
    if (controlKind(scope.reason) !== 'abort' || codeOf(error) !== 'STORE_TIMEOUT') throw error;
    throw new AlliumError('ABORTED', `The run was aborted before it began: ${messageOf(scope.reason)}`, {
      cause: error,
    });
  } finally {
    cancel?.();
  }
}

/** The run layers around the loop. Code in them that ignores an abort is left behind. */
function inLayers(run: Run, ctx: RunContext): Promise<RunResult> {
  // Twice the time of calls: they must be over first, so that open ones are answered.
  const graceMs = 2 * run.agent.teardownTimeoutMs;
  const { layers, onions } = run.plan;
  onions.run ??= new Onion(layers.run, insideLayers);
  return run.supervise(Promise.resolve(onions.run.enter(0, ctx)) as Promise<RunResult>, graceMs);
}

/** Inside all run layers: the loop. A stop becomes a result here; errors and aborts go on outward. */
function insideLayers(ctx: RunContext): Promise<RunResult> {
  const run = ctx._run as Run;
  if (run.loop === 'to come') run.loop = 'begun';
  return converse(run, ctx).then(
    (stop) => resultOf(run, STATUS[stop.reason] ?? 'stopped', stop),
    (error) => brokenOff(run, ctx, error),
  );
}

async function brokenOff(run: Run, ctx: RunContext, thrown: unknown): Promise<RunResult> {
  // Guards may still be judging the input: it is taken in or refused before the run ends.
  const error = run.pendingInput ? await run.pendingInput.endedBy(thrown) : thrown;
  const kind = controlKind(error);
  if (kind === 'stop') return endedBy(run, error, ctx).result;
  // Swallowing an abort does not undo it.
  if (kind === 'abort' && run.loop !== 'given up') run.call.latch(error);
  throw error;
}

/** The status of a run that ended for this reason. Any other is `stopped`. */
const STATUS: { readonly [R in Stop['reason']]?: RunStatus } = { final: 'done', suspended: 'suspended' };

/**
 * Writes the end, unless the run can be resumed later. Posts that nobody took stay with the session. Returns nothing
 * if the run continues at once: it was about to wait for answers, and this last look at the inbox has found all of
 * them.
 */
function closeRun(run: Run, given: Ended, ctx: RunContext): Awaitable<Ended | undefined> {
  if (ctx._state) run.cells.stage(ctx._state);
  let ended = given;
  const write = (due: Due | undefined): Awaitable<Ended | undefined> => {
    // A cancel came while the run was suspending or failing: it must not be resumed.
    if (run.scope.aborted && staysOpen(run, ended.result.status)) ended = endedBy(run, run.scope.reason, ctx);
    // A layer that doesn't let the run get as far as its loop again can't keep it going.
    if (ended.result.status === 'suspended' && run.loop === 'begun' && answersAll(run.open, due)) {
      run.journal.unseal();
      run.loop = 'woken';
      return undefined;
    }
    return writeEnd(run, ended, due);
  };
  // Code that was left behind may have an append under way. Only when that has settled do we know what is left to
  // end.
  const sealed = run.journal.seal();
  const refused = (error: unknown): Ended => {
    const { status } = ended.result;
    // The journal refused, so the run ends as it is. The caller gets the first failure.
    if (status === 'error' || status === 'aborted') return ended;
    return {
      result: { ...ended.result, status: 'error', stop: failedWith(error, ctx) },
      failure: { error: run.ofStore(error) },
    };
  };
  const finish = (): Awaitable<Ended | undefined> => {
    try {
      // If the end can't be written, nothing is taken from the inbox and no sub-agent is ended.
      if (run.journal.broken !== undefined) return refused(run.journal.broken);
      const due = drain(run, 'none');
      const written = due instanceof Promise ? due.then(write) : write(due);
      return written instanceof Promise ? written.catch(refused) : written;
    } catch (error) {
      return refused(error);
    }
  };
  return sealed ? sealed.then(finish) : finish();
}

function writeEnd(run: Run, ended: Ended, due: Due | undefined): Awaitable<Ended> {
  const stays = staysOpen(run, ended.result.status);
  if (stays || run.open.batch || run.children.givenUp || run.posted.length > 0)
    return writeRest(run, ended, due, stays);
  // Most runs leave nothing behind.
  const wait = run.append([endOfRun(run, ended)], 'end');
  return wait ? wait.then(() => ended) : ended;
}

function endOfRun({ runId, open }: Run, { result: { status, stop } }: Ended): EntryDraft {
  return { v: ENTRY_VERSION, at: 0, type: 'run_end', runId, status, stop, turns: open.turns };
}

/** Open calls and sub-agents continue later, or are answered and ended together with the run. */
async function writeRest(run: Run, ended: Ended, due: Due | undefined, stays: boolean): Promise<Ended> {
  const { runId, sessionId, plan, agent } = run;
  const { from, batch } = run.open;
  const end: EntryDraft[] = [];
  const results = stays ? NOTHING : unanswered(run.open, whyNot(run, ended.result), plan.tools, agent);
  if (!stays) {
    await endChildren(run, sessionId, waiting(run.open) ?? run.children.givenUp);
    end.push(...results, endOfRun(run, ended));
  } else if (run.limits.timeoutMs !== undefined) end.push(run.active());
  const posted = stays ? leaveAnswers(run, due) : due?.entries;
  if (posted?.length || end.length > 0 || run.hasUnwritten || run.trace?.hasRest) {
    const wait = run.append(posted ? [...posted, ...end] : end, 'end');
    if (wait) await wait;
  } else if (ended.result.status === 'suspended') await checkHead(run);
  if (batch) tellUnanswered(run, batch, results);
  const last =
    batch || run.posted.length > 0 ? { ...ended, result: withLatest(run, ended.result, from, due) } : ended;
  if (last.result.status === 'suspended' && run.watched)
    run.emit({ type: 'suspended', runId, sessionId, pending: last.result.pending });
  return last;
}

/** Nothing was written, so no append could notice that another runner took over the run or ended it. */
async function checkHead({ store, sessionId, state }: Run): Promise<void> {
  const head = await store.head(sessionId);
  if (head !== state.seq) throw sessionConflict(sessionId, state.seq, head);
}

/**
 * A run that waits stays open. So does one that failed with calls still open, or before it went on at all: questions and
 * answers aren't lost because somebody else's code failed.
 */
function staysOpen(run: Run, status: RunStatus): boolean {
  if (status !== 'error') return status === 'suspended';
  return run.open.batch !== undefined || (run.resumed && run.loop === 'to come');
}

/** Why calls that are still open were not run. If guards judge results, a message they haven't judged is left out. */
function whyNot({ plan }: Run, { status, stop }: RunResult): string {
  const ended = status === 'aborted' ? 'the run was aborted' : 'the run was stopped';
  const told = plan.guards['tool-result'].length === 0 && stop?.message;
  return told ? `${ended}: ${told}` : `${ended}.`;
}

/** The message goes to logs, so what guards find in it is removed. The cause is the error as it is. */
function toRunError(run: Run, error: unknown, result: RunResult): RunError {
  if (controlKind(error) === 'abort') {
    const cause = (error as Aborted).cause ?? error;
    const why = safeValue(messageOf(cause), run);
    return new RunError(
      'ABORTED',
      why ? `The run was aborted: ${why}` : 'The run was aborted.',
      result,
      cause,
    );
  }
  const raisedBy = run.call.raisedBy(error);
  const { middleware, hook } = raisedBy ?? {};
  const others = hook === 'model' ? 'MODEL_ERROR' : 'MIDDLEWARE_ERROR';
  const ofStore = hook === 'store' || run.isOfStore(error);
  const code = codeOf(error) ?? (ofStore ? 'STORE_FAILED' : others);
  const where = middleware
    ? ` (in ${hook} of "${middleware}"${handled(run, error, raisedBy)})`
    : hook === 'onRequest'
      ? ` (in ${hook})`
      : '';
  // If a guard broke, the cause is what the guard threw.
  const cause = code === 'GUARD_FAILED' ? ((error as AlliumError).cause ?? error) : error;
  // The message about a broken guard holds no secrets, and the guard would break over it again.
  const words = messageOf(error);
  const told = code === 'GUARD_FAILED' ? words : (safeValue(words, run) ?? errorKind(error));
  const failure = new RunError(code, `The run failed: ${told}${where}`, result, cause);
  // Nothing can be noted beside a cause that isn't an object, so it is noted beside the error.
  if (raisedBy) attribute(failure, raisedBy);
  return failure;
}

/** The error that a hook was handling when it threw its own, unless that one names it as its `cause`. */
function handled(run: Run, error: unknown, raisedBy: Attribution | undefined): string {
  const handling = raisedBy?.handling;
  if (handling === undefined || hasCause(error)) return '';
  return `, handling: ${safeValue(messageOf(handling), run) ?? errorKind(handling)}`;
}

/** The runs that end with a signal. They share one listener: Node warns of a leak if a signal has many. */
const followers = new WeakMap<AbortSignal, Followers>();

interface Followers {
  readonly scopes: Set<Scope>;
  readonly listener: () => void;
}

function follow(signal: AbortSignal | undefined, scope: Scope): (() => void) | undefined {
  if (!signal) return undefined;
  if (signal.aborted) return abortAll([scope], signal);
  const { scopes, listener } = followersOf(signal);
  scopes.add(scope);
  return () => {
    scopes.delete(scope);
    if (scopes.size > 0 || signal.aborted) return;
    signal.removeEventListener('abort', listener);
    followers.delete(signal);
  };
}

function followersOf(signal: AbortSignal): Followers {
  let found = followers.get(signal);
  if (found === undefined) {
    const scopes = new Set<Scope>();
    found = { scopes, listener: () => abortAll(scopes, signal) };
    followers.set(signal, found);
    signal.addEventListener('abort', found.listener, { once: true });
  }
  return found;
}

function abortAll(scopes: Iterable<Scope>, signal: AbortSignal): undefined {
  for (const scope of scopes) scope.abort(abortOf(signal));
}

function abortOf({ reason }: AbortSignal): Aborted {
  return reason instanceof Aborted ? reason : new Aborted(reason);
}

function timeLimit(run: Run, scope: Scope): (() => void) | undefined {
  const { timeoutMs } = run.limits;
  if (timeoutMs === undefined || timeoutMs === Number.POSITIVE_INFINITY) return undefined;
  const left = Math.max(0, timeoutMs - run.open.activeMs);
  return afterActive(run, left, () => scope.abort(outOfTime(timeoutMs)));
}
