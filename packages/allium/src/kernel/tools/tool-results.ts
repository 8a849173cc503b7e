/** What becomes of the results of a batch: judged, journaled and told, one for each call. */

import type { ToolContext } from '../context/context.js';
import { stopOf } from '../context/stop-checks.js';
import { judgeUpdate } from '../guards/content-guards.js';
import { toldError } from '../guards/guards.js';
import { toldStop } from '../guards/told-beside.js';
import { isTellable } from '../guards/told-error.js';
import { AlliumError, messageOf } from '../lib/errors.js';
import { eventData } from '../lib/event-data.js';
import { freezeMessage, type ToolContent, type ToolMessage, textOf } from '../messages/messages.js';
import { afterToolCall } from '../plan/rules.js';
import { controlKind, isControl } from '../protocol/signals.js';
import { type Awaitable, ENTRY_VERSION, type PendingRequest } from '../protocol/store.js';
import { errorResult, inDoubtPolicy, isContentList, type ToolResult } from '../protocol/tool.js';
import { endChildren } from './end-children.js';
import type { ToolBatch } from './tool-batch.js';
import type { Call } from './tool-call.js';
import { isInDoubt, mayHaveBegun, withoutResult } from './unanswered.js';

/** Tells that a call begins, once. */
export function begin(call: Call): void {
  if (call.begun) return;
  call.begun = true;
  const { toolCall, batch } = call;
  const { runId, sessionId, watched } = batch.runner;
  const messageId = batch.message.id;
  if (watched) batch.runner.emit({ type: 'tool_execution_start', runId, sessionId, messageId, toolCall });
}

/** Tells how far a call is, as far as guards let it pass. */
export function update(
  { begun, toolCall, batch: { runner: run } }: Call,
  ctx: ToolContext,
  partial: string | readonly ToolContent[],
  details: unknown,
  forwarded: boolean,
): Awaitable<void> {
  if (!begun || ctx._isOver || run.over) return;
  const content = typeof partial === 'string' ? [{ type: 'text' as const, text: partial }] : partial;
  if (!isContentList(content))
    throw new AlliumError(
      'INVALID_HOOK_RESULT',
      'ctx.update() takes text or a list of text, image and file content.',
    );
  // Watched or not, what a guard says about it counts. Events of a child are made only for those who watch.
  const shown = judgeUpdate(content, details, ctx, forwarded);
  if (!shown || !run.watched) return;
  const { runId, sessionId } = run;
  const about = { toolCallId: toolCall.id, toolName: toolCall.name };
  run.emit({ type: 'tool_execution_update', runId, sessionId, ...about, ...eventData(shown) });
  return run.pressure();
}

/** Guards and `afterToolCall` have their say, then the result is journaled and told. */
export function finish(call: Call, result: ToolResult): Awaitable<void> {
  const { isFresh, runner: run, message } = call.batch;
  if (isFresh || call.attempts > 0 || run.asked) return conclude(call, result);
  // It was not run here. What it may have started before the run broke off ends with it.
  const left = { messageId: message.id, calls: [call.index] };
  return endChildren(run, run.sessionId, left).then(
    () => conclude(call, result),
    (error) => {
      throw run.surrender(error);
    },
  );
}

function conclude(call: Call, result: ToolResult): Awaitable<void> {
  const { guards, rules } = call.batch.runner.plan;
  const { ctx } = call;
  ctx.blocked = call.blocked;
  ctx.result = result;
  call.comeOut();
  const judged = guards['tool-result'].length > 0 || rules.afterToolCall.length > 0;
  if (!judged) return record(call, result);
  // After a stop only the record follows.
  if (call.latched !== undefined) return record(call, released(call, result, 'Stopped.'));
  const judging = guards['tool-result'].length > 0 ? judge(call, result) : hear(call);
  return judging instanceof Promise ? judging.then((final) => record(call, final)) : record(call, judging);
}

/** The result as the hooks leave it; a stop among them is latched. */
function hear(call: Call): Awaitable<ToolResult> {
  const { ctx } = call;
  const failed = (error: unknown): ToolResult => {
    if (!isControl(error)) return errorResult(call.failureText(error));
    call.latch(error);
    return ctx.result!;
  };
  try {
    const wait = afterToolCall(call.batch.runner.plan.rules.afterToolCall, ctx);
    return wait instanceof Promise ? wait.then(() => ctx.result!, failed) : ctx.result!;
  } catch (error) {
    return failed(error);
  }
}

async function judge(call: Call, given: ToolResult): Promise<ToolResult> {
  const { judgements, plan } = call.batch.runner;
  const { ctx } = call;
  const withheld = 'The result was withheld.';
  try {
    const judged = await judgements.toolResult(ctx, given);
    ctx.result = judged;
    if (plan.rules.afterToolCall.length === 0) return judged;
    const said = await hear(call);
    if (said === judged) return judged;
    if (call.latched !== undefined) return released(call, said, withheld);
    // What a hook put in, or said when it failed, is judged like what the tool returned.
    ctx.result = await judgements.toolResult(ctx, said);
    return ctx.result;
  } catch (error) {
    if (!isControl(error)) return errorResult(call.failureText(error));
    call.latch(error);
    return errorResult(withheld);
  }
}

