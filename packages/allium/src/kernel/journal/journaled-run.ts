/** A run that has begun and not ended, as the journal shows it. */

import {
  type AssistantMessage,
  type Message,
  NOTHING,
  type ToolCall,
  type ToolMessage,
  UsageTotal,
} from '../messages/messages.js';
import { type Limits, limitsFromJson } from '../protocol/limits.js';
import type { CellHolder } from '../protocol/state.js';
import type { Stop, StoppingReason } from '../protocol/stop.js';
import type { EntryBody, PendingRequest, TurnPlan } from '../protocol/store.js';
import type { ChangedCalls } from './changed-calls.js';
import type { Spent } from './spent.js';

/** An assistant message whose calls are not all answered yet. */
export interface OpenBatch {
  readonly message: AssistantMessage;
  readonly calls: readonly ToolCall[];
  /** By index of the call. */
  readonly results: (ToolMessage | undefined)[];
  answered: number;
  /** How many results asked for the run to end. */
  terminating: number;
  /** Names of the tools the model was offered, unless it was all of the agent's. */
  readonly offered: readonly string[] | undefined;
  /** Ids of calls whose effects may have happened. */
  started: readonly string[];
  /** Ids of calls that somebody was asked about. */
  asked: readonly string[];
  /** What its sub-agents have used, by session; undefined if there are none. */
  spent: Map<string, Spent> | undefined;
}

/** A run that has begun and not ended: running, suspended or crashed. */
export interface OpenRun extends CellHolder {
  readonly runId: string;
  readonly plan: readonly string[];
  readonly twins: Readonly<Record<string, string>> | undefined;
  /** What the caller passed with the run. */
  readonly metadata: unknown;
  readonly limits: Limits | undefined;
  /** Index in the history where its messages start. */
  readonly from: number;
  /** How many messages it has added. */
  count: number;
  turns: number;
  /** How many answers in a row were cut off, including the last one. */
  cutOff: number;
  /** How often in a row guards have refused the answer with `feedback`. */
  feedback: number;
  /** How often `onRunEnd` has continued it. */
  cycles: number;
  toolCalls: number;
  readonly usage: UsageTotal;
  costUsd: number | undefined;
  /** Active time in milliseconds, as last journaled. */
  activeMs: number;
  batch: OpenBatch | undefined;
  /** Messages of middleware that follow the results of the last message. */
  inject: readonly Message[];
  /** How many of the next messages are injected ones. */
  injected: number;
  /** The answer of the current turn, what follows it, and whether every result asked for the end of the run. */
  answer: AssistantMessage | undefined;
  follows: TurnPlan;
  terminate: boolean;
  /** Set if something in the tool phase stopped the run. */
  stop: Stop<StoppingReason> | undefined;
  requests: Map<string, PendingRequest>;
  /** Answers and verdicts about the calls of the open batch. */
  decided: Decided | undefined;
  /** Its trace so far, if it is traced. */
  readonly trace: (EntryBody & { readonly type: 'trace' })[];
}

export interface Decided {
  /** By request id. */
  readonly answers: Map<string, EntryBody & { readonly type: 'answer' }>;
  /** By call id and hash of the arguments. */
  readonly verdicts: Map<string, unknown>;
  changed: ChangedCalls | undefined;
}

/** Made on demand, because most runs never ask. */
export function decided(run: OpenRun): Decided {
  run.decided ??= { answers: new Map(), verdicts: new Map(), changed: undefined };
  return run.decided;
}

/** Shared by all runs without questions. Always empty. */
export const NO_REQUESTS = new Map<string, PendingRequest>();
export const NO_PLAN: TurnPlan = Object.freeze({});

export function idsOf(calls: readonly ToolCall[]): readonly string[] {
  return calls.length === 1 ? [calls[0]!.id] : calls.map(({ id }) => id);
}

export function startedIn({ batch }: OpenRun, callId: string): void {
  if (batch && !batch.started.includes(callId))
    batch.started = batch.started === NOTHING ? [callId] : [...batch.started, callId];
}

export function newRun(entry: EntryBody & { type: 'run_start' }, from: number): OpenRun {
  return {
    runId: entry.runId,
    plan: entry.plan,
    twins: entry.twins,
    metadata: entry.metadata,
    limits: entry.limits && limitsFromJson(entry.limits),
    cells: undefined,
    from,
    count: 0,
    turns: 0,
    cutOff: 0,
    feedback: 0,
    cycles: 0,
    toolCalls: 0,
    usage: new UsageTotal(),
    costUsd: 0,
    activeMs: 0,
    batch: undefined,
    inject: NOTHING,
    injected: 0,
    answer: undefined,
    follows: NO_PLAN,
    terminate: false,
    stop: undefined,
    requests: NO_REQUESTS,
    decided: undefined,
    trace: [],
  };
}
