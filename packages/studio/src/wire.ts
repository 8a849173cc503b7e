/** What the server and the page send each other: plain JSON. Types only, so that the page may import them. */
import type { Allowance, Decision, Explanation, PendingRequest, RunStatus, Stop, Usage } from 'allium';

/** `running`: no end is journaled and nobody is asked. The process may also have died. */
export type RowStatus = RunStatus | 'running';

/** What guards did in a run, by guard and action. */
export interface VerdictCount {
  readonly by: string;
  readonly action: string;
  readonly count: number;
}

/** A run in the list. */
export interface RunRow {
  readonly sessionId: string;
  readonly runId: string;
  readonly tenant?: string;
  readonly status: RowStatus;
  readonly stop?: Stop;
  readonly startedAt: number;
  readonly updatedAt: number;
  /** What was asked, cut to a line. */
  readonly input: string;
  readonly turns: number;
  readonly toolCalls: number;
  readonly toolErrors: number;
  readonly usage: Usage;
  /** Absent if the price of some call is unknown. */
  readonly costUsd?: number;
  readonly models: readonly string[];
  readonly verdicts: readonly VerdictCount[];
  /** Questions that wait for a person. */
  readonly waiting: number;
  /** The run of a sub-agent. */
  readonly child?: boolean;
  /** The number of the session's last entry, when this was read. */
  readonly seq: number;
}

export interface RunPage {
  readonly rows: readonly RunRow[];
  /** Ask again with it for more; absent at the end. */
  readonly next?: string;
  /** Sessions that were looked at for this page. */
  readonly scanned: number;
  /** Sessions that cannot be read, and why. */
  readonly damaged: readonly DamagedSession[];
}

export interface DamagedSession {
  readonly sessionId: string;
  readonly problem: string;
}

export interface RunFilter {
  readonly status?: readonly string[];
  readonly tenant?: string;
  readonly minCostUsd?: number;
  readonly minSeconds?: number;
  /** `any`, or the name of a guard. */
  readonly guard?: string;
  /** Runs whose messages, ids or end contain this text, whatever its case. */
  readonly text?: string;
  /** Also runs of sub-agents. */
  readonly children?: boolean;
}

type SpanKind = 'turn' | 'model' | 'tool' | 'wait' | 'attempt' | 'agent';
export type SpanStatus = 'ok' | 'error' | 'open' | 'waiting';

/** A bar of the waterfall. Times are milliseconds since the epoch. */
export interface SpanRow {
  readonly id: string;
  readonly kind: SpanKind;
  readonly depth: number;
  readonly label: string;
  readonly note?: string;
  readonly start: number;
  /** Absent while it lasts. */
  readonly end?: number;
  readonly status: SpanStatus;
  readonly turn: number;
  /** The message of the conversation it belongs to. */
  readonly messageId?: string;
  /** The session of a sub-agent. */
  readonly sessionId?: string;
  readonly runId?: string;
}

interface CallItem {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly cut?: number;
}

/** A message of the conversation. Long texts are cut; `cut` is how many characters there are in all. */
export interface MessageItem {
  readonly id: string;
  readonly seq: number;
  readonly role: 'user' | 'assistant' | 'tool';
  readonly at: number;
  readonly turn: number;
  readonly text: string;
  readonly cut?: number;
  readonly thinking?: string;
  readonly calls?: readonly CallItem[];
  readonly media?: readonly string[];
  readonly toolName?: string;
  readonly isError?: boolean;
  /** Who wrote it, if it was middleware. */
  readonly source?: string;
  readonly model?: string;
  readonly usage?: Usage;
  readonly costUsd?: number;
  readonly stopReason?: string;
}

/** A middleware acted. */
export interface ActRow {
  /** The number of its record. */
  readonly n?: number;
  readonly turn: number;
  readonly by: string;
  readonly hook: string;
  /** `rewrote`, `blocked`, `retried`, … */
  readonly did: string;
  readonly what: string;
  readonly ms?: number;
}

/** A model call whose request is known. */
export interface CallRow {
  readonly n: number;
  readonly turn: number;
  readonly attempt: number;
  readonly model?: string;
  /** The answer it led to. */
  readonly messageId?: string;
  readonly failed?: string;
  /** The middleware that made it. */
  readonly by?: string;
}

export interface RunView {
  readonly row: RunRow;
  readonly plan: readonly string[];
  readonly metadata?: unknown;
  readonly items: readonly MessageItem[];
  readonly spans: readonly SpanRow[];
  readonly acts: readonly ActRow[];
  readonly calls: readonly CallRow[];
  /** The middleware's changes were traced. */
  readonly traced: boolean;
  readonly questions: readonly Question[];
}

