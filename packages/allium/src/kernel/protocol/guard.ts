/** What guards are given, and what they return. */

import type { FileContent, ImageContent, Message, ModelResponse, ToolCall } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Request } from './store.js';

export const POINTS = [
  'input',
  'request',
  'output',
  'thinking',
  'tool-args',
  'tool-result',
  'final',
] as const;

/** Where a guard judges. `output`: text of a response; `final`: text of an answer that calls no tool. */
export type GuardPoint = (typeof POINTS)[number];

/** How serious a finding is. The kernel only reports it. */
export type Severity = 'low' | 'medium' | 'high' | 'critical';

/** Describes what was found, without quoting the text. */
export interface Finding {
  /** For example `email` or `aws-key`: up to 64 letters, digits and `_ . : / -`. Never the text itself. */
  readonly kind?: string;
  readonly severity?: Severity;
}

/** Text at `[start, end)` that must not pass, and its `replacement` (default: that of the guard). */
export interface Span extends Finding {
  readonly start: number;
  readonly end: number;
  readonly replacement?: string;
  /** Why it may not pass, if the guard refuses the whole text because of it. */
  readonly reason?: string;
}

/** How much text is held back while it streams. */
export interface Window {
  readonly chars: number;
}

/** What `judge` gets. */
export interface GuardSubject {
  readonly point: GuardPoint;
  /**
   * All text at this point: of a message or block, or the keys, strings and numbers of arguments, one per line. For a
   * message at `input` and `request` that is text, thinking, arguments of calls, and provider content.
   */
  readonly text: string;
  /** Absent for the system prompt, which is judged at `request`. */
  readonly message?: Message | ModelResponse;
  readonly toolCall?: ToolCall;
  /** The parsed arguments, at `tool-args`. Numbers with more digits than JavaScript can hold are strings. */
  readonly args?: unknown;
  readonly result?: ToolResult;
  /** Images and files of the message, response or result. `text` contains nothing of them. */
  readonly media: readonly (ImageContent | FileContent)[];
}

export type Verdict =
  | { readonly type: 'allow' }
  /** Refuses the message, the response or the call. */
  | ({ readonly type: 'deny'; readonly reason?: string } & Finding)
  /** A human has to agree. Only at `tool-args`. */
  | ({ readonly type: 'ask'; readonly request: Request } & Finding)
  /** Replaces the text; at `tool-args`, `args` replaces the arguments. */
  | ({ readonly type: 'rewrite'; readonly text?: string; readonly args?: unknown } & Finding);

/** What happens because of a span or a `deny`. */
export type GuardAction = 'redact' | 'block' | 'stop' | 'warn' | 'feedback';

/** What a guard decided, for observers and `result.changes`. It never contains what was judged. */
export interface GuardVerdict extends Finding {
  /** The name of its middleware. */
  readonly guard: string;
  readonly point: GuardPoint;
  readonly action: GuardAction | 'rewrite' | 'ask';
  /** The position of a span in the text that this guard saw. Several texts count as joined by a line break. */
  readonly start?: number;
  readonly end?: number;
}
