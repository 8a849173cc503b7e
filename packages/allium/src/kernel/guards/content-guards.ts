/** Guards on whole messages, and on results and progress of tools. */

import type { Context, ToolContext } from '../context/context.js';
import { isJson } from '../lib/frozen-json.js';
import {
  isSameList,
  readArguments,
  type Text,
  textsOfValue,
  toStoredJson,
  unescaped,
} from '../lib/json-texts.js';
import { type Part, readable, rewrittenContent, saidIn, withoutMetadata } from '../messages/content-texts.js';
import type { AssistantContent, Message, ModelResponse, ToolContent } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { GuardPoint } from '../protocol/guard.js';
import type { PlannedGuard } from '../protocol/middleware.js';
import { judgeTexts, type Left, redact, skipOrThrow } from './guards.js';
import type { Refusal } from './refusal.js';

/** Judges a message: all of its text, including thinking, calls and details. */
export async function judgeMessage(
  point: 'input' | 'request',
  message: Message,
  ctx: Context,
  guards = ctx.plan.guards[point],
): Promise<{ owner: Message; deny?: Refusal }> {
  const given = withoutFound(searchable(message), point, ctx, guards);
  const said = saidIn<Part>(given.content, given.role);
  const judged = await judgeTexts(guards, { point, message }, said.texts, ctx);
  const { rewritten, texts: left, deny } = judged;
  if (deny) return { owner: given, deny };
  let owner = given;
  if (judged.changed) {
    const content = rewritten ? rewrittenContent(given, left.flat().join('')) : said.put(left);
    owner =
      given.role === 'assistant'
        ? withContent([point], given, { content: content as AssistantContent[], rewritten }, ctx, guards)
        : ({ ...given, content } as Message);
  }
  if (owner.role !== 'tool' || owner.details === undefined) return { owner };
  const { details, ...rest } = owner;
  if (rewritten) return { owner: rest };
  const { value, deny: objection } = redactValue(point, details, ctx, false, guards);
  return { owner: value === details ? owner : { ...rest, details: value }, deny: objection };
}

/** How an unjudged message is shown meanwhile: without what `find` finds, or empty if a guard has a judge. */
export function unjudged(message: Message, ctx: Context): Message {
  const guards = ctx.plan.guards.input;
  if (guards.length === 0) return message;
  if (message.role === 'user' && !guards.some(({ guard }) => guard.judge)) {
    const said = saidIn(message.content, 'user');
    const { texts, deny } = redactTexts('input', said.texts, ctx, true);
    if (!deny) return withoutFound({ ...message, content: said.put(texts) }, 'input', ctx, guards);
  }
  return { id: message.id, role: 'user', content: [] };
}

/** The message with all of it in a form that guards can search. */
function searchable(message: Message): Message {
  if (message.role === 'tool') {
    const { details, ...rest } = message;
    if (details === undefined || isJson(details)) return message;
    const json = toStoredJson(details);
    return json === undefined ? rest : { ...rest, details: json };
  }
  if (message.role === 'user') return message;
  const content = message.content.map((part) => {
    if (part.type === 'provider') return readable(part);
    if (part.type !== 'tool-call') return part;
    const { kept = part.arguments } = readArguments(part.arguments) ?? {};
    return kept === part.arguments ? part : { ...part, arguments: kept };
  });
  return isSameList(content, message.content) ? message : { ...message, content };
}

/** The message with its metadata searched: that may quote what guards remove, and is written and sent like the text. */
function withoutFound(
  message: Message,
  point: GuardPoint,
  ctx: Context,
  guards: readonly PlannedGuard[],
): Message {
  const content = cleanParts<Part>(message.content, point, ctx, guards);
  const owner = content === message.content ? message : ({ ...message, content } as Message);
  if (owner.role === 'tool') return owner;
  if (owner.role === 'user') {
    const { metadata, ...rest } = owner;
    const { value, deny } = redactValue(point, metadata, ctx, false, guards);
    return value === metadata && !deny ? owner : ({ ...rest, ...(!deny && { metadata: value }) } as Message);
  }
  const whole = { content: owner.content, rewritten: false };
  return withContent([point], owner, whole, ctx, guards);
}

/** Judges a tool result. Its details are searched like its text, or removed if a judge rewrote the text they may repeat. */
export async function judgeToolResult(result: ToolResult, ctx: ToolContext): Promise<ToolResult> {
  const guards = ctx.plan.guards['tool-result'];
  const { toolCall } = ctx;
  const clean = cleanParts(result.content, 'tool-result', ctx);
  const said = saidIn(clean, 'tool');
  const judged = await judgeTexts(guards, { point: 'tool-result', toolCall, result }, said.texts, ctx);
  if (judged.deny) return withheld(judged.deny);
  const content = judged.changed ? said.put(judged.texts) : clean;
  const { details: given, ...rest } = { ...result, content };
  if (judged.rewritten)
    return { ...rest, content: content.map((part) => withoutMetadata(part) as ToolContent) };
  if (given === undefined) return rest;
  const cleaned = redactDetails(given, ctx);
  if (cleaned.deny) return withheld(cleaned.deny);
  return cleaned.value === undefined ? rest : { ...rest, details: cleaned.value };
}

function withheld({ reason }: Refusal): ToolResult {
  return { content: [{ type: 'text', text: reason }], isError: true };
}

