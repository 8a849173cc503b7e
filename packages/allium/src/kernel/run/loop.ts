/**
 * The loop. Read it from the top:
 *
 *   input → turn → turn → … → end
 *   turn: limits → answer → tools → turn_end
 *   answer: transforms → model layers { guards: request → model } → guards: output, thinking, tool-args, final →
 *           afterModelResponse → append
 *
 * Guards judge at these places: the input in `begin` (or beside the first model call), the request and the answer
 * in `respond` and `takeAnswer`, the result of a tool in `runTools`, and messages that hooks inject where they are appended.
 *
 * Every exit is either a returned Stop or something thrown: a control signal, an abort or an error. Whatever the
 * exit, each tool call has its result and each event that started has ended.
 */

import { isAsked } from '../calls/unanswered.js';
import { type RunContext, TurnContext } from '../context/context.js';
import { checkLimits, restoreStop, throwIfEnding } from '../context/stop-checks.js';
import { type Due, drain } from '../inbox/inbox.js';
import { acceptInput, acceptQueued, appendMessages, judgeInjected, stamped } from '../inbox/incoming.js';
import { answersAll, takeAnswers } from '../inbox/judge-answers.js';
import { isAnswered } from '../journal/history.js';
import type { OpenBatch } from '../journal/journaled-run.js';
import { type AssistantMessage, NOTHING, type ToolMessage } from '../messages/messages.js';
import { beginAnswer, recover, respond, takeAnswer } from '../model/model-phase.js';
import type { Answer, Decided } from '../model/write-answer.js';
import { endingStop, naturalEnd, whyIncomplete } from '../model/write-answer.js';
import { extraModels } from '../plan/extra-models.js';
import { onRunEnd, shouldStopAfterTurn } from '../plan/rules.js';
import { kernelStop } from '../protocol/signals.js';
import type { Stop } from '../protocol/stop.js';
import type { Awaitable } from '../protocol/store.js';
import { type BatchOutcome, ToolBatch } from '../tools/tool-batch.js';
import { compactHistory } from './compact.js';
import type { Run } from './run.js';

const MAX_CYCLES = 100;
const SUSPENDED: Stop = Object.freeze({ reason: 'suspended', message: 'The run waits for an answer.' });
type Results = readonly ToolMessage[];

/**
 * How a turn ended. `stop`: a decision to end the run; `over`: it ends and no hook is asked; `more`: the model is
 * called again; `final`: why the run ends if nothing keeps it going.
 */
interface TurnEnd {
  readonly message: AssistantMessage | undefined;
  readonly toolResults: Results;
  readonly more: boolean;
  readonly stop?: Stop | undefined;
  readonly over?: Stop | undefined;
  readonly final: Stop;
  readonly suspended?: boolean;
}

/** How a run continues that was about to end as suspended when the last answer came. */
const WAITING: TurnEnd = {
  message: undefined,
  toolResults: NOTHING,
  more: false,
  final: SUSPENDED,
  suspended: true,
};

/** From the input, or from where the journal left off, turn after turn. */
export async function converse(run: Run, ctx: RunContext): Promise<Stop> {
  if (run.start.compacts) return compactHistory(run);
  const begun = beginLoop(run, ctx);
  // A resumed run begins with the end of the turn that it was in.
  for (let end = begun instanceof Promise ? await begun : begun; ; end = undefined) {
    if (end === undefined) {
      let answer: Answer | undefined;
      let tools: BatchOutcome | undefined;
      const ready = beginTurn(run);
      if (ready) await ready;
      try {
        for (let call = beginAnswer(run); answer === undefined; ) {
          try {
            // Guards judge the request right before it is sent, and the answer when it has come out of the layers.
            const response = await respond(call);
            const written = takeAnswer(call, response);
            answer = written instanceof Promise ? await written : written;
          } catch (error) {
            call = await recover(call, error);
          }
        }
        if (run.open.batch) tools = await runTools(run, answer, run.open.batch);
        if (!tools?.pending.length && run.open.inject.length > 0) await injectWaiting(run);
        end = turnEnd(run, answer.decided, answer.message, tools, answer.limit);
      } finally {
        const written = endTurn(run, answer?.message, tools?.results);
        if (written) await written;
      }
    }
    while (end.suspended) {
      const woken: TurnEnd | undefined = await wake(run);
      if (!woken) return SUSPENDED;
      end = woken;
    }
    if (end.more && !end.over) checkLimits(run);
    else throwIfEnding(run);
    if (end.over) return end.over;
    const asked = end.stop ?? shouldStop(run, end);
    const stop = asked instanceof Promise ? await asked : asked;
    const on = stop === undefined && goesOn(run, end);
    if (on instanceof Promise ? await on : on) continue;
    const last = await atRunEnd(run, end, stop);
    if (last) return last;
  }
}

