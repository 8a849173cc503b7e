/** The decision hooks and their composition rules: a table, and one small function per rule. */
import type { Context, ModelContext, RunContext, ToolContext, TurnContext } from './context.js';
import { AlliumError, attribute, isControl, isThenable, shown } from './errors.js';
import { toldError } from './guards.js';
import { SHAPES } from './hook-shapes.js';
import type { Message, ModelResponse, ToolCall } from './messages.js';
import type { ToolResultPatch, TurnAction } from './middleware.js';
import type { RequestParts } from './model-context.js';
import { noteAssigned } from './request-changes.js';
import { checkRequest } from './request-checks.js';
import type { Stop, StopReason } from './result.js';
import { untilAborted } from './scope.js';
import type { Awaitable, Request } from './store.js';
import { patched, type Tool } from './tool.js';
import type { Call } from './tool-call.js';

export const RULES = {
  acceptMessage: {
    rule: 'chain, first block stops',
    detail: 'each sees the message as the one before left it',
  },
  transformContext: {
    rule: 'chain',
    detail: 'each sees the output of the one before; history is untouched',
  },
  transformSystemPrompt: { rule: 'chain', detail: 'each sees the output of the one before' },
  convertToLlm: { rule: 'last wins', detail: 'runs innermost, once per attempt' },
  resolveToolCall: { rule: 'first answer wins', detail: 'before validation; the call id is kept' },
  beforeToolCall: {
    rule: 'first block stops',
    detail: 'an ask does not end the chain; rewritten arguments are judged again by all',
  },
  afterToolCall: {
    rule: 'merge by field, later wins',
    detail: 'fires for blocked, skipped and failed calls too',
  },
  afterModelResponse: {
    rule: 'chain with merge',
    detail: 'responses chain, injected messages concatenate, the last decision wins',
  },
  shouldStopAfterTurn: { rule: 'any true', detail: 'the first that says stop ends the question' },
  onRunEnd: { rule: 'concatenate', detail: 'any message keeps the run going' },
} as const satisfies Record<string, { rule: string; detail: string }>;

export type RuleHook = keyof typeof RULES;

/** A hook of one middleware, bound to it. */
export interface PlannedHook {
  readonly name: string;
  readonly position: number;
  readonly open: boolean;
  readonly fn: (...args: any[]) => any;
}

export type Hooks = readonly PlannedHook[];

/** A message of a middleware on its way into the history. */
export interface Injected {
  readonly message: Message;
  readonly by: string;
}

const MAX_REWRITES = 8;

/**
 * Calls one hook and checks what it answers. Notes who threw, skips those that fail open, and stops at a latched
 * signal. Waits only where the hook does; an abort ends the wait, and what the hook answers later is dropped.
 */
function ask<T>(
  hook: RuleHook,
  planned: PlannedHook,
  ctx: Context,
  subject: unknown,
  last?: Context,
): Awaitable<T | undefined> {
  ctx._position = planned.position;
  let answer: unknown;
  try {
    const given: unknown = last === undefined ? planned.fn(subject) : planned.fn(subject, last);
    if (isThenable(given)) return awaited(hook, planned, ctx, given, subject);
    answer = checked(hook, planned, given, subject);
  } catch (error) {
    failed(hook, planned, ctx, error);
  }
  ctx._call.check();
  return answer as T | undefined;
}

async function awaited<T>(
  hook: RuleHook,
  planned: PlannedHook,
  ctx: Context,
  given: PromiseLike<unknown>,
  subject: unknown,
): Promise<T | undefined> {
  let answer: unknown;
  try {
    answer = checked(hook, planned, await untilAborted(given, ctx._scope), subject);
  } catch (error) {
    failed(hook, planned, ctx, error);
  }
  ctx._call.check();
  return answer as T | undefined;
}

function checked(hook: RuleHook, planned: PlannedHook, answer: unknown, subject: unknown): unknown {
  const { fine, required } = SHAPES[hook];
  if (answer === undefined ? required : !fine(answer, subject)) throw wrong(hook, planned, answer);
  return answer;
}

/** Returns where the hook is skipped. What was latched before goes on in the place of an error. */
function failed(hook: RuleHook, planned: PlannedHook, ctx: Context, error: unknown): void {
  if (isControl(error)) ctx._latch(error, error === ctx._scope.reason ? 'kernel' : planned.name);
  else attribute(error, { middleware: planned.name, hook }, undefined, ctx);
  ctx._call.check();
  if (isControl(error) || !planned.open) throw error;
  ctx._run.note(planned.name, `${hook} failed and was skipped: ${toldError(error, ctx)}`);
}

/** A transform of the request assigned to its context what it does not return. */
function assigned(hook: RuleHook, planned: PlannedHook, ctx: ModelContext, before: RequestParts): void {
  try {
    checkRequest(ctx._request, before);
    noteAssigned(ctx, before, hook);
  } catch (error) {
    failed(hook, planned, ctx, error);
    ctx._request = before;
  }
}

