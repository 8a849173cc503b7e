/** The one persistence port: a journal of entries per session, and an inbox any process may write to. */
import type { Expense, Message, ToolMessage } from '../messages/messages.js';
import type { StoredLimits } from './limits.js';
import type { RunStatus, Stop, StoppingReason } from './stop.js';
import type { HookTotal, TraceRecord } from './trace.js';

export type Awaitable<T> = T | Promise<T>;

/** The version that new journal entries are written with. Readers accept every version up to it. */
export const ENTRY_VERSION = 2;

export interface TurnPlan {
  /** What `afterModelResponse` decided. */
  readonly decision?: 'stop' | 'loop_to_model';
  readonly by?: string;
  readonly why?: string;
  /** One more turn, even though the message calls no tool. */
  readonly forceContinue?: true;
}

/** A fact of a session, as plain JSON. */
export type EntryBody =
  | {
      readonly type: 'run_start';
      readonly runId: string;
      readonly tenant?: string;
      /** Names of the middleware, in order. A resume needs the same ones. */
      readonly plan: readonly string[];
      /** Identities of middleware that share a name and own run state, by their name in `plan`. */
      readonly twins?: Readonly<Record<string, string>>;
      readonly parent?: string;
      readonly metadata?: unknown;
      /** Limits of this run that replace the agent's; null means no limit. */
      readonly limits?: StoredLimits;
    }
  | {
      readonly type: 'message';
      readonly runId: string;
      readonly message: Message;
      /** An assistant message that came from outside or from middleware. It doesn't count as a turn. */
      readonly seeded?: boolean;
      /** `onRunEnd` continued the run with this message and those that follow. */
      readonly cycle?: true;
      /** Tells the model why guards refused its answer. The answer had a number but isn't journaled. */
      readonly feedback?: true;
      /** Its calls start with it, so after a crash those without a result are in doubt. */
      readonly started?: true;
      readonly costUsd?: number;
      /** Messages of middleware that follow once the calls are answered. */
      readonly inject?: readonly Message[];
      /** The tools the model was offered, unless it was all of the agent's. After a resume its calls may name no others. */
      readonly offered?: readonly string[];
      /** What follows, if it isn't what the message asks for: no tools, another turn, or the end. */
      readonly follows?: TurnPlan;
    }
  | {
      readonly type: 'state';
      readonly cell: string;
      readonly version: number;
      readonly runId?: string;
      readonly value: unknown;
      /** A rewind leaves the cell as it is. */
      readonly stays?: true;
    }
  | {
      readonly type: 'tool_started';
      readonly runId: string;
      readonly messageId: string;
      readonly callId: string;
    }
  | {
      readonly type: 'tool_finished';
      readonly runId: string;
      readonly message: ToolMessage;
      readonly terminate?: boolean;
      /** The run ends after this batch. */
      readonly stop?: Stop<StoppingReason>;
    }
  | {
      readonly type: 'request';
      readonly runId: string;
      readonly request: PendingRequest;
      /** Other calls that were journaled as started but hadn't: they start after the answer. */
      readonly notBegun?: readonly string[];
      /** The run now waits: no call runs beside the question, and those that haven't begun begin after the answer. */
      readonly waits?: true;
      /** Older questions about the same call that this one replaces, because the arguments or the `key` have changed. */
      readonly replaces?: readonly string[];
    }
  | {
      readonly type: 'answer';
      readonly runId: string;
      readonly requestId: string;
      readonly decision: Decision;
      /** The answer as guards and `acceptMessage` left it; it replaces the one that was given. */
      readonly admitted?: true;
      /** The `postId` of the inbox item it came with. */
      readonly postId?: string;
    }
  /** What guards or `beforeToolCall` decided about a call, so that a resume doesn't ask again. */
  | {
      readonly type: 'verdict';
      readonly runId: string;
      readonly callId: string;
      readonly hash: string;
      readonly verdict: unknown;
    }
  /** Usage that belongs to no message: abandoned attempts, refused answers, calls of middleware and sub-agents. */
  | ({ readonly type: 'usage'; readonly runId: string } & Expense)
  /** How long the run has been active, for its time limits. */
  | { readonly type: 'active'; readonly runId: string; readonly ms: number }
  /**
   * How far the inbox has been processed. Messages before the cursor that still wait for their turn stay in the inbox,
   * unjudged; `waits` lists their numbers, in order.
   */
  | {
      readonly type: 'inbox';
      readonly cursor: number;
      readonly waits?: readonly number[];
      /** Messages that were refused, by number and without their content. They leave the inbox too. */
      readonly refused?: readonly { readonly n: number; readonly by: string; readonly reason: string }[];
      /** Ids of allowances that somebody revoked. */
      readonly revoked?: readonly string[];
    }
  /** If the run is traced: who did what, and the totals of each hook. It changes nothing about the session. */
  | {
      readonly type: 'trace';
      readonly runId: string;
      readonly version: number;
      readonly records: readonly TraceRecord[];
      readonly totals?: readonly HookTotal[];
    }
  /** The history ends with this message again, or is empty. `state` entries with the cell values of that time follow. */
  | { readonly type: 'rewind'; readonly to: string | null }
  | {
      readonly type: 'run_end';
      readonly runId: string;
      readonly status: RunStatus;
      readonly stop: Stop;
      readonly turns: number;
    };

