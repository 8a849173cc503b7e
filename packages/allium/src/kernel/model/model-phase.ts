/** The first half of a turn: the request, the model inside its layers, guards, `afterModelResponse`, the message. */

import { ModelContext, ModelSeam, TurnContext } from '../context/context.js';
import type { CallVerdicts } from '../context/run-port.js';
import { checkLimits } from '../context/stop-checks.js';
import { LiveMessage } from '../events/live.js';
import { failedStream } from '../guards/assemble.js';
import { NO_VERDICTS, verdictEntries } from '../guards/call-verdicts.js';
import { appendMessages, judgeInjected, stamped } from '../inbox/incoming.js';
import { causedBy, withoutOrphans } from '../inbox/orphans.js';
import { Onion } from '../layers/onion.js';
import { Scope } from '../lib/scope.js';
import {
  type AssistantMessage,
  freezeMessage,
  type ModelResponse,
  NO_USAGE,
  NOTHING,
  syntheticUserMessage,
  toolCallsOf,
  type Usage,
} from '../messages/messages.js';
import { modelName } from '../messages/model.js';
import * as rules from '../plan/rules.js';
import { controlKind, type RestartTurn, StopRun } from '../protocol/signals.js';
import { type Awaitable, ENTRY_VERSION, type EntryDraft } from '../protocol/store.js';
import { notWhole } from './finish-reasons.js';
import { callModel } from './model-call.js';
import type { Calling, ModelRun } from './model-run.js';
import { startsWith } from './tool-starts.js';

/** What the model phase came to. */
export interface Answer {
  /** The message it became; undefined until it is written. */
  message: AssistantMessage | undefined;
  readonly response: ModelResponse;
  readonly ctx: Calling;
  /** One more turn although nothing asks for it. */
  readonly forceContinue: boolean;
  readonly inject: readonly rules.Injected[];
  readonly decision: rules.MergedAction['decision'];
  readonly by: string | undefined;
  /** What `by` says about it. */
  readonly why: string | undefined;
}

/** An answer that is in the history. */
export type Phase = Answer & { readonly message: AssistantMessage };

/**
 * Gets an answer and appends it. `onError: 'restart'` begins again with the request. Whatever fails, a message that
 * was begun is ended.
 */
export function modelPhase(run: ModelRun): Promise<Phase> {
  const messageId = run.messageId(run.open.count + 1);
  if (run.turn > 1) run.request = run.agent.request(run.plan, run.turn, run.request);
  return run.plan.seesModelCalls
    ? layeredPhase(run, new LiveMessage(run, messageId))
    : plainPhase(run, messageId);
}

/** One try at an answer. Written without `await`: an async function would cost a good part more. */
function layeredPhase(run: ModelRun, live: LiveMessage): Promise<Phase> {
  const phase = new LayeredPhase(contextOf(run, live, new Scope(run.scope)));
  run.inside.add(phase.ctx._call);
  try {
    return ask(run, phase);
  } catch (error) {
    return phase.failed(error);
  }
}

function contextOf(run: ModelRun, live: LiveMessage, scope: Scope): Calling {
  return new ModelContext(
    run,
    scope,
    run.request,
    new ModelSeam(run, scope, live, run.history.length),
  ) as Calling;
}

/** What becomes of the answer that comes out of the layers. */
class LayeredPhase {
  declare readonly ctx: Calling;

  constructor(ctx: Calling) {
    this.ctx = ctx;
  }

  completed(response: ModelResponse): Awaitable<Phase> {
    this.cameOut();
    try {
      const phase = settle(this.ctx, response);
      return phase instanceof Promise ? phase.catch((error) => this.failed(error)) : phase;
    } catch (error) {
      return this.failed(error);
    }
  }

  async failed(error: unknown): Promise<Phase> {
    this.cameOut();
    return layeredPhase(this.ctx._run, await recover(this.ctx, error));
  }

  private cameOut(): void {
    const { _call: call, _run: run } = this.ctx;
    run.inside.delete(call);
    call.scope.close();
  }
}

/** The transforms of the request, and the layers around the model. */
function ask(run: ModelRun, phase: LayeredPhase): Promise<Phase> {
  const { layers, onions, rules: hooks } = run.plan;
  const { ctx } = phase;
  onions.model ??= new Onion(layers.model, callModel);
  const onion = onions.model;
  const transforms = hooks.transformContext.length > 0 || hooks.transformSystemPrompt.length > 0;
  const work = transforms
    ? transform(run, ctx).then(() => onion.enter(0, ctx))
    : Promise.resolve(onion.enter(0, ctx));
  return run.supervise(work as Promise<ModelResponse>).then(
    (response) => phase.completed(response),
    (error) => phase.failed(error),
  );
}

