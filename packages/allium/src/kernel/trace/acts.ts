/** Works out what a hook or layer did, from its context and from what it returned. */

import {
  type Context,
  type LayerContext,
  ModelContext,
  RunContext,
  ToolContext,
} from '../context/context.js';
import { frozenMessages } from '../context/request-checks.js';
import type { RequestParts } from '../context/run-port.js';
import type { ToolInput } from '../context/tool-context.js';
import { isFrozenJson } from '../lib/frozen-json.js';
import { type Message, type ModelResponse, textOf } from '../messages/messages.js';
import { patched, type ToolResult, type ToolResultPatch } from '../messages/tool-result.js';
import type { AcceptVerdict, ToolVerdict, TurnAction } from '../protocol/middleware.js';
import type { RuleHook } from '../protocol/plan.js';
import { controlKind } from '../protocol/signals.js';
import type { TraceAct, TraceChanges, TraceRecord, ValueChange } from '../protocol/trace.js';
import { contentOf, Difference, type Slot } from './kept-acts.js';
import { type Recorder, SIGNALS } from './recorder.js';
import { isEqual } from './value-changes.js';

/** The parts of a call that hooks may assign. An assignment makes a new object. */
export function partsOf(ctx: Context): unknown {
  if (ctx instanceof ModelContext) return ctx._request;
  return ctx instanceof ToolContext || ctx instanceof RunContext ? ctx._input : undefined;
}

/** It assigned parts of the call. */
export function recordWrites(
  recorder: Recorder,
  slot: Slot,
  ctx: Context,
  started: number,
  ms: number,
  before: unknown,
  after: unknown,
  attempt?: number,
): void {
  if (ctx instanceof ModelContext) {
    const [from, to] = [before as RequestParts, after as RequestParts];
    if (from.systemPrompt !== to.systemPrompt) recorder.ownPrompt();
    const n = recorder.next();
    const changes = recorder.requests.changes(n, slot.step, ctx, from, to);
    if (changes) recorder.add(slot, 'rewrote', ctx, started, ms, madeIn(attempt, changes), n);
    return;
  }
  const changes: TraceChanges =
    ctx instanceof ToolContext
      ? {
          args: difference(
            recorder,
            (before as ToolInput).raw,
            (after as ToolInput).raw ?? (after as ToolInput).args,
          ),
        }
      : { message: difference(recorder, before, after) };
  if (Object.values(changes).some((list) => (list as readonly unknown[]).length > 0))
    recorder.add(slot, 'rewrote', ctx, started, ms, madeIn(attempt, changes));
}

function madeIn(attempt: number | undefined, changes: TraceChanges): Partial<TraceRecord> {
  return attempt === undefined ? { changes } : { changes, attempt };
}

function difference(recorder: Recorder, before: unknown, after: unknown): readonly ValueChange[] {
  return recorder.telling.changes(before, after);
}

/** It answered the call itself, or replaced the result. */
export function recordAnswer(
  recorder: Recorder,
  slot: Slot,
  ctx: LayerContext,
  started: number,
  ms: number,
  before: unknown,
  after: unknown,
): void {
  const did: TraceAct = before === undefined ? 'answered' : 'rewrote';
  // The result of a run is recorded where the run ends.
  if (ctx.seam === 'run') recorder.add(slot, did, ctx, started, ms);
  else addDifference(recorder, slot, did, ctx, started, ms, before, after);
}

/** Records that it changed what a model or tool said. The kernel freezes what hooks return, except details that aren't JSON. */
function addDifference(
  recorder: Recorder,
  slot: Slot,
  did: TraceAct,
  ctx: LayerContext,
  started: number,
  ms: number,
  before: unknown,
  after: unknown,
): void {
  const { telling } = recorder;
  const part = ctx.seam === 'model' ? 'response' : 'result';
  const [from, to] = [fixed(before), fixed(after)];
  if (!telling.guarded && from !== MAY_CHANGE && to !== MAY_CHANGE) {
    recorder.add(slot, did, ctx, started, ms, new Difference(part, from, to));
    return;
  }
  const changed = telling.changes(contentOf(before), contentOf(after));
  const changes = { [part]: changed } as TraceChanges;
  recorder.add(slot, did, ctx, started, ms, changed.length > 0 ? { changes } : undefined);
}

const MAY_CHANGE = Symbol('may change');

/** The part of a result that is recorded, or `MAY_CHANGE` if somebody could still change it. */
function fixed(result: unknown): unknown {
  const { details } = Object(result) as Partial<ToolResult>;
  if (details !== undefined && !isFrozenJson(details)) return MAY_CHANGE;
  return Object.isFrozen(result) ? result : contentOf(result);
}

/** It threw. An abort doesn't count: it comes from outside. */
export function recordFailure(
  recorder: Recorder,
  slot: Slot,
  ctx: Context,
  started: number,
  ms: number,
  error: unknown,
): void {
  const kind = controlKind(error);
  if (kind === 'abort') return;
  const told = kind ? {} : { error: recorder.telling.error(error, ctx) };
  recorder.add(slot, kind ? SIGNALS[kind] : 'failed', ctx, started, ms, told);
}

