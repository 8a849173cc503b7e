/** The decision hooks and their composition rules: a table, and one small function per rule. */
import type { Context, ModelContext, RunContext, ToolContext, TurnContext } from './context.js';
import { AlliumError, attribute, isControl, isThenable, messageOf, shown } from './errors.js';
import type { Message, ModelResponse, ToolCall, ToolContent } from './messages.js';
import type { ToolResultPatch, TurnAction } from './middleware.js';
import { STOP_REASONS, type Stop, type StopReason } from './result.js';
import type { Request } from './store.js';
import { isContentList, type Tool, type ToolResult } from './tool.js';

export const RULES = {
  acceptMessage: { rule: 'chain, first block stops', detail: 'each sees the message as the one before left it' },
  transformContext: { rule: 'chain', detail: 'each sees the output of the one before; history is untouched' },
  transformSystemPrompt: { rule: 'chain', detail: 'each sees the output of the one before' },
  convertToLlm: { rule: 'last wins', detail: 'runs innermost, once per attempt' },
  resolveToolCall: { rule: 'first answer wins', detail: 'before validation; the call id is kept' },
  beforeToolCall: { rule: 'first block stops', detail: 'an ask does not end the chain; rewritten arguments are judged again by all' },
  afterToolCall: { rule: 'merge by field, later wins', detail: 'fires for blocked, skipped and failed calls too' },
  afterModelResponse: { rule: 'chain with merge', detail: 'responses chain, injected messages concatenate, the last decision wins' },
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

const MAX_REWRITES = 8;

/** Calls one hook: notes who threw, skips those that fail open, and stops at a latched signal. */
async function ask<T>(hook: RuleHook, planned: PlannedHook, ctx: Context, ...args: unknown[]): Promise<T | undefined> {
  ctx._position = planned.position;
  try {
    const answer = planned.fn(...args);
    return isThenable(answer) ? ((await answer) as T) : answer;
  } catch (error) {
    if (isControl(error)) {
      ctx._call.latch(error, planned.name);
      throw error;
    }
    attribute(error, { middleware: planned.name, hook });
    if (!planned.open) throw error;
    ctx._run.note(planned.name, `${hook} failed and was skipped: ${messageOf(error)}`);
    return undefined;
  } finally {
    ctx._call.check();
  }
}

function wrong(hook: RuleHook, planned: PlannedHook, answer: unknown, wanted: string): AlliumError {
  const error = new AlliumError('INVALID_HOOK_RESULT', `${hook} of "${planned.name}" returned ${shown(answer)}. Return ${wanted}.`, { data: { hook, middleware: planned.name } });
  attribute(error, { middleware: planned.name, hook });
  return error;
}

/** Is it an object with no other keys than these? */
function hasOnly(value: unknown, keys: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).every((key) => keys.includes(key));
}

function isMessages(value: unknown): value is readonly Message[] {
  return Array.isArray(value) && value.every((item) => typeof item?.role === 'string' && Array.isArray(item.content));
}

export async function acceptMessage(hooks: Hooks, message: Message, ctx: RunContext): Promise<{ message: Message } | { block: string; by: string }> {
  let current = message;
  for (const planned of hooks) {
    const answer = await ask<Record<string, unknown>>('acceptMessage', planned, ctx, current, ctx);
    if (answer === undefined) continue;
    if (answer?.block === true && hasOnly(answer, ['block', 'reason'])) {
      return { block: String(answer.reason ?? `The message was refused by "${planned.name}".`), by: planned.name };
    }
    if (!isMessages([answer])) throw wrong('acceptMessage', planned, answer, 'a message, { block: true, reason }, or nothing');
    if ((answer as unknown) !== current) ctx._run.note(planned.name, 'rewrote a message from outside');
    current = answer as unknown as Message;
  }
  return { message: current };
}

export async function transformContext(hooks: Hooks, messages: readonly Message[], ctx: ModelContext): Promise<{ messages: readonly Message[]; by: readonly string[] }> {
  let current = messages;
  const by: string[] = [];
  for (const planned of hooks) {
    const answer = await ask<readonly Message[]>('transformContext', planned, ctx, current, ctx);
    if (answer === undefined && planned.open) continue;
    if (!Array.isArray(answer)) throw wrong('transformContext', planned, answer, 'a list of messages (the given one, if nothing changes)');
    if (answer === current) continue;
    if (!isMessages(answer)) throw wrong('transformContext', planned, answer, 'a list of messages (the given one, if nothing changes)');
    current = answer;
    by.push(planned.name);
  }
  return { messages: current, by };
}