export interface ReceivedMessage {
  readonly role: 'user' | 'assistant' | 'tool';
  readonly text: string;
  readonly cut?: number;
  /** Its id in the history; absent if it is not there. */
  readonly id?: string;
  /** `same` as in the history, `changed`, `added` by middleware, or `removed` from what was sent. */
  readonly change: 'same' | 'changed' | 'added' | 'removed';
  /** Who changed it. */
  readonly by?: readonly string[];
  /** What it said in the history, if it was changed. */
  readonly was?: string;
}

/** What the model received in one call. */
export interface ReceivedView {
  readonly call: CallRow;
  /** `exact`: as it was traced. `history`: nothing was traced, so these are the messages before middleware. */
  readonly basis: 'exact' | 'history';
  readonly systemPrompt?: { readonly text: string; readonly was?: string; readonly by?: readonly string[] };
  readonly tools?: readonly string[];
  readonly messages: readonly ReceivedMessage[];
  readonly acts: readonly ActRow[];
}

export interface Question {
  readonly sessionId: string;
  readonly tenant?: string;
  readonly request: PendingRequest;
  /** JSON Schema of the tool's arguments, if the tool is configured here. */
  readonly schema?: unknown;
  /** The type of an answer that is waiting for the run to continue. */
  readonly answered?: Decision['type'];
}

export interface AnswerOutcome {
  /** The run has taken the answer, and continues where it waits. */
  readonly taken: boolean;
  /** What to do if nobody took it. */
  readonly hint?: string;
}

/** What was approved for the rest of a session. */
export interface AllowanceView {
  readonly allowances: readonly Allowance[];
}

interface AgentInfo {
  readonly name: string;
  readonly model: string;
  readonly middleware: readonly string[];
  readonly tools: readonly string[];
}

export interface StudioInfo {
  readonly version: string;
  readonly store: string;
  readonly demo: boolean;
  readonly allowAnswers: boolean;
  readonly agents: readonly AgentInfo[];
  /** Why there is no agent. */
  readonly problem?: string;
}

/** What a middleware did in one run or several. */
export interface RingFigures {
  readonly name: string;
  readonly calls: number;
  readonly ms: number;
  readonly changes: number;
  readonly blocks: number;
  /** Questions to people. */
  readonly asks: number;
  /** Verdicts of a guard, by the point where it judged. */
  readonly verdicts: Readonly<Record<string, number>>;
}

export interface OnionView {
  readonly agent?: string;
  readonly explanation?: Omit<Explanation, 'toString'>;
  /** Names only, from the journal, if no agent is configured that has this plan. */
  readonly plan: readonly string[];
  readonly figures: readonly RingFigures[];
  readonly runs: number;
  /** How many of these runs were traced; figures come from them alone. */
  readonly traced: number;
}

export interface SpendPoint {
  /** The beginning of the day, in the zone of the server, in milliseconds. */
  readonly day: number;
  readonly key: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheRead: number;
  readonly costUsd: number;
  /** Sums in which the price of a call is unknown. */
  readonly unpriced: number;
}

export type SpendBy = 'model' | 'tenant' | 'session';

export interface SpendPage {
  readonly points: readonly SpendPoint[];
  readonly sessions: number;
  readonly next?: string;
}

/** A file that `Export` wrote: the sessions of a run as they are in the journal. */
export interface ExportedTrace {
  readonly allium: 'trace';
  readonly version: 1;
  readonly sessionId: string;
  readonly runId: string;
  readonly sessions: readonly { readonly sessionId: string; readonly entries: readonly unknown[] }[];
}

export type PlayEvent =
  | { readonly type: 'start'; readonly sessionId: string }
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reset' }
  | { readonly type: 'call'; readonly name: string; readonly arguments: string }
  | { readonly type: 'result'; readonly name: string; readonly text: string; readonly isError: boolean }
  | { readonly type: 'waits'; readonly name: string }
  | { readonly type: 'verdict'; readonly by: string; readonly action: string; readonly point: string }
  | {
      readonly type: 'end';
      readonly status: string;
      readonly text: string;
      readonly runId?: string;
      readonly turns?: number;
      readonly ms: number;
      readonly totalTokens?: number;
      readonly costUsd?: number;
      readonly changes?: readonly { readonly turn: number; readonly by: string; readonly what: string }[];
      readonly message?: string;
    };
