/** The first half of a turn: the request, the model inside its layers, guards, `afterModelResponse`, the message. */
import { ModelContext, SeamCall, TurnContext } from './context.js';
import { controlKind, isThenable } from './errors.js';
import { stamped } from './incoming.js';
import { enter } from './layers.js';
import { LiveMessage } from './live.js';
import { placed } from './message-input.js';
import {
  type AssistantMessage,
  freezeMessage,
  type ModelResponse,
  NO_USAGE,
  type Usage,
} from './messages.js';
import { callModel } from './model-call.js';
import { causedBy } from './orphans.js';
import * as rules from './rules.js';
import type { Run } from './run.js';
import { type Awaitable, ENTRY_VERSION, type EntryDraft } from './store.js';
import { markStarts } from './tool-batch.js';

/** What the model phase came to. */
export interface Answer {
  readonly response: ModelResponse;
  readonly ctx: ModelContext;
  /** One more turn although nothing asks for it. */
  readonly forceContinue: boolean;
  readonly inject: readonly rules.Injected[];
  readonly decision: rules.MergedAction['decision'];
  readonly by: string | undefined;
}

/**
 * Gets an answer and appends it. `onError: 'restart'` begins again with the request. Whatever fails, a message that
 * was begun is ended.
 */
export async function modelPhase(run: Run): Promise<Phase> {
  const live = new LiveMessage(run, `${run.runId}.${run.open.count + 1}`);
  for (;;) {
    const ctx = new ModelContext(run, run.scope, run.request, run.history.length, new SeamCall(), live);
    try {
      const response = await (direct(run) ? callModel(ctx) : ask(run, ctx));
      const phase = settle(run, ctx, live, response);
      return isThenable(phase) ? await phase : phase;
    } catch (error) {
      await recover(run, ctx, live, error);
    }
  }
}

export interface Phase {
  readonly answer: Answer;
  readonly message: AssistantMessage;
}

/** From the response of the layers to the message in the history. Waits only where a guard, hook or store does. */
function settle(run: Run, ctx: ModelContext, live: LiveMessage, response: ModelResponse): Awaitable<Phase> {
  const { plan } = run;
  if (plan.guardsResponses || plan.rules.afterModelResponse.length > 0)
    return settleSlowly(run, ctx, live, response);
  const shown = live.finish(response, ctx) as ModelResponse;
  ctx._call.check();
  if (ctx._state) run.cells.stage(ctx._state);
  return phaseOf(run, natural(shown, ctx), live);
}

async function settleSlowly(
  run: Run,
  ctx: ModelContext,
  live: LiveMessage,
  response: ModelResponse,
): Promise<Phase> {
  const shown = await live.finish(response, ctx);
  ctx._call.check();
  if (ctx._state) run.cells.stage(ctx._state);
  const asked = run.plan.rules.afterModelResponse.length > 0;
  return phaseOf(run, asked ? await decide(run, ctx, shown, live) : natural(shown, ctx), live);
}

function phaseOf(run: Run, answer: Answer, { messageId }: LiveMessage): Awaitable<Phase> {
  const message = keep(run, answer, messageId);
  return isThenable(message) ? message.then((kept) => ({ answer, message: kept })) : { answer, message };
}

/** Returns when the phase is to begin again; otherwise the error goes on, and a message that was begun is ended. */
async function recover(run: Run, ctx: ModelContext, live: LiveMessage, error: unknown): Promise<void> {
  const kind = controlKind(error);
  if (kind === 'stop') run.call.latch(error, ctx._call.latchedBy);
  if (kind === 'restart') return live.reset();
  await giveUp(run, live, live.messageId, error);
  throw error;
}

function natural(response: ModelResponse, ctx: ModelContext): Answer {
  const { forceContinue } = ctx;
  return { response, ctx, forceContinue, inject: NOTHING, decision: 'natural', by: undefined };
}

/** Nothing stands between the loop and the model. */
function direct({ plan }: Run): boolean {
  return (
    plan.layers.model.length === 0 &&
    plan.rules.transformContext.length === 0 &&
    plan.rules.transformSystemPrompt.length === 0
  );
}

