/** How the decision hooks of several middleware compose: one small function per rule. */

import type { ModelContext, RunContext, SeamCall, ToolContext, TurnContext } from '../context/context.js';
import { noteAssigned } from '../context/request-changes.js';
import { checkRequest, frozenMessages } from '../context/request-checks.js';
import type { RequestParts } from '../context/run-port.js';
import { type Asking, asking } from '../journal/merged-questions.js';
import { takeResult } from '../layers/layer.js';
import { AlliumError } from '../lib/errors.js';
import {
  freezeMessage,
  type Message,
  type ModelResponse,
  NOTHING,
  type ToolCall,
} from '../messages/messages.js';
import { patched, type ToolResult, type ToolResultPatch } from '../messages/tool-result.js';
import type { AcceptVerdict, TurnAction } from '../protocol/middleware.js';
import type { Hooks, PlannedHook } from '../protocol/plan.js';
import type { Stop, StoppingReason } from '../protocol/stop.js';
import type { Request } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import { askHook } from './ask-hook.js';

/** A message that a middleware adds to the history. */
export interface Injected {
  readonly message: Message;
  readonly by: string;
}

const MAX_REWRITES = 8;

/** A transform may also assign parts of the request to its context. */
function assigned({ hook }: PlannedHook, ctx: ModelContext, before: RequestParts): void {
  if (ctx._request === before) return;
  checkRequest(ctx._request, before, ctx);
  noteAssigned(ctx, before, hook);
}

// ── The rules ────────────────────────────────────────────────────────────────────────────────────────────────

type Acceptance = { readonly message: Message } | { readonly block: string; readonly by: string };

export async function acceptMessage(hooks: Hooks, message: Message, ctx: RunContext): Promise<Acceptance> {
  let current = message;
  for (const planned of hooks) {
    const answer = await askHook<AcceptVerdict>(planned, ctx, current);
    if (answer === undefined || answer === current) continue;
    const { name } = planned;
    if ('block' in answer)
      return { block: String(answer.reason ?? `The message was refused by "${name}".`), by: name };
    ctx._run.note(name, 'rewrote a message from outside');
    // Frozen, because guards judge it later.
    current = freezeMessage(answer);
  }
  return { message: current };
}

/** The messages after a hook that changed them. */
export interface Transformed {
  readonly by: string;
  readonly messages: readonly Message[];
}

export async function transformContext(
  hooks: Hooks,
  given: readonly Message[],
  ctx: ModelContext,
): Promise<readonly Transformed[]> {
  const steps: Transformed[] = [];
  await chain(hooks, given, ctx, 'rewrote the messages of the request', (made, by, before) => {
    const messages = frozenMessages(made, before);
    steps.push({ by, messages });
    return messages;
  });
  return steps;
}

export function transformSystemPrompt(hooks: Hooks, prompt: string, ctx: ModelContext): Promise<string> {
  return chain(hooks, prompt, ctx, 'rewrote the system prompt of the request');
}

/** The last hook that answers wins. If one returns nothing, the one before it is asked. */
export async function convertToLlm(
  hooks: Hooks,
  messages: readonly Message[],
  ctx: ModelContext,
): Promise<Transformed | undefined> {
  for (const planned of hooks.toReversed()) {
    const answer = await askHook<readonly Message[]>(planned, ctx, messages, assigned, ctx._request);
    if (answer === undefined) continue;
    if (answer === messages) break;
    ctx._run.note(planned.name, 'converted the messages of the request');
    return { by: planned.name, messages: answer };
  }
  return undefined;
}

/** Each hook gets what the one before returned. */
async function chain<T>(
  hooks: Hooks,
  given: T,
  ctx: ModelContext,
  what: string,
  take?: (made: T, by: string, before: T) => T,
): Promise<T> {
  let current = given;
  for (const planned of hooks) {
    const answer = await askHook<T>(planned, ctx, current, assigned, ctx._request);
    if (answer === undefined || answer === current) continue;
    current = take ? take(answer, planned.name, current) : answer;
    ctx._run.note(planned.name, what);
  }
  return current;
}

type Resolved = { readonly toolCall: ToolCall; readonly tool?: Tool };

export async function resolveToolCall(
  hooks: Hooks,
  toolCall: ToolCall,
  ctx: ToolContext,
): Promise<Resolved | undefined> {
  for (const planned of hooks) {
    const answer = await askHook<Resolved>(planned, ctx, toolCall, unanswered);
    if (answer === undefined) continue;
    ctx._run.note(planned.name, `resolved the call of ${toolCall.name}`);
    return { ...answer, toolCall: { ...answer.toolCall, type: 'tool-call', id: toolCall.id } };
  }
  return undefined;
}

/** What the hooks decided about a call. A block excludes the rest; an ask comes before a result. */
export interface CallDecision {
  block?: { readonly reason: string; readonly by: string };
  ask?: Asking;
  result?: { readonly value: unknown; readonly by: string };
}

/** A tool call whose hooks may ask somebody: see `Call.answered`. */
interface Answerable {
  answered(): Promise<unknown> | undefined;
}

type ToolAnswer = { block?: true; reason?: string; args?: unknown; ask?: Request; result?: unknown };

/**
 * `rewrite` puts new raw arguments into the context, or returns why it can't. After a rewrite, every hook that hasn't seen
 * these arguments runs (again), starting with the first.
 */