/** No middleware has to do with model calls, so nobody sees their context: one serves every turn of the run. */
function plainPhase(run: ModelRun, messageId: string): Promise<Phase> {
  const ctx = renewed(run, messageId);
  try {
    return callModel(ctx, PLAIN);
  } catch (error) {
    return PLAIN.failed(error, ctx);
  }
}

function renewed(run: ModelRun, messageId: string): Calling {
  const ctx = run.plainCall;
  if (ctx === undefined) {
    run.plainCall = contextOf(run, new LiveMessage(run, messageId), run.scope);
    return run.plainCall;
  }
  ctx._request = run.request;
  ctx._call.length = run.history.length;
  ctx._call.attempts = 0;
  ctx._call.live!.renew(messageId);
  return ctx;
}

const PLAIN = {
  completed(response: ModelResponse, ctx: Calling): Awaitable<Phase> {
    const shown = ctx._call.live!.finish(response, ctx) as ModelResponse;
    const phase = keep(natural(shown, ctx));
    return phase instanceof Promise ? phase.catch((error) => PLAIN.failed(error, ctx)) : phase;
  },
  async failed(error: unknown, ctx: Calling): Promise<never> {
    await giveUp(ctx, error);
    throw error;
  },
};

/** From the response of the layers to the message in the history. Waits only where a guard, hook or store does. */
function settle(ctx: Calling, response: ModelResponse): Awaitable<Phase> {
  const shown = ctx._call.live!.finish(response, ctx);
  if (shown instanceof Promise) return shown.then((one) => settleShown(ctx, one));
  return settleShown(ctx, shown);
}

function settleShown(ctx: Calling, shown: ModelResponse): Awaitable<Phase> {
  const { _run: run } = ctx;
  ctx._call.check();
  if (run.plan.rules.afterModelResponse.length === 0) {
    if (ctx._state) run.cells.stage(ctx._state);
    return keep(natural(shown, ctx));
  }
  const answer = decide(ctx, shown);
  return answer instanceof Promise ? answer.then(keep) : keep(answer);
}

