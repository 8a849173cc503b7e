/**
 * Control signals end or restart a run from inside it. They are recognised by a brand, so that two copies of this package in
 * one process understand each other.
 */

import { invalidOption, leaveAlone } from '../lib/errors.js';
import type { CellWrite } from './state.js';
import { STOPPING, type StoppingReason } from './stop.js';

const CONTROL = Symbol.for('allium.control');

/** Ends the run cleanly from any hook, layer or tool. `ctx.stop(reason, why)` throws one. */
export class StopRun extends Error {
  override readonly name = 'StopRun';
  readonly [CONTROL] = 'stop' as const;
  readonly reason: StoppingReason;

  constructor(reason: StoppingReason = 'stopped', why?: string) {
    super(why ?? `The run was stopped: ${reason}.`);
    leaveAlone(why);
    if (!STOPPING.has(reason))
      throw invalidOption('reason', `what a run can be stopped for (${[...STOPPING].join(', ')})`, reason);
    this.reason = reason;
  }
}

const kernelStops = new WeakSet<StopRun>();

/** A stop at one of the kernel's limits. It is never attributed to a middleware, whatever layers it passes. */
export function kernelStop(reason: StoppingReason, why: string): StopRun {
  const stop = new StopRun(reason, why);
  kernelStops.add(stop);
  return stop;
}

export function isKernelStop(signal: unknown): boolean {
  return kernelStops.has(signal as StopRun);
}

/** Thrown by `ctx.suspend()` when there is no answer yet. */
export class Suspension extends Error {
  override readonly name = 'Suspension';
  readonly [CONTROL] = 'suspend' as const;
  readonly request: object;
  /** All open questions: a sub-agent may have several. */
  readonly requests: readonly object[];

  constructor(request: object, ...more: readonly object[]) {
    super('The run waits for an answer.');
    this.request = request;
    this.requests = [request, ...more];
  }
}

/** Thrown by what was waiting when its run or call is aborted. */
export class Aborted extends Error {
  override readonly name = 'AbortError';
  readonly [CONTROL] = 'abort' as const;

  constructor(reason?: unknown) {
    const message = reason instanceof Error ? reason.message : reason;
    super(typeof message === 'string' ? message : 'The run was aborted.', { cause: reason });
  }
}

/** Asks for the current turn to be started again because of `cause`; made by `onError: 'restart'`. */
export class RestartTurn extends Error {
  override readonly name = 'RestartTurn';
  readonly [CONTROL] = 'restart' as const;

  constructor(
    cause: unknown,
    /** What `onError` wrote to cells: it learnt something from the error, and the next try should know. */
    readonly written: readonly CellWrite[] = [],
    /** Set if a guard refused the answer: the reason for the model, and which guard it was. */
    readonly feedback?: { readonly reason: string; readonly by: string },
  ) {
    super('The turn starts again.', { cause });
  }
}

export type ControlSignal = StopRun | Suspension | Aborted | RestartTurn;

/** Is it a control signal: a stop, a suspension, an abort or the restart of a turn? Code that catches errors must rethrow it. */
export function isControl(error: unknown): error is ControlSignal {
  try {
    return typeof error === 'object' && error !== null && CONTROL in error;
  } catch {
    // A proxy that throws on any access.
    return false;
  }
}

/** The kind of a control signal; undefined for an error. Always rethrow control signals. */
export function controlKind(error: unknown): 'stop' | 'suspend' | 'abort' | 'restart' | undefined {
  return isControl(error) ? error[CONTROL] : undefined;
}
