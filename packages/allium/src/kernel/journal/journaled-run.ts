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

/** An assistant message whose calls are not all answered yet. */
export interface OpenBatch {
  readonly message: AssistantMessage;
  readonly calls: readonly ToolCall[];
  /** By the place of the call. */
  readonly results: (ToolMessage | undefined)[];
  answered: number;
  /** How many results asked for the run to end. */
  terminating: number;
  /** Names of the tools the model was offered, where they were not all of the agent's. */
  readonly offered: readonly string[] | undefined;
  /** Ids of calls whose effects may have happened. */
  started: readonly string[];
  /** Ids of calls that somebody was asked about. */
  asked: readonly string[];
}

/** A run that has begun and not ended: running, suspended or crashed. */
export interface OpenRun extends CellHolder {
  readonly runId: string;
  readonly plan: readonly string[];
  readonly twins: Readonly<Record<string, string>> | undefined;
  /** What the caller passed with the run. */
  readonly metadata: unknown;
  readonly limits: Limits | undefined;
  /** Where in the history its messages begin. */
  readonly from: number;
  /** How many messages it has added. */
  count: number;
  turns: number;
  /** How many answers in a row, the last one included, were cut off. */
  cutOff: number;
  /** How often in a row guards have refused the answer and had the model asked again. */
  feedback: number;
  /** How often `onRunEnd` has sent it on. */
  cycles: number;
  toolCalls: number;
  readonly usage: UsageTotal;
  costUsd: number | undefined;
  /** Active time in milliseconds, as far as it is written. */
  activeMs: number;
  batch: OpenBatch | undefined;
  /** Messages of middleware that follow the results of the last message. */
  inject: readonly Message[];
  /** How many of the next messages are injected ones. */
  injected: number;
  /** The answer of the turn whose end is still to come, what is to follow it, and whether every result ended the run. */
  answer: AssistantMessage | undefined;
  follows: TurnPlan;
  terminate: boolean;
  /** Something in the tool phase has stopped the run. */
  stop: Stop<StoppingReason> | undefined;
  requests: Map<string, PendingRequest>;
  /** About the calls of the open batch. */
  decided: Decided | undefined;
}

export interface Decided {
  /** By request id. */
  readonly answers: Map<string, EntryBody & { readonly type: 'answer' }>;
  /** By call id and hash of the arguments. */
  readonly verdicts: Map<string, unknown>;
}

/** Made on demand, because most runs never ask. */
export function decided(run: OpenRun): Decided {
  run.decided ??= { answers: new Map(), verdicts: new Map() };
  return run.decided;
}

/** Shared by all runs that have asked nobody. Nothing is ever put into it. */
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
  };
}