export async function transformSystemPrompt(hooks: Hooks, prompt: string, ctx: ModelContext): Promise<string> {
  let current = prompt;
  for (const planned of hooks) {
    const answer = await ask<string>('transformSystemPrompt', planned, ctx, current, ctx);
    if (answer === undefined && planned.open) continue;
    if (typeof answer !== 'string') throw wrong('transformSystemPrompt', planned, answer, 'the prompt as text');
    current = answer;
  }
  return current;
}

export async function convertToLlm(hooks: Hooks, messages: readonly Message[], ctx: ModelContext): Promise<readonly Message[]> {
  const planned = hooks.at(-1)!;
  const answer = await ask<readonly Message[]>('convertToLlm', planned, ctx, messages, ctx);
  if (answer === undefined && planned.open) return messages;
  if (!isMessages(answer)) throw wrong('convertToLlm', planned, answer, 'a list of messages');
  return answer;
}

export async function resolveToolCall(hooks: Hooks, toolCall: ToolCall, ctx: ToolContext): Promise<{ toolCall: ToolCall; tool?: Tool } | undefined> {
  for (const planned of hooks) {
    const answer = await ask<{ toolCall: ToolCall; tool?: Tool }>('resolveToolCall', planned, ctx, toolCall, ctx);
    if (answer === undefined) continue;
    if (!hasOnly(answer, ['toolCall', 'tool']) || typeof answer.toolCall?.name !== 'string' || typeof answer.toolCall.arguments !== 'string') {
      throw wrong('resolveToolCall', planned, answer, '{ toolCall, tool? }, or nothing');
    }
    return { ...answer, toolCall: { ...answer.toolCall, type: 'tool-call', id: toolCall.id } };
  }
  return undefined;
}

/** What the chain came to about a call. */
export interface CallDecision {
  block?: { readonly reason: string; readonly by: string };
  ask?: { readonly request: Request; readonly by: string };
  result?: { readonly value: unknown; readonly by: string };
}

/** `validate` takes rewritten raw arguments into the context, or says what is wrong with them. */
export async function beforeToolCall(hooks: Hooks, ctx: ToolContext, validate: (raw: unknown) => Promise<string | undefined>): Promise<CallDecision> {
  const seen = hooks.map(() => -1);
  const asks = new Map<number, CallDecision['ask']>();
  let result: CallDecision['result'];
  for (let k = 0, rewrites = 0; k < hooks.length; ) {
    const planned = hooks[k]!;
    if (seen[k] === rewrites) {
      k++;
      continue;
    }
    seen[k] = rewrites;
    asks.delete(k);
    const answer = await ask<any>('beforeToolCall', planned, ctx, ctx);
    if (answer === undefined) k++;
    else if (answer?.block === true && hasOnly(answer, ['block', 'reason'])) {
      return { block: { reason: String(answer.reason ?? `Refused by "${planned.name}".`), by: planned.name } };
    } else if (hasOnly(answer, ['ask']) && typeof answer.ask === 'object' && answer.ask !== null) {
      asks.set(k++, { request: answer.ask as Request, by: planned.name });
    } else if (hasOnly(answer, ['result']) && 'result' in answer) {
      result = { value: answer.result, by: planned.name };
      k++;
    } else if (hasOnly(answer, ['args']) && 'args' in answer) {
      if (++rewrites > MAX_REWRITES) return { block: { reason: `Not run: its arguments were rewritten more than ${MAX_REWRITES} times.`, by: planned.name } };
      const problem = await validate(answer.args);
      if (problem) return { block: { reason: `Not run: "${planned.name}" rewrote the arguments to something invalid.\n${problem}`, by: planned.name } };
      ctx._run.note(planned.name, `rewrote the arguments of ${ctx.toolCall.name}`);
      seen[k] = rewrites;
      k = 0;
    } else throw wrong('beforeToolCall', planned, answer, '{ block: true, reason }, { args }, { ask }, { result }, or nothing');
  }
  const first = [...asks].sort(([a], [b]) => a - b)[0]?.[1];
  return { ...(first && { ask: first }), ...(result && { result }) };
}

