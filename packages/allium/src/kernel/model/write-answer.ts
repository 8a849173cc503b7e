/** Writes the answer of a turn, reports it, and says what follows from the way it ended. */

import type { CallVerdicts } from '../context/run-port.js';
import { NO_VERDICTS, verdictEntries } from '../guards/call-verdicts.js';
import { safeValue } from '../guards/safe-values.js';
import { stamped } from '../inbox/incoming.js';
import {
  type AssistantMessage,
  freezeMessage,
  type ModelResponse,
  NO_USAGE,
  toolCallsOf,
  type Usage,
} from '../messages/messages.js';
import { modelName } from '../messages/model.js';
import type * as rules from '../plan/rules.js';
import type { Stop } from '../protocol/stop.js';
import { type Awaitable, ENTRY_VERSION, type EntryDraft } from '../protocol/store.js';
import { inDoubtPolicy, type Tool } from '../protocol/tool.js';
import { failedStream } from '../stream/assemble.js';
import type { Calling, ModelRun } from './model-run.js';

/** What `afterModelResponse` made of a response that guards have judged. */
export interface Decided extends rules.MergedAction {
  readonly response: ModelResponse;
  /** One more turn, even if nothing asks for it. */
  readonly forceContinue: boolean;
}

/** The outcome of the model phase. Without its context: a run that waits would keep all that belongs to the last call. */
export interface Answer {
  readonly decided: Decided;
  readonly message: AssistantMessage;
  /** The tools the model was offered. */
  readonly offered: readonly Tool[];
  /** The most tokens the answer could have. An answer that no model gave had no limit. */
  readonly limit: number | undefined;
  /** What guards said about its calls. */
  readonly verdicts: CallVerdicts;
}

/**
 * Writes the message with what guards said about its calls, which they couldn't say again after a crash; then reports
 * it.
 */
export function writeAnswer(ctx: Calling, decided: Decided): Awaitable<Answer> {
  const { _run: run } = ctx;
  const { response } = decided;
  // A layer that answered instead of the model may have failed too.
  if (response.stopReason === 'error') throw failedStream(response.model ?? modelName(ctx.model));
  if (run.plan.guards['tool-args'].length === 0) return write(ctx, decided, NO_VERDICTS);
  return run.judgements.response(response, ctx).then(({ calls }) => write(ctx, decided, calls));
}

function write(ctx: Calling, decided: Decided, calls: CallVerdicts): Awaitable<Answer> {
  const { _run: run } = ctx;
  const { response } = decided;
  // Only calls made in this run cost something: an answer from a cache carries no usage of its own.
  const paid = run.claimUsage(response.usage);
  const message = messageOf(ctx, response, paid?.usage ?? NO_USAGE);
  const entry = entryOf(ctx, decided, message, paid?.costUsd);
  const wait = run.append(calls.size === 0 ? [entry] : [entry, ...verdictEntries(ctx, message, calls)]);
  return wait
    ? wait.then(() => written(ctx, decided, message, calls))
    : written(ctx, decided, message, calls);
}

function written(ctx: Calling, decided: Decided, message: AssistantMessage, verdicts: CallVerdicts): Answer {
  const { _run: run, _call: call, _offered: offered, settings } = ctx;
  const { runId, sessionId, watched } = run;
  if (watched) run.emit({ type: 'message_end', runId, sessionId, messageId: message.id, message });
  return { decided, message, offered, limit: call.outputLimit ?? settings.maxOutputTokens, verdicts };
}

function messageOf(ctx: Calling, response: ModelResponse, usage: Usage): AssistantMessage {
  const { _run: run, _call: call } = ctx;
  const { messageId: id } = call.live!;
  const { stopReason, model, metadata } = response;
  const content = withCallIds(run, response.content, id);
  const plain = { id, role: 'assistant' as const, content, usage, stopReason, model };
  const message = metadata === undefined ? plain : { ...plain, metadata };
  // Its parts are frozen already. Freezing them again costs as much as the first time.
  if (response === call.frozen && content === response.content) Object.freeze(message);
  else freezeMessage(message);
  return message;
}

