/** The one persistence port: a journal of entries per session, and an inbox any process may write to. */
import { unwritable } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { isOf, type Kind } from '../lib/shapes.js';
import type { Message, ToolMessage, Usage } from '../messages/messages.js';
import type { StoredLimits } from './limits.js';
import type { RunStatus, Stop, StoppingReason } from './stop.js';

export type Awaitable<T> = T | Promise<T>;

/** The version new entries are written with. Readers accept every version up to it. */
export const ENTRY_VERSION = 2;

export interface TurnPlan {
  /** What `afterModelResponse` decided. */
  readonly decision?: 'stop' | 'loop_to_model';
  readonly by?: string;
  readonly why?: string;
  /** One more turn, though the message asks for none. */
  readonly forceContinue?: true;
}

/** A fact of a session, as plain JSON. */
export type EntryBody =
  | {
      readonly type: 'run_start';
      readonly runId: string;
      readonly tenant?: string;
      /** Names of the middleware, in order: a resume has to bring the same. */
      readonly plan: readonly string[];
      /** Who is who among middleware that share a name and own state of runs, by name in `plan`. */
      readonly twins?: Readonly<Record<string, string>>;
      readonly parent?: string;
      readonly metadata?: unknown;
      /** What this run was given instead of the agent's limits; null is none. */
      readonly limits?: StoredLimits;
    }
  | {
      readonly type: 'message';
      readonly runId: string;
      readonly message: Message;
      /** It came from outside or from middleware, though a model might have said it: no turn of this run. */
      readonly seeded?: boolean;
      /** `onRunEnd` sent the run on with it, and with those that follow. */
      readonly cycle?: true;
      /** It tells the model why guards refused its answer, which is not in the journal but had a number. */
      readonly feedback?: true;
      /** Its calls begin with it: after a crash those without a result are in doubt. */
      readonly started?: true;
      readonly costUsd?: number;
      /** What middleware wants said once the calls of the message are answered. */
      readonly inject?: readonly Message[];
      /** Names of the tools the model was offered, where they were not all of the agent's: after a resume its calls may name no other. */
      readonly offered?: readonly string[];
      /** What is to follow, where it is not what the message asks for: no tools, another turn, or the end. */
      readonly follows?: TurnPlan;
    }
  | {
      readonly type: 'state';
      readonly cell: string;
      readonly version: number;
      readonly runId?: string;
      readonly value: unknown;
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
      /** The run is to end after this batch. */
      readonly stop?: Stop<StoppingReason>;
    }
  | {
      readonly type: 'request';
      readonly runId: string;
      readonly request: PendingRequest;
      /** Calls beside it that were written down as begun, and had not: they begin after the answer. */
      readonly notBegun?: readonly string[];
      /** Questions about the same call that are not asked any more: its arguments mean something else by now. */
      readonly replaces?: readonly string[];
    }
  | {
      readonly type: 'answer';
      readonly runId: string;
      readonly requestId: string;
      readonly decision: Decision;
      /** Guards and `acceptMessage` have had their say: this is what they left of it, and replaces what was given. */
      readonly admitted?: true;
      /** That of the inbox item it came with. */
      readonly postId?: string;
    }
  /** What guards or `beforeToolCall` decided about a call, so that a resume does not ask again. */
  | {
      readonly type: 'verdict';
      readonly runId: string;
      readonly callId: string;
      readonly hash: string;
      readonly verdict: unknown;
    }
  /** Usage that belongs to no message: abandoned attempts, refused answers, middleware's own calls. */
  | { readonly type: 'usage'; readonly runId: string; readonly usage: Usage; readonly costUsd?: number }
  /** How long the run has been active: time limits go on counting from there. */
  | { readonly type: 'active'; readonly runId: string; readonly ms: number }
  /**
   * How far the inbox has been taken over. Messages up to there that wait for their turn stay in it, unjudged as they are;
   * `waits` are their numbers, in order.
   */
  | {
      readonly type: 'inbox';
      readonly cursor: number;
      readonly waits?: readonly number[];
      /** Messages that did not get in, by number: they are taken over all the same, without what they say. */
      readonly refused?: readonly { readonly n: number; readonly by: string; readonly reason: string }[];
      /** Ids of allowances that somebody revoked. */
      readonly revoked?: readonly string[];
    }
  /** The history ends with this message again, or is empty. What the cells of the session held there follows as `state`. */
  | { readonly type: 'rewind'; readonly to: string | null }
  | {
      readonly type: 'run_end';
      readonly runId: string;
      readonly status: RunStatus;
      readonly stop: Stop;
      readonly turns: number;
    };

/** An entry before the journal has dated it. Made with `v` and `at` from the start, it keeps one shape. */
export type EntryDraft = EntryBody & { v?: number; at?: number };

/** An entry as stored: `seq` counts from 1 without a gap, `at` is the time in milliseconds. */
export type Entry = EntryBody & { readonly v: number; readonly seq: number; readonly at: number };
/** An entry on its way into the store, which numbers it. */
export type NewEntry = EntryBody & { readonly v: number; readonly at: number };

/** A question put to a human. */
export interface Request {
  /** What is asked, for people. */
  readonly title?: string;
  /** More about it, for the application that asks. JSON. */
  readonly details?: unknown;
  /** The question lapses after this many milliseconds; the call then counts as rejected. */
  readonly timeoutMs?: number;
  /** Which answers it takes. Others are refused with `DECISION_NOT_ALLOWED`. @default all of them */
  readonly decisions?: readonly Decision['type'][];
  /** False: it is asked every time. No answer may have `remember`, and none that was remembered counts. @default true */
  readonly remember?: boolean;
  /** Answers in place, without suspending. Not stored. Undefined means: suspend. */
  readonly onRequest?: RequestHandler;
}

