/** Works out what a hook or layer did, from its context and from what it returned. */

import {
  type AcceptVerdict,
  type Message,
  type ModelContext,
  type ModelResponse,
  type RuleHook,
  type ToolContext,
  type ToolResult,
  type ToolResultPatch,
  type ToolVerdict,
  type TraceAct,
  type TraceChanges,
  type TurnAction,
  textOf,
} from '../index.js';
import {
  callParts,
  controlKind,
  frozenMessages,
  isFrozenJson,
  patchedResult,
  type RequestParts,
  type ToolInput,
} from '../kit/index.js';
import { type HookCall, isModelCall, isToolCall, type PlainCall } from './hook-call.js';
import { contentOf, Difference } from './kept-acts.js';
import { SIGNALS } from './recorder.js';
import { isEqual } from './value-changes.js';

/** It assigned parts of the call. */
export function recordWrites(call: HookCall, after: unknown, attempt?: number): void {
  const { recorder, slot, ctx, parts: before } = call;
  const made = attempt === undefined ? undefined : { attempt };
  if (isModelCall(ctx)) {
    const [from, to] = [before as RequestParts, after as RequestParts];
    if (from.systemPrompt !== to.systemPrompt) recorder.ownPrompt();
    const n = recorder.next();
    const changes = recorder.requests.changes(n, slot.step, ctx, from, to);
    if (changes) call.add('rewrote', { changes, ...made }, n);
    return;
  }
  const { raw, args } = after as ToolInput;
  const isCall = isToolCall(ctx);
  const list = isCall ? call.changes((before as ToolInput).raw, raw ?? args) : call.changes(before, after);
  const changes: TraceChanges = isCall ? { args: list } : { message: list };
  if (list.length > 0) call.add('rewrote', { changes, ...made });
}

/** It answered the call itself, or replaced the result. */
export function recordAnswer(call: HookCall, before: unknown, after: unknown): void {
  const did: TraceAct = before === undefined ? 'answered' : 'rewrote';
  // The result of a run is recorded where the run ends.
  if (call.ctx.seam === 'run') call.add(did);
  else addDifference(call, did, before, after, isFixed(before) && isFixed(after));
}

/** Records that it changed what a model or tool said. `fixed`: nobody can change either of them any more. */
function addDifference(call: HookCall, did: TraceAct, before: unknown, after: unknown, fixed: boolean): void {
  const part = call.ctx.seam === 'model' ? 'response' : 'result';
  if (fixed && !call.recorder.telling.guarded) {
    call.add(did, new Difference(part, kept(before), kept(after)));
    return;
  }
  const list = call.changes(contentOf(before), contentOf(after));
  call.add(did, list.length > 0 ? { changes: { [part]: list } as TraceChanges } : undefined);
}

/** The kernel freezes what hooks return, except details that aren't JSON. */
function isFixed(result: unknown): boolean {
  const { details } = Object(result) as Partial<ToolResult>;
  return details === undefined || isFrozenJson(details);
}

function kept(result: unknown): unknown {
  return Object.isFrozen(result) ? result : contentOf(result);
}

/** It threw. An abort doesn't count: it comes from outside. */
export function recordFailure(call: HookCall, error: unknown): void {
  const kind = controlKind(error);
  if (kind === 'abort') return;
  if (kind) call.add(SIGNALS[kind]);
  else call.add('failed', { error: call.recorder.telling.error(error, call.ctx) });
}

// ── What decision hooks return ───────────────────────────────────────────────────────────────────────────────

/** Records what the hook's answer does. It may return a frozen copy of the answer to use instead. */
type Look = (call: PlainCall, answer: any) => unknown;

const messagesLook: Look = (call, answer: readonly Message[]) => {
  const { subject, recorder, slot } = call;
  if (answer === subject || !Array.isArray(answer)) return;
  const n = recorder.next();
  const list = frozenMessages(answer, subject);
  const messages = recorder.requests.messages(n, slot.step, call.ctx as ModelContext, subject, list);
  call.add('rewrote', { changes: { messages } as TraceChanges }, n);
  // The same objects are passed on, so that they are recognised where they are sent.
  return list;
};

