/** Checks entries that a store returned, so that a damaged field is found here and not where it is used. */

import { AlliumError, isRecord, shown } from '../lib/errors.js';

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === 'string';
const number: Check = (value) => typeof value === 'number';
const list =
  (of: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(of);
const optional =
  (of: Check): Check =>
  (value) =>
    value === undefined || of(value);
/** An object with at least these fields. */
const object =
  (fields: Readonly<Record<string, Check>> = {}): Check =>
  (value) =>
    isRecord(value) && lackIn(value, fields) === undefined;

const PARTS: Readonly<Record<string, Check>> = {
  text: object({ text }),
  thinking: object({ text }),
  'tool-call': object({ id: text, name: text, arguments: text }),
};
const part: Check = (value) =>
  isRecord(value) &&
  typeof value.type === 'string' &&
  (!Object.hasOwn(PARTS, value.type) || PARTS[value.type]!(value));
const usage = object({
  inputTokens: number,
  outputTokens: number,
  cacheRead: number,
  cacheWrite: number,
  totalTokens: number,
});
const MESSAGE = { id: text, content: list(part), usage: optional(usage) };
const result = object({ ...MESSAGE, role: (role) => role === 'tool', toolCallId: text, toolName: text });
const said = object({ ...MESSAGE, role: (role) => role === 'user' || role === 'assistant' });
const message: Check = (value) => said(value) || result(value);
const stop = object({ reason: text });
const runId = text;

/** What each kind of entry must have. `SessionState` refuses kinds that aren't listed. */
const FIELDS: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  run_start: {
    runId,
    plan: list(text),
    twins: optional(object()),
    tenant: optional(text),
    limits: optional(object()),
  },
  message: {
    runId,
    message: said,
    inject: optional(list(message)),
    offered: optional(list(text)),
    follows: optional(object()),
  },
  state: { cell: text, version: number, runId: optional(text) },
  tool_started: { runId, messageId: text, callId: text },
  tool_finished: { runId, message: result, stop: optional(stop) },
  request: { runId, request: object({ id: text, callId: text, toolName: text, arguments: text }) },
  answer: { runId, requestId: text, decision: object({ type: text }) },
  verdict: { runId, callId: text, hash: text },
  usage: { runId, usage, from: optional(text) },
  active: { runId, ms: number },
  trace: { runId, version: number, records: list(object({ n: number, by: text, did: text })) },
  inbox: { cursor: number, waits: optional(list(number)), revoked: optional(list(text)) },
  run_end: { runId, status: text, stop, turns: number },
};

/** Throws `SESSION_CORRUPT` for an invalid entry, and names the field. */
export function checkEntry(entry: unknown, sessionId: string): void {
  const known = isRecord(entry) && typeof entry.type === 'string' ? entry : undefined;
  const lack = known
    ? lackIn(known, Object.hasOwn(FIELDS, known.type as string) ? FIELDS[known.type as string]! : {})
    : 'type';
  if (lack === undefined) return;
  const { [lack]: value, seq } = isRecord(entry) ? entry : { [lack]: entry };
  throw new AlliumError(
    'SESSION_CORRUPT',
    `Entry ${shown(seq)} of session ${shown(sessionId)}${known ? ` (${known.type})` : ''} has the \`${lack}\` ${shown(value)}. Something else changed the journal, or it is damaged. Restore it from a backup, or delete the session.`,
    { data: { sessionId, seq, field: lack } },
  );
}

function lackIn(
  value: Readonly<Record<string, unknown>>,
  fields: Readonly<Record<string, Check>>,
): string | undefined {
  for (const field in fields) if (!fields[field]!(value[field])) return field;
  return undefined;
}