/**
 * Answers a question while the run waits. An answer that anybody posts with `session.answer()` wakes the run as well, and
 * the first one counts.
 *
 * Contract: it is awaited, but not longer than the question is open. Undefined suspends the run, unless somebody else has
 * answered by then.
 */
export type RequestHandler = (
  request: PendingRequest,
  ctx: RequestContext,
) => Awaitable<Decision | undefined>;

export interface RequestContext {
  /**
   * Aborts when nobody needs the answer any more: somebody else gave one, the question lapsed, or the run ended. Its
   * `reason` is an error whose message says which. Close the prompt then.
   */
  readonly signal: AbortSignal;
}

export interface PendingRequest extends Omit<Request, 'onRequest'> {
  /** What an answer is keyed by. */
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
   * What the tool is called with: the arguments after defaults and transforms of its schema, as JSON text. Absent where
   * the question was asked by an earlier release.
   */
  readonly effectiveArguments?: string;
  /** `ask`: may the call happen? `suspend`: a tool body asks something in the middle of its work. */
  readonly kind: 'ask' | 'suspend';
  /** Hash of the tool and both forms of its arguments: an answer counts only for what was shown. */
  readonly hash: string;
  /** The middleware that asked. */
  readonly by?: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Who asks, where it is a sub-agent: tool and arguments are those of its call, `callId` names the call that started it. */
  readonly from?: {
    readonly agent: string;
    readonly sessionId: string;
    readonly runId: string;
    readonly callId: string;
  };
}

/** What a human decided. `hash`, where given, must be the request's. */
export type Decision = { readonly hash?: string } & (
  | {
      readonly type: 'approve';
      /**
       * For the rest of the session, the same asker does not ask about this tool again: whatever its arguments (`tool`), or
       * with these arguments (`arguments`). What is refused stays refused. Only for questions of kind `ask`.
       */
      readonly remember?: 'tool' | 'arguments';
    }
  | { readonly type: 'edit'; readonly args: unknown }
  | { readonly type: 'reject'; readonly reason?: string }
  | { readonly type: 'respond'; readonly text: string }
);

/** A message from outside that waits: steering for the next turn, a follow-up for the end of the run. */
export type Queued =
  | { readonly type: 'steer'; readonly message: Message }
  | { readonly type: 'follow_up'; readonly message: Message };

export type InboxItem =
  | Queued
  | {
      readonly type: 'answer';
      readonly requestId: string;
      readonly decision: Decision;
      /** When it was given, in milliseconds: what decides whether it was in time. Otherwise that is when it is taken. */
      readonly at?: number;
      /** Tells this answer from others to the same question: whoever posted it looks by it whether it was the first. */
      readonly postId?: string;
      /** It comes from the caller of a sub-agent. */
      readonly relayed?: true;
    }
  /** A question of a sub-agent is being answered in the session of a caller: from now on only what is relayed counts. */
  | { readonly type: 'claim'; readonly requestId: string }
  | { readonly type: 'cancel'; readonly reason?: string }
  /** Takes back the message of that number, if nobody has taken it in yet. */
  | { readonly type: 'unqueue'; readonly n: number }
  /** What was allowed with this answer is asked about again, from the next question on. */
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

/** Part of a list of sessions; `next` is the cursor of the one that follows. */
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

/**
 * Contract: `append` is atomic and durable when it returns, and fails with `SESSION_CONFLICT` (see
 * `sessionConflict`) unless the last `seq` of the session equals `expectedSeq` (0 for a new session); it
 * returns the new last `seq`. Methods may answer synchronously; the kernel awaits only promises.
 * The tenant of a session is that of its first `run_start` entry. An `inbox` entry takes items over: those up to its
 * `cursor`, but for `waits`, are in the inbox no more. They hold what guards may have removed, so a store keeps nothing of
 * them, as far as it can: `takenBy` tells which they are.
 */
export interface Store {
  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): Awaitable<number>;
  /** Entries with `seq >= fromSeq`, in order. */
  read(sessionId: string, fromSeq: number): Awaitable<readonly Entry[]>;
  /** The last `seq`, 0 for a session that does not exist. */
  head(sessionId: string): Awaitable<number>;
  /** Newest first. */
  list(options?: ListOptions): Awaitable<SessionPage>;
  /** Copies the entries up to `seq` into a new session. The two are independent from then on. */
  fork(sessionId: string, seq: number, newId: string): Awaitable<void>;
  /** With it go the sessions of its sub-agents (see `parentOf`), also where it is gone already. */
  delete(sessionId: string): Awaitable<void>;
  /** Adds to the inbox of the session, which need not exist yet. */
  post(sessionId: string, item: InboxItem): Awaitable<void>;
  /** Forgets the items up to number `after` and returns the later ones, numbered from 1, in order. */
  take(sessionId: string, after: number): Awaitable<readonly Posted[]>;
  close?(): Awaitable<void>;
}

const REQUEST: Kind = kinds.shape({
  title: kinds.text,
  details: kinds.kind('JSON', (value) => typeof value !== 'function' && unwritable(value) === undefined),
  timeoutMs: kinds.timeout,
  decisions: kinds.listOf(
    kinds.oneOf<Decision['type']>('approve', 'edit', 'reject', 'respond'),
    undefined,
    1,
  ),
  remember: kinds.flag,
  onRequest: kinds.func(),
} satisfies Record<keyof Request, Kind>);

/** Is this what `ask` and `ctx.suspend()` take? */
export function isRequest(value: unknown): value is Request {
  return isOf(REQUEST, value);
}