export const RULE_ACTS: Readonly<Record<RuleHook, Look>> = {
  acceptMessage(call, answer: AcceptVerdict) {
    if (answer === call.subject) return;
    if ('block' in answer) call.add('blocked');
    else call.add('rewrote', { changes: { message: call.changes(call.subject, answer) } });
  },
  transformContext: messagesLook,
  convertToLlm: messagesLook,
  transformSystemPrompt(call, answer: string) {
    const { subject, recorder, slot } = call;
    if (answer === subject || typeof answer !== 'string') return;
    recorder.ownPrompt();
    const n = recorder.next();
    const systemPrompt = recorder.requests.prompt(n, slot.step, subject, answer);
    call.add('rewrote', { changes: { systemPrompt } }, n);
  },
  resolveToolCall(call, answer) {
    const { subject } = call;
    const toolCall = call.changes(subject, { ...subject, ...answer.toolCall, id: subject.id });
    call.add('rewrote', { changes: { toolCall } });
  },
  beforeToolCall(call, answer: ToolVerdict | undefined) {
    if (answer === undefined) return;
    if ('block' in answer) call.add('blocked');
    else if ('ask' in answer) asked(call);
    else if ('args' in answer) {
      const { raw } = callParts(call.ctx as ToolContext);
      call.add('rewrote', { changes: { args: call.changes(raw, answer.args) } });
    } else if ('result' in answer) {
      const result = call.changes(undefined, contentOf(answer.result) ?? answer.result);
      call.add('answered', { changes: { result } });
    }
  },
  afterToolCall(call, patch: ToolResultPatch | undefined) {
    const before = call.result as ToolResult;
    const { result } = call.ctx as ToolContext;
    const left = patch === undefined ? result! : patchedResult(result!, patch);
    if (saysSame(before, left)) return;
    // A patch's details are copied if they are JSON, and such a copy is frozen.
    const isCopied = patch?.details !== undefined && patch.details !== left.details;
    addDifference(call, 'rewrote', before, left, isFixed(before) && (isCopied || isFixed(left)));
  },
  afterModelResponse(call, action: TurnAction) {
    const { response, injectMessages = [], decision, why } = action;
    const changes: { -readonly [K in keyof TraceChanges]: TraceChanges[K] } = {};
    if (response && response !== call.subject)
      changes.response = call.changes(contentOf(call.subject), contentOf(response as ModelResponse));
    if (injectMessages.length > 0) changes.inject = textsOf(call, injectMessages);
    if (decision && decision !== 'natural') changes.decision = decided(call, decision, why);
    const rest = changes.response ? 'rewrote' : 'added';
    const did = decision === 'stop' ? 'stopped' : decision === 'loop_to_model' ? 'retried' : rest;
    if (Object.keys(changes).length > 0) call.add(did, { changes });
  },
  shouldStopAfterTurn(call, answer) {
    if (!answer) return;
    const { reason = 'stopped', message } = Object(answer) as { reason?: string; message?: string };
    call.add('stopped', { changes: { decision: decided(call, reason, message) } });
  },
  onRunEnd(call, messages: readonly Message[]) {
    if (messages.length > 0) call.add('added', { changes: { inject: textsOf(call, messages) } });
  },
  compact() {},
};

/** A call that starts over, or that goes on after a resume, is asked about again: that is the same question. */
function asked(call: PlainCall): void {
  const { recorder, ctx, slot } = call;
  const before = recorder.actsOn(ctx as ToolContext, slot.by);
  if (!before.some(({ did }) => did === 'asked')) call.add('asked');
}

function saysSame(a: ToolResult, b: ToolResult): boolean {
  return !a.isError === !b.isError && isEqual(a.content, b.content) && isEqual(a.details, b.details);
}

function decided(call: HookCall, type: string, why: string | undefined): TraceChanges['decision'] {
  return why ? { type, why: call.recorder.telling.text(why) } : { type };
}

function textsOf({ recorder }: HookCall, messages: readonly Message[]): readonly string[] {
  return messages.map((message) => recorder.telling.text(textOf(message)));
}
