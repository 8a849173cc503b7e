/** One circuit: closed until too many calls fail in a row, then open, then tried with a single call. */

import type { Context } from '../../index.js';

export interface CircuitLimits {
  readonly failures: number;
  readonly windowMs: number;
  readonly cooldownMs: number;
}

/** The outcome of a call: it worked, it failed in a way that counts, or it says nothing about the other side. */
export type CallOutcome = 'success' | 'failure' | 'nothing';

/** A call that was let through. A `part` is made inside the probe, and says as much about the other side. */
export interface Pass {
  readonly era: number;
  readonly as: 'call' | 'probe' | 'part';
}

export class Circuit {
  /** When the failures that count happened, in order. */
  private failed: number[] = [];
  private openUntil: number | undefined = undefined;
  /** The call that tries whether the other side is back. */
  private probe: Context | undefined = undefined;
  /** Grows when the circuit opens or closes: calls that began before say nothing about the present. */
  private era = 0;
  /** Calls in progress. */
  private active = 0;
  lastError: unknown = undefined;

  constructor(private readonly limits: CircuitLimits) {}

  /** There is nothing to remember. */
  get isFresh(): boolean {
    return this.openUntil === undefined && this.failed.length === 0 && this.active === 0;
  }

  /** Lets a call through, or says why not: the milliseconds to wait, or undefined while another call tries. */
  enter(now: number, ctx: Context): Pass | { readonly retryAfterMs: number | undefined } {
    const { openUntil, probe, era } = this;
    if (openUntil !== undefined && now < openUntil) return { retryAfterMs: openUntil - now };
    // A call inside the probe must not wait for the probe.
    if (probe !== undefined && !ctx.isInside(probe)) return { retryAfterMs: undefined };
    this.active++;
    if (openUntil === undefined) return { era, as: 'call' };
    this.probe ??= ctx;
    return { era, as: probe === undefined ? 'probe' : 'part' };
  }

  /** Notes how a call ended. Returns the new state of the circuit, if it changed. */
  leave(pass: Pass, outcome: CallOutcome, now: number, error?: unknown): 'open' | 'closed' | undefined {
    this.active--;
    if (pass.era !== this.era) return undefined;
    if (pass.as === 'probe') this.probe = undefined;
    const tries = pass.as !== 'call';
    if (outcome === 'nothing') return undefined;
    if (outcome === 'success') {
      this.failed = [];
      return tries ? this.turn(undefined) : undefined;
    }
    this.lastError = error;
    const { failures, windowMs, cooldownMs } = this.limits;
    this.failed = [...this.failed.filter((at) => at > now - windowMs), now];
    return tries || this.failed.length >= failures ? this.turn(now + cooldownMs) : undefined;
  }

  private turn(openUntil: number | undefined): 'open' | 'closed' {
    this.era++;
    this.probe = undefined;
    this.failed = [];
    this.openUntil = openUntil;
    return openUntil === undefined ? 'closed' : 'open';
  }
}
