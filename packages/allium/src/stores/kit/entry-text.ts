/** How the entries of an append are written as text: what they share is written once. */

import type { Entry, NewEntry } from '../../index.js';

/**
 * The fields of a JSON object: the version, time and run of the first entry (`v`, `at`, `run`), and of all entries (`s`) only
 * what differs. The entries of every turn are shorter still:
 *
 * - `{"a":{"id":6,…},…}`, `{"u":…}`: a `message` of that run, of the assistant or the user. Its id is the run's, a dot and 6.
 * - `{"r":…}`: a `tool_finished` of that run, with a result that is no error.
 * - `"usage":[10,5,0,0,15]`: input, output, cache read, cache write and total tokens.
 */
export function entriesText(entries: readonly NewEntry[]): string {
  const { v, at, runId } = entries[0]! as NewEntry & { readonly runId?: string };
  const plain = !entries.every(isDated);
  if (plain) return `"e":${JSON.stringify(entries)}`;
  let text = '';
  for (let i = 0; i < entries.length; i++)
    text += `${i === 0 ? '' : ','}${entryText(entries[i]!, v, at, runId)}`;
  const run = typeof runId === 'string' ? `"run":${JSON.stringify(runId)},` : '';
  return `"v":${v},"at":${at},${run}"s":[${text}]`;
}

/** A caller's own kind of entry may lack what all of ours have. */
function isDated({ v, at }: NewEntry): boolean {
  return Number.isFinite(v) && Number.isFinite(at);
}

function entryText(entry: NewEntry, v: number, at: number, runId: string | undefined): string {
  const differs = (entry.v === v ? '' : `,"v":${entry.v}`) + (entry.at === at ? '' : `,"at":${entry.at}`);
  const short =
    runId !== undefined && (entry.type === 'message' || entry.type === 'tool_finished')
      ? shortText(entry as unknown as Spoken, runId)
      : undefined;
  if (short !== undefined) return `{${short}${differs}}`;
  const { v: _, at: __, ...rest } = entry;
  const text = JSON.stringify(rest);
  return differs === '' ? text : `${text.slice(0, -1)}${differs}}`;
}

/** What is certain about an entry that may come from anywhere. */
interface Spoken {
  readonly v: number;
  readonly at: number;
  readonly type: string;
  readonly runId: unknown;
  readonly message: Said;
  readonly started?: unknown;
}

interface Said {
  readonly id: unknown;
  readonly role: unknown;
  readonly content?: unknown;
  readonly usage?: unknown;
  readonly isError?: unknown;
  readonly stopReason?: unknown;
  readonly model?: unknown;
  readonly toolCallId?: unknown;
  readonly toolName?: unknown;
}

const KEYS: Readonly<Record<string, string>> = { user: 'u', assistant: 'a', tool: 'r' };
const ROLES: Readonly<Record<string, string>> = { u: 'user', a: 'assistant', r: 'tool' };

/** Undefined for an entry that isn't like those of every turn. */
function shortText(entry: Spoken, runId: string): string | undefined {
  const { type, runId: own, message, started } = entry;
  if (own !== runId || typeof message?.role !== 'string') return undefined;
  const key = Object.hasOwn(KEYS, message.role) ? KEYS[message.role] : undefined;
  const isResult = type === 'tool_finished';
  if (key === undefined || (key === 'r') !== isResult || (isResult && message.isError !== false))
    return undefined;
  const number = numberIn(message.id, runId);
  if (number === undefined) return undefined;
  const said = isResult ? resultText(message, number) : answerText(message, number);
  const text = `"${key}":${said ?? messageText(message, number, isResult)}`;
  const fields = fieldCount(entry);
  if (fields === 5) return text;
  if (fields === 6 && started === true) return `${text},"started":true`;
  const { v: _, at: __, type: ___, runId: ____, message: _____, ...rest } = entry;
  return text + fieldsOf(rest);
}

// Results and answers without anything unusual are put together field by field. That takes half as long as copying what is
// left of them for `JSON.stringify`.

function resultText(message: Said, number: string): string | undefined {
  const { toolCallId, toolName, content } = message;
  if (fieldCount(message) !== 6 || typeof toolCallId !== 'string' || typeof toolName !== 'string')
    return undefined;
  if (!Array.isArray(content)) return undefined;
  return `{"id":${number},"toolCallId":${quoted(toolCallId)},"toolName":${quoted(toolName)},"content":${contentText(content)}}`;
}

function answerText(message: Said, number: string): string | undefined {
  const { content, usage, stopReason, model } = message;
  if (fieldCount(message) !== 6 || typeof stopReason !== 'string' || typeof model !== 'string')
    return undefined;
  const used = usage === undefined ? undefined : usageText(usage);
  if (used === undefined || !Array.isArray(content)) return undefined;
  return `{"id":${number}${used},"content":${contentText(content)},"stopReason":${quoted(stopReason)},"model":${quoted(model)}}`;
}