/** An entry before the journal dates it. */
export type EntryDraft = EntryBody & { v?: number; at?: number };

/** An entry as stored: `seq` counts from 1 without a gap, `at` is the time in milliseconds. */
export type Entry = EntryBody & { readonly v: number; readonly seq: number; readonly at: number };
/** An entry on its way into the store, which numbers it. */
export type NewEntry = EntryBody & { readonly v: number; readonly at: number };

/** A question put to a human. */
export interface Request {
  /** The question, for people. */
  readonly title?: string;
  /** More data for the application that shows it. JSON. */
  readonly details?: unknown;
  /** Milliseconds after which the question lapses and the call counts as rejected. */
  readonly timeoutMs?: number;
  /** The answers it accepts. Others fail with `DECISION_NOT_ALLOWED`. @default all of them */
  readonly decisions?: readonly Decision['type'][];
  /** For `ctx.suspend()`: what an answer is for. It never counts for a question with another key, which is asked anew. */
  readonly key?: string;
  /** False: asks every time. Answers can't have `remember`, and remembered answers don't count. @default true */
  readonly remember?: boolean;
  /** Answers without suspending the run. Not stored. If it returns undefined, the run is suspended. */
  readonly onRequest?: RequestHandler;
}

/**
 * Answers a question while the run waits. Anybody may also answer with `session.answer()`; the first answer counts.
 *
 * Contract: it is awaited as long as the question is open. Undefined suspends the run, unless somebody else has answered by
 * then.
 */
export type RequestHandler = (
  request: PendingRequest,
  ctx: RequestContext,
) => Awaitable<Decision | undefined>;

export interface RequestContext {
  /**
   * Aborts when the answer isn't needed any more: somebody else answered, the question lapsed, or the run ended. The message
   * of its `reason` says which. Close the prompt then.
   */
  readonly signal: AbortSignal;
}

export interface PendingRequest extends Omit<Request, 'onRequest'> {
  /** Identifies the question in `session.answer()`. */
  readonly id: string;
  /** The run that waits. */
  readonly runId: string;
  /** The call it is about. */
  readonly callId: string;
  /** The tool of that call. */
  readonly toolName: string;
  /** Its arguments as the model wrote them, as JSON text. */
  readonly arguments: string;
  /**
   * What the tool would be called with: the arguments after defaults and transforms of its schema, as JSON text. Absent in
   * questions of earlier releases.
   */
  readonly effectiveArguments?: string;
  /** `ask`: may the call run? `suspend`: the tool asks something in the middle of its work. */
  readonly kind: 'ask' | 'suspend';
  /** Hash of the tool and both forms of its arguments: an answer counts only for what was shown. */
  readonly hash: string;
  /** The middleware that asked. */
  readonly by?: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Set if a sub-agent asks. Tool and arguments are those of its call; `callId` names the call that started it. */
  readonly from?: {
    readonly agent: string;
    readonly sessionId: string;
    readonly runId: string;
    readonly callId: string;
  };
}

/** A human's answer. If it has a `hash`, it must be that of the request. */
export type Decision = { readonly hash?: string } & (
  | {
      readonly type: 'approve';
      /**
       * Don't ask again for the rest of the session: for any call of this tool (`tool`), or only with these arguments
       * (`arguments`). Counts for the same asker only; what others refuse is still refused. Only for questions of kind `ask`.
       */
      readonly remember?: 'tool' | 'arguments';
    }
  | { readonly type: 'edit'; readonly args: unknown }
  | { readonly type: 'reject'; readonly reason?: string }
  | { readonly type: 'respond'; readonly text: string }
);

/** A waiting message from outside: steering for the next turn, or a follow-up for the end of the run. */
export type Queued =
  | { readonly type: 'steer'; readonly message: Message }
  | { readonly type: 'follow_up'; readonly message: Message };

