/** What is sent to the model: the history or what layers assigned, as rules and guards of the request leave it. */

import { authorOf } from '../context/request-changes.js';
import { withoutOrphans } from '../inbox/orphans.js';
import { isWithheld } from '../journal/session-state.js';
import type { Message } from '../messages/messages.js';
import type { ModelRequest, ModelSettings } from '../messages/model.js';
import { toolSpecs } from '../plan/compose.js';
import { convertToLlm } from '../plan/rules.js';
import type { Calling } from './model-run.js';

/** The messages to send; undefined for the plain history. */
export type Sent = readonly Message[] | undefined;

/**
 * The request for a model: plain properties, since a model that wraps another passes on `{ ...request, settings }`.
 */
export function requestOf(ctx: Calling, messages: Sent, settings: ModelSettings): ModelRequest {
  const { plan } = ctx._run;
  const systemPrompt = ctx._extra?.prompt ?? ctx.systemPrompt;
  const tools = ctx.tools === plan.tools ? plan.specs : toolSpecs(ctx.tools);
  return { messages: messages ?? sentIn(ctx), systemPrompt, tools, settings };
}

/** Does anything stand between the history and the request? */
export function changesRequest({ _request: { messages }, _run: { plan, state } }: Calling): boolean {
  return (
    messages !== undefined ||
    plan.rules.convertToLlm.length > 0 ||
    plan.guards.request.length > 0 ||
    state.withheld
  );
}

/** Applies rules and guards of the request. */
export async function requestMessages(ctx: Calling): Promise<Sent> {
  const run = ctx._run;
  const { guards, rules } = run.plan;
  let { withheld } = run.state;
  let { messages } = ctx._request;
  if (messages !== undefined)
    messages = withoutOrphans(run, messages, (problems) => [
      authorOf(ctx, (request) => problems(request.messages ?? sentIn(ctx)).length > 0)?.middleware ??
        'a model layer',
    ]);
  if (rules.convertToLlm.length > 0 && ctx._call.converted) messages = await converted(messages, ctx);
  if (guards.request.length > 0 && ctx._call.guarded) {
    messages = messages
      ? await run.judgements.requestGate.all(messages, ctx)
      : await run.judgements.requestGate.history(sentIn(ctx), ctx);
    ctx._extras().prompt = await run.judgements.requestGate.prompt(ctx.systemPrompt, ctx);
    withheld ||= run.judgements.requestGate.withheld;
  }
  if (withheld) messages = (messages ?? sentIn(ctx)).flatMap(withoutWithheld);
  return messages;
}

/** Meanwhile the context is marked, so that the hook's own model calls aren't converted in turn. */
async function converted(messages: Sent, ctx: Calling): Promise<readonly Message[]> {
  const { _run: run } = ctx;
  const given = messages ?? sentIn(ctx);
  const extra = ctx._extras();
  extra.converting = true;
  try {
    const made = await convertToLlm(run.plan.rules.convertToLlm, given, ctx);
    return made ? withoutOrphans(run, made.messages, () => [made.by]) : given;
  } finally {
    extra.converting = false;
  }
}

/** What is sent if nobody assigned anything else. */
function sentIn({ _run: run, _call: { length } }: Calling): readonly Message[] {
  return run.history.request(length);
}

const sendable = new WeakMap<Message, readonly Message[]>();

/** The message without thinking that must not be sent back; no message if it has nothing else. */
function withoutWithheld(message: Message): readonly Message[] | Message {
  if (message.role !== 'assistant' || !message.content.some(isWithheld)) return message;
  let made = sendable.get(message);
  if (!made) {
    const content = message.content.filter((part) => !isWithheld(part));
    made = content.length > 0 ? [Object.freeze({ ...message, content: Object.freeze(content) })] : [];
    sendable.set(message, made);
  }
  return made;
}
