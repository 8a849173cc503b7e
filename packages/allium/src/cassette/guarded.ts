/**
 * What a sink has to know about guards. The kernel hands a sink guarded results; what goes in, what breaks off and
 * what a tool shows meanwhile it does not, so that is asked here, and nowhere else.
 */
import type { Context, ModelContext, ToolContext } from '../kernel/context/context.js';
import { type Judged, judge, toldError } from '../kernel/guards/guards.js';
import { messageOf } from '../kernel/lib/errors.js';
import { asJson, textsIn } from '../kernel/lib/json-texts.js';
import type { Message, ModelResponse } from '../kernel/protocol/messages.js';
import { errorResult } from '../kernel/protocol/tool.js';
import { tellable } from '../kernel/tools/tool-approval.js';
import type { StoredVerdict } from './format.js';

/** The messages of a request without what guards keep from the model. Each is judged once per run in any case. */
export async function guardedMessages(ctx: ModelContext): Promise<readonly Message[]> {
  const { plan, requestGate } = ctx._run;
  if (plan.guards.request.length === 0 || !ctx._call.guarded) return ctx.messages;
  return requestGate.all(ctx.messages, ctx);
}

/** The system prompt of a request, likewise. */
export async function guardedPrompt(ctx: ModelContext): Promise<string> {
  const { plan, requestGate } = ctx._run;
  if (plan.guards.request.length === 0 || !ctx._call.guarded) return ctx.systemPrompt;
  return requestGate.prompt(ctx.systemPrompt, ctx);
}

/** Is an answer judged, so that a part of it may not be written before all of it was? */
export function judgesAnswers(ctx: ModelContext): boolean {
  return ctx._run.plan.guardsResponses && ctx._call.guarded;
}

/** What guards said of the calls of an answer that they have judged. */
export async function verdictsOn(
  response: ModelResponse,
  ctx: ModelContext,
): Promise<readonly StoredVerdict[]> {
  const { plan, judgements } = ctx._run;
  if (plan.guards['tool-args'].length === 0 || !ctx._call.guarded) return [];
  const { calls } = await judgements.response(response, ctx);
  return [...calls].map(([block, said]) => {
    const call = response.content.slice(0, block).filter(({ type }) => type === 'tool-call').length;
    const { deny, ask } = tellable(said, ctx);
    if (!ask) return { call, deny };
    const { title, details, timeoutMs } = ask.request;
    return { call, ask: { request: { title, details: asJson(details), timeoutMs }, by: ask.by } };
  });
}

/** Is what a tool shows, returns or throws judged before the model reads it? */
export function judgesResults(ctx: ToolContext): boolean {
  return ctx._run.plan.guards['tool-result'].length > 0;
}

/** May all texts of this be written? Not if a guard objects to one, or could not say so at once. */
export function mayBeTold(value: unknown, ctx: Context): boolean {
  return textsIn(value).every((text) => toldError(text, ctx) === text);
}

/** What guards leave of the message of an error that becomes the result of a call. */
export function judgeFailure(error: unknown, ctx: ToolContext): Promise<Judged> {
  const { toolCall, _run: run } = ctx;
  const message = messageOf(error);
  const subject = { point: 'tool-result', toolCall, result: errorResult(message) } as const;
  return judge(run.plan.guards['tool-result'], subject, [[message]], ctx);
}