/** Waits only if readers are behind. */
function beginTurn(run: Run): Promise<void> | undefined {
  checkLimits(run);
  run.turn++;
  // There is another turn, so this was not the final output.
  run.output = undefined;
  return run.watched ? reportStart(run) : undefined;
}

/** Runs the calls of an answer. Guards have judged their arguments with it, and judge each result. */
function runTools(run: Run, { decided, message, offered, limit, verdicts }: Answer, batch: OpenBatch) {
  const notRun = NOT_RUN[decided.decision] ?? whyIncomplete(message, limit);
  return new ToolBatch(run, batch, offered, notRun, verdicts).run();
}

/** Takes in the input, or finishes the turn that a resumed run was in. Waits only if something does. */
function beginLoop(run: Run, ctx: RunContext): Awaitable<TurnEnd | undefined> {
  if (run.loop === 'woken') {
    run.loop = 'begun';
    return WAITING;
  }
  const taken = begin(run, ctx);
  if (taken instanceof Promise || run.posted.length > 0) return begunLate(run, taken);
  if (run.budget.limited) run.budget.checkPrices(extraModels(run.plan));
  return taken;
}

/** Messages that came before the first turn are read in it. If nothing waited, none can have come. */
async function begunLate(run: Run, taken: Awaitable<TurnEnd | undefined>): Promise<TurnEnd | undefined> {
  const end = await taken;
  if (end === undefined && !isContinued(run)) await takeIn(run, true, drain(run, 'steer'));
  if (run.budget.limited) run.budget.checkPrices(extraModels(run.plan));
  return end;
}

function begin(run: Run, ctx: RunContext): Awaitable<TurnEnd | undefined> {
  if (run.resumed) {
    // An aborted one still has calls to answer, so only a stop counts here.
    run.call.check();
    return resume(run);
  }
  throwIfEnding(run);
  if (isContinued(run) && ctx.input.length === 0) return takeQueue(run);
  const due = drain(run, 'none', true);
  // Guards judge the input before it is appended.
  const take = (one: Due | undefined) => acceptInput(run, ctx, one?.entries) as Awaitable<undefined>;
  return due instanceof Promise ? due.then(take) : take(due);
}

/** It began without an input, to continue with the history and the messages that wait. */
function isContinued({ start }: Run): boolean {
  return start.input?.length === 0;
}

/** Without an input, waiting messages take its place. Follow-ups too, if the history has nothing left to answer. */
async function takeQueue(run: Run): Promise<undefined> {
  const more = !isAnswered(run.history);
  if (await takeIn(run, more, drain(run, more ? 'steer' : 'all', true))) return;
  const stop = kernelStop('guardrail', 'Every waiting message was refused, so there is nothing to answer.');
  run.call.latch(stop, 'kernel');
  throw stop;
}

async function resume(run: Run): Promise<TurnEnd | undefined> {
  const posted = await drain(run, 'none');
  // A cancel is taken out together with the end of the run: if that can't be written, it still counts.
  if (posted && !run.scope.aborted) await takeAnswers(run, posted);
  restoreStop(run);
  return resumeTurn(run);
}

/** If everything the run would wait for was answered meanwhile, it continues at once. */
async function wake(run: Run): Promise<TurnEnd | undefined> {
  const due = await drain(run, 'none');
  if (run.scope.aborted || !answersAll(run.open, due)) return undefined;
  run.asked = isAsked(run.open);
  await takeAnswers(run, due);
  return resumeTurn(run);
}

function turnEnd(
  run: Run,
  { decision, by, why, forceContinue }: Pick<Decided, 'decision' | 'by' | 'why' | 'forceContinue'>,
  message: AssistantMessage,
  tools: BatchOutcome | undefined,
  limit: number | undefined,
): TurnEnd {
  const suspended = tools !== undefined && tools.pending.length > 0;
  // `forceContinue` is looked at last: nothing else decided, and no tool was asked for.
  const natural = tools ? !tools.terminate : forceContinue;
  return {
    message,
    toolResults: tools?.results ?? NOTHING,
    more: !suspended && (decision === 'loop_to_model' || (decision === 'natural' && natural)),
    stop:
      decision === 'stop' ? { reason: 'stopped', message: why ?? `"${by}" stopped the run.`, by } : undefined,
    over: decision === 'stop' ? undefined : endingStop(run, message, decision, limit),
    final: naturalEnd(message, limit),
    suspended,
  };
}

/** Why calls are not run, by what `afterModelResponse` decided. */
const NOT_RUN = {
  natural: undefined,
  stop: 'the run was stopped.',
  loop_to_model: 'the model was asked again instead.',
} as const;

