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
import type { Message, TextContent, ToolCall, ToolContent } from './messages.js';
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
  if (owner.details === undefined) return owner;
  if (rewritten && guards.some(({ guard }) => guard.judge)) {
    const { details: _, ...rest } = owner;
    return rest;
  }
  const cleaned = redactDetails(guards, owner.details, ctx);
  if (cleaned.deny) return withheld(cleaned.deny);
  return cleaned.details === owner.details ? owner : { ...owner, details: cleaned.details };
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
  return cleaned.deny ? undefined : { update, details: cleaned.details };
}

/** What applications are told beside the text of a result, without what guards found in it. */
function redactDetails(
  guards: readonly PlannedGuard[],
  given: unknown,
  ctx: Context,
): { details: unknown; deny?: Refusal } {
  let details = given;
  for (const planned of guards) {
    if (!planned.guard.find) continue;
    try {
      const json = asJson(details);
      const texts = textsIn(json);
      const seen = texts.map((text) => redact(planned, 'tool-result', text, ctx));
      const deny = seen.find((one) => one.deny)?.deny;
      if (deny) return { details, deny };
      if (seen.some((one, i) => one.text !== texts[i]))
        details = withTexts(
          json,
          seen.map((one) => one.text),
        );
    } catch (error) {
      skipOrThrow(planned, error, ctx);
    }
  }
  return { details };
}