export type InboxItem =
  | Queued
  | {
      readonly type: 'answer';
      readonly requestId: string;
      readonly decision: Decision;
      /** When it was given, in milliseconds. Decides whether it was in time. @default when a run takes it */
      readonly at?: number;
      /** Identifies this answer, so that its author can find out whether it was the first. */
      readonly postId?: string;
      /** It comes from the caller of a sub-agent. */
      readonly relayed?: true;
    }
  /** A sub-agent's question is being answered in a caller's session: from now on only relayed answers count. */
  | { readonly type: 'claim'; readonly requestId: string }
  | { readonly type: 'cancel'; readonly reason?: string }
  /** Takes back the message with that number, if no run has taken it in yet. */
  | { readonly type: 'unqueue'; readonly n: number }
  /** Revokes what this answer allowed, from the next question on. */
  | { readonly type: 'revoke'; readonly id: string };

/** An item of an inbox and its number. */
export interface Posted {
  readonly n: number;
  readonly item: InboxItem;
}

export interface SessionInfo {
  readonly sessionId: string;
  readonly tenant?: string;
  readonly seq: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** A page of a list of sessions; `next` is the cursor of the next page. */
export interface SessionPage {
  readonly sessions: readonly SessionInfo[];
  readonly next?: string;
}

export interface ListOptions {
  /** Only sessions of this tenant. The empty text is a tenant like any other. */
  readonly tenant?: string;
  /** Only sessions updated at or after this time (milliseconds). */
  readonly since?: number;
  /** @default 100 */
  readonly limit?: number;
  /** The `next` of the page before. */
  readonly cursor?: string;
}

/** The state of a session at entry `seq`. Only the kernel reads the text. */
export interface Snapshot {
  readonly seq: number;
  readonly state: string;
}

/** The end of a journal: the newest snapshot and the entries after its `seq`. Without a snapshot, all entries. */
export interface Tail {
  readonly snapshot?: Snapshot;
  readonly entries: readonly Entry[];
}

/**
 * Contract: `append` is atomic and durable when it returns, and fails with `SESSION_CONFLICT` (see
 * `sessionConflict`) unless the last `seq` of the session equals `expectedSeq` (0 for a new session); it
 * returns the new last `seq`. Methods may answer synchronously; the kernel awaits only promises.
 * The tenant of a session is that of its first `run_start` entry. An `inbox` entry removes items from the inbox: all up to
 * its `cursor` except `waits`. They may hold text that guards removed, so a store should really delete them; `takenBy` says
 * which they are.
 */
export interface Store {
  /**
   * `snapshot` comes along now and then, if the store has `tail`. Keep the newest one. Its `seq` is that of the session before
   * this append or of one of these entries; ignore it if the session isn't that far then.
   */
  append(
    sessionId: string,
    expectedSeq: number,
    entries: readonly NewEntry[],
    snapshot?: Snapshot,
  ): Awaitable<number>;
  /** Entries with `seq >= fromSeq`, in order. */
  read(sessionId: string, fromSeq: number): Awaitable<readonly Entry[]>;
  /**
   * Optional: with it, a long session opens as quickly as a short one. Everything in a snapshot is in the entries before it,
   * so a store may lose one, and must forget it with the session. A fork has none to begin with.
   */
  tail?: ((sessionId: string) => Awaitable<Tail>) | undefined;
  /** The last `seq`, 0 for a session that does not exist. */
  head(sessionId: string): Awaitable<number>;
  /** Newest first. */
  list(options?: ListOptions): Awaitable<SessionPage>;
  /** Copies the entries up to `seq` into a new session. The two are independent from then on. */
  fork(sessionId: string, seq: number, newId: string): Awaitable<void>;
  /** Also deletes the sessions of its sub-agents (see `parentOf`), even if the session itself is gone already. */
  delete(sessionId: string): Awaitable<void>;
  /** Adds an item to the inbox of the session, which may not exist yet. */
  post(sessionId: string, item: InboxItem): Awaitable<void>;
  /** Forgets the items up to number `after` and returns the later ones, numbered from 1, in order. */
  take(sessionId: string, after: number): Awaitable<readonly Posted[]>;
  close?(): Awaitable<void>;
}

/** The parent session of a sub-agent's session: deleting it deletes both. Undefined for other sessions. */
export function parentOf(sessionId: string): string | undefined {
  return /^(.*)\/r_[^/]*\.\d+\.\d+(?:\+\d+)?(?:~\d+)?$/s.exec(sessionId)?.[1];
}