/** Each hook sees the merge so far in `ctx.result`. */
export async function afterToolCall(hooks: Hooks, ctx: ToolContext): Promise<void> {
  for (const planned of hooks) {
    const patch = await ask<ToolResultPatch>('afterToolCall', planned, ctx, ctx);
    if (patch === undefined) continue;
    if (!hasOnly(patch, ['content', 'details', 'isError', 'terminate'])) throw wrong('afterToolCall', planned, patch, '{ content?, details?, isError?, terminate? }, or nothing');
    ctx.result = merged(ctx.result!, patch, planned);
    ctx._run.note(planned.name, `changed the result of ${ctx.toolCall.name}`);
  }
}

function merged(result: ToolResult, patch: ToolResultPatch, planned: PlannedHook): ToolResult {
  const next: { -readonly [K in keyof ToolResult]: ToolResult[K] } = { ...result };
  if (patch.content !== undefined) {
    const content = typeof patch.content === 'string' ? [{ type: 'text' as const, text: patch.content }] : patch.content;
    if (content.length > 0 && !isContentList(content)) throw wrong('afterToolCall', planned, patch, 'content as text or a list of text, image and file parts');
    next.content = content as readonly ToolContent[];
  }
  if (patch.details !== undefined) next.details = patch.details === null ? undefined : patch.details;
  if (patch.isError !== undefined) next.isError = patch.isError;
  if (patch.terminate !== undefined) next.terminate = patch.terminate;
  return Object.freeze(next);
}

export interface MergedAction {
  readonly response: ModelResponse;
  readonly injectMessages: readonly { readonly message: Message; readonly by: string }[];
  readonly decision: NonNullable<TurnAction['decision']>;
  readonly by?: string;
}

export async function afterModelResponse(hooks: Hooks, response: ModelResponse, ctx: TurnContext): Promise<MergedAction> {
  let current = response;
  let decision: MergedAction['decision'] = 'natural';
  let by: string | undefined;
  const injectMessages: { message: Message; by: string }[] = [];
  for (const planned of hooks) {
    const action = await ask<TurnAction>('afterModelResponse', planned, ctx, current, ctx);
    if (action === undefined) continue;
    const fine =
      hasOnly(action, ['response', 'injectMessages', 'decision']) &&
      (action.response === undefined || (action.response?.role === 'assistant' && Array.isArray(action.response.content))) &&
      (action.injectMessages === undefined || isMessages(action.injectMessages)) &&
      (action.decision === undefined || ['natural', 'stop', 'loop_to_model'].includes(action.decision));
    if (!fine) throw wrong('afterModelResponse', planned, action, '{ response?, injectMessages?, decision? }, or nothing');
    if (action.response && action.response !== current) {
      current = action.response;
      ctx._run.note(planned.name, 'replaced the response');
    }
    for (const message of action.injectMessages ?? []) injectMessages.push({ message, by: planned.name });
    if (action.decision) [decision, by] = [action.decision, planned.name];
  }
  return { response: current, injectMessages, decision, ...(by && { by }) };
}

export async function shouldStopAfterTurn(hooks: Hooks, ctx: TurnContext): Promise<Stop | undefined> {
  for (const planned of hooks) {
    const answer = await ask<boolean | { reason: StopReason; message?: string }>('shouldStopAfterTurn', planned, ctx, ctx);
    if (answer === undefined || answer === false) continue;
    if (answer === true) return { reason: 'stopped', message: `"${planned.name}" stopped the run.`, by: planned.name };
    if (!hasOnly(answer, ['reason', 'message']) || !STOP_REASONS.has(answer.reason)) throw wrong('shouldStopAfterTurn', planned, answer, 'true, false, or { reason, message }');
    return { ...answer, by: planned.name };
  }
  return undefined;
}

export async function onRunEnd(hooks: Hooks, ctx: TurnContext): Promise<readonly { readonly message: Message; readonly by: string }[]> {
  const all: { message: Message; by: string }[] = [];
  for (const planned of hooks) {
    const answer = await ask<readonly Message[]>('onRunEnd', planned, ctx, ctx);
    if (answer === undefined) continue;
    if (!isMessages(answer)) throw wrong('onRunEnd', planned, answer, 'a list of messages, or nothing');
    for (const message of answer) all.push({ message, by: planned.name });
  }
  return all;
}