/** The message that the phase begins again with; otherwise the error goes on, and a message that was begun is ended. */
async function recover(ctx: Calling, error: unknown): Promise<LiveMessage> {
  const { _run: run, _call: call } = ctx;
  const live = call.live!;
  const kind = controlKind(error);
  if (kind === 'stop') run.call.latch(error, call.latchedBy);
  if (kind === 'restart') {
    const { feedback, written } = error as RestartTurn;
    if (feedback) return askAgain(run, live, feedback);
    run.cells.stageAll(written);
    live.reset();
    return live;
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
  const said = `Your last answer was discarded, nobody has seen it. ${reason} Answer again without that.`;
  const told = await judgeInjected(run, [{ message: syntheticUserMessage(said, { source: by }), by }]);
  if (told.length === 0) {
    const stop = new StopRun('guardrail', reason);
    run.call.latch(stop, by);
    throw stop;
  }
  await appendMessages(run, stamped(told), [], 'feedback');
  return new LiveMessage(run, run.messageId(run.open.count + 1));
}

function natural(response: ModelResponse, ctx: Calling): Answer {
  const { forceContinue } = ctx;
  return {
    message: undefined,
    response,
    ctx,
    forceContinue,
    inject: NOTHING,
    decision: 'natural',
    by: undefined,
    why: undefined,
  };
}

async function transform(run: ModelRun, ctx: Calling): Promise<void> {
  const { transformContext, transformSystemPrompt } = run.plan.rules;
  if (transformContext.length > 0) {
    const given = ctx.messages;
    const steps = await rules.transformContext(transformContext, given, ctx);
    const last = steps.at(-1);
    if (last)
      ctx.messages = withoutOrphans(run, last.messages, (problems) => causedBy(steps, given, problems));
  }
  if (transformSystemPrompt.length > 0) {
    ctx.systemPrompt = await rules.transformSystemPrompt(transformSystemPrompt, ctx.systemPrompt, ctx);
  }
  ctx._call.given = ctx._request;
}

/** What `afterModelResponse` makes of the answer. Waits only where a hook does, or for a response it put in. */
function decide(ctx: Calling, response: ModelResponse): Awaitable<Answer> {
  const { _run: run, forceContinue } = ctx;
  const live = ctx._call.live!;
  // Guards have judged it. An edit in place would pass them by.
  freezeMessage(response);
  const message = Object.freeze({ ...response, id: live.messageId });
  const turn = new TurnContext(run, message, NOTHING, false);
  turn._metadata = ctx._metadata;
  turn._state = ctx._state;
  const decided = ({
    inject,
    decision,
    by,
    why,
    response: wanted,
  }: rules.MergedAction): Awaitable<Answer> => {
    // It lands after the results; who made it has no hand in it any more.
    for (const { message } of inject) freezeMessage(message);
    const answer = (final: ModelResponse): Answer => {
      // What the phase wrote is written with its message, so not before there is one.
      if (turn._state) run.cells.stage(turn._state);
      return { message: undefined, response: final, ctx, forceContinue, inject, decision, by, why };
    };
    const final = wanted === response ? response : live.finish(wanted, ctx);
    return final instanceof Promise ? final.then(answer) : answer(final);
  };
  return rules.afterModelResponse(run.plan.rules.afterModelResponse, response, turn, ctx).then(decided);
}

/** Appends the assistant message, and what guards said of its calls: after a crash they could not say it again. */
function keep(answer: Answer): Awaitable<Phase> {
  const { inject, ctx } = answer;
  if (inject.length === 0 || ctx.plan.guards.input.length === 0) return keepJudged(answer);
  return judgeInjected(ctx._run, inject).then((left) => keepJudged({ ...answer, inject: left }));
}

function keepJudged(answer: Answer): Awaitable<Phase> {
  const { response, ctx } = answer;
  const { plan, judgements } = ctx._run;
  // Whoever answered in the place of the model.
  if (response.stopReason === 'error') throw failedStream(response.model ?? modelName(ctx.model));
  if (plan.guards['tool-args'].length === 0) return write(answer, NO_VERDICTS);
  return judgements.response(response, ctx).then(({ calls }) => write(answer, calls));
}

/** Writes the message, then tells of it. What is to be injected after the results is written with it. */
function write(answer: Answer, verdicts: CallVerdicts): Awaitable<Phase> {
  const { response, inject, decision, by, why, forceContinue, ctx } = answer;
  const { _run: run } = ctx;
  const { messageId } = ctx._call.live!;
  const content = withCallIds(run, response.content, messageId);
  // Only calls made in this run cost something: an answer from a cache carries no usage of its own.
  const paid = run.claimUsage(response.usage);
  const message = assistant(response, messageId, content, paid?.usage ?? NO_USAGE);
  // What is frozen already costs as much to freeze again as to look at.
  if (response === ctx._call.frozen && message.content === response.content) Object.freeze(message);
  else freezeMessage(message);
  run.history.knows(message);
  const runs = decision === 'natural' && notWhole(message, undefined) === undefined;
  const starts = runs && startsWith(run, message, ctx._offered);
  const { runId } = run;
  const begun = starts
    ? { v: ENTRY_VERSION, at: 0, type: 'message' as const, runId, message, started: true as const }
    : { v: ENTRY_VERSION, at: 0, type: 'message' as const, runId, message };
  const costUsd = paid?.costUsd;
  const offered = offeredOf(ctx, message);
  const extra =
    costUsd !== undefined ||
    inject.length > 0 ||
    decision !== 'natural' ||
    forceContinue ||
    offered !== undefined;
  const entry: EntryDraft = extra
    ? {
        ...begun,
        ...(costUsd !== undefined && { costUsd }),
        ...(inject.length > 0 && { inject: stamped(inject) }),
        ...(offered && { offered }),
        ...(decision !== 'natural' && { follows: { decision, ...(by && { by }), ...(why && { why }) } }),
        ...(decision === 'natural' && forceContinue && { follows: { forceContinue } }),
      }
    : begun;
  const said = verdicts.size === 0 ? NOTHING : verdictEntries(ctx, message, verdicts);
  const wait = run.append([entry, ...said]);
  return wait ? wait.then(() => kept(answer, message)) : kept(answer, message);
}

/** The names of the tools the model was offered, where calls follow and they are not simply the agent's. */
function offeredOf(
  { _offered: tools, plan }: Calling,
  message: AssistantMessage,
): readonly string[] | undefined {
  if (tools === plan.tools || toolCallsOf(message).length === 0) return undefined;
  const same = tools.length === plan.tools.length && tools.every((tool, i) => tool === plan.tools[i]);
  return same ? undefined : tools.map(({ name }) => name);
}

function kept(answer: Answer, message: AssistantMessage): Phase {
  const { _run: run } = answer.ctx;
  const { runId, sessionId } = run;
  if (run.watched) run.emit({ type: 'message_end', runId, sessionId, messageId: message.id, message });
  answer.message = message;
  return answer as Phase;
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

/** There will be no response. What was cut off leaves the text that was released; otherwise nothing stays. */
async function giveUp({ _run: run, _call: call }: Calling, error: unknown): Promise<void> {
  const live = call.live!;
  const cut = controlKind(error) === 'abort' || (run.scope.aborted && error === run.scope.reason);
  const released = cut ? live.released() : [];
  if (released.length === 0) {
    live.discard();
    return;
  }
  const { runId, sessionId } = run;
  const { messageId } = live;
  const message: AssistantMessage = freezeMessage({
    role: 'assistant',
    content: released,
    usage: NO_USAGE,
    stopReason: 'aborted',
    id: messageId,
  });
  try {
    await run.append([{ type: 'message', runId, message }]);
  } catch (failure) {
    live.discard();
    throw failure;
  }
  run.emit({ type: 'message_end', runId, sessionId, messageId, message });
}
