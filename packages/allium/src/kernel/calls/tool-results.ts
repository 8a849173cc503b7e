/** What happens to the result of a call: it is judged, journaled and reported. */

import { stopOf } from '../context/stop-checks.js';
import { judgeUpdate } from '../guards/content-guards.js';
import { safeErrorMessage } from '../guards/guards.js';
import { isTellable, safeStop } from '../guards/safe-values.js';
import type { OpenBatch } from '../journal/journaled-run.js';
import { messageOf } from '../lib/errors.js';
import { freezeMessage, type ToolMessage, textOf } from '../messages/messages.js';
import { errorResult, type ToolResult } from '../messages/tool-result.js';
import { afterToolCall } from '../plan/rules.js';
import { controlKind, isControl } from '../protocol/signals.js';
import { type Awaitable, ENTRY_VERSION, type PendingRequest } from '../protocol/store.js';
import { inDoubtPolicy } from '../protocol/tool.js';
import { endChildren } from './end-children.js';
import type { Call, CallBatch } from './tool-call.js';
import type { ToolsRun } from './tools-run.js';
import { isInDoubt, mayHaveBegun, type Unanswered, withoutResult } from './unanswered.js';

/** Reports that a call begins, once. */
export function reportStart(call: Call): void {
  if (call.begun) return;
  call.begun = true;
  const { run, toolCall, assistantMessage } = call;
  const { runId, sessionId } = run;
  if (run.watched)
    run.emit({ type: 'tool_execution_start', runId, sessionId, messageId: assistantMessage.id, toolCall });
}

/** Reports that a call waits for these answers. */
export function reportWaiting(call: Call, pending: readonly PendingRequest[]): void {
  reportStart(call);
  const { run, toolCall } = call;
  const { runId, sessionId, watched } = run;
  if (watched && pending.length > 0)
    run.emit({ type: 'tool_execution_waiting', runId, sessionId, toolCall, pending });
}

/** Guards and `afterToolCall` come first, then the result is journaled and reported. */
export function finish(call: Call, result: ToolResult): Awaitable<void> {
  const { run, batch, index } = call;
  if (batch.verdicts || call.attempts > 0 || run.asked) return conclude(call, result);
  // It ran before the resume, if at all. Sub-agents that it may have started then are ended.
  return endChildren(run, run.sessionId, { messageId: batch.message.id, calls: [index] }).then(
    () => conclude(call, result),
    (error) => {
      throw run.surrender(error);
    },
  );
}

function conclude(call: Call, result: ToolResult): Awaitable<void> {
  const { run, ctx } = call;
  ctx.blocked = call.blocked;
  ctx.result = result;
  call.leaveLayers();
  const { guards, rules } = run.plan;
  if (guards['tool-result'].length === 0 && rules.afterToolCall.length === 0) return record(call, result);
  return judgeResult(call, result).then((judged) => record(call, judged));
}

async function judgeResult(call: Call, given: ToolResult): Promise<ToolResult> {
  // After a stop nobody is asked any more.
  if (call.latched !== undefined) return releasedResult(call, given, 'Stopped.');
  const { ctx, run } = call;
  const guarded = run.plan.guards['tool-result'].length > 0;
  const withheld = 'The result was withheld.';
  try {
    const judged = guarded ? await run.judgements.toolResult(ctx, given) : given;
    ctx.result = judged;
    if (run.plan.rules.afterToolCall.length === 0) return judged;
    const left = await askAfterToolCall(call);
    if (left === judged || !guarded) return left;
    if (call.latched !== undefined) return releasedResult(call, left, withheld);
    // What a hook put in, or said when it failed, is judged like the tool's own result.
    ctx.result = await run.judgements.toolResult(ctx, left);
    return ctx.result;
  } catch (error) {
    if (!isControl(error)) return errorResult(call.failureText(error));
    call.latch(error);
    return errorResult(withheld);
  }
}

/** The result as the hooks leave it. If one of them stops the run, that is latched. */
async function askAfterToolCall(call: Call): Promise<ToolResult> {
  const { ctx, run } = call;
  try {
    await afterToolCall(run.plan.rules.afterToolCall, ctx);
  } catch (error) {
    if (!isControl(error)) return errorResult(call.failureText(error));
    call.latch(error);
  }
  return ctx.result!;
}

/** A result that nobody waits for any more, if guards that answer at once allow it; otherwise the `plain` words. */
function releasedResult(call: Call, result: ToolResult, plain: string): ToolResult {
  const { judgements, plan } = call.run;
  if (plan.guards['tool-result'].length === 0 || judgements.hasPassed(result, call)) return result;
  try {
    const shown = judgeUpdate(result.content, result.details, call.ctx);
    if (shown) return { ...result, content: shown.update, details: shown.details };
  } catch {
    // The run is ending anyway, and a result that no guard has judged isn't shown.
  }
  return errorResult(plain);
}