// ── What decision hooks return ───────────────────────────────────────────────────────────────────────────────

/** What the hook was given, and the state of its context at that time. */
export interface Given {
  readonly subject: any;
  readonly parts: unknown;
  readonly result: unknown;
}

type Look = (
  recorder: Recorder,
  slot: Slot,
  ctx: never,
  started: number,
  ms: number,
  answer: any,
  given: Given,
) => unknown;

const messagesLook: Look = (
  recorder,
  slot,
  ctx: ModelContext,
  started,
  ms,
  answer: readonly Message[],
  given,
) => {
  const { subject } = given;
  if (answer === subject || !Array.isArray(answer)) return;
  const n = recorder.next();
  const list = frozenMessages(answer, subject);
  const messages = recorder.requests.messages(n, slot.step, ctx, subject, list);
  recorder.add(slot, 'rewrote', ctx, started, ms, { changes: { messages } as TraceChanges }, n);
  // The same objects are passed on, so that they are recognised where they are sent.
  return list;
};

export const RULE_ACTS: Readonly<Record<RuleHook, Look>> = {
  acceptMessage(recorder, slot, ctx, started, ms, answer: AcceptVerdict, { subject }) {
    if (answer === subject) return;
    if ('block' in answer) {
      recorder.add(slot, 'blocked', ctx, started, ms);
      return;
    }
    const changes = { message: difference(recorder, subject, answer) };
    recorder.add(slot, 'rewrote', ctx, started, ms, { changes });
  },
  transformContext: messagesLook,
  convertToLlm: messagesLook,
  transformSystemPrompt(recorder, slot, ctx, started, ms, answer: string, { subject }) {
    if (answer === subject || typeof answer !== 'string') return;
    recorder.ownPrompt();
    const n = recorder.next();
    const systemPrompt = recorder.requests.prompt(n, slot.step, subject, answer);
    recorder.add(slot, 'rewrote', ctx, started, ms, { changes: { systemPrompt } }, n);
  },
  resolveToolCall(recorder, slot, ctx, started, ms, answer, { subject }) {
    const changes = {
      toolCall: difference(recorder, subject, { ...subject, ...answer.toolCall, id: subject.id }),
    };
    recorder.add(slot, 'rewrote', ctx, started, ms, { changes });
  },
  beforeToolCall(recorder, slot, ctx: ToolContext, started, ms, answer: ToolVerdict | undefined) {
    if (answer === undefined) return;
    if ('block' in answer) recorder.add(slot, 'blocked', ctx, started, ms);
    else if ('ask' in answer) recorder.add(slot, 'asked', ctx, started, ms);
    else if ('args' in answer) {
      const changes = { args: difference(recorder, ctx._input.raw, answer.args) };
      recorder.add(slot, 'rewrote', ctx, started, ms, { changes });
    } else if ('result' in answer) {
      const changes = { result: difference(recorder, undefined, contentOf(answer.result) ?? answer.result) };
      recorder.add(slot, 'answered', ctx, started, ms, { changes });
    }
  },
  afterToolCall(
    recorder,
    slot,
    ctx: ToolContext,
    started,
    ms,
    patch: ToolResultPatch | undefined,
    { result },
  ) {
    const left = patch === undefined ? ctx.result : patched(ctx.result!, patch);
    if (!isEqual(contentOf(result), contentOf(left)))
      addDifference(recorder, slot, 'rewrote', ctx, started, ms, result, left);
  },
  afterModelResponse(recorder, slot, ctx, started, ms, action: TurnAction, { subject }) {
    const { response, injectMessages = [], decision, why } = action;
    const changes: { -readonly [K in keyof TraceChanges]: TraceChanges[K] } = {};
    if (response && response !== subject)
      changes.response = difference(recorder, contentOf(subject), contentOf(response as ModelResponse));
    if (injectMessages.length > 0) changes.inject = told(recorder, injectMessages);
    if (decision && decision !== 'natural')
      changes.decision = { type: decision, ...(why && { why: recorder.telling.text(why) }) };
    const did =
      decision === 'stop'
        ? 'stopped'
        : decision === 'loop_to_model'
          ? 'retried'
          : changes.response
            ? 'rewrote'
            : 'added';
    if (Object.keys(changes).length > 0) recorder.add(slot, did, ctx, started, ms, { changes });
  },
  shouldStopAfterTurn(recorder, slot, ctx, started, ms, answer) {
    if (!answer) return;
    const { reason = 'stopped', message } = Object(answer) as { reason?: string; message?: string };
    const decision = { type: reason, ...(message && { why: recorder.telling.text(message) }) };
    recorder.add(slot, 'stopped', ctx, started, ms, { changes: { decision } });
  },
  onRunEnd(recorder, slot, ctx, started, ms, messages: readonly Message[]) {
    if (messages.length === 0) return;
    recorder.add(slot, 'added', ctx, started, ms, { changes: { inject: told(recorder, messages) } });
  },
  compact() {},
};

function told(recorder: Recorder, messages: readonly Message[]): readonly string[] {
  return messages.map((message) => recorder.telling.text(textOf(message)));
}
