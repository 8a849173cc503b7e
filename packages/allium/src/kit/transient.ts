/** Is an error worth another try? Decided on the error itself and what caused it, hardly ever on its message. */
import { isControl } from '../kernel/protocol/signals.js';

/** Statuses below 500 that pass by themselves; every 5xx does, 529 (overloaded) included. */
const STATUSES = new Set([408, 409, 425, 429]);

/** Comes with a status of 429, but waiting does not fill an account. */
const NEVER = 'insufficient_quota';

/** Names of transient failures in an error, in its body, or in the stream after a status of 200. */
const PASSING = new Set(
  `
  ECONNRESET ECONNREFUSED ECONNABORTED ETIMEDOUT ESOCKETTIMEDOUT EPIPE EAI_AGAIN ENOTFOUND
  ENETDOWN ENETRESET ENETUNREACH EHOSTDOWN EHOSTUNREACH ERR_NETWORK ERR_STREAM_PREMATURE_CLOSE
  ERR_HTTP2_STREAM_ERROR ERR_HTTP2_SESSION_ERROR ERR_HTTP2_GOAWAY_SESSION ERR_HTTP2_STREAM_CANCEL ERR_HTTP2_INVALID_SESSION
  UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET UND_ERR_REQ_RETRY
  MODEL_STREAM_CUT MODEL_STREAM_FAILED
  overloaded overloaded_error rate_limit_error rate_limit_exceeded timeout_error api_error
  server_error internal_server_error service_unavailable UNAVAILABLE RESOURCE_EXHAUSTED DEADLINE_EXCEEDED
  ThrottlingException ServiceUnavailableException InternalServerException ModelNotReadyException
  ModelTimeoutException ModelStreamErrorException
  `.match(/\S+/g),
);

const NAMES = new Set(['TimeoutError', 'APIConnectionError', 'APIConnectionTimeoutError']);

/** How `fetch` words a lost connection when it gives no code. */
const FETCH = /^(fetch failed|terminated|failed to fetch|network ?error.*|load failed)$/i;

/** How other clients and runtimes do: Cloudflare's, Node's, and that of AWS. */
const LOST = /^(network connection lost|socket hang up|.*http2 request did not get a response)\.?$/i;

const MAX_CAUSES = 8;

/**
 * Is the problem likely to pass? Yes: network trouble, timeouts, 408, 409, 425, 429, 5xx, an overloaded provider, a stream
 * that broke off. No: stops, suspensions, aborts, refusals of a guard, any other 4xx.
 */
export function isTransient(error: unknown): boolean {
  let lost = false;
  try {
    for (const one of chainOf(error)) {
      const verdict = judge(one);
      if (verdict !== undefined) return verdict;
      lost ||= one instanceof Error && (one instanceof TypeError ? FETCH : LOST).test(one.message);
    }
  } catch {
    // An error that can't be read says nothing, and is reported as it is.
    return false;
  }
  return lost;
}

/** The error and its causes, outermost first; objects only, each once. */
export function* chainOf(error: unknown): Generator<Record<string, unknown>> {
  const seen = new Set<unknown>();
  let at = error;
  while (typeof at === 'object' && at !== null && !seen.has(at) && seen.size < MAX_CAUSES) {
    seen.add(at);
    yield at as Record<string, unknown>;
    at = (at as { cause?: unknown }).cause;
  }
}

/** Undefined: it doesn't say, so its cause is asked. */
function judge(error: Record<string, unknown>): boolean | undefined {
  if (isControl(error) || error.name === 'AbortError') return false;
  const words = wordsOf(error);
  if (words.includes(NEVER)) return false;
  for (const wish of [error.isRetryable, error.retryable]) if (typeof wish === 'boolean') return wish;
  const wish = headerOf(error, 'x-should-retry');
  if (wish === 'true' || wish === 'false') return wish === 'true';
  const status = statusOf(error);
  if (status !== undefined && status >= 400) return status >= 500 || STATUSES.has(status);
  if (words.some((word) => PASSING.has(word) || word.endsWith('_TIMEOUT'))) return true;
  const { name: kind } = (error.constructor ?? {}) as { readonly name?: unknown };
  if (NAMES.has(String(error.name)) || NAMES.has(String(kind))) return true;
  // Any other code is a statement too: a bad certificate, an invalid argument. A wrapper's code is not.
  const says = typeof error.code === 'string' && error.code !== 'MODEL_ERROR' && error.code !== '';
  return says ? false : undefined;
}

/** Where clients put the name of what went wrong. */
function wordsOf(error: Record<string, unknown>): string[] {
  type Body = { type?: unknown; code?: unknown; error?: Body } | null | undefined;
  const body = error.error as Body;
  const own = [error.code, error.type, error.status, error.name];
  const inner = [body?.type, body?.code, body?.error?.type, body?.error?.code];
  return [...own, ...inner].filter((word) => typeof word === 'string');
}

function statusOf(error: Record<string, unknown>): number | undefined {
  const response = error.response as { status?: unknown; statusCode?: unknown } | null | undefined;
  const metadata = error.$metadata as { httpStatusCode?: unknown } | null | undefined;
  const places = [error, response].flatMap((one) => [one?.status, one?.statusCode]);
  return [...places, metadata?.httpStatusCode, error.code].find(
    (value): value is number => typeof value === 'number' && value >= 100 && value < 600,
  );
}

/** A header of the HTTP response of an error, wherever its client keeps them. `name` in lower case. */
export function headerOf(error: Record<string, unknown>, name: string): string | undefined {
  const response = error.response as { headers?: unknown } | null | undefined;
  for (const headers of [error.headers, error.responseHeaders, response?.headers]) {
    if (typeof headers !== 'object' || headers === null) continue;
    const { get } = headers as { get?: unknown };
    const value =
      typeof get === 'function'
        ? get.call(headers, name)
        : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    if (value !== undefined && value !== null) return String(Array.isArray(value) ? value[0] : value);
  }
  return undefined;
}
