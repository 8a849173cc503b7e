/** Answers that are not a success. They have a code and a message of ours; what went wrong inside stays inside. */
import { ERROR_CODES, type ErrorCode } from '../index.js';
import { isRecord } from '../kit/index.js';

/** A refusal with a status and a code, thrown by routes. */
export class HttpFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** For sessions that do not exist, and for those of other tenants. */
export function unknownSession(): HttpFailure {
  return new HttpFailure(404, 'NOT_FOUND', 'There is no such session. POST /sessions starts one.');
}

export function invalidRequest(message: string): HttpFailure {
  return new HttpFailure(400, 'INVALID_REQUEST', message);
}

/** The codes of a run that clients see, and their status. All others are internal. */
const STATUS: { readonly [Code in ErrorCode]?: number } = {
  SESSION_BUSY: 409,
  SESSION_CONFLICT: 409,
  RUN_OPEN: 409,
  NOTHING_TO_CONTINUE: 409,
  CALLS_UNANSWERED: 409,
  REQUEST_UNKNOWN: 409,
  REQUEST_MISMATCH: 409,
  DECISION_NOT_ALLOWED: 409,
  MESSAGE_UNKNOWN: 404,
  INVALID_MESSAGE: 400,
  RATE_LIMITED: 429,
  CONCURRENCY_LIMITED: 429,
  STORE_FAILED: 503,
  STORE_TIMEOUT: 503,
};

export function toFailure(error: unknown): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const code = isRecord(error) || error instanceof Error ? (error as { code?: unknown }).code : undefined;
  const wrong = code === 'INVALID_OPTION' && flawOf(error as { data?: Readonly<Record<string, unknown>> });
  if (wrong) return invalidRequest(wrong);
  if (code === 'TENANT_MISMATCH' || code === 'SESSION_UNKNOWN') return unknownSession();
  const status = typeof code === 'string' ? STATUS[code as ErrorCode] : undefined;
  if (status === undefined) return new HttpFailure(500, 'INTERNAL', 'Something went wrong.');
  return new HttpFailure(status, code as string, ERROR_CODES[code as ErrorCode]);
}

/** What is wrong with an option that the client has given. Any other is the server's. */
function flawOf({ data = {} }: { readonly data?: Readonly<Record<string, unknown>> }): string | undefined {
  if (data.requestId !== undefined)
    return "The tool doesn't take the arguments of this `edit`. The question is still open.";
  return data.option === 'cursor' ? '`cursor` has to be the `next` of an earlier page.' : undefined;
}

export function failureResponse({ status, code, message, headers }: HttpFailure): Response {
  return Response.json({ error: { code, message } }, { status, headers });
}

/** Tells whoever runs the server. */
export function report(error: unknown): void {
  globalThis.console.error('[allium] a request failed:', error);
}
