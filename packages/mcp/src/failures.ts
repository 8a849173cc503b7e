/** What errors of the library are about. */

import { isRecord, messageOf } from 'allium/kit';

/** What servers of the official library answer in a session they don't know. */
const SESSION_NOT_FOUND = -32001;
const MAX_SAID = 2000;

/**
 * The server does not know the session any more. The protocol says 404; other servers say 400 or 401 and name the session, or
 * answer with an error of the protocol.
 */
export function forgotSession(error: unknown): boolean {
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string };
  const status = statusOf(error);
  if (status === 404) return true;
  return (
    (status === 400 || status === 401 || code === SESSION_NOT_FOUND) &&
    /session|not initialized/i.test(message)
  );
}

/** The HTTP status that an error of the library is about. */
export function statusOf(error: unknown): number | undefined {
  const { data } = (error ?? {}) as { data?: unknown };
  const { status } = (isRecord(data) ? data : {}) as { status?: unknown };
  return typeof status === 'number' ? status : undefined;
}

/** The library only passes on what the server wrote, which may be nothing or a whole page. */
export function reasonOf(error: unknown): string {
  const said = messageOf(error).slice(0, MAX_SAID).trim();
  const status = statusOf(error);
  if (status === undefined) return said;
  const advice = status === 401 || status === 403 ? ' It did not accept the `headers`.' : '';
  return `HTTP status ${status}.${advice} ${said}`;
}