/** A result nobody waits for any more, as far as guards that can answer at once allow it; otherwise `plain` words. */
function released(call: Call, result: ToolResult, plain: string): ToolResult {
  const { judgements, plan } = call.batch.runner;
  const { guards } = plan;
  if (guards['tool-result'].length === 0 || judgements.hasPassed(result, call)) return result;
  try {
    const shown = judgeUpdate(result.content, result.details, call.ctx);
    if (shown) return { ...result, content: shown.update, details: shown.details };
  } catch {
    // The run ends already, and what a guard did not judge is not told.
  }
  return errorResult(plain);
}

function record(call: Call, result: ToolResult): Awaitable<void> {
  const run = call.batch.runner;
  const { content, isError, details, terminate } = result;
  const { id: toolCallId, name: toolName } = call.toolCall;
  const id = run.messageId(call.number);
  if (isError && call.failure && !call.raisedBy(call.failure.error)?.middleware)
    run.note('kernel', `"${toolName}" failed: ${toldError(call.failure.error, call.ctx)}`);
  const plain = { id, role: 'tool' as const, toolCallId, toolName, content, isError };
  const message: ToolMessage = details === undefined ? plain : { ...plain, details };
  if (result === call.frozen) Object.freeze(message);
  else freezeMessage(message);
  run.history.knows(message);
  if (call.ctx._state) run.cells.stage(call.ctx._state);
  call.done = message;
  let wait: Awaitable<void>;
  try {
    const { runId } = run;
    const entry = { v: ENTRY_VERSION, at: 0, type: 'tool_finished' as const, runId, message };
    const last = run.state.lacksOneResult(runId);
    const { latched, latchedBy } = call.latched === undefined ? run.call : call;
    // A limit lets the other calls run; a stop does not.
    const ends = stopOf(latched, latchedBy) ?? (last ? stopOf(call.batch.limit, 'kernel') : undefined);
    const stop = ends && toldStop(ends, run);
    const entries = [
      terminate || stop ? { ...entry, ...(terminate && { terminate }), ...(stop && { stop }) } : entry,
    ];
    // Nobody hears of the last result before the model has answered to it: both may be written together.
    wait = run.append(entries, !run.watched && last ? 'appendLate' : 'append');
  } catch (error) {
    throw unrecorded(call, error);
  }
  if (wait === undefined) return run.watched ? told(call, message) : undefined;
  return wait.then(
    () => told(call, message),
    (error) => {
      throw unrecorded(call, error);
    },
  );
}

/** The journal refused a result: the execution has ended all the same, and nobody is shown what is not written. */
function unrecorded(call: Call, error: unknown): unknown {
  const { content } = errorResult(`Not recorded: ${messageOf(error)}`);
  told(call, Object.freeze({ ...call.done!, content, details: undefined, isError: true }));
  return error;
}

function told(call: Call, message: ToolMessage): void {
  const run = call.batch.runner;
  const { runId, sessionId } = run;
  call.begun = false;
  if (!run.watched) return;
  const { failure, toolCall } = call;
  const failed = message.isError && failure && isTellable(failure.error, call.ctx);
  const error = failed ? { error: failure.error } : undefined;
  run.emit({ type: 'tool_execution_end', runId, sessionId, toolCall, message, ...error });
}

/** Tells that a call waits for these answers. */
export function waits(call: Call, pending: readonly PendingRequest[]): void {
  begin(call);
  const { runId, sessionId, watched } = call.batch.runner;
  const { toolCall } = call;
  if (watched && pending.length > 0)
    call.batch.runner.emit({ type: 'tool_execution_waiting', runId, sessionId, toolCall, pending });
}

/** Answers every call that has no result, with the reason why it will get no other. */
export async function answerRest(
  { runner: run, open: calls, options, isFresh }: ToolBatch,
  why: unknown,
): Promise<void> {
  const { open, agent } = run;
  // Another process may have begun with a batch that was resumed.
  const before = !isFresh && !run.asked;
  const aborted = controlKind(why) === 'abort';
  const ended = `the run ${aborted ? 'was aborted' : isControl(why) ? 'was stopped' : 'failed'}`;
  let failure: { readonly error: unknown } | undefined;
  for (const call of calls) {
    if (call.done) continue;
    begin(call);
    const here = call.attempts > 0;
    if (here || before) run.giveUp(call.assistantMessage.id, call.index);
    // A tool that asks has done nothing yet; one that may be run again, a sub-agent above all, may have.
    const begun = here
      ? inDoubtPolicy(call.ctx.tool) === 'retry'
      : before && mayHaveBegun(open, call.index, options.tools, agent);
    const doubt = begun && !(here && aborted);
    const reason = aborted && !doubt ? 'Aborted' : withoutResult(ended, doubt);
    const result = call.result ?? errorResult(`${reason}: ${messageOf(why)}`);
    // That a call is in doubt is said in any case.
    const plain = isInDoubt(result) ? textOf(result) : `${reason}.`;
    try {
      await record(call, released(call, result, plain));
    } catch (error) {
      // What was told to have started is told to have ended, written or not.
      failure ??= { error };
    }
  }
  if (failure) throw failure.error;
}