/** Transforms the request and goes through the layers to the model. */
async function ask(run: Run, ctx: ModelContext): Promise<ModelResponse> {
  const { transformContext, transformSystemPrompt } = run.plan.rules;
  if (transformContext.length > 0) {
    const given = ctx.messages;
    const steps = await rules.transformContext(transformContext, given, ctx);
    const last = steps.at(-1);
    if (last) ctx.messages = run.withoutOrphans(last.messages, causedBy(steps, given), ctx);
  }
  if (transformSystemPrompt.length > 0) {
    ctx.systemPrompt = await rules.transformSystemPrompt(transformSystemPrompt, ctx.systemPrompt, ctx);
  }
  const layers = run.plan.layers.model;
  const work = layers.length === 0 ? callModel(ctx) : enter(layers, 0, ctx, callModel);
  return (isThenable(work) ? await run.supervise(work as Promise<unknown>) : work) as ModelResponse;
}

async function decide(
  run: Run,
  ctx: ModelContext,
  response: ModelResponse,
  live: LiveMessage,
): Promise<Answer> {
  const hooks = run.plan.rules.afterModelResponse;
  const { forceContinue } = ctx;
  const turn = new TurnContext(run, { ...response, id: live.messageId }, [], false);
  turn._metadata = ctx._metadata;
  const {
    injectMessages: inject,
    decision,
    by,
    ...action
  } = await rules.afterModelResponse(hooks, response, turn);
  if (turn._state) run.cells.stage(turn._state);
  const final = action.response === response ? response : await live.finish(action.response, ctx);
  return { response: final, ctx, forceContinue, inject, decision, by };
}

const NOTHING: readonly rules.Injected[] = Object.freeze([]);

/** Appends the assistant message, then tells of it. What is to be injected after the results is written with it. */
function keep(run: Run, answer: Answer, messageId: string): Awaitable<AssistantMessage> {
  const { response, inject } = answer;
  const paid = run.claimUsage(response.usage);
  // Only calls made in this run cost something: an answer from a cache carries no usage of its own.
  const message = assistant(
    response,
    messageId,
    withCallIds(run, response.content, messageId),
    paid?.usage ?? NO_USAGE,
  );
  if (run.watched) freezeMessage(message);
  const plain = { v: ENTRY_VERSION, at: 0, type: 'message' as const, runId: run.runId, message };
  const costUsd = paid?.costUsd;
  const { decision, by, forceContinue } = answer;
  const extra = costUsd !== undefined || inject.length > 0 || decision !== 'natural' || forceContinue;
  const entries: EntryDraft[] = [
    extra
      ? {
          ...plain,
          ...(costUsd !== undefined && { costUsd }),
          ...(inject.length > 0 && { inject: stamped(inject) }),
          ...(decision !== 'natural' && { follows: { decision, ...(by && { by }) } }),
          ...(decision === 'natural' && forceContinue && { follows: { forceContinue } }),
        }
      : plain,
  ];
  if (answer.decision === 'natural') markStarts(run, message, answer.ctx._offered, entries);
  const wait = run.append(entries);
  if (wait) return wait.then(() => told(run, message));
  return run.watched ? told(run, message) : message;
}

function told(run: Run, message: AssistantMessage): AssistantMessage {
  const { runId, sessionId } = run;
  if (run.watched) run.emit({ type: 'message_end', runId, sessionId, messageId: message.id, message });
  return message;
}

function assistant(
  { stopReason, model, metadata }: ModelResponse,
  id: string,
  content: Content,
  usage: Usage,
): AssistantMessage {
  const plain = { id, role: 'assistant' as const, content, usage, stopReason, model };
  return metadata === undefined ? plain : { ...plain, metadata };
}

type Content = AssistantMessage['content'];

function withCallIds(run: Run, given: Content, messageId: string): Content {
  let content = given;
  for (let block = 0; block < given.length; block++) {
    const part = given[block]!;
    if (part.type !== 'tool-call') continue;
    const id = run.callId(typeof part.id === 'string' ? part.id : '', messageId, block, given);
    if (id !== part.id) content = content.with(block, { ...part, id });
  }
  return content;
}

/** There will be no response. What was cut off leaves the text that was released; otherwise nothing stays. */
async function giveUp(run: Run, live: LiveMessage, messageId: string, error: unknown): Promise<void> {
  const cut = controlKind(error) === 'abort' || (run.scope.aborted && error === run.scope.reason);
  const released = cut ? live.released() : [];
  if (released.length === 0) {
    live.discard();
    return;
  }
  const { runId, sessionId } = run;
  const partial = {
    role: 'assistant',
    content: released,
    usage: NO_USAGE,
    stopReason: 'aborted',
    id: '',
  } as const;
  const message: AssistantMessage = placed(partial, messageId);
  try {
    await run.append([{ type: 'message', runId, message }]);
  } catch (failure) {
    live.discard();
    throw failure;
  }
  run.emit({ type: 'message_end', runId, sessionId, messageId, message });
}
