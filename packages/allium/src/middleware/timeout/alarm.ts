/** Alarms of active time that are set and cleared at almost no cost. */
import type { Clock } from '../../kernel/clock.js';

/**
 * One timer for several alarms. Most of them are cleared long before they are due, so during a run it is left as it is:
 * when it fires, it looks who is late, and when to look again.
 */
export class Timer {
  private readonly alarms: Alarm[] = [];
  private cancel: (() => void) | undefined = undefined;
  private due = Number.POSITIVE_INFINITY;

  constructor(
    private readonly clock: Clock,
    /** There will be more alarms until it is closed. */
    private kept: boolean,
  ) {}

  now(): number {
    return this.clock.now();
  }

  /** Looks after an alarm that is due in `ms` at the earliest. */
  add(alarm: Alarm, now: number, ms: number): void {
    this.alarms.push(alarm);
    if (now + ms < this.due) this.arm(now, ms);
  }

  remove(alarm: Alarm): void {
    const { alarms } = this;
    if (alarms.at(-1) === alarm) alarms.pop();
    else alarms.splice(alarms.indexOf(alarm), 1);
    if (alarms.length === 0 && !this.kept) this.close();
  }

  /** From here on it is set only while there are alarms. */
  close(): void {
    this.kept = false;
    this.cancel?.();
    this.cancel = undefined;
    this.due = Number.POSITIVE_INFINITY;
  }

  private arm(now: number, ms: number): void {
    this.cancel?.();
    this.due = now + ms;
    this.cancel = this.clock.setTimer(() => this.fire(), ms);
  }

  private fire(): void {
    this.cancel = undefined;
    this.due = Number.POSITIVE_INFINITY;
    const now = this.now();
    const late = this.alarms.filter((alarm) => alarm.leftAt(now) <= 0);
    let next = Number.POSITIVE_INFINITY;
    for (const alarm of this.alarms) if (!late.includes(alarm)) next = Math.min(next, alarm.leftAt(now));
    if (next < Number.POSITIVE_INFINITY) this.arm(now, Math.max(1, next));
    for (const alarm of late) alarm.ring();
  }
}

export class Alarm {
  private ticking = false;
  private ms = 0;
  private since = 0;
  private pausedBefore = 0;
  private late: (ms: number) => void = ignore;

  /** `pausedMs` of the call grows with the time that does not count. */
  constructor(
    private readonly timer: Timer,
    private readonly call: { readonly pausedMs: number },
  ) {}

  /** Calls `late` after `ms`, in the place of what was set before; never without a limit. */
  set(ms: number | undefined, late: (ms: number) => void): void {
    this.clear();
    if (ms === undefined || ms === Number.POSITIVE_INFINITY) return;
    this.ms = ms;
    this.late = late;
    this.ticking = true;
    this.restart();
    this.timer.add(this, this.since, ms);
  }

  /** Begins to count anew. */
  restart(): void {
    if (!this.ticking) return;
    this.since = this.timer.now();
    this.pausedBefore = this.call.pausedMs;
  }

  clear(): void {
    if (!this.ticking) return;
    this.ticking = false;
    this.timer.remove(this);
  }

  /** Milliseconds until it is late, if nothing pauses. */
  leftAt(now: number): number {
    return this.ms - (now - this.since - (this.call.pausedMs - this.pausedBefore));
  }

  ring(): void {
    // Whoever was told before may have cleared it.
    if (!this.ticking) return;
    this.clear();
    this.late(this.ms);
  }
}

function ignore(): void {}
