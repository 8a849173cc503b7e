/** What guards said about recorded calls when they saw them whole. */

import type { Cleaner } from '../../cassette/clean.js';
import type { StoredAnswer } from '../../cassette/format.js';
import { partsOfStored } from '../../cassette/pieces.js';
import { type AssistantContent, type ModelContext, type ToolCall, toolCallsOf } from '../../index.js';
import { ResponseAssembler, rememberVerdict } from '../../kit/index.js';

/** Why calls do not run, by their text. */
export type Refused = Map<string, string>;

/** Holds the guards of this run to what was said. If it has no guards for calls, those are noted in `refused`. */
export function holdGuards(
  answer: StoredAnswer,
  restore: Cleaner,
  ctx: ModelContext,
  refused: Refused,
): void {
  if (!('finish' in answer) || !answer.verdicts) return;
  const assembler = new ResponseAssembler('The recording');
  for (const part of partsOfStored(answer.content, restore)) assembler.add(part);
  const calls = toolCallsOf({ content: assembler.content as readonly AssistantContent[] });
  for (const { call: index, deny, ask } of restore.value(answer.verdicts)) {
    const call = calls[index]!;
    if (ctx.plan.guards['tool-args'].length > 0) rememberVerdict(call, call.arguments, { deny, ask }, ctx);
    else refused.set(saying(call), deny?.reason ?? `Not run: guard "${ask!.by}" wanted somebody to agree.`);
  }
}

export function saying({ name, arguments: args }: ToolCall): string {
  return `${name}\n${args}`;
}
