/** What guards declare, are given and return. */

import { invalidOption } from '../lib/errors.js';
import type { FileContent, ImageContent, Message, ModelResponse, ToolCall } from '../messages/messages.js';
import type { Context } from './contexts.js';
import type { Awaitable, Request } from './store.js';
import type { ToolResult } from './tool-result.js';

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

/**
 * Judges text and calls at fixed points, wherever its middleware stands in the list.
 *
 * Contract: `find` is pure and looks only at the text it is given; it may be called again with more text.
 * What it throws means nothing more is released (or, with `onFail: 'open'`, that this guard is skipped).
 */
export interface Guard {
  readonly on: readonly GuardPoint[];
  /** @default 'full' */
  readonly hold?: Window | 'full';
  /** `ctx.from`: matches that begin before it are already decided and are ignored. */
  find?(text: string, ctx: GuardContext): readonly Span[];
  /** Judges the whole text or call, once it is complete. */
  judge?(subject: GuardSubject, ctx: GuardContext): Awaitable<Verdict | void>;
  /**
   * What a span means: `redact` cuts it, `block` refuses the whole, `stop` ends the run, `warn` only reports. `feedback`,
   * for what the model answered, discards the response, tells the model why and asks it again. @default 'redact'
   */
  readonly action?: GuardAction;
  /** How often the model is asked again in a turn, all guards together, before `feedback` refuses like `block`. @default 2 */
  readonly maxFeedback?: number;
  /**
   * Judges what a run is started with beside the first model call, not before it. Nothing of the answer is shown, written or
   * run before it has spoken; a refusal aborts the call. For a `judge` on `['input']` that calls a model. @default false
   */
  readonly parallel?: boolean;
  /** Stands where a span was cut. @default '[redacted]' */
  readonly replacement?: string;
  /** Gives back what it replaced by placeholders, to those who may have it. */
  readonly restore?: Restore;
}

/**
 * Originals for placeholders. A tool is called with them in its first parameter; whoever reads the answer may be shown
 * them. History, journal, observers, layers, hooks, approvals and models keep the placeholders.
 *
 * Contract: `find` returns spans of placeholders that were really issued, each with its original as `replacement`; whatever
 * else looks like one stays text. It may be called again with more text.
 */
export interface Restore {
  find(text: string, ctx: RestoreContext): readonly Span[];
  /**
   * Restores the answer for the caller of a run too: in events of `stream()`, `result.text` and `result.output`; not in a
   * sub-agent, whose caller is a model. As long as the longest placeholder.
   */
  readonly answer?: Window;
}

export interface RestoreContext {
  readonly for: 'tool' | 'answer';
  /** The name of the tool that is to be called. */
  readonly tool?: string;
  readonly context: Context;
}

export interface GuardContext {
  readonly point: GuardPoint;
  readonly from: number;
  readonly context: Context;
}