function wrong(hook: RuleHook, planned: PlannedHook, answer: unknown): AlliumError {
  const { wanted, lack } = SHAPES[hook];
  const lacking = lack?.(answer);
  return new AlliumError(
    'INVALID_HOOK_RESULT',
    `${hook} of "${planned.name}" returned ${shown(answer)}. Return ${wanted}.${lacking ? ` Expected ${lacking}.` : ''}`,
    { data: { hook, middleware: planned.name } },
  );
}

// ── The rules ────────────────────────────────────────────────────────────────────────────────────────────────

type Refusal = { readonly block: true; readonly reason?: string };
type Acceptance = { readonly message: Message } | { readonly block: string; readonly by: string };

export async function acceptMessage(hooks: Hooks, message: Message, ctx: RunContext): Promise<Acceptance> {
  let current = message;
  for (const planned of hooks) {
    const answer = await ask<Message | Refusal>('acceptMessage', planned, ctx, current, ctx);
    if (answer === undefined || answer === current) continue;
    if ('block' in answer) {
      return {
        block: String(answer.reason ?? `The message was refused by "${planned.name}".`),
        by: planned.name,
      };
    }
    ctx._run.note(planned.name, 'rewrote a message from outside');
    current = answer;
  }
  return { message: current };
}

/** What each hook that changed the messages made of them, in order. */
export interface Transformed {
  readonly by: string;
  readonly messages: readonly Message[];
}

export async function transformContext(
  hooks: Hooks,
  given: readonly Message[],
  ctx: ModelContext,
): Promise<readonly Transformed[]> {
  let messages = given;
  const steps: Transformed[] = [];
  for (const planned of hooks) {
    const before = ctx._request;
    const answer = await ask<readonly Message[]>('transformContext', planned, ctx, messages, ctx);
    if (ctx._request !== before) assigned('transformContext', planned, ctx, before);
    if (answer === undefined || answer === messages) continue;
    messages = answer;
    steps.push({ by: planned.name, messages });
    ctx._run.note(planned.name, 'rewrote the messages of the request');
  }
  return steps;
}

export async function transformSystemPrompt(
  hooks: Hooks,
  prompt: string,
  ctx: ModelContext,
): Promise<string> {
  let current = prompt;
  for (const planned of hooks) {
    const before = ctx._request;
    const answer = await ask<string>('transformSystemPrompt', planned, ctx, current, ctx);
    if (ctx._request !== before) assigned('transformSystemPrompt', planned, ctx, before);
    if (answer === undefined || answer === current) continue;
    current = answer;
    ctx._run.note(planned.name, 'rewrote the system prompt of the request');
  }
  return current;
}

export async function convertToLlm(
  hooks: Hooks,
  messages: readonly Message[],
  ctx: ModelContext,
): Promise<readonly Message[]> {
  const planned = hooks.at(-1)!;
  const before = ctx._request;
  const answer = await ask<readonly Message[]>('convertToLlm', planned, ctx, messages, ctx);
  if (ctx._request !== before) assigned('convertToLlm', planned, ctx, before);
  if (answer === undefined || answer === messages) return messages;
  ctx._run.note(planned.name, 'converted the messages of the request');
  return answer;
}

type Resolved = { readonly toolCall: ToolCall; readonly tool?: Tool };

export async function resolveToolCall(
  hooks: Hooks,
  toolCall: ToolCall,
  ctx: ToolContext,
): Promise<Resolved | undefined> {
  for (const planned of hooks) {
    const answer = await ask<Resolved>('resolveToolCall', planned, ctx, toolCall, ctx);
    if (answer === undefined) continue;
    ctx._run.note(planned.name, `resolved the call of ${toolCall.name}`);
    return { ...answer, toolCall: { ...answer.toolCall, type: 'tool-call', id: toolCall.id } };
  }
  return undefined;
}

/** What the chain came to about a call. A block rules out the rest; an ask comes before a result. */
export interface CallDecision {
  block?: { readonly reason: string; readonly by: string };
  ask?: { readonly request: Request; readonly by: string };
  result?: { readonly value: unknown; readonly by: string };
}

type ToolAnswer = { block?: true; reason?: string; args?: unknown; ask?: Request; result?: unknown };

/**
 * `rewrite` takes rewritten raw arguments into the context, or says why it does not. After a rewrite every hook
 * that has not seen these arguments is asked (again), from the first on.
 */