function contentText(content: readonly unknown[]): string {
  let text = '';
  for (let i = 0; i < content.length; i++) text += `${i === 0 ? '' : ','}${partText(content[i])}`;
  return `[${text}]`;
}

function partText(part: unknown): string {
  if (typeof part !== 'object' || part === null) return JSON.stringify(part) ?? 'null';
  const { type, text, id, name, arguments: args } = part as Readonly<Record<string, unknown>>;
  if (type === 'text' && typeof text === 'string' && fieldCount(part) === 2)
    return `{"type":"text","text":${quoted(text)}}`;
  if (type !== 'tool-call' || fieldCount(part) !== 4) return JSON.stringify(part);
  if (typeof id !== 'string' || typeof name !== 'string' || typeof args !== 'string')
    return JSON.stringify(part);
  return `{"type":"tool-call","id":${quoted(id)},"name":${quoted(name)},"arguments":${quoted(args)}}`;
}

const quoted = (text: string): string => JSON.stringify(text);

function fieldCount(object: object): number {
  let count = 0;
  for (const _ in object) count++;
  return count;
}

function messageText(message: Said, number: string, isResult: boolean): string {
  const { id, role, usage, isError, ...rest } = message;
  const more = isResult || isError === undefined ? rest : { ...rest, isError };
  const used = usage === undefined ? '' : usageText(usage);
  if (used !== undefined) return `{"id":${number}${used}${fieldsOf(more)}}`;
  return `{"id":${number}${fieldsOf({ ...more, usage })}}`;
}

const COUNTS = ['inputTokens', 'outputTokens', 'cacheRead', 'cacheWrite', 'totalTokens'] as const;

function usageText(usage: unknown): string | undefined {
  const counts = usage as Readonly<Record<string, unknown>>;
  if (fieldCount(counts) !== COUNTS.length) return undefined;
  let text = '';
  for (let i = 0; i < COUNTS.length; i++) {
    const count = counts[COUNTS[i]!];
    if (!Number.isFinite(count)) return undefined;
    text += `${i === 0 ? '' : ','}${count}`;
  }
  return `,"usage":[${text}]`;
}

/** The number after the run in an id, as text. */
function numberIn(id: unknown, runId: string): string | undefined {
  if (typeof id !== 'string' || !id.startsWith(runId) || id[runId.length] !== '.') return undefined;
  const number = id.slice(runId.length + 1);
  return String(Number(number)) === number && Number.isSafeInteger(Number(number)) ? number : undefined;
}

/** The fields of an object that follow others. */
function fieldsOf(rest: object): string {
  for (const _ in rest) {
    const text = JSON.stringify(rest);
    return text === '{}' ? '' : `,${text.slice(1, -1)}`;
  }
  return '';
}

/** Such an object as it was parsed. */
export interface WrittenEntries {
  /** Entries in full, as earlier releases wrote them. */
  readonly e?: readonly Entry[];
  readonly v?: number;
  readonly at?: number;
  readonly run?: string;
  readonly s?: readonly object[];
}

/** How many entries there are; undefined if that isn't what was parsed. */
export function countIn({ e, s }: WrittenEntries): number | undefined {
  return (e ?? s)?.length;
}

/** The entries, without their numbers. */
export function entriesIn(line: WrittenEntries): readonly NewEntry[] {
  if (line.s === undefined) return line.e ?? [];
  return line.s.map((entry) => wholeEntry(entry as Fields, line)) as unknown as NewEntry[];
}

type Fields = Record<string, unknown>;

function wholeEntry(short: Fields, { v, at, run }: WrittenEntries): Fields {
  if ('type' in short) return { v, at, ...short };
  const key = 'a' in short ? 'a' : 'u' in short ? 'u' : 'r';
  const message = wholeMessage(short[key] as Fields, key, run);
  const entry: Fields = { v, at, type: key === 'r' ? 'tool_finished' : 'message', runId: run, message };
  // Copied one by one, which is several times as fast as `...rest`.
  for (const name in short) if (name !== key) set(entry, name, short[name]);
  return entry;
}

function wholeMessage(short: Fields, key: string, run: string | undefined): Fields {
  const message: Fields = { id: `${run}.${short.id}`, role: ROLES[key] };
  for (const name in short) {
    const value = short[name];
    if (name === 'usage' && Array.isArray(value)) message.usage = wholeUsage(value);
    else if (name !== 'id') set(message, name, value);
  }
  if (key === 'r') message.isError = false;
  return message;
}

function wholeUsage(counts: readonly number[]): Fields {
  const [inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens] = counts;
  return { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens };
}

function set(fields: Fields, name: string, value: unknown): void {
  // Assigned, it would become the prototype.
  if (name === '__proto__')
    Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true });
  else fields[name] = value;
}
