/** What a trace holds: who did what to a run, what that changed, and how long it took. Stored with the journal. */

import type {
  GuardVerdict,
  Message,
  ModelSettings,
  Seam,
  ToolSpec,
  TraceAct,
  TraceRecord,
} from '../index.js';

/** The version `trace` entries are written with. */
export const TRACE_VERSION = 1;

/** The fields of types that the kernel only passes on. */
declare module '../index.js' {
  interface TraceRecord {
    /** When it began, in milliseconds since 1970. */
    readonly at: number;
    /** How long it took, in milliseconds, without what ran inside `next()`. */
    readonly ms: number;
    readonly turn: number;
    /** The name of the middleware, or `model`, `tool`, `human` or `kernel`. */
    readonly by: string;
    /** The hook: `wrapModel`, `guard`, …; `stream` for a model, `execute` for a tool. */
    readonly hook: string;
    readonly seam?: Seam;
    readonly did: TraceAct;
    /** The same in words, as in `result.changes`. */
    readonly what?: string;
    /** Which attempt of the call, from 1. */
    readonly attempt?: number;
    /** The tool call it is about. */
    readonly callId?: string;
    readonly toolName?: string;
    /** The message it is about: the one an answer became, or one that was judged on its way in. */
    readonly messageId?: string;
    readonly changes?: TraceChanges;
    readonly verdict?: GuardVerdict;
    readonly error?: TracedError;
    /** A model call: what was sent. A part that is absent is the same as in the model call recorded before. */
    readonly sent?: SentRequest;
    /** A model call: the middleware that made it with `ctx.generate()`. */
    readonly caller?: string;
    /** A tool call: the session of the sub-agent that ran in it. */
    readonly agentId?: string;
  }

  interface HookTotal {
    readonly seam?: Seam;
    readonly calls: number;
    readonly ms: number;
  }

  interface RunTrace {
    readonly records: readonly TraceRecord[];
    readonly totals: readonly HookTotal[];
    /** What the model received in the call of this record (`sent` is set), and who made it so. */
    requestAt(n: number): TracedRequest;
    /** The story of one message, from the history to the wire to the answer, in plain words. */
    explain(messageId: string): string;
    /** The trace of a sub-agent, at any depth, by the id of its session. */
    of(agentId: string): RunTrace | undefined;
  }
}

/** What an act changed, part by part. */
export interface TraceChanges {
  readonly messages?: TracedMessages;
  readonly systemPrompt?: TracedText;
  readonly tools?: { readonly added: readonly string[]; readonly removed: readonly string[] };
  readonly model?: { readonly from: string; readonly to: string };
  readonly settings?: readonly ValueChange[];
  /** The call that `resolveToolCall` put in place of another. */
  readonly toolCall?: readonly ValueChange[];
  readonly args?: readonly ValueChange[];
  readonly result?: readonly ValueChange[];
  readonly response?: readonly ValueChange[];
  /** A message on its way into the history. */
  readonly message?: readonly ValueChange[];
  /** Messages it added to the history, by text. */
  readonly inject?: readonly string[];
  readonly decision?: { readonly type: string; readonly why?: string };
}

/** A part of a JSON value that differs. Long texts are cut down to what differs, which begins at character `at`. */
export interface ValueChange {
  readonly path: readonly (string | number)[];
  readonly at?: number;
  readonly from?: unknown;
  readonly to?: unknown;
}

/**
 * A list of messages, stored as its difference from lists the reader already has: ranges `[from, to)` of the history
 * or of the list of record `of`, and messages by key. `added` holds each message once per run, where its key is first
 * used.
 */
export interface TracedMessages {
  /** The record whose list `of` ranges refer to; 0 is the history. */
  readonly of: number;
  /** The record that made the list this step was given; 0 is the history. */
  readonly given: number;
  readonly parts: readonly (
    | { readonly history: readonly [number, number] }
    | { readonly of: readonly [number, number] }
    | { readonly key: string }
  )[];
  readonly added?: Readonly<Record<string, Message>>;
  /** Keys of messages in `added` that were in the request before any step: the kernel put them there. */
  readonly kernel?: readonly string[];
}

/**
 * A text, stored as its difference from that of record `of` (0: the agent's). `text` replaces what is between `start`
 * and `end`.
 */
export interface TracedText {
  readonly of: number;
  readonly given: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface SentRequest {
  /** How many messages the history had. */
  readonly history: number;
  readonly messages?: TracedMessages;
  readonly systemPrompt?: TracedText;
  /** Names of the tools; `specs` holds those that no earlier call of the run had. */
  readonly tools?: { readonly names: readonly string[]; readonly specs?: readonly ToolSpec[] };
  readonly model?: string;
  readonly settings?: ModelSettings;
}

/** What was thrown, after the guards. The model never reads the stack. */
export interface TracedError {
  readonly name: string;
  readonly message?: string;
  readonly code?: string;
  readonly stack?: string;
}

/** A request as the model received it, beside the history it was made of. */
export interface TracedRequest {
  readonly record: TraceRecord;
  readonly model: string;
  readonly systemPrompt: string;
  /** The agent's own system prompt, if another one was sent and guards let it be recorded. */
  readonly ownSystemPrompt?: string;
  /** Who wrote the system prompt, in order; empty if it is the agent's own. */
  readonly systemPromptBy: readonly string[];
  readonly tools: readonly ToolSpec[];
  readonly settings: ModelSettings;
  readonly messages: readonly TracedMessage[];
  /** Messages of the history that were not sent, and who left them out. */
  readonly leftOut: readonly { readonly message: Message; readonly by: string }[];
  /** The records that had a part in it, in order. */
  readonly steps: readonly TraceRecord[];
}

export interface TracedMessage {
  readonly message: Message;
  /** The message of the history it stands for, if it isn't the same. */
  readonly original?: Message;
  /** Who put it in or rewrote it. */
  readonly by?: string;
}