/** After a resume: the calls of the last message that have no result yet come first. */
async function resumeTurn(run: Run): Promise<TurnEnd | undefined> {
  const { batch, answer: last, follows, terminate } = run.open;
  const { decision = 'natural' as const, by, why, forceContinue = false } = follows;
  const answer = { decision, by, why, forceContinue };
  const { maxOutputTokens: limit } = run.agent.settings;
  if (!batch) {
    throwIfEnding(run);
    if (!last) return undefined;
    await injectWaiting(run);
    const all = run.newMessages();
    const from = all.findLastIndex(({ id }) => id === last.id) + 1;
    const results = all.slice(from).filter(({ role }) => role === 'tool') as ToolMessage[];
    const outcome = results.length > 0 ? { results, terminate, pending: [] } : undefined;
    return turnEnd(run, answer, last, outcome, limit);
  }
  if (run.watched) await reportStart(run);
  let outcome: BatchOutcome | undefined;
  try {
    const { offered } = batch;
    const tools = offered ? run.plan.tools.filter(({ name }) => offered.includes(name)) : run.plan.tools;
    const notRun = NOT_RUN[decision] ?? whyIncomplete(batch.message, limit);
    outcome = await new ToolBatch(run, batch, tools, notRun, undefined).run();
    if (outcome.pending.length === 0) await injectWaiting(run);
    return turnEnd(run, answer, batch.message, outcome, limit);
  } finally {
    await endTurn(run, batch.message, outcome?.results);
  }
}

function reportStart(run: Run): Promise<void> | undefined {
  const { runId, sessionId, turn } = run;
  run.emit({ type: 'turn_start', runId, sessionId, turn });
  return run.pressure();
}

/**
 * Writes state that nothing else carried. Then the turn has ended, whatever the outcome. Without an answer the run ends
 * too, and its end carries the state: written before, it would count twice if a resume ended the turn before again.
 */
function endTurn(
  run: Run,
  message: AssistantMessage | undefined,
  toolResults: Results = NOTHING,
): Awaitable<void> {
  if (message && run.hasUnwritten)
    return writeState(run).finally(() => reportTurnEnd(run, message, toolResults));
  reportTurnEnd(run, message, toolResults);
}

async function writeState(run: Run): Promise<void> {
  await run.append([]);
}

function reportTurnEnd(run: Run, message: AssistantMessage | undefined, toolResults: Results): void {
  const { runId, sessionId, turn, watched } = run;
  if (watched) run.emit({ type: 'turn_end', runId, sessionId, turn, message, toolResults });
}

// ── Between turns ────────────────────────────────────────────────────────────────────────────────────────────

/** Steering, and follow-ups when nothing else is left to do. True: there is another turn. */
function goesOn(run: Run, { more }: TurnEnd): Awaitable<boolean> {
  const due = drain(run, more ? 'steer' : 'all');
  if (due !== undefined) return takeIn(run, more, due);
  // If there is another turn, that one checks it first.
  if (!more) throwIfEnding(run);
  return more;
}

async function takeIn(run: Run, more: boolean, first: Awaitable<Due | undefined>): Promise<boolean> {
  for (let next = first; ; next = drain(run, more ? 'steer' : 'all')) {
    const due = await next;
    throwIfEnding(run);
    if (!due) return more;
    // Later messages come after the input.
    if (run.pendingInput) await run.pendingInput.allowed();
    // A limit ends the run before the queue is touched: messages that nobody would answer stay queued.
    if (due.messages.length > 0) checkLimits(run);
    const taken = await acceptQueued(run, due);
    throwIfEnding(run);
    if (more || taken > 0) return true;
    if (due.messages.length === 0) return false;
  }
}

/** Messages of `afterModelResponse`, after the results of the turn. */
async function injectWaiting(run: Run): Promise<void> {
  const { inject } = run.open;
  if (inject.length > 0) await appendMessages(run, inject);
}

function shouldStop(run: Run, { message, toolResults, more }: TurnEnd): Awaitable<Stop | undefined> {
  const hooks = run.plan.rules.shouldStopAfterTurn;
  if (hooks.length === 0) return undefined;
  const ctx = new TurnContext(run, message, toolResults, more);
  return ctx._asked(() => shouldStopAfterTurn(hooks, ctx));
}

/** The run would end. Undefined: `onRunEnd` has added messages, and there is another turn. */
async function atRunEnd(
  run: Run,
  { message, toolResults, final }: TurnEnd,
  stop: Stop | undefined,
): Promise<Stop | undefined> {
  const hooks = run.plan.rules.onRunEnd;
  if (hooks.length === 0) return stop ?? final;
  const ctx = new TurnContext(run, message, toolResults, false);
  const injected = await judgeInjected(run, await ctx._asked(() => onRunEnd(hooks, ctx)));
  if (injected.length === 0) return stop ?? final;
  if (run.open.cycles >= MAX_CYCLES)
    return { reason: 'loop', message: `onRunEnd kept the run going ${MAX_CYCLES} times.`, by: 'kernel' };
  checkLimits(run);
  await appendMessages(run, stamped(injected), [], 'cycle');
  return undefined;
}
