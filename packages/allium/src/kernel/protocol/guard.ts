/** What guards are given, and what they return. */

import { invalidOption } from '../lib/errors.js';
import type { FileContent, ImageContent, Message, ModelResponse, ToolCall } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Request } from './store.js';

/** Where a guard judges. `output` is response text; `final` the text of an answer that asks for no tool. */
export type GuardPoint = 'input' | 'request' | 'output' | 'thinking' | 'tool-args' | 'tool-result' | 'final';

/** How much it matters. The kernel reports it and does nothing else with it. */
export type Severity = 'low' | 'medium' | 'high' | 'critical';

/** What was found, for whoever reads the verdict. Neither says what the text is. */
export interface Finding {
  /** For example `email` or `aws-key`: up to 64 letters, digits and `_ . : / -`. Never the text that was found. */
  readonly kind?: string;
  readonly severity?: Severity;
}

/** Text at `[start, end)` that may not pass. `replacement` stands in its place (default: the guard's). */
export interface Span extends Finding {
  readonly start: number;
  readonly end: number;
  readonly replacement?: string;
}

/** How much text is held back while it streams. */
export interface Window {
  readonly chars: number;
}

/**
 * Catches every match of up to `chars` characters (UTF-16 units), however the text is chunked. While text streams, at
 * least `chars` of it are held back, and less than `chars + max(16, chars / 4)`: it is searched in steps, not at every
 * delta. Held back longer is only a span that has begun and may still grow, with what follows it. Several guards on one
 * text stand behind each other, so what they hold back adds up. Adjacent blocks of a kind are one text; its end releases
 * everything.
 */
export function window(chars: number): Window {
  if (!Number.isInteger(chars) || chars < 1) throw invalidOption('chars', 'an integer ≥ 1', chars);
  return { chars };
}

/** What `judge` is given. */
export interface GuardSubject {
  readonly point: GuardPoint;
  /**
   * All text at this point: of a message or block, or the keys, strings and numbers of arguments, one per line. Of a
   * message at `input` and `request`: text, thinking, arguments of calls and content of the provider.
   */
  readonly text: string;
  /** Absent for the system prompt, which is judged at `request`. */
  readonly message?: Message | ModelResponse;
  readonly toolCall?: ToolCall;
  /** Parsed JSON of the arguments, at `tool-args`. Numbers with more digits than JavaScript can hold are text. */
  readonly args?: unknown;
  readonly result?: ToolResult;
  /** Images and files of the message, response or result. No text of theirs is in `text`. */
  readonly media: readonly (ImageContent | FileContent)[];
}

export type Verdict =
  | { readonly type: 'allow' }
  /** Refuses the message, the response or the call. */
  | ({ readonly type: 'deny'; readonly reason?: string } & Finding)
  /** Only at `tool-args`: a human has to agree. */
  | ({ readonly type: 'ask'; readonly request: Request } & Finding)
  /** Replaces the text; at `tool-args`, `args` replaces the arguments. */
  | ({ readonly type: 'rewrite'; readonly text?: string; readonly args?: unknown } & Finding);

/** What a span, or a verdict to deny, means. */
export type GuardAction = 'redact' | 'block' | 'stop' | 'warn' | 'feedback';

/** What a guard said and what came of it, as observers and `result.changes` have it. It never holds what was judged. */
export interface GuardVerdict extends Finding {
  /** The name of its middleware. */
  readonly guard: string;
  readonly point: GuardPoint;
  readonly action: GuardAction | 'rewrite' | 'ask';
  /** Of a span: its place in the text that this guard was shown. Several texts count as joined by a line break. */
  readonly start?: number;
  readonly end?: number;
}
