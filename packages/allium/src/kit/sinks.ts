/**
 * Sinks: what a middleware that writes calls down (a log, a recording, a cache) has to ask about guards. A middleware
 * with `sink: true` gets guarded results. The kernel does not guard requests, errors, or the progress a tool shows;
 * use these functions for those.
 */

import { internal } from '../kernel/context/context.js';
import type { CallVerdict } from '../kernel/context/run-port.js';
import { tellable } from '../kernel/guards/call-verdicts.js';
import { withheldMessages, withheldText } from '../kernel/guards/guard-model-calls.js';
import { judgeTexts, safeErrorMessage } from '../kernel/guards/guards.js';
import { type Asker, askersOf } from '../kernel/journal/merged-questions.js';
import { messageOf } from '../kernel/lib/errors.js';
import { textsIn, toStoredJson } from '../kernel/lib/json-texts.js';
import type { Message, ModelResponse } from '../kernel/messages/messages.js';
import { errorResult } from '../kernel/messages/tool-result.js';
import type { ModelRun } from '../kernel/model/model-run.js';
import type { Context, ModelContext, ToolContext } from '../kernel/protocol/contexts.js';
import { controlKind, RestartTurn } from '../kernel/protocol/signals.js';
import type { Request } from '../kernel/protocol/store.js';

export type { CallVerdict } from '../kernel/context/run-port.js';
export { hasCallVerdict, rememberVerdict } from '../kernel/guards/call-verdicts.js';
export { hasNewPlaceholders, withOriginals, withoutPlaceholders } from './placeholders.js';

/**
 * The messages of a request as guards let the model see them; of a guard's own request, only hashes. Each message is judged once per run, however often you ask.
 */
export async function guardedMessages(ctx: ModelContext): Promise<readonly Message[]> {
  const own = internal(ctx);
  const { plan, judgements } = own._run as ModelRun;
  if (!own._call.guarded) return withheldMessages(own.messages);
  if (plan.guards.request.length === 0) return own.messages;
  return judgements.requestGate.all(own.messages, own);
}

/** The system prompt of a request as guards let the model see it. */
export async function guardedPrompt(ctx: ModelContext): Promise<string> {
  const own = internal(ctx);
  const { plan, judgements } = own._run as ModelRun;
  if (!own._call.guarded) return withheldText(own.systemPrompt);
  if (plan.guards.request.length === 0) return own.systemPrompt;
  return judgements.requestGate.prompt(own.systemPrompt, own);
}

/** Do guards judge the answer of this model call? Then write no part of it before `next()` has returned all of it. */
export function judgesAnswers(ctx: ModelContext): boolean {
  return ctx.plan.guardsResponses && internal(ctx)._call.guarded;
}

/** What guards said about one tool call of an answer, as JSON. */
export interface StoredVerdict {
  /** Which call of the answer, from 0. */
  readonly call: number;
  /** It was refused. */
  readonly deny?: CallVerdict['deny'];
  /** A human has to agree. */
  readonly ask?: StoredAsk & {
    /** Others who want to ask about the same call. */
    readonly also?: readonly StoredAsk[];
  };
}

/** A question of a guard about a call, as JSON. */
export interface StoredAsk {
  readonly request: Omit<Request, 'onRequest'>;
  readonly by: string;
}

/** What guards said about the tool calls of an answer they have judged: those they refused or want to ask about. */
export async function verdictsOf(
  response: ModelResponse,
  ctx: ModelContext,
): Promise<readonly StoredVerdict[]> {
  const own = internal(ctx);
  const { plan, judgements } = own._run;
  if (plan.guards['tool-args'].length === 0 || !own._call.guarded) return [];
  const { calls } = await judgements.response(response, own);
  return [...calls].map(([block, said]) => {
    const call = response.content.slice(0, block).filter(({ type }) => type === 'tool-call').length;
    const { deny, ask } = tellable(said, own);
    if (!ask) return { call, deny };
    const [first, ...also] = askersOf(ask).map(storedAsk) as [StoredAsk, ...StoredAsk[]];
    return { call, ask: { ...first, ...(also.length > 0 && { also }) } };
  });
}

function storedAsk({ request: { onRequest: _, ...request }, by }: Asker): StoredAsk {
  return { request: { ...request, details: toStoredJson(request.details) }, by };
}

/** Why a guard with the action `feedback` refused the answer of a model, and the guard's name. */
export interface AnswerFeedback {
  /** What the model is told. */
  readonly reason: string;
  readonly by: string;
}

/** What `next()` of a model call threw, if a guard refused the answer and has the model asked again. */
export function feedbackOf(error: unknown): AnswerFeedback | undefined {
  return controlKind(error) === 'restart' ? (error as RestartTurn).feedback : undefined;
}

/**
 * Refuses the answer of this model call as a guard with the action `feedback` does: it is discarded, and the model is
 * told why and asked again. For a sink that answers from a recording.
 */
export function throwFeedback(feedback: AnswerFeedback, ctx: ModelContext): never {
  const { reason, by } = feedback;
  const signal = new RestartTurn(undefined, [], { reason, by });
  internal(ctx)._latch(signal, by);
  throw signal;
}

/** Do guards judge what tools show, return or throw before the model reads it? */
export function judgesResults(ctx: ToolContext): boolean {
  return ctx.plan.guards['tool-result'].length > 0;
}

/** May all texts inside this value be written down? Not if a guard objects to one, or can't say at once. */
export function isTellable(value: unknown, ctx: Context): boolean {
  return textsIn(value).every((text) => safeErrorMessage(text, ctx) === text);
}

/** What guards made of the message of an error that becomes the result of a call. */
export interface JudgedFailure {
  /** The message after the guards. */
  readonly text: string;
  /** Something was removed from it. */
  readonly changed: boolean;
  /** A guard refused it; the model reads this instead. */
  readonly refused?: string;
}

/**
 * Asks guards about an error of a tool, whose message becomes the result of the call. Rejects if a guard ends the
 * run.
 */
export async function judgeFailure(error: unknown, ctx: ToolContext): Promise<JudgedFailure> {
  const { toolCall, plan } = ctx;
  const message = messageOf(error);
  const subject = { point: 'tool-result', toolCall, result: errorResult(message) } as const;
  const { texts, changed, deny } = await judgeTexts(
    plan.guards['tool-result'],
    subject,
    [[message]],
    internal(ctx),
  );
  return { text: texts.flat().join(''), changed, refused: deny?.reason };
}
