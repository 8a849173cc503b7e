/** The story of one message, from the history to the wire to the answer, in plain words. */

import {
  type AssistantMessage,
  type Message,
  type RunTrace,
  type TraceChanges,
  type TracedRequest,
  type TraceRecord,
  textOf,
  toolCallsOf,
  type ValueChange,
} from '../index.js';
import { count, quoted, short, time } from './plain-words.js';

export function story(trace: RunTrace, history: readonly Message[], messageId: string): string {
  const place = history.findIndex(({ id }) => id === messageId);
  const message = history[place];
  const lines = message ? told(trace, message) : unseen(trace, messageId);
  if (message) lines.push(...onTheWire(trace, message));
  return lines.join('\n');
}

function told(trace: RunTrace, message: Message): string[] {
  if (message.role === 'assistant') return answer(trace, message);
  if (message.role === 'tool') return result(trace, message);
  const source = message.metadata?.source;
  const from = message.metadata?.synthetic
    ? `was written by "${source ?? 'a middleware'}"`
    : 'came from outside';
  const lines = [`Message ${message.id} ${from}: ${quoted(textOf(message))}.`];
  // Messages have no id before they are taken in, so what happened on the way is found by its turn.
  if (!message.metadata?.synthetic)
    for (const one of trace.records)
      if (one.hook === 'acceptMessage' || one.verdict?.point === 'input') lines.push(`  ${sentence(one)}`);
  return lines;
}

/** No message of the history has this id: the answer may have been refused or abandoned. */
function unseen(trace: RunTrace, messageId: string): string[] {
  const calls = callsFor(trace, messageId);
  if (calls.length === 0) return [`Run ${trace.runId} has no message ${messageId}.`];
  return [`Message ${messageId} is not in the history: it was discarded.`, ...attempts(trace, calls)];
}

