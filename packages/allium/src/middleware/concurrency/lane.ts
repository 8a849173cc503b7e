/** The places of one key, and who has them. */
import type { Context } from '../../index.js';
import { Semaphore } from './semaphore.js';

export class Lane {
  private readonly places: Semaphore;
  /** The calls that have a place, and how calls inside them enter. */
  private readonly holders = new Map<Context, Semaphore>();

  constructor(max: number) {
    this.places = new Semaphore(max);
  }

  get isIdle(): boolean {
    return this.holders.size === 0 && this.places.isIdle;
  }

  /**
   * Where a call enters. If every place is taken, a call made inside one that has a place shares that place:
   * otherwise the two would wait for each other. Several of them take turns there.
   */
  entryFor(ctx: Context): Semaphore {
    let entry = this.places;
    if (!entry.isFull) return entry;
    // The last one that contains it is the nearest.
    for (const [holder, place] of this.holders) if (ctx.isInside(holder)) entry = place;
    return entry;
  }

  took(ctx: Context): void {
    this.holders.set(ctx, new Semaphore(1));
  }

  left(ctx: Context): void {
    this.holders.delete(ctx);
  }
}