/**
 * Progress of a tool without what `find` finds. If a guard refuses it or has a judge, nothing is shown. `quiet`: report
 * nothing, because events of a child only exist if somebody watches.
 */
export function judgeUpdate(
  content: readonly ToolContent[],
  details: unknown,
  ctx: Context,
  quiet = false,
): { update: readonly ToolContent[]; details?: unknown } | undefined {
  if (ctx.plan.guards['tool-result'].some((planned) => planned.guard.judge)) return undefined;
  const clean = cleanParts(content, 'tool-result', ctx);
  const said = saidIn(clean, 'tool');
  const { texts, deny } = redactTexts('tool-result', said.texts, ctx, quiet);
  if (deny) return undefined;
  const update = texts === said.texts ? clean : said.put(texts);
  if (details === undefined) return { update };
  const cleaned = redactDetails(details, ctx, quiet);
  return cleaned.deny ? undefined : { update, details: cleaned.value };
}

/** The details of a result without what guards found, as the JSON that would be stored: other values can't be searched. */
function redactDetails(details: unknown, ctx: Context, quiet = false): { value: unknown; deny?: Refusal } {
  if (ctx.plan.guards['tool-result'].length === 0) return { value: details };
  return redactValue(
    'tool-result',
    toStoredJson(details, quiet ? withPlainArguments : undefined),
    ctx,
    quiet,
  );
}

/** For calls in events of a sub-agent: searches their arguments unescaped. */
function withPlainArguments(key: string, value: unknown): unknown {
  if (key !== 'arguments' || typeof value !== 'string' || !value.includes('\\')) return value;
  const read = readArguments(value);
  return read ? JSON.stringify(read.args) : unescaped(value);
}

/** Log probabilities spell out the whole text, token by token, where no guard would find it. */
const SPELLS = /logprobs/i;

function withoutSpelling(key: string, value: unknown): unknown {
  return SPELLS.test(key) ? undefined : value;
}

/**
 * A response with what guards left of its content. Its metadata may quote what is gone, so it is searched too. If a judge
 * rewrote the content, all texts of the metadata are removed. Numbers stay, since adapters need them.
 */
export function withContent<R extends ModelResponse>(
  points: readonly GuardPoint[],
  response: R,
  { content, rewritten }: { readonly content: ModelResponse['content']; readonly rewritten: boolean },
  ctx: Context,
  guards?: readonly PlannedGuard[],
): R {
  const { metadata, ...rest } = response;
  if (metadata === undefined) return { ...response, content };
  const isNew = content !== response.content;
  const given = toStoredJson(metadata, (key, item) => {
    if (!isNew) return item;
    return rewritten && typeof item === 'string' ? undefined : withoutSpelling(key, item);
  });
  let value = given;
  for (const point of points) {
    const cleaned = redactValue(point, value, ctx, false, guards);
    value = cleaned.deny ? undefined : cleaned.value;
  }
  if (!isNew && value === given) return response;
  return { ...rest, content, ...(value !== undefined && { metadata: value }) } as R;
}

/** The part, without its metadata if a guard finds something there: a redacted half would look like the provider's. */
export function withCleanMetadata<P extends Part>(
  part: P,
  point: GuardPoint,
  ctx: Context,
  guards = ctx.plan.guards[point],
): P {
  if (part.metadata === undefined || guards.length === 0) return part;
  const given = toStoredJson(part.metadata);
  const { value, deny } = redactValue(point, given, ctx, true, guards);
  return given !== undefined && value === given && !deny ? part : (withoutMetadata(part) as P);
}

/** The parts, each without its metadata if a guard finds something there; the same list if no guard does. */
function cleanParts<P extends Part>(
  content: readonly P[],
  point: GuardPoint,
  ctx: Context,
  guards = ctx.plan.guards[point],
): readonly P[] {
  if (content.every(({ metadata }) => metadata === undefined)) return content;
  const clean = content.map((part) => withCleanMetadata(part, point, ctx, guards));
  return isSameList(clean, content) ? content : clean;
}

/** A JSON value without what guards found in its texts; the same one if they found nothing. */
export function redactValue(
  point: GuardPoint,
  given: unknown,
  ctx: Context,
  quiet = false,
  guards = ctx.plan.guards[point],
): { value: unknown; deny?: Refusal } {
  const said = textsOfValue(given);
  const { texts, deny } = redactTexts(point, said.texts, ctx, quiet, guards);
  if (texts === said.texts) return { value: given, deny };
  return { value: toStoredJson(said.put(texts), withoutSpelling), deny };
}

/** Texts without what guards found in them; the same list if they found nothing. No judge is asked. */
function redactTexts(
  point: GuardPoint,
  given: readonly Text[],
  ctx: Context,
  quiet = false,
  guards = ctx.plan.guards[point],
): Left {
  let texts = given;
  for (const planned of guards) {
    if (!planned.guard.find) continue;
    try {
      const left = redact(planned, point, texts, ctx, quiet);
      if (left.deny) return { texts, deny: left.deny };
      texts = left.texts;
    } catch (error) {
      if (!quiet) skipOrThrow(planned, error, ctx);
      else if (!planned.open) return { texts, deny: { reason: '', by: planned.name } };
    }
  }
  return { texts };
}
