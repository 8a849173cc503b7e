/**
 * What a sink has to know about guards. The kernel hands a sink guarded results; what goes in, what breaks off and
 * what a tool shows meanwhile it does not, so that is asked here, and nowhere else.
 */
import type { ModelContext, ToolContext } from '../kernel/context.js';
import type { Message } from '../kernel/messages.js';

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

/** May a part of an answer be written before guards have judged all of it? */
export function judgesAnswers(ctx: ModelContext): boolean {
  return ctx._run.plan.guardsResponses && ctx._call.guarded;
}

/** May the progress of a tool be written as it is? */
export function judgesProgress(ctx: ToolContext): boolean {
  return ctx._run.plan.guards['tool-result'].length > 0;
}
