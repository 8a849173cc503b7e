/** Guards on whole messages, and on results and progress of tools. */
import type { Context } from './context.js';
import {
  type GuardTable,
  judge,
  type PlannedGuard,
  type Refusal,
  redact,
  type Subject,
  skipOrThrow,
} from './guards.js';
import { asJson, textsIn, withTexts } from './json-texts.js';
import type { Message, ModelResponse, TextContent, ToolCall, ToolContent } from './messages.js';
import type { GuardPoint } from './middleware.js';
import type { ToolResult } from './tool.js';

/** The texts of a message or result with what the guards of a point left of them. */
async function judgeContent<T extends { readonly content: readonly { readonly type: string }[] }>(
  guards: readonly PlannedGuard[],
  subject: Subject,
  owner: T,
  ctx: Context,
): Promise<{ owner: T; rewritten: boolean; deny?: Refusal }> {
  const texts = owner.content
    .filter((part) => part.type === 'text')
    .map((part) => (part as TextContent).text);
  const judged = await judge(guards, subject, texts, ctx);
  if (judged.deny || !judged.changed) return { owner, rewritten: false, deny: judged.deny };
  let i = 0;
  const content = owner.content.map((part) =>
    part.type === 'text' ? { ...part, text: judged.texts[i++] ?? '' } : part,
  );
  return { owner: { ...owner, content }, rewritten: true };
}

export async function judgeMessage(
  table: GuardTable,
  point: 'input' | 'request',
  message: Message,
  ctx: Context,
): Promise<{ owner: Message; deny?: Refusal }> {
  return judgeContent(table[point], { point, message }, message, ctx);
}

/**
 * A result as the guards leave it. Its details are searched like its text; where a judge rewrote or refused the
 * text they go, because nobody knows what of it they repeat.
 */
export async function judgeToolResult(
  table: GuardTable,
  toolCall: ToolCall,
  result: ToolResult,
  ctx: Context,
): Promise<ToolResult> {
  const guards = table['tool-result'];
  const subject: Subject = { point: 'tool-result', toolCall, result };
  const { owner, rewritten, deny } = await judgeContent(guards, subject, result, ctx);
  if (deny) return withheld(deny);
  const { details: given, ...rest } = owner;
  if (given === undefined) return owner;
  if (rewritten && guards.some(({ guard }) => guard.judge)) return rest;
  const cleaned = redactDetails(guards, given, ctx);
  if (cleaned.deny) return withheld(cleaned.deny);
  return cleaned.value === undefined ? rest : { ...rest, details: cleaned.value };
}

function withheld({ reason }: Refusal): ToolResult {
  return { content: [{ type: 'text', text: reason }], isError: true };
}

/** Progress of a tool, as far as guards that can answer at once allow it; otherwise nothing is shown. */
export function judgeUpdate(
  table: GuardTable,
  content: readonly ToolContent[],
  details: unknown,
  ctx: Context,
): { update: readonly ToolContent[]; details?: unknown } | undefined {
  const guards = table['tool-result'];
  if (guards.some((planned) => planned.guard.judge)) return undefined;
  let update = content;
  for (const planned of guards) {
    try {
      const seen = update.map((part) =>
        part.type === 'text' ? redact(planned, 'tool-result', part.text, ctx) : undefined,
      );
      if (seen.some((one) => one?.deny)) return undefined;
      update = update.map((part, i) => (seen[i] ? { ...(part as TextContent), text: seen[i].text } : part));
    } catch (error) {
      skipOrThrow(planned, error, ctx);
    }
  }
  if (details === undefined) return { update };
  const cleaned = redactDetails(guards, details, ctx);
  return cleaned.deny ? undefined : { update, details: cleaned.value };
}

/**
 * What applications are told beside the text of a result, without what guards found in it. It is the JSON it would be
 * stored as: nobody can search what else a value may hold.
 */
function redactDetails(
  guards: readonly PlannedGuard[],
  details: unknown,
  ctx: Context,
): { value: unknown; deny?: Refusal } {
  return redactValue(guards, 'tool-result', guards.length === 0 ? details : asJson(details), ctx);
}

/** Probabilities of tokens spell the whole text out, in pieces that no guard knows. */
const SPELLS = /logprobs/i;

/**
 * A response with what guards left of its content. Its metadata may quote what is gone, so it is searched too. Where a
 * judge wrote anew nobody knows what quotes it, and no text of it stays. Numbers do: adapters count by them.
 */
export function withContent<R extends ModelResponse>(
  table: GuardTable,
  points: readonly GuardPoint[],
  response: R,
  { content, rewritten }: { readonly content: ModelResponse['content']; readonly rewritten: boolean },
  ctx: Context,
): R {
  const { metadata, ...rest } = response;
  if (metadata === undefined) return { ...response, content };
  let value = asJson(metadata, (key, item) =>
    SPELLS.test(key) || (rewritten && typeof item === 'string') ? undefined : item,
  );
  for (const point of points) {
    const cleaned = redactValue(table[point], point, value, ctx);
    value = cleaned.deny ? undefined : cleaned.value;
  }
  return { ...rest, content, ...(value !== undefined && { metadata: value }) } as R;
}

/** A JSON value without what guards found in its texts; the same one if they found nothing. */
export function redactValue(
  guards: readonly PlannedGuard[],
  point: GuardPoint,
  given: unknown,
  ctx: Context,
): { value: unknown; deny?: Refusal } {
  let value = given;
  for (const planned of guards) {
    if (!planned.guard.find) continue;
    try {
      const texts = textsIn(value);
      const seen = texts.map((text) => redact(planned, point, text, ctx));
      const deny = seen.find((one) => one.deny)?.deny;
      if (deny) return { value, deny };
      if (seen.some((one, i) => one.text !== texts[i]))
        value = withTexts(
          value,
          seen.map((one) => one.text),
        );
    } catch (error) {
      skipOrThrow(planned, error, ctx);
    }
  }
  return { value };
}