function record(call: Call, result: ToolResult): Awaitable<void> {
  const { run, ctx, failure } = call;
  const { content, isError, details, terminate } = result;
  const { id: toolCallId, name: toolName } = call.toolCall;
  if (isError && failure && !call.raisedBy(failure.error)?.middleware)
    run.note('kernel', `"${toolName}" failed: ${safeErrorMessage(failure.error, ctx)}`, 'failed');
  const plain = {
    id: run.messageId(call.number),
    role: 'tool' as const,
    toolCallId,
    toolName,
    content,
    isError,
  };
  const message: ToolMessage = details === undefined ? plain : { ...plain, details };
  if (result === call.frozen) Object.freeze(message);
  else freezeMessage(message);
  if (ctx._state) run.cells.stage(ctx._state);
  call.done = message;
  const { runId } = run;
  const last = isLastOf(call.batch);
  const { latched, latchedBy } = call.latched === undefined ? run.call : call;
  // A limit lets the other calls run; a stop doesn't.
  const ends = stopOf(latched, latchedBy) ?? (last ? stopOf(call.batch.limit, 'kernel') : undefined);
  const stop = ends && safeStop(ends, run);
  const entry = { v: ENTRY_VERSION, at: 0, type: 'tool_finished' as const, runId, message };
  const told =
    terminate || stop ? { ...entry, ...(terminate && { terminate }), ...(stop && { stop }) } : entry;
  let wait: Awaitable<void>;
  try {
    // If nobody waits for it, the last result is written together with the model's answer to it.
    wait = run.append([told], last && !run.events.waitsForWrites ? 'appendLate' : 'append');
  } catch (error) {
    return notRecorded(call, message, error);
  }
  if (!wait) return reportEnd(call, message);
  return wait.then(
    () => reportEnd(call, message),
    (error) => notRecorded(call, message, error),
  );
}

/** Do all calls have a result now? Those beside it may still be on their way to the store. */
function isLastOf({ open }: CallBatch): boolean {
  for (let i = 0; i < open.length; i++) if (open[i]!.done === undefined) return false;
  return true;
}

/** Reports that the execution has ended, without its result: nothing is shown that isn't written. */
function notRecorded(call: Call, message: ToolMessage, error: unknown): never {
  const { content } = errorResult(`Not recorded: ${messageOf(error)}`);
  reportEnd(call, Object.freeze({ ...message, content, details: undefined, isError: true }));
  throw error;
}

function reportEnd(call: Call, message: ToolMessage): void {
  const { run, failure, toolCall } = call;
  const { runId, sessionId } = run;
  call.begun = false;
  if (!run.watched) return;
  const error = message.isError && failure && isTellable(failure.error, call.ctx) ? failure : undefined;
  run.emit({ type: 'tool_execution_end', runId, sessionId, toolCall, message, ...error });
}

/** Whose calls are reported, and to whom. */
type Telling = Pick<ToolsRun, 'runId' | 'sessionId' | 'watched' | 'turn' | 'emit'>;

/**
 * Reports calls that were answered together with the end of the run, after their turn had ended. Those that somebody was
 * asked about have begun.
 */
export function tellUnanswered(
  run: Telling,
  { calls, asked, message }: OpenBatch,
  entries: readonly Unanswered[],
): void {
  const { runId, sessionId, watched, turn } = run;
  if (!watched || entries.length === 0) return;
  const toolResults = entries.map((entry) => entry.message);
  run.emit({ type: 'turn_start', runId, sessionId, turn });
  for (const result of toolResults) {
    const toolCall = calls.find(({ id }) => id === result.toolCallId)!;
    if (!asked.includes(toolCall.id))
      run.emit({ type: 'tool_execution_start', runId, sessionId, messageId: message.id, toolCall });
    run.emit({ type: 'tool_execution_end', runId, sessionId, toolCall, message: result });
  }
  run.emit({ type: 'turn_end', runId, sessionId, turn, message, toolResults });
}

/** Answers every call that has no result with the reason why it gets no other. */
export async function answerRest(
  { runner: run, open: calls, tools, verdicts }: CallBatch,
  why: unknown,
): Promise<void> {
  // Another process may have begun calls of a batch that was resumed.
  const before = !verdicts && !run.asked;
  const aborted = controlKind(why) === 'abort';
  const ended = `the run ${aborted ? 'was aborted' : isControl(why) ? 'was stopped' : 'failed'}`;
  let failure: { readonly error: unknown } | undefined;
  for (const call of calls) {
    if (call.done) continue;
    reportStart(call);
    const here = call.attempts > 0;
    if (here || before) run.giveUp(call.assistantMessage.id, call.index);
    // A tool that asks has done nothing yet. One that may be run again, above all a sub-agent, may have.
    const begun = here
      ? inDoubtPolicy(call.ctx.tool) === 'retry'
      : before && mayHaveBegun(run.open, call.index, tools, run.agent);
    const doubt = begun && !(here && aborted);
    const reason = aborted && !doubt ? 'Aborted' : withoutResult(ended, doubt);
    const result = call.result ?? errorResult(`${reason}: ${messageOf(why)}`);
    // A call in doubt is always reported as such.
    const plain = isInDoubt(result) ? textOf(result) : `${reason}.`;
    try {
      await record(call, releasedResult(call, result, plain));
    } catch (error) {
      // Every started call is reported as ended, written or not.
      failure ??= { error };
    }
  }
  if (failure) throw failure.error;
}
