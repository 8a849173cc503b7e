/** The ids of jobs, which are those of their runs. */
import { createHash, randomUUID } from 'node:crypto';

/** Ids contain neither of the characters that separate a job from its runs, messages and questions. */
export function newId(): string {
  return `r_${randomUUID().replaceAll('-', '').slice(0, 20)}`;
}

/** Stands for an idempotency key. Not the id of its job: the same key may be used again some day, for another run. */
export function keyed(tenant: string | undefined, key: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([tenant ?? null, key]))
    .digest('hex');
  return `k_${hash.slice(0, 24)}`;
}
