/** Sums of tokens and money. */

import { type Expense, type Usage, UsageTotal } from '../messages/messages.js';
import type { OpenBatch } from './journaled-run.js';

/** What was used, and what that cost. */
type Amount = Pick<Expense, 'usage' | 'costUsd'>;

export class Spent implements Amount {
  readonly usage = new UsageTotal();
  costUsd: number | undefined = 0;

  add({ usage, costUsd }: Amount): void {
    this.usage.add(usage);
    this.costUsd = this.costUsd === undefined || costUsd === undefined ? undefined : this.costUsd + costUsd;
  }
}

/** What is in the first list and not in the second. */
export function missing(spent: readonly Amount[], known: readonly Amount[]): Amount {
  const [all, noted] = [spent, known].map((list) => {
    const total = new Spent();
    for (const one of list) total.add(one);
    return total;
  }) as [Spent, Spent];
  const usage = new UsageTotal();
  for (const field of Object.keys(usage) as (keyof Usage)[])
    usage[field] = Math.max(0, all.usage[field] - noted.usage[field]);
  const costUsd =
    all.costUsd === undefined || noted.costUsd === undefined
      ? undefined
      : Math.max(0, all.costUsd - noted.costUsd);
  return { usage: usage.snapshot(), costUsd };
}

/** What a sub-agent has used for the calls of this batch, as far as it is journaled. */
export function spentIn(batch: OpenBatch, from: string): Spent {
  batch.spent ??= new Map();
  let spent = batch.spent.get(from);
  if (!spent) {
    spent = new Spent();
    batch.spent.set(from, spent);
  }
  return spent;
}