function entryOf(
  ctx: Calling,
  { inject, decision, by, why, forceContinue }: Decided,
  message: AssistantMessage,
  costUsd: number | undefined,
): EntryDraft {
  const { _run: run } = ctx;
  const { runId } = run;
  const runs = decision === 'natural' && whyIncomplete(message, undefined) === undefined;
  const offered = offeredOf(ctx, message);
  const entry: Writable<EntryDraft & { type: 'message' }> =
    runs && startsWithMessage(run, message, ctx._offered)
      ? { v: ENTRY_VERSION, at: 0, type: 'message', runId, message, started: true }
      : { v: ENTRY_VERSION, at: 0, type: 'message', runId, message };
  if (costUsd !== undefined) entry.costUsd = costUsd;
  // Messages to inject after the results are written with the message.
  if (inject.length > 0) entry.inject = stamped(inject);
  if (offered) entry.offered = offered;
  if (decision !== 'natural') {
    const told = why && safeValue(why, run, by);
    entry.follows = { decision, ...(by && { by }), ...(told && { why: told }) };
  }
  if (decision === 'natural' && forceContinue) entry.follows = { forceContinue };
  return entry;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** The names of the tools the model was offered, if calls follow and they aren't simply the agent's. */
function offeredOf(
  { _offered: tools, plan }: Calling,
  message: AssistantMessage,
): readonly string[] | undefined {
  if (tools === plan.tools || toolCallsOf(message).length === 0) return undefined;
  const same = tools.length === plan.tools.length && tools.every((tool, i) => tool === plan.tools[i]);
  return same ? undefined : tools.map(({ name }) => name);
}

type Content = AssistantMessage['content'];

function withCallIds(run: ModelRun, given: Content, messageId: string): Content {
  let content = given;
  for (let block = 0; block < given.length; block++) {
    const part = given[block]!;
    if (part.type !== 'tool-call') continue;
    const id = run.state.callId(typeof part.id === 'string' ? part.id : '', messageId, block, given);
    if (id !== part.id) content = content.with(block, { ...part, id });
  }
  return content;
}

// ── Calls are written down before they begin: after a crash, those without a result are in doubt ──────────────

/**
 * Is the start of these calls journaled with the message that makes them? That saves a write per turn. Not if
 * something decides about calls in between, and not if none of them could be in doubt.
 */
function startsWithMessage(run: ModelRun, message: AssistantMessage, tools: readonly Tool[]): boolean {
  const { plan, agent } = run;
  if (
    plan.decidesOnCalls ||
    agent.toolExecution === 'sequential' ||
    run.toolCallsLeft() !== Number.POSITIVE_INFINITY
  )
    return false;
  let matters = false;
  const { content } = message;
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!;
    if (part.type !== 'tool-call') continue;
    const tool = run.findTool(part.name, tools);
    // They don't all begin, or not at once, so each is journaled when it begins.
    if (!tool || tool.sequential || tool.concurrency !== undefined) return false;
    if (inDoubtPolicy(tool) === 'fail') matters = true;
  }
  return matters;
}

/** The entry for a call that begins by itself. */
export function startOf(runId: string, messageId: string, callId: string): EntryDraft {
  return { v: ENTRY_VERSION, at: 0, type: 'tool_started', runId, messageId, callId };
}

// ── What an answer that its model did not complete means for its calls and for the run ────────────────────────

const FINAL: Stop = Object.freeze({ reason: 'final' });

/** Why the calls of an answer don't run, if its model did not get to the end. `limit`: its limit of output tokens. */
export function whyIncomplete(message: AssistantMessage, limit: number | undefined): string | undefined {
  if (message.stopReason === 'length')
    return `the answer was cut off ${at(message, limit)}, so its calls may be incomplete. Ask for less at once: fewer calls, or shorter arguments.`;
  if (message.stopReason === 'content-filter') return 'a content filter of the provider ended the answer.';
  return undefined;
}

/**
 * The run ends with this answer, whatever waits: a model that is cut off twice in a row would be cut off forever. After
 * a content filter, a hook may decide to ask again.
 */
export function endingStop(
  run: ModelRun,
  message: AssistantMessage,
  decision: 'natural' | 'loop_to_model',
  limit: number | undefined,
): Stop | undefined {
  if (message.stopReason === 'content-filter' && decision === 'natural')
    return {
      reason: 'content_filter',
      message: 'A content filter of the provider ended the answer.',
      by: 'kernel',
    };
  if (run.open.cutOff < 2) return undefined;
  return cutOff(`Two answers in a row were cut off, the last one ${at(message, limit)}.`);
}

/** How the run ends if nothing keeps it going. */
export function naturalEnd(message: AssistantMessage | undefined, limit: number | undefined): Stop {
  if (message?.stopReason !== 'length') return FINAL;
  return cutOff(`The answer was cut off ${at(message, limit)}.`);
}

function cutOff(what: string): Stop {
  return {
    reason: 'cut_off',
    message: `${what} Raise \`settings.maxOutputTokens\`, or ask for less.`,
    by: 'kernel',
  };
}

/** The limit if it is known, or what the answer used, which is about the same. */
function at({ usage }: AssistantMessage, limit: number | undefined): string {
  if (limit !== undefined) return `at its limit of ${limit} output tokens`;
  return usage && usage.outputTokens > 0
    ? `after ${usage.outputTokens} output tokens`
    : 'at its limit of output tokens';
}
