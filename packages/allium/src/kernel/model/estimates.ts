/** Estimates of what a call will use, or has used, if nobody reports it. */

import { type Message, NO_USAGE, type Usage, UsageTotal } from '../messages/messages.js';
import type { ToolSpec } from '../messages/model.js';
import type { ModelContext } from '../protocol/contexts.js';
import { type Tool, toolSpecs } from '../protocol/tool.js';
import type { ResponseAssembler } from '../stream/assemble.js';
import type { Reservation } from './budget.js';

/** Estimates the input tokens of a request: of these messages, or of those the context has, with its prompt and tools. */
export function estimateInputTokens(ctx: ModelContext, messages?: readonly Message[]): number {
  const { systemPrompt, tools, history } = ctx;
  return estimateTokens(messages ?? ctx.messages, systemPrompt.length + charsOfTools(tools), history);
}

const counted = new WeakMap<readonly ToolSpec[] | ToolSpec, number>();

/** Counted once for each list and each tool: most calls are offered the same. */
function charsOfTools(tools: readonly Tool[]): number {
  const specs = toolSpecs(tools);
  return remembered(specs, () =>
    specs.reduce((sum, spec) => sum + remembered(spec, () => JSON.stringify(spec).length), 0),
  );
}

function remembered(key: readonly ToolSpec[] | ToolSpec, count: () => number): number {
  let chars = counted.get(key);
  if (chars === undefined) {
    chars = count();
    counted.set(key, chars);
  }
  return chars;
}

export function charsIn({ content }: ResponseAssembler): number {
  let chars = 0;
  for (const block of content) chars += (block.text?.length ?? 0) + (block.arguments?.length ?? 0);
  return chars;
}

export function estimated(
  ctx: ModelContext,
  messages: readonly Message[] | undefined,
  reservation: Reservation | undefined,
  chars: number,
): Usage {
  const reserved = reservation ? reservation.tokens - reservation.maxOutputTokens : Number.NaN;
  const input = Number.isFinite(reserved) ? reserved : countable(ctx, messages);
  const outputTokens = Math.ceil(chars / 4);
  return { ...NO_USAGE, inputTokens: input, outputTokens, totalTokens: input + outputTokens };
}

/** The token counts the model left out, taken from `estimate`. They are added to those it reported. */
export function estimateMissing(
  { cacheRead, cacheWrite }: Usage,
  { inputTokens, outputTokens, totalTokens }: Partial<Usage>,
  estimate: Usage,
): Usage {
  const cached = cacheRead + cacheWrite;
  // The total is known: only how much was read and how much written has to be guessed.
  if (totalTokens !== undefined) {
    const both = Math.max(0, totalTokens - cached);
    const written = Math.min(both, estimate.outputTokens);
    return { ...NO_USAGE, inputTokens: both - written, outputTokens: written };
  }
  const read = inputTokens === undefined ? Math.max(0, estimate.inputTokens - cached) : 0;
  const written = outputTokens === undefined ? estimate.outputTokens : 0;
  return { ...NO_USAGE, inputTokens: read, outputTokens: written, totalTokens: read + written };
}

export function summed(told: Usage, untold: Usage): Usage {
  const total = new UsageTotal();
  total.add(told);
  total.add(untold);
  return total.snapshot();
}

/** The input, or 0 if it can't be counted: the error that is about to be reported matters more. */
function countable(ctx: ModelContext, messages: readonly Message[] | undefined): number {
  try {
    return estimateInputTokens(ctx, messages);
  } catch {
    return 0;
  }
}

/**
 * A rough count of the tokens of a request: what the last answer reported, plus a quarter of the characters since.
 * All characters are counted if the request was shortened meanwhile, since the report no longer describes it. The
 * same if the model reports only what it wrote, but then its report is the least: that much is sent back.
 */
export function estimateTokens(
  messages: readonly Message[],
  fixedChars: number,
  history: readonly Message[],
): number {
  let chars = 0;
  let counts = false;
  let least = 0;
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i]!;
    if (!counts && message.role === 'assistant' && message.usage && message.usage.totalTokens > 0) {
      const whole = message.usage.totalTokens > message.usage.outputTokens;
      if (whole || least === 0) {
        if (keepsAll(messages, i, history)) {
          const told = reportedBy(message, message.usage) + Math.ceil(chars / 4);
          if (whole) return Math.max(told, least);
          least = told;
        } else counts = true;
      }
    }
    chars += charsOfMessage(message);
  }
  return Math.max(Math.ceil((chars + fixedChars) / 4), least);
}

/** What an answer reported, plus its own length if the model reports only what it read. */
function reportedBy(answer: Message, { totalTokens, inputTokens, cacheRead, cacheWrite }: Usage): number {
  const written = totalTokens > inputTokens + cacheRead + cacheWrite;
  return written ? totalTokens : totalTokens + Math.ceil(charsOfMessage(answer) / 4);
}

/** Is everything that came before the answer at `end` still in the request? Other messages may have been put in. */
function keepsAll(messages: readonly Message[], end: number, history: readonly Message[]): boolean {
  if (messages === history) return true;
  const { content: answer } = messages[end]!;
  let at = 0;
  for (const { content } of history) {
    if (content === answer) return true;
    while (at < end && messages[at]!.content !== content) at++;
    if (at++ >= end) return false;
  }
  return false;
}

function charsOfMessage(message: Message): number {
  let chars = 8;
  for (const part of message.content) {
    if (part.type === 'text' || part.type === 'thinking') chars += part.text.length;
    else if (part.type === 'tool-call') chars += part.name.length + part.arguments.length;
    else chars += 4000;
  }
  return chars;
}