function callsFor({ records }: RunTrace, messageId: string): readonly TraceRecord[] {
  return records.filter((one) => one.sent && one.messageId === messageId && one.caller === undefined);
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────

function answer(trace: RunTrace, message: AssistantMessage): string[] {
  const calls = callsFor(trace, message.id);
  const names = toolCallsOf(message).map(({ name }) => name);
  const said = textOf(message) || names.length === 0 ? quoted(textOf(message)) : '';
  const asks = names.length > 0 ? `${said ? ', and' : 'it'} calls ${names.join(', ')}` : '';
  const lines = [
    `Message ${message.id} is the answer of turn ${turnOf(trace, message, calls)}: ${said}${asks}.`,
  ];
  if (calls.length === 0) lines.push('  No model was called for it: a middleware gave the answer.');
  lines.push(...attempts(trace, calls));
  const turn = calls.at(-1)?.turn;
  for (const one of trace.records)
    if (one.turn === turn && (one.changes?.response || one.hook === 'afterModelResponse' || isOfAnswer(one)))
      lines.push(`  Then ${sentence(one)}`);
  return lines;
}

function turnOf({ records }: RunTrace, { id }: Message, calls: readonly TraceRecord[]): number | string {
  return calls[0]?.turn ?? records.find(({ messageId }) => messageId === id)?.turn ?? '?';
}

function isOfAnswer({ verdict }: TraceRecord): boolean {
  const { point } = verdict ?? {};
  return point === 'output' || point === 'thinking' || point === 'final' || point === 'tool-args';
}

/** Each model call for one answer: what was sent, and the outcome. */
function attempts(trace: RunTrace, calls: readonly TraceRecord[]): string[] {
  return calls.flatMap((call, i) => {
    const request = trace.requestAt(call.n);
    const which = calls.length > 1 ? `Attempt ${i + 1}: ` : '';
    const lines = [`  ${which}${request.model} was sent ${described(request)}.`];
    for (const step of request.steps) lines.push(`    ${sentence(step)}`);
    lines.push(`    ${outcome(call)}`);
    const next = calls[i + 1]?.n ?? Number.POSITIVE_INFINITY;
    for (const one of trace.records)
      if (isRetryOf(call, one) && one.n < next) lines.push(`    ${sentence(one)}`);
    return lines;
  });
}

/** A tool's retries belong to its result. */
function isRetryOf(call: TraceRecord, { did, turn, n, seam, callId }: TraceRecord): boolean {
  return did === 'retried' && turn === call.turn && n > call.n && seam !== 'tool' && callId === undefined;
}

function described({ messages, leftOut, tools }: TracedRequest): string {
  const changed = messages.filter(({ by }) => by !== undefined).length;
  const parts = [count(messages.length, 'message')];
  if (changed > 0) parts.push(`${changed} of them not as in the history`);
  if (leftOut.length > 0) parts.push(`${leftOut.length} of the history left out`);
  const offered = tools.length === 0 ? 'no tools' : count(tools.length, 'tool');
  return `${parts.join(', ')}${parts.length > 1 ? ',' : ''} and ${offered}`;
}

function outcome({ did, ms, error }: TraceRecord): string {
  if (did === 'called') return `It answered after ${time(ms)}.`;
  if (did === 'failed') return ended(`It failed after ${time(ms)}: ${reason(error)}`);
  return `It was cut off after ${time(ms)}.`;
}

// ── Results of tools ─────────────────────────────────────────────────────────────────────────────────────────

function result(trace: RunTrace, message: Message & { role: 'tool' }): string[] {
  const { id, toolName, toolCallId, isError } = message;
  const outcome = isError ? 'error' : 'result';
  const lines = [
    `Message ${id} is the ${outcome} of ${toolName} (call ${toolCallId}): ${quoted(textOf(message))}.`,
  ];
  for (const one of trace.records) if (one.callId === toolCallId) lines.push(`  ${sentence(one)}`);
  return lines;
}

// ── On the wire ──────────────────────────────────────────────────────────────────────────────────────────────

/** In which model calls the message was sent, and how. Calls that treat it alike share a line. */
function onTheWire(trace: RunTrace, { id }: Message): string[] {
  const groups: { how: string; calls: number[] }[] = [];
  for (const call of trace.records) {
    if (!call.sent || call.caller !== undefined) continue;
    const how = howSent(trace.requestAt(call.n), id);
    if (how === undefined) continue;
    const last = groups.at(-1);
    if (last?.how === how) last.calls.push(call.turn);
    else groups.push({ how, calls: [call.turn] });
  }
  return groups.map(({ how, calls }) => {
    const [first, last] = [calls[0]!, calls.at(-1)!];
    return `In ${first === last ? `turn ${first}` : `turns ${first} to ${last}`} ${how}.`;
  });
}

function howSent({ messages, leftOut }: TracedRequest, id: string): string | undefined {
  const dropped = leftOut.find(({ message }) => message.id === id);
  if (dropped) return `"${dropped.by}" left it out, so the model did not see it`;
  const sent = messages.find(({ message }) => message.id === id);
  if (!sent) return undefined;
  if (sent.by === undefined) return 'the model got it unchanged';
  return `the model got what "${sent.by}" made of it: ${quoted(textOf(sent.message))}`;
}

// ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────

/** One record as a sentence. */
function sentence(record: TraceRecord): string {
  const { by, hook, what, ms, did, error } = record;
  if (by === 'tool')
    return did === 'failed' ? ended(`The tool failed after ${time(ms)}: ${reason(error)}`) : toolRan(record);
  if (by === 'human') return `The question was answered: ${answered(record)}.`;
  const who = hook === 'note' ? `"${by}"` : `"${by}" (${hook}${ms > 0 ? `, ${time(ms)}` : ''})`;
  const why = error && !what ? `: ${reason(error)}` : '';
  const done = what
    ?.replace(/^(retry|fallback) after: /, (_, kind) => AGAIN[kind as keyof typeof AGAIN])
    .replaceAll('.; ', '; ');
  return ended(`${who} ${done ?? deed(record)}${why}${details(record)}`);
}

const AGAIN = { retry: 'tried again after: ', fallback: 'took another model after: ' };

/** The message of an error may already be a sentence. */
function ended(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}

/** How a question was answered. */
function answered({ changes }: TraceRecord): string {
  const { type, why } = changes?.decision ?? {};
  const edits = changes?.args?.slice(0, 3).map(difference) ?? [];
  const told = [...edits, ...(why ? [quoted(why)] : [])].join('; ');
  return `${ANSWERS[type as keyof typeof ANSWERS] ?? type}${told && `: ${told}`}`;
}

const EDITED = 'with edited arguments';
const ANSWERS = { approve: 'approved', edit: EDITED, reject: 'rejected', respond: 'with a text' };

/** What it did, and to which parts of the request, the call or the answer. */
function deed({ did, changes }: TraceRecord): string {
  const parts = did === 'rewrote' ? Object.keys(changes ?? {}) : [];
  if (parts.length === 0) return WORDS[did];
  return `changed the ${parts.map((part) => PARTS[part as keyof TraceChanges]).join(', the ')}`;
}

const PARTS: Readonly<Record<keyof TraceChanges, string>> = {
  messages: 'messages of the request',
  systemPrompt: 'system prompt',
  tools: 'list of tools',
  model: 'model',
  settings: 'settings',
  toolCall: 'call',
  args: 'arguments',
  result: 'result',
  response: 'answer',
  message: 'message',
  inject: 'messages that follow',
  decision: 'decision',
};

function toolRan({ ms, did, agentId }: TraceRecord): string {
  const inside = agentId ? `, in the sub-agent ${agentId}` : '';
  return did === 'called'
    ? `The tool ran for ${time(ms)}${inside}.`
    : `The tool was cut off after ${time(ms)}.`;
}

const WORDS: Readonly<Record<TraceRecord['did'], string>> = {
  allowed: 'let it pass',
  rewrote: 'changed something',
  added: 'added something',
  blocked: 'blocked it',
  asked: 'asked somebody',
  retried: 'tried again',
  answered: 'gave the answer itself',
  stopped: 'stopped the run',
  failed: 'failed',
  called: 'was called',
  noted: 'noted something',
};

/** What changed, in a few words. */
function details({ changes }: TraceRecord): string {
  if (!changes) return '';
  const { systemPrompt, tools, model, settings, args, toolCall, inject, decision } = changes;
  const parts: string[] = [];
  if (systemPrompt?.text) parts.push(`it has ${quoted(systemPrompt.text)} now`);
  if (tools?.added.length) parts.push(`added ${tools.added.join(', ')}`);
  if (tools?.removed.length) parts.push(`removed ${tools.removed.join(', ')}`);
  if (model) parts.push(`${model.from} became ${model.to}`);
  for (const list of [settings, args, toolCall, changes.result, changes.response, changes.message])
    parts.push(...(list ?? []).slice(0, 3).map(difference));
  if (inject) parts.push(`added ${inject.map(quoted).join(', ')}`);
  if (decision) parts.push(`${decision.type}${decision.why ? `: ${decision.why}` : ''}`);
  return parts.length > 0 ? `: ${parts.join('; ')}` : '';
}

function difference({ path, from, to }: ValueChange): string {
  const where = path.filter((step) => typeof step === 'string').join('.') || 'it';
  if (from === undefined) return `${where} is ${short(to)}`;
  return to === undefined ? `${where} is gone` : `${where} ${short(from)} became ${short(to)}`;
}

function reason(error: TraceRecord['error']): string {
  return error?.message ?? error?.name ?? 'an error';
}
