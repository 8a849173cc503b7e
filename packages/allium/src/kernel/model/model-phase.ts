/** The first half of a turn: the request, the model inside its layers, guards, `afterModelResponse`, the message. */

import { ModelContext, ModelSeam, TurnContext } from '../context/context.js';
import { checkLimits } from '../context/stop-checks.js';
import { LiveMessage } from '../events/live-message.js';
import { appendMessages, judgeInjected, stamped } from '../inbox/incoming.js';
import { causedBy, withoutOrphans } from '../inbox/orphans.js';
import { Onion } from '../layers/onion.js';
import { invalidOption, isThenable } from '../lib/errors.js';
import { Scope } from '../lib/scope.js';
import {
  type AssistantMessage,
  freezeMessage,
  type ModelResponse,
  NO_USAGE,
  NOTHING,
  syntheticUserMessage,
} from '../messages/messages.js';
import * as rules from '../plan/rules.js';
import { controlKind, type RestartTurn, StopRun } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { withChangedCalls } from './changed-calls.js';
import { callModel } from './model-call.js';
import type { Calling, ModelRun } from './model-run.js';
import { type Answer, type Decided, writeAnswer } from './write-answer.js';

/** The context of the call that answers in this turn. */
export function beginAnswer(run: ModelRun): Calling {
  if (run.turn > 1) run.request = run.agent.request(run.plan, run.turn, run.request);
  return contextOf(run, newMessage(run));
}

/** The message that the answer will be. */
function newMessage(run: ModelRun): LiveMessage {
  const { pendingInput } = run;
  const before = run.open.count + (pendingInput?.messages.length ?? 0);
  const live = new LiveMessage(run, run.messageId(before + 1));
  pendingInput?.whenAllowed(live.hold());
  return live;
}

function contextOf(run: ModelRun, live: LiveMessage): Calling {
  const scope = new Scope(run.scope);
  const call = new ModelSeam(run, scope, live, run.history.length);
  const { pendingInput: pending, request, history, state } = run;
  if (!pending && !state.changedCalls) return new ModelContext(run, scope, request, call) as Calling;
  const told = withChangedCalls(history.request(history.length), state.changedCalls);
  const messages = pending ? Object.freeze([...told, ...pending.messages]) : told;
  const ctx = new ModelContext(run, scope, { ...request, messages }, call) as Calling;
  call.given = ctx._request;
  if (pending) {
    ctx._state = pending.written?.inner();
    pending.abortIfRefused(scope);
  }
  return ctx;
}

/** The response that transforms, layers and the model make of the call. */
export function respond(ctx: Calling): Awaitable<ModelResponse> {
  const { _run: run } = ctx;
  const { transformContext, transformSystemPrompt } = run.plan.rules;
  ctx._call.enter();
  if (transformContext.length === 0 && transformSystemPrompt.length === 0) return throughLayers(ctx);
  return run.supervise(transform(run, ctx)).then(() => throughLayers(ctx));
}

/** Has the response judged, and writes what `afterModelResponse` makes of it. Waits only if something does. */
export function takeAnswer(ctx: Calling, response: ModelResponse): Awaitable<Answer> {
  const { pendingInput } = ctx._run;
  ctx._call.leave();
  // Guards that judge the input in parallel have to allow it before the answer has any effect.
  return pendingInput ? pendingInput.allowed().then(() => conclude(ctx, response)) : conclude(ctx, response);
}

function conclude(ctx: Calling, response: ModelResponse): Awaitable<Answer> {
  const decided = decide(ctx, response);
  return decided instanceof Promise
    ? decided.then((one) => writeAnswer(ctx, one))
    : writeAnswer(ctx, decided);
}

/** The response that comes out of the layers around the model. Code in them that ignores an abort is left behind. */
function throughLayers(ctx: Calling): Awaitable<ModelResponse> {
  const { _run: run } = ctx;
  const { layers, onions } = run.plan;
  if (layers.model.length === 0) return callModel(ctx);
  onions.model ??= new Onion(layers.model, callModel);
  const work = onions.model.enter(0, ctx) as Awaitable<ModelResponse>;
  return isThenable(work) ? run.supervise(work) : work;
}

async function transform(run: ModelRun, ctx: Calling): Promise<void> {
  const { transformContext, transformSystemPrompt } = run.plan.rules;
  if (transformContext.length > 0) {
    const given = ctx.messages;
    const steps = await rules.transformContext(transformContext, given, ctx);
    const last = steps.at(-1);
    if (last) {
      const kept = withoutOrphans(run, last.messages, (problems) => causedBy(steps, given, problems));
      // A step may have put something else in the place of a result.
      ctx.messages = withChangedCalls(kept, run.state.changedCalls);
    }
  }
  if (transformSystemPrompt.length > 0)
    ctx.systemPrompt = await rules.transformSystemPrompt(transformSystemPrompt, ctx.systemPrompt, ctx);
  ctx._call.given = ctx._request;
}

