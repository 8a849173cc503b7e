/** One circuit: closed until too many calls fail in a row, then open, then tried with a single call. */

export interface CircuitLimits {
  readonly failures: number;
  readonly windowMs: number;
  readonly cooldownMs: number;
}

/** What a call came to: it worked, it failed in a way that counts, or it says nothing about the other side. */
export type CallOutcome = 'success' | 'failure' | 'nothing';

/** A call that was let through. */
export interface Pass {
  readonly era: number;
  readonly probe: boolean;
}

export class Circuit {
  /** When the calls failed that count, in order. */
  private failed: number[] = [];
  private openUntil: number | undefined = undefined;
  private probing = false;
  /** Grows when the circuit opens or closes: what began before says nothing about what is now. */
  private era = 0;
  /** Calls under way. */
  private active = 0;
  lastError: unknown = undefined;

  constructor(private readonly limits: CircuitLimits) {}

  /** There is nothing to remember. */
  get isFresh(): boolean {
    return this.openUntil === undefined && this.failed.length === 0 && this.active === 0;
  }

  /** Lets a call through, or says why not: the milliseconds to wait, or undefined while another call tries. */
  enter(now: number): Pass | { readonly retryAfterMs: number | undefined } {
    if (this.openUntil !== undefined) {
      if (now < this.openUntil) return { retryAfterMs: this.openUntil - now };
      if (this.probing) return { retryAfterMs: undefined };
      this.probing = true;
    }
    this.active++;
    return { era: this.era, probe: this.probing };
  }

  /** Notes how a call ended; returns what the circuit became by it, if anything. */
  leave(pass: Pass, outcome: CallOutcome, now: number, error?: unknown): 'open' | 'closed' | undefined {
    this.active--;
    if (pass.era !== this.era) return undefined;
    if (pass.probe) this.probing = false;
    if (outcome === 'nothing') return undefined;
    if (outcome === 'success') {
      this.failed = [];
      return pass.probe ? this.turn(undefined) : undefined;
    }
    this.lastError = error;
    const { failures, windowMs, cooldownMs } = this.limits;
    this.failed = [...this.failed.filter((at) => at > now - windowMs), now];
    return pass.probe || this.failed.length >= failures ? this.turn(now + cooldownMs) : undefined;
  }

  private turn(openUntil: number | undefined): 'open' | 'closed' {
    this.era++;
    this.failed = [];
    this.openUntil = openUntil;
    return openUntil === undefined ? 'closed' : 'open';
  }
}
