/** Sums of tokens and money. */

import { costSum, type Expense, type Usage, UsageTotal } from '../messages/messages.js';
import type { OpenBatch } from './journaled-run.js';

/** What was used, and what that cost. */
type Amount = Pick<Expense, 'usage' | 'costUsd'>;

export class Spent implements Amount {
  readonly usage = new UsageTotal();
  costUsd: number | undefined = 0;

  add({ usage, costUsd }: Amount): void {
    this.usage.add(usage);
    this.costUsd = costSum(this.costUsd, costUsd);
  }
}

/** What is in the first list and not in the second. */
export function missing(spent: readonly Amount[], known: readonly Amount[]): Amount {
  const [all, noted] = [total(spent), total(known)];
  const usage = new UsageTotal();
  for (const field of Object.keys(usage) as (keyof Usage)[])
    usage[field] = Math.max(0, all.usage[field] - noted.usage[field]);
  const costUsd = costSum(all.costUsd, noted.costUsd && -noted.costUsd);
  return { usage: usage.snapshot(), costUsd: costUsd && Math.max(0, costUsd) };
}

function total(amounts: readonly Amount[]): Spent {
  const spent = new Spent();
  for (const one of amounts) spent.add(one);
  return spent;
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