/** Guards judge the response, and `afterModelResponse` decides what follows. Waits only if one of them does. */
function decide(ctx: Calling, given: ModelResponse): Awaitable<Decided> {
  const shown = ctx._call.live!.finish(given, ctx);
  return shown instanceof Promise ? shown.then((response) => judged(ctx, response)) : judged(ctx, shown);
}

function judged(ctx: Calling, response: ModelResponse): Awaitable<Decided> {
  if (typeof ctx.forceContinue !== 'boolean') ctx.forceContinue = asFlag(ctx.forceContinue);
  const { _run: run, _call: call, forceContinue } = ctx;
  call.check();
  if (run.plan.rules.afterModelResponse.length > 0) return askHooks(ctx, response);
  if (ctx._state) run.cells.stage(ctx._state);
  return { response, forceContinue, inject: NOTHING, decision: 'natural', by: undefined, why: undefined };
}

/** Any value counts by its truth, except for a promise: that is a forgotten await, and would always be true. */
function asFlag(value: unknown): boolean {
  if (isThenable(value)) throw invalidOption('ctx.forceContinue', 'true or false', value);
  return Boolean(value);
}

async function askHooks(ctx: Calling, response: ModelResponse): Promise<Decided> {
  const { _run: run, _call: call, forceContinue } = ctx;
  const live = call.live!;
  const hooks = run.plan.rules.afterModelResponse;
  // Guards have judged it, so nobody may edit it in place.
  freezeMessage(response);
  const message = Object.freeze({ ...response, id: live.messageId });
  const turn = new TurnContext(run, message, NOTHING, false);
  turn._metadata = ctx._metadata;
  turn._state = ctx._state;
  const action = await rules.afterModelResponse(hooks, response, turn, ctx);
  const final = action.response === response ? response : await live.finish(action.response, ctx);
  // Injected messages land after the tool results. Their author must not change them until then.
  for (const { message } of action.inject) freezeMessage(message);
  const inject = await judgeInjected(run, action.inject);
  // What the hooks wrote to cells is journaled with the message.
  if (turn._state) run.cells.stage(turn._state);
  return { ...action, response: final, forceContinue, inject };
}

/**
 * Returns the context to start over with, if `onError` restarts the turn, or a guard has the model asked again.
 * Otherwise ends a message that was begun, and throws the error.
 */
export async function recover(ctx: Calling, thrown: unknown): Promise<Calling> {
  const { _run: run, _call: call } = ctx;
  const live = call.live!;
  call.leave();
  const error = run.pendingInput ? await run.pendingInput.endedBy(thrown) : thrown;
  const kind = controlKind(error);
  if (kind === 'stop') run.call.latch(error, call.latchedBy);
  if (kind === 'restart') {
    const { feedback, written } = error as RestartTurn;
    if (feedback) return contextOf(run, await askAgain(run, live, feedback));
    run.cells.stageAll(written);
    live.reset();
    return contextOf(run, live);
  }
  await giveUp(ctx, error);
  throw error;
}

/** A guard refused the answer: the model is told why, and answers again in the same turn. */
async function askAgain(
  run: ModelRun,
  live: LiveMessage,
  { reason, by }: NonNullable<RestartTurn['feedback']>,
): Promise<LiveMessage> {
  live.discard();
  checkLimits(run);
  const said = `Your last answer was discarded before anybody saw it. ${reason} Answer again without that.`;
  const told = await judgeInjected(run, [{ message: syntheticUserMessage(said, { source: by }), by }]);
  if (told.length === 0) {
    const stop = new StopRun('guardrail', reason);
    run.call.latch(stop, by);
    throw stop;
  }
  await appendMessages(run, stamped(told), [], 'feedback');
  return newMessage(run);
}

/** There will be no response. After an abort the text that was released stays; otherwise nothing does. */
async function giveUp({ _run: run, _call: call }: Calling, error: unknown): Promise<void> {
  const live = call.live!;
  const cut = controlKind(error) === 'abort' || (run.scope.aborted && error === run.scope.reason);
  const content = cut ? live.released() : [];
  if (content.length === 0) {
    live.discard();
    return;
  }
  const { runId, sessionId } = run;
  const { messageId: id } = live;
  const plain = { id, role: 'assistant' as const, content, usage: NO_USAGE, stopReason: 'aborted' as const };
  const message: AssistantMessage = freezeMessage(plain);
  try {
    await run.append([{ type: 'message', runId, message }]);
  } catch (failure) {
    live.discard();
    throw failure;
  }
  run.emit({ type: 'message_end', runId, sessionId, messageId: id, message });
}