export async function beforeToolCall(
  hooks: Hooks,
  ctx: ToolContext,
  rewrite: (raw: unknown) => Promise<string | undefined>,
): Promise<CallDecision> {
  const answers: (ToolAnswer | undefined)[] = hooks.map(() => undefined);
  const seen = hooks.map(() => -1);
  for (let k = 0, rewrites = 0; k < hooks.length; k++) {
    if (seen[k] === rewrites) continue;
    const { name } = hooks[k]!;
    const block = (reason: string): CallDecision => ({ block: { reason, by: name } });
    seen[k] = rewrites;
    const before = ctx._input;
    let answer: ToolAnswer | undefined;
    let written: { readonly args?: unknown } | undefined;
    try {
      answer = await askHook<ToolAnswer>(hooks[k]!, ctx, ctx, unanswered);
    } finally {
      written = ctx._takeOut(before);
    }
    const asked = (ctx._call as SeamCall & Answerable).answered();
    if (asked) await asked;
    answers[k] = answer;
    if (answer?.block) return block(String(answer.reason ?? `Refused by "${name}".`));
    if (answer && 'args' in answer) written = answer;
    // Parsed arguments, assigned unchanged, aren't parsed again.
    if (!written || written.args === ctx.args) continue;
    if (++rewrites > MAX_REWRITES)
      return block(`Not run: its arguments were rewritten more than ${MAX_REWRITES} times.`);
    const problem = await rewrite(written.args);
    if (problem) return block(`Not run: the arguments that "${name}" wrote were refused.\n${problem}`);
    ctx._run.note(name, `rewrote the arguments of ${ctx.toolCall.name}`);
    seen[k] = rewrites;
    // Start again with the first hook.
    k = -1;
  }
  const asks = answers
    .map((answer, k) => answer?.ask && { request: answer.ask, by: hooks[k]!.name })
    .reduce<Asking | undefined>(asking, undefined);
  const answering = answers.findIndex((answer) => answer && 'result' in answer);
  return {
    ...(asks && { ask: asks }),
    ...(answering >= 0 && { result: { value: answers[answering]!.result, by: hooks[answering]!.name } }),
  };
}

/** Assigning a result only answers a call in `beforeTool`. Here it is an error, and the layers must not see it. */
function unanswered({ hook, name }: PlannedHook, ctx: ToolContext): void {
  if (!ctx.skip && ctx.result === undefined) return;
  ctx.result = undefined;
  ctx.skip = false;
  const why = `${hook} of "${name}" set ctx.result or ctx.skip, which are for beforeTool. Return { result } in beforeToolCall to answer without the tool.`;
  throw new AlliumError('INVALID_HOOK_RESULT', why);
}

/** Each hook sees the merged result so far in `ctx.result`; a sink sees it after the guards. */
export async function afterToolCall(hooks: Hooks, ctx: ToolContext): Promise<void> {
  for (const planned of hooks) {
    if (planned.sink) await ctx._run.judgements.judgePatched(ctx);
    const before = ctx.result!;
    const patch = await askHook<ToolResultPatch>(planned, ctx, ctx, replaced, before);
    if (patch !== undefined) ctx.result = patched(ctx.result!, patch);
    else if (ctx.result === before) continue;
    ctx._run.note(planned.name, `changed the result of ${ctx.toolCall.name}`);
  }
}

/** A hook may assign a result instead of returning a patch, as layers do. */
function replaced(planned: PlannedHook, ctx: ToolContext, before: ToolResult): void {
  if (ctx.result !== before) takeResult(planned, planned.hook, ctx);
}

export interface MergedAction {
  readonly response: ModelResponse;
  readonly inject: readonly Injected[];
  readonly decision: NonNullable<TurnAction['decision']>;
  readonly by: string | undefined;
  readonly why: string | undefined;
}

/** Guards have judged `response`. If a hook replaces it, they judge the new one before a sink sees it. */
export async function afterModelResponse(
  hooks: Hooks,
  response: ModelResponse,
  ctx: TurnContext,
  model: ModelContext,
): Promise<MergedAction> {
  let so: MergedAction = { response, inject: NOTHING, decision: 'natural', by: undefined, why: undefined };
  let judged = response;
  for (const planned of hooks) {
    if (planned.sink && so.response !== judged) {
      judged = freezeMessage((await ctx._run.judgements.response(so.response, model)).response);
      ctx._answeredWith(judged);
      so = { ...so, response: judged };
    }
    so = mergedAction(planned, so, await askHook<TurnAction>(planned, ctx, so.response), ctx);
  }
  return so;
}

function mergedAction(
  { name }: PlannedHook,
  before: MergedAction,
  action: TurnAction | undefined,
  ctx: TurnContext,
): MergedAction {
  if (action === undefined) return before;
  const { response = before.response, injectMessages = [] } = action;
  if (response !== before.response) {
    freezeMessage(response);
    ctx._answeredWith(response);
    ctx._run.note(name, 'replaced the response');
  }
  return {
    response,
    inject: [...before.inject, ...injectMessages.map((message) => ({ message, by: name }))],
    decision: action.decision ?? before.decision,
    by: action.decision ? name : before.by,
    why: action.decision ? action.why : before.why,
  };
}

type StopAnswer = boolean | { readonly reason: StoppingReason; readonly message?: string };

export async function shouldStopAfterTurn(hooks: Hooks, ctx: TurnContext): Promise<Stop | undefined> {
  for (const planned of hooks) {
    const answer = await askHook<StopAnswer>(planned, ctx);
    const by = planned.name;
    if (answer === true) return { reason: 'stopped', message: `"${by}" stopped the run.`, by };
    if (answer) return { ...answer, by };
  }
  return undefined;
}

export async function onRunEnd(hooks: Hooks, ctx: TurnContext): Promise<readonly Injected[]> {
  const all: Injected[] = [];
  for (const planned of hooks) {
    const messages = await askHook<readonly Message[]>(planned, ctx);
    for (const message of messages ?? []) all.push({ message, by: planned.name });
  }
  return all;
}