export async function beforeToolCall(
  hooks: Hooks,
  ctx: ToolContext,
  rewrite: (raw: unknown) => Promise<string | undefined>,
): Promise<CallDecision> {
  const answers: (ToolAnswer | undefined)[] = hooks.map(() => undefined);
  const seen = hooks.map(() => -1);
  for (let k = 0, rewrites = 0; k < hooks.length; ) {
    if (seen[k] === rewrites) {
      k++;
      continue;
    }
    const { name } = hooks[k]!;
    seen[k] = rewrites;
    const answer = await ask<ToolAnswer>('beforeToolCall', hooks[k]!, ctx, ctx);
    const asked = (ctx._call as Call).answered();
    if (asked) await asked;
    answers[k] = answer;
    if (answer?.block)
      return { block: { reason: String(answer.reason ?? `Refused by "${name}".`), by: name } };
    if (!answer || !('args' in answer)) {
      k++;
      continue;
    }
    if (++rewrites > MAX_REWRITES) {
      return {
        block: { reason: `Not run: its arguments were rewritten more than ${MAX_REWRITES} times.`, by: name },
      };
    }
    const problem = await rewrite(answer.args);
    if (problem)
      return {
        block: { reason: `Not run: the arguments that "${name}" wrote were refused.\n${problem}`, by: name },
      };
    ctx._run.note(name, `rewrote the arguments of ${ctx.toolCall.name}`);
    seen[k] = rewrites;
    k = 0;
  }
  const asking = answers.findIndex((answer) => answer?.ask);
  const answering = answers.findIndex((answer) => answer && 'result' in answer);
  return {
    ...(asking >= 0 && { ask: { request: answers[asking]!.ask!, by: hooks[asking]!.name } }),
    ...(answering >= 0 && { result: { value: answers[answering]!.result, by: hooks[answering]!.name } }),
  };
}

/** Each hook sees the merge so far in `ctx.result`. */
export function afterToolCall(hooks: Hooks, ctx: ToolContext, from = 0): Awaitable<void> {
  for (let i = from; i < hooks.length; i++) {
    const patch = ask<ToolResultPatch>('afterToolCall', hooks[i]!, ctx, ctx);
    if (patch instanceof Promise)
      return patch.then((given) => {
        patchResult(hooks[i]!, ctx, given);
        return afterToolCall(hooks, ctx, i + 1);
      });
    patchResult(hooks[i]!, ctx, patch);
  }
}

function patchResult({ name }: PlannedHook, ctx: ToolContext, patch: ToolResultPatch | undefined): void {
  if (patch === undefined) return;
  ctx.result = patched(ctx.result!, patch);
  ctx._run.note(name, `changed the result of ${ctx.toolCall.name}`);
}

export interface MergedAction {
  readonly response: ModelResponse;
  readonly inject: readonly Injected[];
  readonly decision: NonNullable<TurnAction['decision']>;
  readonly by: string | undefined;
}

const NOTHING: readonly Injected[] = Object.freeze([]);

export function afterModelResponse(
  hooks: Hooks,
  response: ModelResponse,
  ctx: TurnContext,
): Awaitable<MergedAction> {
  return askOn(hooks, 0, { response, inject: NOTHING, decision: 'natural', by: undefined }, ctx);
}

/** Goes on from hook `from`, with what the hooks before came to. */
function askOn(hooks: Hooks, from: number, before: MergedAction, ctx: TurnContext): Awaitable<MergedAction> {
  let so = before;
  for (let i = from; i < hooks.length; i++) {
    const planned = hooks[i]!;
    const action = ask<TurnAction>('afterModelResponse', planned, ctx, so.response, ctx);
    if (action instanceof Promise) {
      const until = so;
      return action.then((given) => askOn(hooks, i + 1, mergedAction(planned, until, given, ctx), ctx));
    }
    so = mergedAction(planned, so, action, ctx);
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
  if (response !== before.response) ctx._run.note(name, 'replaced the response');
  return {
    response,
    inject: [...before.inject, ...injectMessages.map((message) => ({ message, by: name }))],
    decision: action.decision ?? before.decision,
    by: action.decision ? name : before.by,
  };
}

type StopAnswer = boolean | { reason: StopReason; message?: string } | undefined;

export function shouldStopAfterTurn(hooks: Hooks, ctx: TurnContext, from = 0): Awaitable<Stop | undefined> {
  for (let i = from; i < hooks.length; i++) {
    const planned = hooks[i]!;
    const answer = ask<StopAnswer>('shouldStopAfterTurn', planned, ctx, ctx);
    if (answer instanceof Promise)
      return answer.then((given) => stopOf(planned, given) ?? shouldStopAfterTurn(hooks, ctx, i + 1));
    const stop = stopOf(planned, answer);
    if (stop) return stop;
  }
  return undefined;
}

function stopOf({ name }: PlannedHook, answer: StopAnswer): Stop | undefined {
  if (answer === undefined || answer === false) return undefined;
  if (answer === true) return { reason: 'stopped', message: `"${name}" stopped the run.`, by: name };
  return { ...answer, by: name };
}

export async function onRunEnd(hooks: Hooks, ctx: TurnContext): Promise<readonly Injected[]> {
  const all: Injected[] = [];
  for (const planned of hooks) {
    const messages = await ask<readonly Message[]>('onRunEnd', planned, ctx, ctx);
    for (const message of messages ?? []) all.push({ message, by: planned.name });
  }
  return all;
}
