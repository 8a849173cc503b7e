/** Thrown values as JSON and back: name, message, code and status, so that a handler does the same again. */
import { AlliumError, isTransient, type StopRun } from '../index.js';
import { controlKind, errorHeader, messageOf, toStoredJson } from '../kit/index.js';
import type { Cleaner } from './clean.js';
import type { StoredError, StoredStop } from './format.js';

const MAX_CAUSES = 4;
/** Headers with which servers say whether to try again. */
const HEADERS = ['retry-after', 'retry-after-ms', 'x-should-retry'];

/** The stop, if the error is one. */
export function stopOf(error: unknown): StoredStop | undefined {
  if (controlKind(error) !== 'stop') return undefined;
  const { reason, message } = error as StopRun;
  return { reason, message };
}

/** Errors keep their plain fields and their causes. Stacks, bodies and clients don't belong in a cassette. */
export function toStoredError(error: unknown): StoredError {
  return passingAlike(error, described(error, MAX_CAUSES));
}

/** For an error that quotes what nobody may read: its kind, with another message. */
export function toBareError(error: unknown, message: string): StoredError {
  const stored = described(error, 0);
  if ('thrown' in stored) return { thrown: message };
  const { name, code, status, headers } = stored;
  return passingAlike(error, { name, message, code, status, headers });
}

/**
 * Clients say in many ways that an error is transient. If the stored error no longer says so, one field replaces
 * them.
 */
function passingAlike(error: unknown, stored: StoredError): StoredError {
  const passes = isTransient(error);
  if ('thrown' in stored || isTransient(fromStoredError(stored)) === passes) return stored;
  return { ...stored, isRetryable: passes };
}

/**
 * What a tool threw. The model reads anything that isn't an error as text; if that would differ, the text is stored.
 */
export function toStoredFailure(error: unknown, clean: Cleaner): StoredError {
  const stored = clean.value(toStoredError(error));
  const text = clean.text(messageOf(error));
  return 'thrown' in stored && messageOf(stored.thrown) !== text ? { thrown: text } : stored;
}

function described(error: unknown, causes: number): StoredError {
  if (!(error instanceof Error)) return { thrown: toStoredJson(error) ?? null };
  const { name, message, cause } = error;
  const fields = Object.entries(error).filter(([, value]) =>
    ['string', 'number', 'boolean'].includes(typeof value),
  );
  const plain = error as unknown as Record<string, unknown>;
  const headers = HEADERS.flatMap((header) => {
    const value = errorHeader(plain, header);
    return value === undefined ? [] : [[header, value]];
  });
  return {
    ...Object.fromEntries(fields),
    name,
    message,
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(error instanceof AlliumError && { data: toStoredJson(error.data) }),
    ...(cause !== undefined && causes > 0 && { cause: described(cause, causes - 1) }),
  };
}

/** Errors that others recognise by their class. */
const CLASSES = { TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError } as const;

export function fromStoredError(stored: StoredError): unknown {
  if ('thrown' in stored) return stored.thrown;
  const { name, message, cause, code, data, ...fields } = stored;
  const options = cause === undefined ? {} : { cause: fromStoredError(cause as StoredError) };
  if (name === 'AlliumError')
    return new AlliumError(String(code), message, {
      ...options,
      data: data as Record<string, unknown> | undefined,
    });
  const Class = CLASSES[name as keyof typeof CLASSES] ?? Error;
  const error = new Class(message, options);
  if (error.name !== name)
    Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true });
  return Object.assign(error, fields, code !== undefined && { code });
}
