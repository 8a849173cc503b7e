/** How long Redis may take, and the error if it takes longer. */
import { AlliumError } from 'allium';

/** Asks Redis, as long as it may take. */
export type Reach = <T>(ask: () => Promise<T>) => Promise<T>;

/** For workers, which wait until Redis is back. */
export const forever: Reach = (ask) => ask();

/** For callers, who get an error after `timeoutMs`. */
export function within(timeoutMs: number, address: string): Reach {
  const unreachable = (cause?: unknown): AlliumError =>
    new AlliumError(
      'QUEUE_UNREACHABLE',
      `Redis at ${address} ${cause === undefined ? `did not answer within ${timeoutMs} ms` : 'cannot be reached'}. Check that it runs and that \`connection\` is its address. The call may still take effect when Redis is back: enqueue with an \`idempotencyKey\` if you try again.`,
      { data: { address, timeoutMs }, ...(cause !== undefined && { cause }) },
    );
  const full = (cause: unknown): AlliumError =>
    new AlliumError(
      'QUEUE_FULL',
      `Redis at ${address} has used up its \`maxmemory\` and takes no new jobs. Give it more memory and try again. Jobs that it already has are still worked on.`,
      { data: { address }, cause },
    );
  return async (ask) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(unreachable()), timeoutMs);
    });
    try {
      return await Promise.race([ask(), late]);
    } catch (error) {
      if (isFull(error)) throw full(error);
      throw isLostConnection(error) ? unreachable(error) : error;
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Settles with it, or after this many milliseconds without it. Never rejects. */
export async function atMost(ms: number, wait: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([wait.catch(() => undefined), late]);
  clearTimeout(timer);
}

/** The same object, whose promises are bounded. */
export function reaching<T extends object>(target: T, reach: Reach): T {
  return new Proxy(target, {
    get(of, name) {
      const member: unknown = Reflect.get(of, name, of);
      if (typeof member !== 'function' || name === 'close' || name === 'on') return member;
      return (...args: unknown[]): unknown => reach(async () => Reflect.apply(member, of, args));
    },
  });
}

/** Redis refused to write. */
function isFull(error: unknown): boolean {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' && /^(ReplyError: )?OOM /.test(message);
}

/** There was no answer of Redis, or it is a replica since a failover. */
function isLostConnection(error: unknown): boolean {
  const { name, code, message } = (error ?? {}) as { name?: string; code?: string; message?: string };
  if (name === 'MaxRetriesPerRequestError' || name === 'ConnectionClosedError') return true;
  if (code !== undefined && /^(ECONN|ENOTFOUND|ETIMEDOUT|EPIPE|EHOSTUNREACH)/.test(code)) return true;
  if (message?.includes('READONLY')) return true;
  return message === 'Connection is closed.' || message === 'Command timed out';
}
